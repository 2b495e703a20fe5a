"""Decide separability in rational arithmetic, for data that floats cannot decide.

Phase one of the simplex method for sum alpha_i (a_i, 1) = (0, 1), alpha >= 0, with Bland's rule, which cannot
cycle. The tableau holds integers over a common denominator (Edmonds 1967), so nothing is rounded.
"""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray
from linsep.exact.budget import spend
from linsep.exact.dyadic import DyadicRows, rational
from linsep.interrupts import check

#: Largest number of entries of A for which an integer tableau takes only seconds.
ENTRIES = 20_000
#: Bits of an integer whose products cost as much as a multiply-add of decimals; each operation also has a fixed cost of
#: 5.
_BITS = 100


def decide(A: FloatArray) -> tuple[list[Fraction] | None, dict[int, Fraction] | None]:
    """Return (theta, None) with A theta > 0, or (None, {row: weight}) with weighted sum 0; A is (m, p).

    The powers of two by which the columns of A are scaled internally are undone in theta.
    """
    m, p = A.shape
    rows = DyadicRows.of(A)
    # Columns: rows of A, artificial, right-hand side.
    T = np.zeros((p + 2, m + p + 2), dtype=object)
    T[:p, :m] = rows.num.T
    T[p, :m] = 1
    T[: p + 1, m : m + p + 1] = np.eye(p + 1, dtype=np.int64).astype(object)
    T[p, -1] = 1
    T[p + 1] = T[: p + 1].sum(axis=0)  # reduced costs of the sum of the artificial variables
    T[p + 1, m : m + p + 1] = 0
    basis = list(range(m, m + p + 1))
    divisor = _minimise(T, basis, m)
    if T[p + 1, -1] == 0:
        pairs = {basis[i]: Fraction(T[i, -1], divisor) for i in range(p + 1) if T[i, -1] != 0}
        return None, pairs
    prices = [Fraction(T[p + 1, m + j], divisor) + 1 for j in range(p)]
    return [-y / rational(1, exp) for y, exp in zip(prices, rows.exps, strict=True)], None


def half_space(A: FloatArray) -> list[Fraction] | None:
    """theta with A theta >= 0 and not all of it zero; None if there is none. A is (m, p).

    By Stiemke's lemma there is none if and only if some weights, 1 at least, have weighted sum 0: phase one for the
    weights beyond 1.
    """
    m, p = A.shape
    rows = DyadicRows.of(A)
    total = -rows.num.sum(axis=0)
    sign = np.where(total < 0, -1, 1).astype(object)
    T = np.zeros((p + 1, m + p + 1), dtype=object)
    T[:p, :m] = rows.num.T * sign[:, None]
    T[:p, m : m + p] = np.eye(p, dtype=np.int64).astype(object)
    T[:p, -1] = total * sign
    T[p] = T[:p].sum(axis=0)
    T[p, m : m + p] = 0
    divisor = _minimise(T, list(range(m, m + p)), m)
    if T[p, -1] == 0:
        return None
    prices = [int(a) * (Fraction(T[p, m + j], divisor) + 1) for j, a in enumerate(sign)]
    return [-y / rational(1, exp) for y, exp in zip(prices, rows.exps, strict=True)]


def scores(A: FloatArray, theta: list[Fraction]) -> list[Fraction]:
    """A theta without rounding."""
    return [
        sum((Fraction(a) * t for a, t in zip(row, theta, strict=True)), Fraction(0))
        for row in A.tolist()
    ]


def _minimise(T: npt.NDArray[np.object_], basis: list[int], m: int) -> int:
    """Pivot until none of the first m columns reduces the sum of the artificial variables; return the denominator."""
    divisor: int = 1
    while True:
        check()
        spend(T.size * (5.0 + divisor.bit_length() / _BITS))
        rising = np.flatnonzero(T[-1, :m] > 0)
        if not len(rising):
            return divisor
        column = int(rising[0])
        able = [i for i in range(len(basis)) if T[i, column] > 0]
        row = min(able, key=lambda i: (Fraction(T[i, -1], T[i, column]), basis[i]))
        pivot = T[row, column]
        kept = T[row].copy()
        T[:] = (T * pivot - np.outer(T[:, column], kept)) // divisor
        T[row] = kept
        divisor = pivot
        basis[row] = column
