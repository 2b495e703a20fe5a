"""Newton steps whose gradients are computed in doubled precision, for fits that only rounding leaves uncertified.

A column of times or identifiers has entries of 1e9, and v_j = sum s sigma u x_j is a difference of huge numbers: the
rounding errors of the dual variables alone change v_j by more than an L1 penalty, or a feature without a penalty,
allows. The optimum is not in doubt, only its proof. Here v is computed in about twice the working precision
(``exact.sliced``), and with the curvatures h of the losses the system

    (A' diag(s h) A + ridge) y = v* - v,     v*_g = l1_g w_g/|w_g| + l2_g w_g,

on the columns A of the groups that are not 0, and of those with |v_g| > l1_g, gives the change h sigma x.y of the dual
variables, which are stored as unevaluated sums of two numbers; single features are groups of one. The error of v
decreases by many digits with every correction, although each is computed in float64. The first of these systems, with
the curvature l1_g (I - w_g w_g'/|w_g|^2)/|w_g| of the norms, gives the Newton step -y of the coefficients.

The certificate is computed from the result by the code that certifies every fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from copy import copy
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray, embed
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
    """Return whether rows and loss are suitable, and the penalty is not a ridge with the same weight for all features.

    Ridge penalties have a certificate from the curvature around the solution, which needs no dual variables.
    """
    data, penalty = problem.data, problem.penalty
    if not (problem.loss.smooth and problem.loss.convex) or data.location is not Location.MEMORY:
        return False
    if data.n_entries > ENTRIES or penalty.absent:
        return False
    return isinstance(penalty, GroupElasticNet) or penalty.l1 > 0.0


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
    norms = _Norms(problem.penalty, data.d)
    for _ in range(STEPS):
        found = _correct(problem, losses, rows, norms, theta)
        if found is None:
            return
        u, rest, step = found
        yield replace(solution, W=theta.reshape(-1, 1), dual=Explicit(u, rest), sums=None)
        theta = norms.move(theta, step)


def _correct(
    problem: Problem | GroupProblem,
    losses: Problem,
    rows: _Rows,
    norms: _Norms,
    theta: FloatArray,
) -> tuple[FloatArray, FloatArray, FloatArray] | None:
    """Return the dual variables at theta in two parts, and the Newton step; None if the system is not solvable."""
    loss, d, w = problem.loss, problem.data.d, theta[:-1]
    l1, ridge = norms.l1, problem.penalty.quadratic(d)
    m = rows.margins(theta)
    u, h = -loss.slope(m), loss.curvature(m)
    if not (np.isfinite(u).all() and np.isfinite(h).all()):
        return None
    rest, system, first = np.zeros_like(u), None, np.zeros(d + 1)
    active = np.zeros(d, dtype=bool)
    for number in range(CORRECTIONS):
        v = rows.sums(u, rest, d)
        wanted = norms.subgradient(w, v.hi[:-1]) + ridge * w
        miss = (np.append(wanted, 0.0) - v.hi) - v.lo
        if not problem.fit_intercept:
            miss[-1] = 0.0
        grown = active | (w != 0.0) | (l1 == 0.0) | (np.abs(miss[:-1]) > 0.0)
        size = np.append(np.where(l1 > 0.0, l1, np.abs(ridge * w)), 0.0)
        if system is not None and (np.abs(miss) <= _PRECISE * size).all():
            break
        if np.count_nonzero(grown) > FEATURES:
            return None
        if system is None or (grown != active).any():
            active = grown
            system = _System(losses, active, rows.weight * h, ridge)
        y = system.solve(miss)
        change = h * rows.sign * np.asarray(rows.X @ y[:-1] + y[-1])
        if not np.isfinite(change).all():
            return None
        before = u
        u, rest = two_sum(u, rest + change)
        outside = (u <= loss.domain[0]) | (u >= loss.domain[1])
        u = np.where(outside, before, u)
        rest = np.where(outside, 0.0, rest)
        first = miss if number == 0 else first
    assert system is not None
    return u, rest, -system.with_norms(norms, w).solve(first)


class _System:
    """Factor of A' diag(h) A + ridge on the active columns and the intercept."""

    def __init__(
        self, losses: Problem, active: BoolArray, h: FloatArray, ridge: FloatArray
    ) -> None:
        self._at, self._d = np.flatnonzero(active), len(active)
        data = losses.data.columns(self._at)
        plain = Problem(losses.loss, ElasticNet(np.inf), data, losses.fit_intercept)
        self._centre = plain.centre()
        self._H = plain.hessian_of(plain.gram(h, self._centre), self._centre)
        self._H[np.diag_indices(len(self._at))] += ridge[self._at]
        self._factor = Factor(self._H, definite=True)
        data.close()

    def with_norms(self, norms: _Norms, w: FloatArray) -> _System:
        """Return the system with the curvature of the norms at w, which features in groups of one do not have."""
        if norms.singles:
            return self
        k, other = len(self._at), copy(self)
        H = self._H.copy()
        H[:k, :k] += norms.curvature(w, self._at)
        other._factor = Factor(H, definite=True)
        return other

    def solve(self, miss: FloatArray) -> FloatArray:
        """Return y, with 0 for inactive columns."""
        right = miss[self._at] - self._centre * miss[-1]
        found = self._factor.solve(np.append(right, miss[-1]))
        found[-1] -= self._centre @ found[:-1]
        return embed(found, self._at, self._d)


class _Norms:
    """The part sum_g l1_g |w_g| of a penalty."""

    def __init__(self, penalty: ElasticNet, d: int) -> None:
        self._penalty = penalty if isinstance(penalty, GroupElasticNet) else None
        if isinstance(penalty, GroupElasticNet):
            self.group, self.l1 = penalty.group, penalty.thresholds[penalty.group]
        else:
            self.group, self.l1 = np.arange(d), np.full(d, penalty.l1)
        self.singles = int(self.group.max(initial=-1)) + 1 == d

    def _lengths(self, w: FloatArray) -> FloatArray:
        """Norm of the group of each feature."""
        return np.abs(w) if self._penalty is None else self._penalty.norms(w)[self.group]

    def subgradient(self, w: FloatArray, v: FloatArray) -> FloatArray:
        """Return the subgradient at w that is nearest to v."""
        at_w, at_v = self._lengths(w), self._lengths(v)
        inside = v * np.divide(self.l1, at_v, out=np.ones_like(v), where=at_v > self.l1)
        return np.where(at_w > 0.0, self.l1 * w / np.where(at_w > 0.0, at_w, 1.0), inside)

    def curvature(self, w: FloatArray, at: IntArray) -> FloatArray:
        """Return the Hessian l1_g (I - w_g w_g'/|w_g|^2)/|w_g| of the groups that are not 0, on these features."""
        size = self._lengths(w)[at]
        bend = np.divide(self.l1[at], size, out=np.zeros_like(size), where=size > 0.0)
        unit = w[at] / np.where(size > 0.0, size, 1.0)
        same = self.group[at][:, None] == self.group[at]
        return np.diag(bend) - np.where(same, bend[:, None] * np.outer(unit, unit), 0.0)

    def move(self, theta: FloatArray, step: FloatArray) -> FloatArray:
        """Return theta after the step; penalised groups stay 0, or become 0 if they turn around."""
        moved = theta + step
        along = np.bincount(self.group, moved[:-1] * theta[:-1])[self.group]
        return np.where(np.append((self.l1 > 0.0) & (along <= 0.0), False), 0.0, moved)
