"""From one base of a grid to the next (``grid_walk``): what a few of the rows tell of all of them.

At a base gradient and Hessian of every part are known. Of how they change to the next base a pilot tells enough: the
base there is found without a pass, and its Hessians, in proportion for each part, are off by what drawing the rows
leaves. With h the curvatures s l'' of the pilot's rows, weights included, and e a step, the error r of H e has::

    E|r|^2 = e'N e,      N = sum over the pilot of (h - h_known)^2 |x|^2 (x - mu, 1)(x - mu, 1)'

and enters the gap of a model by |r|^2/(2 lam). Where that might show, the Hessians are summed up over all rows.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.penalties import ElasticNet
from linsep.problem import Problem, dot
from linsep.problem.pointwise import CURVATURE
from linsep.solvers import sampling
from linsep.solvers.cost.shape import row_norms
from linsep.solvers.grid import kinks as grid_kinks
from linsep.solvers.grid.newton import Base, Grid, Move
from linsep.solvers.linalg.factor import solve_spd
from linsep.solvers.newton import native as native_newton

_CORRECTIONS = 8  # of the way from one base to the next, at most
_CORRECT = 0.05  # half the squared decrement of the last, as a multiple of what one step may cover
_SLOW = 0.1  # of that before: a Hessian that leaves more is made anew
_UNSEEN = 0.2  # of tol, that the error of a predicted Hessian may add to the gap


class Pilot:
    """A few of the rows: their optimum, to three digits, and how gradient and Hessian change along the path."""

    def __init__(self, problem: Problem, seed: int) -> None:
        self._sub = sampling.sub_problem(problem, sampling.pilot_size(problem.data), seed)
        self._squares: FloatArray | None = None  # |x|^2 of its rows
        self._exact = np.zeros(0)  # their curvatures, where all rows were summed up last

    def _problem_at(self, C: float) -> Problem:
        sub = self._sub
        return Problem(sub.loss, ElasticNet(C), sub.data, sub.fit_intercept)

    def first_base(self, grid: Grid, C: float, near: float) -> Base:
        """The base at the optimum of the pilot for C, or one step nearer to that of all rows.

        A step with their gradient and the Hessian of the pilot leaves a share of about sqrt(d/rows of the pilot).
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
        """The base at the optimum of all rows for C, from a base that is known.

        The pilot tells how the gradient departs from its linear model, for the way, and how the Hessian changes. Its
        last column is summed up over all rows: the intercept would feel an error there at first order.
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
                return known  # a step too far
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
        """N with E|r|^2 = e'N e, r what drawing rows leaves of H e: sum of change^2 |x|^2 (x - mu, 1)(x - mu, 1)'."""
        free = self._problem_at(np.inf)
        if self._squares is None:
            self._squares = row_norms(free)
        free.data.set_row_state(CURVATURE, change**2 * self._squares)
        return free.hessian(grid.mu, single=grid.single)


def predict_base(
    grid: Grid, known: Base, theta: FloatArray, change: FloatArray, noise: FloatArray
) -> Base:
    """The base at theta with the Hessians of a known one, each changed by its share of ``change`` (one sweep).

    The last column of each is summed up with the gradients.
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
    """Whether ``noise`` in the Hessian of a base at the optimum for C may show in the gap of models without a part.

    Their steps from there will be those from a known base, less that to the optimum.
    """
    whole = grid.step(known, C, -1)
    for f in grid.held_out:
        move = grid.step(known, C / grid.share(), f)
        if _shows(grid, noise, C, move.delta - whole.delta, tol * move.value):
            return True
    return False


def noisy(grid: Grid, base: Base, C: float, move: Move, tol: float) -> bool:
    """Whether a predicted Hessian may show in the gap of the model."""
    return base.noise is not None and _shows(grid, base.noise, C, move.delta, tol * move.value)


def _shows(grid: Grid, noise: FloatArray, C: float, step: FloatArray, gap: float) -> bool:
    """The residual r of a step enters the gap by |r|^2/(2 lam)."""
    e = step.copy()
    e[-1] += dot(grid.mu, e[:-1])
    return not 0.5 * C * dot(e, noise @ e) <= _UNSEEN * gap
