"""Matrices on disk that are read one block at a time: dense in one or several files, or CSR."""

from __future__ import annotations

import zlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Sequence
from itertools import pairwise
from threading import Lock, local
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import IntArray, stack_rows
from linsep.data import strided_sample
from linsep.data.layout import Edges, dense_edges, sparse_edges
from linsep.data.location import Location
from linsep.data.pieces import PieceFile, Scratch
from linsep.data.row_starts import RowStarts
from linsep.data.threads import in_parallel
from linsep.errors import BadInput

_SEEK = 64 << 10  # bytes that could be read in the time of one seek


def _each_thread(make: Callable[[], Any]) -> Callable[[], Any]:
    """Return a function that calls ``make`` once per thread and then returns that thread's object."""
    mine = local()

    def of_this_thread() -> Any:
        if not hasattr(mine, "made"):
            mine.made = make()
        return mine.made

    return of_this_thread


class StoredRows(ABC):
    """Base of matrices (n, d) on disk. ``X[a:b]`` and ``X[rows]`` read some rows into memory.

    ``read_bytes`` counts the bytes read so far by all threads. ``sample_copy`` is a separate copy of the strided
    sample of the rows (``strided_sample.py``), or None.
    """

    location = Location.DISK
    ndim = 2
    shape: tuple[int, int]
    dtype: np.dtype[Any]
    edges: Edges  #: row numbers where blocks begin, and n

    def __init__(self, sample_copy: StoredRows | None = None) -> None:
        self.sample_copy = sample_copy
        self.read_bytes = 0
        self._counting = Lock()

    def _count(self, size: int) -> None:
        with self._counting:
            self.read_bytes += size

    @property
    def size(self) -> int:
        """Number of entries n * d, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether rows are stored by their nonzero entries."""

    @property
    @abstractmethod
    def n_entries(self) -> int:
        """Number of stored entries: n * d if dense, nonzeros if sparse."""

    @property
    @abstractmethod
    def nbytes(self) -> int:
        """Size of all rows on disk in bytes."""

    @abstractmethod
    def files(self) -> list[PieceFile]:
        """Return the files that contain the rows."""

    @abstractmethod
    def read(self, lo: int, hi: int, scratch: Scratch | None = None) -> Any:
        """Return rows lo .. hi as an array or a CSR matrix, in buffers of ``scratch`` if it is given."""

    def load(self) -> Any:
        """Return all rows in memory, as an array or a CSR matrix. One pass."""
        return self.read(0, self.shape[0])

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, slice):
            lo, hi, step = key.indices(self.shape[0])
            if step == 1:
                return self.read(lo, max(lo, hi))
            key = np.arange(lo, hi, step)
        if isinstance(key, tuple):
            raise BadInput("Rows on disk are read by row: X[rows], not X[rows, columns].")
        key = np.asarray(key)
        return self.take(np.flatnonzero(key) if key.dtype == np.bool_ else key)

    def take(self, rows: IntArray, buffers: Sequence[Scratch] = ()) -> Any:
        """Return the given rows, read by one thread per buffer; blocks without any of them are skipped."""
        if len(rows) and (np.diff(rows) < 0).any():
            order = np.argsort(rows, kind="stable")
            return self.take(rows[order], buffers)[np.argsort(order, kind="stable")]
        positions = None if self.sample_copy is None else strided_sample.positions(rows)
        if positions is not None:
            return self._take_from_sample(positions, buffers)
        cuts = np.searchsorted(rows, self.edges)
        blocks = np.flatnonzero(np.diff(cuts))
        parts: list[Any] = [None] * len(blocks)
        out = None if self.sparse else np.empty((len(rows), self.shape[1]), self.dtype)

        def work(number: int) -> bool:
            k = blocks[number]
            lo, hi, mine = self.edges[k], self.edges[k + 1], rows[cuts[k] : cuts[k + 1]]
            runs = np.split(mine, np.flatnonzero(np.diff(mine) != 1) + 1)  # of consecutive rows
            if len(runs) * _SEEK * len(self) <= (hi - lo) * self.nbytes:
                found = stack_rows([self.read(int(run[0]), int(run[-1]) + 1) for run in runs])
            else:
                found = self.read(lo, hi, scratch())[mine - lo]
            if out is None:
                parts[number] = found
            else:
                out[cuts[k] : cuts[k + 1]] = found
            return True

        buffers = buffers or [Scratch()]
        scratch = _each_thread(iter(buffers).__next__)
        in_parallel(work, len(blocks), len(buffers))
        if out is not None:
            return out
        if len(parts) > 1:
            return stack_rows(parts)
        return parts[0] if parts else self.read(0, 0)

    def _take_from_sample(self, positions: IntArray, buffers: Sequence[Scratch]) -> Any:
        """Return rows from the strided sample, by their positions in it."""
        assert self.sample_copy is not None
        before = self.sample_copy.read_bytes
        found = self.sample_copy.take(positions, buffers)
        self._count(self.sample_copy.read_bytes - before)
        return found

    def fingerprint(self) -> list[Any]:
        """Return facts that identify the content of the rows."""
        return [self.shape, self.dtype.name, *(file.fingerprint() for file in self.files())]

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Yield the row range and the rows of each block; the next block overwrites them. One pass."""
        scratch = Scratch()
        for lo, hi in pairwise(self.edges):
            yield slice(lo, hi), self.read(lo, hi, scratch)

    def refuse_change(self) -> None:
        """Raise if a file has changed since it was opened."""
        for file in self.files():
            file.refuse_change()
        if self.sample_copy is not None:
            self.sample_copy.refuse_change()

    def close(self) -> None:
        """Close the files."""
        for file in self.files():
            file.close()
        if self.sample_copy is not None:
            self.sample_copy.close()


class DenseRows(StoredRows):
    """Dense rows in C order, in one or several files; ``heights`` are their numbers of rows."""

    def __init__(
        self,
        parts: list[PieceFile],
        heights: list[int],
        d: int,
        dtype: npt.DTypeLike,
        sample_copy: StoredRows | None = None,
    ) -> None:
        super().__init__(sample_copy)
        self._files, self.dtype = parts, np.dtype(dtype)
        self._starts = np.cumsum([0, *heights])
        self.shape = int(self._starts[-1]), d
        self.edges = dense_edges(*self.shape, self.dtype.itemsize)

    @property
    def sparse(self) -> bool:
        return False

    @property
    def n_entries(self) -> int:
        return self.size

    @property
    def nbytes(self) -> int:
        return self.size * self.dtype.itemsize

    def files(self) -> list[PieceFile]:
        return self._files

    def _in_files(self, lo: int, hi: int) -> Iterator[tuple[PieceFile, int, int]]:
        """Yield the files that contain rows lo .. hi, each with the byte range of these rows."""
        width = self.shape[1] * self.dtype.itemsize
        first = int(np.searchsorted(self._starts, lo, side="right")) - 1
        while lo < hi:
            start, stop = int(self._starts[first]), min(hi, int(self._starts[first + 1]))
            yield self._files[first], (lo - start) * width, (stop - start) * width
            lo, first = stop, first + 1

    def load(self) -> Any:
        """Return all rows as an array, read by all threads; memory holds them once, and a block per thread."""
        out = np.empty(self.shape, self.dtype)
        scratch = _each_thread(Scratch)

        def work(k: int) -> bool:
            lo, hi = self.edges[k], self.edges[k + 1]
            out[lo:hi] = self.read(lo, hi, scratch())
            return True

        in_parallel(work, len(self.edges) - 1)
        return out

    def read(self, lo: int, hi: int, scratch: Scratch | None = None) -> Any:
        d, parts = self.shape[1], list[Any]()
        for file, first, last in self._in_files(lo, hi):
            buffer = file.read(first, last, scratch, len(parts))
            self._count(len(buffer))
            parts.append(buffer.view(self.dtype).reshape(-1, d))
        if len(parts) == 1:
            return parts[0]
        return np.concatenate(parts) if parts else np.empty((0, d), self.dtype)


class CsrRows(StoredRows):
    """CSR rows: values and column numbers (int32) on disk, lengths of the rows in memory.

    ``shift`` is subtracted from the column numbers: 1 if the source file numbers columns from 1.
    """

    def __init__(
        self,
        values: PieceFile,
        columns: PieceFile,
        starts: RowStarts,
        d: int,
        dtype: npt.DTypeLike,
        shift: int = 0,
        sample_copy: StoredRows | None = None,
    ) -> None:
        super().__init__(sample_copy)
        self._values, self._columns, self._starts = values, columns, starts
        self.dtype, self._shift = np.dtype(dtype), shift
        self.shape = starts.n, d
        self.edges = sparse_edges(starts.n, starts.total, starts)

    @property
    def sparse(self) -> bool:
        return True

    @property
    def n_entries(self) -> int:
        return self._starts.total

    @property
    def nbytes(self) -> int:
        return self.n_entries * (self.dtype.itemsize + 4)

    def files(self) -> list[PieceFile]:
        return [self._values, self._columns]

    def fingerprint(self) -> list[Any]:
        return [*super().fingerprint(), zlib.crc32(self._starts.tobytes()), self._shift]

    def read(self, lo: int, hi: int, scratch: Scratch | None = None) -> Any:
        starts = self._starts.between(lo, hi)
        a, b = int(starts[0]), int(starts[-1])
        wide = self.dtype.itemsize
        values = self._values.read(wide * a, wide * b, scratch, 0).view(self.dtype)
        columns = self._columns.read(4 * a, 4 * b, scratch, 1).view(np.int32)
        if self._shift:
            columns -= np.int32(self._shift)
        self._count(values.nbytes + columns.nbytes)
        pointers = (starts - a).astype(np.int32)
        found = sp.csr_matrix((hi - lo, self.shape[1]), dtype=self.dtype)
        # The constructor of csr_matrix would copy arrays that are small views of the scratch buffer.
        found.data, found.indices, found.indptr = values, columns, pointers
        return found
