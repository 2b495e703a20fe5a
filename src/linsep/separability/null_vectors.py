"""Exact linear dependences between columns with small integer coefficients, for tables of any size.

Columns that depend on one another nearly always do so in a simple way: dummy variables that add up to 1, totals, or
copies. Such a dependence is guessed from a null space in floating point and then proven on every row. Each score
x.z + b with integers z is a multiple of the lowest bit of the row and of b, so that it is 0 if it is smaller than that
bit. Scores come from ``exact.sliced``, with an error of about 2^-88 of their terms.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray
from linsep.exact.sliced import product
from linsep.interrupts import lapack
from linsep.separability.rows import SignedRows

#: Largest denominator of a coefficient, and largest integer coefficient.
_DENOMINATOR, _LARGEST = 1000, 2**26
#: Relative error of a guessed coefficient.
_NEAR = 1e-7
#: Entries of the rows that are read at a time.
_CHUNK = 1 << 20


def simple_null_vectors(guesses: FloatArray) -> FloatArray | None:
    """Integer vectors, in columns, near a basis of the space of ``guesses`` (k, d); None if none are near.

    They are linearly independent: each has a nonzero entry where all others have 0.
    """
    k = len(guesses)
    sizes = np.abs(guesses).max(axis=0)
    _, _, order = lapack(scipy.linalg.qr, guesses, mode="economic", pivoting=True)
    own = order[:k]
    if not sizes[own].all():
        return None
    try:
        basis = lapack(np.linalg.solve, guesses[:, own], guesses)
    except np.linalg.LinAlgError:
        return None
    if not np.isfinite(basis).all():
        return None
    basis[:, own] = np.eye(k)
    found = [_integers(row) for row in basis]
    return None if any(z is None for z in found) else np.array(found, dtype=np.float64).T


def _integers(values: FloatArray) -> list[int] | None:
    """The values times their common denominator, if they are near fractions of small integers."""
    nonzero = np.flatnonzero(np.abs(values) > _NEAR)
    near = [Fraction(x).limit_denominator(_DENOMINATOR) for x in values[nonzero].tolist()]
    exactly = np.array([float(x) for x in near])
    if not (np.abs(values[nonzero] - exactly) <= _NEAR * np.maximum(1.0, np.abs(exactly))).all():
        return None
    divisor = math.lcm(*(x.denominator for x in near))
    whole = [0] * len(values)
    for j, x in zip(nonzero.tolist(), near, strict=True):
        whole[j] = int(x * divisor)
    return whole if max(map(abs, whole)) <= _LARGEST else None


def constant_on(signed: SignedRows, Z: FloatArray) -> bool:
    """Return whether each column z of integers provably has one score x.z, without an intercept 0, on all rows.

    Rows of weight 0 do not count.
    """
    height = max(1, _CHUNK // max(1, signed.data.d))
    shift = None if signed.fit_intercept else np.zeros(Z.shape[1])
    for start in range(0, len(signed.counted), height):
        X = signed.features(signed.counted[start : start + height])
        scores = product(X, Z)
        shift = scores.hi[0] if shift is None else shift
        unit = np.ldexp(1.0, np.minimum(_lowest_bits(X)[:, None], _lowest_bit(shift)))
        if not ((scores.hi == shift) & (scores.lo == 0.0) & (scores.error < unit)).all():
            return False
    return True


def _lowest_bits(X: Any) -> IntArray:
    """For each row, e such that its entries are integers times 2^e, as large as possible."""
    if sp.issparse(X):
        found = np.full(X.shape[0], 1023)
        entries = X.tocoo()
        np.minimum.at(found, entries.row, _lowest_bit(entries.data))
        return found
    return np.asarray(_lowest_bit(X).min(axis=1, initial=1023), dtype=np.int64)


def _lowest_bit(values: FloatArray) -> IntArray:
    """Exponent of the lowest bit of each number; 1023 for 0."""
    mantissa, exponent = np.frexp(values)
    whole = (mantissa * 2.0**53).astype(np.int64)
    lowest = np.frexp((whole & -whole).astype(np.float64))[1] - 54
    return np.asarray(np.where(whole != 0, exponent + lowest, 1023), dtype=np.int64)
