"""The perceptron: find a separating hyperplane by correcting one misclassified row at a time.

::

    while some row has y (x.w + b) <= 0:   w += a s y x,  b += a s y

a = 1 (raw, Novikoff 1962) or 1/|(x, 1)| (normalised), and s is the weight of the row. The row to correct may be the
next in the cycle, the first, a random one, or the worst. If the rows are separable, the loop ends after at most
(R/rho)^2 updates; otherwise it would never end, so there is a budget.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, squares
from linsep.data import Memory
from linsep.errors import NonFinite
from linsep.monitoring import Job, note

ORDERS = ("cyclic", "first", "random", "worst")
UPDATES = ("raw", "normalised")
#: Number of updates that the history records.
RECORDED = 100_000
_CALL = 1 << 21  # entries processed in one call: a millisecond or two


@dataclass(frozen=True, eq=False)
class PerceptronHistory:
    """The first 100,000 updates of one run.

    Attributes
    ----------
    rows : ndarray of int
        Row corrected by each update.
    norms : ndarray
        |(w, b)| after each update.
    n_updates : int
        Number of updates, recorded or not.
    separated : bool
        Whether the run ended because no row was on the wrong side.
    """

    rows: IntArray
    norms: FloatArray
    n_updates: int
    separated: bool
    normalised: bool
    fit_intercept: bool

    def against(self, w: Any, b: float, X: Any, sign: Any) -> tuple[FloatArray, FloatArray]:
        """Inner product and cosine of a reference (w, b) with the iterates after each update.

        With a separator of length 1 whose margin y (x.w + b) / |(x, 1)| is at least gamma, normalised
        updates satisfy <w*, w_t> >= gamma t and |w_t| <= sqrt(t). ``sign`` holds -1 and +1, times the weight of the
        row if rows were weighted.
        """
        w, sign = np.asarray(w, float).ravel(), np.asarray(sign, float)
        x = X[self.rows]
        gain = np.asarray(x @ w).ravel() + b * self.fit_intercept
        if self.normalised:
            square = np.asarray(squares(x).sum(axis=1)).ravel()
            gain /= np.sqrt(square + self.fit_intercept)
        inner = np.cumsum(sign[self.rows] * gain)
        length = np.sqrt(w @ w + self.fit_intercept * b * b)
        with np.errstate(invalid="ignore", divide="ignore"):
            cosine = inner / (length * self.norms)
        return inner, cosine


@dataclass(eq=False)
class Stream:
    """State of a perceptron: theta = (w, b), and the sums for its mean over the visited rows."""

    theta: FloatArray
    sum: FloatArray | None = None  #: of the updates, each times the rows visited before it
    visited: int = 0

    @property
    def answer(self) -> FloatArray:
        """theta, or its mean for the averaged perceptron."""
        if self.sum is None or not self.visited:
            return self.theta
        return self.theta - self.sum / self.visited


@dataclass(frozen=True, eq=False)
class PerceptronRun:
    """Final state, history and number of passes of one run."""

    end: Stream
    history: PerceptronHistory
    passes: float


def lengths_of(data: Memory, fit_intercept: bool) -> FloatArray:
    """Squared norms |(x, 1)|^2 of all rows, or |x|^2 without intercept."""
    norms, rows = np.empty(data.n), kernel_rows(data)
    step = _rows_in_a_call(data)
    for lo in range(0, data.n, step):
        _kernels.row_norms(rows, lo, min(lo + step, data.n), norms)
    if not np.isfinite(norms).all():
        row = int(np.argmin(np.isfinite(norms)))
        raise NonFinite(
            f"Row {row} (counting from 0) of X holds numbers too large to square in float64; divide "
            "those columns by a power of ten."
        )
    return norms + 1.0 if fit_intercept else norms


def kernel_rows(data: Memory) -> _kernels.Rows:
    """All rows as a kernel argument."""
    assert data.whole is not None
    return data.whole.rows


def _rows_in_a_call(data: Memory) -> int:
    return max(1, _CALL * data.n // max(1, data.n_entries))


class _Loop:
    """State kept between calls of the kernel."""

    def __init__(
        self,
        data: Memory,
        sign: FloatArray,
        lengths: FloatArray,
        start: Stream,
        recorded: int = 0,
    ) -> None:
        self.rows, self.sign, self.lengths = kernel_rows(data), sign, lengths
        self.theta, self.sum = start.theta.copy(), None if start.sum is None else start.sum.copy()
        self.counts = np.array([0, 0, 0, start.visited, -1], dtype=np.int64)
        self.numbers = np.zeros(2)
        self.updated = np.empty(recorded, dtype=np.int64)
        self.norms = np.empty(recorded)
        self._budget = _rows_in_a_call(data)

    def call(self, order: IntArray | None = None, **job: Any) -> None:
        """Process some rows in one kernel call."""
        _kernels.perceptron(
            self.rows,
            self.sign,
            self.lengths,
            order=order,
            budget=min(job.pop("rows_left", self._budget), self._budget),
            theta=self.theta,
            counts=self.counts,
            numbers=self.numbers,
            updated=self.updated,
            norms=self.norms,
            sum=self.sum,
            **job,
        )

    @property
    def n_updates(self) -> int:
        return int(self.counts[2])

    @property
    def visited(self) -> int:
        return int(self.counts[3])

    @property
    def end(self) -> Stream:
        return Stream(self.theta, self.sum, self.visited)

    @property
    def clean(self) -> bool:
        return bool(self.counts[1] >= self.rows.n)


def weigh_updates(
    sign: FloatArray, lengths: FloatArray, weight: FloatArray | None, normalised: bool
) -> tuple[FloatArray, FloatArray, bool]:
    """Signs, squared lengths and update rule with which the kernel adds s y (x, 1), or that divided by |(x, 1)|.

    With the sign c y, the raw update of the kernel is c y (x, 1), whose squared length is c^2 |(x, 1)|^2.
    """
    if weight is None:
        return sign, lengths, normalised
    factor = weight
    if normalised:
        factor = weight / np.sqrt(np.where(lengths > 0.0, lengths, 1.0))
    return factor * sign, factor * factor * lengths, False


def train_perceptron(  # noqa: PLR0913
    data: Memory,
    sign: FloatArray,
    lengths: FloatArray,
    *,
    weight: FloatArray | None = None,
    update: str,
    order: str,
    fit_intercept: bool,
    average: bool,
    max_updates: int,
    max_passes: float,
    time_limit: float,
    seed: int,
) -> PerceptronRun:
    """Run until no row is misclassified or the budget is spent; weights, if given, must be positive."""
    steps, squares, divided = weigh_updates(sign, lengths, weight, update == "normalised")
    loop = _Loop(data, steps, squares, begin(data.d, average), RECORDED)
    job = {
        "select": "listed" if order == "random" else order,
        "normalised": divided,
        "intercept": fit_intercept,
        "online": False,
        "max_updates": max_updates,
    }
    most = int(min(max_passes * data.n, 2.0**62))
    until = time.monotonic() + time_limit
    listed = np.arange(data.n) if order == "random" else None
    started = 0
    with Job("perceptron"):
        while not loop.clean and loop.n_updates < max_updates and loop.visited < most:
            if listed is not None and loop.counts[0] in (0, data.n):
                _kernels.shuffle(listed, seed + started)
                loop.counts[:2] = 0
                started += 1
            loop.call(listed, **job, rows_left=most - loop.visited)
            note(loop.visited / data.n)
            if time.monotonic() > until:
                break
    # A row of length 0 lies on every hyperplane through the origin.
    separated = loop.clean and bool((lengths > 0.0).all())
    kept = min(loop.n_updates, RECORDED)
    history = PerceptronHistory(
        rows=loop.updated[:kept].copy(),
        norms=loop.norms[:kept].copy(),
        n_updates=loop.n_updates,
        separated=separated,
        normalised=update == "normalised",
        fit_intercept=fit_intercept,
    )
    return PerceptronRun(loop.end, history, loop.visited / data.n)


def begin(d: int, average: bool) -> Stream:
    """Initial state with w = 0."""
    return Stream(np.zeros(d + 1), np.zeros(d + 1) if average else None)


def stream(
    data: Memory,
    sign: FloatArray,
    lengths: FloatArray,
    start: Stream,
    *,
    weight: FloatArray | None = None,
    update: str,
    fit_intercept: bool,
) -> tuple[Stream, int]:
    """Process all rows once in the given order, updating at errors; return the state and the number of updates.

    The prediction at score 0 is +1, so that it is an error only for y = -1.
    """
    steps, squares, divided = weigh_updates(sign, lengths, weight, update == "normalised")
    loop = _Loop(data, steps, squares, start)
    while loop.visited < start.visited + data.n:
        loop.call(
            select="cyclic",
            normalised=divided,
            intercept=fit_intercept,
            online=True,
            max_updates=2**62,
        )
    return loop.end, loop.n_updates
