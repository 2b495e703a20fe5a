"""Fit small problems in one native call (kernels/newton/fit.hpp), where Python's overhead would exceed the work.

Newton's method with Cholesky, as in ``solve.py``, on one block, with two threads if it is large enough. Small problems
are polished, that is, solved far below tol: one more step costs microseconds, and a sample weight of 2 then gives the
same coefficients as a repeated row to more digits.
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

ENTRIES = 500_000  # largest number of stored entries; doubled if there are rows enough for a pilot
FEATURES = 300
_POLISH = 3e6  # multiply-adds of one Hessian up to which polishing costs next to nothing
_POLISH_TOL = 1e-5  # no polishing for a larger tol
MAX_STEPS = 200
_SECONDS = 2.0  # upper bound on the time of a native fit
# Entries from which a pilot saves more than it costs, given many rows per feature.
PILOT_ENTRIES = 400_000
_PILOT_TOL = 1e-3
# Sparse columns are often rare, and with a weak penalty a pilot overestimates the weights of columns that few of its
# rows have. It then gets more rows; for the logistic loss, which is slow to reduce large weights, many more, or it is
# skipped.
_SPARSE_ROWS_PER_FEATURE = 150
_WEAK_HARDNESS, _WEAK_ROWS, _WEAKER_HARDNESS, _MANY_ROWS = 1.0, 60, 100.0, 100
UNFINISHED, GAP_CLOSED, _PRECISION, _SEPARABLE = 0, 1, 2, 3


def fits(problem: Problem) -> bool:
    """Return whether the problem is one block of moderate size with a compiled loss."""
    data = problem.data
    room = 2 * ENTRIES if _many_rows(problem) else ENTRIES
    small = data.n_entries <= room and data.d <= FEATURES
    return problem.native and small and data.whole is not None


def work(shape: Shape) -> Work:
    """Return the work of one iteration: two sweeps, a Gram matrix and a factorisation, without calls from Python."""
    return {
        **{"native calls": 1.0, **sweeps(shape, 2.0), shape.storage + "gram": shape.pairs},
        "factors": shape.d**3 / 3.0,
    }


def ends_before(stop: Stop) -> bool:
    """Return whether a native fit, which does not check the limits, surely ends before they are reached."""
    in_time = stop.time_limit is None or stop.time_limit >= _SECONDS
    return in_time and (stop.max_passes is None or stop.max_passes >= 3 * MAX_STEPS + 1)


def polishes(tol: float, entries: int, d: int) -> bool:
    """Return whether a solution more accurate than tol costs next to nothing."""
    return tol <= _POLISH_TOL and entries * (d + 8) <= _POLISH


def run_native(
    problem: Problem, theta: FloatArray, tol: float, polish: bool
) -> tuple[int, float, float, Linearised, FloatArray]:
    """Run the native fit; return status, primal and dual value, dual point and closing sums. Overwrites theta."""
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
    """Return the number of rows of a pilot that saves more than it costs; 0 if none does."""
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
    """Return the optimum of a pilot, started from theta, to a relative gap ``tol``; theta if that fails."""
    start = theta.copy()
    if sub.native and sub.data.whole is not None:
        status = run_native(sub, start, tol, polish=False)[0]
        return start if status in (0, 1, 2) and np.isfinite(start).all() else theta
    return newton.solve(sub, theta, Stop(tol), Cholesky(sub.centre())).W[:, 0]


def worthy_pilot(problem: Problem, seed: int) -> Problem | None:
    """Return a pilot; None if it would cost more than it saves."""
    m = _pilot_rows(problem)
    return sampling.sub_problem(problem, m, seed) if m else None


def penalised_pilot(problem: Problem, seed: int) -> Problem | None:
    """Return a pilot with a penalty for a problem without one: a subsample may be separable though the data are not."""
    if not problem.loss.recedes or problem.data.sparse or not _many_rows(problem):
        return None
    sub = sampling.sub_problem(problem, sampling.pilot_size(problem.data), seed)
    return Problem(sub.loss, ElasticNet(1.0), sub.data, sub.fit_intercept)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Fit in one native call; another method continues if the solution is not certified.

    The status is GIVEN_UP after too many steps, and WORKING_PRECISION after overflow or loss of precision (without a
    penalty that is the final result).
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
        recession.refuse_without_minimiser(problem)  # margins within rounding: decide exactly
    if status == _PRECISION and problem.lam == 0.0:
        recession.refuse_receding(problem, theta)
        value, _ = problem.value_gradient(theta)
        theta = minimum_norm.among_minimisers(problem, theta)
        run.record(value)
        return run.solution(Status.WORKING_PRECISION, theta, dual)
    if status == GAP_CLOSED and math.isfinite(primal):
        run.lower = min(lower, primal)  # rounding may put the lower bound above the objective
        run.best = (primal - run.lower, theta, dual, sums)
        run.record(primal)
        return run.solution(Status.CERTIFIED, theta, dual)
    unfinished = status == UNFINISHED or problem.lam == 0.0
    return run.solution(Status.GIVEN_UP if unfinished else Status.WORKING_PRECISION, theta, dual)
