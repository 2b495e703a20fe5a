"""Batches of rows of a table, in memory while the table is small and in a temporary file when it is large.

A model is fitted to the encoded matrix of a table, and a large table would occupy memory in addition. It is therefore
stored in an unnamed memory-mapped file, which disappears with the process; pages are released after
each use. Each batch has its own lists of levels, stored with it, so that a table of any size takes bounded memory.
"""

from __future__ import annotations

import json
import mmap
import os
import tempfile
from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray

#: A batch has one matrix for each of these stores.
STORES: dict[str, np.dtype[Any]] = {
    "numbers": np.dtype(np.float64),
    "codes": np.dtype(np.int32),
    "times": np.dtype("M8[us]"),
}
KEPT = 64 << 20  #: bytes of a table that stay in memory
_PIECE = 2 << 20  # bytes written to the file together
_REGION = 256 << 20  # bytes of the file that are mapped together
_OWN_PAGES = 1 << 18  # matrices of at least this many bytes are allocated by mmap


@dataclass(frozen=True, eq=False)
class Place:
    """Range of bytes of a memory-mapped file."""

    pages: mmap.mmap
    start: int
    size: int

    def release(self) -> None:
        """Release the pages to the system; they are read from the file again when needed."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.pages.madvise(mmap.MADV_DONTNEED, self.start, self.size)


class StoredLevels(Sequence[list[str]]):
    """Lists of levels in a memory-mapped file, each decoded when it is read."""

    def __init__(self, pages: mmap.mmap, start: int, sizes: list[int]) -> None:
        self._pages, self._ends = pages, np.cumsum([start, *sizes]).tolist()

    def __len__(self) -> int:
        return len(self._ends) - 1

    def __getitem__(self, at: Any) -> Any:
        found: list[str] = json.loads(self._pages[self._ends[at] : self._ends[at + 1]])
        return found


@dataclass(frozen=True, eq=False)
class Batch:
    """Consecutive rows of a table, with the columns of each kind in one matrix, or some of these rows."""

    numbers: FloatArray
    codes: npt.NDArray[np.int32]
    times: npt.NDArray[np.datetime64]
    level_lists: Sequence[list[str]] = ()  #: one for each column of codes
    place: Place | None = field(default=None, repr=False)  #: position in a file; None: in memory
    rows: IntArray | None = None  #: rows of the matrices that belong to the batch; None: all

    def __len__(self) -> int:
        return len(self.numbers if self.rows is None else self.rows)

    @property
    def nbytes(self) -> int:
        """Size of the matrices in bytes, plus that of the levels if they are in memory."""
        levels = 0 if self.place else sum(len(x) + 60 for known in self.level_lists for x in known)
        return self.numbers.nbytes + self.codes.nbytes + self.times.nbytes + levels

    def column(self, store: str, at: int) -> npt.NDArray[Any]:
        """Return column ``at`` of a store, as stored."""
        column: npt.NDArray[Any] = getattr(self, store)[:, at]
        return column if self.rows is None else column[self.rows]

    def levels(self, at: int) -> list[str]:
        """Return the levels that the codes of column ``at`` refer to."""
        return self.level_lists[at]

    def numbers_of(self, rows: slice, columns: slice) -> FloatArray:
        """Return the numbers of some rows and columns."""
        return self.numbers[:, columns][rows if self.rows is None else self.rows[rows]]

    def select(self, rows: IntArray) -> Batch:
        """Return the given rows as a batch, without a copy."""
        return replace(self, rows=rows if self.rows is None else self.rows[rows])

    def without(self, rows: IntArray) -> Batch:
        """Return a copy without the given rows."""
        return replace(
            self, **{store: np.delete(getattr(self, store), rows, 0) for store in STORES}
        )

    def release(self) -> None:
        """Release the memory of the matrices if they are in a file."""
        if self.place is not None:
            self.place.release()


class BatchCollector:
    """Collector of batches, which are moved to a temporary file when they exceed ``memory_limit`` bytes."""

    def __init__(self, memory_limit: float | None = None) -> None:
        self._memory_limit = KEPT if memory_limit is None else memory_limit
        self._pending: list[Batch] = []
        self._bytes = 0
        self._file: Any = None
        self._mapped = 0  # size of the file in bytes
        self._pages: mmap.mmap | None = None  # last mapped region of the file
        self._used = 0  # bytes used in the last region
        self.batches: list[Batch] = []

    def add(self, batch: Batch) -> None:
        """Add a batch."""
        self._pending.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > (self._memory_limit if self._file is None else _PIECE):
            self._to_file()

    def finish(self) -> list[Batch]:
        """Return all batches in order."""
        if self._file is not None and self._pending:
            self._to_file()
        self.batches += self._pending
        self._pending = []
        if self._file is not None:
            self._file.close()  # the pages stay mapped
        return self.batches

    def _to_file(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="linsep-")
            while self._pending:
                self._piece()
        except OSError:  # the disk is full: the batches stay in memory
            self.batches += self._pending
            self._pending = []
        self._bytes = 0

    def _piece(self) -> None:
        """Write batches of about 2 MB in total to the file, as one batch."""
        size = count = 0
        while count < len(self._pending) and (count == 0 or size < _PIECE):
            size += self._pending[count].nbytes
            count += 1
        parts = self._pending[:count]
        levels, codes = _join(parts)
        texts = [json.dumps(known).encode() for known in levels]
        size = sum(part.nbytes for part in parts) + sum(map(len, texts))
        place = self._reserved(size + 8 * len(STORES))
        n = sum(map(len, parts))
        matrices, at = {}, place.start
        for store, dtype in STORES.items():
            width = getattr(parts[0], store).shape[1]
            matrix = np.frombuffer(place.pages, dtype, n * width, at).reshape(n, width)
            at += -(-matrix.nbytes // 8) * 8
            matrices[store] = matrix
        start = 0
        for part, recoded in zip(parts, codes, strict=True):
            here = slice(start, start + len(part))
            matrices["numbers"][here], matrices["times"][here] = part.numbers, part.times
            matrices["codes"][here] = recoded
            start += len(part)
        for text in texts:
            place.pages[at : at + len(text)] = text
            at += len(text)
        sizes = [len(text) for text in texts]
        stored = StoredLevels(place.pages, at - sum(sizes), sizes)
        place.release()
        self.batches.append(Batch(**matrices, level_lists=stored, place=place))
        del self._pending[:count]

    def _reserved(self, size: int) -> Place:
        """Allocate ``size`` bytes in the file now, so that a full disk raises here and does not crash a later write."""
        size = -(-size // mmap.ALLOCATIONGRANULARITY) * mmap.ALLOCATIONGRANULARITY
        file = self._file.fileno()
        if self._pages is None or self._used + size > len(self._pages):
            region = max(_REGION, size)
            os.truncate(file, self._mapped + region)
            self._pages = mmap.mmap(file, region, offset=self._mapped)
            self._mapped, self._used = self._mapped + region, 0
        if hasattr(os, "posix_fallocate"):
            os.posix_fallocate(file, self._mapped - len(self._pages) + self._used, size)
        place = Place(self._pages, self._used, size)
        self._used += size
        return place


def _join(parts: Sequence[Batch]) -> tuple[list[list[str]], list[npt.NDArray[np.int32]]]:
    """Return common lists of levels for several batches, and the codes of each batch relative to them."""
    if len(parts) == 1:
        return list(parts[0].level_lists), [parts[0].codes]
    joined: list[list[str]] = []
    codes = [np.empty_like(part.codes) for part in parts]
    for at in range(parts[0].codes.shape[1]):
        place: dict[str, int] = {}
        for part, out in zip(parts, codes, strict=True):
            out[:, at] = recode(part.codes[:, at], part.levels(at), place)
        joined.append(list(place))
    return joined, codes


def recode(
    codes: npt.NDArray[np.int32], levels: list[str], place: dict[str, int]
) -> npt.NDArray[np.int32]:
    """Return the codes relative to ``place`` (level -> code), to which new levels that occur are added."""
    occurs = np.zeros(len(levels) + 1, bool)
    occurs[codes] = True
    table = np.full(len(levels) + 1, -1, np.int32)  # code -1, a missing value, is the last entry
    for code in np.flatnonzero(occurs[:-1]).tolist():
        table[code] = place.setdefault(levels[code], len(place))
    return np.asarray(table[codes])


def batch(
    n: int,
    numbers: list[npt.NDArray[Any]],
    codes: list[npt.NDArray[Any]],
    times: list[npt.NDArray[Any]],
    levels: Sequence[list[str]] = (),
) -> Batch:
    """Return a batch of the given columns and levels; the columns are freed one by one as they are copied."""
    return Batch(
        _side_by_side(n, numbers, STORES["numbers"]),
        _side_by_side(n, codes, STORES["codes"]),
        _side_by_side(n, times, STORES["times"]),
        levels,
    )


def _side_by_side(
    n: int, columns: list[npt.NDArray[Any]], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    block = _allocate(n, len(columns), dtype)
    for at in range(len(columns)):
        block[:, at] = columns[at]
        columns[at] = block[:0, at]
    return block


def _allocate(n: int, d: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """Allocate a matrix; a large one gets its own pages by mmap, which return to the system when it is freed."""
    size = n * d * dtype.itemsize
    if size < _OWN_PAGES:
        return np.empty((n, d), dtype)
    try:
        pages = mmap.mmap(-1, size)
    except OSError:  # the system limits the number of maps
        return np.empty((n, d), dtype)
    return np.frombuffer(pages, dtype).reshape(n, d)
