"""Arrow record batches become the batches of a table; Parquet and Arrow files are read this way."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.errors import Refused
from linsep.tables.batches import STORES, Batch, Shelf, batch
from linsep.tables.files import refuse
from linsep.tables.inference import is_number
from linsep.tables.table import BOOLEAN, NUMBER, STRING, TIME, Levels, Table, missing_name

_BATCH_ROWS = 1 << 16
_INTEGER = re.compile(r"[+-]?(0|[1-9]\d{0,17})")

#: A row of the file (counting data rows from 0) -> its place for a message.
Locate = Callable[[int, str], tuple[int | None, int | None]]


def arrow() -> Any:
    """The pyarrow module; its absence is explained."""
    try:
        import pyarrow
    except ImportError as error:
        raise Refused(
            "Reading CSV, Parquet and Arrow files needs pyarrow: pip install 'linsep[cli]'."
        ) from error
    return pyarrow


class Target:
    """Collects the target column: strings as codes, numbers as they are."""

    def __init__(self, name: str, missing: frozenset[str]) -> None:
        self.name = name
        self._levels = Levels(missing)
        self._chunks: list[npt.NDArray[Any]] = []
        self._absent: list[int] = []
        self._rows = 0

    def add(self, values: Any) -> None:
        """One more arrow array of the target."""
        pa = arrow()
        if pa.types.is_null(values.type):
            values = values.cast(pa.string())
        if kind_of_arrow(values.type) == STRING:
            chunk = _codes(values, self._levels)
            absent = np.flatnonzero(chunk < 0)
        else:
            absent = np.flatnonzero(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
            chunk = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
            chunk = chunk.to_numpy(zero_copy_only=False)
        if len(self._absent) < 10:
            self._absent += (absent[:10] + self._rows).tolist()
        self._rows += len(values)
        self._chunks.append(chunk)

    def finish(self, path: str, locate: Locate) -> npt.NDArray[Any]:
        """All of it: integers if every label is written as one, else numbers, else strings."""
        if self._absent:
            rows = ", ".join(str(row + 1) for row in self._absent[:10])
            refuse(
                path,
                f"the target {self.name!r} is missing in data row {rows} (counting from 1); every "
                "row needs one: fill it in or leave the row out.",
                *locate(self._absent[0], self.name),
            )
        y = np.concatenate(self._chunks) if self._chunks else np.empty(0)
        names = self._levels.names
        if not names:
            return y
        if all(_INTEGER.fullmatch(name) for name in names):
            return np.array([int(name) for name in names])[y]
        if all(is_number(name) for name in names):
            return np.array([float(name) for name in names])[y]
        return np.array(names, dtype=object)[y]


def kind_of_arrow(kind: Any) -> str | None:
    """Kind of a column of that arrow type, None if it has no numeric form."""
    t = arrow().types
    if t.is_dictionary(kind):
        return kind_of_arrow(kind.value_type)
    if t.is_boolean(kind):
        return BOOLEAN
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return NUMBER
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) or t.is_null(kind):
        return STRING
    return TIME if t.is_date(kind) or t.is_timestamp(kind) else None


@dataclass(frozen=True, eq=False)
class Records:
    """Record batches of a file, and how to speak of it."""

    batches: Iterable[Any]
    kinds: dict[str, str]  #: of the wanted columns
    path: str
    types: dict[str, str]  #: what the caller said about columns
    missing: frozenset[str] = frozenset()
    locate: Locate = lambda row, name: (None, None)

    def levels(self) -> dict[str, Levels]:
        """None met so far, for each column of strings."""
        return {name: Levels(self.missing) for name, kind in self.kinds.items() if kind == STRING}

    def collect(self, target: str | None) -> Table:
        """All rows as one table."""
        levels = self.levels()
        wanted = None if target is None else Target(target, self.missing)
        shelf, row = Shelf(), 0
        for records in self.batches:
            if wanted is not None:
                wanted.add(records.column(wanted.name))
            shelf.add(self._batch(records, levels, row))
            row += records.num_rows
            del records
        arrow().default_memory_pool().release_unused()
        if row == 0:
            refuse(self.path, "the table has no rows.")
        table = Table(kinds=dict(self.kinds), types=self.types, source=self.path)
        table.batches = shelf.finish()
        table.levels = {name: found.names for name, found in levels.items()}
        if wanted is not None:
            table.y = wanted.finish(self.path, self.locate)
        return table

    def stream(self) -> Iterator[Table]:
        """A table for each batch, with levels of its own: memory holds one at a time."""
        row = 0
        for records in self.batches:
            levels = self.levels()
            table = Table(kinds=dict(self.kinds), types=self.types, source=self.path)
            table.batches = [self._batch(records, levels, row)]
            table.levels = {name: found.names for name, found in levels.items()}
            row += records.num_rows
            if records.num_rows:
                yield table
        if row == 0:
            refuse(self.path, "the table has no rows.")

    def _batch(self, records: Any, levels: dict[str, Levels], row: int) -> Batch:
        """Some records as a batch; ``row`` is the number of the first."""
        columns = dict(zip(records.schema.names, records.columns, strict=True))
        stores: dict[str, list[npt.NDArray[Any]]] = {store: [] for store in STORES}
        for name, kind in self.kinds.items():
            values = columns[name]
            if kind == STRING:
                stores["codes"].append(_codes(values, levels[name]))
            elif kind == TIME:
                stores["times"].append(_times(values))
            else:
                numbers = _numbers(values, self.path, name)
                _refuse_infinite(numbers, self.path, name, row, self.locate)
                stores["numbers"].append(numbers)
        return batch(records.num_rows, **stores)


@contextmanager
def columnar_records(
    path: str, name: str, target: str | None, ignore: frozenset[str], types: dict[str, str]
) -> Iterator[Records]:
    """The batches of such a file."""
    with _explained(name), _open_columnar(path) as (schema, batches):
        names = schema.names
        twice = (
            {column for column in names if names.count(column) > 1}
            if len(set(names)) < len(names)
            else None
        )
        if twice:
            refuse(name, f"several columns are called {sorted(twice)[0]!r}; rename them.")
        for asked in [*ignore, *types, *([target] if target else [])]:
            if asked not in names:
                raise missing_name(asked, names, name)
        kinds = {}
        for column in schema:
            if column.name == target or column.name in ignore or types.get(column.name) == "drop":
                continue
            kind = kind_of_arrow(column.type)
            if kind is None:
                refuse(
                    name,
                    f"column {column.name!r} holds {column.type}, which has no numeric form; "
                    f"leave it out with ignore=[{column.name!r}].",
                )
            kinds[column.name] = kind
        yield Records(batches, kinds, name, types)


@contextmanager
def _open_columnar(path: str) -> Iterator[tuple[Any, Iterator[Any]]]:
    pa = arrow()
    with open(path, "rb") as stream:
        head = stream.read(8)
    if head[:4] == b"PAR1":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            yield file.schema_arrow, file.iter_batches(_BATCH_ROWS)
    elif head[:6] == b"ARROW1":
        with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
            yield reader.schema, (reader.get_batch(i) for i in range(reader.num_record_batches))
    else:
        with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
            yield reader.schema, iter(reader)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Whatever arrow complains about becomes a BadFile."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError):
            raise
        refuse(
            name, f"the file is damaged, cut short or of another format ({error}); write it again."
        )


def _codes(values: Any, levels: Levels) -> npt.NDArray[np.int32]:
    """Codes of an arrow array of strings; each distinct value of the batch is looked up once."""
    pa = arrow()
    if not pa.types.is_dictionary(values.type):
        if pa.types.is_null(values.type):
            return np.full(len(values), -1, np.int32)
        values = values.cast(pa.large_string()).dictionary_encode()
    of_level = np.append(
        levels.codes(values.dictionary.cast(pa.string()).to_pylist()), np.int32(-1)
    )
    indices = values.indices.cast(pa.int64()).fill_null(len(of_level) - 1)
    return np.asarray(of_level[indices.to_numpy(zero_copy_only=False)])


def _numbers(values: Any, path: str, name: str) -> npt.NDArray[np.float64]:
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    try:
        values = values.cast(pa.float64())
    except pa.ArrowInvalid:
        refuse(
            path,
            f"column {name!r} holds whole numbers beyond 2^53, which float64 cannot tell apart; "
            "store them as text if they are names, or leave the column out with "
            f"ignore=[{name!r}].",
        )
    return np.asarray(values.to_numpy(zero_copy_only=False))


def _times(values: Any) -> npt.NDArray[np.datetime64]:
    pa = arrow()
    values = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False).astype("datetime64[us]"))


def _refuse_infinite(
    numbers: npt.NDArray[np.float64], path: str, name: str, row: int, locate: Locate
) -> None:
    infinite = np.isinf(numbers)
    if infinite.any():
        at = row + int(np.argmax(infinite))
        refuse(
            path,
            f"column {name!r} is infinite or too large for float64 in data row {at + 1} "
            "(counting from 1); correct it or leave it empty.",
            *locate(at, name),
        )
