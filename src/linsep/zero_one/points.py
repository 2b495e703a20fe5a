"""The rows as points that count with a weight: equal rows of one class are one point of their total weight."""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np
import numpy.typing as npt

from linsep.data import Memory
from linsep.separability.frame import Frame
from linsep.separability.rows import SignedRows, exact_margins

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
Mask = npt.NDArray[np.bool_]

ROUNDOFF = 2.0**-53


@dataclass(frozen=True, eq=False)
class Points:
    """Distinct points X (m, d) of sign -1 or +1 and positive weight.

    ``first`` is a row of the user's for each; ``place`` the point of each row, -1 if its weight is 0.
    """

    X: FloatArray
    sign: FloatArray
    weight: FloatArray
    first: IntArray
    place: IntArray

    def __len__(self) -> int:
        return len(self.sign)

    @cached_property
    def whole(self) -> bool:
        """Whether all weights are whole numbers, so that errors are."""
        return bool((self.weight == np.rint(self.weight)).all()) and self.total < 2.0**53

    @cached_property
    def total(self) -> float:
        """The weight of all points."""
        return float(self.weight.sum())

    @cached_property
    def signed(self) -> SignedRows:
        """The points as the question of separation sees them."""
        return SignedRows(Memory(self.X, self.sign, n_threads=1))

    @cached_property
    def frame(self) -> Frame:
        """Centred and scaled coordinates."""
        return Frame.of(self.signed, np.arange(len(self)))

    @cached_property
    def vectors(self) -> tuple[FloatArray, FloatArray]:
        """Signed unit vectors a_i in those coordinates, and the lengths divided out: right means a_i.phi > 0."""
        return self.frame.vectors(np.arange(len(self)))

    def wrong(self, theta: FloatArray) -> Mask:
        """Which points sign(w.x + b) gets wrong, sign(0) = +1; decided without rounding."""
        w, b = theta[:-1], float(theta[-1])
        score = self.X @ w + b
        doubt = (len(w) + 8) * ROUNDOFF * (np.abs(self.X) @ np.abs(w) + abs(b)) + 1e-300
        near = np.flatnonzero(~(np.abs(score) > doubt))
        exact = exact_margins(self.X[near], np.ones(len(near)), theta)
        score[near] = [1.0 if value >= 0 else -1.0 for value in exact]
        return np.asarray((score >= 0.0) != (self.sign > 0.0))

    def errors(self, wrong: Mask) -> float:
        """Their weight."""
        return float(self.weight[wrong].sum())

    def at_least(self, bound: float) -> float:
        """The least possible weight of errors not below a bound that is known up to rounding."""
        bound = max(bound, 0.0)
        slack = 1e-6 if self.whole else 1e-9 * self.total
        return float(np.ceil(bound - slack)) if self.whole else max(bound - slack, 0.0)

    def settled(self, errors: float, bound: float) -> bool:
        """Whether the bound is the number of errors, to within the rounding of sums of weights."""
        return bound >= errors - (0.0 if self.whole else 4e-9 * self.total)


def distinct(X: FloatArray, sign: FloatArray, weight: FloatArray | None) -> Points:
    """Points of the rows of positive weight."""
    weight = np.ones(len(sign)) if weight is None else weight
    rows = np.flatnonzero(weight > 0)
    table = np.column_stack([X[rows], sign[rows]]) + 0.0  # no negative zero
    _, first, place = np.unique(table, axis=0, return_index=True, return_inverse=True)
    order = np.argsort(first)  # points in the order of the rows
    rank = np.argsort(order)
    point = rank[place.ravel()]
    total = np.bincount(point, weights=weight[rows], minlength=len(first)).astype(np.float64)
    kept = rows[first[order]]
    of_rows = np.full(len(sign), -1)
    of_rows[rows] = point
    return Points(np.ascontiguousarray(X[kept]) + 0.0, sign[kept], total, kept, of_rows)
