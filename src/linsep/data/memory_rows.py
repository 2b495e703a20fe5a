"""Rows of files and of clusters that a fit reads into memory because they are few enough.

This is the one rule that makes a fit independent of where its rows are stored: rows that fit into memory are fitted in
memory, by the same code as an array.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from linsep.arrays import IntArray
from linsep.data.entrance.dataframes import Names
from linsep.data.journal import current
from linsep.data.location import Location
from linsep.data.memory_limit import available_memory

FILE_BYTES = 1 << 30  # largest size of rows in files that are read into memory: that of a pilot
CLUSTER_BYTES = 1 << 27  # the same for rows on a cluster, which cross a network
# Rows of this size, 2^20 sparse entries, are read into memory even if the limit is smaller or a checkpoint is in use:
# the buffers that read them block by block are as large.
ALWAYS_BYTES = 12 << 20
_COPIES = 4.0  # a fit in memory may take this many times the size of its rows


def few_in_files(size: float, limit: float | None) -> bool:
    """Return whether rows of ``size`` bytes in files are read into memory.

    ``limit`` is the user's limit; 0 leaves all rows on disk. By default rows of up to FILE_BYTES are read, if a quarter
    of the free memory has room. A checkpoint records passes over files, so that larger rows then stay on disk.
    """
    if limit is not None:
        return limit > 0 and size <= max(limit, ALWAYS_BYTES)
    return size <= _unrecorded(FILE_BYTES) and _COPIES * size <= available_memory()


def few_on_cluster(size: float, limit: float | None) -> bool:
    """Return whether rows of ``size`` bytes on a cluster are fetched; ``limit`` is the user's limit."""
    return size <= (_unrecorded(CLUSTER_BYTES) if limit is None else limit)


def _unrecorded(most: int) -> int:
    """Return the largest size of rows that are fitted in memory, where no pass is recorded."""
    return most if current() is None else min(most, ALWAYS_BYTES)


@dataclass(frozen=True, eq=False)
class NamedRows:
    """An array or a CSR matrix in memory with the column names of the files or partitions that it was read from."""

    location: ClassVar[Location] = Location.MEMORY

    values: Any
    names: Names

    @property
    def shape(self) -> tuple[int, int]:
        """Number of rows and features, (n, d)."""
        found: tuple[int, int] = self.values.shape
        return found

    @property
    def size(self) -> int:
        """Number of stored entries."""
        return int(self.values.size)

    def __len__(self) -> int:
        return self.shape[0]

    def take(self, rows: IntArray) -> NamedRows:
        """Copy some of the rows."""
        return NamedRows(self.values[rows], self.names)


def with_names(values: Any, names: Names | None) -> Any:
    """Return rows in memory together with their column names, if there are any."""
    return values if names is None else NamedRows(values, names)
