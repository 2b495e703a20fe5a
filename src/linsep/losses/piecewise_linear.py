"""Piecewise linear losses: hinge, absolute, pinball, epsilon-insensitive, perceptron, and the 0-1 loss itself."""

from __future__ import annotations

import math
from abc import abstractmethod
from dataclasses import dataclass, replace
from typing import ClassVar, Literal

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.losses.loss import Loss, PiecewiseLinear, ResidualLoss, inside


@dataclass(frozen=True)
class Hinge(PiecewiseLinear):
    """Hinge loss max(0, 1 - m), the loss of the support vector machine.

    See Also
    --------
    SquaredHinge : Smooth variant.
    HuberisedHinge : Smooth, and linear far from the margin.
    linsep.LinearSVC : The support vector machine.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = -u``, ``0 <= u <= 1``.
    At an optimum u is 0 for rows beyond the margin, 1 for rows inside it, and in between for rows on it.

    References
    ----------
    Cortes and Vapnik, Support-vector networks, Machine Learning 20, 1995.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Hinge().value([-1.0, 0.0, 2.0])
    array([2., 1., 0.])
    """

    name = "hinge"
    native = "hinge"
    native_ascent = True

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.maximum(1.0 - np.asarray(m), 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.where(np.asarray(m) < 1.0, -1.0, 0.0)


@dataclass(frozen=True, repr=False)
class Absolute(ResidualLoss, PiecewiseLinear):
    """Absolute loss |centre - m|, by default |1 - m|; the absolute residual in regression.

    See Also
    --------
    Pinball : Quantiles other than the median.
    Huber : Smooth variant.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = -centre u``, ``-1 <= u <= 1``.
    In regression it fits the conditional median.

    References
    ----------
    Koenker and Bassett, Regression quantiles, Econometrica 46, 1978.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Absolute().value([-1.0, 0.0, 2.0])
    array([2., 1., 1.])
    """

    name = "absolute"
    native = "absolute"
    native_ascent = True

    @property
    def domain(self) -> tuple[float, float]:
        return (-1.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.abs(self.residual(m))

    def slope(self, m: FloatArray) -> FloatArray:
        return np.sign(np.asarray(m) - self.centre)


@dataclass(frozen=True, repr=False)
class Pinball(ResidualLoss, PiecewiseLinear):
    """Pinball loss of the residual r = centre - m, for quantile q: q r for r >= 0, (q - 1) r for r < 0.

    Parameters
    ----------
    quantile : float, default 0.5
        In (0, 1).

    Raises
    ------
    BadInput
        If ``quantile`` is not in (0, 1).

    See Also
    --------
    Absolute : Twice the pinball loss at the median.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = -centre u``, ``quantile - 1 <= u <= quantile``.

    References
    ----------
    Koenker and Bassett, Regression quantiles, Econometrica 46, 1978.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Pinball(0.9).value([-1.0, 0.0, 2.0])
    array([1.8, 0.9, 0.1])
    """

    name = "pinball"
    classification = False
    quantile: float = 0.5

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 < self.quantile < 1.0:
            raise BadInput(f"pinball: quantile must lie in (0, 1), got {self.quantile!r}.")

    @property
    def domain(self) -> tuple[float, float]:
        return (self.quantile - 1.0, self.quantile)

    def value(self, m: FloatArray) -> FloatArray:
        r = self.residual(m)
        low, high = self.domain
        return np.maximum(high * r, low * r)

    def slope(self, m: FloatArray) -> FloatArray:
        r = self.residual(m)
        low, high = self.domain
        return np.where(r > 0.0, -high, np.where(r < 0.0, -low, 0.0))


@dataclass(frozen=True, repr=False)
class DeadZone(ResidualLoss):
    """A loss that is 0 for residuals up to ``epsilon``; its ``dead_zone`` declares the conjugate."""

    classification = False
    epsilon: float = 0.1

    def __post_init__(self) -> None:
        super().__post_init__()
        if not 0.0 <= self.epsilon < np.inf:
            raise BadInput(
                f"{self.name}: epsilon must be a finite number that is not negative, got {self.epsilon!r}."
            )

    @property
    @abstractmethod
    def dead_zone(self) -> tuple[float, float]:
        """(q, epsilon) with l*(-u) = q u^2 + epsilon |u| - zero_margin u on all of ``domain``."""

    @property
    def breakpoints(self) -> tuple[float, ...]:
        return (self.centre - self.epsilon, self.centre + self.epsilon)

    @property
    def degree(self) -> int | None:
        if self.centre != 0.0:
            return None
        return 1 if self.dead_zone[0] == 0.0 else 2

    def in_units(self, exponent: int) -> DeadZone:
        return replace(self, epsilon=math.ldexp(self.epsilon, -exponent))

    @property
    def residual_constant(self) -> float:
        return self.epsilon

    def conjugate(self, q: FloatArray) -> FloatArray:
        q, (quadratic, epsilon) = np.asarray(q), self.dead_zone
        with np.errstate(over="ignore", invalid="ignore"):
            value = q * (self.centre + quadratic * q) + epsilon * np.abs(q)
        return inside(-q, *self.domain, value)


@dataclass(frozen=True, repr=False)
class EpsilonInsensitive(DeadZone):
    """Epsilon-insensitive loss max(|r| - epsilon, 0) with r = centre - m, for support vector regression.

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
    Absolute : The case epsilon = 0.
    SquaredEpsilonInsensitive : Smooth variant.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = epsilon |u| - centre u``, ``-1 <= u <= 1``.

    References
    ----------
    Smola and Schoelkopf, A tutorial on support vector regression, Statistics and Computing 14, 2004.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.EpsilonInsensitive().value([-1.0, 0.0, 2.0])
    array([1.9, 0.9, 0.9])
    """

    name = "epsilon_insensitive"
    smooth = False

    @property
    def dead_zone(self) -> tuple[float, float]:
        return (0.0, self.epsilon)

    @property
    def kinks(self) -> tuple[float, ...]:
        return self.breakpoints

    @property
    def absolute_terms(self) -> tuple[tuple[tuple[float, float], ...], float]:
        return ((0.5, self.epsilon), (0.5, -self.epsilon)), 0.0

    @property
    def domain(self) -> tuple[float, float]:
        return (-1.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.maximum(np.abs(self.residual(m)) - self.epsilon, 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        r = self.residual(m)
        return np.where(np.abs(r) > self.epsilon, -np.sign(r), 0.0)

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))


@dataclass(frozen=True)
class Perceptron(PiecewiseLinear):
    """Perceptron loss max(0, -m), whose subgradient steps are the updates of the perceptron.

    See Also
    --------
    linsep.Perceptron : The learning rule.
    Hinge : The same loss with a margin of 1.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = 0``, ``0 <= u <= 1``.

    References
    ----------
    Rosenblatt, The perceptron: a probabilistic model for information storage and organization in the brain,
    Psychological Review 65, 1958.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Perceptron().value([-1.0, 0.0, 2.0])
    array([1., 0., 0.])
    """

    name = "perceptron"
    native = "perceptron"
    centre: ClassVar[float] = 0.0

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.maximum(-np.asarray(m), 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.where(np.asarray(m) < 0.0, -1.0, 0.0)


@dataclass(frozen=True)
class ZeroOne(Loss):
    """0-1 loss: 1 for an error, 0 otherwise; ``ties`` says whether a zero margin is an error (authors disagree).

    ``ties="correct"``: an error is m < 0. ``ties="error"``: an error is m <= 0. The loss is not convex, and its
    conjugate is finite only at 0, so it gives no dual bound.

    Parameters
    ----------
    ties : {"correct", "error"}
        How a zero margin counts.

    Raises
    ------
    BadInput
        If ``ties`` is neither "correct" nor "error".

    See Also
    --------
    linsep.ZeroOneClassifier : Minimises this loss.
    dominates_zero_one : Does a loss lie above this one?

    Notes
    -----
    A convex loss above the 0-1 loss bounds the number of errors: ``errors <= sum_i l(m_i)``.

    References
    ----------
    Bartlett, Jordan and McAuliffe, Convexity, classification, and risk bounds, Journal of the American Statistical
    Association 101, 2006.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.ZeroOne().value([-1.0, 0.0, 2.0])
    array([1., 0., 0.])
    """

    name = "zero_one"
    smooth = False
    convex = False
    ties: Literal["correct", "error"] = "correct"

    def __post_init__(self) -> None:
        if self.ties not in ("correct", "error"):
            raise BadInput(f'zero_one: ties must be "correct" or "error", got {self.ties!r}.')

    @property
    def flat_beyond_margin(self) -> bool:
        return True

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def value(self, m: FloatArray) -> FloatArray:
        m = np.asarray(m)
        return np.where(m <= 0.0 if self.ties == "error" else m < 0.0, 1.0, 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        return inside(q, 0.0, 0.0, np.zeros(q.shape))
