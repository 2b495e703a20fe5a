"""``read_table``: one verb for every kind of file."""

from __future__ import annotations

import contextlib
import glob
import math
import os
import shutil
import tempfile
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
from linsep.data.files.formats import MATRICES, Reading, format_of, open_records
from linsep.data.files.inference import BOOLEAN, MISSING, NUMBER, STRING, TIME
from linsep.data.files.libsvm import read_rows
from linsep.data.files.source import Source, name_of, opened, refuse
from linsep.errors import BadInput
from linsep.monitoring import Job
from linsep.tables.batches import STORES, Batch, Shelf, batch
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
    quote: str | None = '"',
    encoding: str = "utf-8",
    missing: Iterable[str] = MISSING,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> Table:
    r"""Read a file into a table that an :class:`~linsep.Encoder` turns into numbers.

    CSV and TSV, Parquet, Arrow and Feather, LIBSVM, and npz with arrays ``X`` and ``y`` or a SciPy
    matrix; text also compressed with gzip, bzip2 or xz. What a column of text holds is decided by
    the first megabyte of the file; a value below that contradicts it is refused with file, line and
    column. Blanks around text do not count. Rows come in batches and are stored as numbers at once.

    Parameters
    ----------
    source : path, "-" for standard input, or binary stream
        A list of paths, a pattern such as ``"part-*.csv"`` or a directory is one table, read in the order of the names.
    target : str, optional
        The column to predict; it becomes ``y``. A missing target is an error that names the rows.
    format : {"csv", "tsv", "parquet", "arrow", "libsvm", "npz"}, optional
        By default content and name of the file decide.
    types : dict {column: type}, optional
        "number", "boolean", "category", "hashed", "text", "time" or "drop" instead of what
        would be inferred; the encoder follows it too.
    ignore : list of str
        Columns to leave out.
    delimiter, header, decimal, quote, encoding
        How a text file is written. The delimiter is found out if it is one of ``, ; | \t``.
    missing : list of str
        What stands for a missing value in a text file.
    n_features, zero_based
        As in :func:`~linsep.read_libsvm`, for LIBSVM files.

    Returns
    -------
    Table
        With ``kinds`` of its columns, the target ``y``, and ``matrix`` if the file held nothing but
        a matrix (LIBSVM, npz).

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
        delimiter=delimiter,
        header=header,
        decimal=decimal,
        quote=quote,
        encoding=encoding,
    )
    files = files_of(source)
    if len(files) > 1:
        return _collect(_records_of(files, target, how), target)
    with _open(files[0], target, how, n_features, zero_based) as found:
        return found if isinstance(found, Table) else _collect([found], target)


def files_of(source: Any) -> list[Any]:
    """The files that a list, a directory or a pattern names, in order; any other source is one of its own."""
    if isinstance(source, list | tuple):
        return [file for one in source for file in files_of(one)]
    if not isinstance(source, str | os.PathLike) or source == "-" or os.path.isfile(source):
        return [source]
    if os.path.isdir(source):
        names = sorted(name for name in os.listdir(source) if name[0] not in "._")
        paths = [os.path.join(source, name) for name in names]
        files = [path for path in paths if os.path.isfile(path)]
        if not files:
            raise IsADirectoryError(f"{os.fspath(source)} is a directory without files.")
        return files
    return sorted(glob.glob(os.fspath(source))) or [source]


def _records_of(files: list[Any], target: str | None, how: Reading) -> Iterator[Records]:
    """Records of several files, which have the columns of the first and are read as it is."""
    first: Records | None = None
    for file in files:
        with _open(file, target, how if first is None else like(first.kinds, how)) as found:
            if isinstance(found, Table):
                raise BadInput(
                    f"{name_of(file)} has no column names, and several such files are no table: open them with "
                    "linsep.scan."
                )
            if first is None:
                first = found
            elif found.kinds != first.kinds:
                refuse(
                    found.path,
                    f"its columns are not those of {first.path}: {found.kinds} and {first.kinds}.",
                )
            yield replace(found, types=first.types)


def column_kinds(path: str, target: str | None, how: Reading) -> dict[str, str] | None:
    """Kinds of the columns of a file; None if it holds a matrix without column names."""
    kind = format_of(path, path, how.format)
    if kind in MATRICES:
        return None
    with open_records(path, path, kind, target, how) as records:
        return dict(records.kinds)


def read_part(
    path: str, target: str | None, how: Reading, kinds: dict[str, str] | None
) -> tuple[Table, Target | npt.NDArray[Any] | None]:
    """One of several files that make one table, held in memory, and its target before it is decoded.

    ``kinds`` are those of the columns of the first file.
    """
    kind = format_of(path, path, how.format)
    if kinds is None:
        table = _matrix(path, path, kind, None, "auto")
        return table, table.y
    with open_records(path, path, kind, target, like(kinds, how)) as records:
        return _gather([replace(records, types=how.types)], target, math.inf)


#: What ``types`` calls a column of each kind.
_WORDS = {NUMBER: "number", BOOLEAN: "boolean", STRING: "category", TIME: "time"}


def like(kinds: dict[str, str], how: Reading) -> Reading:
    """How to read a file so that its columns are of the kinds that another file has."""
    words = {name: _WORDS[kind] for name, kind in kinds.items()}
    return replace(how, types={**words, **how.types})


def stream_table(source: Source, **how: Any) -> Iterator[Table]:
    """The rows of a file as many small tables, so that memory holds few of them at a time.

    ``how`` is what ``read_table`` takes, apart from a target. LIBSVM and npz files come whole.
    """
    shape = {key: how.pop(key) for key in ("n_features", "zero_based") if key in how}
    with _open(source, None, Reading.of(**how), **shape) as found:
        yield from (found,) if isinstance(found, Table) else _stream(found)


@contextlib.contextmanager
def _open(
    source: Source,
    target: str | None,
    how: Reading,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
) -> Iterator[Table | Records]:
    """A table of a matrix, or records to be read."""
    name = name_of(source)
    with Job("read") as job, _on_disk(source) as path:
        job.total = max(1, os.path.getsize(path))
        kind = format_of(path, name, how.format)
        if kind not in MATRICES:
            with open_records(path, name, kind, target, how) as records:
                yield records
        elif target is not None or how.types:
            raise BadInput(
                f"{name}: a {kind} file has no column names; leave target and types out."
            )
        else:
            yield _matrix(path, name, kind, n_features, zero_based)


@contextlib.contextmanager
def _on_disk(source: Source) -> Iterator[str]:
    """A path that can be read more than once: streams are copied to a temporary file."""
    if isinstance(source, str | os.PathLike) and os.path.isfile(os.fspath(source)):
        yield os.fspath(source)
    else:
        with tempfile.NamedTemporaryFile(prefix="linsep-") as copy:
            with opened(source) as stream:
                shutil.copyfileobj(stream, copy, 1 << 20)
            copy.flush()
            yield copy.name


def _matrix(
    path: str, name: str, kind: str, n_features: int | None, zero_based: bool | str
) -> Table:
    """A file that holds a matrix without column names."""
    if kind == "libsvm":
        data = read_rows(path, name, n_features, zero_based)
        return Table(matrix=data.X, y=whole_labels(data.y), source=name)
    if kind == "npy":
        refuse(
            name, "a .npy file holds one array; store X and y in an .npz file, or use linsep.scan."
        )
    file = NpzFile(path, name)
    X = file.matrix()
    y = file.vector("y", X.shape[0], "y") if "y" in file.arrays else None
    return Table(matrix=X, y=y, source=name)


def _collect(files: Iterable[Records], target: str | None) -> Table:
    """All rows of all files as one table."""
    table, wanted = _gather(files, target, None)
    if wanted is not None:
        table.y = wanted.values()
    return table


def _gather(
    files: Iterable[Records], target: str | None, kept: float | None
) -> tuple[Table, Target | None]:
    """All rows as one table, of which ``kept`` bytes stay in memory, and the target."""
    shelf, rows = Shelf(kept), 0
    first: Records | None = None
    wanted: Target | None = None
    for records in files:
        if first is None:
            first, wanted = records, None if target is None else Target(target, records.missing)
        row = 0
        for part in records.batches:
            if wanted is not None:
                wanted.add(part.column(wanted.name))
            shelf.add(_batch(records, part, row))
            row += part.num_rows
            del part
        if wanted is not None:
            wanted.end_file(records.path, records.locate)
        rows += row
    arrow().default_memory_pool().release_unused()
    assert first is not None
    if rows == 0:
        refuse(first.path, "the table has no rows.")
    return _table(first, shelf.finish()), wanted


def _stream(records: Records) -> Iterator[Table]:
    """A table for each batch: memory holds one at a time."""
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
    """Some records as a batch; ``row`` is the number of the first."""
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
