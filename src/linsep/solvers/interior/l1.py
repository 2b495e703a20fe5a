"""Interior point method for piecewise quadratic losses with an L1 penalty, where Newton's method stalls.

Problem: min l2/2 |w|^2 + l1 |w|_1 + sum s l(m) with l(m) = max of u t - a u^2/2 over low <= u <= high, t = centre - m:

===============  ==========  =====  ===
loss             low         high   a
===============  ==========  =====  ===
squared          -inf        inf    1/2
squared_hinge    0           inf    1/2
huber            -width      width  1
huberised_hinge  0           1      width
===============  ==========  =====  ===

Rows: r >= 0 is the multiplier of u >= low, g >= 0 that of u <= high, and r - g = a u - t. Features: w = p - q with
p, q >= 0 and multipliers l1 + y, l1 - y, where y = l2 w - v and v = sum s sigma u x. On the central path
(u - low) r = (high - u) g = p (l1 + y) = q (l1 - y) = mu. An infinite end has no multiplier.

If the classes are separable and the penalty is weak, or the targets of the Huber loss are many times its width, hardly
any row has curvature, and the model of a Newton step is nearly a linear programme: its support changes by a feature or
two at a time, or it has no minimum. The central path takes about twenty iterations. It starts at a feasible dual point,
the slopes of the losses scaled down until |v_j| < l1, so that few rows and few features matter in every step. All
features are checked in every iteration, and join the working set when |v_j| is close to l1.

With h = s / (r/(u - low) + g/(high - u) + a) and e = p/(l1 + y) + q/(l1 - y) a step solves (1/e + l2 + X'hX) dw = rhs:
``solvers/linalg/schur_cg.py``.

Reference: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Location
from linsep.losses import zero_margin
from linsep.problem import Problem
from linsep.problem.duality import dot
from linsep.solution import Explicit
from linsep.solvers.interior import quadratic_rows
from linsep.solvers.interior.mehrotra import PredictorCorrector, blocking, step_to_boundary
from linsep.solvers.interior.quadratic_rows import RowPath, RowStep
from linsep.solvers.linalg.schur_cg import AFFORDABLE, EXPENSIVE, Part, System
from linsep.solvers.run import LimitReached, Run

LIMIT = 80  # iterations
PATIENCE = 25  # iterations without progress
NEARLY = 0.8  # a feature joins the working set if |v_j| exceeds this times l1
INSIDE = 0.95  # largest |v_j| of the first dual point, relative to l1
WITHIN = 0.9  # largest |y| of a feature that joins, relative to l1
FIRST_MU = 0.01  # initial mu, relative to the objective per unit of weight
# Final Newton steps: |v_j|/l1 from which a feature takes part, number of steps, number of attempts.
AT, POLISHES, TRIES = 0.999, 3, 3
STRIDE, BETWEEN = 50.0, 0.1  # factor between intermediate penalties, and the relative gap there
# Relative residuals of predicted and corrected steps: with a factor, and without one, where accuracy is expensive.
EXACT, INEXACT = (1e-3, 1e-6), (1e-2, 1e-3)


class Columns(Protocol):
    """A point theta with few nonzero features, and access to the columns of X (``solvers/l1/coordinate.py``)."""

    theta: FloatArray
    base: FloatArray  # point of the last Newton step
    step: FloatArray
    scores: FloatArray
    times: float  # penalty of the last solve, in units of the target

    def move(self, theta: FloatArray) -> None:
        """Set theta and recompute the scores. One pass."""

    def part(self, chosen: IntArray) -> Part:
        """Return the chosen columns."""

    def sums(self, a: FloatArray) -> FloatArray:
        """Return X'a. One pass."""

    def solve(self, groups: IntArray, times: float, tol: float, steps: int) -> tuple[int, float]:
        """Make at most ``steps`` Newton steps on features at ``times`` the penalty; return status and gap."""


class _Path(PredictorCorrector):
    """Iterate: u, r and g of the rows, p, q and y of the chosen features, and the intercept."""

    def __init__(self, problem: Problem, columns: Columns, l1: float) -> None:
        data = problem.data
        self.problem, self._columns = problem, columns
        self.l1, self.l2 = l1, problem.lam
        self.sign = data.sign
        self.s = np.ones(data.n) if data.weight is None else data.weight
        self.rows = RowPath(problem.loss, self.s)
        self._vertex = np.full(data.n, zero_margin(problem.loss))
        if data.offset is not None:
            self._vertex -= data.offset
        self.b, w = float(columns.theta[-1]), columns.theta[:-1]
        t = self._vertex - self.sign * columns.scores
        value = problem.penalty_value(columns.theta) + self.l1 * float(np.abs(w).sum())
        value += self.rows.value(t)
        mu = FIRST_MU * value / float(self.s.sum())
        self.v = np.zeros(data.d)
        self._begin_rows(t, mu)
        self.chosen = np.flatnonzero((w != 0.0) | (np.abs(self.v) > NEARLY * self.l1))
        self.p, self.q, self.y = self._begin(self.chosen, w[self.chosen], mu)
        self.part = columns.part(self.chosen)
        self._free = np.ones(len(self.p), dtype=bool)
        self._price = AFFORDABLE
        self.best = columns.theta.copy(), self.rows.u  # the iterate with the smallest gap

    def _begin_rows(self, t: FloatArray, mu: float) -> None:
        """Start the rows at a feasible dual point."""
        u = self.rows.slopes(t)
        u = u * min(1.0, INSIDE * self.l1 / max(self._compute_v(u), 1e-300))
        u = self.rows.move_inside(u, t, mu)
        largest = self._compute_v(u)
        if largest > INSIDE * self.l1:
            u = u * (INSIDE * self.l1 / largest)
            self.v *= INSIDE * self.l1 / largest
        self.rows.place(u, t, mu)

    @property
    def u(self) -> FloatArray:
        """The dual variables of the rows."""
        return self.rows.u

    def _compute_v(self, u: FloatArray) -> float:
        """Compute v of all features at u; return the largest |v_j|. One pass."""
        self.v = self._columns.sums(self.s * self.sign * u)
        return float(np.abs(self.v).max(initial=0.0))

    def _begin(
        self, who: IntArray, w: FloatArray, mu: float
    ) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Return p, q and y near the central path for features with these weights."""
        most = WITHIN * self.l1
        y = np.clip(self.l2 * w - self.v[who], -most, most)
        p, q = mu / (self.l1 + y), mu / (self.l1 - y)
        return np.where(w > 0.0, q + w, p), np.where(w < 0.0, p - w, q), y

    def measure(self) -> None:
        """Compute objective and gap with all features; add features with |v_j| close to l1. One pass."""
        self.rows.hold()
        largest = self._compute_v(self.u)
        w = self.p - self.q
        self.t = self._vertex - self.sign * (self.part.along(w) + self.b)
        self._v_b = dot(self.s * self.sign, self.u) if self.problem.fit_intercept else 0.0
        v = self.v[self.chosen]
        over = np.maximum(np.abs(self.v) - self.l1, 0.0)
        size = 0.5 * self.l2 * dot(w, w) + self.l1 * float(np.abs(w).sum())
        self.value = size + self.rows.value(self.t)
        # sum of the Fenchel-Young gaps of rows and features
        gap = self.rows.slack(self.t) + size - dot(v, w) + abs(self._v_b * self.b)
        if self.l2 > 0.0:
            self.gap = gap + 0.5 * dot(over, over) / self.l2
        else:
            self.gap = self.value - (self.value - gap) * min(1.0, self.l1 / max(largest, 1e-300))
        wanting = np.abs(self.v) > NEARLY * self.l1
        wanting[self.chosen] = False
        if wanting.any():
            self._join(np.flatnonzero(wanting))

    def _join(self, who: IntArray) -> None:
        p, q, y = self._begin(who, np.zeros(len(who)), self._products() / self._mass())
        self.chosen = np.append(self.chosen, who)
        self.p, self.q = np.append(self.p, p), np.append(self.q, q)
        self.y = np.append(self.y, y)
        self.part = self._columns.part(self.chosen)
        self.t = self._vertex - self.sign * (self.part.along(self.p - self.q) + self.b)

    def _share(self) -> float:
        return self.part.entries / max(1, self.problem.data.n_entries)

    def _mass(self) -> float:
        return self.rows.ends * float(self.s.sum()) + 2 * len(self.p)

    def _products(self, length: float = 0.0, step: _Step | None = None) -> float:
        """Return the sum of all complementarity products after a step of this size."""
        p, q, y = self.p, self.q, self.y
        if step is not None:
            p, q, y = p + length * step.p, q + length * step.q, y + length * step.y
        rows = self.rows.products(length, step.rows if step is not None else None)
        return rows + dot(p, self.l1 + y) + dot(q, self.l1 - y)

    def complementarity(self) -> tuple[float, float]:
        return self._products(), self._mass()

    def predict(self) -> float:
        rows, up, down = self.rows, self.l1 + self.y, self.l1 - self.y
        self._e, self._ratio = self.p / up + self.q / down, rows.ratio
        self._system = System(
            self.part,
            1.0 / self._e + self.l2,
            self.s / self._ratio,
            self.problem.fit_intercept,
            self._price,
        )
        rough, self._fine = EXACT if self._system.factored else INEXACT
        self._found = first = self._step_to(0.0, None, rough)
        return self._products(step_to_boundary(self._blocking(first)), first) / self._products()

    def correct(self, mu: float) -> float:
        self._found = self._step_to(mu, self._found, self._fine)
        return self._blocking(self._found)

    def take(self, length: float) -> None:
        found, system = self._found, self._system
        self.rows.move(length, found.rows)
        self.p, self.q = self.p + length * found.p, self.q + length * found.q
        self.y = self.y + length * found.y
        self.b += length * found.b
        self._free = self._e * system.squares > 1.0
        if system.stuck:  # allow more expensive factors from now on
            self._price = EXPENSIVE
        self.problem.passes += self._share() * (2 * system.gradients + 8)

    def _step_to(self, mu: float, first: _Step | None, tol: float) -> _Step:
        """Return the step towards products mu, corrected by the products of the changes in ``first``."""
        rows, p, q, part, sign = self.rows, self.p, self.q, self.part, self.sign
        up, down, e, ratio = self.l1 + self.y, self.l1 - self.y, self._e, self._ratio
        before = None if first is None else first.rows
        c = rows.change(self.t, ratio, mu, before)
        ups, downs = (mu, mu) if first is None else (mu - first.p * first.y, mu + first.q * first.y)
        cp, cq = ups - p * up, downs - q * down
        ahead = cp / up - cq / down
        rhs = part.combine(self.s * sign * c)
        rhs[:-1] += ahead / e + (self.y + self.v[self.chosen] - self.l2 * (p - q))
        rhs[-1] = rhs[-1] + self._v_b if self.problem.fit_intercept else 0.0
        delta = self._system.solve(rhs, tol)
        du = c - sign * (part.along(delta[:-1]) + delta[-1]) / ratio
        dy = (ahead - delta[:-1]) / e
        moved = rows.step(du, mu, before)
        return _Step(moved, (cp - p * dy) / up, (cq + q * dy) / down, dy, delta[-1])

    def _blocking(self, step: _Step) -> float:
        return max(
            self.rows.blocking(step.rows),
            blocking(self.p, step.p),
            blocking(self.q, step.q),
            blocking(self.l1 + self.y, step.y),
            blocking(self.l1 - self.y, -step.y),
        )

    def keep(self) -> None:
        self.best = self.theta(), self.u

    def nearly_there(self) -> bool:
        """Return whether the gap is small enough for a warm start at a weaker penalty."""
        return self.gap <= BETWEEN * self.value

    def theta(self) -> FloatArray:
        """Return the weights, with those set to 0 whose multipliers outweigh their curvature."""
        out = np.zeros(self.problem.order)
        free = np.zeros(len(self.p), dtype=bool)
        free[: len(self._free)] = self._free
        out[self.chosen] = np.where(free, self.p - self.q, 0.0)
        out[-1] = self.b
        return out


class _Step(NamedTuple):
    """Changes of the rows, of p, q, y and of the intercept."""

    rows: RowStep
    p: FloatArray
    q: FloatArray
    y: FloatArray
    b: float


def applies(problem: Problem) -> bool:
    """Return whether the loss is piecewise quadratic and smooth, and the rows are in memory."""
    return quadratic_rows.applies(problem.loss) and problem.data.location is Location.MEMORY


def finish(run: Run[Problem], columns: Columns) -> bool:
    """Follow the path from near the point of ``columns``; return whether the gap closed. The run stores the best point.

    If the last penalty is far above the target, paths for intermediate penalties are followed first, to a rough gap.
    """
    asked = run.problem.penalty.l1
    with np.errstate(all="ignore"):  # values that are not finite end the path
        l1 = columns.times * asked
        while l1 > STRIDE * asked:
            l1 /= STRIDE
            path = _Path(run.problem, columns, l1)
            if _follow(run, path, path.nearly_there):
                columns.move(path.theta())
        path = _Path(run.problem, columns, asked)
        ending = _Ending(run, path, columns)
        try:
            if _follow(run, path, ending) or ending.closed:
                return True
            run.close(path.best[0], Explicit(path.best[1]))
            return False
        except LimitReached:
            run.close(path.best[0], Explicit(path.best[1]))
            raise


def _follow(run: Run[Problem], path: _Path, ends: Callable[[], bool]) -> bool:
    """Iterate until ``ends`` or no further progress; return whether ``ends`` was met."""
    return path.follow(lambda: path.steps > 0 and ends(), run.check_limits, LIMIT, PATIENCE)


class _Ending:
    """Stopping rule: the gap has closed, also after a few final Newton steps.

    If there are several optima, the path leads to their centre, and Newton's method to a sparser one with exact zeros.
    If it does not converge in a few steps, the path is followed further before the next attempt.
    """

    def __init__(self, run: Run[Problem], path: _Path, columns: Columns) -> None:
        self._run, self._path, self._columns = run, path, columns
        self._target, self._tries = 0.5 * run.stop.tol, TRIES
        self.closed = False

    def __call__(self) -> bool:
        path = self._path
        if path.gap > self._target * path.value:
            return False
        self._target *= 0.1
        if not self._run.close(path.theta(), Explicit(path.u)):
            return False
        self.closed = True
        self._tries -= 1
        return self._polish() or self._tries == 0

    def _polish(self) -> bool:
        path, columns, run = self._path, self._columns, self._run
        columns.move(path.theta())
        near = (columns.theta[:-1] != 0.0) | (np.abs(path.v) > AT * path.l1)
        columns.solve(np.flatnonzero(near), 1.0, 0.3 * run.stop.tol, POLISHES)
        return run.close(columns.theta, self._dual())

    def _dual(self) -> Explicit:
        """Return the Newton-dual point with explicit dual variables.

        Margins are so close to the kink that their rounding changes u: recomputing u would give a different point.
        """
        columns, problem = self._columns, self._run.problem
        data, loss = problem.data, problem.loss
        sign, offset = data.sign, 0.0 if data.offset is None else data.offset
        m = sign * (data.X @ columns.base[:-1] + columns.base[-1]) + offset
        moved = sign * (data.X @ columns.step[:-1] + columns.step[-1])
        u = -(loss.slope(m) + loss.curvature(m) * moved)
        return Explicit(np.clip(u, *loss.domain))
