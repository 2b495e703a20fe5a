"""Matrix products in about twice the precision of float64, with a proven error, by ordinary matrix products.

The operands are cut into slices of so few bits that the product of two slices is exact in float64 in whatever order
it is added up (Ozaki, Ogita, Oishi and Rump, Error-free transformations of matrix multiplication, Numerical Algorithms
59, 2012). The exact products are then added with compensation.
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from linsep.certificates.slices import two_sum

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

_SLICES = 4
#: Exponents of operands beyond which slices may overflow or underflow.
_EXPONENTS = 200


def product(A: FloatArray, B: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    """(high, low, error): A B lies within ``error`` of high + low, entry by entry.

    Let 2^e_i and 2^f_j bound row i of A and column j of B, m be the inner dimension and b the bits of a slice,
    2 b + log2 m <= 53. Slice s of A, from 0, is at most 2^(e - s b), what is left after S slices 2^(e - S b). Leaving
    out all pairs s + t >= S therefore costs at most (S + 1) m 2^(e + f - S b). There are S (S + 1) / 2 = 10 pairs,
    whose sizes add up to less than 2 m 2^(e + f); adding them with their errors kept errs by less than
    512 u^2 m 2^(e + f).
    """
    inner = A.shape[1]
    bits = (53 - math.ceil(math.log2(max(inner, 1)))) // 2
    left, e = _sliced(A, 1, bits)
    right, f = _sliced(B, 0, bits)
    high = np.zeros((A.shape[0], B.shape[1]))
    low = np.zeros_like(high)
    for total in reversed(range(_SLICES)):  # small terms first
        for s in range(total + 1):
            high, error = two_sum(high, left[s] @ right[total - s])
            low += error
    share = (_SLICES + 1) * 2.0 ** (-_SLICES * bits) + 512.0 * 2.0**-106
    with np.errstate(over="ignore"):
        bound = inner * share * np.ldexp(1.0, e + f)
    bound[np.maximum(np.abs(e), np.abs(f)) > _EXPONENTS] = math.inf
    return *two_sum(high, low), bound


def _sliced(A: FloatArray, axis: int, bits: int) -> tuple[list[FloatArray], IntArray]:
    """Slices of ``bits`` bits each, largest first, and exponents e with |A| <= 2^e along the axis."""
    largest = np.abs(A).max(axis=axis, keepdims=True, initial=0.0)
    exponent = np.where(largest > 0.0, np.frexp(largest)[1], -_EXPONENTS).astype(np.int64)
    out, rest = [], A
    for s in range(1, _SLICES + 1):
        grain = exponent - s * bits
        slice_ = np.ldexp(np.rint(np.ldexp(rest, -grain)), grain)
        out.append(slice_)
        rest = rest - slice_  # exact: a multiple of the last bit of rest, and no longer than it
    return out, exponent
