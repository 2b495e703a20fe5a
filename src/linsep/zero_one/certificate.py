"""What is known about the fewest errors, as a value that can be checked against the data."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.data.reading import plain_rows, plain_signs
from linsep.errors import BadInput, Refused
from linsep.separability.checks import meets
from linsep.zero_one import master
from linsep.zero_one.line import best_threshold
from linsep.zero_one.points import FloatArray, IntArray, Points, distinct
from linsep.zero_one.sweep import sweep

_PATIENCE = 600.0  # seconds after which a check gives up


@dataclass(frozen=True, eq=False)
class ZeroOne:
    """A hyperplane, the weight of its errors, and a proven lower bound on those of every other.

    Attributes
    ----------
    errors : float
        Total weight of the rows that sign(w.x + b) gets wrong, sign(0) = +1.
    lower_bound : float
        No hyperplane does with less.
    proven : bool
        Whether the two are equal (with fractional weights: to within 4e-9 of their sum).
    w, b : ndarray (d,), float
        The hyperplane. All rows but those of ``wrong`` and those of weight 0 lie strictly on their side.
    wrong : ndarray of int
        The rows it gets wrong, those of weight 0 left out.
    witnesses : tuple of (rows, weights)
        Sets of rows in each of which every hyperplane makes an error, because the weighted rows of the two classes
        meet in a point. The least weight of rows that meet all sets is the lower bound.
    method : {"separable", "thresholds", "sweep", "cover"}
        What proves the bound: it is 0, all thresholds of one feature or lines through two points were
        tried, or the witnesses.
    seconds : float
        Time that was needed.
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
        """The errors."""
        return self.errors

    @property
    def dual(self) -> float:
        """The lower bound."""
        return self.lower_bound

    @property
    def gap(self) -> float:
        """Errors minus lower bound."""
        return self.errors - self.lower_bound

    @property
    def relative_gap(self) -> float:
        """The gap as a share of the errors."""
        return self.gap / self.errors if self.errors > 0.0 else 0.0

    @property
    def certified(self) -> bool:
        """The same as ``proven``."""
        return self.proven

    def __str__(self) -> str:
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
            "raise the limits, or accept the gap"
        )

    def check(self, X: Any, y: Any, sample_weight: Any = None, exact: bool = False) -> bool:
        """Whether the errors are those of the hyperplane and the lower bound follows from what is stored.

        Errors are counted without rounding. A bound from witnesses is proven anew: each is checked as ``separate``
        would, and the least cover is solved for by HiGHS; with ``exact=True`` witnesses are solved in rational
        arithmetic, and covers bounded by branch and bound whose every step is rational. A bound from enumeration is
        proven by enumerating again; what floats cannot tell apart is decided in exact arithmetic there anyway.
        """
        points = self._points(X, y, sample_weight)
        if len(self.w) != points.X.shape[1]:
            raise BadInput(f"X has {points.X.shape[1]} columns, the answer is about {len(self.w)}.")
        theta = np.append(self.w, self.b)
        if not np.isfinite(theta).all():
            return False
        wrong = points.wrong(theta)
        listed = np.zeros(len(points.place), dtype=bool)
        listed[self.wrong] = True
        claimed = np.where(points.place >= 0, wrong[points.place], False)
        slack = 0.0 if points.whole else 1e-9 * points.total
        consistent = self.proven == points.settled(self.errors, self.lower_bound)
        return (
            consistent
            and abs(points.errors(wrong) - self.errors) <= slack
            and bool((listed == claimed).all())
            and self.lower_bound <= self.errors
            and (self.lower_bound <= 0.0 or self._bounded(points, exact))
        )

    def _points(self, X: Any, y: Any, sample_weight: Any) -> Points:
        rows = plain_rows(X)
        rows = np.asarray(rows.toarray() if sp.issparse(rows) else rows, dtype=np.float64)
        sign = plain_signs(y, len(rows), self.classes)
        weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
        if weight is not None and (weight.shape != sign.shape or not (weight >= 0.0).all()):
            raise BadInput("sample_weight needs one number >= 0 for each row of X.")
        return distinct(rows, sign, weight)

    def _bounded(self, points: Points, exact: bool) -> bool:
        """Whether every hyperplane errs by the lower bound."""
        if self.method == "cover":
            return self._covered(points, exact)
        if self.method == "thresholds" and points.X.shape[1] == 1:
            value, _ = best_threshold(points.X[:, 0], points.sign * points.weight)
            return points.settled(self.lower_bound, value)
        if self.method == "sweep" and points.X.shape[1] == 2:
            best = sweep(points, perf_counter() + _PATIENCE)
            if best is None:
                raise Refused(f"the check was given up after {_PATIENCE:g} seconds.")
            return points.settled(self.lower_bound, best.bound)
        return False

    def _covered(self, points: Points, exact: bool) -> bool:
        n = len(points.place)
        sets = []
        for rows, weights in self.witnesses:
            if not len(rows) or rows.min() < 0 or rows.max() >= n or points.place[rows].min() < 0:
                return False
            at = points.place[rows]
            if not _meet(points.X[at], points.sign[at], weights, exact):
                return False
            sets.append(at)
        if not sets:
            return False
        if not exact:
            if points.settled(
                self.lower_bound, points.at_least(master.relaxed(sets, points.weight))
            ):
                return True
            least = master.cover(sets, points.weight, _PATIENCE)
            if points.settled(self.lower_bound, points.at_least(least.bound)):
                return True
            verdict: bool | None = False if least.optimal else None
        else:
            slack = 1.0 - 1e-9 if points.whole else 4e-9 * points.total
            verdict = master.every_cover_weighs(sets, points.weight, self.lower_bound, slack)
        if verdict is None:
            raise Refused(
                "the least cover of the witnesses is too hard to be proven again"
                + (
                    " in rational arithmetic; use exact=False."
                    if exact
                    else f" in {_PATIENCE:g} seconds."
                )
            )
        return verdict


def _meet(X: FloatArray, sign: FloatArray, weights: FloatArray, exact: bool) -> bool:
    """Whether the hulls of the two classes share a point, with these weights."""
    if len(weights) != len(sign):
        return False
    ours = sign > 0
    point = 2.0 * (weights[ours] @ X[ours])
    sides = np.array([-1.0, 1.0])
    return meets(X, sign, sides, np.arange(len(sign)), weights, point=point, exact=exact)
