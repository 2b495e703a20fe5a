"""Readers of Parquet and Arrow files, and ``Records``: batches of arrow columns with their inferred kinds."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any

from linsep.data.files.columns import (
    Locate,
    arrow,
    kind_of_arrow,
    missing_name,
    missing_target,
    refuse_ignored_target,
)
from linsep.data.files.datafile import DataFile, Partition
from linsep.data.files.inference import NUMBER, STRING
from linsep.data.files.source import refuse

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Records:
    """Record batches of a file with the kinds of their columns, and positions for messages."""

    batches: Iterable[Any]
    kinds: dict[str, str]  #: kinds of the feature columns, in file order
    path: str
    types: dict[str, str]  #: column types set by the caller
    missing: frozenset[str] = frozenset()
    locate: Locate = lambda row, name: (None, None)


@dataclass(frozen=True)
class ColumnSettings:
    """Column settings of the caller: the target, columns to ignore, and types."""

    target: str | None
    ignore: frozenset[str]
    types: dict[str, str]
    needs_target: bool = False  #: a table without a target is refused

    def check(self, names: Iterable[str], file: str) -> None:
        """Raise BadInput if a column of the settings is not among the names."""
        refuse_ignored_target(self.target, self.ignore)
        known = dict.fromkeys(names)
        if self.needs_target and self.target is None:
            raise missing_target(known, file)
        used = [*self.ignore, *self.types, *([] if self.target is None else [self.target])]
        for asked in used:
            if asked not in known:
                raise missing_name(asked, known, file, used)

    def is_feature(self, column: str) -> bool:
        """Return whether the column is read as a feature."""
        return column != self.target and self.is_read(column)

    def is_read(self, column: str) -> bool:
        """Return whether the column is read, as a feature or as the target."""
        return column not in self.ignore and self.types.get(column) != "drop"


@contextmanager
def columnar_records(file: DataFile, settings: ColumnSettings, entries: int) -> Iterator[Records]:
    """Open a Parquet or Arrow file as records, with about ``entries`` numbers per batch."""
    name = str(file)
    with explained_arrow(name), _open_columnar(file, entries) as (schema, read):
        extra = directory_columns(file, schema.names)
        settings.check([*schema.names, *(column for column, *_ in extra)], name)
        kinds = kinds_of(schema, settings, name)
        wanted = [column for column in schema.names if column in kinds or column == settings.target]
        records = Records(read(wanted), kinds, name, settings.types)
        yield with_directory_columns(records, extra, settings)


def kinds_of(schema: Any, settings: ColumnSettings, name: str) -> dict[str, str]:
    """Return the kinds of the features of a schema; raise for types that are neither numbers, text nor times."""
    twice = [column for column in schema.names if schema.names.count(column) > 1]
    if twice:
        refuse(name, f"several columns are called {min(twice)!r}; rename them.")
    kinds = {}
    for column in schema:
        kind = kind_of_arrow(column.type) if settings.is_read(column.name) else None
        if column.name == settings.target and kind is None:
            refuse(
                name,
                f"the target {column.name!r} holds {column.type}; it must hold one number, string or boolean per row.",
            )
        if not settings.is_feature(column.name):
            continue
        if kind is None:
            refuse(
                name,
                f"column {column.name!r} holds {column.type}, which has no numeric form; "
                f"leave it out with ignore=[{column.name!r}].",
            )
        kinds[column.name] = kind
    return kinds


def directory_columns(file: DataFile, names: Iterable[str]) -> Partition:
    """Return the partition columns of a file that are not among its own columns."""
    own = set(names)
    return tuple(column for column in file.partition if column[0] not in own)


def with_directory_columns(records: Records, extra: Partition, settings: ColumnSettings) -> Records:
    """Return the records with the partition columns of the file appended."""
    extra = tuple(column for column in extra if settings.is_read(column[0]))
    if not extra:
        return records
    more = {
        column: STRING if kind == "string" else NUMBER
        for column, _, kind in extra
        if column != settings.target
    }
    ours = {column for column, *_ in extra}
    return replace(
        records,
        batches=_extend(records.batches, extra),
        kinds={**records.kinds, **more},
        locate=lambda row, name: (None, None) if name in ours else records.locate(row, name),
    )


def _extend(batches: Iterable[Any], extra: Partition) -> Iterator[Any]:
    pa = arrow()
    scalars = [pa.scalar(value, pa.string()).cast(kind) for _, value, kind in extra]
    for part in batches:
        columns = [*part.columns, *(pa.repeat(one, part.num_rows) for one in scalars)]
        names = [*part.schema.names, *(column for column, *_ in extra)]
        yield pa.RecordBatch.from_arrays(columns, names=names)


Read = Callable[[list[str]], Iterator[Any]]  #: names of columns -> their batches


@contextmanager
def _open_columnar(file: DataFile, entries: int) -> Iterator[tuple[Any, Read]]:
    """Provide the schema of a file, and a function that reads the given columns in batches."""
    pa = arrow()
    with file.random_access() as place, _native(place) as source:
        head = source.read(8)
        source.seek(0)
        if head[:4] == b"PAR1":
            import pyarrow.parquet as pq

            elsewhere = not isinstance(place, str)  # remote: fetch all requested columns together
            with pq.ParquetFile(
                source, page_checksum_verification=True, pre_buffer=elsewhere
            ) as parquet:
                rows = rows_of_batch(entries, parquet.metadata.num_columns)
                groups = range(parquet.num_row_groups)  # read one by one to limit memory
                yield (
                    parquet.schema_arrow,
                    lambda wanted: (
                        part
                        for g in groups
                        for part in parquet.iter_batches(rows, row_groups=[g], columns=wanted)
                    ),
                )
        else:
            # Not memory-mapped: truncation of a mapped file would kill the process.
            stream = head[:6] != b"ARROW1"
            with pa.ipc.open_stream(source) if stream else pa.ipc.open_file(source) as reader:
                schema = reader.schema
            rows = rows_of_batch(entries, len(schema))
            read = _stream_batches if stream else _file_batches
            yield schema, lambda wanted: _slice(_validate(read(source, schema, wanted)), rows)


def _stream_batches(source: Any, schema: Any, wanted: list[str]) -> Iterator[Any]:
    """Yield the batches of an Arrow stream, with the wanted columns only."""
    source.seek(0)
    with arrow().ipc.open_stream(source, options=_options(schema, wanted)) as reader:
        yield from reader


def _file_batches(source: Any, schema: Any, wanted: list[str]) -> Iterator[Any]:
    """Yield the batches of an Arrow file, with the wanted columns only; the bytes of the others are not read."""
    ipc = arrow().ipc
    with ipc.open_file(source, options=_options(schema, wanted)) as reader:
        for number in range(reader.num_record_batches):
            try:
                records = reader.get_batch(number)
            except MemoryError:  # possibly a damaged size: Arrow checks it if it reads all columns
                with ipc.open_file(source) as whole:
                    records = whole.get_batch(number).select(wanted)
            yield records


def _options(schema: Any, wanted: list[str]) -> Any:
    fields = [schema.get_field_index(column) for column in wanted]
    return arrow().ipc.IpcReadOptions(included_fields=fields)


def _native(place: Any) -> Any:
    """Open a path or wrap a stream of bytes as a pyarrow file."""
    pa = arrow()
    return pa.OSFile(place) if isinstance(place, str) else pa.PythonFile(place, mode="r")


def rows_of_batch(entries: int, columns: int) -> int:
    """Return the number of rows of a batch with about ``entries`` numbers."""
    return min(_BATCH_ROWS, max(1, entries // max(1, columns)))


def _validate(batches: Iterable[Any]) -> Iterator[Any]:
    """Yield the batches after validating offsets and lengths, which Arrow does not check when it opens a file."""
    for records in batches:
        records.validate(full=True)
        yield records


def _slice(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Yield the batches in slices of at most ``rows`` rows, without copies."""
    for records in batches:
        for first in range(0, max(1, records.num_rows), rows):
            yield records.slice(first, rows)


@contextmanager
def explained_arrow(name: str) -> Iterator[None]:
    """Convert errors of pyarrow to BadFile with the name of the file."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | MemoryError):
            raise
        refuse(
            name, f"the file is damaged, cut short or of another format ({error}); write it again."
        )
