"""Primal-dual interior point method in decimal arithmetic, with Mehrotra's predictor-corrector.

Mehrotra, On the implementation of a primal-dual interior point method, SIAM J. Optimization 2, 1992. The objective is
1/2 sum_j ridge_j theta_j^2 plus terms (``terms``). Losses that are curved everywhere use damped Newton steps (Bach,
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
#: Relative gap to reach before rounding, in units of tol.
_SOLVED = Decimal("1e-6")
#: Relative gap that rounding may add without further search, in units of tol.
_ENOUGH = Decimal("1e-3")
#: Objective of an exact fit relative to the zero model. Targets with mean 1e15 and deviation 1 give 1e-30.
_NOTHING = Decimal("1e-31")
#: Step length below which the second-order correction is harmful.
_SHORT = Decimal("0.1")
#: Centring targets tried in that case, in units of the mean product: larger ones allow longer steps.
_SHARES = (Decimal("0.5"), Decimal(1), Decimal(100))


class Found(NamedTuple):
    """The solution in column units, and rounded to float64 in the user's units."""

    theta: Decimals
    rounded: FloatArray
    excess: Decimal  #: rounded objective minus minimum, relative to the minimum (exact fits: to the zero model)


class NoProgress(Exception):
    """The iteration ended without finding a solution."""


def solve(
    terms: Sequence[Term],
    ridge: Decimals,
    units: Decimals,
    tol: float,
    seconds: float | None,
    classes: int = 1,
    longer: Decimal = ONE,
) -> Found:
    """Minimise the terms plus 1/2 sum ridge theta^2, or raise NoProgress; the user's coefficients are units * theta.

    ``tol`` is the relative gap that the rounded solution should reach, ``seconds`` the remaining time. With several
    classes, a vector that can be added to all of them without changing the objective is chosen so that they sum to 0.
    The rounded point approximates ``longer`` times the solution. Work is counted (``exact.budget``).
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
        #: coefficients that are unpenalised in every class
        self.free = np.flatnonzero(free.reshape(classes, -1).all(axis=0))
        self.unpenalised = bool(free.all())
        self.null = self.size()

    def factorise(self) -> None:
        """Compute the gradient and the Cholesky factor of the Hessian.

        A vector added to all classes does not change the scores, so that direction has no curvature. Some is added, so
        that rounding does not drive the coefficients apart; steps have no component in that direction.
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
        """Current value of the objective."""
        penalty: Decimal = (self.ridge * self.theta * self.theta).sum() / 2
        return penalty + sum((abs(term.value()) for term in self.terms), ZERO)

    def fits_exactly(self) -> bool:
        """Return whether the objective is negligible relative to the zero model; only without a penalty."""
        return self.unpenalised and self.size() <= _NOTHING * self.null

    def is_solved(self, tol: float) -> bool:
        """Return whether the gap is negligible relative to tol, or small and no longer falling."""
        before, now = self.relative_gap, self.shortfall()
        ended = now <= Decimal(tol) * _ENOUGH and 2 * now > before
        return ended or now <= Decimal(tol) * _SOLVED

    def shortfall(self) -> Decimal:
        """Gap and infeasibility of the primal and dual point, relative to the objective.

        A gradient g costs the dual bound g^2/ridge. Without a ridge, an L1 penalty requires dual variables shrunk by
        the fraction g/l1; without any penalty the cost is about the product of g and theta. The first term holds the
        losses of the rows.
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
        """Return a function of a step from ``longer`` times theta: its objective minus the current one."""
        more = (longer - 1) * self.theta

        def excess(step: Decimals) -> Decimal:
            step = step + more
            total: Decimal = (self.ridge * step * (self.theta + step / 2)).sum()
            return total + sum((term.excess(step) for term in self.terms), ZERO)

        return excess

    def centre(self) -> None:
        """Shift unpenalised coefficients so that they sum to 0 over the classes."""
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
        """Take the longest predictor-corrector step that keeps all products positive."""
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
