"""Symmetric positive semidefinite systems: Jacobi-scaled Cholesky factors, and explicit inverses of large matrices.

Scaling to a unit diagonal makes the result independent of the column scales; one step of iterative refinement corrects
rounding errors.

Reference: Higham, Accuracy and Stability of Numerical Algorithms, 2002, chapters 10 and 12.
"""

from __future__ import annotations

import numpy as np
import scipy.linalg as sl

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.interrupts import dense_product, lapack

# Order up to which the kernels solve a system: LAPACK starts other threads, and on a busy machine
# synchronising with them takes far longer than the factorisation.
NATIVE_ORDER = 1000
# Without a penalty, directions with a smaller relative eigenvalue belong to the null space.
NULL_EIGENVALUE = 1e-13


def eliminate_intercept(H: FloatArray) -> FloatArray:
    """Return the matrix of the weights with the intercept, the last variable, eliminated (Schur complement)."""
    S: FloatArray = H[:-1, :-1]
    cross, corner = H[:-1, -1], H[-1, -1]
    return S - np.outer(cross, cross) / corner if corner > 0.0 else S


class Factor:
    """Jacobi-scaled Cholesky factor of a symmetric positive semidefinite matrix.

    ``definite`` (with a penalty): a pivot lost to rounding is replaced by a tiny one, and iterative refinement
    corrects the error. Otherwise the pseudo-inverse is used, without the directions of negligible eigenvalues.
    """

    def __init__(self, H: FloatArray, definite: bool) -> None:
        self.H = H
        self.least = 0.0  # smallest pivot
        self._factor: tuple[FloatArray, bool] | None = None
        self._native: FloatArray | None = None
        if len(H) <= NATIVE_ORDER:
            self._native, self.scale = np.empty(H.shape), np.empty(len(H))
            whole = np.ascontiguousarray(H)
            self.least = _kernels.spd_factor(whole, False, self._native, self.scale)
            if definite or self.least > NULL_EIGENVALUE:
                return
            self._native = None
        diagonal = np.diag(H)
        present = diagonal > 0
        self.scale = np.where(present, 1 / np.sqrt(np.where(present, diagonal, 1.0)), 0.0)
        scaled = H * self.scale
        scaled *= self.scale[:, None]
        scaled[~present, ~present] = 1.0
        for jitter in (0.0, 1e-14, 1e-12, 1e-10) if definite else (0.0,):
            scaled[np.diag_indices(len(H))] = 1.0 + jitter
            try:
                factor = lapack(sl.cho_factor, scaled, lower=True, check_finite=False)
            except sl.LinAlgError:
                continue
            self.least = 0.0 if jitter else float(np.min(np.diag(factor[0]))) ** 2
            if definite or self.least > NULL_EIGENVALUE:
                self._factor = factor
                return
        scaled[np.diag_indices(len(H))] = 1.0
        values, vectors = lapack(np.linalg.eigh, scaled)
        keep = values > NULL_EIGENVALUE * values[-1]
        self._inverse = dense_product(vectors[:, keep] / values[keep], vectors[:, keep].T)

    def apply(self, r: FloatArray) -> FloatArray:
        """Return H^-1 r without refinement, for use as a preconditioner."""
        if self._native is not None:
            x = np.empty_like(self.scale)
            _kernels.spd_apply(self._native, self.scale, np.ascontiguousarray(r), x)
            return x
        y = self.scale * r
        if self._factor is not None:
            found: FloatArray = sl.cho_solve(self._factor, y, check_finite=False)
            return self.scale * found
        out: FloatArray = self.scale * (self._inverse @ y)
        return out

    def solve(self, r: FloatArray) -> FloatArray:
        """Return H^-1 r (on the range of H) with one step of iterative refinement."""
        x = self.apply(r)
        return x + self.apply(np.where(self.scale > 0, r - self.H @ x, 0.0))

    def solve_columns(self, R: FloatArray) -> FloatArray:
        """Return H^-1 R for the columns of R, with one step of iterative refinement."""
        if self._factor is None:
            return np.column_stack([self.solve(r) for r in np.ascontiguousarray(R.T)])
        factor, scale = self._factor, self.scale[:, None]

        def apply(r: FloatArray) -> FloatArray:
            found: FloatArray = sl.cho_solve(factor, scale * r, check_finite=False)
            return scale * found

        x = apply(R)
        return x + apply(np.where(scale > 0, R - dense_product(self.H, x), 0.0))


def solve_spd(H: FloatArray, rhs: FloatArray, definite: bool) -> FloatArray:
    """Return H^-1 rhs with one step of iterative refinement."""
    return solve_spd_with_pivot(H, rhs, definite)[0]


def solve_spd_with_pivot(
    H: FloatArray, rhs: FloatArray, definite: bool
) -> tuple[FloatArray, float]:
    """Return H^-1 rhs, refined once, and the smallest pivot of the scaled H."""
    if len(H) > NATIVE_ORDER:
        factor = Factor(H, definite)
        return factor.solve(rhs), factor.least
    x = np.empty_like(rhs)
    least = _kernels.spd_solve(np.ascontiguousarray(H), rhs, not definite, x)
    return x, least


class Inverse:
    """Explicit inverse of a large positive definite matrix, for a preconditioner that is applied many times.

    A matrix-vector product is faster in the kernels than two triangular solves. ``single``: compute in single
    precision, for well-conditioned matrices.
    """

    def __init__(self, A: FloatArray, single: bool) -> None:
        size = np.diagonal(A).copy()
        self._scale = 1.0 / np.sqrt(np.where(size > 0.0, size, 1.0))
        kind = np.float32 if single else np.float64
        scaled = (A * self._scale * self._scale[:, None]).astype(kind)
        factorise, invert = sl.get_lapack_funcs(("potrf", "potri"), (scaled,))
        for shift in (0.0, 1e-6, 1e-4, 1e-2, np.inf):  # rounding may make the matrix indefinite
            if shift == np.inf:
                lower = np.eye(len(A), dtype=kind)
                break
            scaled[np.diag_indices(len(A))] = 1.0 + shift
            lower, failed = lapack(factorise, scaled, lower=True, clean=True)
            if not failed:
                lower, failed = lapack(invert, lower, lower=True)
            if not failed:
                break
        whole = np.ascontiguousarray(np.tril(lower) + np.tril(lower, -1).T)
        self._rows = _kernels.Rows(whole)

    def apply(self, r: FloatArray) -> FloatArray:
        """Return A^-1 r without refinement."""
        out = np.empty_like(r)
        _kernels.scores(self._rows, 0, len(r), np.append(r * self._scale, 0.0), out)
        out *= self._scale
        return out
