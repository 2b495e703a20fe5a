"""Storage of the most recent vectors of a limited-memory method, with products and linear combinations."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import mapped_vectors
from linsep.interrupts import check

_ALL = (slice(None),)


class RecentVectors:
    """The last ``most`` vectors of a sequence, oldest first.

    For rows on disk they are memory-mapped, and only one vector at a time is resident.
    """

    def __init__(self, most: int, length: int, on_disk: bool = False) -> None:
        allocate = mapped_vectors.zeros if on_disk else np.empty
        self._all, self._on_disk = allocate((most, length)), on_disk
        self._rows = _kernels.Rows(self._all)
        self._order = np.arange(most)  # indices into ``_all``, oldest vector first
        self._places = self._order[:0]  # those in use

    def __len__(self) -> int:
        return len(self._places)

    def __iter__(self) -> Iterator[FloatArray]:
        for place in self._places:
            yield self._all[place]
            mapped_vectors.release(self._all[place])

    def append(self, v: FloatArray) -> None:
        """Append a vector, replacing the oldest one if the storage is full."""
        order, used = self._order, len(self._places)
        if used == len(order):
            oldest = order[0]
            order[:-1] = order[1:]
            order[-1] = oldest
        else:
            self._places = order[: used + 1]
        place = self._places[-1]
        self._all[place] = v
        if self._on_disk:
            mapped_vectors.release(self._all[place])

    def dots(self, v: FloatArray) -> FloatArray:
        """Return the inner products of all vectors with v, by one thread, so that they are reproducible."""
        out = np.empty(len(self._places))
        for part in self._parts():
            _kernels.list_dots(self._rows, self._places[part], v, out[part])
        return out

    def combine(self, weights: FloatArray) -> FloatArray:
        """Return the linear combination of the vectors with these weights."""
        out = np.zeros(self._all.shape[1])
        for part in self._parts():
            _kernels.list_add(self._rows, self._places[part], weights[part], out)
        return out

    def clear(self) -> None:
        """Remove all vectors."""
        self._places = self._order[:0]

    def _parts(self) -> Iterable[slice]:
        """Return the parts of ``_places`` to read together: all, or one after another if they are memory-mapped."""
        check()
        return self._one_by_one() if self._on_disk else _ALL

    def _one_by_one(self) -> Iterator[slice]:
        for k, place in enumerate(self._places):
            check()
            yield slice(k, k + 1)
            mapped_vectors.release(self._all[place])
