"""Store of cluster rows on the client. Rows that arrive with the results of a round need no round of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import IntArray, stack_rows

# X, sign, offset, weight and labels of some rows; None where there are none.
Columns = tuple[Any, ...]


class RowStore:
    """Store of rows with their targets, sorted by row number."""

    def __init__(self) -> None:
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self._columns: Columns | None = None

    def missing(self, rows: IntArray) -> IntArray:
        """Return the given row numbers without those that are stored."""
        return rows[~np.isin(rows, self.rows)]

    def add(self, rows: IntArray, columns: Columns) -> None:
        """Store rows, except those that are stored already."""
        new = np.flatnonzero(~np.isin(rows, self.rows))
        if not len(new):
            return
        found = tuple(_some(column, new) for column in columns)
        numbers = np.append(self.rows, rows[new])
        if self._columns is not None:
            found = tuple(stack_rows(pair) for pair in zip(self._columns, found, strict=True))
        order = np.argsort(numbers)
        self.rows, self._columns = numbers[order], tuple(_some(c, order) for c in found)

    def take(self, rows: IntArray) -> Columns:
        """Return the given rows, all of which must be stored."""
        assert self._columns is not None
        at = np.searchsorted(self.rows, rows)
        return tuple(_some(column, at) for column in self._columns)

    def clear(self) -> None:
        """Empty the store."""
        self.rows, self._columns = self.rows[:0], None


def _some(column: Any, at: IntArray) -> Any:
    return None if column is None else column[at]


def bytes_of(found: Any) -> int:
    """Return the approximate size of a result in bytes."""
    if isinstance(found, np.ndarray):
        return int(found.nbytes)
    if sp.issparse(found):
        return int(found.data.nbytes + found.indices.nbytes + found.indptr.nbytes)
    if isinstance(found, list | tuple):
        return sum(bytes_of(one) for one in found)
    return 8
