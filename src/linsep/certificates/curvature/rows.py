"""Rows for the local certificate: dense chunks of x~ = (x, 1), weighted Gram matrices, margins and their errors."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray, IntArray, dense
from linsep.certificates.curvature.metric import (
    ROUNDING_FACTOR,
    TINY,
    Metric,
    gram_loss,
    inverse_factor,
    inverse_root,
    proven_root,
    smallest_eigenvalue,
)
from linsep.certificates.parts import weigh
from linsep.exact.sliced import product, scaled_product, two_sum
from linsep.interrupts import check, dense_product, lapack
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF, margin_error

#: Dense entries per chunk.
_CHUNK = 1 << 20
#: Rows per orthogonal transformation, so that they fit in cache.
_QR_ROWS = 1024
#: Share of nonzero entries below which products of sparse rows cost less than those of dense ones.
_SPARSE = 0.1
#: Rows per partial sum.
_SHORT = 512
#: X'X is accurate enough if it proves this fraction of the curvature.
_GRAM_FLOOR = 0.9
#: Largest number of multiply-adds in the product of the rows with T for which doubled precision is used.
DOUBLED_WORK = 4e8
#: Largest error of a product that underflows.
UNDERFLOW = 2.0**-1074


def _height(X: Any) -> int:
    n, d = X.shape
    return int(max(1, min(n, max(d + 1, _CHUNK // (d + 1)))))


def dense_chunks(X: Any, fit_intercept: bool) -> Iterator[tuple[slice, FloatArray]]:
    """Yield (rows, x~ in float64): dense, with a last column of ones if there is an intercept."""
    n, height = X.shape[0], _height(X)
    for start in range(0, n, height):
        check()
        rows = slice(start, min(start + height, n))
        block = X[rows].astype(np.float64)
        block = dense(block)
        yield rows, np.column_stack([block, np.ones(len(block))]) if fit_intercept else block


def _sparse_chunks(X: Any, fit_intercept: bool) -> Iterator[tuple[slice, Any]]:
    """Yield (rows, x~ in float64) in CSR format, for the same rows as ``dense_chunks``."""
    n, height = X.shape[0], _height(X)
    for start in range(0, n, height):
        check()
        rows = slice(start, min(start + height, n))
        block = sp.csr_matrix(X[rows], dtype=np.float64)
        yield (
            rows,
            sp.hstack([block, np.ones((block.shape[0], 1))], "csr") if fit_intercept else block,
        )


def longest_dense_sum(X: Any) -> float:
    """Longest chain of additions in a sum over these chunks."""
    return float(_height(X) + math.ceil(X.shape[0] / _height(X)))


def stacked_qr(R: FloatArray, block: FloatArray) -> FloatArray:
    """Triangular factor of the rows of R stacked on ``block``."""
    height = max(_QR_ROWS, 4 * block.shape[1])
    for start in range(0, len(block), height):
        stack = np.vstack([R, block[start : start + height]])
        R = np.asarray(lapack(np.linalg.qr, stack, mode="r"))
    return R


def product_error(size: int, lengths: FloatArray) -> FloatArray:
    """Bound on the error of an inner product of ``size`` terms, in any order; ``lengths`` are the sums of |terms|."""
    return (size + 2) * (ROUNDOFF * lengths + UNDERFLOW)


def row_curvatures(weight: FloatArray, curvature: FloatArray) -> FloatArray:
    """s l'' of every row; 0 where it is so small that products with it may underflow."""
    h = weigh(weight, curvature)
    return np.where(h >= TINY, h, 0.0)


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows with their signs, offsets and weights; ``lam`` is the ridge penalty on w."""

    X: Any
    sigma: FloatArray
    offset: FloatArray
    weight: FloatArray
    fit_intercept: bool
    lam: float

    @property
    def size(self) -> int:
        """Number of unknowns: d, plus 1 for the intercept."""
        return int(self.X.shape[1]) + int(self.fit_intercept)

    def take(self, rows: IntArray) -> Rows:
        """Return the rows with these indices."""
        vectors = self.sigma[rows], self.offset[rows], self.weight[rows]
        return Rows(self.X[rows], *vectors, self.fit_intercept, self.lam)

    @property
    def chain(self) -> float:
        """Relative rounding error of a sum over the rows of terms of one sign."""
        return (longest_dense_sum(self.X) + 8) * ROUNDOFF

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield (rows, x~) for all rows in order."""
        return dense_chunks(self.X, self.fit_intercept)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield (rows, x~) for all rows in order; in CSR format if few entries are not 0."""
        X = self.X
        few = sp.issparse(X) and X.nnz < _SPARSE * X.shape[0] * X.shape[1]
        return _sparse_chunks(X, self.fit_intercept) if few else self.chunks()

    def gram(self, h: FloatArray) -> FloatArray:
        """lam I_w + sum h x~ x~'."""
        H = np.zeros((self.size, self.size))
        np.fill_diagonal(H[: self.X.shape[1]], self.lam)
        for rows, A in self.blocks():
            if sp.issparse(A):
                H += (A.T @ A.multiply(h[rows][:, None])).toarray()
            else:
                H += dense_product(A.T, h[rows][:, None] * A)
        return H

    def factor(self, h: FloatArray, columns: IntArray) -> FloatArray:
        """Triangular R with R'R = lam I_w + sum h x~ x~' on ``columns``, by orthogonal transformations."""
        R = math.sqrt(self.lam) * np.eye(self.size)[: self.X.shape[1], columns]
        for rows, A in self.chunks():
            R = stacked_qr(R, np.sqrt(h[rows])[:, None] * A[:, columns])
        return R

    def metric(self, h: FloatArray, columns: IntArray | None = None) -> Metric | None:
        """Return a norm in which lam I_w + sum h x~ x~' is close to the identity on ``columns`` (default: all).

        None if that cannot be proven: these columns are then dependent on the rows with h > 0, or nearly so.
        """
        columns = np.arange(self.size) if columns is None else columns
        H = self.gram(h)[np.ix_(columns, columns)]
        found = proven_root(H, self.chain)
        if found is not None and found[1] >= _GRAM_FLOOR:
            return Metric(self._embed(found[0], columns), columns, found[1], True)
        T = inverse_factor(self.factor(h, columns))
        if T is None:
            return None
        whole = self._embed(T, columns)
        floor = self.rows_floor(whole, h)
        return Metric(whole, columns, floor, False) if floor > 0.0 else None

    def _embed(self, T: FloatArray, columns: IntArray) -> FloatArray:
        """T with a row of zeros for each fixed unknown."""
        whole = np.zeros((self.size, T.shape[1]))
        whole[columns] = T
        return whole

    def floor(self, metric: Metric, h: FloatArray) -> float:
        """Lower bound on the smallest eigenvalue of T' (lam I_w + sum h x~ x~') T."""
        if not metric.by_gram:
            return self.rows_floor(metric.T, h)
        H = self.gram(h)
        G = metric.T.T @ (H @ metric.T)
        return smallest_eigenvalue(G, gram_loss(metric.T, H, self.chain))

    def rows_floor(self, T: FloatArray, h: FloatArray) -> float:
        """Lower bound on the smallest eigenvalue of T' (lam I_w + sum h x~ x~') T, computed from Z = x~ T.

        A row of Z errs by at most gamma |x~|' |T|, gamma = (p + 2) u, whose length is at most gamma sum |x~_j| t_j with
        the row norms t of T. The singular values of sqrt(h) Z err by at most the Frobenius norm of all these errors,
        and an entry of Z'hZ by chain sqrt(G_jj G_kk), a matrix of norm trace(G).
        """
        G, lost = self.image_gram(T, h)
        added = (longest_dense_sum(self.X) + self.size + 16) * ROUNDOFF * float(np.trace(G))
        root = math.sqrt(smallest_eigenvalue(G, 1.01 * added))
        return max(root - math.sqrt(lost) * ROUNDING_FACTOR, 0.0) ** 2 / ROUNDING_FACTOR

    def image_gram(self, T: FloatArray, h: FloatArray) -> tuple[FloatArray, float]:
        """T' (lam I_w + sum h x~ x~') T from Z = x~ T, and the squared Frobenius norm of the errors of sqrt(h) Z."""
        d = self.X.shape[1]
        G = self.lam * (T[:d].T @ T[:d])
        sizes, lost = np.sqrt(np.einsum("ij,ij->i", T, T)), 0.0
        for rows, A in self.blocks():
            Z, error = self.images(A, T, sizes)
            G += Z.T @ (h[rows][:, None] * Z)
            lost += float(h[rows] @ (error * error))
        return G, lost

    def images(self, A: Any, T: FloatArray, sizes: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Z = x~ T for these rows, and bounds on the norms of its row errors; ``sizes`` are the row norms of T."""
        return A @ T, product_error(self.size, abs(A) @ sizes)

    def margins(
        self, rows: slice, A: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Margins of these rows, and bounds on their errors."""
        o = self.offset[rows]
        e = margin_error(self.size, np.abs(A) @ np.abs(theta), o)
        return self.sigma[rows] * (A @ theta) + o, e

    def pull(self, A: Any, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum of slope x~ over these rows, and bounds on its errors; partial sums are short to keep errors small."""
        total, n = np.zeros(self.size), A.shape[0]
        for start in range(0, n, _SHORT):
            total += A[start : start + _SHORT].T @ slope[start : start + _SHORT]
        longest = min(n, _SHORT) + math.ceil(n / _SHORT) + 8
        return total, longest * ROUNDOFF * (abs(A).T @ np.abs(slope)) + n * UNDERFLOW

    def reach(self, metric: Metric) -> FloatArray:
        """Upper bound on sqrt(x~' M^-1 x~) = |T'x~| for every row, including the rounding of the product."""
        reach, sizes = np.empty(self.X.shape[0]), metric.row_norms
        for rows, A in self.blocks():
            Z, error = self.images(A, metric.T, sizes)
            reach[rows] = np.sqrt(np.einsum("ij,ij->i", Z, Z)) + error
        return reach * ROUNDING_FACTOR


@dataclass(frozen=True, eq=False)
class DoubledRows(Rows):
    """Rows in memory, with products in doubled precision, for data on which float64 proves nothing.

    In float64, margins, gradients and the images x~ T have rounding errors proportional to |x| |w| and |x| |T|, which
    for nearly dependent columns exceed the results themselves. Here the errors are proportional to the results.
    """

    @classmethod
    def of(cls, part: Rows) -> DoubledRows | None:
        """Convert rows to doubled precision; None if there are too many."""
        if part.X.shape[0] * float(part.size) ** 2 > DOUBLED_WORK:
            return None
        vectors = part.sigma, part.offset, part.weight
        return cls(part.X, *vectors, part.fit_intercept, part.lam)

    def take(self, rows: IntArray) -> DoubledRows:
        """Return the rows with these indices."""
        vectors = self.sigma[rows], self.offset[rows], self.weight[rows]
        return DoubledRows(self.X[rows], *vectors, self.fit_intercept, self.lam)

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield (rows, x~) for all rows in order, dense."""
        return self.chunks()

    def margins(
        self, rows: slice, A: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Margins of these rows, and bounds on their errors."""
        high, low, error = scaled_product(A, theta[:, None]).column(0)
        high, low = self.sigma[rows] * high, self.sigma[rows] * low
        total, rest = two_sum(high, self.offset[rows])
        m = total + (rest + low)
        small = np.abs(rest) + np.abs(low) + np.abs(m)
        return m, 1.01 * error + 4 * ROUNDOFF * small + 8 * UNDERFLOW

    def pull(self, A: FloatArray, slope: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum of slope x~ over these rows, and bounds on its errors."""
        high, low, error = product(np.ascontiguousarray(A.T), slope[:, None]).column(0)
        return high, 1.01 * error + np.abs(low) + UNDERFLOW

    def images(
        self, A: FloatArray, T: FloatArray, sizes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Z = x~ T for these rows, and bounds on the norms of its row errors."""
        high, low, error = scaled_product(A, T)
        off = error + np.abs(low)
        return high, 1.01 * np.sqrt(np.einsum("ij,ij->i", off, off)) + 8 * UNDERFLOW

    def metric(self, h: FloatArray, columns: IntArray | None = None) -> Metric | None:
        """Return a norm in which lam I_w + sum h x~ x~' is proven positive definite on ``columns``; None if not proven.

        The first T is R^-1 of a factorisation in float64. Its images Z = x~ T are far from orthogonal if R has lost its
        last digits, but their Gram matrix is well-conditioned and is used to correct T.
        """
        columns = np.arange(self.size) if columns is None else columns
        T = inverse_factor(self.factor(h, columns))
        if T is None:
            return None
        for _ in range(2):
            whole = self._embed(T, columns)
            floor = self.rows_floor(whole, h)
            if floor > 0.5:
                break
            turn = inverse_root(self.image_gram(whole, h)[0])
            if turn is None:
                break
            T = T @ turn
        else:
            whole = self._embed(T, columns)
            floor = self.rows_floor(whole, h)
        return Metric(whole, columns, floor, False) if floor > 0.0 else None


@dataclass(eq=False)
class Evaluation:
    """Margins and slopes of all rows, gradient and objective, each with a bound on its rounding error."""

    theta: FloatArray
    m: FloatArray
    e: FloatArray  #: rounding error of m
    slope: FloatArray  #: s l'(m) of each row
    slope_error: FloatArray  #: rounding error of slope
    sloped: BoolArray  #: whether the slope of a row may be nonzero
    g: FloatArray
    sum_error: FloatArray  #: rounding error of g from summation
    primal: float = 0.0
    rounding: float = 0.0  #: rounding error of primal

    @classmethod
    def empty(cls, n: int, theta: FloatArray) -> Evaluation:
        """Allocate arrays for n rows, to be filled by ``put``."""
        m, e, slope, slope_error = np.empty((4, n))
        g, sum_error = np.zeros((2, len(theta)))
        return cls(theta, m, e, slope, slope_error, np.empty(n, dtype=bool), g, sum_error)

    def put(
        self, loss: Loss, rows: slice, m: FloatArray, e: FloatArray, s: FloatArray
    ) -> tuple[float, float]:
        """Store rows with margins m known to within e; return the sum of their losses and its error bound."""
        slope, low, high = loss.slope(m), loss.slope(m - e), loss.slope(m + e)
        self.m[rows], self.e[rows], self.slope[rows] = m, e, weigh(s, slope)
        steep = np.maximum(np.abs(low), np.abs(high))
        self.slope_error[rows] = weigh(s, high - low + 16 * ROUNDOFF * steep) + UNDERFLOW * (
            1.0 + s
        )
        self.sloped[rows] = steep > 0.0
        error = float(weigh(s, steep) @ e) * (1.0 + len(e) * ROUNDOFF)
        return float(weigh(s, loss.value(m)).sum()), error + UNDERFLOW * (len(s) + float(s.sum()))

    def penalise(self, lam: float, theta: FloatArray, d: int) -> None:
        """Add the ridge penalty on the d weights to objective and gradient."""
        if lam == 0.0:  # avoids 0 * inf for huge weights
            return
        penalty = 0.5 * lam * float(theta[:d] @ theta[:d])
        self.primal += penalty
        self.rounding += (d + 8) * ROUNDOFF * penalty
        self.g[:d] += lam * theta[:d]
        self.sum_error[:d] += 8 * ROUNDOFF * lam * np.abs(theta[:d])
