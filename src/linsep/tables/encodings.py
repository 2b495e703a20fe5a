"""Encodings of single columns as numbers: frozen dataclasses of plain values.

An encoding maps the stored values of its column (see ``table.py``) to entries of one or more columns
of the matrix, as (rows, columns, values). ``prepare`` computes what depends only on the levels.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_right
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from itertools import accumulate
from typing import Any, ClassVar

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.feature_extraction.text import HashingVectorizer
from sklearn.preprocessing import normalize
from sklearn.utils import murmurhash3_32

from linsep.arrays import FloatArray, IntArray
from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME

Entries = tuple[IntArray, IntArray, FloatArray]
_MICROSECONDS = 86_400e6  # in a day
_MONTHS = ("Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec")
_WEEKDAYS = ("Mon", "Tue", "Wed", "Thu", "Fri", "Sat", "Sun")


@dataclass(frozen=True)
class Encoding(ABC):
    """Base of the encodings; ``name`` is the name of the column."""

    type: ClassVar[str]  #: type in the user's ``types``
    kind: ClassVar[str]  #: kind in which the column is stored

    name: str

    @property
    @abstractmethod
    def names(self) -> list[str]:
        """Names of the columns of the matrix."""

    def column_name(self, at: int) -> str:
        """Return the name of one column of the matrix."""
        return self.names[at]

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.names)

    @property
    def entries_per_row(self) -> float:
        """Approximate number of nonzero entries per row."""
        return 1.0

    def prepare(self, levels: list[str]) -> Any:
        """Compute what depends only on the levels of a string column."""
        return None

    @abstractmethod
    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return the entries of the matrix for some stored values, as (rows, columns, values)."""

    def to_dict(self) -> dict[str, Any]:
        """Return the encoding as plain values for JSON."""
        return {"type": self.type, **asdict(self)}


@dataclass(frozen=True)
class Dropped(Encoding):
    """Encoding of a column without information, which is dropped; new rows need not have it."""

    type: ClassVar[str] = "drop"
    kind: ClassVar[str] = ""
    why: str

    @property
    def names(self) -> list[str]:
        """Empty list: there are no columns."""
        return []

    @property
    def entries_per_row(self) -> float:
        """Zero: there are no entries."""
        return 0.0

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return no entries."""
        return _dense(np.empty(0))


@dataclass(frozen=True)
class Number(Encoding):
    """Encoding of numbers as (x - mean) / scale, with ``fill`` for a missing x and an optional indicator column."""

    type: ClassVar[str] = "number"
    kind: ClassVar[str] = NUMBER
    fill: float
    indicator: bool
    mean: float = 0.0
    scale: float = 1.0

    @property
    def names(self) -> list[str]:
        """Name of the column, and of its indicator if there is one."""
        return [self.name, *_if(self.indicator, f"{self.name}=(missing)")]

    @property
    def width(self) -> int:
        """Number of columns of the matrix, 1 or 2."""
        return 1 + self.indicator

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return one entry per row, and an indicator entry for each missing value."""
        missing = np.flatnonzero(np.isnan(values)) if self.indicator else np.empty(0, np.intp)
        x = np.append(self._scaled(values), np.ones(len(missing)))
        rows = np.append(np.arange(len(values)), missing)
        return rows, np.repeat((0, 1), (len(values), len(missing))), x

    def write(self, values: npt.NDArray[Any], out: FloatArray) -> None:
        """Write the encoded values into columns of a dense matrix."""
        out[:, 0] = self._scaled(values)
        if self.indicator:
            out[:, 1] = np.isnan(values)

    def _scaled(self, values: npt.NDArray[Any]) -> FloatArray:
        x = np.where(np.isnan(values), self.fill, values)
        return (x - self.mean) / self.scale if self.mean != 0.0 or self.scale != 1.0 else x


@dataclass(frozen=True)
class Boolean(Number):
    """Encoding of booleans as 0 and 1."""

    type: ClassVar[str] = "boolean"
    kind: ClassVar[str] = BOOLEAN


@dataclass(frozen=True)
class Category(Encoding):
    """One-hot encoding: a column per level; ``other``, present if there were rare levels, is for rare and new ones."""

    type: ClassVar[str] = "category"
    kind: ClassVar[str] = STRING
    levels: tuple[str, ...]
    other: bool
    indicator: bool

    @property
    def names(self) -> list[str]:
        """Names of the form ``name=level``."""
        return [
            *(f"{self.name}={level}" for level in self.levels),
            *_if(self.other, f"{self.name}=(other)"),
            *_if(self.indicator, f"{self.name}=(missing)"),
        ]

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return len(self.levels) + self.other + self.indicator

    def prepare(self, levels: list[str]) -> IntArray:
        """Return the column of each level and, last, of a missing value; -1 means no column."""
        place = {level: at for at, level in enumerate(self.levels)}
        other = len(self.levels) if self.other else -1
        missing = len(self.levels) + self.other if self.indicator else other
        return np.array([*(place.get(level, other) for level in levels), missing], np.intp)

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return a 1 in the column of the level of each row."""
        columns = prepared[values]
        rows = np.flatnonzero(columns >= 0)
        return rows, columns[rows], np.ones(len(rows))


@dataclass(frozen=True)
class Hashed(Encoding):
    """Feature hashing of levels: +1 or -1 in a column, both given by MurmurHash3 (32 bits, seed 0)."""

    type: ClassVar[str] = "hashed"
    kind: ClassVar[str] = STRING
    size: int
    indicator: bool

    @property
    def names(self) -> list[str]:
        """Names of the form ``name#number``."""
        return [self.column_name(at) for at in range(self.width)]

    def column_name(self, at: int) -> str:
        """Return the name of one column, without formatting the others."""
        return f"{self.name}#{at}" if at < self.size else f"{self.name}=(missing)"

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self.size + self.indicator

    def prepare(self, levels: list[str]) -> tuple[IntArray, FloatArray]:
        """Return column and sign of each level and, last, of a missing value."""
        hashes = np.array([murmurhash3_32(level, seed=0) for level in levels], np.int64)
        columns = np.append(np.abs(hashes) % self.size, self.size if self.indicator else -1)
        return columns.astype(np.intp), np.append(np.where(hashes < 0, -1.0, 1.0), 1.0)

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return one entry per row: +1 or -1 in the column of its level."""
        columns, signs = prepared
        rows = np.flatnonzero(columns[values] >= 0)
        return rows, columns[values[rows]], signs[values[rows]]


@dataclass(frozen=True)
class Text(Encoding):
    """Encoding of text by hashed n-grams: 1 + log(count) for each, every row scaled to length 1."""

    type: ClassVar[str] = "text"
    kind: ClassVar[str] = STRING
    size: int
    analyzer: str
    shortest: int
    longest: int

    @property
    def names(self) -> list[str]:
        """Names of the form ``name#number``."""
        return [self.column_name(at) for at in range(self.size)]

    def column_name(self, at: int) -> str:
        """Return the name of one column, without formatting the others."""
        return f"{self.name}#{at}"

    @property
    def entries_per_row(self) -> float:
        """Assumed number of n-grams per row."""
        return 50.0

    @property
    def width(self) -> int:
        """Number of columns of the matrix."""
        return self.size

    def prepare(self, levels: list[str]) -> Any:
        """Return the encoded rows of all levels and, last, an empty row for a missing value, as CSR."""
        hasher = HashingVectorizer(
            n_features=self.size,
            analyzer=self.analyzer,
            ngram_range=(self.shortest, self.longest),
            alternate_sign=False,
            norm=None,
        )
        counts = hasher.transform([*levels, ""])
        counts.data = 1.0 + np.log(counts.data)
        return sp.csr_array(normalize(counts))

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return the entries of the n-grams of each row."""
        found = prepared[np.where(values < 0, prepared.shape[0] - 1, values)].tocoo()
        return found.row.astype(np.intp), found.col.astype(np.intp), found.data


@dataclass(frozen=True)
class Time(Encoding):
    """Encoding of times as days since ``origin`` and, if they vary, one-hot month, weekday and hour."""

    type: ClassVar[str] = "time"
    kind: ClassVar[str] = TIME
    origin: str
    scale: float
    fill: float
    indicator: bool
    month: bool
    weekday: bool
    hour: bool

    @property
    def names(self) -> list[str]:
        """Names of the form ``name=days``, ``name=Jan``, ``name=Mon`` and ``name=00h``."""
        return [
            f"{self.name}=days",
            *(f"{self.name}={month}" for month in _MONTHS if self.month),
            *(f"{self.name}={day}" for day in _WEEKDAYS if self.weekday),
            *(f"{self.name}={hour:02}h" for hour in range(24) if self.hour),
            *_if(self.indicator, f"{self.name}=(missing)"),
        ]

    @property
    def entries_per_row(self) -> float:
        """Number of entries per row: days, and one for each of month, weekday and hour in use."""
        return 1.0 + self.month + self.weekday + self.hour

    def entries(self, values: npt.NDArray[Any], prepared: Any) -> Entries:
        """Return days for every row, and month, weekday and hour for rows whose time is known."""
        missing = np.isnat(values)
        days = (values - np.datetime64(self.origin, "us")).astype(np.float64) / _MICROSECONDS
        parts = [_dense(np.where(missing, self.fill, days) / self.scale)]
        known = np.flatnonzero(~missing)
        t, at = values[known], 1
        whole_days = t.astype("datetime64[D]")
        for wanted, width, number in (
            (self.month, 12, lambda: t.astype("datetime64[M]").astype(np.int64) % 12),
            (self.weekday, 7, lambda: (whole_days.astype(np.int64) + 3) % 7),
            (self.hour, 24, lambda: (t - whole_days).astype(np.int64) // 3_600_000_000),
        ):
            if wanted:
                parts.append((known, at + number().astype(np.intp), np.ones(len(known))))
                at += width
        if self.indicator:
            rows = np.flatnonzero(missing)
            parts.append((rows, np.full(len(rows), at), np.ones(len(rows))))
        rows, columns, x = (np.concatenate([part[i] for part in parts]) for i in range(3))
        return rows, columns, x


#: The encodings by their type.
ENCODINGS: dict[str, type[Encoding]] = {
    encoding.type: encoding for encoding in (Dropped, Number, Boolean, Category, Hashed, Text, Time)
}


class ColumnNames(Sequence[str]):
    """Column names of a matrix, formatted when they are read, because half a million strings would take 50 MB."""

    def __init__(self, encodings: Sequence[Encoding]) -> None:
        self._encodings = encodings
        self._ends = list(accumulate(encoding.width for encoding in encodings))

    def __len__(self) -> int:
        return self._ends[-1] if self._ends else 0

    def __getitem__(self, at: Any) -> Any:
        column = range(len(self))[at]
        which = bisect_right(self._ends, column)
        encoding = self._encodings[which]
        return encoding.column_name(column - self._ends[which] + encoding.width)


def _if(wanted: bool, name: str) -> list[str]:
    return [name] if wanted else []


def _dense(x: FloatArray) -> Entries:
    return np.arange(len(x)), np.zeros(len(x), np.intp), x
