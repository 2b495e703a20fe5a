"""Division of rows into blocks, and the order in which block sums are added.

Both depend only on the data, so that sums are bit-identical in memory, on disk and on a cluster.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.interrupts import slices

BLOCK_BYTES = 4 << 20  # largest block: a few milliseconds of work, smaller than a last-level cache
SMALL_BLOCK_BYTES = 1 << 20  # smallest block: enough work to amortise the call
MANY_BLOCKS = 4  # blocks grow beyond SMALL_BLOCK_BYTES only if there are this many to share
FAN = 16  # number of partition totals that are added in one place
GRAIN = 16  # dense blocks have a multiple of this many rows, so that they split into equal pieces

Edges = list[int]


def dense_edges(n: int, d: int, itemsize: int) -> Edges:
    """Return the first row of each block of dense rows, and n; blocks have equal size in bytes."""
    if itemsize * d * (n + GRAIN) <= min(BLOCK_BYTES, SMALL_BLOCK_BYTES):
        return [0, n]
    rows = _rows_within(itemsize * max(1, d) * n // MANY_BLOCKS, d, itemsize)
    return [*range(0, max(n, 1), rows), n]


def rows_of_a_large_block(d: int, itemsize: int) -> int:
    """Return the number of rows of all blocks but the last, for dense data with more than MANY_BLOCKS full blocks."""
    return _rows_within(BLOCK_BYTES, d, itemsize)


def _rows_within(size: int, d: int, itemsize: int) -> int:
    size = min(BLOCK_BYTES, max(SMALL_BLOCK_BYTES, size))
    return max(256, size // (itemsize * max(1, d)) // GRAIN * GRAIN)


class Starts(Protocol):
    """Protocol of row starts (CSR ``indptr``): a NumPy array or ``RowStarts``."""

    def searchsorted(self, values: IntArray) -> IntArray:
        """Return for each value the number of the first row that starts at it or later."""
        ...


def sparse_edges(n: int, entries: int, starts: Starts) -> Edges:
    """Return the first row of each block of CSR rows, and n; blocks have about equally many entries."""
    blocks = max(1, round(12 * entries / BLOCK_BYTES))
    if blocks == 1:
        return [0, n] if n else [0]
    inner = starts.searchsorted(entries * np.arange(1, blocks) // blocks)
    return [int(edge) for edge in np.unique(np.concatenate([[0], inner, [n]]))]


def spans(blocks: int, n_entries: int, size: int) -> list[range]:
    """Return spans of consecutive blocks that share one accumulator of ``size`` numbers; fewer if it is large.

    Their number is a power of two, or that of the blocks, so the spans of a large size are unions of those of a small
    one, and one loop over the blocks can compute both sums.
    """
    if blocks == 1:
        return [range(1)]
    number = max(4, min(64, 12 * n_entries // (32 * 8 * size)))
    number = min(blocks, 1 << (number.bit_length() - 1))
    edges = [blocks * k // number for k in range(number + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def longest_sum(edges: Edges, n_entries: int, size: int) -> int:
    """Return the number of sequential additions in a sum of ``size`` numbers: rows of a span, then spans."""
    if len(edges) == 2:
        return edges[1] + 1
    groups = spans(len(edges) - 1, n_entries, size)
    return max(edges[s.stop] - edges[s.start] for s in groups) + len(groups)


def ordered(parts: list[FloatArray]) -> FloatArray:
    """Return the sum of partition totals by a tree: FAN neighbours are added in order, then their sums likewise."""
    while len(parts) > 1:
        parts = [one_after_another(parts[at : at + FAN]) for at in range(0, len(parts), FAN)]
    return parts[0]


def one_after_another(parts: Sequence[FloatArray]) -> FloatArray:
    """Return the sum from left to right, computed some megabytes at a time."""
    total: FloatArray = parts[0].copy()
    for some in slices(len(total), len(parts)):
        here = total[some]
        for part in parts[1:]:
            here += part[some]
    return total


def longest_ordered(longest: int, partitions: int) -> int:
    """Return the number of sequential additions in ``ordered`` if that of a partition is ``longest``."""
    while partitions > 1:
        longest, partitions = longest + min(FAN, partitions), -(-partitions // FAN)
    return longest
