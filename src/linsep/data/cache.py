"""The cache of a scan: files decoded once into binary rows, with a checksum for every piece.

A cache is a directory that is renamed to its final name when it is complete, so no reader ever sees an incomplete
one, and an interrupted build leaves nothing under the final name. The name is a hash of the names, sizes
and times or checksums of the source files.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import shutil
import tempfile
import time
import zlib
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data import strided_sample
from linsep.data.files.datafile import FULL, DataFile
from linsep.data.files.numeric import NumericBatch
from linsep.data.layout import GRAIN, rows_of_a_large_block
from linsep.data.memory import FILLED
from linsep.data.pieces import PieceFile, PieceWriter
from linsep.data.row_starts import RowStarts, smallest
from linsep.data.stored import CsrRows, DenseRows, StoredRows
from linsep.errors import BadInput, Refused

_VERSION = 5
_PIECE = 1 << 20  # bytes per checksum of sparse rows; bytes read together
_MANIFEST = "manifest.json"
_TRIES, _PAUSE = 50, 0.1  # attempts to open a cache that another process replaces, seconds between


class Damaged(Exception):
    """Raised internally if a cache is missing, damaged or of another version; it is then rebuilt."""


def key(files: Sequence[DataFile], settings: Any) -> str | None:
    """Return the cache name for these files and settings, or None if a change of a file could not be detected."""
    states = [file.state() for file in files]
    if None in states:
        return None
    facts = [_VERSION, settings, states, [file.partition for file in files]]
    return "linsep-" + hashlib.sha256(json.dumps(facts).encode()).hexdigest()[:24]


class Writer:
    """Writer of batches of rows into a cache directory of at most ``limit`` bytes.

    Sparse rows have ``width`` columns, numbered from 0. Without ``width``, the number of columns is found from
    the data, and they may be numbered from 0 or 1.
    """

    def __init__(
        self, directory: Path, limit: float | None = None, width: int | None = None
    ) -> None:
        self._directory, self._limit, self._width = directory, limit, width
        self._files: dict[str, PieceWriter] = {}
        self._first: NumericBatch | None = None
        self._weight: list[FloatArray] = []
        self._lengths: list[npt.NDArray[Any]] = []
        self._n = self._widest = 0
        self._lowest = 1  # smallest column number

    def add(self, batch: NumericBatch, source: object) -> None:
        """Append a batch; all must have the same columns."""
        if self._first is None:
            self._first = replace(batch, X=batch.X[:0].copy(), y=None, weight=None)  # without rows
            self._begin(batch)
        first = self._first
        if batch.names != first.names or self._sparse != hasattr(batch.X, "indptr"):
            raise BadInput(f"{source} has other columns than the files before it: {batch.names}.")
        if self._sparse:
            self._add_sparse(batch.X)
        else:
            if batch.X.shape[1] != first.X.shape[1]:
                raise BadInput(
                    f"{source} has {batch.X.shape[1]} columns, the files before it have "
                    f"{first.X.shape[1]}."
                )
            if not np.can_cast(batch.X.dtype, first.X.dtype):
                raise BadInput(
                    f"{source} holds {batch.X.dtype} numbers, the files before it {first.X.dtype}: they would "
                    "lose digits. Store all as float64, or scan this file first."
                )
            rows = batch.X.astype(first.X.dtype, copy=False)
            self._files["rows"].write(rows)
            self._files["shelf"].write(rows[self._sampled_rows(rows)])
        self._n += batch.X.shape[0]
        if batch.weight is not None:
            self._weight.append(batch.weight)
        size = sum(file.size for file in self._files.values())
        if self._limit is not None and size > self._limit:
            raise Refused(
                f"The cache has reached {size:,} bytes, and cache_limit is {self._limit:,.0f}: give it more room, "
                "or scan fewer rows or columns."
            )

    def add_all(self, parts: Iterable[Any]) -> None:
        """Append rows given in parts, dense or CSR, and complete the cache."""
        for part in parts:
            self.add(NumericBatch(part), self._directory)
        self.finish()

    def _begin(self, batch: NumericBatch) -> None:
        self._sparse = hasattr(batch.X, "indptr")
        if self._sparse:
            for name in ("values", "columns", "shelf-values", "shelf-columns"):
                self._files[name] = PieceWriter(str(self._directory / name), _PIECE)
            return
        d, wide = batch.X.shape[1], batch.X.dtype.itemsize
        rows = rows_of_a_large_block(d, wide) // GRAIN  # a block is a whole number of pieces
        piece = max(1, rows * d * wide)
        for name in ("rows", "shelf"):
            self._files[name] = PieceWriter(str(self._directory / name), piece)

    def _sampled_rows(self, X: Any) -> IntArray:
        """Return the rows of a batch that belong to the strided sample for pilots."""
        return strided_sample.between(self._n, self._n + X.shape[0]) - self._n

    def _add_sparse(self, X: Any) -> None:
        if len(X.indices):
            self._widest = max(self._widest, int(X.indices.max()) + 1)
            self._lowest = min(self._lowest, int(X.indices.min()))
        for name, rows in (("", X), ("shelf-", X[self._sampled_rows(X)])):
            self._files[name + "values"].write(rows.data)
            self._files[name + "columns"].write(rows.indices.astype(np.int32))
        self._lengths.append(smallest(np.diff(X.indptr)))

    def finish(self, y: npt.NDArray[Any] | None = None) -> None:
        """Write target, weights and row lengths, and finally the manifest, which completes the cache."""
        if self._first is None or self._n == 0:
            raise BadInput("The files hold no rows.")
        shift = self._lowest if self._sparse and self._width is None else 0
        widest = self._widest - shift if self._width is None else self._width
        names = self._first.names
        manifest = {
            "version": _VERSION,
            "n": self._n,
            "d": widest if self._sparse else int(self._first.X.shape[1]),
            "sparse": self._sparse,
            "shift": shift,
            "dtype": self._first.X.dtype.name,
            "names": None if names is None else list(names),
            "files": {name: file.finish() for name, file in self._files.items()},
            "vectors": {},
        }
        vectors: dict[str, Any] = {"y": [] if y is None else [y], "weight": self._weight}
        if self._sparse:
            vectors["lengths"] = self._lengths
        for name, parts in vectors.items():
            if parts:
                path = self._directory / f"{name}.npy"
                np.save(path, np.concatenate(parts), allow_pickle=False)
                manifest["vectors"][name] = _checksum_of(path)
        text = json.dumps(manifest)
        with (self._directory / _MANIFEST).open("x", encoding="utf-8") as stream:
            stream.write(f"{_checksum(text)}\n{text}")
            stream.flush()
            os.fsync(stream.fileno())

    def close(self) -> None:
        """Close all open files."""
        for file in self._files.values():
            file.close()


Opened = tuple[StoredRows, Any, Any, "tuple[str, ...] | None"]


def reopen(directory: Path) -> Opened:
    """Open a cache that was just built, retrying while another process may be replacing it."""
    for _ in range(_TRIES):
        with contextlib.suppress(Damaged):
            return open_cache(directory)
        time.sleep(_PAUSE)
    return open_cache(directory)


def open_cache(directory: Path) -> Opened:
    """Return rows, target, weight and names of a cache; raise ``Damaged`` if it is missing or not intact."""
    try:
        checksum, _, text = (directory / _MANIFEST).read_text("utf-8").partition("\n")
        if checksum != _checksum(text):
            raise Damaged
        manifest = json.loads(text)
        if manifest["version"] != _VERSION:
            raise Damaged
        vectors = {}
        for name, checksum in manifest["vectors"].items():
            path = directory / f"{name}.npy"
            if _checksum_of(path) != checksum:
                raise Damaged
            vectors[name] = np.load(path, allow_pickle=False)
        files = {
            name: _piece_file(directory / name, facts) for name, facts in manifest["files"].items()
        }
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise Damaged from error
    names, n, d, dtype = (manifest[name] for name in ("names", "n", "d", "dtype"))
    sampled = strided_sample.between(0, n)
    rows: StoredRows
    few: StoredRows
    if manifest["sparse"]:
        shift, lengths = manifest["shift"], vectors["lengths"]
        own, starts = RowStarts(lengths[sampled]), RowStarts(lengths)
        few = CsrRows(files["shelf-values"], files["shelf-columns"], own, d, dtype, shift)
        rows = CsrRows(files["values"], files["columns"], starts, d, dtype, shift, few)
    else:
        few = DenseRows([files["shelf"]], [len(sampled)], d, dtype)
        rows = DenseRows([files["rows"]], [n], d, dtype, few)
    return rows, vectors.get("y"), vectors.get("weight"), None if names is None else tuple(names)


def _checksum(manifest: str) -> str:
    return f"crc32:{zlib.crc32(manifest.encode()):08x}"


def _checksum_of(path: Path) -> int:
    """Return the CRC-32 of a file, read one megabyte at a time."""
    found = 0
    with path.open("rb") as stream:
        while some := stream.read(_PIECE):
            found = zlib.crc32(some, found)
    return found


def _piece_file(path: Path, facts: dict[str, Any]) -> PieceFile:
    if path.stat().st_size != facts["size"]:
        raise Damaged
    return PieceFile(str(path), facts["size"], 0, facts["piece"], facts["sums"])


def write_columns(directory: Path, rows: StoredRows, chosen: IntArray) -> StoredRows:
    """Write some columns of all rows, densely if more than the fraction FILLED is nonzero. One or two passes."""
    entries = sum(block[:, chosen].nnz for _, block in rows.blocks()) if rows.sparse else 0
    dense = not rows.sparse or entries > FILLED * rows.shape[0] * len(chosen)
    parts = (block[:, chosen] for _, block in rows.blocks())
    if rows.sparse and dense:
        parts = (part.toarray() for part in parts)
    return write_rows(directory, parts, "set TMPDIR to a directory with more room", len(chosen))


def write_rows(directory: Path, parts: Iterable[Any], remedy: str, width: int) -> StoredRows:
    """Write rows below a directory and open them; ``remedy`` is the advice if the disk is full."""
    build(directory / "rows", lambda writer: writer.add_all(parts), remedy, width=width)
    return open_cache(directory / "rows")[0]


def build(
    directory: Path,
    fill: Callable[[Writer], None],
    remedy: str,
    limit: float | None = None,
    width: int | None = None,
) -> None:
    """Let ``fill`` write a cache to a temporary directory, and rename it to its final name.

    ``remedy`` is the advice if the disk is full.
    """
    directory.parent.mkdir(parents=True, exist_ok=True)
    making = Path(tempfile.mkdtemp(prefix=".building-", dir=directory.parent))
    writer = Writer(making, limit, width)
    try:
        fill(writer)
        if directory.exists():
            with contextlib.suppress(Damaged):
                open_cache(directory)[0].close()
                return  # another process has built the same cache
            shutil.rmtree(directory, ignore_errors=True)
        os.rename(making, directory)
    except OSError as error:
        if error.errno in (errno.EEXIST, errno.ENOTEMPTY) and directory.exists():
            return  # another process has built the same cache
        if error.errno in FULL:
            text = f"There is no room to write in {directory.parent} ({error.strerror}): {remedy}."
            raise Refused(text) from error
        raise
    finally:
        writer.close()
        shutil.rmtree(making, ignore_errors=True)
