"""Readers of NumPy files: .npy, and .npz with an array X or the parts of a sparse matrix."""

from __future__ import annotations

import zipfile
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.data.files.source import refuse
from linsep.errors import BadFile

_SPARSE = {"data", "indices", "indptr", "shape"}


def open_npy(path: str, name: str) -> npt.NDArray[Any]:
    """Return the matrix in a .npy file, memory-mapped; raise if it is not a matrix of numbers."""
    try:
        with np.errstate(over="raise"):  # a forged header may claim more than 2^63 bytes
            table: npt.NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError, ArithmeticError) as error:
        refuse(name, f"not a .npy file of numbers, or is cut short: {error}.")
    _refuse_other_shape(name, "the array", table.shape, table.dtype)
    return table


class NpzFile:
    """Reader of a .npz file with a matrix ``X`` or the parts of a CSR matrix, and vectors."""

    def __init__(self, path: str, name: str) -> None:
        self.path, self.name = path, name
        with self._explained(), zipfile.ZipFile(path) as archive:
            self.arrays = {entry.removesuffix(".npy") for entry in archive.namelist()}
        self.sparse = "X" not in self.arrays and self.arrays >= _SPARSE
        if not self.sparse and "X" not in self.arrays:
            refuse(
                name,
                f"the archive holds {', '.join(sorted(self.arrays)) or 'nothing'}; an array X (and y) is "
                "needed.",
            )

    @contextmanager
    def _explained(self) -> Iterator[None]:
        try:
            yield
        except BadFile:
            raise
        except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
            if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
                raise
            refuse(
                self.name,
                f"the archive is damaged, cut short or holds Python objects ({error}); save plain arrays with "
                "numpy.savez.",
            )

    def array(self, key: str) -> npt.NDArray[Any]:
        """Read one array completely."""
        if key not in self.arrays:
            refuse(self.name, f"no array {key!r}; it has {', '.join(sorted(self.arrays))}.")
        with self._explained(), np.load(self.path, allow_pickle=False) as file:
            found: npt.NDArray[Any] = file[key]
        return found

    def vector(self, key: str, rows: int, what: str) -> npt.NDArray[Any]:
        """Read an array with one entry per row; raise if its shape is different."""
        found = self.array(key)
        if found.shape != (rows,):
            refuse(self.name, f"{what} has shape {found.shape}, but X has {rows} rows.")
        return found

    def matrix(self) -> Any:
        """Read the matrix completely, as an array or a CSR array."""
        if not self.sparse:
            X = self.array("X")
            _refuse_other_shape(self.name, "X", X.shape, X.dtype)
            return X
        parts = tuple(self.array(key) for key in ("data", "indices", "indptr"))
        try:
            found: Any = sp.csr_array(parts, shape=tuple(self.array("shape")))
            found.check_format()
        except (ValueError, TypeError) as error:
            refuse(self.name, f"the sparse matrix is damaged: {error}.")
        return found

    def blocks(self, entries: int) -> Iterator[Any]:
        """Yield the rows in blocks of about ``entries`` numbers; memory holds one at a time."""
        with self._explained(), zipfile.ZipFile(self.path) as archive, ExitStack() as stack:

            def member(key: str) -> tuple[Any, Any, bool, Any]:
                stream = stack.enter_context(archive.open(f"{key}.npy"))
                return stream, *_header(stream)

            yield from (
                self._sparse(member, entries) if self.sparse else self._dense(member, entries)
            )

    def _dense(self, member: Any, entries: int) -> Iterator[Any]:
        stream, shape, fortran, dtype = member("X")
        _refuse_other_shape(self.name, "X", shape, dtype)
        if fortran:
            refuse(
                self.name,
                "X is stored column by column (Fortran order) and cannot be read row by row; save "
                "np.ascontiguousarray(X).",
            )
        height = max(1, entries // max(1, shape[1]))
        for first in range(0, shape[0], height):
            rows = min(height, shape[0] - first)
            yield _next(stream, dtype, rows * shape[1]).reshape(rows, shape[1])

    def _sparse(self, member: Any, entries: int) -> Iterator[Any]:
        starts, shape = self.array("indptr").astype(np.int64), tuple(self.array("shape"))
        streams = [(s, dtype) for s, _, _, dtype in map(member, ("data", "indices"))]
        cuts = np.searchsorted(starts, np.arange(entries, int(starts[-1]), entries))
        edges = np.unique([0, *cuts, len(starts) - 1])
        for lo, hi in pairwise(edges):
            count = int(starts[hi] - starts[lo])
            values, columns = (_next(stream, dtype, count) for stream, dtype in streams)
            part = values, columns, starts[lo : hi + 1] - starts[lo]
            try:
                X: Any = sp.csr_array(part, shape=(hi - lo, shape[1]))
                X.check_format()
            except (ValueError, TypeError) as error:
                refuse(self.name, f"the sparse matrix is damaged: {error}.")
            yield X


def _header(stream: Any) -> Any:
    """Read the header of an array: shape, whether it is in Fortran order, and dtype."""
    version = np.lib.format.read_magic(stream)
    if version == (1, 0):
        return np.lib.format.read_array_header_1_0(stream)
    return np.lib.format.read_array_header_2_0(stream)


def _next(stream: Any, dtype: np.dtype[Any], count: int) -> npt.NDArray[Any]:
    return np.frombuffer(stream.read(count * dtype.itemsize), dtype, count)


def _refuse_other_shape(name: str, what: str, shape: Any, dtype: Any) -> None:
    if len(shape) != 2 or dtype.kind not in "fiub":
        refuse(name, f"{what} has shape {shape} and dtype {dtype}; a matrix of numbers is needed.")
