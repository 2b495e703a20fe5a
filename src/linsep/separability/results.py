"""The three possible results of a separability test, each of which can be checked against the data."""

from __future__ import annotations

from dataclasses import dataclass
from decimal import ROUND_FLOOR, Context
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.hyperplane import Hyperplane
from linsep.notebook import facts_table
from linsep.separability import checks

_THREE_DIGITS = Context(prec=3, rounding=ROUND_FLOOR)
#: Description of inseparable classes, by ``quasi``.
_OVERLAP = {
    True: "some hyperplane has no row on the wrong side, but some rows lie on it (quasi-separable)",
    False: "the classes overlap",
    None: "whether they overlap or only touch is not known",
}


@dataclass(frozen=True, eq=False)
class Separable:
    """Result for separable classes: a hyperplane has every row strictly on the side of its class.

    Attributes
    ----------
    separable : True
    quasi : False
    hyperplane : Hyperplane
        y (w.x + b) > 0 for every row; +1 is the second class. Not the separator of largest margin, which is the
        hard-margin support vector machine.
    margin : float
        Proven lower bound on the distance of every row from the hyperplane, rounding included.
    passes : int
        Number of passes over the data.
    classes : ndarray (2,) or None
        The two labels, the second being +1.
    """

    hyperplane: Hyperplane
    margin: float
    passes: int = 0
    classes: npt.NDArray[Any] | None = None
    separable: ClassVar[bool] = True
    quasi: ClassVar[bool] = False

    def __str__(self) -> str:
        return (
            f"separable: a hyperplane separates the classes, every row at distance >= {_round_down(self.margin)} "
            f"({_passes(self.passes)})"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = {
            "every row": f"at distance >= {_round_down(self.margin)} on the side of its class",
            "hyperplane": str(self.hyperplane),
        }
        return facts_table("Separable, proven", facts)

    def check(self, X: Any, y: Any = None, exact: bool = False) -> bool:
        """Return whether every row of X lies strictly on its side, at least at the claimed distance.

        Rows that rounding errors could move across are decided in exact arithmetic; ``exact=True`` also compares
        the claimed margin with the closest rows in exact arithmetic.
        """
        return checks.separates(X, y, self.classes, self.hyperplane, self.margin, exact=exact)


@dataclass(frozen=True, eq=False)
class Inseparable:
    """Result for inseparable classes: their convex hulls share a point, so no hyperplane separates them strictly.

    Without an intercept: the origin lies in the convex hull of the signed rows y x, so no hyperplane through the origin
    separates them strictly.

    Attributes
    ----------
    separable : False
    rows : ndarray (m,)
        At most d + 2 rows, in increasing order, whose hulls already meet.
    weights : ndarray (m,)
        Positive weights that sum to 1; those of each class sum to 1/2. Doubled, they are the convex weights of the
        point in either hull. (Without an intercept: weights with sum w_i y_i x_i = 0.)
    point : ndarray (d,) or None
        The common point; None without an intercept.
    residual : float
        Relative error of the rounded weights in the balance equation: a few units of 1e-16.
    quasi : bool or None
        True: some hyperplane has no row on the wrong side and not all rows on it, so that logistic regression
        without a penalty has no minimiser. False: the classes overlap. None: not known (more than 1500
        features, or rounding prevents a decision).
    direction : tuple (w, b) or None
        That hyperplane, if ``quasi``; |w| = 1 unless w = 0.
    rows_on : ndarray or None
        Rows that lie on it and so prevent separation, if ``quasi``.
    diverging : ndarray or None
        Features whose coefficients diverge along the direction, if ``quasi``.
    proven : bool
        Whether the common point is proven to exist near its rounded weights. If not, the rows are too many for rational
        arithmetic and meet to working precision.
    passes, classes
        Number of passes over the data, and the two labels, the second being +1.
    """

    rows: IntArray
    weights: FloatArray
    point: FloatArray | None
    residual: float
    quasi: bool | None = False
    direction: tuple[FloatArray, float] | None = None
    rows_on: IntArray | None = None
    proven: bool = True
    passes: int = 0
    classes: npt.NDArray[Any] | None = None
    separable: ClassVar[bool] = False

    def __str__(self) -> str:
        known = (
            "the origin lies in the convex hull of the signed rows y x"  # without an intercept
            if self.point is None
            else "the convex hulls of the classes share a point"
        )
        return f"inseparable: {known}, as {self._proof()}; {_OVERLAP[self.quasi]} ({_passes(self.passes)})"

    def _proof(self) -> str:
        return "1 row proves" if len(self.rows) == 1 else f"{len(self.rows)} rows prove"

    __repr__ = __str__

    def _repr_html_(self) -> str:
        known = (
            "origin in the convex hull of the signed rows y x"
            if self.point is None
            else "common point of the hulls"
        )
        facts = {known: self._proof(), "kind": _OVERLAP[self.quasi]}
        if self.diverging is not None:
            facts["features that diverge without a penalty"] = ", ".join(map(str, self.diverging))
        return facts_table("Not separable" + (", proven" if self.proven else ""), facts)

    @property
    def diverging(self) -> IntArray | None:
        """Features with a nonzero weight in the direction; None without a direction."""
        return None if self.direction is None else np.flatnonzero(self.direction[0])

    def check(self, X: Any, y: Any = None, exact: bool = False) -> bool:
        """Return whether the weighted rows of X meet in the point, and whether the direction, if any, is valid.

        In float64, up to rounding. With ``exact=True``, the weights are solved for again in rational arithmetic on the
        same rows, and must all be positive.
        """
        affine = self.point is not None
        return checks.meets(
            X, y, self.classes, self.rows, self.weights, point=self.point, exact=exact
        ) and (
            self.direction is None
            or self.rows_on is None
            or checks.touches(
                X, y, self.classes, self.direction, self.rows_on, affine=affine, exact=exact
            )
        )


@dataclass(frozen=True, eq=False)
class Undecided:
    """Result when neither answer could be proven in float64 and the data are too large for rational arithmetic.

    Attributes
    ----------
    separable : None
    margin : float
        Smallest margin reached, relative to the size of its terms; <= 0 or below its rounding error.
    residual : float
        Distance of the hulls, in scaled units.
    passes, classes
        Number of passes over the data, and the two labels, the second being +1.
    """

    margin: float
    residual: float
    passes: int = 0
    classes: npt.NDArray[Any] | None = None
    separable: ClassVar[None] = None
    quasi: ClassVar[None] = None

    def __str__(self) -> str:
        return (
            "undecided at working precision: the best hyperplane found has relative margin "
            f"{self.margin:.1e}, the hulls come within {self.residual:.1e} ({_passes(self.passes)}); centre or "
            "rescale the features, or ask a subset of the rows"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        return facts_table("Undecided", {}, str(self))


def _round_down(x: float) -> str:
    """Format with three digits, rounded down, so that the printed bound still holds."""
    return f"{float(_THREE_DIGITS.create_decimal(x)):.3g}"


def _passes(count: int) -> str:
    return f"{count} pass" if count == 1 else f"{count} passes"
