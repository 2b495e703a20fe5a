"""Storage of the most recent vectors of a limited-memory method, with products and linear combinations."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import mapped_vectors
from linsep.interrupts import check


class RecentVectors:
    """The last ``most`` vectors of a sequence, oldest first.

    For rows on disk they are memory-mapped, and only one vector at a time is resident.
    """

    def __init__(self, most: int, length: int, on_disk: bool = False) -> None:
        allocate = mapped_vectors.zeros if on_disk else np.empty
        self._all, self._on_disk = allocate((most, length)), on_disk
        self._rows = _kernels.Rows(self._all)
        self._places = np.empty(0, dtype=np.int64)  # indices into ``_all``, oldest vector first

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[FloatArray]:
        for place in self._places:
            yield self._all[place]
            mapped_vectors.release(self._all[place])

    def append(self, v: FloatArray) -> None:
        """Append a vector, replacing the oldest one if the storage is full."""
        full = len(self) == len(self._all)
        place = self._places[0] if full else len(self)
        self._places = np.append(self._places[1:] if full else self._places, place)
        self._all[place] = v
        mapped_vectors.release(self._all[place])

    def dots(self, v: FloatArray) -> FloatArray:
        """Return the inner products of all vectors with v, by one thread, so that they are reproducible."""
        out = np.empty(len(self))
        for part, places in self._parts():
            _kernels.list_dots(self._rows, places, v, out[part])
        return out

    def combine(self, weights: FloatArray) -> FloatArray:
        """Return the linear combination of the vectors with these weights."""
        out = np.zeros(self._all.shape[1])
        for part, places in self._parts():
            _kernels.list_add(self._rows, places, weights[part], out)
        return out

    def clear(self) -> None:
        """Remove all vectors."""
        self._places = self._places[:0]

    def _parts(self) -> Iterator[tuple[slice, IntArray]]:
        """Yield all vectors at once, or one after another if they are memory-mapped."""
        if not self._on_disk:
            check()
            yield slice(None), self._places
            return
        for k in range(len(self)):
            check()
            places = self._places[k : k + 1]
            yield slice(k, k + 1), places
            mapped_vectors.release(self._all[places[0]])
