"""``read_table``: read files of any supported format into a table."""

from __future__ import annotations

import contextlib
import math
import os
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

import numpy.typing as npt

from linsep.data.files.arrays import NpzFile
from linsep.data.files.columnar import Records
from linsep.data.files.columns import (
    Levels,
    Target,
    arrow,
    numbers,
    string_codes,
    times,
    whole_labels,
)
from linsep.data.files.datafile import DataFile, copied, unchanged
from linsep.data.files.formats import MATRICES, Reading, format_of, open_records
from linsep.data.files.inference import BOOLEAN, MISSING, NUMBER, STRING, TIME
from linsep.data.files.libsvm import read_rows
from linsep.data.files.listing import list_files
from linsep.data.files.source import Source, name_of, opened, refuse
from linsep.errors import BadInput
from linsep.monitoring import Job
from linsep.tables.batches import STORES, Batch, BatchCollector, batch
from linsep.tables.table import Table


def read_table(  # noqa: PLR0913
    source: Source,
    target: str | None = None,
    *,
    format: str | None = None,
    types: Mapping[str, str] | None = None,
    ignore: Iterable[str] = (),
    delimiter: str | None = None,
    header: bool = True,
    decimal: str = ".",
    thousands: str | None = None,
    quote: str | None = '"',
    encoding: str = "utf-8",
    missing: Iterable[str] = MISSING,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
    storage_options: Mapping[str, Any] | None = None,
    unlabelled: str = "error",
) -> Table:
    r"""Read a file into a table that an :class:`~linsep.Encoder` turns into numbers.

    Formats: CSV, TSV, Parquet, Arrow, Feather, LIBSVM, and npz with arrays ``X`` and ``y`` or a SciPy matrix. Text
    files may be compressed with gzip, bzip2 or xz.

    Parameters
    ----------
    source : path, URL, "-" for standard input, binary stream, or pyarrow.dataset.Dataset
        A list of paths, a pattern such as ``"part-*.csv"`` or a directory is read as one table, in the order of the
        names; directories called ``column=value`` in it (Hive partitions) become columns. URLs such as
        ``"s3://bucket/table/"`` or ``"https://host/table.csv.gz"`` are read through fsspec.
    target : str, optional
        Column to predict; it becomes ``y``.
    format : {"csv", "tsv", "parquet", "arrow", "libsvm", "npz"}, optional
        By default inferred from the content and name of the file.
    types : dict {column: type}, optional
        "number", "boolean", "category", "hashed", "text", "time" or "drop" instead of the inferred type; the encoder
        uses it too.
    ignore : list of str
        Columns to leave out.
    delimiter, header, decimal, thousands, quote, encoding
        Format of a text file. By default the delimiter is inferred from ``, ; | \t``, and numbers have no separators of
        thousands.
    missing : list of str
        Texts that mean a missing value in a text file.
    n_features, zero_based
        As in :func:`~linsep.read_libsvm`, for LIBSVM files.
    storage_options : dict, optional
        Options of the file system of a URL, as fsspec takes them: ``{"anon": True}`` for a public bucket, for instance.
    unlabelled : {"error", "drop"}
        Whether rows without a target raise an error or are left out; ``Table.unlabelled`` counts those left out.

    Returns
    -------
    Table
        Rows with the ``kinds`` of their columns, the target ``y``, and ``matrix`` if the file contains only a matrix
        (LIBSVM, npz).

    Raises
    ------
    BadFile
        If a file cannot be read, a value contradicts the type of its column, or a target is missing; the message
        names file, line and column and says what to do.
    BadInput
        If there is no such column or file, or an argument is not usable.
    Refused
        If the package that reads this format is not installed.

    See Also
    --------
    Encoder : Encode the columns of a table as numbers.
    scan : Numeric files larger than memory, without a copy.
    read_libsvm : Read a LIBSVM file as a CSR matrix.

    Notes
    -----
    The first megabyte of a text file decides the type of each column. Blanks around values are ignored. Rows are
    read and parsed in batches; beyond 64 MB the table is stored in a temporary file.

    Examples
    --------
    >>> import io
    >>> from linsep import read_table
    >>> table = read_table(io.BytesIO(b"age,city,bought\n31,Oslo,yes\n58,Bergen,no\n"), "bought")
    >>> table.kinds
    {'age': 'number', 'city': 'string'}
    >>> table.y
    array(['yes', 'no'], dtype=object)
    """
    how = Reading.of(
        format=format,
        types=types,
        ignore=ignore,
        missing=missing,
        unlabelled=unlabelled,
        delimiter=delimiter,
        header=header,
        decimal=decimal,
        thousands=thousands,
        quote=quote,
        encoding=encoding,
    )
    return read_as(source, target, how, storage_options, n_features, zero_based)


def read_as(
    source: Source,
    target: str | None,
    how: Reading,
    storage_options: Mapping[str, Any] | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> Table:
    """The table of ``read_table``, read as ``how`` says."""
    files = list_files(source, storage_options)
    if not files:
        raise BadInput(f"there are no files in {source!r}; give at least one path.")
    if len(files) > 1:
        return _collect(_records_of(files, target, how), target, how)
    with _open(files[0], target, how, n_features, zero_based) as found:
        return found if isinstance(found, Table) else _collect([found], target, how)


def _records_of(files: list[Any], target: str | None, how: Reading) -> Iterator[Records]:
    """Yield the records of several files, read with the column types of the first; raise if the columns differ."""
    first: Records | None = None
    for file in files:
        with _open(file, target, how if first is None else like(first.kinds, how)) as found:
            if isinstance(found, Table):
                raise BadInput(
                    f"{name_of(file)} has no column names, and several such files do not form a table: open "
                    "them with linsep.scan."
                )
            if first is None:
                first = found
            elif found.kinds != first.kinds:
                refuse(
                    found.path,
                    f"its columns are not those of {first.path}: {found.kinds} and {first.kinds}.",
                )
            yield replace(found, types=first.types)


def column_kinds(file: DataFile, target: str | None, how: Reading) -> dict[str, str] | None:
    """Return the kinds of the columns of a file, or None if it is a matrix without column names."""
    kind = format_of(file, how.format)
    if kind in MATRICES:
        return None
    with open_records(file, kind, target, how) as records:
        return dict(records.kinds)


def read_part(
    file: DataFile, target: str | None, how: Reading, kinds: dict[str, str] | None
) -> tuple[Table, Target | npt.NDArray[Any] | None]:
    """Read one of several files of a table into memory; return it and its target, not yet decoded.

    ``kinds`` are the kinds of the columns in the first file.
    """
    kind = format_of(file, how.format)
    with unchanged([file]):
        if kinds is None:
            table = _matrix(file, kind, None, "auto")
            return table, table.y
        with open_records(file, kind, target, like(kinds, how)) as records:
            return _gather([replace(records, types=how.types)], target, how, math.inf)


#: Type in ``types`` for each kind of column.
_WORDS = {NUMBER: "number", BOOLEAN: "boolean", STRING: "category", TIME: "time"}


def like(kinds: dict[str, str], how: Reading) -> Reading:
    """Return settings that read a file with the column kinds of another file."""
    words = {name: _WORDS[kind] for name, kind in kinds.items()}
    return replace(how, types={**words, **how.types})


def stream_table(source: Source, **how: Any) -> Iterator[Table]:
    """Yield the rows of a file as many small tables, so that few rows are in memory at a time.

    ``how`` are the arguments of ``read_table`` except the target. LIBSVM and npz files are read as one table.
    """
    shape = {key: how.pop(key) for key in ("n_features", "zero_based") if key in how}
    files = list_files(source, how.pop("storage_options", None))
    reading = Reading.of(**how)
    if len(files) > 1:
        for records in _records_of(files, None, reading):
            yield from _stream(records)
        return
    with _open(files[0], None, reading, **shape) as found:
        yield from (found,) if isinstance(found, Table) else _stream(found)


@contextlib.contextmanager
def _open(
    source: Source,
    target: str | None,
    how: Reading,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> Iterator[Table | Records]:
    """Open a file: provide a table if it is a matrix, otherwise records to be read."""
    with Job("read") as job, _file(source) as file, unchanged([file]):
        job.total = max(1, file.size or 1)
        kind = format_of(file, how.format)
        if kind not in MATRICES:
            with open_records(file, kind, target, how) as records:
                yield records
        elif target is not None or how.types:
            raise BadInput(
                f"{file}: a {kind} file has no column names; leave target and types out."
            )
        else:
            yield _matrix(file, kind, n_features, zero_based)


@contextlib.contextmanager
def _file(source: Source) -> Iterator[DataFile]:
    """Provide a file that can be read more than once; streams and pipes are copied to a temporary file."""
    if isinstance(source, DataFile) and (
        os.path.isfile(source.path) or not os.path.exists(source.path)
    ):
        yield source
    else:
        with opened(source) as stream, copied(stream, name_of(source)) as copy:
            yield copy


def _matrix(file: DataFile, kind: str, n_features: int | None, zero_based: bool | str) -> Table:
    """Read a file that is a matrix without column names."""
    name = str(file)
    if kind == "libsvm":
        data = read_rows(file, name, n_features, zero_based)
        return Table(matrix=data.X, y=whole_labels(data.y), source=name)
    if kind == "npy":
        refuse(
            name, "a .npy file holds one array; store X and y in an .npz file, or use linsep.scan."
        )
    with file.on_disk() as local:
        arrays = NpzFile(local.path, name)
        X = arrays.matrix()
        y = arrays.vector("y", X.shape[0], "y") if "y" in arrays.arrays else None
    return Table(matrix=X, y=y, source=name)


def _collect(files: Iterable[Records], target: str | None, how: Reading) -> Table:
    """Return all rows of all files as one table, with its target."""
    table, wanted = _gather(files, target, how, None)
    if wanted is not None:
        table.y, table.unlabelled = wanted.values(), wanted.dropped
    return table


def _gather(
    files: Iterable[Records], target: str | None, how: Reading, memory_limit: float | None
) -> tuple[Table, Target | None]:
    """Return all rows as one table, of which ``memory_limit`` bytes stay in memory, and the target, not yet decoded."""
    collector, rows = BatchCollector(memory_limit), 0
    first: Records | None = None
    wanted: Target | None = None
    for records in files:
        if first is None:
            drop = how.unlabelled == "drop"
            first = records
            wanted = None if target is None else Target(target, records.missing, drop)
        row = 0
        for part in records.batches:
            found = _batch(records, part, row)
            if wanted is not None and len(absent := wanted.add(part.column(wanted.name))):
                found = found.without(absent)
            collector.add(found)
            row += part.num_rows
            del part
        if wanted is not None:
            wanted.end_file(records.path, records.locate)
        rows += row
    arrow().default_memory_pool().release_unused()
    assert first is not None
    if rows == 0:
        refuse(first.path, "the table has no rows.")
    if wanted is not None and wanted.dropped == rows:
        refuse(first.path, f"no row has a target {wanted.name!r}.")
    table = _table(first, collector.finish())
    table.reading = how.meaning(target)
    return table, wanted


def _stream(records: Records) -> Iterator[Table]:
    """Yield a table for each batch; memory holds one at a time."""
    row = 0
    for part in records.batches:
        table = _table(records, [_batch(records, part, row)])
        row += part.num_rows
        if part.num_rows:
            yield table
    if row == 0:
        refuse(records.path, "the table has no rows.")


def _table(records: Records, batches: list[Any]) -> Table:
    table = Table(kinds=dict(records.kinds), types=records.types, source=records.path)
    table.batches = batches
    return table


def _batch(records: Records, part: Any, row: int) -> Batch:
    """Convert a record batch to a batch of a table; ``row`` is the number of its first row."""
    columns = dict(zip(part.schema.names, part.columns, strict=True))
    stores: dict[str, list[npt.NDArray[Any]]] = {store: [] for store in STORES}
    levels = []
    for name, kind in records.kinds.items():
        values = columns[name]
        if kind == STRING:
            known = Levels(records.missing)
            stores["codes"].append(string_codes(values, known))
            levels.append(known.names)
        elif kind == TIME:
            stores["times"].append(times(values))
        else:
            stores["numbers"].append(numbers(values, records.path, name, row, records.locate))
    return batch(part.num_rows, **stores, levels=levels)
