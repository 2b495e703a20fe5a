"""Exact sums of numbers and of their squares, so that means and standard deviations do not depend on batches.

Every float64 is an integer times a power of two. Numbers are cut into limbs of 20 bits, whose products are added
up exactly in float64 by blocks of 8192 rows; the totals are Python integers. The sums are therefore the true sums, in
whatever order and on whatever machine rows are added, and the mean and the deviation are rounded once.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray

LEAST = 1074  # numbers are multiples of 2^-LEAST
_BITS = 20  # of a limb
_ROWS = 1 << (53 - 2 * _BITS)  # products of limbs that are added up without rounding
_UNDERFLOW = 900  # binary orders of magnitude in a column beyond which scaling could lose bits


class Moments:
    """Exact sums of the numbers x of m columns: ``first`` in units of 2^-1074, ``second``, of x^2, of 2^-2148."""

    def __init__(self, m: int) -> None:
        self.first, self.second = [0] * m, [0] * m

    def add(self, x: FloatArray, at: int) -> None:
        """Add rows of the columns at, at + 1, ...: x is (columns, rows), finite."""
        largest = np.abs(x).max(axis=1, initial=0.0)
        top = np.frexp(largest)[1].astype(np.int64)
        wide = _spans(x, top)
        if wide.any():
            for j in np.flatnonzero(wide).tolist():
                self._slowly(x[j], at + j)
            x = np.where(wide[:, None], 0.0, x)
        half = top // 2  # 2^-top itself may be beyond float64
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
        """Add one column whose numbers differ by hundreds of orders of magnitude."""
        for value in x[x != 0.0].tolist():
            whole = in_units(value)
            self.first[at] += whole
            self.second[at] += whole * whole

    def merge(self, other: Moments) -> None:
        """Add the sums of other rows."""
        self.first = [a + b for a, b in zip(self.first, other.first, strict=True)]
        self.second = [a + b for a, b in zip(self.second, other.second, strict=True)]

    def mean_and_deviation(self, j: int, n: int, missing: int, fill: float) -> tuple[float, float]:
        """Mean and standard deviation of n numbers, of which ``missing`` are not in the sums but equal ``fill``."""
        whole = in_units(fill)
        first = self.first[j] + missing * whole
        second = self.second[j] + missing * whole * whole
        mean = first / (n << LEAST)
        return mean, _root(n * second - first * first, n * n << 2 * LEAST)


def in_units(x: float) -> int:
    """The number x in units of 2^-1074."""
    numerator, denominator = x.as_integer_ratio()
    return (numerator << LEAST) // denominator


def _root(numerator: int, denominator: int) -> float:
    """Square root of a quotient, which may be beyond float64 where its root is not."""
    try:
        ratio = numerator / denominator
    except OverflowError:
        return math.ldexp(math.sqrt(numerator / (denominator << 1100)), 550)
    if ratio < 1e-290:
        return math.ldexp(math.sqrt((numerator << 1000) / denominator), -500)
    return math.sqrt(ratio)


def _spans(x: FloatArray, top: IntArray) -> BoolArray:
    """Columns whose smallest numbers would lose bits when the largest is scaled to 1."""
    if (np.abs(top) < 100).all():  # nothing below 2^-900 has to be kept apart from 1
        tiny = (x != 0.0) & (np.abs(x) < 2.0**-800)
    else:
        tiny = (x != 0.0) & (np.frexp(x)[1] < top[:, None] - _UNDERFLOW)
    return np.asarray(tiny.any(axis=1))


def _shift(value: int, by: int) -> int:
    """value * 2^by, which is an integer."""
    return value << by if by >= 0 else value >> -by


def _limb_sums(x: FloatArray) -> tuple[Any, Any]:
    """Sums of the limbs of x (columns, rows), |x| <= 1, and of the products of two of them, as integers."""
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
