"""The three answers to "are these classes separable?", each a value that can be checked against the data."""

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
#: What is known about classes that no hyperplane separates, by ``quasi``.
_OVERLAP = {
    True: "some hyperplane has no row on the wrong side, but some rows lie on it (quasi-separable)",
    False: "the classes overlap",
    None: "whether they overlap or only touch is not known",
}


@dataclass(frozen=True, eq=False)
class Separable:
    """A hyperplane has every row strictly on the side of its class.

    Attributes
    ----------
    separable : True
    quasi : False
    hyperplane : Hyperplane
        y (w.x + b) > 0 for every row; +1 is the second class. Some separator, not the one of largest
        margin: that is the hard-margin support vector machine.
    margin : float
        A proven lower bound on the distance of every row from the hyperplane; rounding is accounted for.
    passes : int
        Passes over the data that were needed.
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
        """Whether every row of X is strictly on its side, at the distance claimed.

        Rows that rounding errors could carry across are decided in exact arithmetic; ``exact=True`` also compares
        the claimed margin with the closest rows in exact arithmetic.
        """
        return checks.separates(X, y, self.classes, self.hyperplane, self.margin, exact=exact)


@dataclass(frozen=True, eq=False)
class Inseparable:
    """The convex hulls of the two classes have a point in common, so no hyperplane separates them strictly.

    Attributes
    ----------
    separable : False
    rows : ndarray (m,)
        At most d + 2 rows, in rising order, whose hulls meet already.
    weights : ndarray (m,)
        Positive, of sum 1; those of each class sum to 1/2. Doubled, they are the convex weights of the point in
        either hull. (Without an intercept: weights with sum w_i y_i x_i = 0.)
    point : ndarray (d,) or None
        The common point; None without an intercept.
    residual : float
        How far the rounded weights miss, relative to the numbers involved: a few units of 1e-16.
    quasi : bool or None
        True: some hyperplane has no row on the wrong side, and not all of them on itself, so that logistic regression
        without a penalty has no minimiser. False: the classes overlap. None: not known (more than 1500
        features, or rounding hides it).
    direction : tuple (w, b) or None
        That hyperplane, |w| = 1 unless w = 0, when ``quasi``.
    rows_on : ndarray or None
        The rows that lie on it, which are what prevents separation, when ``quasi``.
    diverging : ndarray or None
        Features whose coefficient the direction carries to infinity, when ``quasi``.
    proven : bool
        Whether the common point is proven to exist beside its rounded weights; if not, the rows are too many for
        rational arithmetic and meet to working precision.
    passes, classes
        As in :class:`Separable`.
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
        return (
            f"inseparable: the convex hulls of the classes share a point, as {len(self.rows)} rows prove; "
            f"{_OVERLAP[self.quasi]} ({_passes(self.passes)})"
        )

    __repr__ = __str__

    def _repr_html_(self) -> str:
        facts = {
            "common point of the hulls": f"shown by {len(self.rows)} rows",
            "kind": _OVERLAP[self.quasi],
        }
        if self.diverging is not None:
            facts["features that diverge without a penalty"] = ", ".join(map(str, self.diverging))
        return facts_table("Not separable" + (", proven" if self.proven else ""), facts)

    @property
    def diverging(self) -> IntArray | None:
        """Features that the direction moves."""
        return None if self.direction is None else np.flatnonzero(self.direction[0])

    def check(self, X: Any, y: Any = None, exact: bool = False) -> bool:
        """Whether the weighted rows of X meet in the point, and the direction, if any, is one.

        In floats: to within rounding. ``exact=True``: the weights are solved for again in rational
        arithmetic on the same rows, and must all be positive.
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
    """Neither answer could be proven in float64, and the data are too large for rational arithmetic.

    Attributes
    ----------
    separable : None
    margin : float
        The smallest margin reached, relative to the size of the numbers in it; <= 0 or lost in rounding.
    residual : float
        Distance of the hulls, in scaled units.
    passes, classes
        As in :class:`Separable`.
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
    """Three digits, rounded down: a claim must not grow by being printed."""
    return f"{float(_THREE_DIGITS.create_decimal(x)):.3g}"


def _passes(count: int) -> str:
    return f"{count} pass" if count == 1 else f"{count} passes"
