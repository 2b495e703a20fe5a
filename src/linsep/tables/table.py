"""A table: named columns of four kinds, in batches of rows.

======== ============================================ ==================
kind     stored as                                    missing
======== ============================================ ==================
number   float64                                      NaN
boolean  float64, 0 and 1                             NaN
string   int32, a position in the list of its levels  -1
time     datetime64[us]                               NaT
======== ============================================ ==================

Columns of one kind lie side by side in one matrix per batch, so that a table of numbers is already
the matrix a model wants, and large batches go back to the system when they are given up.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.tables.batches import STORES, Batch, Rows, batch

STORE = {NUMBER: "numbers", BOOLEAN: "numbers", STRING: "codes", TIME: "times"}


@dataclass(eq=False)
class Table:
    """Named columns, and the target if one was asked for.

    Attributes
    ----------
    kinds : dict {name: kind}
        The columns in their order.
    levels : dict {name: list of str}
        The distinct values of each string column, in order of appearance.
    y : ndarray (n,) or None
        The target.
    matrix : CSR or ndarray (n, d), or None
        The rows themselves, if the file held numbers without names (LIBSVM, npz).
    types : dict {name: str}
        What the caller said about columns; the encoder follows it.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    batches: list[Rows] = field(default_factory=list)
    y: npt.NDArray[Any] | None = None
    matrix: Any = None
    types: dict[str, str] = field(default_factory=dict)
    source: str = "table"
    _places: dict[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return sum(map(len, self.batches))

    @property
    def columns(self) -> list[str]:
        """Names, in order."""
        return list(self.kinds)

    def place(self, name: str) -> tuple[str, int]:
        """The store of a column, and its position there."""
        if len(self._places) != len(self.kinds):
            taken = dict.fromkeys(STORE.values(), 0)
            for column, kind in self.kinds.items():
                store = STORE[kind]
                self._places[column] = store, taken[store]
                taken[store] += 1
        return self._places[name]

    def values(self, name: str) -> npt.NDArray[Any]:
        """All rows of one column, as stored."""
        store, at = self.place(name)
        return np.concatenate([rows.column(store, at) for rows in self.batches])

    def release(self) -> None:
        """The rows are not needed soon: those in a file need not be in memory."""
        for rows in self.batches:
            rows.release()

    def take(self, rows: npt.NDArray[np.int64]) -> Table:
        """Table of the given rows in the given order; rows in rising order are not copied."""
        y = None if self.y is None else self.y[rows]
        if self.matrix is not None:
            return replace(self, matrix=self.matrix[rows], y=y, _places={})
        edges = np.cumsum([0, *map(len, self.batches)])
        if (np.diff(rows) > 0).all():
            cuts = np.searchsorted(rows, edges)
            batches: list[Rows] = [
                b.some(rows[lo:hi] - edge)
                for b, edge, lo, hi in zip(self.batches, edges, cuts, cuts[1:], strict=False)
            ]
        else:
            batches = [self._gathered(rows)]
        return replace(self, batches=batches, y=y, _places={})

    def _gathered(self, rows: npt.NDArray[np.int64]) -> Batch:
        """Rows in any order, copied."""
        found: dict[str, list[npt.NDArray[Any]]] = {store: [] for store in STORES}
        for name in self.kinds:
            found[self.place(name)[0]].append(self.values(name)[rows])
        return batch(len(rows), **found)

    def __repr__(self) -> str:
        if self.matrix is not None:
            return f"<Table {self.source}: matrix {self.matrix.shape}>"
        return f"<Table {self.source}: {len(self)} rows, {len(self.kinds)} columns>"
