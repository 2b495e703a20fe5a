"""Rows whose products are made in doubled precision, for data on which float64 proves nothing.

Margins, gradients and the images x~ T err by rounding in proportion to |x| |w| and |x| |T|, which for nearly dependent
columns is far more than their own size. Here they err in proportion to themselves.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linsep.certificates.doubled import product
from linsep.certificates.metric import Metric, inverse_factor, inverse_root
from linsep.certificates.rows import UNDERFLOW, Rows
from linsep.certificates.slices import two_sum
from linsep.problem.closing_rows import ROUNDOFF

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]

#: Multiply-adds of one product of the rows with T up to which doubled precision is worth its time.
LARGEST = 4e8


@dataclass(frozen=True, eq=False)
class DoubledRows(Rows):
    """Rows in memory, with products in doubled precision."""

    @classmethod
    def of(cls, part: Rows) -> DoubledRows | None:
        """The same rows; None if there are too many of them."""
        if part.X.shape[0] * float(part.size) ** 2 > LARGEST:
            return None
        vectors = part.sigma, part.offset, part.weight
        return cls(part.X, *vectors, part.fit_intercept, part.lam)

    def some(self, rows: IntArray) -> DoubledRows:
        """The rows of these numbers."""
        vectors = self.sigma[rows], self.offset[rows], self.weight[rows]
        return DoubledRows(self.X[rows], *vectors, self.fit_intercept, self.lam)

    def margins(
        self, rows: slice, A: FloatArray, theta: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Margins of these rows, and bounds on their errors."""
        high, low, error = (v[:, 0] for v in _scaled_product(A, theta[:, None]))
        high, low = self.sigma[rows] * high, self.sigma[rows] * low
        total, rest = two_sum(high, self.offset[rows])
        m = total + (rest + low)
        small = np.abs(rest) + np.abs(low) + np.abs(m)
        return m, 1.01 * error + 4 * ROUNDOFF * small + 8 * UNDERFLOW

    def pull(self, A: FloatArray, push: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Sum of push x~ over these rows, and bounds on its errors."""
        high, low, error = (v[:, 0] for v in product(np.ascontiguousarray(A.T), push[:, None]))
        return high, 1.01 * error + np.abs(low) + UNDERFLOW

    def images(
        self, A: FloatArray, T: FloatArray, sizes: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Z = x~ T for these rows, and bounds on the lengths of the errors of the rows of Z."""
        high, low, error = _scaled_product(A, T)
        off = error + np.abs(low)
        return high, 1.01 * np.sqrt(np.einsum("ij,ij->i", off, off)) + 8 * UNDERFLOW

    def metric(self, h: FloatArray, columns: IntArray | None = None) -> Metric | None:
        """A norm in which lam I_w + sum h x~ x~' is proven positive definite on ``columns``; None without a proof.

        The first T is R^-1 of a factorisation in float64. Its images Z = x~ T are far from orthogonal where R has lost
        its last digits, but their Gram matrix is well-conditioned and corrects T.
        """
        columns = np.arange(self.size) if columns is None else columns
        T = inverse_factor(self.factor(h, columns))
        if T is None:
            return None
        for _ in range(2):
            whole = self._embedded(T, columns)
            floor = self.rows_floor(whole, h)
            if floor > 0.5:
                break
            turn = inverse_root(self.image_gram(whole, h)[0])
            if turn is None:
                break
            T = T @ turn
        else:
            whole = self._embedded(T, columns)
            floor = self.rows_floor(whole, h)
        return Metric(whole, columns, floor, False) if floor > 0.0 else None


def _scaled_product(A: FloatArray, T: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """A T in doubled precision, the columns of A and the rows of T first brought to like size by powers of two."""
    exponent = np.frexp(np.abs(T).max(axis=1, initial=0.0))[1]
    return product(np.ldexp(A, exponent), np.ldexp(T, -exponent[:, None]))
