"""Fit small problems with an L1 penalty in one native call (kernels/l1/fit.hpp), to avoid the overhead of Python.

Prox-Newton with the Hessian of all features, as in ``prox_newton.py``, on one block by one thread.
"""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.problem import Problem
from linsep.solution import Linearised
from linsep.solvers import sampling
from linsep.solvers.run import SAFETY, Run

ENTRIES = 1_000_000  # largest number of stored entries of X; more are faster with several threads
_MAX_STEPS = 100
_GAP_CLOSED = 1
# A pilot of sparse rows must be large, because columns are rare; with a weak penalty, larger still.
_SPARSE_ROWS_PER_FEATURE, _SPARSE_SHARE, _LARGE_SHARE = 100, 0.1, 0.3
# The penalty is weak if the largest |correlation| of a feature at the start exceeds this multiple of it.
_WEAK_PENALTY_RATIO = 20.0
_STRIDE, _STRIDE_TOL = 3.0, 0.05  # factor between the penalties of a pilot, and their tolerance
_PILOT_TOL = 3e-3


def applies(problem: Problem) -> bool:
    """Return whether the problem is one block of moderate size with a compiled loss without straight tails."""
    data = problem.data
    curved = problem.native and not problem.loss.straight_tails
    fits = data.n_entries <= ENTRIES and data.whole is not None
    return curved and fits


def attempt(run: Run[Problem], theta: FloatArray, seed: int) -> tuple[bool, FloatArray]:
    """Fit in one native call; return whether the gap closed, and the final point."""
    problem = run.problem
    if not theta[:-1].any():
        theta = _from_a_pilot(problem, theta, seed)
    l1, tol = problem.penalty.l1, SAFETY * run.stop.tol
    status, at, dual, sums = _native(problem, theta, l1, tol, _MAX_STEPS)
    if status == _GAP_CLOSED and run.close(at, dual, sums):
        return True, at
    return False, at if np.isfinite(at).all() else theta


def _from_a_pilot(problem: Problem, null: FloatArray, seed: int) -> FloatArray:
    """Return an approximate optimum of a pilot; ``null``, the null model, if rows are few.

    From the null model a step at a weak penalty is far too long. The penalty therefore decreases from the value at
    which all weights are 0, with one step at each.
    """
    data, l1 = problem.data, problem.penalty.l1
    if not (
        data.n >= _SPARSE_ROWS_PER_FEATURE * data.d if data.sparse else sampling.many_rows(data)
    ):
        return null
    share = _SPARSE_SHARE if data.sparse else sampling.PILOT_SHARE
    sub = sampling.sub_problem(problem, sampling.pilot_size(data, share), seed)
    correlation = _largest_correlation(sub, null)
    if not correlation > l1:
        return null
    if data.sparse and correlation > _WEAK_PENALTY_RATIO * l1:
        sub = sampling.sub_problem(problem, sampling.pilot_size(data, _LARGE_SHARE), seed)
    at, falling = null, _largest_correlation(sub, null) / _STRIDE
    while falling > 1.3 * l1:
        status, at, _, _ = _native(sub, at, falling, _STRIDE_TOL, 1)
        if status == _GAP_CLOSED:  # closed in one step: the problem is easy
            break
        falling /= _STRIDE
    status, at, _, _ = _native(sub, at, l1, _PILOT_TOL, _MAX_STEPS)
    problem.passes += sub.passes * sub.data.n / data.n
    return at if status == _GAP_CLOSED else null


def _largest_correlation(problem: Problem, null: FloatArray) -> float:
    """Largest |sum s sigma l' x| of a feature at the null model. One pass."""
    return float(np.abs(problem.value_gradient(null)[1][:-1]).max(initial=0.0))


def _native(
    problem: Problem, theta: FloatArray, l1: float, tol: float, steps: int
) -> tuple[int, FloatArray, Linearised, FloatArray]:
    """Run the native fit; return status, final point, dual point and closing sums."""
    block = problem.data.whole
    assert block is not None
    at, base, step = theta.copy(), theta.copy(), np.zeros(len(theta))
    sums = np.zeros(8 + 2 * problem.data.d)
    status, _, sweeps, grams, _, _ = _kernels.lasso_newton(
        block.rows,
        block.targets,
        problem.native_loss,
        l1,
        problem.lam,
        tol,
        steps,
        problem.fit_intercept,
        at,
        base,
        step,
        sums,
    )
    problem.passes += sweeps + grams
    return status, at, Linearised(base.reshape(-1, 1), step.reshape(-1, 1)), sums
