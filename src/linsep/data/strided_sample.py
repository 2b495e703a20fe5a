"""The shelf: one row of every eight, from which pilots are drawn.

Which rows are on it depends on nothing but their numbers, so that it can be set aside while rows are read first, before
anybody knows how many there will be. A pilot that is drawn from the shelf then needs no reading of all rows.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Rows = npt.NDArray[np.int64]

STRETCH = 8  # rows of which one is on the shelf
_GOLDEN = np.uint64(0x9E3779B97F4A7C15)  # 2^64 divided by the golden ratio


def on_shelf(stretches: Rows) -> Rows:
    """The row of each stretch that is on the shelf: its place in there runs through all in no period."""
    place = (stretches.astype(np.uint64) * _GOLDEN) >> np.uint64(61)
    return STRETCH * stretches + place.astype(np.int64)


def between(lo: int, hi: int) -> Rows:
    """Rows lo .. hi that are on the shelf."""
    rows = on_shelf(np.arange(lo // STRETCH, -(-hi // STRETCH)))
    return rows[(rows >= lo) & (rows < hi)]


def places(rows: Rows) -> Rows | None:
    """Where these rows are on the shelf; None if one of them is not."""
    stretches = rows // STRETCH
    return stretches if np.array_equal(on_shelf(stretches), rows) else None
