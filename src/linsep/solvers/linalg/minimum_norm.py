"""Select the minimiser of least norm where there are several.

Without a penalty and with dependent columns, the minimiser is unique only up to the null space N of the centred rows.
The weights are projected, w - N (N'w), the intercept is adjusted so that no score changes, and one Newton step corrects
rounding errors in columns of very different scales. For least squares the result is the pseudo-inverse solution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.interrupts import lapack
from linsep.problem import Problem
from linsep.solvers.linalg.factor import NULL_EIGENVALUE, Factor


def null_space(S: FloatArray) -> FloatArray:
    """Orthonormal basis of the numerical null space of S, which has a positive diagonal."""
    scale = 1 / np.sqrt(np.diag(S))
    scaled = S * scale * scale[:, None]
    if _surely_definite(scaled):
        return np.empty((len(S), 0))
    values, vectors = lapack(np.linalg.eigh, scaled)
    absent = values <= NULL_EIGENVALUE * values[-1]
    basis: FloatArray = lapack(np.linalg.qr, scale[:, None] * vectors[:, absent])[0]
    return basis


def _surely_definite(scaled: FloatArray) -> bool:
    """Return whether all eigenvalues surely exceed NULL_EIGENVALUE times the largest, which is at most the trace.

    The Cholesky factorisation takes a thirtieth of the time of an eigendecomposition.
    """
    shift = 4.0 * NULL_EIGENVALUE * len(scaled) * np.eye(len(scaled))
    try:
        lapack(np.linalg.cholesky, scaled - shift)
    except np.linalg.LinAlgError:
        return False
    return True


def among_minimisers(problem: Problem, theta: FloatArray) -> FloatArray:
    """Return the minimiser of least norm, given a minimiser theta at which the last sweep stored the curvatures."""
    mu = problem.centre()
    H = problem.hessian(mu)
    S, mean = H[:-1, :-1], mu
    if problem.fit_intercept and H[-1, -1] > 0:
        shift = H[:-1, -1] / H[-1, -1]  # the curvature-weighted mean of x - mu
        S = S - np.outer(shift, H[:-1, -1])
        mean = mu + shift
    # Exclude columns that are constant up to rounding: their variance is noise relative to their mean square.
    noise = 1e-14 * np.diag(H)[:-1] + 1e-24 * H[-1, -1] * mean**2
    varies = np.diag(S) > noise
    N = null_space(S[np.ix_(varies, varies)]) if varies.any() else np.empty((0, 0))

    def project_out(change: FloatArray) -> FloatArray:
        """Remove the component of a change of theta that changes no score."""
        away = np.where(varies, 0.0, change[:-1])
        away[varies] = N @ (N.T @ change[:-1][varies])
        out = change.copy()
        out[:-1] -= away
        if problem.fit_intercept:
            out[-1] += mean @ away
        return out

    if N.shape[1] == 0 and not theta[:-1][~varies].any():
        return theta
    return _repair(problem, project_out(theta), mu, project_out)


def _repair(
    problem: Problem,
    theta: FloatArray,
    mu: FloatArray,
    without: Callable[[FloatArray], FloatArray],
) -> FloatArray:
    """Make one Newton step without its component in the null space, if it does not increase P. Three passes."""
    value, g = problem.value_gradient(theta)
    rhs = -g
    rhs[:-1] += mu * g[-1]
    step = Factor(problem.hessian(mu), definite=False).solve(rhs)
    step[-1] -= mu @ step[:-1]
    trial = theta + without(step)
    return trial if problem.value_gradient(trial)[0] <= value else theta
