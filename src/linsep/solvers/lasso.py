"""A whole fit with an absolute penalty in one native call (kernels/lasso_newton.hpp), where Python would cost too much.

Prox-Newton on the Hessian of all features, as in ``prox_newton.py``, on one block by one thread.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.solution import Linearised
from linsep.solvers import small
from linsep.solvers.run import SAFETY, Run

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray, Stop

ENTRIES = 1_000_000  # stored numbers of X; more are better shared by threads
_STEPS = 100
_PILOT_TOL = 1e-3
_GAP_CLOSED = 1


def applies(problem: Problem, stop: Stop) -> bool:
    """Whether the problem is one native block of modest size, and its loss curved wherever it has a slope."""
    data = problem.data
    bent = problem.native and not problem.straight_tails
    fits = data.n_entries <= ENTRIES and data.whole is not None
    return bent and fits and small.ends_before(stop)


def attempt(run: Run[Problem], theta: FloatArray, seed: int) -> tuple[bool, FloatArray]:
    """Whether the gap closed, and the point reached."""
    problem = run.problem
    data = problem.data
    if not theta[:-1].any() and data.n >= small.WORTH_A_PILOT * data.d:
        status, at, _, _ = _native(small.pilot_of(problem, seed), theta, _PILOT_TOL)
        theta = at if status == _GAP_CLOSED else theta
    status, at, dual, sums = _native(problem, theta, SAFETY * run.stop.tol)
    if status == _GAP_CLOSED and run.close(at, dual, sums):
        return True, at
    return False, at if np.isfinite(at).all() else theta


def _native(
    problem: Problem, theta: FloatArray, tol: float
) -> tuple[int, FloatArray, Linearised, FloatArray]:
    """Status, the point reached, its dual point and the sums of its closing pass."""
    block = problem.data.whole
    assert block is not None
    at, base, step = theta.copy(), theta.copy(), np.zeros(len(theta))
    sums = np.zeros(8 + 2 * problem.data.d)
    status, _, sweeps, grams, _, _ = _kernels.lasso_newton(
        block.rows,
        block.targets,
        problem.native_loss,
        problem.penalty.l1,
        problem.lam,
        tol,
        _STEPS,
        problem.fit_intercept,
        at,
        base,
        step,
        sums,
    )
    problem.passes += sweeps + grams
    return status, at, Linearised(base.reshape(-1, 1), step.reshape(-1, 1)), sums
