"""Encodings at work: the batches of a table become one matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.errors import BadInput, NonFinite
from linsep.tables.batches import Rows
from linsep.tables.encodings import Category, Encoding, Number
from linsep.tables.inference import is_number
from linsep.tables.planning import convert
from linsep.tables.table import STRING, Table


def matrix(encodings: tuple[Encoding, ...], table: Table, sparse: bool, consume: bool) -> Any:
    """The encoded table, dense or CSR; ``consume`` gives up its batches one by one."""
    columns = [ColumnAtWork(encoding, table) for encoding in encodings if encoding.width]
    shape = len(table), sum(encoding.width for encoding in encodings)
    batches = _passed(table, consume)
    return _sparse(columns, batches, shape) if sparse else _dense(columns, batches, shape)


def _passed(table: Table, consume: bool) -> Iterator[Rows]:
    """The batches in their order, each released after its use."""
    left = table.batches if consume else list(table.batches)
    while left:
        batch = left.pop(0)
        yield batch
        batch.release()


def _dense(columns: list[ColumnAtWork], batches: Iterator[Rows], shape: tuple[int, int]) -> Any:
    X = np.zeros(shape)  # pages of memory are taken when they are first written
    start = 0
    for batch in batches:
        out, at = X[start : start + len(batch)], 0
        for column in columns:
            encoding, values = column.encoding, column.values(batch)
            if isinstance(encoding, Number):
                encoding.write(values, out[:, at : at + encoding.width])
            else:
                rows, places, entries = encoding.entries(values, column.prepared)
                out[rows, at + places] = entries
            at += encoding.width
        start += len(batch)
    return X


def _sparse(columns: list[ColumnAtWork], batches: Iterator[Rows], shape: tuple[int, int]) -> Any:
    blocks = []
    for batch in batches:
        parts, at = [], 0
        for column in columns:
            values = column.values(batch)
            rows, places, entries = column.encoding.entries(values, column.prepared)
            stored = entries != 0
            parts.append((rows[stored], at + places[stored], entries[stored]))
            at += column.encoding.width
        rows, places, entries = (np.concatenate([part[i] for part in parts]) for i in range(3))
        blocks.append(sp.csr_array((entries, (rows, places)), shape=(len(batch), shape[1])))
    return blocks[0] if len(blocks) == 1 else sp.vstack(blocks, format="csr")


class ColumnAtWork:
    """An encoding at work on the batches of one table."""

    def __init__(self, encoding: Encoding, table: Table) -> None:
        self.encoding = encoding
        self.kind = table.kinds[encoding.name]
        self.store, self.at = table.place(encoding.name)
        self.levels = table.levels.get(encoding.name, [])
        self._as_is = self.kind == encoding.kind
        self._all: npt.NDArray[Any] | None = None
        if not self._as_is:
            name, kind = encoding.name, encoding.kind
            if isinstance(encoding, Category) and self.kind != STRING:
                self._refuse_foreign(encoding)
            whole, self.levels = convert(name, self.kind, table.values(name), self.levels, kind)
            self._all, self._next = whole, 0
        self.prepared = encoding.prepare(self.levels)

    def values(self, batch: Rows) -> npt.NDArray[Any]:
        """Stored values of one batch; batches come in order."""
        if self._all is not None:
            start, self._next = self._next, self._next + len(batch)
            return self._all[start : self._next]
        values = batch.column(self.store, self.at)
        refuse_infinite(self.encoding.name, values)
        return values

    def _refuse_foreign(self, encoding: Category) -> None:
        if not any(is_number(level) for level in encoding.levels):
            raise BadInput(
                f"column {encoding.name!r} holds values of kind {self.kind}, but the encoder was fitted "
                f"to strings such as {encoding.levels[0]!r}; convert the column."
            )

    def counts(self, batch: Rows) -> npt.NDArray[np.int64]:
        """In how many rows of a batch of strings each level occurs."""
        codes = self.values(batch)
        return np.bincount(codes[codes >= 0], minlength=len(self.levels))


def refuse_infinite(name: str, values: npt.NDArray[Any]) -> None:
    """Raise at the first infinity of a column."""
    if values.dtype.kind == "f" and np.isinf(values).any():
        row = int(np.argmax(np.isinf(values)))
        raise NonFinite(
            f"column {name!r} is infinite at row {row} (counting from 0); every number must be "
            "finite: correct it or leave it empty."
        )
