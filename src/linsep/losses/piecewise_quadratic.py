"""Piecewise quadratic losses with a continuous slope.

Squared, squared hinge, Huberised hinge, Huber and squared epsilon-insensitive loss.

Each conjugate is a parabola on an interval (``Loss.conjugate_quadratic``), or two parabolas (``Loss.dead_zone``).
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.losses.loss import ParabolicConjugate, ResidualLoss
from linsep.losses.piecewise_linear import DeadZone


def _check_width(loss: str, width: float) -> None:
    if not (width > 0 and math.isfinite(width)):
        raise BadInput(f"{loss}: width must be positive and finite, got {width!r}.")


@dataclass(frozen=True, repr=False)
class Squared(ResidualLoss, ParabolicConjugate):
    """Squared loss (centre - m)^2, by default (1 - m)^2; the squared residual in regression.

    See Also
    --------
    Huber : Robust to outliers.
    Absolute : Fits the median instead of the mean.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u^2/4 - centre u`` for every u.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 3.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Squared().value([-1.0, 0.0, 2.0])
    array([4., 1., 1.])
    """

    name = "squared"
    native = "squared"
    native_ascent = True

    @property
    def conjugate_quadratic(self) -> float:
        return 0.25

    @property
    def curvature_bound(self) -> float:
        return 2.0

    def value(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(self.residual(m) ** 2)

    def slope(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(-2.0 * self.residual(m))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.full(np.shape(m), 2.0)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return np.full(np.broadcast(m, t).shape, 2.0)

    def best_constant(self, plus: float, minus: float) -> float | None:
        return (plus - minus) / (plus + minus) if self.centre == 1.0 else None


@dataclass(frozen=True)
class SquaredHinge(ParabolicConjugate):
    """Squared hinge loss max(0, 1 - m)^2.

    See Also
    --------
    Hinge : Its square root, more robust to outliers.
    HuberisedHinge : Linear far from the margin.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u^2/4 - u``, ``u >= 0``.

    References
    ----------
    Hsieh, Chang, Lin, Keerthi and Sundararajan, A dual coordinate descent method for large-scale linear SVM, ICML
    2008.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.SquaredHinge().value([-1.0, 0.0, 2.0])
    array([4., 1., 0.])
    """

    name = "squared_hinge"
    native = "squared_hinge"
    native_ascent = True

    @property
    def conjugate_quadratic(self) -> float:
        return 0.25

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, math.inf)

    @property
    def curvature_bound(self) -> float:
        return 2.0

    def value(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(np.maximum(1.0 - np.asarray(m), 0.0) ** 2)

    def slope(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(-2.0 * np.maximum(1.0 - np.asarray(m), 0.0))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.where(np.asarray(m) < 1.0, 2.0, 0.0)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return self.curvature(np.asarray(m) + t)

    def best_constant(self, plus: float, minus: float) -> float:
        return (plus - minus) / (plus + minus)


@dataclass(frozen=True)
class HuberisedHinge(ParabolicConjugate):
    """Huberised hinge loss: the hinge with its kink smoothed over ``width``.

    0 for m >= 1, (1-m)^2/(2 width) for 1 - width <= m < 1, and 1 - m - width/2 below.

    Parameters
    ----------
    width : float, default 1.0
        Width over which the kink is smoothed.

    Raises
    ------
    BadInput
        If ``width`` is not positive and finite.

    See Also
    --------
    Hinge : The limit for width 0.
    SquaredHinge : Quadratic throughout.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = width u^2/2 - u``, ``0 <= u <= 1``.

    References
    ----------
    Wang, Zhu and Zou, Hybrid huberized support vector machines for microarray classification, Bioinformatics 24, 2008.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.HuberisedHinge().value([-1.0, 0.0, 2.0])
    array([1.5, 0.5, 0. ])
    """

    name = "huberised_hinge"
    native = "huberised_hinge"
    native_ascent = True
    width: float = 1.0

    def __post_init__(self) -> None:
        _check_width(self.name, self.width)

    @property
    def conjugate_quadratic(self) -> float:
        return 0.5 * self.width

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def curvature_bound(self) -> float:
        return 1.0 / self.width

    def value(self, m: FloatArray) -> FloatArray:
        r = np.maximum(1.0 - np.asarray(m), 0.0)
        slope = np.minimum(r, self.width) / self.width
        return np.asarray(slope * (r - 0.5 * np.minimum(r, self.width)))

    def slope(self, m: FloatArray) -> FloatArray:
        return np.asarray(-np.clip(1.0 - np.asarray(m), 0.0, self.width) / self.width)

    def curvature(self, m: FloatArray) -> FloatArray:
        m = np.asarray(m)
        return np.where((m < 1.0) & (1.0 - m <= self.width), 1.0 / self.width, 0.0)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        m = np.asarray(m)
        return np.minimum(self.curvature(m + t), self.curvature(m - t))


@dataclass(frozen=True, repr=False)
class Huber(ResidualLoss, ParabolicConjugate):
    """Huber's loss of the residual r = centre - m: r^2/2 for |r| <= width, width (|r| - width/2) beyond.

    Parameters
    ----------
    width : float, default 1.345
        Residual beyond which the loss is linear, in units of the target.

    Raises
    ------
    BadInput
        If ``width`` is not positive and finite.

    See Also
    --------
    Squared : Twice the limit for a large width.
    Absolute : The limit for a small width, divided by it.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u^2/2 - centre u``, ``|u| <= width``.
    At width 1.345 standard deviations it is 95 % efficient for normal errors.

    References
    ----------
    Huber, Robust estimation of a location parameter, Annals of Mathematical Statistics 35, 1964.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Huber().value([-1.0, 0.0, 2.0])
    array([1.7854875, 0.5      , 0.5      ])
    """

    name = "huber"
    native = "huber"
    native_ascent = True
    classification = False
    width: float = 1.345

    def __post_init__(self) -> None:
        super().__post_init__()
        _check_width(self.name, self.width)

    @property
    def conjugate_quadratic(self) -> float:
        return 0.5

    def in_units(self, exponent: int) -> Huber:
        return replace(self, width=math.ldexp(self.width, -exponent))

    @property
    def residual_constant(self) -> float:
        return self.width

    @property
    def domain(self) -> tuple[float, float]:
        return (-self.width, self.width)

    @property
    def curvature_bound(self) -> float:
        return 1.0

    def value(self, m: FloatArray) -> FloatArray:
        r = np.abs(self.residual(m))
        slope = np.minimum(r, self.width)
        with np.errstate(over="ignore"):
            return np.asarray(slope * (r - 0.5 * slope))

    def slope(self, m: FloatArray) -> FloatArray:
        return np.asarray(-np.clip(self.residual(m), -self.width, self.width))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.where(np.abs(self.residual(m)) <= self.width, 1.0, 0.0)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return np.where(np.abs(self.residual(m)) + t <= self.width, 1.0, 0.0)


@dataclass(frozen=True, repr=False)
class SquaredEpsilonInsensitive(DeadZone):
    """Squared epsilon-insensitive loss max(|r| - epsilon, 0)^2 with r = centre - m, for support vector regression.

    Parameters
    ----------
    epsilon : float, default 0.1
        Half width of the zone without loss, in units of the target.

    Raises
    ------
    BadInput
        If ``epsilon`` is negative or not finite.

    See Also
    --------
    Squared : The case epsilon = 0.
    EpsilonInsensitive : More robust to outliers.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u^2/4 + epsilon |u| - centre u`` for every u.

    References
    ----------
    Ho and Lin, Large-scale linear support vector regression, Journal of Machine Learning Research 13, 2012.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.SquaredEpsilonInsensitive().value([-1.0, 0.0, 2.0])
    array([3.61, 0.81, 0.81])
    """

    name = "squared_epsilon_insensitive"

    @property
    def dead_zone(self) -> tuple[float, float]:
        return (0.25, self.epsilon)

    @property
    def straight_tails(self) -> bool:
        return False

    @property
    def curvature_bound(self) -> float:
        return 2.0

    def _excess(self, m: FloatArray) -> FloatArray:
        return np.maximum(np.abs(self.residual(m)) - self.epsilon, 0.0)

    def value(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(self._excess(m) ** 2)

    def slope(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return np.asarray(-2.0 * np.sign(self.residual(m)) * self._excess(m))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.where(np.abs(self.residual(m)) > self.epsilon, 2.0, 0.0)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return np.where(np.abs(self.residual(m)) - t > self.epsilon, 2.0, 0.0)
