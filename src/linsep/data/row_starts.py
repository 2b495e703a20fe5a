"""Compact row starts (CSR ``indptr``) of rows on disk, in about one byte per row."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import IntArray

_STEP = 4096  # rows between two starts that are stored


class RowStarts:
    """Starts of n rows and the end of the last: row lengths in the smallest integer type, and every 4096th start."""

    def __init__(self, lengths: npt.NDArray[np.integer[Any]]) -> None:
        self._lengths = smallest(lengths)
        sums = [int(lengths[at : at + _STEP].sum(dtype=np.int64)) for at in range(0, self.n, _STEP)]
        self._marks = np.cumsum([0, *sums], dtype=np.int64)

    @property
    def n(self) -> int:
        """Number of rows."""
        return len(self._lengths)

    @property
    def total(self) -> int:
        """End of the last row, which is the number of entries."""
        return int(self._marks[-1])

    def between(self, lo: int, hi: int) -> IntArray:
        """Return the starts of the rows lo .. hi, and the end of the last of them."""
        mark = lo // _STEP
        first = int(self._lengths[mark * _STEP : lo].sum(dtype=np.int64))
        out = np.empty(hi - lo + 1, np.int64)
        out[0] = self._marks[mark] + first
        np.cumsum(self._lengths[lo:hi], dtype=np.int64, out=out[1:])
        out[1:] += out[0]
        return out

    def searchsorted(self, values: IntArray) -> IntArray:
        """Return for each value the number of the first row that starts at it or later, or n."""
        found = np.zeros(len(values), np.int64)
        for k, mark in enumerate(np.searchsorted(self._marks, values).tolist()):
            if mark:
                lo, hi = (mark - 1) * _STEP, min(self.n, mark * _STEP)
                found[k] = lo + np.searchsorted(self.between(lo, hi), values[k])
        return found

    def tobytes(self) -> bytes:
        """Return the bytes of the row lengths, for checksums."""
        return self._lengths.tobytes()


def smallest(lengths: npt.NDArray[np.integer[Any]]) -> npt.NDArray[Any]:
    """Return the lengths in the smallest unsigned integer type that holds them."""
    return lengths.astype(np.min_scalar_type(int(lengths.max(initial=0))), copy=False)
