"""Weighted points: equal rows of one class are merged into one point with their total weight."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray, IntArray, dense
from linsep.data import Memory
from linsep.exact.dyadic import Dyadic, rational
from linsep.separability.frame import Frame
from linsep.separability.rows import ROUNDOFF, TINIEST, SignedRows, exact_margins

_LEAST_COST = 1e-200  # keeps reciprocals and products of costs finite
_BLOCK = 1 << 19  # entries processed at a time
_MACHINE = 1 << 61  # sums of absolute values up to this, and twice that, fit into int64


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points X (m, d) of sign -1 or +1 and positive weight.

    The weights are ``units * 2**exp`` with Python integers, so that their sums are compared without rounding. ``first``
    is an original row for each point; ``place`` is the point of each row, -1 if its weight is 0.
    """

    X: FloatArray
    sign: FloatArray
    units: npt.NDArray[np.object_]
    exp: int
    first: IntArray
    place: IntArray

    def __len__(self) -> int:
        return len(self.sign)

    @cached_property
    def total(self) -> int:
        """Total units of all points."""
        return int(sum(self.units.tolist()))

    @cached_property
    def step(self) -> int:
        """Greatest common divisor of the units; every sum of weights is a multiple of it."""
        return math.gcd(*self.units.tolist())

    @cached_property
    def weight(self) -> FloatArray:
        """Weights rounded to the nearest float."""
        return np.array([self.value(units) for units in self.units.tolist()])

    @cached_property
    def cost(self) -> FloatArray:
        """Weights relative to the largest, at least 1e-200; for heuristics only."""
        largest = max(self.units.tolist())
        shares = np.array([units / largest for units in self.units.tolist()])
        return np.asarray(np.maximum(shares, _LEAST_COST))

    @cached_property
    def signed_units(self) -> IntArray | npt.NDArray[np.object_]:
        """Sign times units divided by ``step``: int64 if their sums fit, Python integers otherwise."""
        whole = np.array([0, *(units // self.step for units in self.units.tolist())], dtype=object)
        signed = np.where(self.sign > 0, whole[1:], -whole[1:])
        return signed.astype(np.int64) if self.total // self.step < _MACHINE else signed

    @cached_property
    def signed(self) -> SignedRows:
        """The points as signed rows for separability tests."""
        return SignedRows(Memory(self.X, self.sign, n_threads=1))

    @cached_property
    def frame(self) -> Frame:
        """Centred and scaled coordinates of the points."""
        return Frame.of(self.signed, np.arange(len(self)))

    @cached_property
    def vectors(self) -> tuple[FloatArray, FloatArray]:
        """Signed unit vectors a_i in those coordinates, correct if a_i.phi > 0, and their lengths before scaling."""
        return self.frame.vectors(np.arange(len(self)))

    def find_errors(self, theta: FloatArray) -> BoolArray:
        """BoolArray of the points that sign(w.x + b) misclassifies, sign(0) = +1; decided without rounding."""
        with np.errstate(all="ignore"):
            scores = self.X @ theta[:-1] + theta[-1]
        return np.asarray((exact_signs(self.X, theta, scores) >= 0.0) != (self.sign > 0.0))

    def count(self, chosen: BoolArray | IntArray) -> int:
        """Total units of some points."""
        return int(sum(self.units[chosen].tolist()))

    def weight_of(self, units: int) -> Fraction:
        """Exact weight of a number of units."""
        return rational(units, self.exp)

    def value(self, units: int) -> float:
        """Weight of a number of units, rounded to the nearest float."""
        return float(self.weight_of(units))

    def at_least(self, weight: float) -> int:
        """Smallest number of units that weighs at least ``weight`` >= 0."""
        return math.ceil(Fraction(weight) / rational(1, self.exp))


def exact_signs(X: Any, theta: FloatArray, scores: FloatArray) -> FloatArray:
    """Correct the signs of scores w.x + b that were computed in floats, in any order of summation.

    Float scores err by at most (d + 8) u (|x|.|w| + |b|) and, since each product may underflow, (d + 8) 2^-1074; this
    covers the rounding of d products and sums and of the bound itself. Scores within the bound, or not finite, are
    recomputed as rational numbers and rounded to the nearest float, or the nearest nonzero float unless they are 0.
    X is dense or sparse, of any numeric type.
    """
    w, b = theta[:-1], float(theta[-1])
    chain = len(w) + 8
    with np.errstate(all="ignore"):
        margin_error = chain * (ROUNDOFF * (_reaches(X, np.abs(w)) + abs(b)) + TINIEST)
    near = np.flatnonzero(~(np.abs(scores) > margin_error) | ~np.isfinite(scores))
    if not len(near):
        return scores
    scores = scores.copy()
    doubtful = dense(X[near])
    exact = exact_margins(np.asarray(doubtful, dtype=np.float64), np.ones(len(near)), theta)
    scores[near] = [_nearest_float(value) for value in exact]
    return scores


def _reaches(X: Any, size: FloatArray) -> FloatArray:
    """|x|.size for every row."""
    if sp.issparse(X):
        return np.asarray(abs(X) @ size)
    step = max(1, _BLOCK // X.shape[1])
    parts = [np.abs(X[at : at + step]) @ size for at in range(0, len(X), step)]
    return np.concatenate(parts) if parts else np.zeros(0)


def _nearest_float(value: Fraction) -> float:
    """Nearest finite float with the same sign."""
    if value == 0:
        return 0.0
    largest = Fraction(np.finfo(np.float64).max)
    size = float(min(abs(value), largest)) or TINIEST
    return size if value > 0 else -size


def distinct(X: FloatArray, sign: FloatArray, weight: FloatArray | None) -> Points:
    """Merge the rows of positive weight into distinct points."""
    weight = np.ones(len(sign)) if weight is None else weight
    rows = np.flatnonzero(weight > 0)
    table = np.column_stack([X[rows], sign[rows]]) + 0.0  # no negative zero
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # order points by their first row
    rank = np.argsort(order)
    point = rank[place.ravel()]
    exact = Dyadic.of(weight[rows])
    units = np.zeros(len(first), dtype=object)
    np.add.at(units, point, exact.num)
    kept = rows[first[order]]
    of_rows = np.full(len(sign), -1)
    of_rows[rows] = point
    return Points(np.ascontiguousarray(X[kept]) + 0.0, sign[kept], units, exact.exp, kept, of_rows)
