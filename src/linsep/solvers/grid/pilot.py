"""Predict the next base of a grid from a pilot (``walk``).

At a base the gradient and Hessian of every fold are known. A pilot estimates how they change to the next base: that
point is found without a pass, and the Hessian of each fold changes in proportion to its share, up to a sampling error.
With h the curvatures s l'' of the pilot's rows, weights included, and e a step, the error r of H e has::

    E|r|^2 = e'N e,      N = sum over the pilot of (h - h_known)^2 |x|^2 (x - mu, 1)(x - mu, 1)'

and contributes |r|^2/(2 lam) to the gap of a model. If that may be too much, the Hessians are summed over all rows.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.penalties import ElasticNet
from linsep.problem import Problem, dot
from linsep.problem.pointwise import CURVATURE
from linsep.solvers import sampling
from linsep.solvers.grid import kinks as grid_kinks
from linsep.solvers.grid.newton import Base, Grid, Move
from linsep.solvers.linalg.factor import solve_spd
from linsep.solvers.newton import native as native_newton

_CORRECTIONS = 8  # largest number of corrector steps from one base to the next
_CORRECT = 0.05  # half squared decrement of the last one, in units of that of a single step
_SLOW = 0.1  # reduction of the half squared decrement below which the Hessian is recomputed
_UNSEEN = 0.2  # largest contribution of a predicted Hessian to the gap, as a fraction of tol


class Pilot:
    """Subsample of the rows: gives a first base, and estimates how gradient and Hessian change along the path."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._sub = sampling.sub_problem(problem, sampling.pilot_size(problem.data), seed)
        self._squares: FloatArray | None = None  # |x|^2 of its rows
        self._exact = np.zeros(0)  # their curvatures at the last base that was summed over all rows

    def _problem_at(self, C: float) -> Problem:
        sub = self._sub
        return Problem(sub.loss, ElasticNet(C), sub.data, sub.fit_intercept)

    def first_base(self, grid: Grid, C: float, near: float) -> Base:
        """Return the base at the optimum of the pilot for C, or after one step towards that of all rows.

        A step with the gradient of all rows and the Hessian of the pilot leaves a relative error of about
        sqrt(d/rows of the pilot).
        """
        sub = self._problem_at(C)
        theta = native_newton.pilot_optimum(sub, np.zeros(sub.order))
        sub.value_gradient(theta)  # for the curvatures
        sums = grid.sweep(theta)
        value, g = grid.value_gradient(theta, sums, sub.lam)
        rhs = -g
        rhs[:-1] += grid.mu * g[-1]
        delta = solve_spd(sub.hessian(grid.mu), rhs, definite=True)
        far = 0.5 * dot(rhs, delta) > 0.5 * near * value
        delta[-1] -= dot(grid.mu, delta[:-1])
        if far and np.isfinite(delta).all():
            return grid.base_at(theta + delta)
        return grid.base(theta, sums)

    def next_base(self, grid: Grid, known: Base, C: float, near: float, tol: float) -> Base:
        """Return the base at the optimum of all rows for C, predicted from a known base.

        The pilot estimates the nonlinear part of the gradient, which determines the point, and the change of the
        Hessian. The last column of the Hessian is summed over all rows, because its error would affect the intercept
        to first order.
        """
        sub, free = self._problem_at(C), self._problem_at(np.inf)
        _, before = free.value_gradient(known.theta)
        H0 = free.hessian(grid.mu, single=grid.single)
        if known.noise is None:
            self._exact = free.data.row_state(CURVATURE).copy()
        linear, H = known.gradient.sum(0) - before, known.hessian.sum(0)
        move, before_that = grid.step(known, C, -1), np.inf
        theta, bent, half = known.theta + move.delta, H, move.half
        for _ in range(_CORRECTIONS):
            g = sub.value_gradient(theta)[1]
            if not np.isfinite(g).all():
                return known  # the step is too long
            g += linear + grid.quadratic(H - H0, theta - known.theta)
            if half > _SLOW * before_that:
                bent = H - H0 + free.hessian(grid.mu, single=grid.single)
            before_that = half
            delta, half, _ = grid.newton(bent.copy(), g, sub.lam)
            theta = theta + delta
            if half <= _CORRECT * near * move.value:
                break
        if not np.isfinite(free.value_gradient(theta)[1]).all():
            return known
        change = free.hessian(grid.mu, single=grid.single) - H0
        noise = self._noise(grid, free.data.row_state(CURVATURE) - self._exact)
        if grid_kinks.kinks_of(sub.loss) or would_show(grid, known, noise, C, tol):
            return grid.base_at(theta)
        return predict_base(grid, known, theta, change, noise)

    def _noise(self, grid: Grid, change: FloatArray) -> FloatArray:
        """Return N with E|r|^2 = e'N e for the sampling error r of H e: sum change^2 |x|^2 (x - mu, 1)(x - mu, 1)'."""
        free = self._problem_at(np.inf)
        if self._squares is None:
            free.passes += 1
            self._squares = free.data.row_norms()
        free.data.set_row_state(CURVATURE, change**2 * self._squares)
        return free.hessian(grid.mu, single=grid.single)


def predict_base(
    grid: Grid, known: Base, theta: FloatArray, change: FloatArray, noise: FloatArray
) -> Base:
    """Return the base at theta with the Hessians of a known one, each plus its share of ``change``. One pass.

    The pass sums the gradients and the last column of each Hessian.
    """
    d, parts = grid.problem.data.d, grid.parts
    size = (parts + 1) * (d + 2)

    def add(block: Block, out: FloatArray) -> None:
        grid.add_sweep(block, block.lo, block.hi, theta, out[:size], out[size:])

    grid.problem.passes += 1
    sums = grid.problem.data.sum(add, size + (parts + 1) * (d + 1), writes=("curvature",))
    column = sums[size:].reshape(parts + 1, d + 1)
    column[:, :-1] -= grid.mu * column[:, -1:]
    constant = np.append(np.diag(known.hessian.sum(0))[:-1] == 0.0, False)
    column[:, constant] = 0.0
    mass = known.hessian[:, -1, -1]
    H = known.hessian + (mass / max(mass.sum(), 1e-300))[:, None, None] * change
    H[:, -1], H[:, :, -1] = column, column
    first = sums[:size].reshape(parts + 1, d + 2)
    return Base(theta, first[:, 0], first[:, 1:], H, known.single, noise)


def would_show(grid: Grid, known: Base, noise: FloatArray, C: float, tol: float) -> bool:
    """Return whether ``noise`` in the Hessian of a base at the optimum for C may be visible in the gap of a model.

    The steps of these models are predicted by their steps from the known base minus the step to the optimum.
    """
    whole = grid.step(known, C, -1)
    for f in grid.held_out:
        move = grid.step(known, C / grid.share(), f)
        if _shows(grid, noise, C, move.delta - whole.delta, tol * move.value):
            return True
    return False


def noisy(grid: Grid, base: Base, C: float, move: Move, tol: float) -> bool:
    """Return whether the error of a predicted Hessian may be visible in the gap of the model."""
    return base.noise is not None and _shows(grid, base.noise, C, move.delta, tol * move.value)


def _shows(grid: Grid, noise: FloatArray, C: float, step: FloatArray, gap: float) -> bool:
    """Return whether the residual r of a step may be visible in the gap, to which it contributes |r|^2/(2 lam)."""
    e = step.copy()
    e[-1] += dot(grid.mu, e[:-1])
    return not 0.5 * C * dot(e, noise @ e) <= _UNSEEN * gap
