"""Exact sums of numbers and of their squares, so that means and standard deviations do not depend on batches.

Every float64 is an integer times a power of two. Numbers are split into limbs of 20 bits, whose products are summed
without rounding in float64 in blocks of 8192 rows; the totals are Python integers. The sums are therefore exact, for
any order of the rows and on any machine, and mean and standard deviation are rounded only once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray

LEAST = 1074  # every float64 is a multiple of 2^-LEAST
_BITS = 20  # bits per limb
_ROWS = 1 << (53 - 2 * _BITS)  # number of products of limbs that can be summed without rounding
_UNDERFLOW = 900  # range of binary exponents in a column beyond which scaling could lose bits


class Moments:
    """Exact sums over m columns: ``first``, of x, in units of 2^-1074; ``second``, of x^2, in units of 2^-2148."""

    def __init__(self, m: int) -> None:
        self.first, self.second = [0] * m, [0] * m

    def add(self, x: FloatArray, at: int) -> None:
        """Add x (columns, rows), which must be finite, to the sums of the columns at, at + 1, ..."""
        largest = np.abs(x).max(axis=1, initial=0.0)
        top = np.frexp(largest)[1].astype(np.int64)
        wide = _spans(x, top)
        if wide.any():
            for j in np.flatnonzero(wide).tolist():
                self._slowly(x[j], at + j)
            x = np.where(wide[:, None], 0.0, x)
        half = top // 2  # scale in two steps, because 2^-top may overflow
        x = x * np.ldexp(1.0, -half)[:, None] * np.ldexp(1.0, half - top)[:, None]
        sums, products = _limb_sums(x)
        count = sums.shape[1]
        down = _BITS * count
        for j, exponent in enumerate(top.tolist()):
            s, p = sums[j].tolist(), products[j].tolist()
            first = sum(v << (_BITS * (count - 1 - i)) for i, v in enumerate(s))
            second = sum(
                v << (_BITS * (2 * count - 2 - i - k))
                for i, row in enumerate(p)
                for k, v in enumerate(row)
            )
            self.first[at + j] += _shift(first, exponent - down + LEAST)
            self.second[at + j] += _shift(second, 2 * (exponent - down + LEAST))

    def _slowly(self, x: FloatArray, at: int) -> None:
        """Add one column whose numbers span hundreds of orders of magnitude, number by number."""
        for value in x[x != 0.0].tolist():
            whole = in_units(value)
            self.first[at] += whole
            self.second[at] += whole * whole

    def merge(self, other: Moments) -> None:
        """Add the sums of other rows."""
        self.first = [a + b for a, b in zip(self.first, other.first, strict=True)]
        self.second = [a + b for a, b in zip(self.second, other.second, strict=True)]

    def mean_and_deviation(self, j: int, n: int, missing: int, fill: float) -> tuple[float, float]:
        """Return mean and standard deviation of column j with n rows, of which ``missing`` count as ``fill``."""
        whole = in_units(fill)
        first = self.first[j] + missing * whole
        second = self.second[j] + missing * whole * whole
        mean = first / (n << LEAST)
        return mean, _root(n * second - first * first, n * n << 2 * LEAST)


def in_units(x: float) -> int:
    """Return the number x as an integer in units of 2^-1074."""
    numerator, denominator = x.as_integer_ratio()
    return (numerator << LEAST) // denominator


def _root(numerator: int, denominator: int) -> float:
    """Return the square root of a quotient of integers, even if the quotient itself overflows or underflows."""
    try:
        ratio = numerator / denominator
    except OverflowError:
        return math.ldexp(math.sqrt(numerator / (denominator << 1100)), 550)
    if ratio < 1e-290:
        return math.ldexp(math.sqrt((numerator << 1000) / denominator), -500)
    return math.sqrt(ratio)


def _spans(x: FloatArray, top: IntArray) -> BoolArray:
    """Return which columns have numbers so small that they would lose bits when the largest is scaled to 1."""
    if (np.abs(top) < 100).all():  # a fixed threshold is sufficient, and faster
        tiny = (x != 0.0) & (np.abs(x) < 2.0**-800)
    else:
        tiny = (x != 0.0) & (np.frexp(x)[1] < top[:, None] - _UNDERFLOW)
    return np.asarray(tiny.any(axis=1))


def _shift(value: int, by: int) -> int:
    """Return value * 2^by, which must be an integer."""
    return value << by if by >= 0 else value >> -by


def _limb_sums(x: FloatArray) -> tuple[Any, Any]:
    """Return the sums over rows of the limbs of x (columns, rows), |x| <= 1, and of their pairwise products."""
    columns, rows = x.shape
    height = min(rows, _ROWS)
    blocks = -(-rows // max(1, height))
    if blocks * height > rows:
        x = np.concatenate([x, np.zeros((columns, blocks * height - rows))], axis=1)
    limbs = []
    while True:
        x = x * float(1 << _BITS)
        limb = np.rint(x)
        limbs.append(limb.reshape(columns, blocks, height))
        x = x - limb
        if not x.any():
            break
    L = np.stack(limbs, axis=2)  # (columns, blocks, limbs, rows)
    products = (L @ L.swapaxes(2, 3)).astype(np.int64).sum(axis=1)
    return L.sum(axis=3).astype(np.int64).sum(axis=1), products
