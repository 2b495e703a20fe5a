"""Least squares for one or several targets: computed by a LAPACK factorisation, certified by linsep.

The rows are centred at their weighted mean, which eliminates the intercept. With a ridge penalty the normal equations
of the features, or of the rows if these are fewer, are factorised once for all targets. Without one the singular value
decomposition gives the minimum-norm solution. The certificate is that of the given rows and targets; if it falls short
because of rounding, linsep's own solvers are used instead.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg

from linsep import _kernels, certificates
from linsep.arrays import FloatArray, IntArray
from linsep.certificates import Optimality, target_units
from linsep.data import Memory
from linsep.losses import Squared
from linsep.penalties import ElasticNet
from linsep.problem import Problem, dot
from linsep.sklearn import fitting, ordinary
from linsep.sklearn.fitting import Minimum
from linsep.solution import Linearised, Solution, Status
from linsep.solvers.linalg import cg

#: Eigenvalue ratio of a Gram matrix above which singular values have a relative error of at most 1e-10.
_WELL_CONDITIONED = 1e-6
#: Smallest relative variance of a column for which its Gram matrix may be centred afterwards.
_CANCELLATION = 1e-6
#: Smallest relative residual of conjugate gradients, and a limit on their steps.
_LEAST_RESIDUAL, _MAX_CG = 1e-11, 1000
#: Working set of an L1 penalty: features at the start, at least and as 1/_SHARE of all; most features; and rounds of
#: growing it.
_FIRST, _SHARE, _MOST_FEATURES, _ROUNDS = 20, 8, 1000, 40
#: Most sweeps of coordinate descent, largest change at which it stops in units of the gap, and fraction of the gap to
#: reach.
_SWEEPS, _MOVE, _SAFE = 100, 0.3, 0.3
#: Number of passes reported for means, factorisation and certificate.
_PASSES = 3
#: Relative gap to prove; the coefficients are as accurate as the factorisation.
TOL = 1e-10
#: Stored entries of X up to which starting a thread takes as long as the closing pass.
_ONE_THREAD = 1_000_000
#: Entries of X up to which linsep's native fit of one target is faster.
SMALL = 20_000


class Decomposed(NamedTuple):
    """Minimum-norm solution (d + 1, k), and the singular values of the centred rows."""

    W: FloatArray
    singular: FloatArray


class Centred:
    """Rows and targets (n, k), centred at their weighted means and multiplied by the square roots of the weights."""

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
        """W (d + 1, k) for one alpha > 0 or one per target; None if a factorisation fails."""
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
                if not wide:  # one step of refinement, with the residuals of the rows
                    left = self.X.T @ (self.Y[:, columns] - self.X @ found) - alpha * found
                    found += scipy.linalg.cho_solve(factor, left)
            except (scipy.linalg.LinAlgError, ValueError):
                return None
            W[:, columns] = self.X.T @ found if wide else found
        return self._with_intercepts(W)

    def least_norm(self) -> Decomposed | None:
        """Minimum-norm solution without a penalty; None if LAPACK fails."""
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
        """Solution from the Gram matrix of the features, refined once; None if it is ill-conditioned."""
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
    """Ridge regression on each target; None if linsep's own solvers are faster or more accurate.

    They are faster for one target if X has at most ``small`` entries.
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
    """W (d + 1, k) without a centred copy of X, not refined; None if the means are too large for the spread.

    The Gram matrix X'X - n m m' may lose digits by cancellation: the proof then falls short, and the caller uses
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
    residual: float,
) -> Minimum | None:
    """Ridge regression on sparse rows by conjugate gradients on the centred rows; None if the proof fails.

    ``tol`` is the relative gap to prove, ``residual`` the factor by which the residuals are reduced, at least 1e-11.
    Without a penalty the minimiser must be proven unique; if there are several, another method finds the one of minimum
    norm.
    """
    unique = bool((alphas > 0.0).all())
    if X.dtype != np.float64 or not (unique or X.shape[0] > X.shape[1]):
        return None
    X, W, proofs = X.tocsr(), np.empty((X.shape[1] + 1, Y.shape[1])), []
    for j, alpha in enumerate(alphas.tolist()):
        offset = -np.ascontiguousarray(Y[:, j])
        problem = _problem(X, offset, weight, _ridge_penalty(alpha), fit_intercept)
        if problem is None:
            return None
        theta = _conjugate_gradients(problem, tol, max(residual, _LEAST_RESIDUAL))
        if theta is None:
            return None
        proof = _proof_at(problem, theta, alpha, tol)
        if not (proof.certified and (unique or math.isfinite(proof.coef_error))):
            return None
        W[:, j] = theta
        proofs.append(proof)
    return Minimum(W, certificates.combine(proofs), _PASSES)


def _conjugate_gradients(problem: Problem, tol: float, residual: float) -> FloatArray | None:
    """Minimiser of a sum of squares to a relative gap of ``tol``; None if the step limit is reached.

    The intercept is eliminated, which centres the rows: H = sum h (x - m)(x - m)' + lam I. The decrease of the
    objective is (b + r).x/2 at the step x with residual r = b - H x, and it lies at most |r|^2/(2 lam) above the
    minimum. Without a penalty only the residuals determine when to stop.
    """
    lam, d = problem.lam, problem.data.d
    value, g = problem.value_gradient(np.zeros(d + 1))
    squares, sums, mass = problem.moments()
    mean, constant = np.zeros(d), 0.0
    if problem.fit_intercept:
        mean, constant = sums / mass, -g[-1] / mass
        value += 0.5 * g[-1] * constant
    diagonal = np.maximum(squares - mass * mean**2, 0.0) + lam
    unit = 1.0 / np.maximum(diagonal, np.finfo(float).tiny)
    right = mean * g[-1] - g[:-1]

    def times(w: FloatArray) -> FloatArray:
        out = problem.hess_vec(np.append(w, -dot(mean, w)))
        return np.asarray(out[:-1] - out[-1] * mean)

    def is_converged(at: cg.Iterate) -> bool:
        if at.rho > residual * residual * at.rho_first:
            return False
        if not lam:
            return True
        gap = dot(at.r, at.r) / (2.0 * lam)
        if gap > _SAFE * tol * value:
            return False
        return gap <= _SAFE * tol * (value - 0.5 * dot(right + at.r, at.x))

    at = cg.solve(times, lambda r: unit * r, right, is_converged, _MAX_CG)
    return np.append(at.x, constant - dot(mean, at.x)) if at.ended else None


def elastic_net(
    X: FloatArray, t: FloatArray, penalty: ElasticNet, fit_intercept: bool, tol: float
) -> Minimum | None:
    """Least squares with an L1 penalty on dense rows: coordinate descent on the Gram matrix of a working set.

    One product X'r per round finds the features that join the set and estimates the gap. Returns None if the table is
    small, the working set grows too large, coordinate descent is slow, or the proof falls short.

    References: Friedman, Hastie and Tibshirani, 2010 (covariance updates); Johnson and Guestrin, Blitz, 2015.
    """
    if X.dtype != np.float64 or X.size <= ordinary.SMALL:
        return None
    n, d = X.shape
    mean, t_mean = np.zeros(d), 0.0
    if fit_intercept:
        mean, t_mean = X.T @ np.full(n, 1.0 / n), float(t.mean())
    work = _WorkingSet(X, t - t_mean, mean, penalty)
    if not np.isfinite(work.pull).all():
        return None
    move, before = _MOVE, math.inf
    for _ in range(_ROUNDS):
        gap, primal = work.gap()
        if gap <= _SAFE * tol * primal:
            break
        joining = work.joining()
        if len(work.chosen) + len(joining) > _MOST_FEATURES:
            return None
        if not len(joining):  # the set is complete: the remaining gap is due to its coefficients
            if not gap < before:
                return None
            move, before = 0.1 * move, gap
        work.add(joining)
        if not work.descend(move * math.sqrt(tol * primal / len(work.chosen))):
            return None
    else:
        return None
    theta = np.append(work.w, t_mean - mean @ work.w)
    problem = _problem(X, -t, None, penalty, fit_intercept)
    proof = None if problem is None else _certificate(problem, theta, tol)
    if proof is None or not proof.certified:
        return None
    return Minimum(theta[:, None], proof, _PASSES)


class _WorkingSet:
    """min lam/2 |w|^2 + l1 |w|_1 + |r|^2 with residuals r = t - X w of centred columns, on the ``chosen`` columns.

    ``v`` = 2 X'r for all columns; ``S`` = 2 A A' + lam I for the chosen ones, which are the first rows of A.
    """

    def __init__(self, X: FloatArray, t: FloatArray, mean: FloatArray, penalty: ElasticNet) -> None:
        self.X, self.t, self.mean, self.lam, self.l1 = X, t, mean, penalty.l2, penalty.l1
        self.w, self.r = np.zeros(X.shape[1]), t
        self.pull = self.v = 2.0 * (X.T @ t)
        self.chosen: IntArray = np.zeros(0, dtype=np.intp)
        self.A, self.S = np.empty((0, len(X))), np.zeros((0, 0))

    def gap(self) -> tuple[float, float]:
        """Duality gap of u = 2r, scaled to be feasible if there is no ridge penalty, and the objective."""
        size, square = np.abs(self.v), float(self.r @ self.r)
        penalty = 0.5 * self.lam * float(self.w @ self.w) + self.l1 * float(np.abs(self.w).sum())
        share, cost = 1.0, 0.0
        if self.lam > 0.0:
            over = np.maximum(size - self.l1, 0.0)
            cost = float(over @ over) / (2.0 * self.lam)
        else:
            share = min(1.0, self.l1 / max(float(size.max()), np.finfo(float).tiny))
        dual = share * (2.0 * float(self.r @ self.t) - share * square) - cost
        return square + penalty - dual, square + penalty

    def joining(self) -> IntArray:
        """Columns outside the set with |v| > l1, the largest first; at most half as many as are in the set."""
        size = np.abs(self.v)
        size[self.chosen] = 0.0
        most = max(_FIRST, len(self.chosen) // 2 or len(size) // _SHARE)
        eager = np.flatnonzero(size > self.l1)
        return eager[np.argsort(-size[eager], kind="stable")[:most]]

    def add(self, columns: IntArray) -> None:
        """Add columns to the working set."""
        if not len(columns):
            return
        k, m = len(self.chosen), len(self.chosen) + len(columns)
        if m > len(self.A):
            grown = np.empty((2 * m, len(self.X)))
            grown[:k] = self.A[:k]
            self.A = grown
        A, B = self.A[:k], self.A[k:m]
        np.subtract(self.X[:, columns].T, self.mean[columns, None], out=B)
        S = np.empty((m, m))
        S[:k, :k] = self.S
        S[k:, k:] = 2.0 * (B @ B.T)
        S[k:, :k] = 2.0 * (B @ A.T)
        S[:k, k:] = S[k:, :k].T
        S.flat[k * (m + 1) :: m + 1] += self.lam
        self.S, self.chosen = S, np.append(self.chosen, columns)

    def descend(self, move: float) -> bool:
        """Run coordinate descent until no coordinate changes by more than ``move``; return whether it converged.

        A change is measured in square roots of the objective.
        """
        x = self.w[self.chosen]
        slope = self.S @ x - self.pull[self.chosen]
        ended = _kernels.quadratic_cd(self.S, self.l1, move, _SWEEPS, x, slope) > 0
        self.w[self.chosen] = x
        self.r = self.t - x @ self.A[: len(x)]
        self.v = 2.0 * (self.X.T @ self.r)
        return ended


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
    """X'X - n m m'; None if the means are so large that the difference loses digits."""
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
    """Return the proposed weights with a certificate for each target; None if any proof falls short."""
    if not np.isfinite(W).all():
        return None
    proofs = []
    for column, alpha, t in zip(W.T, alphas.tolist(), Y.T, strict=True):
        offset = -np.ascontiguousarray(t)
        problem = _problem(X, offset, weight, _ridge_penalty(alpha), fit_intercept)
        proof = None if problem is None else _proof_at(problem, column, alpha, TOL)
        if proof is None or not proof.certified:
            return None
        proofs.append(proof)
    return Minimum(W, certificates.combine(proofs), _PASSES)


def _ridge_penalty(alpha: float) -> ElasticNet:
    """Penalty in linsep's units that corresponds to alpha |w|^2 for sums of squares."""
    return ElasticNet(0.5 / alpha if alpha else np.inf)


def _proof_at(problem: Problem, theta: FloatArray, alpha: float, tol: float) -> Optimality:
    """Certificate of sum s (t - x.w - b)^2 + alpha |w|^2 at theta."""
    return fitting.in_units(_certificate(problem, theta, tol), 2.0 * alpha if alpha else 1.0)


def _problem(
    X: Any,
    offset: FloatArray,
    weight: FloatArray | None,
    penalty: ElasticNet,
    fit_intercept: bool,
) -> Problem | None:
    """Problem penalty + C sum s (t - x.w - b)^2; None for extreme targets."""
    loss = Squared(centre=0.0)
    if not target_units(loss, penalty, offset).plain:
        return None
    few = 1 if X.size <= _ONE_THREAD else None
    data = Memory(X, np.ones(len(offset)), offset, weight, n_threads=few)
    return Problem(loss, penalty, data, fit_intercept)


def _certificate(problem: Problem, theta: FloatArray, tol: float) -> Optimality:
    """Certificate at theta, in linsep's units."""
    at = np.ascontiguousarray(theta).reshape(-1, 1)
    dual = Linearised(at, np.zeros_like(at))
    solution = Solution(at, dual, Status.CERTIFIED, 0.0, 0.0, (), None)
    return certificates.certify(problem, solution, tol)
