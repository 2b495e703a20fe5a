"""Application of encodings to the batches of a table: one matrix, or one per batch, or column statistics."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data.files.inference import NUMBER, STRING, TIME, is_number
from linsep.errors import BadInput
from linsep.tables.batches import Batch
from linsep.tables.encodings import Category, Encoding, Entries, Number
from linsep.tables.planning import convert
from linsep.tables.statistics import ColumnStatistics, infinite_number
from linsep.tables.table import STORE, Table

_BLOCK = 1 << 17  # numbers encoded together


def matrix(encodings: tuple[Encoding, ...], table: Table, sparse: bool, consume: bool) -> Any:
    """Return the encoded table, dense or CSR; ``consume`` frees each batch after it is encoded."""
    shape = len(table), sum(encoding.width for encoding in encodings)
    columns, batches = _columns(encodings, table), _release_after_use(table, consume)
    if sparse:
        blocks = [_sparse(columns, batch, shape[1]) for batch in batches]
        return blocks[0] if len(blocks) == 1 else sp.vstack(blocks, format="csr")
    X = np.zeros(shape)  # the system allocates pages when they are first written
    parts, start = _runs(columns), 0
    for batch in batches:
        _write(parts, batch, X[start : start + len(batch)])
        start += len(batch)
    return X


def blocks(encodings: tuple[Encoding, ...], table: Table, sparse: bool) -> Iterator[Any]:
    """Yield the encoded rows of each batch, as a dense array or a CSR matrix."""
    columns, width = _columns(encodings, table), sum(encoding.width for encoding in encodings)
    parts = _runs(columns)
    for batch in _release_after_use(table, consume=False):
        if sparse:
            yield _sparse(columns, batch, width)
        else:
            X = np.zeros((len(batch), width))
            _write(parts, batch, X)
            yield X


def _columns(encodings: tuple[Encoding, ...], table: Table) -> list[BoundEncoding]:
    return [BoundEncoding(encoding, table) for encoding in encodings if encoding.width]


def _release_after_use(table: Table, consume: bool) -> Iterator[Batch]:
    """Yield the batches in order and release each after its use."""
    left = table.batches if consume else list(table.batches)
    while left:
        batch = left.pop(0)
        yield batch
        batch.release()


def _write(parts: list[NumberRun | BoundEncoding], batch: Batch, out: FloatArray) -> None:
    """Write the encoded rows of a batch into a matrix of zeros."""
    at = 0
    for part in parts:
        part.write(batch, out[:, at : at + part.width])
        at += part.width


def _runs(columns: list[BoundEncoding]) -> list[NumberRun | BoundEncoding]:
    """Return the columns, with neighbouring number columns merged to runs, because there may be a hundred thousand."""
    parts: list[NumberRun | BoundEncoding] = []
    run: list[BoundEncoding] = []
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
    """Columns of numbers without indicators that are adjacent both in the table and in the matrix."""

    def __init__(self, columns: list[BoundEncoding]) -> None:
        numbers = [c.encoding for c in columns if isinstance(c.encoding, Number)]
        self._names = [number.name for number in numbers]
        self.width = len(numbers)
        self._at = slice(columns[0].at, columns[0].at + self.width)
        self._fill = np.array([number.fill for number in numbers])
        self._mean = np.array([number.mean for number in numbers])
        self._scale = np.array([number.scale for number in numbers])
        self._as_is = not self._mean.any() and bool((self._scale == 1.0).all())

    def write(self, batch: Batch, out: FloatArray) -> None:
        """Write the encoded columns of a batch into their part of the matrix."""
        step = max(1, _BLOCK // self.width)
        for low in range(0, len(batch), step):
            here = slice(low, low + step)
            x = batch.numbers_of(here, self._at)
            if not np.isfinite(x).all():
                for j, name in enumerate(self._names):
                    refuse_infinite(name, batch.column("numbers", self._at.start + j))
                x = np.where(np.isnan(x), self._fill, x)
            out[here] = x if self._as_is else (x - self._mean) / self._scale


def _sparse(columns: list[BoundEncoding], batch: Batch, width: int) -> Any:
    """Return the encoded rows of a batch as a CSR matrix."""
    parts, at = [], 0
    for column in columns:
        rows, places, entries = column.entries(batch)
        stored = entries != 0
        parts.append((rows[stored], at + places[stored], entries[stored]))
        at += column.encoding.width
    rows, places, entries = (np.concatenate([part[i] for part in parts]) for i in range(3))
    return sp.csr_array((entries, (rows, places)), shape=(len(batch), width))


class BoundEncoding:
    """An encoding applied to the batches of one table."""

    def __init__(self, encoding: Encoding, table: Table) -> None:
        self.encoding = encoding
        self.kind = table.kinds[encoding.name]
        self.store, self.at = table.place(encoding.name)
        self._as_is = self.kind == encoding.kind
        if not self._as_is and isinstance(encoding, Category) and self.kind != STRING:
            self._refuse_foreign(encoding)

    @property
    def plain(self) -> bool:
        """Whether the column is a number that is stored as such and has no indicator."""
        encoding = self.encoding
        return self._as_is and isinstance(encoding, Number) and not encoding.indicator

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self.encoding.width

    def write(self, batch: Batch, out: FloatArray) -> None:
        """Write the encoded column of a batch into its part of the matrix, which must be zero."""
        if isinstance(self.encoding, Number):
            self.encoding.write(self.opened(batch)[0], out)
        else:
            rows, places, entries = self.entries(batch)
            out[rows, places] = entries

    def entries(self, batch: Batch) -> Entries:
        """Return the entries of the matrix for one batch, as (rows, columns, values)."""
        values, levels = self.opened(batch)
        return self.encoding.entries(values, self.encoding.prepare(levels))

    def opened(self, batch: Batch) -> tuple[npt.NDArray[Any], list[str]]:
        """Return the values of one batch, converted to the kind of the encoding, and their levels."""
        return opened_column(batch, self.encoding.name, self.kind, self.at, self.encoding.kind)

    def _refuse_foreign(self, encoding: Category) -> None:
        if not any(is_number(level) for level in encoding.levels):
            raise BadInput(
                f"column {encoding.name!r} holds values of kind {self.kind}, but the encoder was fitted "
                f"to strings such as {encoding.levels[0]!r}; convert the column."
            )

    def counts(self, batch: Batch) -> dict[str, int]:
        """Return the number of rows of a batch in which each level occurs."""
        codes, levels = self.opened(batch)
        counts = np.bincount(codes[codes >= 0], minlength=len(levels))
        return {level: int(n) for level, n in zip(levels, counts, strict=True) if n}


def opened_column(
    batch: Batch, name: str, kind: str, at: int, wanted: str
) -> tuple[npt.NDArray[Any], list[str]]:
    """Return the values of one column of a batch, converted from ``kind`` to ``wanted``, and their levels."""
    values = batch.column(STORE[kind], at)
    refuse_infinite(name, values)
    levels = batch.levels(at) if kind == STRING else []
    return (values, levels) if kind == wanted else convert(name, kind, values, levels, wanted)


def collect(found: ColumnStatistics, table: Table, batch: Batch) -> None:
    """Add the rows of a batch to the statistics of the columns."""
    found.add_numbers(_numbers(found, table, batch))
    for name, strings in found.strings.items():
        kind, at = table.kinds[name], table.place(name)[1]
        strings.add(*opened_column(batch, name, kind, at, STRING))
    for name, times in found.times.items():
        kind, at = table.kinds[name], table.place(name)[1]
        times.add(opened_column(batch, name, kind, at, TIME)[0])
    found.n += len(batch)


def _numbers(found: ColumnStatistics, table: Table, batch: Batch) -> FloatArray:
    """Return all columns that are encoded as numbers, as a matrix (rows, columns)."""
    names = found.number_names
    stored = [name for name, kind in table.kinds.items() if STORE[kind] == "numbers"]
    if names == stored and all(found.kinds[name] in (table.kinds[name], NUMBER) for name in names):
        return batch.numbers_of(slice(None), slice(None))
    columns = [
        opened_column(batch, name, table.kinds[name], table.place(name)[1], found.kinds[name])[0]
        for name in names
    ]
    return np.column_stack(columns) if columns else np.empty((len(batch), 0))


def refuse_infinite(name: str, values: npt.NDArray[Any]) -> None:
    """Raise if a column contains infinity, with the row of the first."""
    if values.dtype.kind == "f" and np.isinf(values).any():
        raise infinite_number(name, int(np.argmax(np.isinf(values))))
