"""The central path of the losses with one kink: its row passes and steps (kernels/interior.hpp derives them).

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
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.errors import NonFinite
from linsep.problem import Problem, dot
from linsep.problem.pointwise import CURVATURE
from linsep.solvers.dual_infeasibility import Imbalance
from linsep.solvers.linalg.factor import Factor, solve_spd
from linsep.solvers.run import Run

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.losses import Loss
    from linsep.solution import FloatArray

    Kept = tuple[float, float, FloatArray, FloatArray]  # gap, value, theta, u

PLANES = 10  # numbers per row: kernels/interior.hpp names them
SHARE = 0.995  # of the way to the boundary
MOST = 3.0  # mu to begin with, as a multiple of the objective per row
CORRECTORS = 2  # centrality correctors of a step
LONG = 0.7  # step that needs none
GAIN = 0.1  # of the step hoped for, that one must make
LIMIT = 200  # iterations
KEPT = 1e-3  # relative gap from which the best iterate is remembered
PATIENCE = 12  # iterations without progress
FACTORED = 100  # order from which a factorisation is worth keeping for the second solve

Solve = Callable[["FloatArray"], "FloatArray"]


def compiled(loss: Loss) -> _kernels.Loss:
    """The loss as the kernels know it."""
    assert loss.native is not None
    return _kernels.Loss(loss.native, *loss.params)


class Path:
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
        self.loss = compiled(problem.loss)
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
        self.value = self.gap = np.inf
        self._step = 0.0
        self._sums = np.zeros(0)
        self.steps = 0
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
                mu = min(mu, MOST * value / self.mass)
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
        factor = Factor(H, definite) if len(H) > FACTORED else None

        def solve(rhs: FloatArray) -> FloatArray:
            centred = rhs.copy()
            centred[:-1] -= mu * rhs[-1]
            with np.errstate(over="ignore", invalid="ignore"):  # ``advance`` sees it
                x = factor.solve(centred) if factor is not None else solve_spd(H, centred, definite)
                x[-1] -= float(mu @ x[:-1])
            return x

        return solve

    def advance(self) -> bool:
        """One step from the sums of ``measure``; false if it is of no use."""
        order, lam = self.problem.order, self.problem.lam
        both = float(self._sums[2])
        if not both > 0.0:  # the weights of the rows are so small that their products vanish
            return False
        rhs = self._sums[3 : 3 + order] - self._sums[3 + order :]
        rhs[:-1] -= lam * self.theta[:-1]
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        solve = self._solver()
        far, sums = self._predict(solve(rhs))
        length = min(1.0, 1.0 / far)
        left = 1.0 - length + length * length * float(sums[0]) / both
        target = min(1.0, max(1e-6, left**3)) * both / (2.0 * self.mass)
        rhs += target * sums[1 : 1 + order] + sums[1 + order :]
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        delta = solve(rhs)
        reach = self._correct(delta, target)
        for _ in range(CORRECTORS):
            found = self._recentred(solve, target, reach)
            if found is None:
                break
            delta, reach = delta + found[0], found[1]
        self._step = SHARE / reach if reach > SHARE else 1.0
        self.theta += self._step * delta
        self.steps += 1
        return self._step > 1e-8 and bool(np.isfinite(reach))

    def _predict(self, delta: FloatArray) -> tuple[float, FloatArray]:
        self.count(1.0)
        far: list[float] = [1.0]

        def add(b: Block, out: FloatArray) -> None:
            far.append(
                _kernels.ipm_predict(b.rows, b.targets, b.lo, b.hi, delta, self.state, b.first, out)
            )

        sums = self.problem.data.sum(add, 1 + 2 * self.problem.order)
        return max(far), sums

    def _correct(self, delta: FloatArray, mu: float) -> float:
        self.count(1.0)
        far: list[float] = [0.0]

        def add(b: Block, out: FloatArray) -> None:
            far.append(
                _kernels.ipm_correct(b.rows, b.targets, b.lo, b.hi, delta, mu, self.state, b.first)
            )

        self.problem.data.sum(add, 1)
        return max(far) if np.isfinite(far).all() else np.inf

    def _recentred(self, solve: Solve, mu: float, reach: float) -> tuple[FloatArray, float] | None:
        """A centrality corrector, if the step is short and it makes it longer, and the new reach."""
        step = SHARE / reach if reach > 0.0 else 1.0
        if not step < LONG:
            return None
        goal = min(1.0, max(step + 0.3, 1.08 * step + 0.08))
        self.count(2.0)
        state = self.state

        def gather(b: Block, out: FloatArray) -> None:
            _kernels.ipm_recentre(b.rows, b.targets, b.lo, b.hi, goal, mu, state, b.first, out)

        rhs = self.problem.data.sum(gather, self.problem.order)
        if not self.problem.fit_intercept:
            rhs[-1] = 0.0
        delta = solve(rhs)
        far: list[float] = [0.0]

        def attempt(b: Block, out: FloatArray) -> None:
            where = b.rows, b.targets, b.lo, b.hi
            far.append(_kernels.ipm_attempt(*where, delta, goal, mu, state, b.first))

        self.problem.data.sum(attempt, 1)
        longest = max(far)
        if not (np.isfinite(far).all() and SHARE >= longest * (step + GAIN * (goal - step))):
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
        arrived = self._descend(target, limit, shortest)
        kept = self._kept
        if arrived or kept is None or self.gap <= kept[0]:
            self._forget()
        else:
            (self.gap, self.value, self.theta, _), self._step = kept, 0.0
        return arrived

    def _forget(self) -> None:
        self._kept = None

    def _descend(self, target: float, limit: int, shortest: float) -> bool:
        lowest = landmark = np.inf
        idle = short = 0
        limit += self.steps
        try:
            while idle < PATIENCE:
                self.run.check_limits()
                self.measure()
                if not np.isfinite(self.gap):
                    return False
                if self.gap <= target * abs(self.value):
                    return True
                if self.gap < lowest and self.gap <= KEPT * abs(self.value):
                    self._kept = self.gap, self.value, self.theta.copy(), self._inside()
                # Slow progress is progress: 10 % below the last landmark, not below the last iterate.
                idle = 0 if self.gap < 0.9 * landmark else idle + 1
                landmark, lowest = (self.gap if idle == 0 else landmark), min(lowest, self.gap)
                if self.steps >= limit or not self.advance():
                    return False
                short = short + 1 if self._step < shortest else 0
                if short == 4:
                    return False
                if self.steps % 8 == 0:  # against drift
                    self.measure()
                    self.margins()
        except NonFinite:  # the Gram overflowed
            return False
        return False

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

    def ended(self) -> FloatArray:
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
    """The same u, moved into its box and to sum s sigma u = 0 (kernels/crossover.hpp)."""
    data = problem.data
    targets = _kernels.Targets(data.sign, data.offset, data.weight)
    _kernels.make_feasible(targets, compiled(problem.loss), problem.fit_intercept, u)
    return u
