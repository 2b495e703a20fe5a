"""Central path of the losses with one kink: passes and steps (derived in kernels/interior/passes.hpp).

Problem: min lam/2 |w|^2 - c.theta + sum s l(m) with l(m) = max of u (kink - m) over lo <= u <= hi: the hinge (u in
[0, 1], kink 1), the absolute loss ([-1, 1], 1) and the perceptron's ([0, 1], 0). Each iteration computes one weighted
Gram matrix, solves twice with it, and reads the rows four times; a centrality corrector takes one more solve and two
reads. ``kinked.py`` follows the path for all rows, ``sifting.py`` for the reduced problems of its bands, which have a
linear term c.

Without a penalty (the absolute loss) an infeasible dual point gives no bound, so the gap includes the dual
infeasibility (``solvers/dual_infeasibility.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.losses import Loss
from linsep.problem import Problem, dot
from linsep.problem.pointwise import CURVATURE
from linsep.solvers.dual_infeasibility import DualInfeasibility
from linsep.solvers.interior.mehrotra import STEP_FRACTION, PredictorCorrector
from linsep.solvers.linalg.factor import Factor, solve_spd
from linsep.solvers.run import Run

Kept = tuple[float, float, FloatArray, FloatArray]  # gap, value, theta, u

PLANES = 10  # numbers per row, named in kernels/interior/passes.hpp
FIRST_MU = 3.0  # largest initial mu, as a multiple of the objective per row
MAX_CORRECTORS = 2  # centrality correctors of a step
LONG_STEP = 0.7  # step size from which no centrality corrector is tried
LEAST_GAIN = 0.1  # fraction of the desired increase of the step size that a corrector must achieve
LIMIT = 200  # iterations
KEPT_GAP = 1e-3  # relative gap below which the best iterate is stored
PATIENCE = 12  # iterations without progress
FACTOR_ORDER = 100  # order above which the factorisation is stored for the second solve

Solve = Callable[["FloatArray"], "FloatArray"]


def native_loss(loss: Loss) -> _kernels.Loss:
    """Return the compiled loss."""
    assert loss.native is not None
    return _kernels.Loss(loss.native, *loss.params)


class Path(PredictorCorrector):
    """Iterate of the method on all rows of one problem.

    ``linear`` is c, and ``constant`` is added to the objective. For a reduced problem ``share`` is the size of a pass
    over its rows relative to a pass over the problem of ``run``.
    """

    def __init__(
        self,
        run: Run[Problem],
        problem: Problem,
        linear: FloatArray | None = None,
        constant: float = 0.0,
        null: FloatArray | None = None,
    ) -> None:
        self.run, self.problem = run, problem
        self.linear = np.zeros(problem.order) if linear is None else linear
        self.constant, self.null = constant, null
        self.loss = native_loss(problem.loss)
        low, high = problem.loss.domain
        self.width = high - low
        self.low, self.high = low, high
        self.mu = problem.centre()
        self._infeasibility = DualInfeasibility(problem) if problem.lam == 0.0 else None
        n = problem.data.n
        self.state = np.zeros((PLANES, n))
        self.share = n / run.problem.data.n if problem is not run.problem else 0.0
        weight = problem.data.weight
        self.mass = float(n) if weight is None else float(weight.sum())
        self.theta = np.zeros(problem.order)
        self._step = 0.0  # size of the last step, which the next pass applies to the rows
        self._sums = self._rhs = self._second = self._delta = np.zeros(0)
        self._kept: Kept | None = None  # the best iterate

    @property
    def v(self) -> FloatArray:
        """Distances m - kink of all rows."""
        plane: FloatArray = self.state[4]
        return plane

    def count(self, passes: float) -> None:
        """Count passes over these rows, also as fractions of passes over all rows."""
        self.problem.passes += passes
        self.run.problem.passes += passes * self.share

    def margins(self) -> float:
        """Recompute the margins at theta; return the sum of the losses. One pass."""
        self.count(1.0)
        v = self.v

        def add(b: Block, out: FloatArray) -> None:
            _kernels.kink_margins(
                b.rows, b.targets, self.loss, b.lo, b.hi, self.theta, b.own(v), out
            )

        return float(self.problem.data.sum(add, 1)[0])

    def place(self, theta: FloatArray, mu: float | None = None) -> None:
        """Start at theta, with the dual variables of the central path for mu.

        The default mu is the usual distance from the kink, limited so that its gap, 2 mu per row, is at most a few
        times the objective: otherwise the dual variables of a class with many rows would dominate.
        """
        self.theta = theta.copy()
        loss = self.margins()
        if mu is None:
            mu = self.width * usual_distance(self.v, self.problem.data.weight)
            value = loss + self.problem.penalty_value(theta)
            if value > 0.0:
                mu = min(mu, FIRST_MU * value / self.mass)
        _kernels.ipm_central(self.loss, 0, self.problem.data.n, max(mu, 1e-100), self.state)
        self._step = 0.0

    def measure(self) -> None:
        """Apply the last step; compute objective and gap, without cancellation as no term is negative. One pass."""
        self.count(1.0)
        lam, d, order = self.problem.lam, self.problem.data.d, self.problem.order

        def add(b: Block, out: FloatArray) -> None:
            h = b.row_state(CURVATURE)
            _kernels.ipm_gather(
                *(b.rows, b.targets, self.loss, b.lo, b.hi, self._step, self.state, b.first, h, out)
            )

        sums = self.problem.data.sum(add, 3 + 2 * order)
        self._step = 0.0
        sums[3 : 3 + order] += self.linear
        r = sums[3 : 3 + d] - lam * self.theta[:-1]
        self._sums = sums
        self.value = float(sums[0]) + self.problem.penalty_value(self.theta) + self.constant
        self.value -= dot(self.linear, self.theta)
        size = dot(r, r)
        self.gap = float(sums[1])
        if self._infeasibility is not None:
            self.gap += abs(self.value) * self._infeasibility.relative(sums[3 : 3 + order])
            return
        self.gap += 0.5 * size / lam
        if self.problem.fit_intercept:
            self.gap += abs(float(sums[2 + order]) * float(self.theta[-1]))

    def _solver(self) -> Solve:
        """Return a function that solves with the weighted Gram matrix of the iterate, in the user's coordinates."""
        lam, mu, before = self.problem.lam, self.mu, self.problem.passes
        H = self.problem.hessian(mu)
        self.run.problem.passes += (self.problem.passes - before) * self.share
        if self.null is not None:
            for y in self.null:
                H[:-1, :-1] += float(np.diag(H)[:-1] @ (y * y)) * np.outer(y, y)
        definite = lam > 0.0
        factor = Factor(H, definite) if len(H) > FACTOR_ORDER else None

        def solve(rhs: FloatArray) -> FloatArray:
            centred = rhs.copy()
            centred[:-1] -= mu * rhs[-1]
            with np.errstate(over="ignore", invalid="ignore"):  # ``follow`` detects overflow
                x = factor.solve(centred) if factor is not None else solve_spd(H, centred, definite)
                x[-1] -= float(mu @ x[:-1])
            return x

        return solve

    def complementarity(self) -> tuple[float, float]:
        return float(self._sums[2]), 2.0 * self.mass

    def _right_side(self) -> FloatArray:
        order = self.problem.order
        rhs = self._sums[3 : 3 + order] - self._sums[3 + order :]
        rhs[:-1] -= self.problem.lam * self.theta[:-1]
        return self._without_intercept(rhs)

    def _without_intercept(self, rhs: FloatArray) -> FloatArray:
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        return rhs

    def predict(self) -> float:
        self._solve, self._rhs = self._solver(), self._right_side()
        delta = self._solve(self._rhs)
        self.count(1.0)
        blocking: list[float] = [1.0]

        def add(b: Block, out: FloatArray) -> None:
            where = b.rows, b.targets, b.lo, b.hi
            blocking.append(_kernels.ipm_predict(*where, delta, self.state, b.first, out))

        self._second = self.problem.data.sum(add, 1 + 2 * self.problem.order)
        length, total = min(1.0, 1.0 / max(blocking)), float(self._sums[2])
        return 1.0 - length + length * length * float(self._second[0]) / total

    def correct(self, mu: float) -> float:
        order = self.problem.order
        rhs = self._rhs + (mu * self._second[1 : 1 + order] + self._second[1 + order :])
        self._delta = delta = self._solve(self._without_intercept(rhs))
        self.count(1.0)
        blocking: list[float] = [0.0]

        def add(b: Block, out: FloatArray) -> None:
            where = b.rows, b.targets, b.lo, b.hi
            blocking.append(_kernels.ipm_correct(*where, delta, mu, self.state, b.first))

        self.problem.data.sum(add, 1)
        return max(blocking) if np.isfinite(blocking).all() else np.inf

    def recentre(self, mu: float, blocking: float) -> float:
        for _ in range(MAX_CORRECTORS):
            found = self._centrality_corrector(mu, blocking)
            if found is None:
                break
            self._delta, blocking = self._delta + found[0], found[1]
        return blocking

    def take(self, length: float) -> None:
        self._step = length
        self.theta += length * self._delta

    def _centrality_corrector(self, mu: float, blocking: float) -> tuple[FloatArray, float] | None:
        """Return a centrality corrector and the ``blocking`` of the new step; None if it does not lengthen the step.

        Reference: Gondzio, Multiple centrality corrections in a primal-dual method for linear programming, 1996.
        """
        step = STEP_FRACTION / blocking if blocking > 0.0 else 1.0
        if not step < LONG_STEP:
            return None
        goal = min(1.0, max(step + 0.3, 1.08 * step + 0.08))
        self.count(2.0)
        state = self.state

        def gather(b: Block, out: FloatArray) -> None:
            _kernels.ipm_recentre(b.rows, b.targets, b.lo, b.hi, goal, mu, state, b.first, out)

        rhs = self.problem.data.sum(gather, self.problem.order)
        delta = self._solve(self._without_intercept(rhs))
        far: list[float] = [0.0]

        def attempt(b: Block, out: FloatArray) -> None:
            where = b.rows, b.targets, b.lo, b.hi
            far.append(_kernels.ipm_attempt(*where, delta, goal, mu, state, b.first))

        self.problem.data.sum(attempt, 1)
        longest = max(far)
        if not (
            np.isfinite(far).all()
            and STEP_FRACTION >= longest * (step + LEAST_GAIN * (goal - step))
        ):
            return None

        def adopt(b: Block, out: FloatArray) -> None:
            _kernels.ipm_adopt(b.rows, b.targets, b.lo, b.hi, goal, mu, state, b.first)

        self.problem.data.sum(adopt, 1)
        return delta, longest

    def descend(self, target: float, limit: int = LIMIT, shortest: float = 0.0) -> bool:
        """Iterate until gap <= target * objective; if the gap stalls, return False and restore the best iterate.

        It also fails after four consecutive step sizes below ``shortest``.
        """
        self._forget()

        def ends() -> bool:
            return self.gap <= target * abs(self.value)

        arrived = self.follow(ends, self.run.check_limits, limit, PATIENCE, shortest)
        kept = self._kept
        if arrived or kept is None or self.gap <= kept[0]:
            self._forget()
        else:
            (self.gap, self.value, self.theta, _), self._step = kept, 0.0
        return arrived

    def _forget(self) -> None:
        self._kept = None

    def keep(self) -> None:
        if self.gap <= KEPT_GAP * abs(self.value):
            self._kept = self.gap, self.value, self.theta.copy(), self._inside()

    def refresh(self) -> None:
        self.measure()
        self.margins()

    def dual(self) -> FloatArray:
        """Return the dual variables u of the rows."""
        if self._kept is not None:  # the stored iterate is better than the last one
            return self._kept[3].copy()
        if self._step:
            self.measure()
        return self._inside()

    def _inside(self) -> FloatArray:
        a, t = self.state[0], self.state[1]
        u: FloatArray = np.where(a < t, self.low + a, self.high - t)
        return u

    def snap_dual(self) -> FloatArray:
        """Return u, moved to the end of its interval where u is relatively closer to it than the margin to the kink."""
        u, far = self.dual(), np.abs(self.v) * self.width
        inside = np.minimum(u - self.low, self.high - u) * float(np.abs(self.v).max(initial=0.0))
        end = np.where(u - self.low < self.high - u, self.low, self.high)
        return np.where(inside <= far, end, u)


def usual_distance(v: FloatArray, weight: FloatArray | None) -> float:
    """Median of |v| over the rows of positive weight, or half the mean if most of them are on the kink."""
    size = np.abs(v if weight is None else v[weight > 0.0])
    if not len(size):
        return 1e-8
    median, mean = float(np.median(size)), float(size.mean())
    return max(median if median >= 1e-3 * mean else 0.5 * mean, 1e-8)


def feasible(problem: Problem, u: FloatArray) -> FloatArray:
    """Make u feasible in place: within its interval and sum s sigma u = 0 (kernels/interior/crossover.hpp)."""
    data = problem.data
    targets = _kernels.Targets(data.sign, data.offset, data.weight)
    _kernels.make_feasible(targets, native_loss(problem.loss), problem.fit_intercept, u)
    return u
