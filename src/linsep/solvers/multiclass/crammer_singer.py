"""Proximal point method in the dual, with semismooth Newton steps, for the multiclass hinge of Crammer and Singer.

::

    min_W  lam/2 |W_w|^2 + sum_i s_i max_c (z_ic + 1[c != y_i]) - z_{i,y_i},     z_i = W'(x_i, 1)
    max_p  sum_i s_i (1 - p_{i,y_i}) - |V|^2/(2 lam),   V = sum_i s_i x_i (onehot(y_i) - p_i)',   p_i in the simplex

The dual is solved by the proximal point method: subtract s_i |p_i - p0_i|^2/(2 sigma), solve, set p0 to the solution,
increase sigma. In the primal this replaces the loss by a smooth, piecewise quadratic one (kernels/
softmax/crammer_singer.hpp), which is minimised by Newton's method with an exact line search. Its Hessian,

    lam + sigma sum_i s_i (diag a_i - a_i a_i'/|a_i|) (x) (x_i, 1)(x_i, 1)',     a_i: the classes with p_ic > 0,

involves only the rows with at least two active classes, which are few near the optimum. The p at a solution are a
feasible dual point, so every round gives a duality gap. Convergence is linear, with a rate that becomes
arbitrarily fast as sigma grows (Rockafellar 1976), for any scaling of X and any C.

Crammer, Singer 2001 (the problem); Li, Sun, Toh 2018 (proximal points with semismooth Newton).
"""

from __future__ import annotations

import math

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import CrammerSinger
from linsep.problem.coupled import CoupledProblem
from linsep.problem.max_margin import MaxMarginProblem
from linsep.problem.pointwise import not_finite_error
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.multiclass import crammer_singer_ascent
from linsep.solvers.multiclass.crammer_singer_directions import newton_step
from linsep.solvers.multiclass.crammer_singer_dual import dual_point
from linsep.solvers.multiclass.softmax import sample
from linsep.solvers.multiclass.softmax_directions import zero_sum
from linsep.solvers.run import SAFETY, LimitReached, Run

_FIRST = 1.0  # largest initial sigma: classes with scores within about 1 of the best are active
_CURVED = 30.0  # largest curvature sigma |x|^2 of the first smoothed losses, in units of lam
_GOOD_START = 0.4  # largest relative gap of a useful warm start
_WARM = 60.0  # factor on the initial sigma for a warm start
_MOST = 1e9  # largest sigma: beyond it p is dominated by rounding
_SINGULAR = 1e15  # curvature sigma |x|^2, in units of lam, beyond which rounds may stall
_BACK = 5.0  # factor by which sigma decreases then
_NEARLY_SMOOTH = (
    1e-3  # slack, relative to the objective, below which a few rounds at this sigma suffice
)
_MAX_ROUNDS = 60
_MAX_STEPS = 50  # Newton steps in a round
_INNER = 0.1  # squared decrement that ends a round, relative to the proximal term
_SLOPE = 0.1  # final slope of a line search, relative to the first one
_TRIALS = 40
_WAYS = 3  # number of methods for the Newton systems
_NOISE = 1e-14  # squared decrement, relative to the objective, that is below its rounding error
_POLISH = 1_000_000  # n d k below which the solution is computed to working precision
_POLISH_UNKNOWNS = 2000  # largest (d + 1) k for that
_FINE = 1e-13  # relative gap of such a solution
_FITTED = 0.99  # share of the penalty in P from which (nearly) all rows are fitted
_LEAST_STRETCH = 2.0**-36  # smallest relative stretch of W then
_BLUR = 1e-11  # slack, relative to the objective, that may be rounding error
_CORRECTIONS = 20  # steps with p moved along
_SMOOTHING = 0.3  # share of tol that the gap due to smoothing may use
_STALLS = 3  # rounds without a better gap before the method ends
_PILOT_WORK = 4_000_000  # n d k from which a pilot pays
_PILOT_ROWS = 20  # rows of a pilot per unknown
_PILOT_SHARE = 0.2  # largest share of the rows in a pilot
_PILOT_TOL = 1e-2


class _Rounds:
    """State of the method: W with its scores, the proximal centre p0 and the current p."""

    def __init__(self, run: Run[MaxMarginProblem], W: FloatArray, polish: bool) -> None:
        self.run, self.problem, self.W = run, run.problem, W
        problem = run.problem
        self.Z, self.P, self.trial = (problem.allocate_zeros() for _ in range(3))
        self.centre = problem.label_distribution()
        self.spread = _spread(problem)
        self.sigma = _first_sigma(problem.lam, self.spread)
        self.tol = min(run.stop.tol, _FINE) if polish else run.stop.tol
        self.most = _MOST  # largest sigma
        self.value = self.moved = self.slack = self.residual = np.inf
        self._farthest: float | None = None  # the largest |x|
        self._mean = problem.centre()
        if W.any():
            self._begin_at(W)

    def _begin_at(self, W: FloatArray) -> None:
        """Start from W with its p as the proximal centre, unless W = 0, whose objective is known, is better."""
        problem, weight = self.problem, self.problem.data.weight
        with np.errstate(over="ignore", invalid="ignore"):
            Z = problem.scores(W)
            warm = _WARM * self.sigma
            loss, *_ = problem.smooth(Z, None, 0.0, self.centre, warm, self.P)
            value = loss + problem.penalty_value(W)
        if not value <= (problem.data.n if weight is None else float(weight.sum())):
            self.W = np.zeros_like(W)
            return
        self.Z, self.sigma = Z, warm
        self.centre, self.P = self.P, self.centre

    def solve(self) -> Solution:
        """Run rounds until the gap closes, stalls at working precision, or a limit is reached."""
        run, status, stalls, best = self.run, Status.WORKING_PRECISION, 0, np.inf
        try:
            with run.in_time():
                for _ in range(_MAX_ROUNDS):
                    start = self.W
                    steps = self._round()
                    if self._close():
                        status = Status.CERTIFIED
                    gap = run.trace[-1].primal - run.trace[-1].dual
                    if status is Status.CERTIFIED and gap <= self.tol * run.trace[-1].primal:
                        break
                    smooth = (
                        self.slack > max(self._smoothing_allowance(), _BLUR * self.value)
                        and self.sigma < self.most
                    )
                    minimised = steps < _MAX_STEPS and status is not Status.CERTIFIED
                    if gap < 0.7 * best or (smooth and minimised):
                        stalls = 0
                    else:
                        stalls += 1
                    best = min(best, gap)
                    near = self.slack <= _SMOOTHING * run.stop.tol * self.value
                    if near and status is not Status.CERTIFIED and self._correct():
                        status = Status.CERTIFIED
                        break
                    if stalls >= _STALLS:
                        break
                    self._next(steps, start)
        except LimitReached as limit:
            if status is not Status.CERTIFIED:
                status = limit.status
                self._close()
        if status is not Status.CERTIFIED and run.best_dual is not None:
            run.close(self._primal(), run.best_dual)
        return run.solution(status, self._primal(), self._dual())

    def _next(self, steps: int, start: FloatArray) -> None:
        """Set centre and sigma of the next round, or repeat a round that stalled at a large sigma with a smaller one.

        Beyond a curvature of 1/u times lam the Newton systems are no longer definite in float64.
        """
        stiff = self.sigma * self.spread > _SINGULAR * self.problem.lam
        near = self.slack <= _NEARLY_SMOOTH * self.value
        if steps == _MAX_STEPS and stiff and near and self.residual > self.slack:
            self.most = self.sigma = self.sigma / _BACK
            self.W = start
            return
        self.centre, self.P = self.P, self.centre
        self.sigma = min(self.most, _growth(steps) * self.sigma)

    def _close(self) -> bool:
        """Return whether the gap closes at W, with its own dual point or with the best so far."""
        run, at = self.run, self._primal()
        if run.close(at, self._dual()):
            return True
        last = run.trace[-1]
        return (
            run.best_dual is not None
            and last.primal - last.dual <= SAFETY * run.stop.tol * last.primal
            and run.close(at, run.best_dual)
        )

    def _round(self) -> int:
        """Minimise the smoothed objective; return the number of Newton steps."""
        problem = self.problem
        self.Z = problem.scores(self.W)  # removes the rounding errors accumulated by the steps
        loss, _, self.moved, self.slack = problem.smooth(
            self.Z, None, 0.0, self.centre, self.sigma, self.P
        )
        self.value = loss + problem.penalty_value(self.W)
        steps, decrement, t, least, stalls = 0, np.inf, 0.0, np.inf, 0
        while steps < _MAX_STEPS and stalls < _STALLS:
            self.run.check_limits()
            g = problem.gradient(self.P)
            if not np.isfinite(g).all():
                raise not_finite_error()
            g[:-1] += problem.lam * self.W[:-1]
            self.residual = self._residual(g)
            if self._ends_round(g, decrement if 0.5 <= t <= 2.0 else np.inf):
                break
            t, decrement = self._step(g)
            if t == 0.0:
                break
            if decrement <= _NOISE * self.value:  # progress is visible only in the residual
                stalls = 0 if self.residual <= 0.5 * least else stalls + 1
                least = min(least, self.residual)
            steps += 1
        return steps

    def _step(self, g: FloatArray) -> tuple[float, float]:
        """Make a Newton step; return its size (0 if no method gave a descent direction) and squared decrement."""
        decrement = np.inf
        for failed in range(_WAYS):
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                D = self._direction(self.P, g, failed)
                decrement = -float(np.vdot(g, D))
            t = self._search(D, decrement) if 0.0 < decrement < np.inf else 0.0
            if t > 0.0:
                return t, decrement
        return 0.0, decrement

    def _direction(self, P: FloatArray, g: FloatArray, failed: int = 0) -> FloatArray:
        check = self.run.check_limits
        return newton_step(self.problem, P, self.sigma, g, check, self.spread, failed)

    def _correct(self) -> bool:
        """Return whether Newton steps on the active classes close the gap, with p moved along instead of projected.

        p is sigma times a difference of scores. If columns are huge, rounding of the scores moves V by more than the
        gap allows; in these steps only the change of the scores is rounded. A step ends where the first p becomes 0.
        """
        problem, run, k = self.problem, self.run, self.problem.k
        W, P = self.W, self.P.copy()
        p = P[:, :k]
        for _ in range(_CORRECTIONS):
            run.check_limits()
            g = problem.gradient(P)
            g[:-1] += problem.lam * W[:-1]
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                D = self._direction(P, g)
                move, active = problem.scores(D)[:, :k], p > 0.0
                move -= (move * active).sum(axis=1, keepdims=True) / active.sum(axis=1)[:, None]
                move *= self.sigma * active
                ends = np.where(move < 0.0, p / -move, np.inf)
            if not np.isfinite(move).all():
                return False
            t = min(1.0, float(ends.min()))
            W = W + t * D
            p += t * move
            p[(ends <= t) | (p < 0.0)] = 0.0
            if t == 1.0 and run.close(W, dual_point(problem, P)):
                self.W, self.P = W, P
                return True
        return False

    def _residual(self, g: FloatArray) -> float:
        """Decrease |g_w|^2/(2 lam) of the dual value due to the gradient of the weights, for centred rows.

        The dual point is balanced: its class sums g_b vanish, which changes g_w by about the mean row times g_b.
        """
        rest = g[:-1] - np.outer(self._mean, g[-1])
        return float(np.vdot(rest, rest)) / (2.0 * self.problem.lam)

    def _smoothing_allowance(self) -> float:
        """Largest gap due to smoothing that is accepted."""
        return _SMOOTHING * self.tol * self.value

    def _ends_round(self, g: FloatArray, decrement: float) -> bool:
        """Return whether the round is over: the gap will close, or only a larger sigma can close it."""
        allowed, residual = self._smoothing_allowance(), self.residual
        if self.slack > allowed:
            return decrement <= _INNER * self.moved and residual <= self.slack
        return residual <= allowed and float(np.abs(g[-1]).max()) <= 0.1 * allowed

    def _search(self, D: FloatArray, decrement: float) -> float:
        """Line search along D to a small slope; the objective is convex, so the slopes bracket the minimum.

        Returns the step size; 0, without a move, if the objective would increase.
        """
        problem, dZ = self.problem, self.problem.scores(D)
        lam, t = problem.lam, 1.0
        along, square = (
            lam * float(np.vdot(self.W[:-1], D[:-1])),
            lam * float(np.vdot(D[:-1], D[:-1])),
        )
        low, high, at_low, at_high = 0.0, np.inf, -decrement, np.inf
        rises: bool | None = None  # at the last trial
        for _ in range(_TRIALS):
            loss, slope, moved, slack = problem.smooth(
                self.Z, dZ, t, self.centre, self.sigma, self.trial
            )
            slope += along + t * square
            value = loss + problem.penalty_value(self.W) + t * (along + 0.5 * t * square)
            risen = not value <= self.value + _BLUR * abs(self.value)
            flat = abs(slope) <= _SLOPE * decrement
            if (flat and not risen) or decrement <= _NOISE * self.value:
                break
            if t == 1.0 and value <= self.value - 0.3 * decrement:
                break
            again, rises = rises == (slope > 0.0), slope > 0.0
            if rises:  # Illinois: an end that stays counts half, as slopes may be the same over many powers of ten
                high, at_high, at_low = t, slope, 0.5 * at_low if again else at_low
            else:
                low, at_low, at_high = t, slope, 0.5 * at_high if again else at_high
            share = at_low / (at_low - at_high) if high < np.inf else 0.0
            t = 2.0 * t if high == np.inf else low + (high - low) * min(0.9, max(0.1, share))
        if risen:
            return 0.0
        self.W = self.W + t * D
        self.Z += t * dZ
        self.P, self.trial = self.trial, self.P
        self.value, self.moved, self.slack = value, moved, slack
        return t

    def _primal(self) -> FloatArray:
        """Return W, scaled up slightly if (nearly) all rows are fitted: rounding then gives rows on the margin no loss.

        Their losses are 0 up to the rounding of the scores of both classes, (d + 6) u (|x|.|w| + |b|) each. Scaling by
        more than twice that removes them, and increases the penalty by twice the relative change.
        """
        problem, W = self.problem, self.W
        if not problem.penalty_value(W) >= _FITTED * self.value:
            return W
        if self._farthest is None:
            self._farthest = math.sqrt(float(problem.row_norms().max(initial=0.0)))
        size = np.abs(W).max(axis=1)
        reach = self._farthest * float(np.linalg.norm(size[:-1])) + float(size[-1])
        stretch = max(_LEAST_STRETCH, 4.0 * (problem.data.d + 6) * 2.0**-53 * reach)
        return W * (1.0 + min(stretch, _FITTED))

    def _dual(self) -> Explicit:
        return dual_point(self.problem, self.P)


def _spread(problem: MaxMarginProblem) -> float:
    """Mean square of the rows, centred if there are intercepts."""
    moments, d, n = problem.moments(), problem.data.d, problem.data.n
    mean = moments[d : 2 * d] / n
    with np.errstate(over="ignore", invalid="ignore"):
        spread = float(moments[:d].sum()) / n
        return spread - (float(mean @ mean) if problem.fit_intercept else 0.0)


def _first_sigma(lam: float, spread: float) -> float:
    """Return a sigma whose smoothed problem is easy: curvature sigma |x|^2 not far above lam.

    If C is large and the classes are separable, p off the labels is of order lam/|x|^2; with a much larger sigma the
    rows change their active classes at every Newton step.
    """
    return min(_FIRST, _CURVED * lam / spread) if 0.0 < spread < np.inf else _FIRST


def _growth(steps: int) -> float:
    """Factor on sigma for the next round: smaller after a round with many steps, larger after one with two."""
    return 25.0 if steps <= 2 else 5.0 if steps < 10 else 2.0 if steps < 30 else 1.0


def solve(problem: CoupledProblem, W: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve from W (d+1, k)."""
    assert isinstance(problem, MaxMarginProblem)
    run = Run(problem, stop)
    few = problem.order * problem.k <= _POLISH_UNKNOWNS
    polish = few and problem.data.n_entries * problem.k < _POLISH
    if crammer_singer_ascent.prefers(problem) and not polish and not W.any():
        return _from_ascent(run, seed)
    return _Rounds(run, _pilot(problem, zero_sum(W), run, seed), polish).solve()


def _from_ascent(run: Run[MaxMarginProblem], seed: int) -> Solution:
    """Run coordinate ascent, then proximal rounds from its point, or from zero if its gap is large."""
    ascent = crammer_singer_ascent.Ascent(run, seed)
    try:
        with run.in_time():
            done = ascent.climb()
    except LimitReached as limit:
        dual = dual_point(run.problem, ascent.P)
        run.close(ascent.at(), dual)
        return run.solution(limit.status, ascent.at(), dual)
    if done:
        return run.solution(Status.CERTIFIED, ascent.at(), dual_point(run.problem, ascent.P))
    last = run.trace[-1] if run.trace else None
    near = last is not None and last.primal - last.dual <= _GOOD_START * last.primal
    start = zero_sum(ascent.at())
    rounds = _Rounds(run, start if near else np.zeros_like(start), polish=False)
    if rounds.W.any():
        rounds.centre = ascent.P
    return rounds.solve()


def _pilot(
    problem: MaxMarginProblem, W: FloatArray, run: Run[MaxMarginProblem], seed: int
) -> FloatArray:
    """Return a start from a roughly solved pilot if there are many rows; else W."""
    data = problem.data
    m = max(4096, _PILOT_ROWS * problem.order * problem.k)
    if W.any() or data.n_entries * problem.k < _PILOT_WORK or m > _PILOT_SHARE * data.n:
        return W
    some = sample(problem, m, seed).data
    small = MaxMarginProblem(CrammerSinger(problem.k), problem.penalty, some, problem.fit_intercept)
    start = _Rounds(Run(small, run.rest(_PILOT_TOL)), W, polish=False).solve().W
    problem.passes += small.passes * some.n / data.n
    return start
