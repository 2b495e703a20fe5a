"""Files become batches of rows: float64 or float32 numbers, all finite, with target and weight.

Nothing is guessed: text among the features, missing numbers and infinities are refused by file, row and column.
"""

from __future__ import annotations

import zipfile
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from io import BytesIO
from itertools import islice
from pathlib import Path
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.errors import BadInput, Refused

_ENTRIES = 1 << 19  # numbers in a batch: 4 MB
_CHUNK = 2 << 20  # bytes of text parsed together
_CSV_BLOCK, _CSV_LINES = (
    256 << 10,
    16,
)  # bytes of CSV parsed together (Arrow reads 32 blocks ahead), and lines, at least

Column = str | int | None


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows; y and weight are None where no column was asked for."""

    X: Any
    y: npt.NDArray[Any] | None = None
    weight: npt.NDArray[np.float64] | None = None
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Wanted:
    """Which columns are the target and the weight, and which to leave out."""

    target: Column = None
    weight: Column = None
    ignore: tuple[str | int, ...] = ()


Decoder = Callable[[Path, Wanted], Iterator[Batch]]


def decoder(path: Path) -> Decoder:
    """The reader of files with that ending."""
    name = path.name.lower()
    for ending, read in _DECODERS.items():
        if name.endswith(ending):
            return read
    known = ", ".join(_DECODERS)
    raise BadInput(f"{path}: files with this ending cannot be scanned. Known endings: {known}.")


def _refuse_values(path: Path, X: npt.NDArray[Any], first: int, names: Any) -> None:
    """Raise at the first number that is not finite; ``first`` rows of the file come before X."""
    finite = np.isfinite(X)
    if finite.all():
        return
    row, col = divmod(int(np.argmin(finite)), X.shape[1])
    name = "" if names is None else f" ({names[col]!r})"
    raise BadInput(
        f"{path}: row {first + row}, column {col}{name} (counting from 0) is {X[row, col]}; there is no "
        "model for missing or infinite values: fill them in, or leave those rows out."
    )


def _split(
    path: Path, block: npt.NDArray[Any], wanted: Wanted, first: int
) -> tuple[npt.NDArray[Any], Any, Any]:
    """Features, target and weight of rows whose columns have numbers, not names."""
    d = block.shape[1]
    places: dict[Column, int] = {}
    for asked in (wanted.target, wanted.weight, *wanted.ignore):
        if asked is None:
            continue
        if not isinstance(asked, int | np.integer) or not -d <= asked < d:
            raise BadInput(
                f"{path} has {d} columns without names: give a column by its number, 0 to {d - 1}, "
                f"not {asked!r}."
            )
        places[asked] = int(asked) % d
    y = None if wanted.target is None else block[:, places[wanted.target]]
    weight = None if wanted.weight is None else block[:, places[wanted.weight]].astype(np.float64)
    X = np.delete(block, list(places.values()), axis=1) if places else block
    kind = np.float32 if X.dtype.name in _EXACT_IN_SINGLE else np.float64
    X = np.ascontiguousarray(X, dtype=kind)
    _refuse_values(path, X, first, None)
    return X, y, weight


_EXACT_IN_SINGLE = ("bool", "int8", "uint8", "int16", "uint16", "float16", "float32")


def _height(columns: int) -> int:
    """Rows of a batch."""
    return max(1, _ENTRIES // max(1, columns))


def npy_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """A table in a .npy file of any layout."""
    table = open_npy(path)
    height = _height(table.shape[1])
    for first in range(0, len(table), height):
        yield Batch(*_split(path, np.asarray(table[first : first + height]), wanted, first))


def open_npy(path: Path) -> npt.NDArray[Any]:
    """The array of numbers in a .npy file, mapped and not read."""
    try:
        table = np.load(path, mmap_mode="r", allow_pickle=False)
    except (ValueError, EOFError) as error:
        raise BadInput(f"{path} is not a .npy file of numbers, or is cut short: {error}") from error
    if table.ndim != 2 or table.dtype.kind not in "fiub":
        raise BadInput(
            f"{path} holds an array of shape {table.shape} and type {table.dtype}; a table of numbers "
            "with one row per example is needed."
        )
    array: npt.NDArray[Any] = table
    return array


def npz_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """The array ``X`` of a .npz file, with ``y`` and ``weight`` if they are asked for by that name."""
    try:
        with zipfile.ZipFile(path) as archive:
            inside = {name.removesuffix(".npy") for name in archive.namelist()}
            for asked in ("X", wanted.target, wanted.weight):
                if asked is not None and asked not in inside:
                    raise BadInput(
                        f"{path} has no array {asked!r}; it has {', '.join(sorted(inside))}. Store the "
                        "rows as 'X' and name the arrays of target and weight."
                    )
            with np.load(path, allow_pickle=False) as arrays:
                y = None if wanted.target is None else arrays[str(wanted.target)]
                weight = None if wanted.weight is None else arrays[str(wanted.weight)]
            with archive.open("X.npy") as stream:
                yield from _npz_rows(path, stream, wanted, y, weight)
    except (zipfile.BadZipFile, ValueError, EOFError) as error:
        if isinstance(error, BadInput):
            raise
        raise BadInput(
            f"{path} is damaged, cut short or not a .npz file of numbers: {error}"
        ) from error


def _npz_rows(path: Path, stream: Any, wanted: Wanted, y: Any, weight: Any) -> Iterator[Batch]:
    read_header = {
        (1, 0): np.lib.format.read_array_header_1_0,
        (2, 0): np.lib.format.read_array_header_2_0,
    }[np.lib.format.read_magic(stream)]
    shape, fortran, dtype = read_header(stream)
    if len(shape) != 2 or fortran or dtype.kind not in "fiub":
        raise BadInput(
            f"{path}: X has shape {shape}, type {dtype} and {'Fortran' if fortran else 'C'} order; a "
            "table of numbers in C order is needed."
        )
    for name, vector in (("target", y), ("weight", weight)):
        if vector is not None and vector.shape != (shape[0],):
            raise BadInput(
                f"{path}: X has {shape[0]} rows, the {name} has shape {vector.shape}; give one for each row."
            )
    plain = Wanted(ignore=wanted.ignore)
    height = _height(shape[1])
    for first in range(0, shape[0], height):
        rows = min(height, shape[0] - first)
        data = stream.read(rows * shape[1] * dtype.itemsize)
        block = np.frombuffer(data, dtype).reshape(rows, shape[1])
        X, _, _ = _split(path, block, plain, first)
        part = slice(first, first + rows)
        yield Batch(X, None if y is None else y[part], None if weight is None else weight[part])


def arrow_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """Parquet, Arrow and CSV files, through pyarrow."""
    try:
        import pyarrow as pa  # noqa: PLC0415
    except ImportError as error:
        raise Refused(
            f"{path}: reading CSV, Parquet and Arrow files needs pyarrow: pip install pyarrow."
        ) from error
    first = 0
    try:
        for records in _records(pa, path):
            if records.num_rows:
                yield _from_records(pa, path, records, wanted, first)
            first += records.num_rows
    except (pa.ArrowException, OSError) as error:
        known = FileNotFoundError | PermissionError | IsADirectoryError | MemoryError
        if isinstance(error, known):
            raise
        raise BadInput(
            f"{path} is damaged, cut short or of another format: {error} (after row {first})."
        ) from error


def _records(pa: Any, path: Path) -> Iterator[Any]:
    name = path.name.lower()
    if name.endswith(".csv"):
        from pyarrow import csv  # noqa: PLC0415

        with path.open("rb") as file:
            block = max(_CSV_BLOCK, _CSV_LINES * max(map(len, islice(file, 3)), default=0))
        options = csv.ReadOptions(use_threads=False, block_size=min(block, 1 << 30))
        with csv.open_csv(path, options) as reader:
            yield from reader
    elif name.endswith(".parquet"):
        from pyarrow import parquet  # noqa: PLC0415

        with parquet.ParquetFile(path, memory_map=True) as file:
            height = _height(file.metadata.num_columns)
            for group in range(file.num_row_groups):  # no more than one of them is held
                yield from file.iter_batches(height, row_groups=[group])
    else:
        with pa.memory_map(str(path)) as source, pa.ipc.open_file(source) as reader:
            height = _height(len(reader.schema))
            for k in range(reader.num_record_batches):
                records = reader.get_batch(k)
                for first in range(0, records.num_rows, height):
                    yield records.slice(first, height)


def _from_records(pa: Any, path: Path, records: Any, wanted: Wanted, first: int) -> Batch:
    found = records.schema.names
    for asked in (wanted.target, wanted.weight, *wanted.ignore):
        if asked is not None and asked not in found:
            shown = ", ".join(map(repr, found[:10]))
            raise BadInput(f"{path} has no column {asked!r}; its columns are {shown}.")
    apart = {wanted.target, wanted.weight, *wanted.ignore}
    names = tuple(name for name in found if name not in apart)
    columns = dict(zip(found, records.columns, strict=True))
    types = [columns[name].type for name in names]
    exact = all(str(t).replace("halffloat", "float16") in _ARROW_EXACT for t in types)
    X = np.empty((records.num_rows, len(names)), np.float32 if exact else np.float64)
    for at, name in enumerate(names):
        X[:, at] = _numbers(pa, path, columns[name], name, first)
    _refuse_values(path, X, first, names)
    y = None if wanted.target is None else _target(pa, path, columns[wanted.target], wanted, first)
    weight = None
    if wanted.weight is not None:
        weight = _numbers(pa, path, columns[wanted.weight], str(wanted.weight), first)
        weight = weight.astype(np.float64)
    return Batch(X, y, weight, names)


_ARROW_EXACT = ("bool", "int8", "uint8", "int16", "uint16", "float16", "float")


def _refuse_null(path: Path, values: Any, name: str, first: int) -> None:
    if values.null_count:
        row = int(np.argmax(values.is_null().to_numpy(zero_copy_only=False)))
        raise BadInput(
            f"{path}: column {name!r} is empty at row {first + row} (counting from 0); fill it in, or "
            "leave those rows out."
        )


def _numbers(pa: Any, path: Path, values: Any, name: str, first: int) -> npt.NDArray[Any]:
    t = pa.types
    kind = values.type
    if not (t.is_integer(kind) or t.is_floating(kind) or t.is_boolean(kind) or t.is_decimal(kind)):
        raise BadInput(
            f"{path}: column {name!r} holds {kind} (at row {first}), not numbers; encode it first, or leave "
            f"it out with ignore=[{name!r}]."
        )
    _refuse_null(path, values, name, first)
    if t.is_decimal(kind):
        values = values.cast(pa.float64())
    numbers: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return numbers


def _target(pa: Any, path: Path, values: Any, wanted: Wanted, first: int) -> npt.NDArray[Any]:
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    _refuse_null(path, values, str(wanted.target), first)
    y: npt.NDArray[Any] = values.to_numpy(zero_copy_only=False)
    return y.astype(str) if y.dtype.kind == "O" else y


def libsvm_batches(path: Path, wanted: Wanted) -> Iterator[Batch]:
    """LIBSVM text: ``label index:value ...``. Column numbers are passed on as they stand in the file."""
    from sklearn.datasets import load_svmlight_file  # noqa: PLC0415

    if wanted.weight is not None or wanted.ignore:
        raise BadInput(f"{path}: LIBSVM files have no column for weights and none to ignore.")
    line = 0
    with path.open("rb") as stream:
        while text := b"".join(stream.readlines(_CHUNK)):
            lines = text.count(b"\n") + (not text.endswith(b"\n"))
            try:
                X, y = load_svmlight_file(BytesIO(text), zero_based=True, dtype=np.float64)
            except ValueError as error:
                _refuse_lines(path, line, lines, error)
            line += lines
            if len(X.data) and not np.isfinite(X.data).all():
                _refuse_lines(path, line - lines, lines, ValueError("a value is not finite"))
            if X.shape[0]:
                yield Batch(sp.csr_matrix(X), y)


def _refuse_lines(path: Path, line: int, lines: int, error: ValueError) -> NoReturn:
    raise BadInput(
        f"{path}, lines {line + 1} to {line + lines}: {error}; each line must read 'label index:value ...' "
        "with rising column numbers."
    ) from error


_DECODERS: dict[str, Decoder] = {
    ".npy": npy_batches,
    ".npz": npz_batches,
    ".parquet": arrow_batches,
    ".arrow": arrow_batches,
    ".feather": arrow_batches,
    ".csv": arrow_batches,
    ".libsvm": libsvm_batches,
    ".svm": libsvm_batches,
    ".svmlight": libsvm_batches,
}
