"""A loss times a positive number, for instance the logistic loss in another base."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.losses.loss import Loss, inside, zero_margin
from linsep.losses.receding import Logistic

#: Facts that do not depend on the factor.
_INHERITED = ("smooth", "convex", "classification", "regression", "probabilistic", "recedes")


@dataclass(frozen=True)
class Scaled(Loss):
    """Loss times a constant, factor * loss(m). Fitting it with C equals fitting the loss itself with factor * C.

    ``Scaled(Scaled(loss, a), b)`` is ``Scaled(loss, b * a)``.

    Parameters
    ----------
    loss : Loss
        The loss to scale.
    factor : float
        Positive factor.

    Raises
    ------
    BadInput
        If ``factor`` is not positive and finite.

    See Also
    --------
    get : A loss by its name.

    Notes
    -----
    Its conjugate is ``factor l*(q / factor)``.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Scaled(losses.Hinge(), 2.0).value([-1.0, 0.0, 2.0])
    array([4., 2., 0.])
    """

    loss: Loss
    factor: float

    def __post_init__(self) -> None:
        if not 0 < self.factor < math.inf:
            raise BadInput(f"scaled loss: factor must be positive and finite, got {self.factor!r}.")
        if isinstance(self.loss, Scaled):
            inner = Scaled(self.loss.loss, self.factor * self.loss.factor)
            object.__setattr__(self, "loss", inner.loss)
            object.__setattr__(self, "factor", inner.factor)
        for fact in _INHERITED:
            object.__setattr__(self, fact, getattr(self.loss, fact))
        object.__setattr__(self, "name", f"{self.factor:.6g} {self.loss.name}")

    @property
    def centre(self) -> float:
        """Margin at which the residual of the loss is 0."""
        return zero_margin(self.loss)

    @property
    def plain(self) -> Loss:
        return self.loss

    @property
    def degree(self) -> int | None:
        return self.loss.degree

    def in_units(self, exponent: int) -> Scaled:
        return Scaled(self.loss.in_units(exponent), self.factor)

    @property
    def residual_constant(self) -> float:
        return self.loss.residual_constant

    def for_targets(self) -> Scaled:
        return Scaled(self.loss.for_targets(), self.factor)

    @property
    def conjugate_quadratic(self) -> float | None:
        q = self.loss.conjugate_quadratic
        return None if q is None else q / self.factor

    @property
    def dead_zone(self) -> tuple[float, float] | None:
        found = self.loss.dead_zone
        return None if found is None else (found[0] / self.factor, found[1])

    @property
    def absolute_terms(self) -> tuple[tuple[tuple[float, float], ...], float] | None:
        found = self.loss.absolute_terms
        if found is None:
            return None
        return tuple((self.factor * a, c) for a, c in found[0]), self.factor * found[1]

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return self.loss.breakpoints

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.loss.kinks

    @property
    def straight_tails(self) -> bool:
        return self.loss.straight_tails

    @property
    def flat_beyond_margin(self) -> bool:
        return self.loss.flat_beyond_margin

    @property
    def domain(self) -> tuple[float, float]:
        low, high = self.loss.domain
        return (self.factor * low, self.factor * high)

    @property
    def curvature_bound(self) -> float:
        return self.factor * self.loss.curvature_bound

    def value(self, m: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.loss.value(m))

    def slope(self, m: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.loss.slope(m))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.loss.curvature(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        """sup_m (q m - factor l(m)) = factor l*(q/factor)."""
        q = np.asarray(q)
        with np.errstate(over="ignore"):
            # clipped, so that rounding in the division cannot leave the domain
            u = np.clip(-q / self.factor, *self.loss.domain)
        return inside(-q, *self.domain, self.factor * self.loss.conjugate(-u))

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return np.asarray(self.factor * self.loss.curvature_floor(m, t))

    def best_constant(self, plus: float, minus: float) -> float | None:
        return self.loss.best_constant(plus, minus)

    def proba(self, z: FloatArray) -> FloatArray:
        return self.loss.proba(z)


#: log2(1 + e^-m): 1 at margin 0, so that it dominates the 0-1 loss, unlike the natural logarithm.
LOGISTIC_BASE_2 = Scaled(Logistic(), 1 / math.log(2))
