"""Newton's method for rows on a cluster: more operations, fewer rounds.

It begins at the optimum of a pilot, whose rows come to the client. Every round after that does all that a round can
do at one point: it tries to close the gap, makes the next sweep and its Hessian (in double precision: to ask again
would be a round), and looks along the step in case it was too long.

What makes Newton's method slow is a few rows whose loss is not quadratic as far as the step reaches: outliers, rows
with a feature that hardly any other row has, rows of a rare class. Each round finds them, within bounds, and they come
along with its sums. With these rows B at the client the next point is the minimiser of the model

    g.D + D'HD/2 + sum_{i in B} s_i (l(m_i + dm_i) - l(m_i) - l'(m_i) dm_i - l''(m_i) dm_i^2/2),

which is exact for B and Newton's for the others. The dual point of the certificate is Newton's own.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Dataset
from linsep.losses import Loss
from linsep.problem import Problem, Tried, dot
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.linalg.factor import solve_spd
from linsep.solvers.newton import native as native_newton
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import Cholesky, Step, centre_gradient
from linsep.solvers.run import HandOver, Run

FEATURES = 1000
PILOT_ROWS = 50  # per feature, of a pilot whose optimum leaves two or three rounds
PILOT_SHARE = 20  # one row of so many, at least
PILOT_ENTRIES = 1 << 20  # of a pilot, at least: 8 MB
PILOT_TOL = 1e-3
MODEL_ERROR = 1e-2  # of the quadratic model, in units of loss, above which a row is nonquadratic
# Nonquadratic rows of a round, about: their entries, or rows per feature.
NONQUADRATIC_ENTRIES, NONQUADRATIC_ROWS = 1 << 20, 4
ATTEMPTS = 3  # rounds for one step, each with more nonquadratic rows
# Steps after which few rows are brought to the client; of losses with straight tails.
FEW_STEPS, FEW_STRAIGHT = 4, 2
FEW_ENTRIES = 1 << 24  # of few rows: 128 MB
MODEL_STEPS = 50  # to minimise a model, at most: no rounds


def worthwhile(d: int, largest: int) -> bool:
    """Whether the Hessian of the largest part takes a worker no more than about two seconds: a round costs as much."""
    return d <= FEATURES and largest * float(d) ** 2 <= 2e10


def pilot_rows(data: sampling.Size) -> int:
    """Rows of the pilot."""
    least = max(PILOT_ROWS * data.d, PILOT_ENTRIES // data.d)
    return sampling.bounded(max(data.n // PILOT_SHARE, least), data)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """The whole fit. A table that is no larger than its pilot comes whole, and is certified where it lies."""
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
    if theta.any() and solution.status is Status.WORKING_PRECISION:  # the pilot led astray
        zero = np.zeros_like(theta)
        solution = newton.solve(problem, zero, stop, direction, Rounds(direction))
    return solution


class _Steps(Cholesky):
    """Newton's steps, no more than a few where the rows themselves are soon here."""

    tries = 0

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        few = FEW_STRAIGHT if run.problem.loss.straight_tails else FEW_STEPS
        if self.tries >= few and run.problem.data.n_entries <= FEW_ENTRIES:
            raise HandOver
        self.tries += 1
        return super().__call__(run, theta, value, g)


class Rounds:
    """The rounds of a fit, and the nonquadratic rows that they have brought."""

    def __init__(self, direction: _Steps) -> None:
        self._direction = direction
        self._nonquadratic: IntArray = np.zeros(0, dtype=np.int64)

    def __call__(
        self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray, dual: Linearised
    ) -> Tried:
        problem = run.problem
        for attempt in range(1, ATTEMPTS + 1):
            run.check_limits()
            trial = self._trial(problem, theta, g, dual)
            probe = NonquadraticProbe(
                problem.loss, theta, trial - theta, _most(problem), problem.data.n
            )
            tried, found = problem.closing_ahead(trial, dual, newton.HALVINGS, probe, probe.rows_of)
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
        """Newton's point, or the model's where some rows are nonquadratic."""
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
    """Odd rows that a round may bring; none where Newton's curvatures are mended by others."""
    if problem.loss.straight_tails:
        return 0
    return max(NONQUADRATIC_ENTRIES // problem.data.d, NONQUADRATIC_ROWS * problem.data.d)


@dataclass(frozen=True, eq=False)
class NonquadraticProbe:
    """Finds the nonquadratic rows of a block of n rows in all, no more than its share of ``most``."""

    loss: Loss
    base: FloatArray
    step: FloatArray
    most: int
    n: int

    def __call__(self, block: Block) -> tuple[IntArray]:
        """Their numbers."""
        none = np.zeros(0, dtype=np.int64)
        if not self.most:
            return (none,)
        m = block.margins(block.scores(self.base))
        change = block.sign[block.lo : block.hi] * block.scores(self.step)
        error = excess(self.loss, m, change)
        nonquadratic = np.flatnonzero(~(error <= MODEL_ERROR))
        first = block.first + block.lo
        share = self.most * (first + len(m)) // self.n - self.most * first // self.n
        if len(nonquadratic) > share:
            worst = np.argsort(
                -np.nan_to_num(block.weights() * error, nan=np.inf)[nonquadratic], kind="stable"
            )
            nonquadratic = np.sort(nonquadratic[worst[:share]])
        return (nonquadratic + first,)

    @staticmethod
    def rows_of(found: list[Any]) -> IntArray:
        """The rows found in some blocks."""
        return np.concatenate([rows for (rows,) in found])


def excess(loss: Loss, m: FloatArray, change: FloatArray) -> FloatArray:
    """How far the loss is from its quadratic model."""
    with np.errstate(all="ignore"):
        quadratic = loss.value(m) + change * (loss.slope(m) + 0.5 * loss.curvature(m) * change)
        out: FloatArray = np.abs(loss.value(m + change) - quadratic)
    return out


class Model:
    """The loss of a few rows, and the quadratic model of the others, in the coordinates (w, c)."""

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
        """Value and gradient of the model after a step, and the curvatures of its rows."""
        change = self._Z @ step
        m, H = self._m + change, self._H @ step
        left = self._s * self._loss.value(m) - self._value
        left -= change * (self._slope + 0.5 * self._h * change)
        slope = self._s * self._loss.slope(m) - self._slope - self._h * change
        value = dot(self._g, step) + 0.5 * dot(step, H) + float(left.sum())
        return value, self._g + H + slope @ self._Z, self._s * self._loss.curvature(m)

    def minimiser(self) -> FloatArray:
        """By Newton's method with halved steps; the model is convex."""
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
