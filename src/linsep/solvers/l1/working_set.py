"""Working sets for L1 penalties: solve on a few features, and add those that violate their optimality condition.

Problem: min l2/2 |w|^2 + l1 |w|_1 + sum s l(m). At the optimum of the features in the working set one closing pass over
all of X gives ``v = sum s sigma u x``. A feature outside with ``|v_j| <= l1`` is zero at the optimum; the others join,
the largest violations first, and the set at most doubles. The same pass gives the duality gap of the whole problem (if
l2 = 0, v is scaled into the feasible box), so the loop ends with a proof.

On a cluster rounds are more expensive than operations: if the Hessian of all features is small enough to be sent, all
features are used from the start, at the optimum of a pilot; otherwise working sets are larger.

References: Johnson and Guestrin, Blitz, 2015; Massias, Gramfort and Salmon, Celer, 2018.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray, IntArray, embed
from linsep.data import Location
from linsep.problem import Problem
from linsep.problem.duality import balanced_v
from linsep.solution import Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.interior import l1 as interior_l1
from linsep.solvers.l1 import coordinate, prox_newton
from linsep.solvers.l1 import native as native_l1
from linsep.solvers.newton import cluster as newton_cluster
from linsep.solvers.newton import native as native_newton
from linsep.solvers.null_model import null_model
from linsep.solvers.run import LimitReached, Run, linearised

ALL = 150  # number of features up to which the working set contains all
ALL_SPARSE = 500  # that number for sparse data with short rows
ROWS_PER_FEATURE = (
    4  # from this, Hessians of all features come first if half of them violate optimality
)
CHEAP_ROW = 40  # entries of a short row
FIRST, FIRST_FEW = 40, 400  # smallest first working set; the second on a cluster
MAX_ROUNDS = 60
CURVED = 0.5  # mean curvature, relative to its bound, below which a Newton model is unreliable
CALLS = 2  # unfinished calls of prox-Newton before the central path takes over
FEW_STEPS = 20  # Newton steps before the central path is tried


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve on growing working sets, each by prox-Newton or coordinate descent."""
    return _solve(problem, theta, stop, seed, native=False)


def solve_small(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Fit in one native call on all features; if the gap stays above tol, continue with working sets."""
    return _solve(problem, theta, stop, seed, native=native_newton.ends_before(stop))


def is_small(problem: Problem) -> bool:
    """Return whether the native fit applies, and a Hessian of all features costs no more than a few passes."""
    return native_l1.applies(problem) and _fits_hessian(problem)


def _solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int, native: bool) -> Solution:
    run = Run(problem, stop)
    theta = theta.copy()
    try:
        with run.in_time():
            closed = False
            if native:
                closed, theta = native_l1.attempt(run, _start(problem, theta), seed)
            elif problem.data.location is Location.CLUSTER and _fits_hessian(problem):
                closed = _all_on_cluster(run, theta, seed)
            closed = closed or coordinate.close_start(run, theta) or _rounds(run, seed)
            status = Status.CERTIFIED if closed else run.status_above_tol(stop.tol)
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, linearised(theta, np.zeros_like(theta)))


def _start(problem: Problem, theta: FloatArray) -> FloatArray:
    """Return theta, or the null model if that has a smaller objective. One pass, unless theta is 0."""
    null, least = null_model(problem)
    if not theta.any():
        return null
    value, _ = problem.value_gradient(theta)
    return theta if prox_newton.total(problem, theta, value) <= least else null


def _all_on_cluster(run: Run[Problem], theta: FloatArray, seed: int) -> bool:
    """Solve on all features in few rounds, from the optimum of a pilot; return whether the gap closed."""
    problem, mu = run.problem, None
    if not theta.any():
        few = sampling.sub_problem(problem, newton_cluster.pilot_rows(problem.data), seed)
        tol = run.stop.tol if few.data.n >= problem.data.n else newton_cluster.PILOT_TOL
        first = solve_small if is_small(few) else solve
        theta = np.ascontiguousarray(first(few, theta, run.rest(tol), seed).W[:, 0])
        mu = few.centre()
    found = prox_newton.solve(problem, theta, 0.3 * run.stop.tol, run.check_limits, mu=mu)
    return run.close(found.theta, linearised(found.base, found.step), found.sums)


def _rounds(run: Run[Problem], seed: int) -> bool:
    """Solve by the methods that suit the problem, one after another; return whether the gap closed."""
    problem = run.problem
    if run.best is None:
        return False
    # Methods that read columns need rows in memory.
    if not coordinate.applies(problem):
        return _by_hessians(run, seed, whole=False)
    tall = problem.data.d <= coordinate.FEATURES and problem.data.n >= problem.data.d
    whole = tall and _mostly_support(run)
    if not whole and _by_columns(run, coordinate.HESSIANS if tall else np.inf):
        return True
    straight = problem.loss.straight_tails
    # If hardly any row has curvature, Newton steps are short; and dependent columns cost a Hessian more digits than
    # coordinate descent.
    then_path = (whole or _fits_hessian(problem)) and not straight and interior_l1.applies(problem)
    calls = CALLS if then_path else MAX_ROUNDS
    if (tall or straight or _fits_hessian(problem)) and _by_hessians(run, seed, whole, calls):
        return True
    if then_path and _follow(run):
        return True
    return tall and not _fits_hessian(problem) and coordinate.solve(run, run.best[1])


def _mostly_support(run: Run[Problem]) -> bool:
    """Return whether to start with Hessians of all features: many dense rows, and half of the features violate."""
    problem = run.problem
    data = problem.data
    if data.sparse or problem.loss.straight_tails or data.n < ROWS_PER_FEATURE * data.d:
        return False
    score = np.abs(balanced_v(run.last_sums, data.d, problem.fit_intercept))
    return 2 * int(np.count_nonzero(score > problem.penalty.l1)) >= data.d


def _by_hessians(run: Run[Problem], seed: int, whole: bool, unfinished: int = MAX_ROUNDS) -> bool:
    """Run prox-Newton on working sets, or on all features if ``whole``; return whether the gap closed.

    It also ends after so many ``unfinished`` calls, which took all steps of prox-Newton.
    """
    problem, tol = run.problem, run.stop.tol
    assert run.best is not None
    theta = run.best[1]
    score = np.abs(balanced_v(run.last_sums, problem.data.d, problem.fit_intercept))
    chosen = np.arange(problem.data.d) if whole else np.flatnonzero(theta[:-1])
    inner, before, relative = 0.3, np.inf, 0.3
    growing = True
    mu = problem.centre() if problem.data.location is Location.CLUSTER else None
    for _ in range(MAX_ROUNDS):
        chosen = _grow(problem, chosen, theta, score)
        every = len(chosen) == problem.data.d
        goal = inner * tol
        if growing and not every:
            goal = max(goal, 0.25 * relative)
        found = _solve_on(problem, chosen, theta, goal, run, seed, mu)
        theta, base, step = (
            embed(x, chosen, problem.data.d) for x in (found.theta, found.base, found.step)
        )
        if run.close(theta, linearised(base, step), found.sums if every else None):
            return True
        unfinished -= not np.isfinite(found.gap)
        if not unfinished:
            break
        score = np.abs(balanced_v(run.last_sums, problem.data.d, problem.fit_intercept))
        gap = run.trace[-1].primal - run.trace[-1].dual
        primal = run.trace[-1].primal
        relative = min(0.3, gap / primal) if primal > 0.0 else 0.3
        wanting = (score > problem.penalty.l1 * (1 + 1e-12)) & (theta[:-1] == 0.0)
        wanting[chosen] = False
        growing = bool(wanting.any())
        if not growing and goal <= inner * tol:
            if not gap < 0.7 * before and inner < 1e-4:
                break
            inner *= 0.1  # no feature is missing: the gap is due to the inner accuracy
        before = gap
    return False


def _by_columns(run: Run[Problem], budget: float) -> bool:
    """Solve by methods that read columns, where they are suitable; return whether the gap closed.

    ``budget`` limits coordinate descent [prox-Newton steps].

    Losses with straight tails may lack curvature: few rows of the Huber loss have any if the targets are many times its
    width, and few rows of the Huberised hinge once the classes are separated. A Newton model is then useless: the
    central path comes first, or after a few steps, and Newton's method continues from its end.
    """
    problem, straight = run.problem, run.problem.loss.straight_tails
    assert run.best is not None
    if straight and _curvature_share(problem, run.best[1]) < CURVED:
        if _follow(run):
            return True
    elif straight and _fits_hessian(problem):
        found = prox_newton.solve(
            problem, run.best[1], 0.3 * run.stop.tol, run.check_limits, FEW_STEPS
        )
        if run.close(found.theta, linearised(found.base, found.step)) or _follow(run):
            return True
    closed = not _fits_hessian(problem) and coordinate.solve(run, run.best[1], budget)
    if not closed and straight:
        run.close(run.best[1], linearised(run.best[1], np.zeros_like(run.best[1])))
    return closed


def _curvature_share(problem: Problem, theta: FloatArray) -> float:
    """Return the sum of the curvatures at theta relative to its bound. Two passes."""
    problem.value_gradient(theta)
    _, _, curvature = problem.moments()
    return curvature / (problem.loss.curvature_bound * max(problem.data.total_weight(), 1e-300))


def _follow(run: Run[Problem]) -> bool:
    """Follow the central path from the best point, with decreasing penalties; return whether the gap closed."""
    assert run.best is not None
    columns = coordinate.Columns(run.problem, run.best[1])
    if not columns.theta[:-1].any():
        columns.times = float(columns.correlations().max(initial=1.0))
    return interior_l1.finish(run, columns)


def _fits_hessian(problem: Problem) -> bool:
    """Return whether a Hessian of all features costs no more than a few passes, or a round on a cluster."""
    data = problem.data
    if data.d <= ALL:
        return True
    if data.location is Location.CLUSTER and not data.sparse:
        return newton_cluster.worthwhile(data.d, data.largest_part)
    row = data.n_entries / max(1, data.n)
    return data.sparse and data.d <= ALL_SPARSE and row <= CHEAP_ROW and data.n >= 10 * data.d


def _grow(problem: Problem, chosen: IntArray, theta: FloatArray, score: FloatArray) -> IntArray:
    """Return the next working set: the support and the features with the largest |v_j|, at most doubled."""
    d = problem.data.d
    if _fits_hessian(problem):
        return np.arange(d)
    support = np.flatnonzero(theta[:-1])
    first = FIRST_FEW if problem.data.location is Location.CLUSTER else FIRST
    room = max(first, 2 * len(support), len(chosen))
    rank = score.copy()
    rank[support] = np.inf
    eager = int((rank > problem.penalty.l1).sum())
    # a few features with |v_j| just below l1 are included, because they may violate l1 in the next round
    size = min(d, max(room, min(eager, 2 * room)))
    return np.sort(np.argpartition(-rank, size - 1)[:size])


def _solve_on(
    problem: Problem,
    chosen: IntArray,
    theta: FloatArray,
    tol: float,
    run: Run[Problem],
    seed: int,
    mu: FloatArray | None,
) -> prox_newton.Outcome:
    """Solve on the chosen features by prox-Newton; ``mu`` is a centre of the rows, if known."""
    data = problem.data
    whole = len(chosen) == data.d
    sub = problem
    if not whole:
        sub = Problem(problem.loss, problem.penalty, data.columns(chosen), problem.fit_intercept)
        mu = None if mu is None else np.ascontiguousarray(mu[chosen])
    start = np.append(theta[chosen], theta[-1])
    if not start[:-1].any() and data.n >= sampling.ROWS_PER_FEATURE * max(1, len(chosen)):
        few = sampling.sub_problem(sub, sampling.pilot_size(sub.data), seed)
        start = prox_newton.solve(few, start, 1e-3, run.check_limits).theta
    before = sub.passes
    found = prox_newton.solve(sub, start, tol, run.check_limits, mu=mu)
    if not whole:
        share = sub.data.n_entries / max(1, data.n_entries)
        problem.passes += share * (sub.passes - before) + 1.0
        sub.data.close()
    return found
