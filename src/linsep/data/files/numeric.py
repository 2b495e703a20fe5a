"""Reader of files as batches of finite numbers with target and weight, for a scan.

Column types are inferred as for a table in memory. Text, times, missing values and infinities among the features
raise an error with file, line and column, because a scan has no encoder.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import EXACT_IN_FLOAT32, FloatArray
from linsep.data.files.arrays import NpzFile, open_npy
from linsep.data.files.columnar import Records
from linsep.data.files.columns import Target, missing_name, numbers, whole_labels
from linsep.data.files.datafile import DataFile
from linsep.data.files.formats import MATRICES, Reading, format_of, open_records
from linsep.data.files.inference import STRING, TIME
from linsep.data.files.libsvm import libsvm_batches
from linsep.data.files.source import refuse
from linsep.errors import BadInput

_ENTRIES = 1 << 19  # numbers per batch: 4 MB
_ARROW_EXACT = ("bool", "int8", "uint8", "int16", "uint16", "halffloat", "float")

Column = str | int | None


@dataclass(frozen=True, eq=False)
class NumericBatch:
    """Some rows; y and weight are None without such a column, or if the target is returned at the end."""

    X: Any
    y: npt.NDArray[Any] | None = None
    weight: FloatArray | None = None
    names: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Wanted:
    """The columns of target and weight, and the settings for reading the files."""

    target: Column = None
    weight: Column = None
    how: Reading = field(default_factory=Reading)

    @property
    def plain(self) -> bool:
        """Whether all columns are features: no target, no weight, none ignored."""
        return self.target is None and self.weight is None and not self.how.ignore


class NumericFiles:
    """Iterator over the batches of all files, in order; call ``target()`` after all batches have been read."""

    def __init__(self, files: Sequence[DataFile], wanted: Wanted) -> None:
        self.files, self.wanted = files, wanted
        self.kind = format_of(files[0], wanted.how.format)
        for file in files[1:]:
            if format_of(file, wanted.how.format) != self.kind:
                raise BadInput(
                    f"{files[0]} and {file} are files of different kinds: scan them separately."
                )
        if self.kind in MATRICES and files[0].partition:
            raise BadInput(
                f"{files[0]}: its directories stand for columns ({files[0].partition[0][0]}), and the columns of a "
                f"{self.kind} file have no names: give the files one by one, or convert them (linsep convert)."
            )
        named = self.kind not in MATRICES and wanted.target is not None
        words = wanted.how.dialect.missing if self.kind in ("csv", "tsv") else frozenset[str]()
        self._column = Target(str(wanted.target), words) if named else None
        self._vectors: list[npt.NDArray[Any]] = []

    def __iter__(self) -> Iterator[tuple[DataFile, NumericBatch]]:
        for file in self.files:
            for batch in self._batches(file):
                if batch.y is not None:
                    self._vectors.append(batch.y)
                yield file, batch

    def target(self) -> npt.NDArray[Any] | None:
        """Return the targets of all rows read so far, or None if there is no target."""
        if self._column is not None:
            y = self._column.values()
            return y.astype(str) if y.dtype.kind == "O" else y
        if not self._vectors:
            return None
        y = np.concatenate(self._vectors)
        return whole_labels(y) if self.kind == "libsvm" else y

    def _batches(self, file: DataFile) -> Iterator[NumericBatch]:
        wanted = self.wanted
        if self.kind in ("npy", "npz"):
            with file.on_disk() as local:
                opened = _npy_batches if self.kind == "npy" else _npz_batches
                yield from opened(local.path, str(file), wanted)
        elif self.kind == "libsvm":
            if wanted.weight is not None or wanted.how.ignore:
                raise BadInput(
                    f"{file}: LIBSVM files have no column for weights and none to ignore."
                )
            yield from (NumericBatch(X, y) for X, y in libsvm_batches(file))
        else:
            target = None if wanted.target is None else str(wanted.target)
            with open_records(file, self.kind, target, wanted.how, _ENTRIES) as records:
                yield from self._from_records(records)

    def _from_records(self, records: Records) -> Iterator[NumericBatch]:
        weight = None if self.wanted.weight is None else str(self.wanted.weight)
        if weight is not None and weight not in records.kinds:
            raise missing_name(weight, records.kinds, records.path)
        _refuse_text(records)
        names, row = tuple(name for name in records.kinds if name != weight), 0
        for part in records.batches:
            columns = dict(zip(part.schema.names, part.columns, strict=True))
            if self._column is not None:
                self._column.add(columns[self._column.name])
            if part.num_rows:
                exact = all(str(columns[name].type) in _ARROW_EXACT for name in names)
                X = np.empty((part.num_rows, len(names)), np.float32 if exact else np.float64)
                for at, name in enumerate(names):
                    X[:, at] = _known(records, columns[name], name, row)
                s = None if weight is None else _known(records, columns[weight], weight, row)
                yield NumericBatch(X, None, s, names)
            row += part.num_rows
        if self._column is not None:
            self._column.end_file(records.path, records.locate)


def _refuse_text(records: Records) -> None:
    for name, kind in records.kinds.items():
        if kind in (STRING, TIME):
            refuse(
                records.path,
                f"column {name!r} holds values of kind {kind}, and a scan takes numbers; encode it first "
                "(linsep.Encoder().fit(table).to_disk(table) of a linsep.read_table, in bounded memory; on the command "
                f"line linsep fit or linsep convert), or leave it out with ignore=[{name!r}].",
                *records.locate(0, name),
            )


def _known(records: Records, values: Any, name: str, row: int) -> FloatArray:
    """Return the numbers of a column; raise if one is missing."""
    found = numbers(values, records.path, name, row, records.locate)
    missing = np.isnan(found)
    if missing.any():
        at = row + int(np.argmax(missing))
        refuse(
            records.path,
            f"column {name!r} is missing in data row {at + 1} (counting from 1), and a scan takes complete "
            "rows; fill it in, leave those rows out, or encode the table (linsep.read_table, linsep.Encoder.to_disk).",
            *records.locate(at, name),
        )
    return found


def _npy_batches(path: str, name: str, wanted: Wanted) -> Iterator[NumericBatch]:
    table = open_npy(path, name)
    height = max(1, _ENTRIES // max(1, table.shape[1]))
    for first in range(0, len(table), height):
        block = np.asarray(table[first : first + height])
        yield NumericBatch(*_split(name, block, wanted, first))


def _npz_batches(path: str, name: str, wanted: Wanted) -> Iterator[NumericBatch]:
    file, first = NpzFile(path, name), 0
    vectors: list[npt.NDArray[Any] | None] = [
        None if key is None else file.array(str(key)) for key in (wanted.target, wanted.weight)
    ]
    for block in file.blocks(_ENTRIES):
        rows = slice(first, first + block.shape[0])
        y, s = (None if v is None else v[rows] for v in vectors)
        X = block.tocsr().astype(np.float64) if file.sparse else block
        if not file.sparse:
            X, _, _ = _split(name, block, Wanted(how=Reading(ignore=wanted.how.ignore)), first)
        elif wanted.how.ignore:
            raise BadInput(f"{name}: columns of a sparse matrix cannot be left out by a scan.")
        yield NumericBatch(X, y, None if s is None else s.astype(np.float64))
        first = rows.stop
    for what, vector in zip(("the target", "the weight"), vectors, strict=True):
        if vector is not None and vector.shape != (first,):
            refuse(name, f"X has {first} rows, {what} has shape {vector.shape}.")


def _split(
    path: str, block: npt.NDArray[Any], wanted: Wanted, first: int
) -> tuple[npt.NDArray[Any], Any, Any]:
    """Split rows with numbered columns into features, target and weight; raise if a feature is not finite."""
    d = block.shape[1]
    places: dict[Column, int] = {}
    for asked in (wanted.target, wanted.weight, *wanted.how.ignore):
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
    kind = np.float32 if X.dtype.name in EXACT_IN_FLOAT32 else np.float64
    X = np.ascontiguousarray(X, dtype=kind)
    finite = np.isfinite(X)
    if not finite.all():
        row, col = divmod(int(np.argmin(finite)), X.shape[1])
        raise BadInput(
            f"{path}: row {first + row}, column {col} (counting from 0) is {X[row, col]}; linsep "
            "does not fit missing or infinite values: fill them in, or leave those rows out."
        )
    return X, y, weight
