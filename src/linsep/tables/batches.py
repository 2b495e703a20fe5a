"""Some rows of a table, and where they lie: in memory while they are few, in a temporary file when they are many.

A model is fitted to the matrix that an encoder makes of a table. A large table would lie in memory beside it, so it
waits in a file that is mapped, has no name, and vanishes with the process; its pages go back to the system after
each use.
"""

from __future__ import annotations

import mmap
import os
import tempfile
from dataclasses import dataclass, field
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

IntArray = npt.NDArray[np.int64]

#: One matrix for each way of storing.
STORES: dict[str, np.dtype[Any]] = {
    "numbers": np.dtype(np.float64),
    "codes": np.dtype(np.int32),
    "times": np.dtype("M8[us]"),
}
KEPT = 64 << 20  #: bytes of a table that stay in memory
_PIECE = 2 << 20  # bytes that go to the file together
_REGION = 256 << 20  # bytes of the file that are mapped together
_OWN_PAGES = 1 << 18


class Rows(Protocol):
    """What an encoder asks of some rows."""

    def __len__(self) -> int: ...

    def column(self, store: str, at: int) -> npt.NDArray[Any]:
        """One column, as stored."""

    def numbers_of(self, rows: slice, columns: slice) -> npt.NDArray[np.float64]:
        """A rectangle of the numbers."""

    def some(self, rows: IntArray) -> Rows:
        """Select rows."""

    def release(self) -> None:
        """They are not needed soon."""


@dataclass(frozen=True, eq=False)
class Place:
    """Pages of a mapped file."""

    pages: mmap.mmap
    start: int
    size: int

    def release(self) -> None:
        """Let the system have them back; they are read from the file again when asked for."""
        if hasattr(mmap, "MADV_DONTNEED"):
            self.pages.madvise(mmap.MADV_DONTNEED, self.start, self.size)


@dataclass(frozen=True, eq=False)
class Batch:
    """Rows that lie together: columns of one kind side by side in one matrix."""

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    times: npt.NDArray[np.datetime64]
    place: Place | None = field(default=None, repr=False)  #: in a file, if they lie in one

    def __len__(self) -> int:
        return len(self.numbers)

    @property
    def nbytes(self) -> int:
        """Bytes of all three."""
        return self.numbers.nbytes + self.codes.nbytes + self.times.nbytes

    def column(self, store: str, at: int) -> npt.NDArray[Any]:
        """One column, as stored."""
        matrix: npt.NDArray[Any] = getattr(self, store)
        return matrix[:, at]

    def numbers_of(self, rows: slice, columns: slice) -> npt.NDArray[np.float64]:
        """A rectangle of the numbers."""
        return self.numbers[rows, columns]

    def some(self, rows: IntArray) -> Part:
        """Select rows without a copy."""
        return Part(self, rows)

    def release(self) -> None:
        """They are not needed soon."""
        if self.place is not None:
            self.place.release()


@dataclass(frozen=True, eq=False)
class Part:
    """Some rows of a batch."""

    batch: Batch
    rows: IntArray

    def __len__(self) -> int:
        return len(self.rows)

    def column(self, store: str, at: int) -> npt.NDArray[Any]:
        """One column, as stored."""
        return np.asarray(self.batch.column(store, at)[self.rows])

    def numbers_of(self, rows: slice, columns: slice) -> npt.NDArray[np.float64]:
        """A rectangle of the numbers."""
        return np.asarray(self.batch.numbers[:, columns][self.rows[rows]])

    def some(self, rows: IntArray) -> Part:
        """Select rows."""
        return Part(self.batch, self.rows[rows])

    def release(self) -> None:
        """The whole batch is not needed soon."""
        self.batch.release()


class Shelf:
    """Collects batches; once they are large together they move to a temporary file."""

    def __init__(self, kept: int | None = None) -> None:
        self._kept = KEPT if kept is None else kept
        self._waiting: list[Batch] = []
        self._bytes = 0
        self._file: Any = None
        self._mapped = 0  # bytes of the file
        self._pages: mmap.mmap | None = None  # its last region
        self._used = 0  # bytes of that
        self.batches: list[Rows] = []

    def add(self, batch: Batch) -> None:
        """One more batch."""
        self._waiting.append(batch)
        self._bytes += batch.nbytes
        if self._bytes > (self._kept if self._file is None else _PIECE):
            self._to_file()

    def finish(self) -> list[Rows]:
        """All batches in their order."""
        if self._file is not None and self._waiting:
            self._to_file()
        self.batches += self._waiting
        self._waiting = []
        if self._file is not None:
            self._file.close()  # the pages stay mapped
        return self.batches

    def _to_file(self) -> None:
        try:
            if self._file is None:
                self._file = tempfile.TemporaryFile(prefix="linsep-")
            while self._waiting:
                self._piece()
        except OSError:  # no room there: they stay in memory
            self.batches += self._waiting
            self._waiting = []
        self._bytes = 0

    def _piece(self) -> None:
        """Write batches of about 2 MB one below the other, to be one batch in the file."""
        size = count = 0
        while count < len(self._waiting) and (count == 0 or size < _PIECE):
            size += self._waiting[count].nbytes
            count += 1
        place = self._reserved(size + 8 * len(STORES))
        n = sum(map(len, self._waiting[:count]))
        matrices, at = {}, place.start
        for store, dtype in STORES.items():
            width = getattr(self._waiting[0], store).shape[1]
            matrix = np.frombuffer(place.pages, dtype, n * width, at).reshape(n, width)
            at += -(-matrix.nbytes // 8) * 8
            matrices[store] = matrix
        start = 0
        for _ in range(count):
            batch = self._waiting.pop(0)
            for store, matrix in matrices.items():
                matrix[start : start + len(batch)] = getattr(batch, store)
            start += len(batch)
        place.release()
        self.batches.append(Batch(**matrices, place=place))

    def _reserved(self, size: int) -> Place:
        """Room in the file. Its blocks are taken now, so that a full disk is an error here and not a crash later."""
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


def batch(
    n: int,
    numbers: list[npt.NDArray[Any]],
    codes: list[npt.NDArray[Any]],
    times: list[npt.NDArray[Any]],
) -> Batch:
    """Columns side by side; each list is emptied as it is copied."""
    return Batch(
        _side_by_side(n, numbers, STORES["numbers"]),
        _side_by_side(n, codes, STORES["codes"]),
        _side_by_side(n, times, STORES["times"]),
    )


def _side_by_side(
    n: int, columns: list[npt.NDArray[Any]], dtype: np.dtype[Any]
) -> npt.NDArray[Any]:
    block = _room(n, len(columns), dtype)
    for at in range(len(columns)):
        block[:, at] = columns[at]
        columns[at] = block[:0, at]
    return block


def _room(n: int, d: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An empty matrix. A large one gets pages of its own, which go back to the system with it."""
    size = n * d * dtype.itemsize
    if size < _OWN_PAGES:
        return np.empty((n, d), dtype)
    try:
        pages = mmap.mmap(-1, size)
    except OSError:  # the system counts them
        return np.empty((n, d), dtype)
    return np.frombuffer(pages, dtype).reshape(n, d)
