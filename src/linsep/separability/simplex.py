"""Decide separability in rational arithmetic, for data that floats cannot decide.

Phase one of the simplex method for sum alpha_i (a_i, 1) = (0, 1), alpha >= 0, with Bland's rule, which cannot
cycle. The tableau holds integers over a common denominator (Edmonds 1967), so nothing is rounded. ``float_vectors``
rounds a rational hyperplane to float64 vectors that still separate.
"""

from __future__ import annotations

from collections.abc import Iterator
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


_LARGEST = Fraction(float(np.finfo(np.float64).max))
_SMALLEST = Fraction(1e-290)  # smaller floats may lose digits
_MULTIPLES = 1 << 20
_MARGINS = 1 << 25  # most margins computed in the search for a multiple
_AT_ONCE = 1 << 18
_CANDIDATES = 4  # per batch of multiples


def float_vectors(theta: list[Fraction], A: FloatArray) -> Iterator[FloatArray]:
    """Yield float vectors v near the ray of theta, where A theta > 0 holds exactly, that probably have A v > 0.

    The cone {A v > 0} may be so narrow that theta rounded to floats lies outside. Multiples of theta round to
    different directions, one of which may lie inside.
    """
    sizes = [Fraction(x) for x in np.abs(A).max(axis=0).tolist()]
    for x in sorted(filter(None, map(abs, theta)), reverse=True):  # the entry x becomes exactly 1
        yield from _scalings([y / x for y in theta], sizes)
    yield from (v for near in _multiples(theta, A) for v in _scalings(near, sizes))


def _scalings(theta: list[Fraction], sizes: list[Fraction]) -> Iterator[FloatArray]:
    """Yield theta in floats, divided by a power of two to a largest entry of order 1.

    If small entries underflow, also scaled so that the largest product of an entry and the size of its column is of
    order 1, and halfway between the two.
    """
    exponent = max(_exponent(x) for x in theta)
    product = max(_exponent(x) + _exponent(size) for x, size in zip(theta, sizes, strict=True))
    for shift in (exponent, product, (exponent + product) // 2):
        scaled = [x * rational(1, -shift) for x in theta]
        yield np.array([_nearest(x) for x in scaled])
        if all(_SMALLEST < abs(x) < _LARGEST or x == 0 for x in scaled):
            return


def _multiples(theta: list[Fraction], A: FloatArray) -> Iterator[list[Fraction]]:
    """Yield multiples k theta, every entry rounded to 53 bits, that lie in the cone according to float arithmetic.

    Entry j is rounded to q_j units of 2^e_j, q_j = k t_j - s_j with t_j = theta_j / 2^e_j and |s_j| <= 1/2. The s_j of
    all k come from integer products modulo 1 with 64 bits, and the margins are a_i.q = k a_i.theta - a_i.(s 2^e).
    """
    units = [rational(2 * _MULTIPLES, _exponent(x) - 52) for x in theta]  # k t_j < 2^53
    whole = [x / unit for x, unit in zip(theta, units, strict=True)]
    fractions = np.array([int(t * 2**64) % 2**64 for t in whole], dtype=np.uint64)
    margins, rows = _margins(theta, units, A)
    step = max(1, _AT_ONCE // len(A))
    for first in range(0, min(_MULTIPLES, _MARGINS // len(A)), step):
        k = np.arange(_MULTIPLES + first, _MULTIPLES + first + step)
        with np.errstate(over="ignore"):
            s = (k.astype(np.uint64)[:, None] * fractions).view(np.int64) * 2.0**-64
        least = (k[:, None] * margins - s @ rows.T).min(axis=1)
        for at in np.argsort(-least)[:_CANDIDATES]:
            if least[at] > 0.0:
                multiple = int(k[at])
                yield [round(multiple * t) * unit for t, unit in zip(whole, units, strict=True)]


def _margins(
    theta: list[Fraction], units: list[Fraction], A: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """a_i.theta and a_ij units_j in floats, each row divided by its largest |a_ij units_j|."""
    exact = DyadicRows.of(A)
    powers = [rational(1, exp) for exp in exact.exps]
    margins, rows = [], []
    for numbers in exact.num.tolist():
        a = [x * power for x, power in zip(numbers, powers, strict=True)]
        moved = [x * unit for x, unit in zip(a, units, strict=True)]
        size = max(abs(x) for x in moved)
        margins.append(_nearest(sum(x * t for x, t in zip(a, theta, strict=True)) / size))
        rows.append([float(x / size) for x in moved])
    return np.array(margins), np.array(rows)


def _nearest(x: Fraction) -> float:
    """Nearest finite float."""
    return float(max(-_LARGEST, min(x, _LARGEST)))


def _exponent(x: Fraction) -> int:
    """Exponent e with 2^e <= |x| < 2^(e+1); 0 for x = 0."""
    if not x:
        return 0
    guess = abs(x.numerator).bit_length() - x.denominator.bit_length()
    return guess if abs(x) >= rational(1, guess) else guess - 1
