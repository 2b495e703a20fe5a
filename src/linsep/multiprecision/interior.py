"""A primal-dual interior point method in decimal arithmetic, with Mehrotra's predictor and corrector.

Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992. The objective is
1/2 sum_j ridge_j theta_j^2 plus terms (``terms``). Losses that are curved everywhere take damped Newton steps (Bach,
Self-concordant analysis for logistic regression, Electronic J. Statistics 4, 2010).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from decimal import Decimal
from time import perf_counter
from typing import NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.decimals import (
    ONE,
    ZERO,
    Decimals,
    backward,
    cholesky,
    count_work,
    forward,
    multiply_adds,
    zeros,
)
from linsep.multiprecision.rounding import best_rounding
from linsep.multiprecision.terms import Change, Targets, Term

_ITERATIONS = 200
#: Relative gap of a solution before rounding, in units of tol.
_SOLVED = Decimal("1e-6")
#: Relative gap that rounding may add without further search, in units of tol.
_ENOUGH = Decimal("1e-3")
#: Objective of an exact fit, relative to that of the zero model. Targets of mean 1e15 and deviation 1 have 1e-30.
_NOTHING = Decimal("1e-31")
#: Steps below which the second order does more harm than good.
_SHORT = Decimal("0.1")
#: Products that are aimed at then, in units of the mean product: larger ones leave room for longer steps.
_SHARES = (Decimal("0.5"), Decimal(1), Decimal(100))


class Found(NamedTuple):
    """The solution in units of the columns, and rounded to float64 in those of the user."""

    theta: Decimals
    rounded: FloatArray
    excess: Decimal  #: of the rounded solution over the minimum, relative to it; of an exact fit, to the zero model


class NoProgress(Exception):
    """The iteration ended without a solution."""


def solve(
    terms: Sequence[Term],
    ridge: Decimals,
    units: Decimals,
    tol: float,
    seconds: float | None,
    classes: int = 1,
    longer: Decimal = ONE,
) -> Found:
    """Minimise the terms and 1/2 sum ridge theta^2, or raise NoProgress; the user's coefficients are units * theta.

    ``tol`` is the relative gap that the rounded solution is to reach, ``seconds`` what is left of a time limit. Of
    several classes, what may be added to all of them without a change is chosen so that they add up to 0. What is
    rounded is ``longer`` times the solution. The work is counted (``exact.budget``).
    """
    end = math.inf if seconds is None else perf_counter() + seconds
    state = _Iteration(terms, ridge, classes)
    for _ in range(_ITERATIONS):
        if perf_counter() > end:
            raise NoProgress
        state.factorise()
        exact_fit = state.fits_exactly()
        if exact_fit or state.is_solved(tol):
            state.centre()
            size = state.size()
            enough = Decimal(tol) * _ENOUGH * size
            rounded, excess = best_rounding(
                longer * state.theta, units, state.L, state.excess_of(longer), enough, end
            )
            minimum = state.null if exact_fit else size
            return Found(state.theta, rounded, excess / minimum if minimum else ZERO)
        state.step()
    raise NoProgress


class _Iteration:
    def __init__(self, terms: Sequence[Term], ridge: Decimals, classes: int) -> None:
        self.terms, self.ridge, self.classes = terms, ridge, classes
        self.theta = zeros(len(ridge))
        self.count = sum(term.count for term in terms)
        self.relative_gap = ONE
        self.l1 = sum((term.thresholds(len(ridge)) for term in terms), zeros(len(ridge)))
        free = (ridge == ZERO) & (self.l1 == ZERO)
        #: coefficients without a penalty in any class
        self.free = np.flatnonzero(free.reshape(classes, -1).all(axis=0))
        self.unpenalised = bool(free.all())
        self.null = self.size()

    def factorise(self) -> None:
        """Gradient, and the factor of the Hessian.

        What may be added to all classes without a change of the scores has no curvature. It is given some, so that
        rounding does not drive the coefficients apart; steps have no part in that direction.
        """
        count_work(multiply_adds(len(self.terms[0].s), len(self.ridge)))
        H = np.diag(self.ridge) + sum(term.hessian() for term in self.terms)
        if self.classes > 1:
            order = len(self.ridge) // self.classes
            for j in self.free.tolist():
                H[j::order, j::order] += H[range(j, len(H), order), range(j, len(H), order)].max()
        self.L = cholesky(H)
        self.g = self.ridge * self.theta + sum(term.gradient() for term in self.terms)

    def size(self) -> Decimal:
        """The objective."""
        penalty: Decimal = (self.ridge * self.theta * self.theta).sum() / 2
        return penalty + sum((abs(term.value()) for term in self.terms), ZERO)

    def fits_exactly(self) -> bool:
        """Whether, without a penalty, the objective is negligible compared with that of the zero model."""
        return self.unpenalised and self.size() <= _NOTHING * self.null

    def is_solved(self, tol: float) -> bool:
        """Whether the gap is negligible compared with tol, or small and no longer falling."""
        before, now = self.relative_gap, self.shortfall()
        ended = now <= Decimal(tol) * _ENOUGH and 2 * now > before
        return ended or now <= Decimal(tol) * _SOLVED

    def shortfall(self) -> Decimal:
        """Gap and infeasibility of the point and its dual point, relative to the objective.

        A gradient g costs the dual bound g^2/ridge. Without a ridge, an absolute penalty asks for dual variables
        that are shorter by the share g/l1; without any penalty the cost is about the product of g and theta. The
        first of the terms has the rows.
        """
        gap = sum((term.gap() + term.infeasibility() for term in self.terms), ZERO)
        y, size = forward(self.L, self.g), self.size()
        gap += (y * y).sum()
        for g, ridge, l1, theta in zip(self.g, self.ridge, self.l1, self.theta, strict=True):
            if ridge > 0:
                gap += g * g / ridge
            else:
                gap += abs(g) * (size / l1 if l1 > 0 else self.terms[0].scale + abs(theta))
        self.relative_gap = gap / size if size > 0 else (ONE if gap > 0 else ZERO)
        return self.relative_gap

    def excess_of(self, longer: Decimal) -> Callable[[Decimals], Decimal]:
        """The objective after a step from a multiple of theta, minus that of now."""
        more = (longer - 1) * self.theta

        def excess(step: Decimals) -> Decimal:
            step = step + more
            total: Decimal = (self.ridge * step * (self.theta + step / 2)).sum()
            return total + sum((term.excess(step) for term in self.terms), ZERO)

        return excess

    def centre(self) -> None:
        """Let coefficients without any penalty add up to 0 over several classes."""
        if self.classes == 1:
            return
        by_class, free = self.theta.reshape(self.classes, -1), self.free
        by_class[:, free] = by_class[:, free] - by_class[:, free].sum(axis=0) / self.classes
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
            step, change = self._correct(step, change)
        t = self._max_step(change, max(Decimal("0.99"), ONE - self.relative_gap))
        self.theta = self.theta + t * step
        for term, one in zip(self.terms, change, strict=True):
            term.advance(one, t)

    def _correct(self, step: Decimals, change: list[Change]) -> tuple[Decimals, list[Change]]:
        t = self._max_step(change, ONE)
        pairs = list(zip(self.terms, change, strict=True))
        now = sum((term.gap() for term in self.terms), ZERO)
        after = sum((term.gap(one, t) for term, one in pairs), ZERO)
        mu = now / self.count
        target = mu * (after / now) ** 3 if now > 0 else ZERO
        found = self._direction([term.corrector_targets(one, target) for term, one in pairs])
        if self._max_step(found[1], ONE) >= _SHORT:
            return found
        others = [
            self._direction([term.centring_targets(share * mu) for term in self.terms])
            for share in _SHARES
        ]
        return max([found, *others], key=lambda one: self._max_step(one[1], ONE))
