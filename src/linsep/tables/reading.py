"""``read_table``: one verb for every kind of file."""

from __future__ import annotations

import contextlib
import os
import re
import shutil
import tempfile
import zipfile
from collections.abc import Iterable, Iterator, Mapping
from pathlib import PurePath
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.errors import BadInput
from linsep.monitoring import Job
from linsep.tables.columnar import Records, columnar_records
from linsep.tables.delimited import Dialect, delimited_records
from linsep.tables.files import Source, name_of, opened, refuse
from linsep.tables.inference import MISSING
from linsep.tables.libsvm import read_rows
from linsep.tables.table import Table

_FORMATS = {
    ".csv": "csv",
    ".tsv": "tsv",
    ".tab": "tsv",
    ".parquet": "parquet",
    ".pq": "parquet",
    ".arrow": "arrow",
    ".feather": "arrow",
    ".ipc": "arrow",
    ".svm": "libsvm",
    ".libsvm": "libsvm",
    ".svmlight": "libsvm",
    ".npz": "npz",
}
FORMATS = tuple(dict.fromkeys(_FORMATS.values()))
#: What a caller may say about a column.
TYPES = ("number", "boolean", "category", "hashed", "text", "time", "drop")
_COMPRESSED = (".gz", ".bz2", ".xz")
_LIBSVM_LINE = re.compile(rb"\s*[-+.\deE]+(\s+qid:\d+)?(\s+\d+:[-+.\deE]+)+\s*(#.*)?")


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
    how: dict[str, Any] = {
        "format": format,
        "types": types,
        "ignore": ignore,
        "delimiter": delimiter,
        "header": header,
        "decimal": decimal,
        "quote": quote,
        "encoding": encoding,
        "missing": missing,
    }
    with _opened(source, target, n_features, zero_based, **how) as found:
        return found if isinstance(found, Table) else found.collect(target)


def stream_table(source: Source, **how: Any) -> Iterator[Table]:
    """The rows of a file as many small tables, so that memory holds few of them at a time.

    ``how`` is what ``read_table`` takes, apart from a target. LIBSVM and npz files come whole.
    """
    with _opened(source, **how) as found:
        yield from (found,) if isinstance(found, Table) else found.stream()


@contextlib.contextmanager
def _opened(  # noqa: PLR0913
    source: Source,
    target: str | None = None,
    n_features: int | None = None,
    zero_based: bool | str = "auto",
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
) -> Iterator[Table | Records]:
    """A table of a matrix, or records to be read."""
    said = check_types(types or {})
    name = name_of(source)
    with Job("read") as job, _on_disk(source) as path:
        job.total = max(1, os.path.getsize(path))
        kind = _format(path, name, format)
        if kind in ("parquet", "arrow"):
            with columnar_records(path, name, target, frozenset(ignore), said) as records:
                yield records
        elif kind in ("libsvm", "npz"):
            if target is not None or said:
                raise BadInput(
                    f"{name}: a {kind} file has no column names; leave target and types out."
                )
            yield _npz(path, name) if kind == "npz" else _libsvm(path, name, n_features, zero_based)
        else:
            dialect = Dialect(
                delimiter="\t" if kind == "tsv" and delimiter is None else delimiter,
                header=header,
                decimal=decimal,
                quote=quote,
                encoding=encoding,
                missing=frozenset(missing) | {""},
            )
            yield delimited_records(path, name, dialect, target, frozenset(ignore), said)


def check_types(types: Mapping[str, str]) -> dict[str, str]:
    """The types, if every one is a word of ``TYPES``."""
    for column, kind in types.items():
        if kind not in TYPES:
            raise BadInput(f"types[{column!r}] must be one of {', '.join(TYPES)}, got {kind!r}.")
    return dict(types)


@contextlib.contextmanager
def _on_disk(source: Source) -> Iterator[str]:
    """A path that can be read more than once: streams are copied to a temporary file."""
    if isinstance(source, str | os.PathLike) and os.path.isfile(os.fspath(source)):
        yield os.fspath(source)
    elif isinstance(source, str | os.PathLike) and os.path.isdir(os.fspath(source)):
        raise IsADirectoryError(f"{os.fspath(source)} is a directory; name a file in it.")
    else:
        with tempfile.NamedTemporaryFile(prefix="linsep-") as copy:
            with opened(source) as stream:
                shutil.copyfileobj(stream, copy, 1 << 20)
            copy.flush()
            yield copy.name


def _format(path: str, name: str, asked: str | None) -> str:
    if asked is not None:
        if asked not in FORMATS:
            raise BadInput(f"format must be one of {', '.join(FORMATS)}, got {asked!r}.")
        return asked
    with open(path, "rb") as stream:
        head = stream.read(8)
    if head[:4] == b"PAR1":
        return "parquet"
    if head[:6] == b"ARROW1":
        return "arrow"
    suffixes = [suffix for suffix in PurePath(name).suffixes[-2:] if suffix not in _COMPRESSED]
    known = _FORMATS.get(suffixes[-1].lower() if suffixes else "")
    if known is not None:
        return known
    if head[:4] == b"PK\x03\x04":
        return "npz"
    with opened(path) as text:
        first = next((line for line in text if line.strip() and not line.startswith(b"#")), b"")
    return "libsvm" if _LIBSVM_LINE.fullmatch(first.rstrip()) else "csv"


def _libsvm(path: str, name: str, n_features: int | None, zero_based: bool | str) -> Table:
    data = read_rows(path, name, n_features, zero_based)
    whole = np.all(data.y == np.floor(data.y)) and np.abs(data.y).max() < 2**53
    return Table(matrix=data.X, y=data.y.astype(np.int64) if whole else data.y, source=name)


def _npz(path: str, name: str) -> Table:
    try:
        with open(path, "rb") as stream, np.load(stream, allow_pickle=False) as file:
            arrays = {key: file[key] for key in file.files}
    except (ValueError, OSError, EOFError, zipfile.BadZipFile) as error:
        refuse(
            name,
            f"the archive is damaged or holds Python objects ({error}); save plain arrays with "
            "numpy.savez.",
        )
    y = arrays.get("y")
    if "X" in arrays:
        X = arrays["X"]
    elif {"data", "indices", "indptr", "shape"} <= set(arrays):
        parts = arrays["data"], arrays["indices"], arrays["indptr"]
        try:
            X = sp.csr_array(parts, shape=tuple(arrays["shape"]))
            X.check_format()
        except (ValueError, TypeError) as error:
            refuse(name, f"the sparse matrix is damaged: {error}.")
    else:
        refuse(
            name,
            f"the archive holds {', '.join(sorted(arrays)) or 'nothing'}; an array X (and y) is "
            "needed.",
        )
    if X.ndim != 2 or X.dtype.kind not in "fiub":
        refuse(name, f"X has shape {X.shape} and dtype {X.dtype}; a matrix of numbers is needed.")
    if y is not None and y.shape != (X.shape[0],):
        refuse(name, f"y has shape {y.shape}, but X has {X.shape[0]} rows.")
    return Table(matrix=X, y=y, source=name)
