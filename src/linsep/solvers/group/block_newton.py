"""Proximal Newton on working sets of groups, for group lasso penalties and penalty factors.

Problem: min sum_j l2_j/2 w_j^2 + sum_g l1_g |w_g| + sum s l(m) for a smooth loss; groups of one feature are the
weighted lasso and elastic net. Method: the features of a working set (those without a penalty, the groups that are
not 0, and those with the largest |v_g|/l1_g) are fitted by proximal Newton steps (Lee, Sun and Saunders 2014), whose
quadratic models ``quadratic.minimise`` solves; then v is computed for all groups, and those with |v_g| > l1_g join (as
in Massias, Gramfort and Salmon 2018). The dual point of a step is the Newton-dual point of ``newton.solve``: on the
working set its v satisfies the optimality conditions of the model, so that the gap is of higher order in the step.

Unpenalised features and the intercept are eliminated from each quadratic model.

If there are more features than rows, or than ``coordinate.FEATURES``, and all are penalised, descent over groups of
columns comes first: it needs no Hessian (``l1/coordinate.py``). The method above takes over where that stalls.
"""

from __future__ import annotations

import math

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray, embed
from linsep.errors import Refused
from linsep.interrupts import lapack
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.problem import Problem
from linsep.problem.duality import balanced_v
from linsep.problem.grouped import GroupProblem
from linsep.solution import Solution, Status, Stop
from linsep.solvers.group.quadratic import minimise
from linsep.solvers.l1 import coordinate
from linsep.solvers.run import LimitReached, Run, linearised

NAME = "block-newton"
ALL = 200  # number of features up to which the working set contains all
FIRST = 50  # features by which the working set may always grow
ROUNDS = 100
STEPS = 200
# Consecutive full, undamped steps whose predicted decrease exceeds half of the previous one: rounding of a badly scaled
# Hessian, not its curvature, then decides the steps.
STALLED = 12
LONGEST_HOLD = 16  # largest number of consecutive steps with secant curvatures
SHARE = 0.3  # fraction of tol at which a run ends, before the rounding bound is added
ROUGH = 0.01  # decrement, relative to P, at which the first working set is solved well enough
PRECISE = 0.1  # decrement relative to the gap, and finally to tol
TIGHTER = 0.01  # factor on the precision if the gap stays open
PATIENCE = 3  # times that the precision is increased beyond what tol requires
FINER = 1e-3  # precision of a quadratic model relative to that of the steps
FINE = 1e-13  # smallest precision of a quadratic model
SHORT = 0.1  # step size below which the curvatures are considered wrong
# Damping, relative to the largest curvature of a feature.
LEAST_DAMPING, FIRST_DAMPING, MOST_DAMPING = 1e-13, 1e-6, 1.0
ROUNDING = 1e-13  # relative change of P that is rounding error
HALVINGS = 2.0 ** -np.arange(12.0)


def solve(problem: GroupProblem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Solve from theta until the gap is below tol, a limit is reached, or there is no progress."""
    if not problem.loss.smooth or not problem.loss.convex:
        raise Refused(
            f"The {problem.loss.name} loss has a kink or is not convex, and with l1_ratio > 0 no solver takes it: use "
            "a smooth loss ('squared_hinge', 'huberised_hinge', 'logistic'; 'huber' for numbers) or l1_ratio=0."
        )
    return _Iterate(problem, theta, stop).solve()


def _suits_columns(problem: GroupProblem) -> bool:
    """Return whether the features are too many for Hessians of all of them to be cheap."""
    d, n = problem.data.d, problem.data.n
    tall = d <= coordinate.FEATURES and n >= d
    return d > ALL and not tall and coordinate.applies(problem)


class _Iterate:
    """Current point and dual point of a run."""

    def __init__(self, problem: GroupProblem, theta: FloatArray, stop: Stop) -> None:
        self.problem, self.stop, self.theta = problem, stop, theta.copy()
        self.run = Run(problem, stop)
        self.dual = linearised(self.theta, np.zeros_like(self.theta))
        self.free = problem.penalty.unpenalised(problem.data.d)

    def solve(self) -> Solution:
        """Solve on growing working sets until the gap closes."""
        status = Status.WORKING_PRECISION
        try:
            with self.run.in_time():
                if self._rounds():
                    status = Status.CERTIFIED
        except LimitReached as limit:
            status = limit.status
        return self.run.solution(status, self.theta, self.dual)

    def _rounds(self) -> bool:
        penalty, d = self.problem.penalty, self.problem.data.d
        if _suits_columns(self.problem) and self._by_columns():
            return True
        start, _, _ = self.problem.losses.start(self.theta)
        self.theta = start
        work = np.ones(d, dtype=bool) if d <= ALL else self.free | (start[:-1] != 0.0)
        work = _whole_groups(work, penalty.group)
        floor, idle = PRECISE * self.stop.tol, 0
        precision = floor if work.all() else ROUGH
        for _ in range(ROUNDS):
            self._fit(np.flatnonzero(work).astype(np.int64), precision)
            gap, v = self._close()
            if gap <= SHARE * self.stop.tol:
                return True
            joined = _joining(penalty.norms(v), penalty, work)
            if joined.any():
                work |= joined
                precision = max(floor, PRECISE * gap)
            elif precision > floor:
                precision = max(floor, TIGHTER * precision)
            elif idle == PATIENCE:
                return False
            else:
                floor, idle = TIGHTER * floor, idle + 1
                precision = floor
        return False

    def _by_columns(self) -> bool:
        """Solve by descent over groups of columns; return whether the gap closed. Hessians continue from its end."""
        run = self.run
        if coordinate.close_start(run, self.theta):
            return True
        closed = run.best is not None and coordinate.solve(run, run.best[1])
        if run.best is not None:
            self.theta = run.best[1].copy()
        return closed

    def _close(self) -> tuple[float, FloatArray]:
        """Return the relative gap of the current point and dual point, without rounding bound, and v. One pass."""
        problem = self.problem
        self.run.close(self.theta, self.dual)
        sums = self.run.last_sums
        primal, lower = problem.values(self.theta, sums)
        v = balanced_v(sums, problem.data.d, problem.fit_intercept)
        return (primal - lower) / max(abs(primal), 1e-300), v

    def _fit(self, features: IntArray, precision: float) -> None:
        """Make proximal Newton steps on these features, and store the final point and its dual point.

        A loss with straight tails starts with secant curvatures, and returns to them for twice as many steps each time
        that a step with second derivatives is short or does not decrease P. Rows beyond the margin of a flat loss have
        no curvature either: after short steps the model is damped (Levenberg and Marquardt) until full ones decrease P.
        """
        part, d = _Part(self.problem, features), self.problem.data.d
        theta = np.append(self.theta[features], self.theta[-1])
        hold = left = int(part.straight)
        value, g = part.value_gradient(theta, float(left > 0))
        fine, fell = max(FINE, FINER * precision), True
        slow, last = 0, math.inf
        for _ in range(STEPS):
            self.run.check_limits()
            delta, decrement = part.step(theta, g, fine)
            if not left and math.isfinite(decrement):
                self.dual = linearised(embed(theta, features, d), embed(delta, features, d))
            length, trial, new, g = part.advance(theta, value, delta, decrement)
            self.problem.losses.passes += 2.0 * len(features) / max(1, d)
            before, fell = fell, new < value
            near = new <= value + precision * abs(
                value
            )  # false if a nearly singular model leads far away
            done = not left and decrement <= precision * abs(value) and near
            if fell or done:
                theta, value = trial, new
            full = length == 1.0 and not (left or part.damping)
            slow, last = slow + 1 if full and decrement > 0.5 * last else 0, decrement
            if done or slow == STALLED or not (fell or before or part.can_adapt):
                break
            secant = left > 0
            part.adapt(length if fell else 0.0)
            if secant:
                left = left - 1 if fell else 0
            elif part.straight and (length < SHORT or not fell):
                hold = left = min(LONGEST_HOLD, 2 * hold)
            elif not fell and not part.damping:
                break
            if secant or left or not fell:
                value, g = part.value_gradient(theta, float(left > 0))
        self.theta = embed(theta, features, d)
        part.close()


class _Part:
    """The problem restricted to some features, which form whole groups."""

    def __init__(self, problem: GroupProblem, features: IntArray) -> None:
        self.rows = problem.data.columns(features)
        self.losses = Problem(problem.loss, ElasticNet(math.inf), self.rows, problem.fit_intercept)
        self.penalty = problem.penalty.restrict(features)
        free = self.penalty.unpenalised(len(features))
        self._free = np.append(np.flatnonzero(free), len(features))  # and the intercept
        self._held = np.flatnonzero(~free).astype(np.int64)
        self._norms = self.penalty.restrict(self._held)
        self._centre = np.zeros(len(features))
        self.damping = 0.0
        self._largest = np.zeros(len(features) + 1)  # curvature of each feature, over all steps

    @property
    def can_adapt(self) -> bool:
        """Return whether the damping can be increased."""
        return self.damping < MOST_DAMPING

    def adapt(self, length: float) -> None:
        """Increase the damping after a short step, reduce it after a full one."""
        if length < SHORT:
            self.damping = min(8.0 * self.damping or FIRST_DAMPING, MOST_DAMPING)
        elif length == 1.0:
            self.damping = 0.25 * self.damping if self.damping > LEAST_DAMPING else 0.0

    @property
    def straight(self) -> bool:
        """Return whether rows may have a slope but no curvature."""
        return self.losses.loss.straight_tails

    def close(self) -> None:
        """Release the rows."""
        self.rows.close()

    def value_gradient(self, theta: FloatArray, blend: float = 0.0) -> tuple[float, FloatArray]:
        """Return P, and the gradient of the losses alone."""
        value, g = self.losses.value_gradient(theta, blend)
        return value + self.penalty.value(theta[:-1]), g

    def step(self, theta: FloatArray, g: FloatArray, fine: float) -> tuple[FloatArray, float]:
        """Return the step to the minimiser of the quadratic model plus the penalty, and its predicted decrease."""
        H = self.losses.hessian(self._centre)
        diagonal = np.diagonal(H)
        self._largest = np.maximum(self._largest, diagonal)
        H[np.diag_indices(len(H))] = diagonal + self.damping * self._largest
        on, off, w = self._held, self._free, theta[:-1]
        inverse = _pseudoinverse(H[np.ix_(off, off)])
        K = inverse @ H[np.ix_(off, on)]
        S = _symmetric(H[np.ix_(on, on)] - H[np.ix_(on, off)] @ K)
        ridge, x = self.penalty.ridge[on], w[on]
        c = g[on] - K.T @ g[off] - S @ x
        S[np.diag_indices(len(on))] += ridge
        found = minimise(S, c, x, self._norms, fine)
        delta = np.zeros_like(theta)
        delta[on] = found - x
        delta[off] = -(inverse @ g[off]) - K @ delta[on]
        decrease = -float(g @ delta) - self.penalty.value(w + delta[:-1]) + self.penalty.value(w)
        return delta, decrease

    def advance(
        self, theta: FloatArray, value: float, delta: FloatArray, decrement: float
    ) -> tuple[float, FloatArray, float, FloatArray]:
        """Take the unit step, or backtrack by halving until P decreases; return step size, point, P and gradient."""
        if not np.isfinite(delta).all():  # without curvature the model is unbounded
            delta = np.zeros_like(theta)
        trial = theta + delta
        new, g = self.value_gradient(trial)
        if new <= value - 1e-4 * decrement or decrement <= ROUNDING * abs(value):
            return 1.0, trial, new, g
        smooth, _ = self.losses.along(theta, delta, HALVINGS)
        values = smooth + [self.penalty.value((theta + t * delta)[:-1]) for t in HALVINGS]
        values = np.where(np.isfinite(values), values, np.inf)
        falls = np.flatnonzero(values <= value - 1e-4 * HALVINGS * decrement)
        length = float(HALVINGS[falls[0] if len(falls) else int(np.argmin(values))])
        trial = theta + length * delta
        return length, trial, *self.value_gradient(trial)


def _pseudoinverse(A: FloatArray) -> FloatArray:
    """Pseudo-inverse of a positive semidefinite matrix, after scaling its diagonal to 1."""
    scale = 1.0 / np.sqrt(np.where(np.diagonal(A) > 0.0, np.diagonal(A), 1.0))
    unit = _symmetric(A * scale * scale[:, None])
    return np.asarray(
        scale[:, None] * lapack(np.linalg.pinv, unit, rcond=1e-14, hermitian=True) * scale
    )


def _symmetric(A: FloatArray) -> FloatArray:
    return np.asarray(0.5 * (A + A.T))


def _whole_groups(features: BoolArray, group: IntArray) -> BoolArray:
    """Return the features of all groups with at least one chosen feature."""
    chosen = np.bincount(group, features) > 0
    return np.asarray(chosen[group])


def _joining(norms: FloatArray, penalty: GroupElasticNet, work: BoolArray) -> BoolArray:
    """Return the groups outside the working set with the largest violations of |v_g| <= l1_g, at most doubling it."""
    sizes, group, l1 = penalty.sizes, penalty.group, penalty.thresholds
    outside = (np.bincount(group, work) == 0) & (l1 > 0.0)
    ratio = np.divide(norms, l1, out=np.zeros_like(norms), where=outside)
    order = np.argsort(-ratio, kind="stable")
    order = order[ratio[order] > 1.0]
    room = max(FIRST, int(work.sum()))
    count = max(1, int(np.searchsorted(np.cumsum(sizes[order]), room, side="right")))
    chosen = np.zeros(len(sizes), dtype=bool)
    chosen[order[:count]] = True
    return np.asarray(chosen[group])
