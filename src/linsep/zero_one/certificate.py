"""Certificate of the minimum number of errors, which can be checked against the data."""

from __future__ import annotations

from dataclasses import dataclass
from numbers import Real
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray, dense
from linsep.data.row_access import plain_rows, plain_signs
from linsep.errors import BadInput, Refused
from linsep.separability.witness import balances, proves_positive, round_to, underflows
from linsep.zero_one import master
from linsep.zero_one.line import best_threshold
from linsep.zero_one.points import Points, distinct
from linsep.zero_one.sweep import sweep

_PATIENCE = 600.0  # time limit of a check in seconds
_METHODS = ("separable", "thresholds", "sweep", "cover")


@dataclass(frozen=True, eq=False)
class ZeroOne:
    """A hyperplane, the weight of its errors, and a proven lower bound for every other hyperplane.

    Attributes
    ----------
    errors : float
        Total weight of the rows that sign(w.x + b) misclassifies, sign(0) = +1; the float nearest to the exact sum.
    lower_bound : float
        No hyperplane has less: the exact bound, rounded down unless it equals the errors.
    proven : bool
        Whether the two are equal, in exact arithmetic.
    w, b : ndarray (d,), float
        The hyperplane. All rows except those in ``wrong`` and those of weight 0 lie on their side, strictly so if
        float64 coefficients allow it.
    wrong : ndarray of int
        Misclassified rows, without those of weight 0.
    witnesses : tuple of (rows, weights)
        Sets of rows in each of which every hyperplane makes an error, because the weighted rows of the two classes
        meet in a point. The smallest weight of a set of rows that intersects all of them is the lower bound.
    method : {"separable", "thresholds", "sweep", "cover"}
        How the bound is proven: it is 0, all thresholds of one feature were tried, all lines through two points were
        tried, or by the witnesses.
    seconds : float
        Time used.
    classes : ndarray (2,) or None
        The labels, the second being +1.
    """

    errors: float
    lower_bound: float
    proven: bool
    w: FloatArray
    b: float
    wrong: IntArray
    witnesses: tuple[tuple[IntArray, FloatArray], ...]
    method: str
    seconds: float = 0.0
    classes: npt.NDArray[Any] | None = None
    tol: ClassVar[float] = 0.0
    coef_error: ClassVar[float] = float("inf")

    @property
    def primal(self) -> float:
        """The errors; common name of certificates."""
        return self.errors

    @property
    def dual(self) -> float:
        """The lower bound; common name of certificates."""
        return self.lower_bound

    @property
    def gap(self) -> float:
        """Errors minus lower bound."""
        return self.errors - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """Gap divided by the errors; 0 without errors."""
        return self.gap / self.errors if self.errors > 0.0 else 0.0

    @property
    def certified(self) -> bool:
        """Whether the number of errors is proven to be the smallest (alias of ``proven``)."""
        return self.proven

    def __str__(self) -> str:
        if not self._is_well_formed():
            return "a certificate that no fit has made"
        many = len(self.witnesses)
        how = {
            "separable": "the rows are separable",
            "thresholds": "all thresholds tried",
            "sweep": "all lines through two points tried",
            "cover": f"{many} witness{'' if many == 1 else 'es'} of inseparability",
        }[self.method]
        count = "1 error" if self.errors == 1.0 else f"{self.errors:g} errors"
        if self.proven:
            return f"proven minimum of the 0-1 loss: {count} ({how})"
        return (
            f"not proven: {count}, every hyperplane makes at least {self.lower_bound:g} ({how}); "
            + (
                "a hyperplane with fewer errors needs more digits than coefficients in float64 have: rescale or round "
                "the features"
                if self.method in ("thresholds", "sweep")
                else "raise the limits, round the features to fewer digits, or accept the gap"
            )
        )

    __repr__ = __str__

    def check(self, X: Any, y: Any, sample_weight: Any = None, exact: bool = False) -> bool:
        """Return whether the errors are those of the hyperplane and the stored proof implies the lower bound.

        Weights are summed and compared as integers; scores whose sign rounding could change are computed as fractions.
        A bound from witnesses is proven again: every witness by an enclosure of its weights that includes rounding or
        by rational arithmetic (always the latter with ``exact=True``), the smallest cover by branch and bound in
        integers. A bound from enumeration is proven by repeating it.
        """
        points = self._points(X, y, sample_weight)
        if not self._is_well_formed():
            return False
        if np.shape(self.w) != (points.X.shape[1],):
            raise BadInput(
                f"X has {points.X.shape[1]} columns, the answer is about {np.size(self.w)}."
            )
        wrong = points.find_errors(np.append(self.w, self.b))
        listed = np.flatnonzero((points.place >= 0) & wrong[points.place])
        if not np.array_equal(self.wrong, listed):
            return False
        count = points.count(wrong)
        if self.errors != points.value(count):
            return False
        if self.proven:
            return self.lower_bound == self.errors and self._proves_bound(points, count, exact)
        goal = points.at_least(self.lower_bound)
        return goal < count and self._proves_bound(points, goal, exact)

    def _is_well_formed(self) -> bool:
        """Return whether every field has the type that a fit stores."""
        return (
            all(_finite(x) for x in (self.errors, self.lower_bound, self.b))
            and min(self.errors, self.lower_bound) >= 0.0
            and np.asarray(self.w).dtype.kind == "f"
            and bool(np.isfinite(self.w).all())
            and isinstance(self.proven, bool | np.bool_)
            and self.method in _METHODS
            and isinstance(self.witnesses, tuple)
            and (self.method == "cover" or not self.witnesses)
        )

    def _points(self, X: Any, y: Any, sample_weight: Any) -> Points:
        rows = plain_rows(X)
        rows = np.asarray(dense(rows), dtype=np.float64)
        sign = plain_signs(y, len(rows), self.classes)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None and (
            weight.shape != sign.shape or not ((weight >= 0.0) & np.isfinite(weight)).all()
        ):
            raise BadInput("sample_weight needs one finite number >= 0 for each row of X.")
        return distinct(rows, sign, weight)

    def _proves_bound(self, points: Points, goal: int, exact: bool) -> bool:
        """Return whether the errors of every hyperplane provably weigh at least ``goal`` units."""
        d = points.X.shape[1]
        if self.method == "separable":
            return self.errors == goal == 0
        if goal == 0:
            return True
        if self.method == "cover":
            return self._proves_by_cover(points, goal, exact)
        if self.method == "thresholds" and d == 1:
            least, _ = best_threshold(points.X[:, 0], points.signed_units)
            return least * points.step >= goal
        if self.method == "sweep" and d == 2:
            best = sweep(points, perf_counter() + _PATIENCE)
            if best is None:
                raise Refused(f"the check did not finish within {_PATIENCE:g} seconds.")
            return best.errors >= goal
        return False

    def _proves_by_cover(self, points: Points, goal: int, exact: bool) -> bool:
        sets = []
        for rows, weights in self.witnesses:
            at = _places(points, rows)
            if at is None or not _meet(points, at, np.asarray(weights), exact):
                return False
            sets.append(at)
        if not sets:
            return False
        if master.relaxation_bound(sets, points.units) >= goal:
            return True
        lighter = master.lighter_cover(
            sets, points.units, goal, deadline=perf_counter() + _PATIENCE
        )
        if lighter.exists is None:
            raise Refused(
                f"the bound on all covers of the witnesses was not proven again within {_PATIENCE:g} seconds."
            )
        return not lighter.exists


def _finite(x: object) -> bool:
    return isinstance(x, Real) and bool(np.isfinite(float(x)))


def _places(points: Points, rows: Any) -> IntArray | None:
    """Points of the rows of a witness; None if some are not rows that count, or are the same point."""
    rows = np.asarray(rows)
    if rows.ndim != 1 or rows.dtype.kind not in "iu" or not len(rows):
        return None
    if rows.min() < 0 or rows.max() >= len(points.place):
        return None
    at = points.place[rows]
    return at if at.min() >= 0 and len(np.unique(at)) == len(at) else None


def _meet(points: Points, at: IntArray, weights: FloatArray, exact: bool) -> bool:
    """Return whether the hulls of the two classes share a point, with weights that round to these."""
    if weights.shape != at.shape or not np.isfinite(weights).all() or weights.min() < 0.0:
        return False
    A = points.signed.signed_matrix(at)
    A = A[:, A.any(axis=0)]
    if underflows(A, weights):
        return round_to(A, weights)
    sound = not exact and proves_positive(A, weights)
    return balances(A, weights) and (sound or round_to(A, weights))
