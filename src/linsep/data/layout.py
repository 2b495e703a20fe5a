"""Where blocks begin and how their sums are grouped: facts of the data alone, the same for every back end."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Protocol

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.interrupts import slices

BLOCK_BYTES = 4 << 20  # a few milliseconds of work, small beside any cache worth having
SMALL_BLOCK_BYTES = 1 << 20  # enough work to pay for the call
MANY_BLOCKS = 4  # that threads can share evenly: data have as many before their blocks grow
FAN = 16  # totals of partitions that are added up in one place
GRAIN = 16  # rows of a dense block are a multiple of it, so that large ones split into equal pieces

Edges = list[int]


def dense_edges(n: int, d: int, itemsize: int) -> Edges:
    """Row numbers where blocks of dense rows begin, and n: blocks of equal size in bytes."""
    if itemsize * d * (n + GRAIN) <= min(BLOCK_BYTES, SMALL_BLOCK_BYTES):
        return [0, n]
    rows = _rows_within(itemsize * max(1, d) * n // MANY_BLOCKS, d, itemsize)
    return [*range(0, max(n, 1), rows), n]


def rows_of_a_large_block(d: int, itemsize: int) -> int:
    """Rows in a block, the last one apart, of dense data that have more than MANY_BLOCKS of them."""
    return _rows_within(BLOCK_BYTES, d, itemsize)


def _rows_within(size: int, d: int, itemsize: int) -> int:
    size = min(BLOCK_BYTES, max(SMALL_BLOCK_BYTES, size))
    return max(256, size // (itemsize * max(1, d)) // GRAIN * GRAIN)


class Starts(Protocol):
    """Where rows begin: an array, or what answers as one."""

    def searchsorted(self, values: IntArray) -> IntArray:
        """For each value the number of the first row that begins at it or later."""
        ...


def sparse_edges(n: int, entries: int, starts: Starts) -> Edges:
    """Edges of blocks of CSR rows with equally many entries."""
    blocks = max(1, round(12 * entries / BLOCK_BYTES))
    if blocks == 1:
        return [0, n] if n else [0]
    inner = starts.searchsorted(entries * np.arange(1, blocks) // blocks)
    return [int(edge) for edge in np.unique(np.concatenate([[0], inner, [n]]))]


def spans(blocks: int, n_entries: int, size: int) -> list[range]:
    """Groups of consecutive blocks that share one accumulator of ``size``: fewer when it is large.

    Their number is a power of two, or that of the blocks: the groups of a large size are made of those of a small one,
    so that one walk over the blocks can add up both.
    """
    if blocks == 1:
        return [range(1)]
    number = max(4, min(64, 12 * n_entries // (32 * 8 * size)))
    number = min(blocks, 1 << (number.bit_length() - 1))
    edges = [blocks * k // number for k in range(number + 1)]
    return [range(a, b) for a, b in pairwise(edges)]


def longest_sum(edges: Edges, n_entries: int, size: int) -> int:
    """Terms added one after another in a sum of ``size`` numbers: the rows of a span, then the spans."""
    if len(edges) == 2:
        return edges[1] + 1
    groups = spans(len(edges) - 1, n_entries, size)
    return max(edges[s.stop] - edges[s.start] for s in groups) + len(groups)


def ordered(parts: list[FloatArray]) -> FloatArray:
    """Sum of the totals of partitions in their order: FAN neighbours at a time, one after another, then those sums."""
    while len(parts) > 1:
        parts = [one_after_another(parts[at : at + FAN]) for at in range(0, len(parts), FAN)]
    return parts[0]


def one_after_another(parts: Sequence[FloatArray]) -> FloatArray:
    """Sum from left to right, some megabytes at a time."""
    total: FloatArray = parts[0].copy()
    for some in slices(len(total), len(parts)):
        here = total[some]
        for part in parts[1:]:
            here += part[some]
    return total


def longest_ordered(longest: int, partitions: int) -> int:
    """Terms added one after another in ``ordered``, when those of a partition are ``longest``."""
    while partitions > 1:
        longest, partitions = longest + min(FAN, partitions), -(-partitions // FAN)
    return longest
