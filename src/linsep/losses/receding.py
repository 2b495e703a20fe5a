"""Losses that decrease at every margin: logistic and exponential. Their conjugates are negative entropies."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
from scipy.special import xlog1py, xlogy

from linsep.arrays import FloatArray
from linsep.losses.loss import Loss, inside


@dataclass(frozen=True)
class Logistic(Loss):
    """Logistic loss log(1 + e^-m) with the natural logarithm: 0.693 at 0, so it does not dominate the 0-1 loss.

    See Also
    --------
    linsep.LogisticRegression : Fits this loss.
    Exponential : Steeper on errors.
    Multinomial : Several classes.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u log u + (1 - u) log(1 - u)``, ``0 <= u <= 1``.
    It is the negative log-likelihood of a label with log-odds m.

    References
    ----------
    Cox, The regression analysis of binary sequences, Journal of the Royal Statistical Society B 20, 1958.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep import losses
    >>> losses.Logistic().value(np.array([-1.0, 0.0, 2.0])).round(3)
    array([1.313, 0.693, 0.127])
    """

    name = "logistic"
    native = "logistic"
    probabilistic = True
    recedes = True
    native_ascent = True

    @property
    def straight_tails(self) -> bool:
        return False

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    @property
    def curvature_bound(self) -> float:
        return 0.25

    def value(self, m: FloatArray) -> FloatArray:
        return np.logaddexp(0.0, -m)

    def slope(self, m: FloatArray) -> FloatArray:
        e = np.exp(-np.abs(m))
        return np.asarray(-np.where(np.asarray(m) >= 0.0, e, 1.0) / (1.0 + e))

    def curvature(self, m: FloatArray) -> FloatArray:
        e = np.exp(-np.abs(m))
        return np.asarray(e / (1.0 + e) ** 2)

    def conjugate(self, q: FloatArray) -> FloatArray:
        u = np.clip(-np.asarray(q), 0.0, 1.0)
        return inside(-np.asarray(q), 0.0, 1.0, xlogy(u, u) + xlog1py(1.0 - u, -u))

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return self.curvature(np.abs(m) + t)  # decreases in |m|

    def best_constant(self, plus: float, minus: float) -> float:
        return math.log(plus / minus)

    def proba(self, z: FloatArray) -> FloatArray:
        return -self.slope(-np.asarray(z))


@dataclass(frozen=True)
class Exponential(Loss):
    """Exponential loss e^-m. Its population minimiser is half the log-odds, hence ``proba(z) = 1/(1 + e^-2z)``.

    See Also
    --------
    Logistic : Same log-odds, more robust to outliers.

    Notes
    -----
    Certificates use the conjugate ``l*(-u) = u log u - u``, ``u >= 0``.

    References
    ----------
    Friedman, Hastie and Tibshirani, Additive logistic regression: a statistical view of boosting, Annals of Statistics
    28, 2000.

    Examples
    --------
    >>> from linsep import losses
    >>> losses.Exponential().value([-1.0, 0.0, 2.0])
    array([2.71828183, 1.        , 0.13533528])
    """

    name = "exponential"
    native = "exponential"
    probabilistic = True
    recedes = True

    @property
    def straight_tails(self) -> bool:
        return False

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, math.inf)

    def value(self, m: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):  # +inf is the correct result beyond 1.8e308
            return np.exp(-np.asarray(m))

    def slope(self, m: FloatArray) -> FloatArray:
        return -self.value(m)

    def curvature(self, m: FloatArray) -> FloatArray:
        return self.value(m)

    def conjugate(self, q: FloatArray) -> FloatArray:
        u = np.maximum(-np.asarray(q), 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            value = np.where(np.isinf(u), math.inf, xlogy(u, u) - u)
        return inside(-np.asarray(q), 0.0, math.inf, value)

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        return self.value(np.asarray(m) + t)

    def best_constant(self, plus: float, minus: float) -> float:
        return 0.5 * math.log(plus / minus)

    def proba(self, z: FloatArray) -> FloatArray:
        with np.errstate(over="ignore"):
            return Logistic().proba(2.0 * np.asarray(z))
