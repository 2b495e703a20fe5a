"""Kronecker preconditioner S (x) A + lam of the multinomial loss for many features and classes.

S = sum s (diag p - p p') is the Hessian of the intercepts (k, k), and A the covariance of the rows; the matrix is
inverted by the eigendecompositions of both. At W = 0 it equals the Hessian. A new point needs no pass, and A is shared
by all points and all C.
"""

from __future__ import annotations

import numpy as np

from linsep import interrupts
from linsep.arrays import FloatArray
from linsep.problem.coupled import CoupledProblem
from linsep.solvers.linalg.row_products import centred_rows, row_products

_DEPENDENT = 1e-12  # eigenvalue, relative to the largest, below which rows count as dependent


class Covariance:
    """Mean mu of the rows and their covariance A = Q diag(a) Q' + rest (I - Q Q').

    Without an intercept mu is 0 and A are second moments. With fewer rows than features Q spans the rows and rest is 0:
    the orthogonal complement has no variance.
    """

    def __init__(self, sample: CoupledProblem) -> None:
        data, mu = sample.data, sample.centre()
        h = np.ones(data.n) if data.weight is None else data.weight
        mass = float(h.sum())
        self.rest: float | None = None
        if data.n < data.d:
            Z = centred_rows(data.X, mu)
            if sample.fit_intercept:
                shift = h @ Z / mass
                mu, Z = mu + shift, centred_rows(Z, shift)
            self.mu = mu
            self.values, self.vectors = _row_space(Z * np.sqrt(h / mass)[:, None])
            self.rest = 0.0
            return
        G = sample.own_blocks(h[None], mu, single=True)[0]
        A = G[:-1, :-1] / mass
        if sample.fit_intercept:
            shift = G[:-1, -1] / mass
            mu, A = mu + shift, A - np.outer(shift, shift)
        self.mu = mu
        values, self.vectors = interrupts.lapack(np.linalg.eigh, A)
        self.values = np.maximum(values, 0.0)

    def leave_out(self, others: CoupledProblem) -> None:
        """Set rest to the mean variance of other rows per direction outside the span of Q."""
        Z = centred_rows(others.data.X, self.mu)
        inside = interrupts.dense_product(Z, self.vectors)
        variance = np.vdot(Z, Z) - np.vdot(inside, inside)
        self.rest = max(0.0, float(variance)) / (len(Z) * max(1, len(self.mu) - len(self.values)))


def _row_space(Z: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return the positive eigenvalues of Z'Z and their eigenvectors, computed from those of Z Z'."""
    values, vectors = interrupts.lapack(np.linalg.eigh, row_products(Z))
    kept = values > _DEPENDENT * max(values[-1], 0.0)
    values = values[kept]
    return values, interrupts.dense_product(Z.T, vectors[:, kept] / np.sqrt(values))


class Kronecker:
    """Preconditioner M^-1 for M = S (x) A + lam on the weights and S on the intercepts, for rows centred at mu.

    At W = 0 all probabilities are 1/k, and S multiplies vectors that sum to zero by one number: no basis is needed.
    """

    def __init__(self, rows: Covariance, lam: float, S: FloatArray, at_zero: bool = False) -> None:
        self.rows, self.lam = rows, lam
        self.vectors: FloatArray | None = None
        if at_zero:
            self.values = np.full(len(S), np.trace(S) / (len(S) - 1))
            return
        values, self.vectors = np.linalg.eigh(S)
        self.values = np.maximum(values, 1e-12 * values[-1])

    def _turn(self, R: FloatArray) -> FloatArray:
        """Coordinates of rows in the eigenvectors of S."""
        return R if self.vectors is None else R @ self.vectors

    def _turn_back(self, R: FloatArray) -> FloatArray:
        return R if self.vectors is None else R @ self.vectors.T

    def __call__(self, R: FloatArray) -> FloatArray:
        """Return M^-1 R."""
        Q, mu = self.rows.vectors, self.rows.mu
        out = np.empty_like(R)
        turned = self._turn(R[:-1] - np.outer(mu, R[-1]))
        inner = Q.T @ turned
        M = np.outer(self.rows.values, self.values) + self.lam
        if self.rows.rest is None:
            out[:-1] = self._turn_back(Q @ (inner / M))
        else:
            outside = self.rows.rest * self.values + self.lam
            turned += Q @ (inner * (outside / M - 1.0))
            out[:-1] = self._turn_back(turned / outside)
        out[-1] = self._turn_back(self._turn(R[-1]) / self.values)
        out[-1] -= mu @ out[:-1]
        return out
