"""Products in about twice the working precision, by slicing: A y with a proven error bound.

A matrix is cut into slices of t bits, relative to the largest entry of each row, and a vector likewise. If
2 t + log2(terms) <= 53, every product of two slices is a sum of integers below 2^53 (times a power of two), so that
numpy computes it *exactly*, whatever the order of the additions. What remains are a few exact vectors, which are added
up in pairs (hi, lo) by Knuth's error-free addition. Ozaki, Ogita, Oishi and Rump 2012.

Powers of two are taken out of the vector and put into the columns beforehand, so that "large" and "small" are told
apart by the products x_ij y_j and not by the units of a column.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]

#: Slices of the matrix; those of a vector hold all its 53 bits.
_SLICES = 4
#: Relative error of a few additions of pairs (hi, lo); each costs at most 2^-104 (Joldes, Muller and Popescu 2017).
PAIR_ERROR = 2.0**-98
#: Bound on what underflow takes from a product.
_UNDERFLOW = 2.0**-1060


class Pair(NamedTuple):
    """Unevaluated sums hi + lo with |lo| <= ulp(hi)/2, and a bound on their absolute errors."""

    hi: FloatArray
    lo: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Pair:
        """Exact numbers."""
        zero = np.zeros_like(values)
        return cls(values, zero, zero)

    def plus(self, other: Pair) -> Pair:
        """The sum, again as a pair."""
        s, e = two_sum(self.hi, other.hi)
        hi, lo = two_sum(s, e + (self.lo + other.lo))
        size = np.abs(self.hi) + np.abs(other.hi)
        return Pair(hi, lo, self.error + other.error + PAIR_ERROR * size)

    def times(self, by: tuple[float, float]) -> Pair:
        """The product with a pair of numbers."""
        p, e = two_product(self.hi, np.full_like(self.hi, by[0]))
        hi, lo = two_sum(p, e + (self.hi * by[1] + self.lo * by[0]))
        error = self.error * abs(by[0]) * (1.0 + 2.0**-40) + PAIR_ERROR * np.abs(hi) + _UNDERFLOW
        return Pair(hi, lo, error)

    def signed(self, sign: FloatArray) -> Pair:
        """The product with signs, which is exact."""
        return Pair(sign * self.hi, sign * self.lo, self.error)


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """fl(a + b) and what rounding took from it, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """fl(a b) and what rounding took from it, exactly but for over- and underflow (Dekker, Veltkamp)."""
    p = a * b
    a_hi, b_hi = _upper_half(a), _upper_half(b)
    a_lo, b_lo = a - a_hi, b - b_hi
    return p, ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def _upper_half(a: FloatArray) -> FloatArray:
    c = 134217729.0 * a  # 2^27 + 1
    return c - (c - a)


def product(A: Any, Y: FloatArray) -> list[Pair]:
    """A y for each column y of Y (d, k); A is (n, d), dense or CSR, n and d below 2^20 or so."""
    d = A.shape[1]
    bits = int((53 - math.ceil(math.log2(d + 2))) // 2)
    found = []
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows becomes NaN
        for y in Y.T:
            exponent = np.where(y != 0.0, np.frexp(y)[1], -5000)  # columns without weight vanish
            B, unit = _scaled(A, exponent), np.frexp(y)[0]
            found.append(_sliced(B, unit, bits))
    return found


def transposed_product(A: Any, P: FloatArray) -> list[Pair]:
    """A' p for each column p of P (n, k)."""
    return product(A.T.tocsr() if sp.issparse(A) else A.T, P)


def _scaled(A: Any, exponent: npt.NDArray[Any]) -> Any:
    """A with column j multiplied by 2^exponent_j."""
    if sp.issparse(A):
        data = np.ldexp(A.data, exponent[A.indices])
        return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
    return np.ldexp(A, exponent)


def _sliced(B: Any, y: FloatArray, bits: int) -> Pair:
    """B y, with the entries of y below 1 in size."""
    n, d = B.shape
    top = _row_maxima(B)
    exponent = np.where(top > 0.0, np.frexp(top)[1], -5000)  # a row of zeros has no error
    if sp.issparse(B):
        rest = np.ldexp(B.data, -np.repeat(exponent, np.diff(B.indptr)))
    else:
        rest = np.ldexp(B, -exponent[:, None])
    vectors = _slices_of(y, bits, math.ceil(53 / bits))
    total = Pair.of(np.zeros(n))
    for k in range(_SLICES):
        upper = _upper(rest, k * bits, bits)
        rest = rest - upper
        part = sp.csr_array((upper, B.indices, B.indptr), B.shape) if sp.issparse(B) else upper
        for vector in vectors:
            total = total.plus(Pair.of(np.asarray(part @ vector)))
    error = np.ldexp(total.error + d * 2.0 ** (-_SLICES * bits), exponent) + d * _UNDERFLOW
    return Pair(np.ldexp(total.hi, exponent), np.ldexp(total.lo, exponent), error)


def _upper(a: FloatArray, skipped: int, bits: int) -> FloatArray:
    """a rounded to a multiple of 2^-(skipped + bits), for |a| <= 2^-skipped."""
    c = 1.5 * 2.0 ** (52 - skipped - bits)
    return np.asarray((a + c) - c)


def _slices_of(y: FloatArray, bits: int, count: int) -> list[FloatArray]:
    """Exact slices of y, |y| < 1."""
    slices, rest = [], y
    for k in range(count):
        upper = _upper(rest, k * bits, bits)
        slices.append(upper)
        rest = rest - upper
    return [*slices, rest] if rest.any() else slices


def _row_maxima(B: Any) -> FloatArray:
    if not B.shape[1]:
        return np.zeros(B.shape[0])
    if sp.issparse(B):
        return np.asarray(abs(B).max(axis=1).toarray(), dtype=np.float64).ravel()
    return np.asarray(np.abs(B).max(axis=1))
