"""The strided sample ("shelf"): one row of every eight, stored separately, from which pilots are drawn.

Which rows it contains depends only on their row numbers, so it can be written while the rows are read for the first
time, before their total number is known. Drawing a pilot from it then avoids a pass over all rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

STRETCH = 8  # number of consecutive rows from which one is sampled
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


def on_shelf(stretches: Rows) -> Rows:
    """Return the sampled row of each stretch of 8 rows; its position in the stretch is an aperiodic sequence."""
    place = (stretches.astype(np.uint64) * _GOLDEN) >> np.uint64(61)
    return STRETCH * stretches + place.astype(np.int64)


def between(lo: int, hi: int) -> Rows:
    """Return the rows among lo .. hi that are in the sample."""
    rows = on_shelf(np.arange(lo // STRETCH, -(-hi // STRETCH)))
    return rows[(rows >= lo) & (rows < hi)]


def places(rows: Rows) -> Rows | None:
    """Return the positions of the rows within the sample, or None if one of them is not in it."""
    stretches = rows // STRETCH
    return stretches if np.array_equal(on_shelf(stretches), rows) else None
