"""Round rational hyperplanes to float64 vectors that still separate."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.dyadic import DyadicRows, rational

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
