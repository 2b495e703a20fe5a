"""Mehrotra's interior point method for squared and Huberised hinges, where Newton's method takes many short steps.

Problem: min lam/2 |w|^2 + sum s l(m), where l is quadratic below the margin and flat beyond it, perhaps straight far
below: l(m) = max of u t - a u^2/2 over low <= u <= high with t = 1 - m (``quadratic_rows.py``). For the squared hinge
u r = 0 at the optimum, with the slack r = u/2 - t >= 0, and the central path u r = mu is u = t + sqrt(t^2 + 2 mu).

In Newton's method rows beyond the kink have no curvature. If the classes are nearly separable and the features not far
fewer than the rows, every full step moves rows across the kink, and hundreds of short steps are needed (3,000 x 800,
C = 100: 7 s). On the central path all rows have curvature: about fifteen iterations suffice, each with a weighted Gram
matrix and five reads of the rows. The method ends when the Fenchel-Young gap, no term of which is negative, is below
tol.

Reference: Mehrotra, On the implementation of a primal-dual interior point method, 1992 (``mehrotra.py``).
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.losses import zero_margin
from linsep.problem import Problem
from linsep.problem.duality import dot
from linsep.problem.pointwise import CURVATURE
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.interior import quadratic_rows
from linsep.solvers.interior.mehrotra import PredictorCorrector, step_to_boundary
from linsep.solvers.interior.quadratic_rows import RowPath, RowStep
from linsep.solvers.linalg.factor import Factor
from linsep.solvers.run import LimitReached, Run, linearised

LIMIT = 60  # iterations
PATIENCE = 8  # iterations without progress
MAX_FEATURES = 4000  # a Gram matrix of the features is factorised in every iteration


def applies(problem: Problem) -> bool:
    """Return whether the loss is quadratic below the margin and flat beyond it, and the rows are in memory."""
    data, loss = problem.data, problem.loss
    hinge = quadratic_rows.applies(loss) and loss.flat_beyond_margin
    plain = hinge and problem.lam > 0.0
    return plain and data.location is Location.MEMORY and data.d <= MAX_FEATURES


class _Path(PredictorCorrector):
    """Iterate: theta with t of every row, and the rows' dual variables and multipliers."""

    def __init__(self, problem: Problem, theta: FloatArray) -> None:
        self.problem, self.theta = problem, theta.copy()
        data = problem.data
        self._sign, self._centre = data.sign, problem.centre()
        self.s = np.ones(data.n) if data.weight is None else data.weight
        self.rows = RowPath(problem.loss, self.s)
        self._kink = zero_margin(problem.loss) - (0.0 if data.offset is None else data.offset)
        self.t: FloatArray = self._kink - self._signed_scores(theta)
        value = problem.penalty_value(theta) + self.rows.value(self.t)
        self.rows.begin(self.t, value / float(self.s.sum()))
        self._v = np.zeros(problem.order)

    def _signed_scores(self, theta: FloatArray) -> FloatArray:
        """Signed scores sigma (x.w + b) of all rows. One pass."""
        self.problem.passes += 1
        return self.problem.data.scores(theta) * self._sign

    def _combine(self, a: FloatArray) -> FloatArray:
        """Return sum a sigma (x, 1) over the rows. One pass."""
        self.problem.passes += 1
        out = self.problem.data.combine(a * self._sign)
        if not self.problem.fit_intercept:
            out[-1] = 0.0
        return out

    def measure(self) -> None:
        """Compute objective and gap, without cancellation as no term of the gap is negative. One pass."""
        problem, w = self.problem, self.theta[:-1]
        self.rows.hold()
        self._v = self._combine(self.s * self.rows.u)
        self.value = problem.penalty_value(self.theta) + self.rows.value(self.t)
        dual_residual = problem.lam * w - self._v[:-1]
        self.gap = self.rows.slack(self.t) + 0.5 * dot(dual_residual, dual_residual) / problem.lam
        self.gap += abs(float(self._v[-1] * self.theta[-1]))

    def complementarity(self) -> tuple[float, float]:
        return self.rows.products(), self.rows.ends * float(self.s.sum())

    def predict(self) -> float:
        self._ratio = self.rows.ratio
        self.problem.data.set_row_state(CURVATURE, self.s / self._ratio)
        self._factor = Factor(self.problem.hessian(self._centre), definite=True)
        self._found = self._step_to(0.0, None)
        first = self._found.rows
        length = step_to_boundary(self.rows.blocking(first))
        return self.rows.products(length, first) / self.rows.products()

    def correct(self, mu: float) -> float:
        self._found = self._step_to(mu, self._found.rows)
        return self.rows.blocking(self._found.rows)

    def take(self, length: float) -> None:
        found = self._found
        self.theta = self.theta + length * found.theta
        self.t = self.t - length * found.margins
        self.rows.move(length, found.rows)

    def _step_to(self, mu: float, first: RowStep | None) -> _Step:
        """Return the step towards u r = mu, corrected by the products of the changes in ``first``. Two passes."""
        c = self.rows.change(self.t, self._ratio, mu, first)
        rhs = self._v + self._combine(self.s * c)
        rhs[:-1] -= self.problem.lam * self.theta[:-1] + self._centre * rhs[-1]
        delta = self._factor.solve(rhs)
        delta[-1] -= dot(self._centre, delta[:-1])
        dm = self._signed_scores(delta)
        return _Step(delta, dm, self.rows.step(c - dm / self._ratio, mu, first))

    def refresh(self) -> None:
        self.t = self._kink - self._signed_scores(self.theta)


class _Step(NamedTuple):
    """Changes of theta, of the margins, and of the rows' dual variables and multipliers."""

    theta: FloatArray
    margins: FloatArray
    rows: RowStep


def finish(run: Run[Problem], theta: FloatArray) -> bool:
    """Follow the path from near theta; return whether the gap closed. The run stores the best point."""
    path, target = _Path(run.problem, theta), 0.3 * run.stop.tol

    def ends() -> bool:
        nonlocal target
        if path.gap > target * path.value:
            return False
        target *= 0.1
        path.refresh()
        return run.close(path.theta, Explicit(np.clip(path.rows.u, *run.problem.loss.domain)))

    return path.follow(ends, run.check_limits, LIMIT, PATIENCE)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve by following the central path from near theta."""
    run, status = Run(problem, stop), Status.WORKING_PRECISION
    try:
        with run.in_time():
            if finish(run, theta):
                status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, linearised(theta, np.zeros_like(theta)))
