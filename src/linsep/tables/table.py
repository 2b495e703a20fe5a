"""Tables: named columns of four kinds, stored in batches of rows.

======== ============================================ ==================
kind     stored as                                    missing
======== ============================================ ==================
number   float64                                      NaN
boolean  float64, 0 and 1                             NaN
string   int32, a position in a list of levels        -1
time     datetime64[us]                               NaT
======== ============================================ ==================

Columns of one kind are stored in one matrix per batch, so that a table of numbers is already the matrix a model needs,
and the memory of large batches returns to the system when they are freed. Codes are positions in the list of levels of
their batch; ``values`` and ``levels`` of the table number the levels over all batches.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import IntArray
from linsep.data import Location, location_of
from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.tables.batches import STORES, Batch, batch, recode

STORE = {NUMBER: "numbers", BOOLEAN: "numbers", STRING: "codes", TIME: "times"}


@dataclass(eq=False)
class Table:
    """Table of named columns, with the target if one was requested.

    Attributes
    ----------
    kinds : dict {name: kind}
        The columns in their order.
    levels : dict {name: list of str}
        The distinct values of each string column, in order of appearance; all of them are read into memory.
    y : ndarray (n,) or None
        The target.
    matrix : CSR, ndarray or Scan (n, d), or None
        The rows themselves, if the file contains numbers without column names (LIBSVM, npz).
    types : dict {name: str}
        Column types set by the caller, which the encoder uses.
    reading : dict
        Target, decimal and thousands separator and texts for missing values, as arguments of ``read_table``; empty if
        the table is not from a file.
    unlabelled : int
        Number of rows without a target that were left out.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    y: Any = None
    matrix: Any = None
    types: dict[str, str] = field(default_factory=dict)
    reading: dict[str, Any] = field(default_factory=dict)
    source: str = "table"
    unlabelled: int = 0
    _places: dict[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return sum(map(len, self.batches))

    @property
    def columns(self) -> list[str]:
        """Names of the columns, in order."""
        return list(self.kinds)

    def place(self, name: str) -> tuple[str, int]:
        """Return the store of a column ("numbers", "codes" or "times"), and its position in it."""
        if len(self._places) != len(self.kinds):
            taken = dict.fromkeys(STORE.values(), 0)
            for column, kind in self.kinds.items():
                store = STORE[kind]
                self._places[column] = store, taken[store]
                taken[store] += 1
        return self._places[name]

    @property
    def levels(self) -> dict[str, list[str]]:
        """Distinct values of each string column, in order of appearance."""
        strings = [name for name, kind in self.kinds.items() if kind == STRING]
        return {name: self._coded(name)[1] for name in strings}

    def values(self, name: str) -> npt.NDArray[Any]:
        """Return all rows of one column, as stored; strings as positions in ``levels``."""
        store, at = self.place(name)
        if store == "codes":
            return self._coded(name)[0]
        parts = []
        for rows in self.batches:
            parts.append(np.array(rows.column(store, at)))
            rows.release()  # the pages of a batch in a file are no longer needed
        return np.concatenate(parts)

    def _coded(self, name: str) -> tuple[npt.NDArray[np.int32], list[str]]:
        """Return the codes of all rows of a string column, and the levels of all batches that they refer to."""
        at, known, parts = self.place(name)[1], dict[str, int](), []
        for rows in self.batches:
            parts.append(recode(rows.column("codes", at), rows.levels(at), known))
            rows.release()  # the levels are in the file too
        return np.concatenate(parts), list(known)

    def release(self) -> None:
        """Release the memory of rows that are in a file; they are read again when needed."""
        for rows in self.batches:
            rows.release()

    def take(self, rows: IntArray) -> Table:
        """Return a table of the given rows in the given order; rows in increasing order are not copied."""
        y = None if self.y is None else self.y[rows]
        if self.matrix is not None:
            stored = location_of(self.matrix) is Location.DISK
            matrix = self.matrix.take(rows) if stored else self.matrix[rows]
            return replace(self, matrix=matrix, y=y, _places={})
        edges = np.cumsum([0, *map(len, self.batches)])
        if (np.diff(rows) > 0).all():
            cuts = np.searchsorted(rows, edges)
            batches: list[Batch] = [
                b.select((rows[lo:hi] - edge).astype(np.min_scalar_type(len(b))))
                for b, edge, lo, hi in zip(self.batches, edges, cuts, cuts[1:], strict=False)
            ]
        else:
            batches = [self._gathered(rows)]
        return replace(self, batches=batches, y=y, _places={})

    def _gathered(self, rows: IntArray) -> Batch:
        """Copy rows in any order."""
        found: dict[str, list[npt.NDArray[Any]]] = {store: [] for store in STORES}
        levels = []
        for name in self.kinds:
            store = self.place(name)[0]
            if store == "codes":
                codes, known = self._coded(name)
                found[store].append(codes[rows])
                levels.append(known)
            else:
                found[store].append(self.values(name)[rows])
        return batch(len(rows), **found, levels=levels)

    def __repr__(self) -> str:
        if self.matrix is not None:
            return f"<Table {self.source}: matrix {self.matrix.shape}>"
        return f"<Table {self.source}: {len(self)} rows, {len(self.kinds)} columns>"
