"""A whole fit in one native call (kernels/newton/fit.hpp), for problems where Python would cost more than the work.

Newton's method with Cholesky, as in ``solve.py``, on one block, by two threads if it is large enough. It polishes:
small problems are solved far below tol, because one more step costs microseconds and makes weight 2 = row twice
visible in the coefficients.
"""

from __future__ import annotations

import math

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.cost.shape import Shape, hardness, sampled_mean
from linsep.solvers.cost.work import Work, sweeps
from linsep.solvers.linalg import minimum_norm
from linsep.solvers.newton import recession
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import Cholesky
from linsep.solvers.run import SAFETY, Run

ENTRIES = 500_000  # stored numbers of X; twice as many if there are rows enough for a pilot
FEATURES = 300
_POLISH = 3e6  # multiply-adds of one Hessian below which polishing is free
_POLISH_TOL = 1e-5  # who asks for less wants no digits
MAX_STEPS = 200
_SECONDS = 2.0  # longer than any native fit takes
# Entries from which on a pilot saves more than it costs, given many rows per feature.
PILOT_ENTRIES = 400_000
_PILOT_TOL = 1e-3
# Sparse columns are often rare, and where the penalty is weak a pilot makes too much of the few rows that have them.
# Then it has more rows; for the logistic loss, slow to take back large weights, many more, or is left out.
_SPARSE_ROWS_PER_FEATURE = 150
_WEAK_HARDNESS, _WEAK_ROWS, _WEAKER_HARDNESS, _MANY_ROWS = 1.0, 60, 100.0, 100
_UNFINISHED, GAP_CLOSED, _PRECISION, _SEPARABLE = 0, 1, 2, 3


def fits(problem: Problem) -> bool:
    """Whether the problem is one native block of modest size."""
    data = problem.data
    room = 2 * ENTRIES if _many_rows(problem) else ENTRIES
    small = data.n_entries <= room and data.d <= FEATURES
    return problem.native and small and data.whole is not None


def work(shape: Shape) -> Work:
    """Counts of one iteration: two sweeps, a Gram matrix, a factorisation, and no return to Python."""
    return {
        **{"native calls": 1.0, **sweeps(shape, 2.0), shape.storage + "gram": shape.pairs},
        "factors": shape.d**3 / 3.0,
    }


def ends_before(stop: Stop) -> bool:
    """Whether a native fit, which does not look at the clock, surely ends before the user's limits."""
    in_time = stop.time_limit is None or stop.time_limit >= _SECONDS
    return in_time and (stop.max_passes is None or stop.max_passes >= 3 * MAX_STEPS + 1)


def polishes(tol: float, entries: int, d: int) -> bool:
    """Whether a few more digits than asked for cost next to nothing."""
    return tol <= _POLISH_TOL and entries * (d + 8) <= _POLISH


def run_native(
    problem: Problem, theta: FloatArray, tol: float, polish: bool
) -> tuple[int, float, float, Linearised, FloatArray]:
    """Status, primal and dual value, dual point and closing sums of the native fit; theta becomes the answer."""
    block = problem.data.whole
    assert block is not None
    base, step = theta.copy(), np.zeros(len(theta))
    sums = np.zeros(8 + 2 * problem.data.d)
    status, _, sweeps, grams, primal, dual = _kernels.newton(
        block.rows,
        block.targets,
        problem.native_loss,
        problem.lam,
        tol,
        MAX_STEPS,
        problem.fit_intercept,
        polish,
        problem.data.location is Location.MEMORY and problem.data.n_threads > 1,
        theta,
        base,
        step,
        sums,
    )
    problem.passes += sweeps + grams
    return status, primal, dual, Linearised(base.reshape(-1, 1), step.reshape(-1, 1)), sums


def _many_rows(problem: Problem) -> bool:
    data = problem.data
    return data.n >= _SPARSE_ROWS_PER_FEATURE * data.d if data.sparse else sampling.many_rows(data)


def _pilot_rows(problem: Problem) -> int:
    """The rows of a pilot that is worth its price; 0 if none is."""
    data = problem.data
    if problem.lam == 0.0 or not _many_rows(problem):
        return 0
    per_feature, enough = sampling.PILOT_ROWS_PER_FEATURE, _MANY_ROWS * data.d
    if data.sparse and sampling.PILOT_SHARE * data.n < enough and data.whole is not None:
        hard = hardness(problem, sampled_mean(problem))
        if hard > _WEAKER_HARDNESS and problem.loss.recedes:
            return 0
        per_feature = _WEAK_ROWS if hard > _WEAK_HARDNESS else per_feature
    return sampling.pilot_size(data, rows_per_feature=per_feature)


def pilot_optimum(sub: Problem, theta: FloatArray, tol: float = _PILOT_TOL) -> FloatArray:
    """The optimum of a pilot from theta, to three digits or to ``tol``; theta if it has none."""
    start = theta.copy()
    if sub.native and sub.data.whole is not None:
        status = run_native(sub, start, tol, polish=False)[0]
        return start if status in (0, 1, 2) and np.isfinite(start).all() else theta
    return newton.solve(sub, theta, Stop(tol), Cholesky(sub.centre())).W[:, 0]


def worthy_pilot(problem: Problem, seed: int) -> Problem | None:
    """A small pilot; None if it is not worth its price."""
    m = _pilot_rows(problem)
    return sampling.sub_problem(problem, m, seed) if m else None


def penalised_pilot(problem: Problem, seed: int) -> Problem | None:
    """A pilot of a problem without a penalty, with one: few rows may be separable where all are not."""
    if not problem.loss.recedes or problem.data.sparse or not _many_rows(problem):
        return None
    sub = sampling.sub_problem(problem, sampling.pilot_size(problem.data), seed)
    return Problem(sub.loss, ElasticNet(1.0), sub.data, sub.fit_intercept)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """The whole fit, to be finished by another method if it is not certified.

    GIVEN_UP after too many steps; WORKING_PRECISION where arithmetic overflows or digits are missing (without a
    penalty that is the end).
    """
    run = Run(problem, stop)
    data = problem.data
    if np.count_nonzero(theta):
        theta, _, _ = problem.start(theta)
    elif data.n_entries > PILOT_ENTRIES:
        first = worthy_pilot(problem, seed)
        theta = theta if first is None else pilot_optimum(first, theta)
    theta = theta.copy()
    polish = polishes(stop.tol, data.n_entries, data.d)
    status, primal, lower, dual, sums = run_native(problem, theta, SAFETY * stop.tol, polish)
    if status == _SEPARABLE:
        recession.refuse_separated(problem, theta)
        recession.refuse_without_minimiser(problem)  # within rounding: decided exactly
    if status == _PRECISION and problem.lam == 0.0:
        recession.refuse_receding(problem, theta)
        value, _ = problem.value_gradient(theta)
        theta = minimum_norm.among_minimisers(problem, theta)
        run.record(value)
        return run.solution(Status.WORKING_PRECISION, theta, dual)
    if status == GAP_CLOSED and math.isfinite(primal):
        run.lower = min(lower, primal)  # rounding may put one above the other
        run.best = (primal - run.lower, theta, dual, sums)
        run.record(primal)
        return run.solution(Status.CERTIFIED, theta, dual)
    unfinished = status == _UNFINISHED or problem.lam == 0.0
    return run.solution(Status.GIVEN_UP if unfinished else Status.WORKING_PRECISION, theta, dual)
