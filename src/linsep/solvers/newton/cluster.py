"""Newton's method for rows on a cluster, with more operations in fewer rounds.

The start is the optimum of a pilot whose rows are copied to the client. Every further round computes all that may be
needed at one point: the closing sums, the next gradient and Hessian (in double precision, because repeating it would
take a round), and the objective along the step in case the step is too long.

Newton's method is slow because of few rows whose loss is far from quadratic over the length of a step: outliers, rows
with a rare feature, rows of a rare class. Each round finds such rows, up to a limit, and returns them with its sums.
With these rows B at the client the next point is the minimiser of the model

    g.D + D'HD/2 + sum_{i in B} s_i (l(m_i + dm_i) - l(m_i) - l'(m_i) dm_i - l''(m_i) dm_i^2/2),

which is exact for B and quadratic for the others. The dual point of the certificate is that of the Newton step.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Dataset
from linsep.losses import Loss
from linsep.problem import Problem, TrialPoint, dot
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.linalg.factor import solve_spd
from linsep.solvers.newton import native as native_newton
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import Cholesky, Step, centre_gradient
from linsep.solvers.run import HandOver, Run

FEATURES = 1000
PILOT_ROWS = 50  # rows per feature of a pilot: two or three rounds are left from its optimum
PILOT_SHARE = 20  # the pilot has at least one in this many rows
PILOT_ENTRIES = 1 << 20  # smallest pilot [entries]: 8 MB
PILOT_TOL = 1e-3
MODEL_ERROR = 1e-2  # error of the quadratic model [loss] above which a row is nonquadratic
# Approximate limit on the nonquadratic rows of a round: their entries, or rows per feature.
NONQUADRATIC_ENTRIES, NONQUADRATIC_ROWS = 1 << 20, 4
ATTEMPTS = 3  # rounds for one step, each with more nonquadratic rows
# Steps after which a small data set is copied to the client; the second for losses with straight tails.
FEW_STEPS, FEW_STRAIGHT = 4, 2
FEW_ENTRIES = 1 << 24  # largest data set that is copied [entries]: 128 MB
MODEL_STEPS = 50  # Newton steps on a model, which need no rounds


def worthwhile(d: int, largest: int) -> bool:
    """Return whether the Hessian of the largest partition takes a worker at most about 2 s, the cost of a round."""
    return d <= FEATURES and largest * float(d) ** 2 <= 2e10


def pilot_rows(data: sampling.Size) -> int:
    """Return the number of rows of the pilot."""
    least = max(PILOT_ROWS * data.d, PILOT_ENTRIES // data.d)
    return sampling.limit_to_memory(max(data.n // PILOT_SHARE, least), data)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Fit on a cluster. A data set no larger than its pilot is solved at the client and certified on the cluster."""
    data, mu = problem.data, None
    m = pilot_rows(data)
    if not theta.any():
        first = sampling.sub_problem(problem, m, seed)
        tol = stop.tol if m >= data.n else PILOT_TOL
        theta, mu = native_newton.pilot_optimum(first, theta, tol), first.centre()
    mu = problem.centre() if mu is None else mu
    problem.expect_hessian(mu, single=False)
    direction = _Steps(mu, exact=True)
    solution = newton.solve(problem, theta, stop, direction, Rounds(direction))
    if theta.any() and solution.status is Status.WORKING_PRECISION:  # the start was misleading
        zero = np.zeros_like(theta)
        solution = newton.solve(problem, zero, stop, direction, Rounds(direction))
    return solution


class _Steps(Cholesky):
    """Newton steps; hands over after a few if the data set is small enough to be copied to the client."""

    tries = 0

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        few = FEW_STRAIGHT if run.problem.loss.straight_tails else FEW_STEPS
        if self.tries >= few and run.problem.data.n_entries <= FEW_ENTRIES:
            raise HandOver
        self.tries += 1
        return super().__call__(run, theta, value, g)


class Rounds:
    """Rounds of a fit, with the nonquadratic rows collected so far."""

    def __init__(self, direction: _Steps) -> None:
        self._direction = direction
        self._nonquadratic: IntArray = np.zeros(0, dtype=np.int64)

    def __call__(
        self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray, dual: Linearised
    ) -> TrialPoint:
        problem = run.problem
        for attempt in range(1, ATTEMPTS + 1):
            run.check_limits()
            trial = self._trial(problem, theta, g, dual)
            probe = NonquadraticProbe(
                problem.loss, theta, trial - theta, _most(problem), problem.data.n
            )
            tried, found = problem.closing_with_trial(
                trial, dual, newton.HALVINGS, probe, probe.rows_of
            )
            nonquadratic = np.setdiff1d(probe.rows_of(found), self._nonquadratic)
            if len(self._nonquadratic) + len(nonquadratic) > 4 * probe.most:
                self._nonquadratic = np.sort(nonquadratic)
            else:
                self._nonquadratic = np.union1d(self._nonquadratic, nonquadratic)
            if tried.value < value or not len(nonquadratic) or attempt == ATTEMPTS:
                break
            self._direction.tries += 1
        return tried

    def _trial(
        self, problem: Problem, theta: FloatArray, g: FloatArray, dual: Linearised
    ) -> FloatArray:
        """Return the next point: the Newton point, or the minimiser of the model if there are nonquadratic rows."""
        newtons = theta + np.ascontiguousarray(dual.step[:, 0])
        if not len(self._nonquadratic):
            return newtons
        mu = self._direction.mu
        rows = problem.data.sample(self._nonquadratic)
        model = Model(problem.loss, rows, theta, mu, self._direction.H, centre_gradient(g, mu))
        step = model.minimiser()
        step[-1] -= mu @ step[:-1]
        return theta + step if np.isfinite(step).all() and step.any() else newtons


def _most(problem: Problem) -> int:
    """Largest number of nonquadratic rows of a round; 0 for losses with straight tails, which use secant curvatures."""
    if problem.loss.straight_tails:
        return 0
    return max(NONQUADRATIC_ENTRIES // problem.data.d, NONQUADRATIC_ROWS * problem.data.d)


@dataclass(frozen=True, eq=False)
class NonquadraticProbe:
    """Find the nonquadratic rows of a block, at most its share of ``most``; n is the number of rows of all blocks."""

    loss: Loss
    base: FloatArray
    step: FloatArray
    most: int
    n: int

    def __call__(self, block: Block) -> tuple[IntArray]:
        """Return the numbers of the nonquadratic rows of a block."""
        none = np.zeros(0, dtype=np.int64)
        if not self.most:
            return (none,)
        change = block.sign[block.lo : block.hi] * block.scores(self.step)
        with np.errstate(
            all="ignore"
        ):  # the loss and its model both lie within this of the tangent
            bound = 0.5 * self.loss.curvature_bound * change * change
        large = np.flatnonzero(~(bound <= MODEL_ERROR))
        if not len(large):
            return (none,)
        m = block.margins(block.scores(self.base))
        error = excess(self.loss, m[large], change[large])
        nonquadratic = ~(error <= MODEL_ERROR)
        rows, error = large[nonquadratic], error[nonquadratic]
        first = block.first + block.lo
        share = self.most * (first + len(m)) // self.n - self.most * first // self.n
        if len(rows) > share:
            loss = np.nan_to_num(block.weights()[rows] * error, nan=np.inf)
            rows = np.sort(rows[np.argsort(-loss, kind="stable")[:share]])
        return (rows + first,)

    @staticmethod
    def rows_of(found: list[Any]) -> IntArray:
        """Concatenate the rows found in several blocks."""
        return np.concatenate([rows for (rows,) in found])


def excess(loss: Loss, m: FloatArray, change: FloatArray) -> FloatArray:
    """Absolute error of the quadratic model of the loss at margin m for this change of it."""
    with np.errstate(all="ignore"):
        quadratic = loss.value(m) + change * (loss.slope(m) + 0.5 * loss.curvature(m) * change)
        out: FloatArray = np.abs(loss.value(m + change) - quadratic)
    return out


class Model:
    """Exact loss of a few rows plus the quadratic model of the others, in the coordinates (w, c)."""

    def __init__(
        self,
        loss: Loss,
        rows: Dataset,
        theta: FloatArray,
        mu: FloatArray,
        H: FloatArray,
        g: FloatArray,
    ) -> None:
        X = np.asarray(rows.X, dtype=np.float64)
        s = np.ones(rows.n) if rows.weight is None else rows.weight
        self._loss, self._s = loss, s
        self._m = rows.sign * (X @ theta[:-1] + theta[-1])
        if rows.offset is not None:
            self._m = self._m + rows.offset
        self._Z = rows.sign[:, None] * np.column_stack([X - mu, np.ones(rows.n)])
        self._value, self._slope = s * loss.value(self._m), s * loss.slope(self._m)
        self._h = s * loss.curvature(self._m)
        self._H, self._g = H, g
        if not H[-1, -1] > 0.0:  # no intercept
            self._Z[:, -1] = 0.0

    def _at(self, step: FloatArray) -> tuple[float, FloatArray, FloatArray]:
        """Return value and gradient of the model after a step, and the curvatures of its rows."""
        change = self._Z @ step
        m, H = self._m + change, self._H @ step
        left = self._s * self._loss.value(m) - self._value
        left -= change * (self._slope + 0.5 * self._h * change)
        slope = self._s * self._loss.slope(m) - self._slope - self._h * change
        value = dot(self._g, step) + 0.5 * dot(step, H) + float(left.sum())
        return value, self._g + H + slope @ self._Z, self._s * self._loss.curvature(m)

    def minimiser(self) -> FloatArray:
        """Minimise the model, which is convex, by Newton's method with step halving; return the step."""
        at = np.zeros_like(self._g)
        with np.errstate(all="ignore"):
            value, g, h = self._at(at)
            for _ in range(MODEL_STEPS):
                more = (self._Z.T * (h - self._h)) @ self._Z
                step = solve_spd(self._H + more, -g, definite=True)
                decrement = -dot(g, step)
                if not decrement > 1e-9 * abs(value):
                    break
                length = 1.0
                new = self._at(at + step)
                while not new[0] <= value - 1e-4 * length * decrement and length > 1e-9:
                    length *= 0.5
                    new = self._at(at + length * step)
                if not new[0] < value:
                    break
                at, (value, g, h) = at + length * step, new
        return at
