"""Encodings at work: the batches of a table become one matrix."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.data.files.inference import STRING, is_number
from linsep.errors import BadInput, NonFinite
from linsep.tables.batches import Rows
from linsep.tables.encodings import Category, Encoding, Number
from linsep.tables.planning import convert
from linsep.tables.table import Table

_BLOCK = 1 << 17  # numbers encoded together


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
    parts = _runs(columns)
    start = 0
    for batch in batches:
        out, at = X[start : start + len(batch)], 0
        for part in parts:
            part.write(batch, out[:, at : at + part.width])
            at += part.width
        start += len(batch)
    return X


def _runs(columns: list[ColumnAtWork]) -> list[NumberRun | ColumnAtWork]:
    """The columns, numbers that lie side by side taken together: there may be a hundred thousand."""
    parts: list[NumberRun | ColumnAtWork] = []
    run: list[ColumnAtWork] = []
    for column in columns:
        if run and not (column.plain and column.at == run[-1].at + 1):
            parts.append(NumberRun(run))
            run = []
        if column.plain:
            run.append(column)
        else:
            parts.append(column)
    return [*parts, *([NumberRun(run)] if run else [])]


class NumberRun:
    """Columns of numbers without gaps that are stored side by side and encoded side by side."""

    def __init__(self, columns: list[ColumnAtWork]) -> None:
        numbers = [c.encoding for c in columns if isinstance(c.encoding, Number)]
        self._names = [number.name for number in numbers]
        self.width = len(numbers)
        self._at = slice(columns[0].at, columns[0].at + self.width)
        self._fill = np.array([number.fill for number in numbers])
        self._mean = np.array([number.mean for number in numbers])
        self._scale = np.array([number.scale for number in numbers])
        self._as_is = not self._mean.any() and bool((self._scale == 1.0).all())

    def write(self, batch: Rows, out: npt.NDArray[np.float64]) -> None:
        """Their rectangle of the matrix."""
        step = max(1, _BLOCK // self.width)
        for low in range(0, len(batch), step):
            here = slice(low, low + step)
            x = batch.numbers_of(here, self._at)
            if not np.isfinite(x).all():
                for j, name in enumerate(self._names):
                    refuse_infinite(name, batch.column("numbers", self._at.start + j))
                x = np.where(np.isnan(x), self._fill, x)
            out[here] = x if self._as_is else (x - self._mean) / self._scale


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

    @property
    def plain(self) -> bool:
        """Whether it is one number for each row, as stored."""
        encoding = self.encoding
        return self._as_is and isinstance(encoding, Number) and not encoding.indicator

    @property
    def width(self) -> int:
        """How many columns it makes."""
        return self.encoding.width

    def write(self, batch: Rows, out: npt.NDArray[np.float64]) -> None:
        """Its columns of the matrix, which are zero before."""
        values = self.values(batch)
        if isinstance(self.encoding, Number):
            self.encoding.write(values, out)
        else:
            rows, places, entries = self.encoding.entries(values, self.prepared)
            out[rows, places] = entries

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
