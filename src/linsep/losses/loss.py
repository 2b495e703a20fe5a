"""Base class of pointwise losses: facts and four functions of the margin."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput, Refused


@dataclass(frozen=True)
class Loss(ABC):
    """Base class of losses of the margin: the functions that define a loss, and facts about it.

    A loss of your own defines ``value``, ``slope``, ``curvature``, ``conjugate`` and ``domain``. The defaults of the
    facts are safe for every smooth convex loss; declaring more of them enables faster methods. The page "Adding a loss"
    lists them.
    """

    name: ClassVar[str] = "custom"
    native: ClassVar[str | None] = None  #: name of the compiled kernel, if there is one
    #: Whether the slope is continuous, so that Newton's method applies.
    smooth: ClassVar[bool] = True
    convex: ClassVar[bool] = True
    #: Whether the loss can be used with class labels.
    classification: ClassVar[bool] = True
    #: Whether the loss is a function of the residual centre - m, so that it can be used with numeric targets.
    regression: ClassVar[bool] = False
    #: Whether scores map to probabilities, see ``proba``.
    probabilistic: ClassVar[bool] = False
    #: Whether the slope is negative at every margin, so that separable data have no minimiser without a penalty.
    recedes: ClassVar[bool] = False
    #: Whether the compiled dual coordinate ascent (kernels/dual/coordinate_ascent.hpp) has a step for this kernel.
    native_ascent: ClassVar[bool] = False

    @property
    def conjugate_quadratic(self) -> float | None:
        """q >= 0 if l*(-u) = q u^2 - zero_margin u on all of ``domain``; None if the conjugate has another form.

        The domain, the zero margin and q then define the loss: with the residual r = zero_margin - m, it is the maximum
        of u r - q u^2 over the domain. It is piecewise linear for q = 0 and piecewise quadratic for q > 0.
        """
        return None

    @property
    def breakpoints(self) -> tuple[float, ...]:
        """Margins at which slope or curvature jump, for losses with a ``conjugate_quadratic``; otherwise empty."""
        q, centre = self.conjugate_quadratic, zero_margin(self)
        if q is None:
            return ()
        ends = [end for end in self.domain if math.isfinite(end)]
        return tuple(dict.fromkeys(centre - 2.0 * q * end for end in ends))

    @property
    def kinks(self) -> tuple[float, ...]:
        """Margins at which the slope jumps, for losses with a ``conjugate_quadratic``; otherwise empty."""
        return self.breakpoints if self.piecewise_linear else ()

    @property
    def piecewise_linear(self) -> bool:
        """Whether the loss is piecewise linear, so that the conjugate is linear on its domain."""
        return self.conjugate_quadratic == 0.0

    @property
    def dead_zone(self) -> tuple[float, float] | None:
        """(q, epsilon) if l*(-u) = q u^2 + epsilon |u| - zero_margin u on all of ``domain``; otherwise None.

        It is the loss with ``conjugate_quadratic`` q of the residual soft-thresholded by epsilon.
        """
        return None

    @property
    def absolute_terms(self) -> tuple[tuple[tuple[float, float], ...], float] | None:
        """((a_k, c_k), ...) and g if l(m) = sum_k a_k |r - c_k| + g r up to a constant, r = zero_margin - m; or None.

        Every piecewise linear loss has this form. Its dual variable is u = sum_k a_k u_k + g, |u_k| <= 1.
        """
        if not self.piecewise_linear:
            return None
        low, high = self.domain
        return ((0.5 * (high - low), 0.0),), 0.5 * (high + low)

    @property
    def straight_tails(self) -> bool:
        """Whether the slope may be nonzero where the curvature is 0; assumed unless the loss declares otherwise."""
        q = self.conjugate_quadratic
        return q is None or q == 0.0 or any(end and math.isfinite(end) for end in self.domain)

    @property
    def constant_curvature(self) -> bool:
        """Whether the curvature is the same at every margin, so that the Hessian does not depend on the point."""
        return bool(self.conjugate_quadratic) and not any(map(math.isfinite, self.domain))

    @property
    def flat_beyond_margin(self) -> bool:
        """Whether the loss is 0 at its zero margin and at all larger margins."""
        return self.conjugate_quadratic is not None and self.domain[0] == 0.0

    @property
    def soft_margin(self) -> bool:
        """Whether the loss is linear below margin 1 and 0 beyond, like the hinge: C = inf then means hard margin."""
        return self.flat_beyond_margin and self.kinks == (1.0,)

    @property
    def zero_at_origin(self) -> bool:
        """Whether the loss is 0 at margin 0 and beyond, so that w = 0 is optimal for all data."""
        return self.flat_beyond_margin and zero_margin(self) <= 0.0

    @cached_property
    def params(self) -> tuple[float, ...]:
        """Parameters of the compiled kernel: the width, if there is one, then the centre unless it is 1."""
        if self.native is None:
            return ()
        width, centre = getattr(self, "width", None), zero_margin(self)
        if centre != 1.0:
            return (1.0 if width is None else float(width), centre)
        return () if width is None else (float(width),)

    @property
    def plain(self) -> Loss:
        """The loss without a factor, usually the loss itself; see :class:`linsep.losses.Scaled`."""
        return self

    @property
    def degree(self) -> int | None:
        """p if l(2^k r) = 2^(p k) l'(r) for the residual r = -m, with l' = ``in_units(k)``; None if there is none."""
        return None

    def in_units(self, exponent: int) -> Loss:
        """Loss l' of residuals divided by 2^exponent; see ``degree``."""
        return self

    @property
    def residual_constant(self) -> float:
        """Constant in the units of the residual, which ``in_units`` divides by 2^exponent; 0 if there is none."""
        return 0.0

    def for_targets(self) -> Loss:
        """Return the loss that regression minimises: with centre 0, if it has a field ``centre``.

        The margin is then m = z - t, and the residual t - z keeps all digits of the target t. A loss without that
        field is a function of 1 - m; regression passes it m = z + (1 - t), which rounds targets to 1e-16.
        """
        if any(found.name == "centre" for found in fields(self)):
            return replace(self, centre=0.0)  # type: ignore[call-arg]
        return self

    @property
    def domain(self) -> tuple[float, float]:
        """Closed interval of u = -slope on which ``conjugate(-u)`` is finite."""
        return (-math.inf, math.inf)

    @property
    def curvature_bound(self) -> float:
        """Supremum of the curvature; inf if unbounded, nan if the loss is not smooth."""
        return math.inf if self.smooth else math.nan

    @abstractmethod
    def value(self, m: FloatArray) -> FloatArray:
        """Loss l(m) at each margin m."""

    @abstractmethod
    def slope(self, m: FloatArray) -> FloatArray:
        """Slope l'(m) at each margin; at a kink, the subgradient nearest to zero."""

    @abstractmethod
    def curvature(self, m: FloatArray) -> FloatArray:
        """Curvature l''(m) at each margin where it exists, 0 at kinks."""

    @abstractmethod
    def conjugate(self, q: FloatArray) -> FloatArray:
        """Convex conjugate l*(q) = sup_m (q m - l(m)), +inf outside its domain."""

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        """Lower bound on the curvature l'' on [m - t, m + t], t >= 0; 0 holds for every convex loss."""
        return np.zeros(np.broadcast(m, t).shape)

    def best_constant(self, plus: float, minus: float) -> float | None:
        """Intercept b that minimises plus l(b) + minus l(-b), for positive weights; None if there is no formula."""
        return None

    def proba(self, z: FloatArray) -> FloatArray:
        """Probability P(y = +1 | score z), for losses whose scores determine it."""
        offered = ", ".join(kind.name for kind in Loss.__subclasses__() if kind.probabilistic)
        raise Refused(
            f"The scores of the {self.name} loss carry no probabilities. Use one of {offered}, or "
            "calibrate with sklearn.calibration.CalibratedClassifierCV."
        )


@dataclass(frozen=True)
class ParabolicConjugate(Loss):
    """A loss whose conjugate is one parabola on its domain, which ``conjugate_quadratic`` declares."""

    @property
    @abstractmethod
    def conjugate_quadratic(self) -> float:
        """q >= 0 with l*(-u) = q u^2 - zero_margin u on all of ``domain``."""

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        with np.errstate(over="ignore", invalid="ignore"):
            value = q * (zero_margin(self) + self.conjugate_quadratic * q)
        return inside(-q, *self.domain, value)


@dataclass(frozen=True)
class PiecewiseLinear(ParabolicConjugate):
    """A piecewise linear loss, whose conjugate is linear on its domain."""

    smooth = False

    @property
    def conjugate_quadratic(self) -> float:
        return 0.0

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))


@dataclass(frozen=True, repr=False)
class ResidualLoss(Loss):
    """A loss of the residual r = centre - m that is 0 at r = 0.

    ``centre`` is 1 by default, for class labels. Regression sets it to 0: see :meth:`Loss.for_targets`.
    """

    regression = True
    centre: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if not math.isfinite(self.centre):
            raise BadInput(f"{self.name}: centre must be a finite number, got {self.centre!r}.")

    def __repr__(self) -> str:
        names = [found.name for found in fields(self) if found.name != "centre"]
        names += ["centre"] if self.centre != 1.0 else []
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({given})"

    @property
    def degree(self) -> int | None:
        """1 for a piecewise linear loss, 2 for a piecewise quadratic loss, if the centre is 0; otherwise None."""
        if self.centre != 0.0 or self.conjugate_quadratic is None:
            return None
        return 1 if self.piecewise_linear else 2

    def residual(self, m: FloatArray) -> FloatArray:
        """r = centre - m."""
        return np.asarray(self.centre - np.asarray(m))


def zero_margin(loss: Loss) -> float:
    """Margin at which the residual of a loss is 0: its ``centre`` if it has one (0 for the perceptron), otherwise 1.

    Parameters
    ----------
    loss : Loss

    Returns
    -------
    float

    See Also
    --------
    get : A loss by its name.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.zero_margin(losses.Hinge())
    1.0
    """
    return float(getattr(loss, "centre", 1.0))


def inside(u: FloatArray, low: float, high: float, value: FloatArray) -> FloatArray:
    """``value`` where low <= u <= high, +inf elsewhere, nan where u is nan."""
    outside = np.where(np.isnan(u), math.nan, math.inf)
    return np.where((u >= low) & (u <= high), value, outside)
