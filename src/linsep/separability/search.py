"""Decide separability for any number of rows on a growing working set.

Either vectors a_i lie strictly on one side of a hyperplane, or 0 lies in their convex hull (Gordan 1873). Nonnegative
least squares decides which (Lawson and Hanson 1974, ch. 23):

    min |sum_i x_i (a_i, 1) - (0, 1)|   over x >= 0,     residual r = (0, 1) - sum_i x_i (a_i, 1).

If r = 0, the x_i are weights that sum to 1 with sum x_i a_i = 0: a witness of inseparability. Otherwise theta = -r_a
has a_i.theta >= |r|^2 > 0 for every i: a separator. At most p + 1 of the x_i are positive.

This is applied to a working set of rows. A witness among them is a witness for all rows: no pass is needed. Otherwise
one pass finds the rows that the separator misclassifies, and the worst join the working set.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.exact.dyadic import below
from linsep.separability.frame import Frame
from linsep.separability.rows import Scan, SignedRows

#: |r| for unit vectors below which it may be rounding noise.
ZERO = 1e-12
_STEPS = 1000  # per native call, at most


class Split(NamedTuple):
    """Result: weights x, theta, and |r|, which is about the cosine margin of theta."""

    weights: FloatArray
    theta: FloatArray
    residual: float

    @property
    def separated(self) -> bool:
        """Whether theta separates, up to rounding."""
        return self.residual > ZERO


def witness_or_separator(A: FloatArray, start: FloatArray | None = None) -> Split:
    """Find a separator of the rows of A (m, p) or a witness against it; the rows should have about unit length."""
    m, p = A.shape
    E = np.empty((m, p + 1))
    E[:, :p] = A
    E[:, p] = 1.0
    x = np.zeros(m) if start is None else np.array(start, dtype=np.float64)
    f, r = np.zeros(p + 1), np.zeros(p + 1)
    f[p] = 1.0
    for _ in range(2 + 20 * (m + p) // _STEPS):  # each call starts with a fresh factorisation
        status, _ = _kernels.nnls(E, f, 0.1 * ZERO, _STEPS, x, r)
        if status != 2:
            break
    return Split(x, -r[:p], float(np.sqrt(r @ r)))


_MAX_PASSES = 200
_WORST, _IDLE = 256, 2048  # at least: rows added per pass, rows kept before idle ones are dropped
_DOUBTFUL = 5000  # most rows decided in exact arithmetic


@dataclass(frozen=True, eq=False)
class Separator:
    """Separator theta = (w, b) with every margin proven to be at least ``low`` > 0, rounding included."""

    theta: FloatArray
    low: float


@dataclass(frozen=True, eq=False)
class CommonPoint:
    """Rows whose hulls meet to working precision, with the weights of a common point."""

    rows: IntArray
    weights: FloatArray


@dataclass(frozen=True, eq=False)
class Inconclusive:
    """No result: the lowest ratio of the best theta, and the residual of the hulls."""

    ratio: float
    residual: float


class Working:
    """Working set of rows as unit vectors, with the weights of the last result."""

    def __init__(self, frame: Frame, rows: IntArray) -> None:
        self.frame, self.rows = frame, rows
        self.A, self.lengths = frame.vectors(rows)
        self.x = np.zeros(len(rows))

    def add(self, rows: IntArray) -> bool:
        """Add rows and return whether any was new; rows of weight 0 are dropped when there are too many."""
        new = rows[~np.isin(rows, self.rows)]
        if not len(new):
            return False
        if len(self.rows) > max(_IDLE, 20 * (self.frame.order + 1)):
            self._keep(self.x > 0)
        A, lengths = self.frame.vectors(new)
        self.rows = np.concatenate([self.rows, new])
        self.A = np.vstack([self.A, A])
        self.lengths = np.concatenate([self.lengths, lengths])
        self.x = np.concatenate([self.x, np.zeros(len(new))])
        return True

    def _keep(self, kept: BoolArray) -> None:
        self.rows, self.A, self.lengths = self.rows[kept], self.A[kept], self.lengths[kept]
        self.x = self.x[kept]


def first_rows(signed: SignedRows, count: int, seed: int) -> IntArray:
    """Random sample of rows, at least a quarter of it from each class, as far as available."""
    if len(signed.counted) <= count:
        return signed.counted
    rng = np.random.default_rng(seed)
    sign = signed.data.sign[signed.counted]
    taken = [rng.choice(len(sign), count // 2, replace=False)]
    for side in (-1.0, 1.0):
        own = np.flatnonzero(sign == side)
        taken.append(rng.choice(own, min(len(own), count // 4), replace=False))
    return signed.counted[np.unique(np.concatenate(taken))]


def search(signed: SignedRows, working: Working) -> Separator | CommonPoint | Inconclusive:
    """Solve on the working set and scan all rows until the answer is known or no new row is found."""
    best = Inconclusive(-1.0, np.inf)
    for _ in range(_MAX_PASSES):
        split = witness_or_separator(working.A, working.x)
        working.x = split.weights
        if not split.separated:
            used = split.weights > 0
            return CommonPoint(working.rows[used], (split.weights / working.lengths)[used])
        theta = working.frame.theta(split.theta)
        scan = signed.scan(theta, max(_WORST, 4 * (working.frame.order + 1)))
        low = proven_margin(signed, theta, scan)
        if low > 0.0:
            return Separator(theta, low)
        best = Inconclusive(max(best.ratio, float(scan.ratio.min(initial=1.0))), split.residual)
        if not working.add(scan.worst):
            break
    return best


def proven_margin(signed: SignedRows, theta: FloatArray, scan: Scan) -> float:
    """Lower bound on all margins if all are positive, with doubtful rows decided exactly; otherwise 0."""
    if scan.violated or len(scan.doubtful) > _DOUBTFUL or not np.isfinite(theta).all():
        return 0.0
    low = scan.low
    if len(scan.doubtful):
        least = min(signed.exact_margins(scan.doubtful, theta))
        low = min(low, below(least))
    return max(low, 0.0)
