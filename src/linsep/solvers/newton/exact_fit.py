"""Exact fits without a penalty: coefficients of least norm that leave no residual.

With at least as many features as rows, every target is usually fitted exactly, and the fit is optimal for every loss
that is 0 at residual 0. With X - mu the centred rows and K = (X - mu)(X - mu)' their Gram matrix, w = (X - mu)' a with
K a = t - mean(t) has the least norm, and the intercept follows. Normal equations of the features are singular there.
The system is solved with a Cholesky factor; iterative refinement, with residuals of the rows themselves, removes the
rounding errors of K. With fewer features than rows, Newton's method finds the least-squares solution.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.interrupts import lapack
from linsep.losses import Squared, zero_margin
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.linalg.row_products import row_products
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.gram_reduction import MAX_ORDER
from linsep.solvers.newton.subsampled import Adaptive

EXACT = 1e-12  # relative objective of an exact fit, which is rounding error
REFINEMENTS = 6
_JITTER = 1e-13  # added to the diagonal of the scaled Gram matrix
_SLOW = 0.5  # refinement ends when the residual decreases by less than this factor


def in_row_space(problem: Problem) -> bool:
    """Return whether a loss with residuals has no penalty and at least as many features as rows, few enough for K."""
    data, loss = problem.data, problem.loss
    two_sided = loss.convex and not loss.recedes and not loss.flat_beyond_margin
    few = data.n <= min(data.d, MAX_ORDER) and data.location is not Location.CLUSTER
    return problem.penalty.absent and two_sided and few and data.fits_memory()


def exact_fit(problem: Problem, value: float) -> FloatArray | None:
    """Return the least-squares solution if its losses are rounding errors relative to ``value``; else None."""
    theta = _interpolate(problem) if in_row_space(problem) else _least_squares(problem)
    if not np.isfinite(theta).all():
        return None
    left, _ = problem.value_gradient(theta)
    return theta if left <= EXACT * value else None


def solve(problem: Problem) -> Solution | None:
    """Return an exact fit as a solution; None if there is none, or features are fewer than rows."""
    if not in_row_space(problem):
        return None
    theta = exact_fit(problem, problem.null_value())
    if theta is None:
        return None
    nothing = Explicit(np.zeros(problem.data.n))
    W = theta.reshape(-1, 1)
    return Solution(W, nothing, Status.WORKING_PRECISION, problem.passes, 0.0)


def _least_squares(problem: Problem) -> FloatArray:
    squared = Squared(centre=zero_margin(problem.loss))
    easy = Problem(squared, problem.penalty, problem.data, problem.fit_intercept)
    found = newton.solve(easy, np.zeros(problem.order), Stop(1e-9), Adaptive(easy, None))
    problem.passes += easy.passes
    return np.ascontiguousarray(found.W[:, 0])


def _interpolate(problem: Problem) -> FloatArray:
    """Return the coefficients of least norm for which the residuals of all rows with weight vanish."""
    data = problem.data
    live = np.arange(data.n) if data.weight is None else np.flatnonzero(data.weight > 0.0)
    rows = data.sample(live)
    X = rows.X.astype(np.float64)
    offset = 0.0 if rows.offset is None else rows.offset
    t = rows.sign * (zero_margin(problem.loss) - offset)
    mean, middle = np.zeros(data.d), 0.0
    if problem.fit_intercept:
        mean, middle = np.asarray(X.mean(axis=0)).ravel(), float(t.mean())
    if not sp.issparse(X):
        X -= mean
        shift = np.zeros(data.d)
    else:
        shift = mean
    K = row_products(X)
    if shift.any():  # (X - 1 mu')(X - 1 mu')'
        along = X @ shift
        K += float(shift @ shift) - along - along[:, None]
    problem.passes += 1 + REFINEMENTS
    scale = np.sqrt(np.maximum(np.diag(K), 1e-300))
    K /= scale
    K /= scale[:, None]
    K[np.diag_indices(len(K))] += _JITTER
    w, before = np.zeros(data.d), np.inf
    try:
        factor = lapack(sl.cho_factor, K, overwrite_a=True, check_finite=False)
    except np.linalg.LinAlgError:
        return np.full(problem.order, np.nan)
    for _ in range(REFINEMENTS):
        r = t - middle - (X @ w - float(shift @ w))
        size = float(np.linalg.norm(r))
        if not size <= _SLOW * before:
            break
        best, before = w, size
        a = sl.cho_solve(factor, r / scale, check_finite=False) / scale
        w = w + X.T @ a - shift * float(a.sum())
    return np.append(best, middle - float(mean @ best) if problem.fit_intercept else 0.0)
