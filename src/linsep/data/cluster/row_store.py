"""Rows of a cluster on the client: received along with a round, so that a request for them costs none."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import IntArray, stack_rows

# X, sign, offset, weight and labels of some rows; None where there are none.
Columns = tuple[Any, ...]


class RowStore:
    """Some rows with their targets, by row number."""

    def __init__(self) -> None:
        self.rows: IntArray = np.zeros(0, dtype=np.int64)
        self._columns: Columns | None = None

    def missing(self, rows: IntArray) -> IntArray:
        """The given row numbers without those that are stored."""
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
        """The given rows, all of which must be stored."""
        assert self._columns is not None
        at = np.searchsorted(self.rows, rows)
        return tuple(_some(column, at) for column in self._columns)

    def clear(self) -> None:
        """Empty the store."""
        self.rows, self._columns = self.rows[:0], None


def _some(column: Any, at: IntArray) -> Any:
    return None if column is None else column[at]


def bytes_of(found: Any) -> int:
    """Approximate size of a result in bytes."""
    if isinstance(found, np.ndarray):
        return int(found.nbytes)
    if sp.issparse(found):
        return int(found.data.nbytes + found.indices.nbytes + found.indptr.nbytes)
    if isinstance(found, list | tuple):
        return sum(bytes_of(one) for one in found)
    return 8
