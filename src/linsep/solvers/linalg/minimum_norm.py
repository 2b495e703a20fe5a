"""Among many minimisers, the one of least norm.

Without a penalty, dependent columns leave the minimiser free along the null space N of the centred rows.
The weights are projected: w - N (N'w), the intercept following so that no score changes, and one Newton
step repairs what rounding did to columns of very different size. For least squares this is the
pseudo-inverse solution.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.interrupts import lapack
from linsep.problem import Problem
from linsep.solvers.linalg.factor import NULL_EIGENVALUE, Factor


def null_space(S: FloatArray) -> FloatArray:
    """Orthonormal basis of the directions that S, with a positive diagonal, does not see."""
    scale = 1 / np.sqrt(np.diag(S))
    scaled = S * scale * scale[:, None]
    if _surely_definite(scaled):
        return np.empty((len(S), 0))
    values, vectors = lapack(np.linalg.eigh, scaled)
    absent = values <= NULL_EIGENVALUE * values[-1]
    basis: FloatArray = lapack(np.linalg.qr, scale[:, None] * vectors[:, absent])[0]
    return basis


def _surely_definite(scaled: FloatArray) -> bool:
    """Whether all eigenvalues exceed NULL_EIGENVALUE times the largest, which is at most the trace.

    A Cholesky factorisation costs a thirtieth of the eigenvalues.
    """
    shift = 4.0 * NULL_EIGENVALUE * len(scaled) * np.eye(len(scaled))
    try:
        lapack(np.linalg.cholesky, scaled - shift)
    except np.linalg.LinAlgError:
        return False
    return True


def among_minimisers(problem: Problem, theta: FloatArray) -> FloatArray:
    """The shortest minimiser, from a minimiser theta whose curvatures are kept."""
    mu = problem.centre()
    H = problem.hessian(mu)
    S, mean = H[:-1, :-1], mu
    if problem.fit_intercept and H[-1, -1] > 0:
        shift = H[:-1, -1] / H[-1, -1]  # the curvature-weighted mean of x - mu
        S = S - np.outer(shift, H[:-1, -1])
        mean = mu + shift
    # A column that is constant up to rounding is absent: its variance is noise beside its square.
    noise = 1e-14 * np.diag(H)[:-1] + 1e-24 * H[-1, -1] * mean**2
    varies = np.diag(S) > noise
    N = null_space(S[np.ix_(varies, varies)]) if varies.any() else np.empty((0, 0))

    def project_out(change: FloatArray) -> FloatArray:
        """A change of theta, less its part that no score sees."""
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
    """One Newton step; rounding may lead it along the null space, and that part is left out."""
    value, g = problem.value_gradient(theta)
    rhs = -g
    rhs[:-1] += mu * g[-1]
    step = Factor(problem.hessian(mu), definite=False).solve(rhs)
    step[-1] -= mu @ step[:-1]
    trial = theta + without(step)
    return trial if problem.value_gradient(trial)[0] <= value else theta
