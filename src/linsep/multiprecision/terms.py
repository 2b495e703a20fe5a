"""Terms of an objective, as the interior point method sees them.

A term is a sum of losses or an absolute penalty (``row_terms``: one score per row; ``class_terms``: one score per
class). It keeps its own dual variables and answers what a primal-dual step asks: Hessian, gradient, the change of its
variables along a step of theta, and how far that step may go.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable
from decimal import Decimal
from typing import Any, Protocol

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.decimals import (
    ONE,
    ZERO,
    Decimals,
    count_work,
    decimals,
    gram,
    zeros,
)

Targets = Any
Change = tuple[Decimals, ...]


def damping(t: Decimal) -> Decimal:
    """log(1 + t)/t: the step that surely decreases a loss with |l'''| <= l'' if margins change by t (Bach 2010)."""
    return (ONE + t).ln() / t if t > Decimal("1e-3") else ONE


def longest_step(least: Decimal, curvature: float, increase: Callable[[float], float]) -> Decimal:
    """1, 1/2, 1/4, ... or ``least``: the first t on which the slope grows by at most 1.5 t curvature, in float64."""
    t = ONE
    with np.errstate(over="ignore", invalid="ignore"):
        while t > least and not increase(float(t)) <= 1.5 * float(t) * curvature:
            t = t / 2 if float(t) > 0.0 else least  # changes beyond float64 are NaN at every t
    return max(t, least)


class Map(Protocol):
    """The linear map theta -> scores of a term."""

    def apply(self, theta: Decimals) -> Decimals:
        """B theta."""
        ...

    def adjoint(self, values: Decimals) -> Decimals:
        """B'values."""
        ...

    def gram(self, h: Decimals) -> Decimals:
        """B' diag(h) B."""
        ...


class Matrix:
    """A map given by its rows."""

    def __init__(self, B: Decimals) -> None:
        self.B = B

    def apply(self, theta: Decimals) -> Decimals:
        """B theta."""
        count_work(self.B.size)
        return self.B @ theta

    def adjoint(self, values: Decimals) -> Decimals:
        """B'values."""
        return self.B.T @ values

    def gram(self, h: Decimals) -> Decimals:
        """B' diag(h) B."""
        return gram(self.B, h)


class Coordinates:
    """Some coefficients, each in the units of the user."""

    def __init__(self, places: Any, units: Decimals, order: int) -> None:
        self.places, self.units, self.order = places, units, order

    def apply(self, theta: Decimals) -> Decimals:
        """The coefficients."""
        return theta[self.places] * self.units

    def adjoint(self, values: Decimals) -> Decimals:
        """The vector with the values in these places."""
        out = zeros(self.order)
        out[self.places] = values * self.units
        return out

    def gram(self, h: Decimals) -> Decimals:
        """A diagonal matrix."""
        H = zeros(self.order, self.order)
        H[self.places, self.places] = h * self.units * self.units
        return H


class Term(ABC):
    """A part of the objective with its dual variables; the methods are those of a primal-dual step."""

    count: int = 0  #: products that are set to mu
    scale: Decimal = ONE  #: of the residuals
    s: Decimals

    @abstractmethod
    def hessian(self) -> Decimals:
        """Second derivatives in theta once all else is eliminated."""

    @abstractmethod
    def gradient(self) -> Decimals:
        """First derivatives in theta at the dual variables."""

    @abstractmethod
    def right_hand_side(self, targets: Targets) -> Decimals:
        """Contribution of products that differ from their targets to the right-hand side, without the gradient."""

    @abstractmethod
    def change(self, step: Decimals, targets: Targets) -> Change:
        """Changes of the variables of this term along a step of theta."""

    @abstractmethod
    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest step, at most 1 and at most this fraction of the way to the boundary."""

    @abstractmethod
    def advance(self, change: Change, t: Decimal) -> None:
        """Take the step."""

    @abstractmethod
    def value(self) -> Decimal:
        """The losses, to float64 at least."""

    @abstractmethod
    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus losses now."""

    def thresholds(self, order: int) -> Decimals:
        """l1 of an absolute penalty, in units of the columns."""
        return zeros(order)

    @property
    def affine(self) -> Targets:
        """Targets of the predictor: products of 0."""
        return None

    def corrector_targets(self, change: Change, mu: Decimal) -> Targets:
        """Targets of the corrector: products of mu, and what the predictor leaves out."""
        return None

    def centring_targets(self, mu: Decimal) -> Targets:
        """Targets without the second order."""
        return None

    def gap(self, change: Change | None = None, t: Decimal = ZERO) -> Decimal:
        """s times the products, after a step."""
        return ZERO

    def infeasibility(self) -> Decimal:
        """Violation of the linear conditions, in units of the objective."""
        return ZERO


def scaled_rows(A: FloatArray, units: Decimals, sigma: FloatArray | None = None) -> Decimals:
    """The rows in units of the columns, times sigma."""
    B = decimals(A) * units
    return B if sigma is None else B * decimals(sigma)[:, None]
