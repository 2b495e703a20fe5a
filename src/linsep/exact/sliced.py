"""Matrix products in about twice the working precision with a proven error bound, from ordinary matrix products.

Both factors are cut into slices of b bits, relative to the largest entry of each row on the left and of each column on
the right. If 2 b + log2(terms) <= 53, every product of two slices is a sum of integers below 2^53 (times a power of
two), so that float64 computes it *exactly* in any order of summation. The resulting exact matrices are added as pairs
(hi, lo) by Knuth's error-free addition.

Ozaki, Ogita, Oishi and Rump, Error-free transformations of matrix multiplication, Numerical Algorithms 59, 2012.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray
from linsep.interrupts import check

#: Number of slices per factor.
_SLICES = 4
#: Relative error of a few additions of pairs (hi, lo); each costs at most 2^-104 (Joldes, Muller and Popescu 2017).
PAIR_ERROR = 2.0**-98
#: Bound on the underflow error of a product.
_UNDERFLOW = 2.0**-1060
#: Exponent of a row without entries, which has no error.
_NONE = -5000


class Pair(NamedTuple):
    """Unevaluated sums hi + lo with |lo| <= ulp(hi)/2, and bounds on their absolute errors."""

    hi: FloatArray
    lo: FloatArray
    error: FloatArray

    @classmethod
    def of(cls, values: FloatArray) -> Pair:
        """Pair of exact numbers, with lo and error 0."""
        zero = np.zeros_like(values)
        return cls(values, zero, zero)

    def plus(self, other: Pair) -> Pair:
        """Return the sum as a pair."""
        s, e = two_sum(self.hi, other.hi)
        hi, lo = two_sum(s, e + (self.lo + other.lo))
        size = np.abs(self.hi) + np.abs(other.hi)
        return Pair(hi, lo, self.error + other.error + PAIR_ERROR * size)

    def times(self, by: tuple[float, float]) -> Pair:
        """Return the product with a scalar pair."""
        p, e = two_product(self.hi, np.full_like(self.hi, by[0]))
        hi, lo = two_sum(p, e + (self.hi * by[1] + self.lo * by[0]))
        error = self.error * abs(by[0]) * (1.0 + 2.0**-40) + PAIR_ERROR * np.abs(hi) + _UNDERFLOW
        return Pair(hi, lo, error)

    def times_sign(self, sign: FloatArray) -> Pair:
        """Return the exact product with signs."""
        return Pair(sign * self.hi, sign * self.lo, self.error)

    def column(self, k: int) -> Pair:
        """Column k of a pair of matrices."""
        return Pair(self.hi[:, k], self.lo[:, k], self.error[:, k])


def two_sum(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """fl(a + b) and its rounding error, exactly (Knuth)."""
    s = a + b
    t = s - a
    return s, (a - (s - t)) + (b - t)


def two_product(a: FloatArray, b: FloatArray) -> tuple[FloatArray, FloatArray]:
    """fl(a b) and its rounding error, exactly up to overflow and underflow (Dekker, Veltkamp)."""
    p = a * b
    a_hi, b_hi = _upper_half(a), _upper_half(b)
    a_lo, b_lo = a - a_hi, b - b_hi
    return p, ((a_hi * b_hi - p) + a_hi * b_lo + a_lo * b_hi) + a_lo * b_lo


def _upper_half(a: FloatArray) -> FloatArray:
    c = 134217729.0 * a  # 2^27 + 1
    return c - (c - a)


def product(A: Any, B: FloatArray) -> Pair:
    """A B for A (n, m), dense or CSR, and B (m, k), with n and m below 2^20 or so.

    Let 2^e_i and 2^f_j bound row i of A and column j of B. Slice s of either factor, from 0, is at most 2^(-s b) of
    that, and the remainder after S slices 2^(-S b). Omitting all pairs s + t >= S therefore costs at most
    (S + 2) m 2^(e + f - S b); ``Pair.plus`` accounts for the errors of summing the others.
    """
    inner = A.shape[1]
    bits = int((53 - math.ceil(math.log2(inner + 2))) // 2)
    with np.errstate(over="ignore", invalid="ignore"):  # overflow becomes NaN
        left, e = _slices(A, 1, bits)
        right, f = _slices(B, 0, bits)
        total = Pair.of(np.zeros((A.shape[0], B.shape[1])))
        for level in reversed(range(_SLICES)):  # small terms first
            for s in range(level + 1):
                check()
                total = total.plus(Pair.of(np.asarray(left[s] @ right[level - s])))
        error = total.error + (_SLICES + 2) * inner * 2.0 ** (-_SLICES * bits)
        hi, lo, error = (_ldexp(values, e, f) for values in (total.hi, total.lo, error))
    return Pair(hi, lo, error + inner * _UNDERFLOW)


def scaled_product(A: Any, B: FloatArray) -> Pair:
    """A B, after moving powers of two from the rows of B to the columns of A.

    The slices then depend on the size of the products a_ij b_jk and not on the units of a column.
    """
    largest = np.abs(B).max(axis=1, initial=0.0)
    exponent = np.where(largest > 0.0, np.frexp(largest)[1], _NONE)
    with np.errstate(over="ignore", invalid="ignore"):
        return product(_scale_columns(A, exponent), np.ldexp(B, -exponent[:, None]))


def transpose(A: Any) -> Any:
    """A' in a format whose rows can be sliced."""
    return A.T.tocsr() if sp.issparse(A) else A.T


def _ldexp(values: FloatArray, e: IntArray, f: IntArray) -> FloatArray:
    """values 2^e 2^f in two steps, since e + f may exceed the float64 range although the result does not."""
    half = (e + f) // 2
    return np.asarray(np.ldexp(np.ldexp(values, half), e + f - half))


def _scale_columns(A: Any, exponent: npt.NDArray[Any]) -> Any:
    """A with column j multiplied by 2^exponent_j."""
    if sp.issparse(A):
        data = np.ldexp(A.data, exponent[A.indices])
        return sp.csr_array((data, A.indices, A.indptr), shape=A.shape)
    return np.ldexp(A, exponent)


def _slices(A: Any, axis: int, bits: int) -> tuple[list[Any], IntArray]:
    """Slices of A 2^-e, largest first, and exponents e with |A| <= 2^e along the axis (kept with length 1)."""
    sparse = sp.issparse(A)
    largest = _maxima(A, axis)
    exponent = np.where(largest > 0.0, np.frexp(largest)[1], _NONE).astype(np.int64)
    if sparse:
        rest = np.ldexp(A.data, -np.repeat(exponent.ravel(), np.diff(A.indptr)))
    else:
        rest = np.ldexp(A, -exponent)
    found = []
    for k in range(_SLICES):
        c = 1.5 * 2.0 ** (52 - (k + 1) * bits)
        upper = (rest + c) - c  # a multiple of 2^-(k + 1) bits, as |rest| <= 2^-(k bits)
        rest = rest - upper
        found.append(sp.csr_array((upper, A.indices, A.indptr), A.shape) if sparse else upper)
    return found, exponent


def _maxima(A: Any, axis: int) -> FloatArray:
    """Largest |a| along the axis, kept with length 1; sparse matrices support axis 1 only."""
    if not sp.issparse(A):
        return np.asarray(np.abs(A).max(axis=axis, keepdims=True, initial=0.0))
    if not A.shape[1]:
        return np.zeros((A.shape[0], 1))
    return np.asarray(abs(A).max(axis=1).toarray(), dtype=np.float64).reshape(-1, 1)
