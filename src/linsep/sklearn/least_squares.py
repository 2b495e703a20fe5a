"""Least squares for one target or several: proposed by one factorisation of LAPACK, proven by linsep.

The rows are centred at their weighted mean, which settles the intercept. With a ridge penalty the normal equations of
the features, or of the rows if these are fewer, are factorised once for all targets. Without one the singular value
decomposition gives the solution of least norm. The certificate is that of the given rows and targets; where it falls
short, rounding is in the way and linsep's own solvers take over.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from linsep import certificates
from linsep.certificates import Optimality, target_units
from linsep.data import Memory
from linsep.losses import Squared
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.sklearn import fitting, ordinary
from linsep.sklearn.fitting import Minimum
from linsep.sklearn_objectives import FloatArray, Objective, Part
from linsep.solution import Linearised, Solution, Status
from linsep.solvers.linalg import cg

#: Ratio of the eigenvalues of a Gram matrix from which singular values are right to 1e-10, relatively.
_WELL_CONDITIONED = 1e-6
#: Share of its squares that a column must vary by for its Gram matrix to be centred afterwards.
_CANCELLATION = 1e-6
#: Bounds of the relative residual of conjugate gradients, and of their steps.
_LEAST_RESIDUAL, _LARGEST_RESIDUAL, _MAX_CG = 1e-11, 1e-6, 1000
#: Rows per feature from which, and features up to which, a Gram matrix stands for the rows.
_ROWS_PER_FEATURE, _MOST_FEATURES = 8, 1000
#: Relative gap of a fit on the factor of a Gram matrix.
_REDUCED_TOL = 1e-10
#: Reading the rows for means, factorisation and certificate counts as this many passes.
_PASSES = 3
#: Relative gap to prove: the coefficients are as precise as the factorisation.
TOL = 1e-10
#: Entries of X up to which linsep's native fit of one target is quicker.
SMALL = 20_000


class Decomposed(NamedTuple):
    """Solution of least norm (d + 1, k), and the singular values of the centred rows."""

    W: FloatArray
    singular: FloatArray


class Centred:
    """Rows and targets (n, k) about their weighted means, times the roots of the weights."""

    def __init__(
        self, X: FloatArray, Y: FloatArray, weight: FloatArray | None, fit_intercept: bool
    ) -> None:
        self.x_mean, self.y_mean = np.zeros(X.shape[1]), np.zeros(Y.shape[1])
        if fit_intercept:
            self.x_mean = np.average(X, axis=0, weights=weight)
            self.y_mean = np.average(Y, axis=0, weights=weight)
        self.X, self.Y = X - self.x_mean, Y - self.y_mean
        if weight is not None:
            root = np.sqrt(weight)[:, None]
            self.X *= root
            self.Y *= root

    def ridge(self, alphas: FloatArray) -> FloatArray | None:
        """W (d + 1, k) for one alpha > 0 or one for each target; None if a factorisation fails."""
        n, d = self.X.shape
        wide = n < d
        gram = self.X @ self.X.T if wide else self.X.T @ self.X
        right = self.Y if wide else self.X.T @ self.Y
        W = np.empty((d, right.shape[1]))
        groups = {float(alpha) for alpha in alphas}
        for alpha in groups:
            columns = alphas == alpha
            shifted = gram.copy() if len(groups) > 1 else gram
            shifted.flat[:: len(shifted) + 1] += alpha
            try:
                factor = scipy.linalg.cho_factor(shifted, lower=True, overwrite_a=True)
                found = scipy.linalg.cho_solve(factor, right[:, columns])
                if not wide:  # refined once, by the residuals of the rows
                    left = self.X.T @ (self.Y[:, columns] - self.X @ found) - alpha * found
                    found += scipy.linalg.cho_solve(factor, left)
            except (scipy.linalg.LinAlgError, ValueError):
                return None
            W[:, columns] = self.X.T @ found if wide else found
        return self._with_intercepts(W)

    def least_norm(self) -> Decomposed | None:
        """The solution of least norm without a penalty; None if there is none."""
        n, d = self.X.shape
        if n >= 2 * d:
            found = self._by_gram()
            if found is not None:
                return found
        cut = max(n, d) * np.finfo(float).eps
        try:
            W, _, _, singular = scipy.linalg.lstsq(self.X, self.Y, cond=cut)
        except (scipy.linalg.LinAlgError, ValueError):
            return None
        return Decomposed(self._with_intercepts(W), singular)

    def _by_gram(self) -> Decomposed | None:
        """Solution from the Gram matrix of the features, refined once, where that is well-conditioned."""
        values, vectors = np.linalg.eigh(self.X.T @ self.X)
        if not values.min(initial=np.inf) > _WELL_CONDITIONED * values.max(initial=0.0) > 0.0:
            return None

        def solve(right: FloatArray) -> FloatArray:
            return np.asarray(vectors @ ((vectors.T @ (self.X.T @ right)) / values[:, None]))

        W = solve(self.Y)
        W += solve(self.Y - self.X @ W)
        return Decomposed(self._with_intercepts(W), np.sqrt(values[::-1]))

    def _with_intercepts(self, W: FloatArray) -> FloatArray:
        return np.vstack([W, self.y_mean - self.x_mean @ W])


def minimise_ridge(
    X: FloatArray,
    Y: FloatArray,
    weight: FloatArray | None,
    alphas: FloatArray,
    fit_intercept: bool,
    *,
    small: int = SMALL,
) -> Minimum | None:
    """Ridge regression on each target; None where linsep's own solvers are quicker or more precise.

    They are quicker for one target on an X of up to ``small`` entries.
    """
    (n, d), k = X.shape, Y.shape[1]
    if X.dtype != np.float64 or (k == 1 and d <= n and X.size <= small and alphas[0] > 0.0):
        return None
    W: FloatArray | None = None
    if weight is None and d <= n and alphas[0] > 0.0 and (alphas == alphas[0]).all():
        W = _tall_ridge(X, Y, float(alphas[0]), fit_intercept)
        found = None if W is None else proven(X, Y, None, W, alphas, fit_intercept)
        if found is not None:
            return found
    rows = Centred(X, Y, weight, fit_intercept)
    if (alphas > 0.0).all():
        W = rows.ridge(alphas)
    elif alphas.any():
        return None
    else:
        shortest = rows.least_norm()
        W = None if shortest is None else shortest.W
    return None if W is None else proven(X, Y, weight, W, alphas, fit_intercept)


def _tall_ridge(
    X: FloatArray, Y: FloatArray, alpha: float, fit_intercept: bool
) -> FloatArray | None:
    """W (d + 1, k) without a centred copy of X, not refined; None where the means are too large beside the spread.

    The Gram matrix X'X - n m m' may lose digits by its difference: then the proof falls short, and the caller takes
    centred rows and refines the solution.
    """
    mean, y_mean, right = _moments(X, Y, fit_intercept)
    gram = centred_gram(X, mean)
    if gram is None:
        return None
    gram.flat[:: len(gram) + 1] += alpha
    try:
        factor = scipy.linalg.cho_factor(gram, lower=True, overwrite_a=True)
        W = scipy.linalg.cho_solve(factor, right)
    except (scipy.linalg.LinAlgError, ValueError):
        return None
    return np.vstack([W, y_mean - mean @ W])


def sparse_ridge(
    X: Any,
    Y: FloatArray,
    weight: FloatArray | None,
    alphas: FloatArray,
    fit_intercept: bool,
    tol: float,
) -> Minimum | None:
    """Ridge regression on sparse rows by conjugate gradients on the centred rows; None if that proves nothing.

    The residuals are reduced to a hundredth of ``tol``, relatively, to 1e-6 at most. Without a penalty the minimiser
    must be proven to be the only one: of several, another method finds the one of least norm.
    """
    residual = min(max(1e-2 * tol, _LEAST_RESIDUAL), _LARGEST_RESIDUAL)
    unique = (alphas > 0.0).all()
    if X.dtype != np.float64 or not (unique or X.shape[0] > X.shape[1]):
        return None
    X, d = X.tocsr(), X.shape[1]
    s = np.ones(X.shape[0]) if weight is None else weight
    mass = float(s.sum())
    mean, y_mean = np.zeros(d), np.zeros(Y.shape[1])
    if fit_intercept:
        mean, y_mean = np.asarray(X.T @ s) / mass, (s @ Y) / mass
    entries = (
        X.data * X.data if weight is None else X.data * X.data * np.repeat(s, np.diff(X.indptr))
    )
    squares = np.bincount(X.indices, entries, minlength=d) - mass * mean**2
    W, across = np.empty((d, Y.shape[1])), X.T

    def converged(at: cg.Iterate) -> bool:
        return at.rho <= residual * residual * at.rho_first

    for j, alpha in enumerate(alphas.tolist()):

        def times(w: FloatArray, alpha: float = alpha) -> FloatArray:
            z = X @ w - mean @ w
            z = z if weight is None else s * z
            return np.asarray(across @ z - mean * z.sum() + alpha * w)

        z = s * (Y[:, j] - y_mean[j])
        unit = 1.0 / np.maximum(np.maximum(squares, 0.0) + alpha, np.finfo(float).tiny)
        right = np.asarray(across @ z - mean * z.sum())
        at = cg.solve(times, lambda r, u=unit: u * r, right, converged, _MAX_CG)  # type: ignore[misc]
        if not at.ended:
            return None
        W[:, j] = at.x
    found = proven(X, Y, weight, np.vstack([W, y_mean - mean @ W]), alphas, fit_intercept)
    sure = found is not None and (unique or math.isfinite(found.certificate.coef_error))
    return found if sure else None


def elastic_net(
    X: FloatArray, t: FloatArray, penalty: ElasticNet, fit_intercept: bool, tol: float
) -> Minimum | None:
    """Least squares with an absolute penalty on many rows: on d rows of the same Gram matrix, proven on all.

    With X'X - n m m' = R'R and R'v = X'(t - mean t), sum (t - x.w - b)^2 = |v - R w|^2 + constant at the best b. None
    where the table is small or has few rows, the Gram matrix has no factor, or the proof falls short.
    """
    n, d = X.shape
    if X.dtype != np.float64 or n < _ROWS_PER_FEATURE * d or d > _MOST_FEATURES:
        return None
    if X.size <= ordinary.SMALL:
        return None
    mean, t_mean, moments = _moments(X, t[:, None], fit_intercept)
    gram = centred_gram(X, mean)
    if gram is None:
        return None
    try:
        factor = scipy.linalg.cholesky(gram, overwrite_a=True)
        right = scipy.linalg.solve_triangular(factor, moments[:, 0], trans=1)
    except (scipy.linalg.LinAlgError, ValueError):
        return None
    loss = Squared(centre=0.0)
    problem = Objective("", loss, penalty.C, (Part(target=right),), penalty.l1_ratio, False)
    found = fitting.minimise(problem, np.ascontiguousarray(factor), _REDUCED_TOL)
    w = found.W[:-1, 0]
    theta = np.append(w, t_mean[0] - mean @ w)
    proof = _certificate(X, -t, None, theta, penalty, fit_intercept, tol)
    if proof is None or not proof.certified:
        return None
    return Minimum(theta[:, None], proof, _PASSES)


def _moments(
    X: FloatArray, Y: FloatArray, fit_intercept: bool
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Means of rows and targets, 0 without an intercept, and X'(Y - mean Y)."""
    if not fit_intercept:
        return np.zeros(X.shape[1]), np.zeros(Y.shape[1]), X.T @ Y
    y_mean = Y.mean(axis=0)
    columns = [X.T @ column for column in np.ascontiguousarray((Y - y_mean).T)]
    return X.mean(axis=0), y_mean, np.column_stack(columns)


def centred_gram(X: FloatArray, mean: FloatArray) -> FloatArray | None:
    """X'X - n m m'; None where the means are too large beside the spread, so that the difference loses digits."""
    gram: FloatArray = X.T @ X
    before = gram.diagonal().copy()
    gram -= len(X) * np.outer(mean, mean)
    return gram if (gram.diagonal() >= _CANCELLATION * before).all() else None


def proven(
    X: Any,
    Y: FloatArray,
    weight: FloatArray | None,
    W: FloatArray,
    alphas: FloatArray,
    fit_intercept: bool,
) -> Minimum | None:
    """What was proposed, with a certificate for each target; None if some proof falls short."""
    if not np.isfinite(W).all():
        return None
    proofs = []
    for column, alpha, t in zip(W.T, alphas.tolist(), Y.T, strict=True):
        proof = _proof(X, -np.ascontiguousarray(t), weight, column, alpha, fit_intercept)
        if proof is None or not proof.certified:
            return None
        proofs.append(proof)
    return Minimum(W, certificates.combine(proofs), _PASSES)


def _proof(
    X: Any,
    offset: FloatArray,
    weight: FloatArray | None,
    theta: FloatArray,
    alpha: float,
    fit_intercept: bool,
) -> Optimality | None:
    """The certificate of sum s (t - x.w - b)^2 + alpha |w|^2 at theta."""
    penalty = ElasticNet(0.5 / alpha if alpha else np.inf)
    found = _certificate(X, offset, weight, theta, penalty, fit_intercept, TOL)
    return None if found is None else fitting.in_units(found, 2.0 * alpha if alpha else 1.0)


def _certificate(
    X: Any,
    offset: FloatArray,
    weight: FloatArray | None,
    theta: FloatArray,
    penalty: ElasticNet,
    fit_intercept: bool,
    tol: float,
) -> Optimality | None:
    """The certificate of penalty + C sum s (t - x.w - b)^2 at theta, in linsep's units; None for extreme targets."""
    loss = Squared(centre=0.0)
    if not target_units(loss, penalty, offset).plain:
        return None
    data = Memory(X, np.ones(len(offset)), offset, weight)
    problem = Problem(loss, penalty, data, fit_intercept)
    at = np.ascontiguousarray(theta).reshape(-1, 1)
    dual = Linearised(at, np.zeros_like(at))
    solution = Solution(at, dual, Status.CERTIFIED, 0.0, 0.0, (), None)
    return certificates.certify(problem, solution, tol)
