"""Maxima of quantities that are known up to rounding, and directed rounding of rationals.

A bound is a statement about the given rows, so rounding must not make it smaller. Floating-point arithmetic finds the
few rows that can attain a maximum; rational arithmetic evaluates them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, dense
from linsep.exact.dyadic import nearest

#: A float only if it is infinite, or if too many rows are candidates for the maximum.
Rational = Fraction | float

#: Maximum number of entries for rational arithmetic; with more, a bound on the rounding error is added instead.
MOST_ENTRIES = 20_000


def largest(
    low: FloatArray, high: FloatArray, exactly: Callable[[Any], list[Rational]], width: int
) -> Rational:
    """Upper bound on the largest of several numbers, each between its ``low`` and ``high``; NaN means unknown.

    ``exactly`` evaluates the numbers at given positions without rounding, each from ``width`` entries.
    """
    low, high = np.where(np.isnan(low), -np.inf, low), np.where(np.isnan(high), np.inf, high)
    close = np.flatnonzero(high >= low.max())
    if len(close) * width > MOST_ENTRIES:
        return _rational(float(high.max()))
    return max(exactly(close))


def _rational(x: float) -> Rational:
    return Fraction(x) if math.isfinite(x) else x


def fractions(values: Iterable[float]) -> list[Fraction]:
    """Convert finite floats to fractions, without rounding."""
    return [Fraction(float(x)) for x in values]


def square(values: Iterable[Fraction]) -> Fraction:
    """Sum of squares."""
    return sum((x * x for x in values), Fraction(0))


def rows_at(rows: Any, places: Any) -> list[list[Fraction]]:
    """Return the rows at the given positions, dense or sparse, as fractions, without rounding."""
    part = rows[places]
    return [fractions(row) for row in dense(part)]


def largest_square(rows: Any) -> Rational:
    """Upper bound on the largest |z|^2 of the rows."""
    d = rows.shape[1]
    with np.errstate(over="ignore"):
        squares = rows.multiply(rows) if sp.issparse(rows) else np.square(rows, dtype=np.float64)
        total = np.asarray(squares.sum(axis=1), dtype=np.float64).ravel()
        error = (d + 2) * 2.0**-52 * total + d * 2.0**-1000
    return largest(
        total - error, total + error, lambda at: [square(row) for row in rows_at(rows, at)], d
    )


def upwards(x: Rational, factor: Fraction = Fraction(1)) -> float:
    """Return the smallest float that is at least x times a positive factor."""
    if not isinstance(x, Fraction):
        return x
    x *= factor
    found = nearest(x)
    return found if math.isinf(found) or Fraction(found) >= x else math.nextafter(found, math.inf)


def raised(x: float) -> float:
    """Return x >= 0 rounded up by enough to cover 64 roundings to nearest in its computation without cancellation."""
    return math.nextafter(x * (1 + 2.0**-47), math.inf)


def root_upwards(x: Rational) -> float:
    """Return a float that is at least the square root of x >= 0; the root itself if it is a float."""
    high = upwards(x)
    root = math.sqrt(high)
    return root if math.isinf(root) or Fraction(root) ** 2 >= x else math.nextafter(root, math.inf)


def root_downwards(x: Rational) -> float:
    """Return a float that is at most the square root of x >= 0; the root itself if it is a float."""
    root = math.sqrt(-upwards(-x)) + 0.0  # + 0.0 turns -0.0, the root of 0 here, into 0.0
    return root if Fraction(root) ** 2 <= x else math.nextafter(root, 0.0)
