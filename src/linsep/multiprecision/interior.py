"""A primal-dual interior point method in decimal arithmetic, with Mehrotra's predictor and corrector.

Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992. The objective is
1/2 sum_j ridge_j theta_j^2 plus terms (``terms``). Losses that are curved everywhere take damped Newton steps (Bach,
Self-concordant analysis for logistic regression, Electronic J. Statistics 4, 2010).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from decimal import Decimal
from time import perf_counter
from typing import NamedTuple

import numpy as np

from linsep.exact.decimals import (
    ONE,
    ZERO,
    Decimals,
    FloatArray,
    backward,
    cholesky,
    forward,
    zeros,
)
from linsep.multiprecision.rounding import best_rounding
from linsep.multiprecision.terms import Change, Targets, Term

_ITERATIONS = 60
#: Relative gap of a solution before rounding, in units of tol.
_SOLVED = Decimal("1e-6")
#: Relative gap that rounding may add without further search, in units of tol.
_ENOUGH = Decimal("1e-3")
#: Steps below which the second order does more harm than good.
_SHORT = Decimal("0.1")


class Found(NamedTuple):
    """The solution in units of the columns, and rounded to float64 in those of the user."""

    theta: Decimals
    rounded: FloatArray


class NoProgress(Exception):
    """The iteration ended without a solution."""


def solve(
    terms: Sequence[Term],
    ridge: Decimals,
    units: Decimals,
    tol: float,
    seconds: float | None,
    classes: int = 1,
) -> Found:
    """Minimise the terms and 1/2 sum ridge theta^2, or raise NoProgress; the user's coefficients are units * theta.

    ``tol`` is the relative gap that the rounded solution is to reach, ``seconds`` what is left of a time limit. Of
    several classes, what may be added to all of them without a change is chosen so that they add up to 0.
    """
    end = math.inf if seconds is None else perf_counter() + seconds
    state = _Iteration(terms, ridge)
    for _ in range(_ITERATIONS):
        if perf_counter() > end:
            raise NoProgress
        state.factorise()
        if state.shortfall() <= Decimal(tol) * _SOLVED:
            state.centre(classes)
            enough = Decimal(tol) * _ENOUGH * state.size()
            rounded = best_rounding(state.theta, units, state.L, state.excess, enough, end)
            return Found(state.theta, rounded)
        state.step()
    raise NoProgress


class _Iteration:
    def __init__(self, terms: Sequence[Term], ridge: Decimals) -> None:
        self.terms, self.ridge = terms, ridge
        self.theta = zeros(len(ridge))
        self.count = sum(term.count for term in terms)
        self.relative_gap = ONE

    def factorise(self) -> None:
        """Gradient, and the factor of the Hessian."""
        H = np.diag(self.ridge) + sum(term.hessian() for term in self.terms)
        self.L = cholesky(H)
        self.g = self.ridge * self.theta + sum(term.gradient() for term in self.terms)

    def size(self) -> Decimal:
        """The objective."""
        penalty: Decimal = (self.ridge * self.theta * self.theta).sum() / 2
        return penalty + sum((abs(term.value()) for term in self.terms), ZERO)

    def shortfall(self) -> Decimal:
        """Gap and infeasibility of the point and its dual point, relative to the objective.

        A gradient g costs the dual bound g^2/ridge, and where there is no ridge its product with theta. The first of
        the terms has the rows.
        """
        gap = sum((term.gap() + term.infeasibility() for term in self.terms), ZERO)
        y = forward(self.L, self.g)
        gap += (y * y).sum()
        for g, ridge, theta in zip(self.g, self.ridge, self.theta, strict=True):
            gap += g * g / ridge if ridge > 0 else abs(g) * (self.terms[0].scale + abs(theta))
        size = self.size()
        self.relative_gap = gap / size if size > 0 else (ONE if gap > 0 else ZERO)
        return self.relative_gap

    def excess(self, step: Decimals) -> Decimal:
        """The objective after a step minus that of now."""
        total: Decimal = (self.ridge * step * (self.theta + step / 2)).sum()
        return total + sum((term.excess(step) for term in self.terms), ZERO)

    def centre(self, classes: int) -> None:
        """Let coefficients without any penalty add up to 0 over several classes."""
        if classes == 1:
            return
        free = self.ridge == ZERO
        for term in self.terms:
            free[term.penalised] = False
        by_class = self.theta.reshape(classes, -1)
        free = free.reshape(classes, -1).all(axis=0)
        by_class[:, free] = by_class[:, free] - by_class[:, free].sum(axis=0) / classes
        self.theta = by_class.ravel()

    def _direction(self, targets: Sequence[Targets]) -> tuple[Decimals, list[Change]]:
        rhs = sum(
            term.right_hand_side(target) for term, target in zip(self.terms, targets, strict=True)
        )
        step = backward(self.L, forward(self.L, rhs - self.g))
        return step, [
            term.change(step, target) for term, target in zip(self.terms, targets, strict=True)
        ]

    def _max_step(self, change: list[Change], fraction: Decimal) -> Decimal:
        return min(
            term.max_step(one, fraction) for term, one in zip(self.terms, change, strict=True)
        )

    def step(self) -> None:
        """Predict, correct, and go as far as all products stay positive."""
        step, change = self._direction([term.affine for term in self.terms])
        if self.count:
            step, change = self._corrected(step, change)
        t = self._max_step(change, max(Decimal("0.99"), ONE - self.relative_gap))
        self.theta = self.theta + t * step
        for term, one in zip(self.terms, change, strict=True):
            term.advance(one, t)

    def _corrected(self, step: Decimals, change: list[Change]) -> tuple[Decimals, list[Change]]:
        t = self._max_step(change, ONE)
        pairs = list(zip(self.terms, change, strict=True))
        now = sum((term.gap() for term in self.terms), ZERO)
        after = sum((term.gap(one, t) for term, one in pairs), ZERO)
        mu = now / self.count
        target = mu * (after / now) ** 3 if now > 0 else ZERO
        found = self._direction([term.corrected(one, target) for term, one in pairs])
        if self._max_step(found[1], ONE) >= _SHORT:
            return found
        plain = self._direction([term.centred(mu / 2) for term in self.terms])
        return max(found, plain, key=lambda one: self._max_step(one[1], ONE))
