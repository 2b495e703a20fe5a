"""Rational hyperplanes rounded to floats."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

_LARGEST = Fraction(float(np.finfo(np.float64).max))
_SMALLEST = 1e-290  # floats below this lose digits


def nearest_float(x: Fraction) -> float:
    """The nearest finite float."""
    return float(max(-_LARGEST, min(x, _LARGEST)))


def float_vectors(
    theta: list[Fraction], sizes: FloatArray, multiple: int = 1
) -> Iterator[FloatArray]:
    """theta in floats, scaled to a largest entry of order 1 and multiplied by an integer.

    If entries vanish beside the largest then, also scaled to order 1 in the largest product of an entry and the
    size of its column, and half-way between the two.
    """
    largest = max(abs(x) for x in theta)
    factor = multiple / largest
    rounded = _floats(theta, factor)
    yield rounded
    if all(abs(y) > _SMALLEST or x == 0 for x, y in zip(theta, rounded.tolist(), strict=True)):
        return
    product = max(abs(x) * Fraction(size) for x, size in zip(theta, sizes.tolist(), strict=True))
    apart = _exponent(largest) - _exponent(product)
    for shift in (apart, apart // 2):
        yield _floats(theta, factor * Fraction(2) ** shift)


def _floats(values: list[Fraction], factor: Fraction) -> FloatArray:
    return np.array([nearest_float(x * factor) for x in values])


def _exponent(x: Fraction) -> int:
    return x.numerator.bit_length() - x.denominator.bit_length()
