"""Exact fits without a penalty: coefficients of least norm that leave no residual.

With at least as many features as rows, every target is usually fitted exactly, and the fit is optimal for every loss
that is 0 at residual 0. With X - mu the centred rows and K = (X - mu)(X - mu)' their Gram matrix, w = (X - mu)' a with
K a = t - mean(t) has the least norm, and the intercept follows. Normal equations of the features are singular there.
The system is solved with a Cholesky factor; iterative refinement, with residuals of the rows themselves, removes the
rounding errors of K. With fewer features than rows, Newton's method finds the least-squares solution.

Features with penalty factor 0 may fit every target exactly as well. Losses that are 0 beyond a margin are fitted at a
margin of 1 more.
"""

from __future__ import annotations

import math
from contextlib import closing

import numpy as np
import scipy.linalg as sl
import scipy.sparse as sp

from linsep.arrays import FloatArray, embed
from linsep.data import Location
from linsep.interrupts import lapack
from linsep.losses import Squared, zero_margin
from linsep.penalties import ElasticNet
from linsep.problem import GroupProblem, Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.linalg.row_products import row_products
from linsep.solvers.newton.gram_reduction import MAX_ORDER
from linsep.solvers.newton.recession import separable, separable_by_unpenalised, separates
from linsep.solvers.newton.subsampled import minimise

NAME = "newton"  # exact fits stand in for Newton's method
EXACT = 1e-12  # relative objective of an exact fit, which is rounding error
REFINEMENTS = 6
_JITTER = 1e-13  # added to the diagonal of the scaled Gram matrix
_SLOW = 0.5  # refinement ends when the residual decreases by less than this factor


def in_row_space(problem: Problem) -> bool:
    """Return whether a loss with residuals has no penalty and at least as many features as rows, few enough for K."""
    loss = problem.loss
    two_sided = loss.convex and not loss.recedes and not loss.flat_beyond_margin
    return problem.penalty.absent and two_sided and _few_rows(problem)


def _few_rows(problem: Problem) -> bool:
    data = problem.data
    few = data.n <= min(data.d, MAX_ORDER) and data.location is not Location.CLUSTER
    return few and data.fits_memory()


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


def solve_unpenalised(group: GroupProblem) -> Solution | None:
    """Return a fit with loss 0 by the features with penalty factor 0 alone, which is optimal; None if there is none.

    Raises ``SeparableData`` if the loss recedes.
    """
    free = np.flatnonzero(group.penalty.unpenalised(group.data.d))
    if len(free) < group.data.n or not group.loss.convex:
        return None
    with closing(group.data.columns(free)) as rows:
        part = Problem(group.loss, ElasticNet(math.inf), rows, group.fit_intercept)
        theta = _interpolate(part) if _few_rows(part) else np.full(part.order, math.nan)
        group.losses.passes += part.passes
        if not np.isfinite(theta).all():
            return None
        fits = part.value_gradient(theta)[0] <= EXACT * part.null_value()
        if group.loss.recedes:
            if separates(part, theta):
                raise separable_by_unpenalised(group, free, separable(theta))
            return None
    if not fits:
        return None
    W = embed(theta.reshape(-1, 1), free, group.data.d)
    nothing = Explicit(np.zeros(group.data.n))
    return Solution(W, nothing, Status.WORKING_PRECISION, group.passes, 0.0)


def _least_squares(problem: Problem) -> FloatArray:
    squared = Squared(centre=zero_margin(problem.loss))
    easy = Problem(squared, problem.penalty, problem.data, problem.fit_intercept)
    theta = minimise(easy, np.zeros(problem.order), Stop(1e-9))
    problem.passes += easy.passes
    return theta


def _interpolate(problem: Problem) -> FloatArray:
    """Return the coefficients of least norm for which the residuals of all rows with weight vanish."""
    data = problem.data
    live = np.arange(data.n) if data.weight is None else np.flatnonzero(data.weight > 0.0)
    rows = data.sample(live)
    X = rows.X.astype(np.float64)
    offset = 0.0 if rows.offset is None else rows.offset
    beyond = float(problem.loss.flat_beyond_margin or problem.loss.recedes)
    t = rows.sign * (zero_margin(problem.loss) + beyond - offset)
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
