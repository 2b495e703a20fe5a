"""Interface of the terms of an objective in the interior point method.

A term is a sum of losses or an L1 penalty (``row_terms``: one score per row; ``class_terms``: one score per class). It
stores its own dual variables and provides what a primal-dual step needs: Hessian, gradient, the changes of its
variables along a step of theta, and the longest step.
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
    """log(1 + t)/t: step that provably decreases a loss with |l'''| <= l'' if margins change by t (Bach 2010)."""
    return (ONE + t).ln() / t if t > Decimal("1e-3") else ONE


def longest_step(least: Decimal, curvature: float, increase: Callable[[float], float]) -> Decimal:
    """First t of 1, 1/2, 1/4, ..., ``least`` on which the slope grows by at most 1.5 t curvature, in float64."""
    t = ONE
    with np.errstate(over="ignore", invalid="ignore"):
        while t > least and not increase(float(t)) <= 1.5 * float(t) * curvature:
            t = t / 2 if float(t) > 0.0 else least  # increase is NaN outside the float64 range
    return max(t, least)


class Map(Protocol):
    """Linear map B from theta to the scores of a term."""

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
    """Linear map given by a matrix B."""

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
    """Linear map that selects some coefficients, in the user's units."""

    def __init__(self, places: Any, units: Decimals, order: int) -> None:
        self.places, self.units, self.order = places, units, order

    def apply(self, theta: Decimals) -> Decimals:
        """Selected coefficients."""
        return theta[self.places] * self.units

    def adjoint(self, values: Decimals) -> Decimals:
        """Vector with the values at the selected positions."""
        out = zeros(self.order)
        out[self.places] = values * self.units
        return out

    def gram(self, h: Decimals) -> Decimals:
        """Diagonal matrix with h at the selected positions."""
        H = zeros(self.order, self.order)
        H[self.places, self.places] = h * self.units * self.units
        return H


class Term(ABC):
    """A part of the objective with its dual variables; the methods serve a primal-dual step."""

    count: int = 0  #: number of complementarity products
    scale: Decimal = ONE  #: size of the residuals
    s: Decimals

    @abstractmethod
    def hessian(self) -> Decimals:
        """Second derivatives in theta after eliminating all other variables."""

    @abstractmethod
    def gradient(self) -> Decimals:
        """First derivatives in theta at the current dual variables."""

    @abstractmethod
    def right_hand_side(self, targets: Targets) -> Decimals:
        """Right-hand side, without the gradient, due to products that differ from their targets."""

    @abstractmethod
    def change(self, step: Decimals, targets: Targets) -> Change:
        """Changes of the variables of this term along a step of theta."""

    @abstractmethod
    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest step, at most 1 and at most this fraction of the distance to the boundary."""

    @abstractmethod
    def advance(self, change: Change, t: Decimal) -> None:
        """Take a step of length t."""

    @abstractmethod
    def value(self) -> Decimal:
        """Sum of the losses, at least to float64 accuracy."""

    @abstractmethod
    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus current losses."""

    def thresholds(self, order: int) -> Decimals:
        """l1 of each coefficient, in column units; 0 for losses."""
        return zeros(order)

    @property
    def affine(self) -> Targets:
        """Targets of the predictor: products of 0."""
        return None

    def corrector_targets(self, change: Change, mu: Decimal) -> Targets:
        """Targets of the corrector: products of mu, with the predictor's second-order term."""
        return None

    def centring_targets(self, mu: Decimal) -> Targets:
        """Targets for centring: products of mu, without a second-order term."""
        return None

    def gap(self, change: Change | None = None, t: Decimal = ZERO) -> Decimal:
        """Sum of s times the complementarity products, optionally after a step."""
        return ZERO

    def infeasibility(self) -> Decimal:
        """Violation of the linear conditions, in units of the objective."""
        return ZERO


def scaled_rows(A: FloatArray, units: Decimals, sigma: FloatArray | None = None) -> Decimals:
    """Return the rows in column units, times sigma."""
    B = decimals(A) * units
    return B if sigma is None else B * decimals(sigma)[:, None]
