"""The band of sifting: the rows near the kink, and the sums over the rows fixed on their side (``sifting.py``)."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Dataset, Memory
from linsep.losses import zero_margin
from linsep.problem import Problem
from linsep.problem.pointwise import DUAL
from linsep.solution import Explicit
from linsep.solvers.interior.central_path import Path, native_loss
from linsep.solvers.interior.subsampling import Thinning, merge_rows
from linsep.solvers.run import Run

if TYPE_CHECKING:
    from typing import Unpack

    from linsep.data import Block
    from linsep.data.dataset import PassNotes

    Rows = IntArray

_V, SORTED = "kink-distance", "kink-dual"  # row state: v, and u of every row when it was sorted
_BALANCING = 4  # largest number of steps that balance the dual variables; one usually suffices


class Wrong(NamedTuple):
    """Fixed rows that turned out to be on the other side, and the dual variables at which they were fixed."""

    rows: Rows
    u: FloatArray


class Band:
    """The rows of the band with their v = m - kink, and the linear term and constant of the fixed rows."""

    def __init__(self, run: Run[Problem], mu: FloatArray, scale: FloatArray) -> None:
        self.run, self.problem = run, run.problem
        self.mu, self.scale = mu, scale
        self.loss = self.problem.loss
        self.low, self.high = self.loss.domain
        self.rows: Rows = np.zeros(0, np.int64)
        self.v = np.zeros(0)  # v of the band when it was sorted
        self.share: FloatArray | None = None  # rows represented by each row of a sampled band
        self._band: Memory | None = None
        self.linear, self.constant = np.zeros(self.problem.order), 0.0

    def sort(self, theta: FloatArray, tau: float, thin: Thinning | None = None) -> float:
        """Find the band |v| <= tau q at theta; return the objective. One pass (kernels/interior/passes.hpp: sort_rows).

        With ``thin`` the band is sampled and each row represents several, but the linear term is such that value and
        gradient of the reduced problem at theta are those of all rows.
        """
        self.problem.passes += 1
        loss, mu, scale, high = self.loss, self.mu, self.scale, self.high
        at = theta.copy()  # the pass may be repeated later on lost partitions

        def add(b: Block, out: FloatArray) -> tuple[Rows, FloatArray, FloatArray]:
            where = b.rows, b.targets, native_loss(loss), b.lo, b.hi
            v, u = b.row_state(_V), b.row_state(SORTED)
            _kernels.sort_rows(*where, at, tau, mu, scale, v, u, out)
            band = b.lo + np.flatnonzero(u[b.lo : b.hi] > high)
            share = np.zeros(0)
            if thin is not None:
                taken, share = thin.of(b.first + band, b.sign[band])
                band = band[taken]
            return b.first + band, v[band], share

        data, size = self.problem.data, 1 + self.problem.order
        sums, found = data.visit(
            add, 1 + 2 * size, writes=(SORTED,), prefetch_rows=_rows_up_to(data.n // 2)
        )
        self.rows, self.v, share = (np.concatenate(part) for part in zip(*found, strict=True))
        self.share = None if thin is None else share
        self.constant, self.linear = float(sums[1]), sums[2 : 1 + size]
        self._band = None
        if thin is not None:
            self._band = data.sample(self.rows, self.share)
            u = np.where(self.v < 0.0, self.high, self.low)
            self.constant += float(sums[1 + size])
            self.linear = self.linear + sums[2 + size :]
            self._take(self._band, u)
        return float(sums[0]) + self.problem.penalty_value(theta)

    def reach(self) -> float:
        """Typical distance of the rows of the band from the kink: twice the median of |v|."""
        return 2.0 * float(np.median(np.abs(self.v))) if len(self.rows) else 1.0

    def evaluate(self, theta: FloatArray, part: FloatArray) -> tuple[float, Wrong, FloatArray]:
        """Return the objective at theta, the fixed rows on the wrong side and the closing sums. Two passes.

        ``part`` are the dual variables of the band; those of all rows are stored with the rows as DUAL.
        """
        self.problem.passes += 2
        part, rows = balance_band(part, self.data(), self.linear, self.problem), self.rows
        sides, close = self._sides(theta), self.problem.closing_at_stored_dual(theta.copy())

        def add(b: Block, out: FloatArray) -> Any:
            found = sides(b, out[:1])
            dual, (first, last) = (
                b.row_state(DUAL),
                np.searchsorted(rows, (b.first + b.lo, b.first + b.hi)),
            )
            dual[b.lo : b.hi] = b.row_state(SORTED)[b.lo : b.hi]
            dual[rows[first:last] - b.first] = part[first:last]
            close(b, out[1:])
            return found

        size = 9 + 2 * self.problem.data.d
        sums, wrong = self._against(
            *(add, size),
            reads=(SORTED,),
            writes=(DUAL,),
            prefetch_state=(DUAL,),
            rarely_read=True,
        )
        return float(sums[0]) + self.problem.penalty_value(theta), wrong, sums[1:]

    def _sides(self, theta: FloatArray) -> Callable[[Block, FloatArray], Any]:
        """Return a function that finds, in a block, the objective, fixed rows on the wrong side, and v of the band."""
        loss, low, high, at = self.loss, self.low, self.high, theta.copy()

        def add(b: Block, out: FloatArray) -> tuple[Rows, FloatArray, FloatArray]:
            v, u = b.row_state(_V), b.row_state(SORTED)
            _kernels.kink_margins(b.rows, b.targets, native_loss(loss), b.lo, b.hi, at, v, out)
            v, u = v[b.lo : b.hi], u[b.lo : b.hi]
            wrong = np.where(v < 0.0, u == low, (u == high) & (v > 0.0))
            if b.weight is not None:
                wrong &= b.weights() > 0.0
            rows = np.flatnonzero(wrong)
            return b.first + b.lo + rows, u[rows], v[u > high]

        return add

    def _against(
        self, add: Callable[[Block, FloatArray], Any], size: int, **notes: Unpack[PassNotes]
    ) -> tuple[FloatArray, Wrong]:
        notes["prefetch_rows"] = _rows_up_to(len(self.rows))
        sums, found = self.problem.data.visit(add, size, **notes)
        rows, u, self.v = (np.concatenate(part) for part in zip(*found, strict=True))
        fixed = ~np.isin(rows, self.rows)  # exclude rows that joined the band since it was sorted
        return sums, Wrong(rows[fixed], u[fixed])

    def _take(self, part: Dataset, u: FloatArray) -> None:
        """Subtract these rows, with dual variables u, from the sums of the fixed rows."""
        mass = part.sign * u * (1.0 if part.weight is None else part.weight)
        kink = zero_margin(self.loss)
        offset = 0.0 if part.offset is None else part.offset
        self.constant -= float(np.sum(mass * part.sign * (kink - offset)))
        self.linear = self.linear - part.combine(mass)

    def admit(self, wrong: Wrong) -> None:
        """Add fixed rows to the band."""
        data = self.problem.data
        part = data.sample(wrong.rows)
        self._take(part, wrong.u)
        both = np.append(self.rows, wrong.rows)
        order = np.argsort(both)
        assert self._band is not None
        self.rows, self._band = both[order], merge_rows(self._band, part, order)
        self.problem.passes += len(wrong.rows) / data.n

    def data(self) -> Dataset:
        """Return the rows of the band as a data set of their own."""
        if self._band is None:
            self._band = self.problem.data.sample(self.rows)
        return self._band

    def path(self) -> Path:
        """Return the central path of the reduced problem."""
        self.problem.passes += len(self.rows) / self.problem.data.n
        sub = Problem(
            self.problem.loss, self.problem.penalty, self.data(), self.problem.fit_intercept
        )
        return Path(self.run, sub, self.linear, self.constant)

    def dual(self) -> Explicit:
        """Return the dual variables of all rows, as stored by ``evaluate``."""
        return Explicit(self.problem.data.row_state(DUAL).copy())


def balance_band(u: FloatArray, band: Dataset, linear: FloatArray, problem: Problem) -> FloatArray:
    """Clip u of a band and change it, in proportion to each row's slack, until sum s sigma u = 0 over all rows.

    ``linear`` contains the sums over the fixed rows. The closing pass removes the remainder from the heavier class.
    """
    low, high = problem.loss.domain
    u = np.clip(u, low, high)
    mass = band.sign if band.weight is None else band.sign * band.weight
    for _ in range(_BALANCING if problem.fit_intercept else 0):
        slack = np.minimum(u - low, high - u)
        excess = float(linear[-1] + np.sum(mass * u))
        total = float(np.sum(np.abs(mass) * slack))
        if not 0.0 < abs(excess) <= total:
            break
        u = np.clip(u - band.sign * (excess / total) * slack, low, high)
    return u


def _rows_up_to(most: int) -> Callable[[list[Any]], Rows]:
    """Return a function that lists the rows found in a partition, or none if they are more than ``most``."""

    def rows(found: list[Any]) -> Rows:
        numbers = np.concatenate([part[0] for part in found])
        return numbers if len(numbers) <= most else numbers[:0]

    return rows
