"""The strided sample: one row of every eight, stored separately, from which pilots are drawn.

Which rows it contains depends only on their row numbers, so it can be written while the rows are read for the first
time, before their total number is known. Drawing a pilot from it then avoids a pass over all rows.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import IntArray

STRIDE = 8  # number of consecutive rows from which one is sampled
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


def sampled_row(groups: IntArray) -> IntArray:
    """Return the sampled row of each group of 8 rows; its position in the group is an aperiodic sequence."""
    position = (groups.astype(np.uint64) * _GOLDEN) >> np.uint64(61)
    return STRIDE * groups + position.astype(np.int64)


def between(lo: int, hi: int) -> IntArray:
    """Return the rows among lo .. hi that are in the sample."""
    rows = sampled_row(np.arange(lo // STRIDE, -(-hi // STRIDE)))
    return rows[(rows >= lo) & (rows < hi)]


def positions(rows: IntArray) -> IntArray | None:
    """Return the positions of the rows within the sample, or None if one of them is not in it."""
    groups = rows // STRIDE
    return groups if np.array_equal(sampled_row(groups), rows) else None
