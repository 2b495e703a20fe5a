"""Random draws of rows that depend on the contents of the rows and not on their order.

Each draw takes row i with probability s_i / sum s: uniform without weights, and weight 2 is equivalent to repeating the
row. Rows are arranged on a line in the order of a fixed random projection of (x, class), each with a length equal to
its weight, and a uniform random number selects a point of the line. So neither the order of the rows, nor their
storage, nor repeating a row instead of giving it weight 2 changes what is learned.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.errors import NonFinite

_PROJECTION = 20_250_101  # seed of the projection, the same for every fit
_LARGEST_SHARE = 16.0  # most draws per row in one pass, for any weights


class Draws:
    """Stream of row indices, drawn with replacement, or without by shuffling all rows in every pass."""

    def __init__(
        self,
        data: Memory,
        k: int,
        seed: int,
        replacement: bool = True,
    ) -> None:
        weight, keys = data.weight, _keys(data, k)
        held = np.arange(data.n) if weight is None else np.flatnonzero(weight > 0.0)
        self._order = held[np.argsort(keys[held])].astype(np.int64, copy=False)
        self._ends = None if weight is None else np.cumsum(weight[self._order])
        self.total = float(len(held) if self._ends is None else self._ends[-1])
        counts = weight is None or bool((weight == np.floor(weight)).all())
        #: draws per pass: the total weight if weights are integers, otherwise the number of rows of positive weight
        self.in_a_pass = int(min(self.total, _LARGEST_SHARE * len(held))) if counts else len(held)
        self._random, self._seed = np.random.default_rng(seed), seed
        self._replacement = replacement
        self._left = np.empty(0)

    def take(self, count: int) -> IntArray:
        """Return the next ``count`` row indices."""
        return self._at(self._random.random(count) if self._replacement else self._deal(count))

    def sample(self, count: int) -> IntArray:
        """Draw ``count`` row indices without advancing the stream."""
        return self._at(np.random.default_rng(self._seed).random(count))

    def _at(self, at: FloatArray) -> IntArray:
        at *= self.total
        if self._ends is None:
            place = at.astype(np.int64)
        else:
            place = np.searchsorted(self._ends, at, side="right")
        return self._order[np.minimum(place, len(self._order) - 1)]

    def _deal(self, count: int) -> FloatArray:
        """Positions on the line relative to its length: the midpoints of equal intervals, shuffled."""
        while len(self._left) < count:
            pieces = self._random.permutation(self.in_a_pass)
            self._left = np.concatenate([self._left, (pieces + 0.5) / self.in_a_pass])
        dealt, self._left = self._left[:count].copy(), self._left[count:]
        return dealt


def _keys(data: Memory, k: int) -> FloatArray:
    """Sort key of each row: a random projection of its features and class."""
    assert data.labels is not None
    random = np.random.default_rng(_PROJECTION)
    of_class = random.standard_normal(k)
    theta = np.append(random.standard_normal(data.d), 0.0)
    keys = data.scores(theta)
    if not np.isfinite(keys).all():
        raise NonFinite(
            f"Row {int(np.argmin(np.isfinite(keys)))} (counting from 0) of X holds numbers too large "
            "to add up in float64; divide those columns by a power of ten."
        )
    keys += of_class[data.labels]
    return keys
