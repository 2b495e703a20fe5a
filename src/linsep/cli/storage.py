"""Storage of an encoded table during a fit: in memory, or on disk if it is too large.

Every table is processed in the same way: it is read in batches (a large one into a temporary file), and its columns are
encoded batch by batch. The encoded rows stay in memory up to ``--memory-limit``; a larger matrix is written to disk and
read in every pass.
"""

from __future__ import annotations

import argparse
import hashlib
import re
from collections.abc import Iterator
from contextlib import AbstractContextManager, nullcontext
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp

import linsep
from linsep.arrays import IntArray
from linsep.cli import reading
from linsep.data import Location, location_of
from linsep.data import cache as block_cache
from linsep.data.memory_limit import available_memory
from linsep.data.scanning import stored_rows
from linsep.errors import BadInput
from linsep.tables import Encoder, Table

IN_MEMORY = 64 << 20  #: bytes of encoded rows up to which they always stay in memory
_SHARE = 0.25  # fraction of the free memory for encoded rows; fit and report need more
_GROWN = 4.0  # estimated bytes in memory per byte of an npz file
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    group = parser.add_argument_group("tables larger than memory")
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="e.g. 500M or 8G, at least 64M: larger encoded tables are stored on disk and read in every pass "
        "(default: a quarter of the free memory)",
    )
    group.add_argument(
        "--cache", metavar="DIR", help="directory that keeps encoded rows for the next run"
    )
    group.add_argument(
        "--resume",
        metavar="FILE",
        help="file that keeps the state of the fit; resume from it after a crash",
    )


def limit(options: Any) -> float:
    """Bytes of encoded rows up to which a table stays in memory."""
    given = getattr(options, "memory_limit", None)
    if given is None:
        return max(IN_MEMORY, _SHARE * available_memory())
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?", given.strip(), re.IGNORECASE)
    if found is None:
        raise BadInput(
            f"--memory-limit {given}: write a number of bytes, or 500M, 8G and the like."
        )
    return max(IN_MEMORY, float(found[1]) * _UNITS[found[2].upper()])


def resumable(options: Any) -> AbstractContextManager[Any]:
    """Return the checkpoint context of a fit from disk or on a cluster, if requested."""
    return nullcontext() if options.resume is None else linsep.checkpoint(options.resume)


def read(options: Any) -> Table:
    """Read the labelled table; a large matrix without column names is stored on disk."""
    kind, file = reading.matrix_format(options), reading.files(options)[0]
    if kind is not None and reading.is_there(file):
        if (file.size or 0) * (_GROWN if kind == "npz" else 1.0) > limit(options):
            column = options.target or ("y" if kind == "npz" else None)
            rows = reading.scan_files(options, column, memory_limit=limit(options))
            y, rows.y = rows.y, None
            return reading.refuse_unlabelled(Table(matrix=rows, y=y, source=str(file)))
    return reading.read_labelled(options)


def matrix(options: Any, table: Table, encoder: Encoder | None, name: str = "") -> Any:
    """Encode the rows of a table as an array, a CSR matrix or a scan. A table in memory is consumed.

    ``name`` distinguishes these rows from others of the same file, for ``--cache``.
    """
    if encoder is None:
        return table.matrix
    most = limit(options)
    kept = _cache_path(options, encoder, name)
    if not encoder.sparse_:
        width = sum(encoding.width for encoding in encoder.encodings_)
        if 8.0 * len(table) * width <= most:
            return encoder.transform(table, consume=True)
        return encoder.to_disk(table, cache=kept, memory_limit=most)
    parts, size, blocks = [], 0, encoder.transform_batches(table)
    for block in blocks:
        parts.append(block)
        size += block.data.nbytes + block.indices.nbytes
        if size > most:
            return stored_rows(chain(_consume(parts), blocks), block.shape[1], kept, most)
    table.batches.clear()
    return parts[0] if len(parts) == 1 else sp.vstack(parts, format="csr")


def _consume(parts: list[Any]) -> Iterator[Any]:
    while parts:
        yield parts.pop(0)


def _cache_path(options: Any, encoder: Encoder, name: str) -> Path | None:
    """Directory below ``--cache`` for the rows of the file, encoded by this encoder; None without ``--cache``."""
    home, files = getattr(options, "cache", None), reading.files(options)
    if home is None or not all(map(reading.is_there, files)):
        return None
    key = block_cache.key(files, [linsep.__version__, encoder.to_dict(), name])
    return None if key is None else Path(home) / key


def rows_name(rows: IntArray) -> str:
    """Name that identifies a selection of rows."""
    return hashlib.sha256(np.ascontiguousarray(rows).data).hexdigest()


def on_disk(X: Any) -> bool:
    """Return whether rows are read from disk."""
    return location_of(X) is Location.DISK


def readings(X: Any) -> dict[str, float]:
    """Return how often rows on disk were read, as a fact for ``--json``."""
    return {"reads": X.reads} if on_disk(X) else {}
