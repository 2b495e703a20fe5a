"""Newton steps whose gradients are computed in doubled precision, for fits that only rounding leaves uncertified.

A column of times or identifiers has entries of 1e9, and v_j = sum s sigma u x_j is a difference of huge numbers: the
rounding errors of the dual variables alone change v_j by more than an L1 penalty, or a feature without a penalty,
allows. The optimum is not in doubt, only its proof. Here v is computed in about twice the working precision
(``exact.sliced``), and with the curvatures h of the losses the system

    (A' diag(s h) A + ridge) y = v* - v,     v*_j = l1_j sign(w_j) + l2_j w_j,

on the columns A of the coefficients that are not 0, and of those with |v_j| > l1_j, gives the change h sigma x.y of
the dual variables, which are stored as unevaluated sums of two numbers. The error of v decreases by many digits with
every correction, although each is computed in float64. The Newton step of the coefficients is -y.

The certificate is computed from the result by the code that certifies every fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import BoolArray, FloatArray, embed
from linsep.certificates.parts import chunks
from linsep.certificates.precise import margins
from linsep.data import Location
from linsep.exact.sliced import Pair, scaled_product, transpose, two_product, two_sum
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.problem import GroupProblem, Problem
from linsep.solution import Explicit, Solution
from linsep.solvers.linalg.factor import Factor

ENTRIES = 10_000_000  # largest number of entries of X
FEATURES = 1000  # largest number of columns of A
STEPS = 4  # Newton steps
CORRECTIONS = 4  # corrections of the dual variables after each
_PRECISE = 1e-12  # error of v, relative to its target, at which the corrections end


def applies(problem: Problem | GroupProblem) -> bool:
    """Return whether rows and loss are suitable, and the penalty is separable and not a ridge on all features.

    Ridge penalties have a certificate from the curvature around the solution, which needs no dual variables.
    """
    data, penalty = problem.data, problem.penalty
    if not (problem.loss.smooth and problem.loss.convex) or data.location is not Location.MEMORY:
        return False
    if data.n_entries > ENTRIES or penalty.absent:
        return False
    if isinstance(penalty, GroupElasticNet):
        return penalty.l1_ratio == 0.0 or len(penalty.sizes) == len(penalty.group)
    return penalty.l1 > 0.0


class _Rows(NamedTuple):
    """Labels, offsets and weights of the rows, without None."""

    X: Any
    sign: FloatArray
    offset: FloatArray
    weight: FloatArray

    def margins(self, theta: FloatArray) -> FloatArray:
        """Margins sigma (x.w + b) + offset, rounded once."""
        found = [
            margins(block, self.sign[rows], self.offset[rows], theta).hi
            for rows, block in chunks(self.X)
        ]
        return np.concatenate(found)

    def sums(self, u: FloatArray, rest: FloatArray, d: int) -> Pair:
        """Sums of s sigma (u + rest) (x, 1), in doubled precision (d + 1,)."""
        total = Pair.of(np.zeros(d + 1))
        high, low = two_product(self.weight, self.sign * u)
        low = low + self.weight * (self.sign * rest)
        for rows, block in chunks(self.X):
            columns = transpose(block)
            for part in (low[rows], high[rows]):
                v = scaled_product(columns, part[:, None]).column(0)
                mass = scaled_product(np.ones((1, len(part))), part[:, None]).column(0)
                both = (np.append(a, b) for a, b in zip(v, mass, strict=True))
                total = total.plus(Pair(*both))
        return total


def corrected(problem: Problem | GroupProblem, solution: Solution) -> Iterator[Solution]:
    """Yield the solution after each Newton step, with corrected dual variables, until there is no progress."""
    losses = problem.losses if isinstance(problem, GroupProblem) else problem
    data, theta = problem.data, np.ascontiguousarray(solution.W[:, 0])
    ones = np.ones(data.n)
    rows = _Rows(
        data.X,
        np.asarray(data.sign, dtype=np.float64),
        0.0 * ones if data.offset is None else data.offset,
        ones if data.weight is None else data.weight,
    )
    for _ in range(STEPS):
        found = _correct(problem, losses, rows, theta)
        if found is None:
            return
        u, rest, step = found
        yield replace(solution, W=theta.reshape(-1, 1), dual=Explicit(u, rest), sums=None)
        theta = _move(problem.penalty, theta, step)


def _correct(
    problem: Problem | GroupProblem, losses: Problem, rows: _Rows, theta: FloatArray
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return the dual variables at theta in two parts, and the Newton step; None if the system is not solvable."""
    loss, penalty, d = problem.loss, problem.penalty, problem.data.d
    l1, ridge, w = _l1_weights(penalty, d), penalty.quadratic(d), theta[:-1]
    m = rows.margins(theta)
    u, h = -loss.slope(m), loss.curvature(m)
    if not (np.isfinite(u).all() and np.isfinite(h).all()):
        return None
    rest, step = np.zeros_like(u), np.zeros(d + 1)
    active, system = np.zeros(d, dtype=bool), None
    for _ in range(CORRECTIONS):
        v = rows.sums(u, rest, d)
        wanted = np.where(w != 0.0, l1 * np.sign(w) + ridge * w, np.clip(v.hi[:-1], -l1, l1))
        miss = (np.append(wanted, 0.0) - v.hi) - v.lo
        grown = active | (w != 0.0) | (l1 == 0.0) | (np.abs(miss[:-1]) > 0.0)
        size = np.append(np.where(l1 > 0.0, l1, np.abs(ridge * w)), 0.0)
        if system is not None and (np.abs(miss) <= _PRECISE * size).all():
            break
        if np.count_nonzero(grown) > FEATURES:
            return None
        if system is None or (grown != active).any():
            active = grown
            system = _System(losses, active, rows.weight * h, ridge)
        y = system.solve(miss if problem.fit_intercept else np.append(miss[:-1], 0.0))
        change = h * rows.sign * np.asarray(rows.X @ y[:-1] + y[-1])
        if not np.isfinite(change).all():
            return None
        before = u
        u, rest = two_sum(u, rest + change)
        outside = (u <= loss.domain[0]) | (u >= loss.domain[1])
        u = np.where(outside, before, u)
        rest = np.where(outside, 0.0, rest)
        step -= y
    return u, rest, step


class _System:
    """Factor of A' diag(h) A + ridge on the active columns and the intercept."""

    def __init__(
        self, losses: Problem, active: BoolArray, h: FloatArray, ridge: FloatArray
    ) -> None:
        self._at, self._d = np.flatnonzero(active), len(active)
        data = losses.data.columns(self._at)
        plain = Problem(losses.loss, ElasticNet(np.inf), data, losses.fit_intercept)
        self._centre = plain.centre()
        H = plain.hessian_of(plain.gram(h, self._centre), self._centre)
        H[np.diag_indices(len(self._at))] += ridge[self._at]
        self._factor = Factor(H, definite=True)
        data.close()

    def solve(self, miss: FloatArray) -> FloatArray:
        """Return y, with 0 for inactive columns."""
        right = miss[self._at] - self._centre * miss[-1]
        found = self._factor.solve(np.append(right, miss[-1]))
        found[-1] -= self._centre @ found[:-1]
        return embed(found, self._at, self._d)


def _l1_weights(penalty: ElasticNet, d: int) -> FloatArray:
    """Weight of |w_j| for each feature."""
    if isinstance(penalty, GroupElasticNet):
        return penalty.thresholds[penalty.group]
    return np.full(d, penalty.l1)


def _move(penalty: ElasticNet, theta: FloatArray, step: FloatArray) -> FloatArray:
    """Return theta after the step; where |w_j| is penalised, coefficients stay 0 or become 0 if they change sign."""
    moved = theta + step
    held = np.append(_l1_weights(penalty, len(theta) - 1) > 0.0, False)
    return np.where(held & (moved * theta <= 0.0), 0.0, moved)
