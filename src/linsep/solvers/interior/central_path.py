"""The central path of the losses with one kink: its row passes and steps (kernels/interior/passes.hpp derives them).

Problem: min lam/2 |w|^2 - c.theta + sum s l(m) with l(m) = max of u (kink - m) over lo <= u <= hi: the hinge (u in
[0, 1], kink 1), the absolute loss ([-1, 1], 1) and the perceptron's ([0, 1], 0). Each iteration sums one weighted
Gram, solves twice with it, and reads the rows four times; a centrality corrector solves once more and reads them twice.
``kinked.py`` walks the path for all rows, ``sifting.py`` for the reduced problems of its bands, which have a linear
term c.

Without a penalty (the absolute loss) a dual point is feasible or worth nothing, so how far it is from feasible
counts in the gap (``solvers/dual_infeasibility.py``).
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
from linsep.solvers.dual_infeasibility import Imbalance
from linsep.solvers.interior.mehrotra import STEP_FRACTION, PredictorCorrector
from linsep.solvers.linalg.factor import Factor, solve_spd
from linsep.solvers.run import Run

Kept = tuple[float, float, FloatArray, FloatArray]  # gap, value, theta, u

PLANES = 10  # numbers per row: kernels/interior/passes.hpp names them
FIRST_MU = 3.0  # mu to begin with, as a multiple of the objective per row
MAX_CORRECTORS = 2  # centrality correctors of a step
LONG_STEP = 0.7  # that needs none
LEAST_GAIN = 0.1  # share of the hoped-for lengthening of the step that a corrector must make
LIMIT = 200  # iterations
KEPT_GAP = 1e-3  # relative gap from which the best iterate is remembered
PATIENCE = 12  # iterations without progress
FACTOR_ORDER = 100  # order from which a factorisation is worth keeping for the second solve

Solve = Callable[["FloatArray"], "FloatArray"]


def native_loss(loss: Loss) -> _kernels.Loss:
    """The loss as the kernels know it."""
    assert loss.native is not None
    return _kernels.Loss(loss.native, *loss.params)


class Path(PredictorCorrector):
    """Iterates of the method on one problem, all rows of which take part.

    ``linear`` is c and ``constant`` a number to be added to the objective. ``share`` counts the passes made here
    as parts of passes over all rows of ``run``'s problem, when this is a reduced one.
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
        self._balance = Imbalance(problem) if problem.lam == 0.0 else None
        n = problem.data.n
        self.state = np.zeros((PLANES, n))
        self.share = n / run.problem.data.n if problem is not run.problem else 0.0
        weight = problem.data.weight
        self.mass = float(n) if weight is None else float(weight.sum())
        self.theta = np.zeros(problem.order)
        self._step = 0.0  # of the last step, not yet made by the rows
        self._sums = self._rhs = self._second = self._delta = np.zeros(0)
        self._kept: Kept | None = None  # the best iterate

    @property
    def v(self) -> FloatArray:
        """m - kink of every row."""
        plane: FloatArray = self.state[4]
        return plane

    def count(self, passes: float) -> None:
        """Passes over these rows, as parts of passes over all."""
        self.problem.passes += passes
        self.run.problem.passes += passes * self.share

    def margins(self) -> float:
        """The margins at theta, afresh, and the sum of the losses."""
        self.count(1.0)
        v = self.v

        def add(b: Block, out: FloatArray) -> None:
            part = v[b.first : b.first + b.rows.n]
            _kernels.kink_margins(b.rows, b.targets, self.loss, b.lo, b.hi, self.theta, part, out)

        return float(self.problem.data.sum(add, 1)[0])

    def place(self, theta: FloatArray, mu: float | None = None) -> None:
        """Begin at theta, at the point of the central path that belongs to mu.

        What v suggests if it is not given: but no mu whose gap, 2 mu per row, is many times the objective. There the
        dual variables of a class with many rows would outweigh the others by far.
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
        """Make the last step; objective and gap there. No term of the gap is negative: nothing cancels."""
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
        if self._balance is not None:
            self.gap += abs(self.value) * self._balance.share(sums[3 : 3 + order])
            return
        self.gap += 0.5 * size / lam
        if self.problem.fit_intercept:
            self.gap += abs(float(sums[2 + order]) * float(self.theta[-1]))

    def _solver(self) -> Solve:
        """Solves with the Gram of the state, in the user's coordinates."""
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
            with np.errstate(over="ignore", invalid="ignore"):  # ``follow`` sees it
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
        """A centrality corrector, if the step is short and it makes it longer, and the ``blocking`` of both.

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
        """Iterate until gap <= target * objective; false if the gap no longer falls: then back to where it was least.

        ``shortest``: a length of the steps below which, four times in a row, the attempt is given up.
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
        """u of the rows."""
        if self._kept is not None:  # the last attempt ended behind it
            return self._kept[3].copy()
        if self._step:
            self.measure()
        return self._inside()

    def _inside(self) -> FloatArray:
        a, t = self.state[0], self.state[1]
        u: FloatArray = np.where(a < t, self.low + a, self.high - t)
        return u

    def snap_dual(self) -> FloatArray:
        """u, at an end of its box where it is nearer to that than the margin to the kink, as shares of the usual."""
        u, far = self.dual(), np.abs(self.v) * self.width
        inside = np.minimum(u - self.low, self.high - u) * float(np.abs(self.v).max(initial=0.0))
        end = np.where(u - self.low < self.high - u, self.low, self.high)
        return np.where(inside <= far, end, u)


def usual_distance(v: FloatArray, weight: FloatArray | None) -> float:
    """Median of |v| over the rows that count, or half the mean where most of them are on the kink."""
    size = np.abs(v if weight is None else v[weight > 0.0])
    if not len(size):
        return 1e-8
    median, mean = float(np.median(size)), float(size.mean())
    return max(median if median >= 1e-3 * mean else 0.5 * mean, 1e-8)


def feasible(problem: Problem, u: FloatArray) -> FloatArray:
    """The dual variables u, moved into their box and to sum s sigma u = 0 (kernels/interior/crossover.hpp)."""
    data = problem.data
    targets = _kernels.Targets(data.sign, data.offset, data.weight)
    _kernels.make_feasible(targets, native_loss(problem.loss), problem.fit_intercept, u)
    return u
