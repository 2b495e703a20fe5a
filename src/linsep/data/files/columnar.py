"""Records: batches of arrow columns with the kinds that were inferred. Parquet and Arrow files become records."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from linsep.data.files.columns import (
    Locate,
    arrow,
    kind_of_arrow,
    missing_name,
    refuse_ignored_target,
)
from linsep.data.files.source import refuse

_BATCH_ROWS = 1 << 16


@dataclass(frozen=True, eq=False)
class Records:
    """Record batches of a file, and how messages speak of it."""

    batches: Iterable[Any]
    kinds: dict[str, str]  #: of the columns to read, in their order, without the target
    path: str
    types: dict[str, str]  #: what the caller said about columns
    missing: frozenset[str] = frozenset()
    locate: Locate = lambda row, name: (None, None)


@contextmanager
def columnar_records(
    path: str,
    name: str,
    target: str | None,
    ignore: frozenset[str],
    types: dict[str, str],
    entries: int,
) -> Iterator[Records]:
    """Records of the Parquet or Arrow file at ``path``, about ``entries`` numbers in a batch."""
    with _explained(name), _open_columnar(path, entries) as (schema, batches):
        names = schema.names
        if len(set(names)) < len(names):
            twice = sorted({column for column in names if names.count(column) > 1})
            refuse(name, f"several columns are called {twice[0]!r}; rename them.")
        refuse_ignored_target(target, ignore)
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
        _refuse_unusable_target(name, schema, target)
        yield Records(batches, kinds, name, types)


@contextmanager
def _open_columnar(path: str, entries: int) -> Iterator[tuple[Any, Iterator[Any]]]:
    pa = arrow()
    with open(path, "rb") as stream:
        head = stream.read(8)
    if head[:4] == b"PAR1":
        import pyarrow.parquet as pq

        with pq.ParquetFile(path, page_checksum_verification=True) as file:
            rows = _height(entries, file.metadata.num_columns)
            groups = range(file.num_row_groups)  # no more than one of them is in memory
            yield (
                file.schema_arrow,
                (part for g in groups for part in file.iter_batches(rows, row_groups=[g])),
            )
    elif head[:6] == b"ARROW1":
        # not a memory map: a file that shrinks meanwhile would end the process
        with pa.OSFile(path) as source, pa.ipc.open_file(source) as reader:
            batches = (reader.get_batch(i) for i in range(reader.num_record_batches))
            yield reader.schema, _sliced(_validated(batches), _height(entries, len(reader.schema)))
    else:
        with pa.OSFile(path) as source, pa.ipc.open_stream(source) as reader:
            yield reader.schema, _sliced(_validated(reader), _height(entries, len(reader.schema)))


def _height(entries: int, columns: int) -> int:
    """Rows of a batch."""
    return min(_BATCH_ROWS, max(1, entries // max(1, columns)))


def _refuse_unusable_target(name: str, schema: Any, target: str | None) -> None:
    if target is None:
        return
    kind = schema.field(target).type
    if kind_of_arrow(kind) is None:
        refuse(
            name,
            f"the target {target!r} holds {kind}; it must hold one number, string or boolean per row.",
        )


def _validated(batches: Iterable[Any]) -> Iterator[Any]:
    """Batches whose offsets and lengths are sound: Arrow trusts those of a file until they are used."""
    for records in batches:
        records.validate(full=True)
        yield records


def _sliced(batches: Iterator[Any], rows: int) -> Iterator[Any]:
    """Batches of at most so many rows; nothing is copied."""
    for records in batches:
        for first in range(0, max(1, records.num_rows), rows):
            yield records.slice(first, rows)


@contextmanager
def _explained(name: str) -> Iterator[None]:
    """Whatever arrow complains about becomes a BadFile."""
    pa = arrow()
    try:
        yield
    except (pa.ArrowException, UnicodeDecodeError, OSError) as error:
        if isinstance(error, FileNotFoundError | PermissionError | IsADirectoryError | MemoryError):
            raise
        refuse(
            name, f"the file is damaged, cut short or of another format ({error}); write it again."
        )
