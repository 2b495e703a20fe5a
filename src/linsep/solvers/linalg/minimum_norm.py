"""Select the minimiser of least norm where there are several.

Without a penalty and with dependent columns, the minimiser is unique only up to the null space N of the centred rows.
The weights are projected, w - N (N'w), the intercept is adjusted so that no score changes, and one Newton step corrects
rounding errors in columns of very different scales. For least squares the result is the pseudo-inverse solution.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.interrupts import lapack
from linsep.problem import Problem
from linsep.problem.gram import CONSTANT
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


class NullDirections:
    """Changes (w, b) along which no score changes, from the Gram matrix H of rows (x - mu, 1) with an intercept."""

    def __init__(self, H: FloatArray, mu: FloatArray, fit_intercept: bool) -> None:
        S, self._mean = H[:-1, :-1], mu
        self._fit_intercept = fit_intercept
        if fit_intercept and H[-1, -1] > 0:
            shift = H[:-1, -1] / H[-1, -1]  # the curvature-weighted mean of x - mu
            S = S - np.outer(shift, H[:-1, -1])
            self._mean = mu + shift
        # Constant columns, whose variance is rounding noise relative to their mean square, are such directions too.
        noise = 1e-14 * np.diag(H)[:-1] + CONSTANT * H[-1, -1] * self._mean**2
        self._varies = varies = np.diag(S) > noise
        self._basis = (
            null_space(S[np.ix_(varies, varies)]) if varies.any() else np.empty((len(S), 0))
        )

    def absent(self, theta: FloatArray) -> bool:
        """Return whether theta surely has no component along them."""
        return self._basis.shape[1] == 0 and not theta[:-1][~self._varies].any()

    def remove(self, theta: FloatArray) -> FloatArray:
        """Remove the component of theta, or of each of its columns, along these directions."""
        varies, N, out = self._varies, self._basis, theta.copy()
        away = theta[:-1].copy()
        away[varies] = N @ (N.T @ away[varies]) if varies.any() else 0.0
        out[:-1] -= away
        if self._fit_intercept:
            out[-1] += self._mean @ away
        return out


def among_minimisers(problem: Problem, theta: FloatArray) -> FloatArray:
    """Return the minimiser of least norm, given a minimiser theta at which the last sweep stored the curvatures."""
    mu = problem.centre()
    H = problem.hessian(mu)
    null = NullDirections(H, mu, problem.fit_intercept)
    if null.absent(theta):
        return theta
    return _repair(problem, null.remove(theta), mu, null)


def _repair(
    problem: Problem,
    theta: FloatArray,
    mu: FloatArray,
    null: NullDirections,
) -> FloatArray:
    """Make one Newton step without its component in the null space, if it does not increase P. Three passes."""
    value, g = problem.value_gradient(theta)
    rhs = -g
    rhs[:-1] += mu * g[-1]
    step = Factor(problem.hessian(mu), definite=False).solve(rhs)
    step[-1] -= mu @ step[:-1]
    trial = theta + null.remove(step)
    return trial if problem.value_gradient(trial)[0] <= value else theta
