"""The squared hinge where Newton's method keeps changing its mind: Mehrotra's interior point method.

Problem: min lam/2 |w|^2 + sum s xi^2 with xi >= t = 1 - m. With u = 2 xi the multiplier and r = u/2 - t >= 0 the slack
of a row, the optimum has u r = 0, and the central path u r = mu, which is u = t + sqrt(t^2 + 2 mu).

Newton's method on the squared hinge sees no row beyond its kink. Where the classes are all but separable and the
features not far fewer than the rows, every full step carries rows across, and it takes hundreds of short ones
(3,000 x 800, C = 100: 7 s). The path sees them coming: some fifteen iterations, a weighted Gram and five
reads of the rows each. It ends when the gap by Fenchel and Young, no term of which is negative, is below tol.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.data import Location
from linsep.errors import NonFinite
from linsep.problem.duality import dot
from linsep.problem.pointwise import CURVATURE
from linsep.solution import Explicit, Status
from linsep.solvers.linalg.factor import Factor

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.run import Run

_SQUARED_HINGE = (0.25, (0.0, np.inf), (1.0,))  # conjugate, domain and breakpoints
SHARE = 0.995  # of the way to the boundary
LIMIT = 60  # iterations
PATIENCE = 8  # iterations without progress
LARGEST = 4000  # features: a Gram of their order is factorised in every iteration
# Steps of Newton's method shorter than this, and how many of them are too many.
SHORT, MANY_SHORT = 0.3, 6


def applies(problem: Problem) -> bool:
    """Whether the loss is max(0, 1 - m)^2, by its conjugate u^2/4 - u on u >= 0, and the rows are dense, in memory."""
    data, loss = problem.data, problem.loss
    squared = (loss.conjugate_quadratic, loss.domain, loss.breakpoints) == _SQUARED_HINGE
    plain = squared and problem.native and problem.lam > 0.0 and not data.sparse
    return plain and data.location is Location.MEMORY and data.d <= LARGEST


class StallDetector:
    """Counts the short steps of Newton's method."""

    def __init__(self, problem: Problem) -> None:
        self._left = MANY_SHORT if applies(problem) else -1

    def ends(self, run: Run[Problem], theta: FloatArray, length: float) -> bool:
        """After too many of them: whether the path finds the optimum. If not, the rows are swept at theta again."""
        self._left -= length < SHORT
        if self._left != 0:
            return False
        self._left = -1
        if finish(run, theta) is Status.CERTIFIED:
            return True
        run.problem.value_gradient(theta)
        return False


class _Path:
    """An iterate: theta with its t, u and r; and what the rows are asked."""

    def __init__(self, problem: Problem, theta: FloatArray) -> None:
        self.problem, self.theta = problem, theta.copy()
        data = problem.data
        self._sign, self._centre = data.sign, problem.centre()
        self.s = np.ones(data.n) if data.weight is None else data.weight
        self._kink = 1.0 if data.offset is None else 1.0 - data.offset
        self.t = self._kink - self._along(self.theta)
        value = problem.penalty_value(theta) + dot(self.s, np.square(np.maximum(self.t, 0.0)))
        mu = value / float(self.s.sum())
        root = np.sqrt(np.square(self.t) + 2.0 * mu)
        # the same twice: far beyond the kink the first would cancel to 0
        self.u = np.where(self.t > 0.0, self.t + root, 2.0 * mu / (root + np.abs(self.t)))
        self.r = mu / self.u
        self.value, self.gap = value, np.inf
        self._v = np.zeros(problem.order)

    def _along(self, theta: FloatArray) -> FloatArray:
        """sigma (x.w + b) of every row."""
        z = np.empty(self.problem.data.n)

        def add(b: Block, out: FloatArray) -> None:
            part = slice(b.first + b.lo, b.first + b.hi)
            _kernels.scores(b.rows, b.lo, b.hi, theta, z[part])

        self.problem.passes += 1
        self.problem.data.sum(add, 1)
        return z * self._sign

    def _gathered(self, a: FloatArray) -> FloatArray:
        """sum a sigma (x, 1)."""
        mass = a * self._sign

        def add(b: Block, out: FloatArray) -> None:
            _kernels.combine(b.rows, b.lo, b.hi, mass[b.first : b.first + b.rows.n], out)

        self.problem.passes += 1
        out: FloatArray = self.problem.data.sum(add, self.problem.order)
        if not self.problem.fit_intercept:
            out[-1] = 0.0
        return out

    def measure(self) -> None:
        """Objective and gap here."""
        problem, w = self.problem, self.theta[:-1]
        self._v = self._gathered(self.s * self.u)
        active = np.maximum(self.t, 0.0)
        self.value = problem.penalty_value(self.theta) + dot(self.s, np.square(active))
        slack = np.square(active) + np.square(self.u) / 4 - self.u * self.t
        off = problem.lam * w - self._v[:-1]
        self.gap = dot(self.s, slack) + 0.5 * dot(off, off) / problem.lam
        self.gap += abs(float(self._v[-1] * self.theta[-1]))

    def advance(self) -> float:
        """One step, predicted and corrected; how long it is."""
        u, r, problem = self.u, self.r, self.problem
        weight = self.s / (r / u + 0.5)
        problem.data.set_row_state(CURVATURE, weight)
        factor, mu = Factor(problem.hessian(self._centre), definite=True), self._centre
        amiss = r - u / 2 + self.t

        def step(aim: FloatArray | float) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
            """Towards u r = aim: of theta, of the margins, of u and of r."""
            c = (aim - u * r + u * amiss) / (u / 2 + r)
            rhs = self._v + self._gathered(self.s * c)
            rhs[:-1] -= problem.lam * self.theta[:-1] + mu * rhs[-1]
            delta = factor.solve(rhs)
            delta[-1] -= dot(mu, delta[:-1])
            dm = self._along(delta)
            du = c - dm / (r / u + 0.5)
            return delta, dm, du, du / 2 + dm - amiss

        both = dot(self.s, u * r)
        _, _, du, dr = step(0.0)
        length = min(_reach(u, du), _reach(r, dr))
        left = dot(self.s, (u + length * du) * (r + length * dr)) / both
        delta, dm, du, dr = step(left**3 * both / float(self.s.sum()) - du * dr)
        length = SHARE * min(_reach(u, du), _reach(r, dr))
        length = min(1.0, length)
        self.theta = self.theta + length * delta
        self.t, self.u, self.r = self.t - length * dm, u + length * du, r + length * dr
        return length

    def refresh(self) -> None:
        """The margins afresh, against drift."""
        self.t = self._kink - self._along(self.theta)


def _reach(x: FloatArray, dx: FloatArray) -> float:
    """How far x + reach dx stays >= 0: more than 1 if all of the step does."""
    worst = float(np.max(-dx / x))
    return 1.0 / worst if worst > 0.9 else 1.0 / 0.9


def finish(run: Run[Problem], theta: FloatArray) -> Status:
    """Follow the path from the point of it nearest to theta; the best point is kept in the run."""
    path, target, least, idle = _Path(run.problem, theta), 0.3 * run.stop.tol, np.inf, 0
    try:
        for k in range(1, LIMIT + 1):
            run.check_limits()
            path.measure()
            if not np.isfinite(path.gap):
                break
            if path.gap <= target * path.value:
                path.refresh()
                if run.close(path.theta, Explicit(np.maximum(path.u, 0.0))):
                    return Status.CERTIFIED
                target *= 0.1
            idle = 0 if path.gap < 0.9 * least else idle + 1
            least = min(least, path.gap)
            if idle == PATIENCE or not path.advance() > 1e-8:
                break
            if k % 8 == 0:
                path.refresh()
    except NonFinite:  # the Gram overflowed
        pass
    return Status.WORKING_PRECISION
