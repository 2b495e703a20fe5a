"""Vectors of dyadic rationals: Python integers times a common power of two, computed without rounding."""

from __future__ import annotations

import math
import sys
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import BoolArray, FloatArray

Integers = npt.NDArray[np.object_]


@dataclass(frozen=True, eq=False)
class Dyadic:
    """Exact vector ``num * 2**exp``."""

    num: Integers
    exp: int

    @classmethod
    def of(cls, values: Any) -> Dyadic:
        """Convert finite floats exactly."""
        return cls(*_integers(np.atleast_1d(np.asarray(values, dtype=np.float64))))

    def _align(self, other: Dyadic) -> tuple[Integers, Integers, int]:
        exp = min(self.exp, other.exp)
        return self.num * (1 << (self.exp - exp)), other.num * (1 << (other.exp - exp)), exp

    def __add__(self, other: Dyadic) -> Dyadic:
        a, b, exp = self._align(other)
        return Dyadic(a + b, exp)

    def __sub__(self, other: Dyadic) -> Dyadic:
        a, b, exp = self._align(other)
        return Dyadic(a - b, exp)

    def __mul__(self, other: Dyadic) -> Dyadic:
        return Dyadic(self.num * other.num, self.exp + other.exp)

    def __abs__(self) -> Dyadic:
        return Dyadic(np.abs(self.num), self.exp)

    def halve(self) -> Dyadic:
        """Divide by 2."""
        return Dyadic(self.num, self.exp - 1)

    def positive(self) -> Dyadic:
        """Elementwise max(., 0)."""
        return Dyadic(np.maximum(self.num, 0), self.exp)

    def at_most(self, other: Dyadic) -> Dyadic:
        """Elementwise minimum."""
        a, b, exp = self._align(other)
        return Dyadic(np.minimum(a, b), exp)

    def take(self, where: BoolArray) -> Dyadic:
        """Entries where the mask is true."""
        return Dyadic(self.num[where], self.exp)

    def sum(self) -> Fraction:
        """Sum of the entries as a rational number."""
        return rational(sum(self.num.tolist()), self.exp)

    def fractions(self) -> list[Fraction]:
        """Entries as rational numbers."""
        return [rational(num, self.exp) for num in self.num.tolist()]

    def floats(self) -> FloatArray:
        """Entries rounded to float64; infinite if they overflow."""
        return np.array([nearest(x) for x in self.fractions()])


@dataclass(frozen=True, eq=False)
class DyadicRows:
    """A block of rows with one power of two per column, so that features of any scale stay compact."""

    num: Integers
    exps: list[int]

    @classmethod
    def of(cls, block: FloatArray) -> DyadicRows:
        """Convert finite floats exactly."""
        columns = [_integers(column) for column in block.T]
        num = np.empty(block.shape, dtype=object)
        for j, (integers, _) in enumerate(columns):
            num[:, j] = integers
        return cls(num, [exp for _, exp in columns])

    def dot(self, w: Dyadic) -> Dyadic:
        """Product with a vector of d entries."""
        low, shifts = self._shifts()
        return Dyadic(self.num @ (w.num * shifts), w.exp + low)

    def transposed_dot(self, a: Dyadic) -> Dyadic:
        """Sum of the rows, each multiplied by its entry of ``a``."""
        low, shifts = self._shifts()
        return Dyadic((a.num @ self.num) * shifts, a.exp + low)

    def _shifts(self) -> tuple[int, Integers]:
        low = min(self.exps, default=0)
        return low, np.array([1 << (exp - low) for exp in self.exps], dtype=object)


def nearest(x: Fraction) -> float:
    """Round to float64; infinite on overflow."""
    try:
        return float(x)
    except OverflowError:
        return math.inf if x > 0 else -math.inf


def below(x: Fraction) -> float:
    """Largest finite float64 number <= x; minus infinity if there is none."""
    found = min(nearest(x), sys.float_info.max)
    return found if math.isinf(found) or Fraction(found) <= x else math.nextafter(found, -math.inf)


def rational(num: int, exp: int) -> Fraction:
    """num * 2**exp."""
    return Fraction(num << exp) if exp >= 0 else Fraction(num, 1 << -exp)


def _integers(values: FloatArray) -> tuple[Integers, int]:
    """Express floats as integers times a common power of two, the largest possible."""
    mantissa, exponent = np.frexp(values)
    num = (mantissa * 2.0**53).astype(np.int64)
    exp = exponent.astype(np.int64) - 53
    trailing = np.frexp((num & -num).astype(np.float64))[1].astype(np.int64) - 1
    nonzero = num != 0
    trailing = np.where(nonzero, trailing, 0)
    num, exp = num >> trailing, exp + trailing
    low = int(exp[nonzero].min()) if nonzero.any() else 0
    shift = np.where(nonzero, exp - low, 0)
    return num.astype(object) << shift.astype(object), low
