"""Column statistics for fitting an encoder, collected batch by batch in bounded memory.

``ColumnStatistics`` of some rows can be pickled, sent and merged: statistics of batches, files or partitions,
merged in the order of the rows, are bit-identical to those of all rows. ``Encoder.fit`` on a table in memory uses the
same code, so an encoder does not depend on where the rows are stored. Memory per column: at most 2^14 distinct
numbers, or 2^16 levels and 8 MB of text; ``value_counts`` describes what is kept of more.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from copy import deepcopy
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.errors import BadInput, NonFinite
from linsep.tables.moments import Moments
from linsep.tables.value_counts import (
    DistinctSample,
    ValueCounts,
    hash_numbers,
    hash_texts,
    number_of_key,
    ordered_keys,
)

_VALUES = 1 << 14  # distinct numbers that are counted per column
_ALL_VALUES, _FEWEST = 1 << 20, 256  # total over all columns, and minimum per column
_LEVELS, _TEXT = 1 << 16, 1 << 23  # levels that are counted per column, and their characters
_PENDING = 1 << 19  # numbers that are buffered before they are processed
_CHUNK = 1 << 17  # numbers of neighbouring columns that are processed together
_ID_NAME = re.compile(r"(.*[_ ])?(id|uuid|guid|index|key|rownum|row)", re.IGNORECASE)
_NO_TIME = np.iinfo(np.int64).min


class Numbers:
    """Statistics of all columns of numbers."""

    def __init__(self, names: list[str]) -> None:
        m = len(names)
        limit = min(_VALUES, max(_FEWEST, _ALL_VALUES // max(1, m)))
        self.missing = np.zeros(m, np.int64)
        self.low, self.high = np.full(m, np.inf), np.full(m, -np.inf)
        self.first, self.last = np.full(m, np.nan), np.full(m, np.nan)
        self.whole, self.consecutive = np.ones(m, bool), np.ones(m, bool)
        self.moments = Moments(m)
        self.values = [ValueCounts(limit) for _ in names]
        self.identifiers = {
            j: DistinctSample() for j, name in enumerate(names) if _ID_NAME.fullmatch(name)
        }
        self._pending: list[FloatArray] = []

    def add(self, X: FloatArray) -> None:
        """Add rows (n, m), which are buffered; NaN is a missing value, infinity is not allowed."""
        if not X.shape[1]:
            return
        self._pending.append(np.array(X))
        if sum(x.size for x in self._pending) >= _PENDING:
            self.flush()

    def flush(self) -> None:
        """Process the rows that are still in the buffer."""
        if not self._pending:
            return
        X = self._pending[0] if len(self._pending) == 1 else np.concatenate(self._pending)
        self._pending = []
        step = max(1, _CHUNK // max(1, len(X)))
        for at in range(0, X.shape[1] if len(X) else 0, step):
            self._process(np.ascontiguousarray(X[:, at : at + step].T), at)

    def _process(self, x: FloatArray, at: int) -> None:
        """Add x (columns, rows) to the statistics of the columns at, at + 1, ..."""
        here = slice(at, at + len(x))
        gaps = np.isnan(x)
        missing = np.count_nonzero(gaps, axis=1)
        self.low[here] = np.fmin(self.low[here], np.fmin.reduce(x, axis=1))
        self.high[here] = np.fmax(self.high[here], np.fmax.reduce(x, axis=1))
        if self.whole[here].any():
            self.whole[here] &= ((x == np.floor(x)) | gaps).all(axis=1)
        if self.consecutive[here].any():
            joined = np.isnan(self.first[here]) | (x[:, 0] == self.last[here] + 1.0)
            self.consecutive[here] &= (
                joined & (missing == 0) & (np.diff(x, axis=1) == 1.0).all(axis=1)
            )
        new = np.isnan(self.first[here]) & (self.missing[here] == 0)
        self.first[here] = np.where(new, x[:, 0], self.first[here])
        self.last[here] = x[:, -1]
        self.missing[here] += missing
        self.moments.add(np.where(gaps, 0.0, x) if missing.any() else x, at)
        for j in range(len(x)):
            keys = ordered_keys(x[j][~gaps[j]] if missing[j] else x[j])
            self.values[at + j].add(keys)
            if at + j in self.identifiers:
                found, counts = np.unique(hash_numbers(keys), return_counts=True)
                self.identifiers[at + j].add(found, counts, np.zeros(len(found), np.int64))

    def with_columns(self, before: list[str], names: list[str], n: int) -> Numbers:
        """Return statistics of the columns ``names``; those not in ``before`` are missing in all n rows."""
        found = Numbers(names)
        for j, name in enumerate(names):
            if name not in before:
                found.missing[j] = n
                continue
            at = before.index(name)
            for field in ("missing", "low", "high", "first", "last", "whole", "consecutive"):
                getattr(found, field)[j] = getattr(self, field)[at]
            found.moments.first[j] = self.moments.first[at]
            found.moments.second[j] = self.moments.second[at]
            found.values[j].merge(self.values[at])
            if at in self.identifiers:
                found.identifiers[j] = self.identifiers[at]
        return found

    def merge(self, other: Numbers) -> None:
        """Add the statistics of the rows that follow."""
        self.flush()
        other.flush()
        begun = ~np.isnan(other.first)
        joined = np.isnan(self.first) | ~begun | (other.first == self.last + 1.0)
        self.consecutive &= other.consecutive & joined
        self.first = np.where(np.isnan(self.first) & (self.missing == 0), other.first, self.first)
        self.last = np.where(begun, other.last, self.last)
        self.missing += other.missing
        self.low, self.high = np.fmin(self.low, other.low), np.fmax(self.high, other.high)
        self.whole &= other.whole
        self.moments.merge(other.moments)
        for mine, theirs in zip(self.values, other.values, strict=True):
            mine.merge(theirs)
        for j, sample in self.identifiers.items():
            sample.merge(other.identifiers[j])

    def median(self, j: int) -> float:
        """Return the median of column j without its missing values."""
        low, high = map(number_of_key, self.values[j].middle())
        middle = low if low == high else (low + high) / 2
        return float(min(max(middle, self.low[j]), self.high[j]))

    def all_distinct(self, j: int, known: int) -> bool:
        """Return whether a column named like an identifier has ``known`` numbers that are all distinct."""
        values = self.values[j]
        if values.exact:
            return len(values.keys) == known
        return not self.identifiers[j].repeats


class Strings:
    """Levels of a column of strings with their numbers of rows; if there are very many levels, a sample of them.

    A column that the user declared categorical keeps all levels (``bounded`` is False), as its encoding needs them.
    """

    def __init__(self, bounded: bool) -> None:
        self.missing = self.known = 0
        self.counts: dict[str, int] = {}
        self.sample: DistinctSample | None = None  #: replaces ``counts`` for very many levels
        self._bounded, self._size = bounded, 0

    def add(self, codes: npt.NDArray[np.integer[Any]], levels: list[str]) -> None:
        """Add rows, given as positions in a list of levels, -1 for a missing value."""
        found = np.bincount(codes + 1, minlength=1)
        self.missing += int(found[0])
        self.known += len(codes) - int(found[0])
        met = np.flatnonzero(found[1:])
        self._count([levels[at] for at in met.tolist()], found[met + 1])

    def _count(self, levels: list[str], counts: IntArray) -> None:
        if self.sample is not None:
            self.sample.add(hash_texts(levels), counts, _words(levels))
            return
        mine = self.counts
        for level, count in zip(levels, counts.tolist(), strict=True):
            before = mine.get(level)
            if before is None:
                self._size += len(level)
                before = 0
            mine[level] = before + count
        if self._bounded and (len(mine) > _LEVELS or self._size > _TEXT):
            self._to_sample()

    def _to_sample(self) -> None:
        counts, self.counts, self.sample = self.counts, {}, DistinctSample()
        levels = list(counts)
        self.sample.add(
            hash_texts(levels), np.array(list(counts.values()), np.int64), _words(levels)
        )

    def merge(self, other: Strings) -> None:
        """Add the statistics of other rows."""
        self.missing, self.known = self.missing + other.missing, self.known + other.known
        if other.sample is not None:
            if self.sample is None:
                self._to_sample()
            assert self.sample is not None
            self.sample.merge(other.sample)
        else:
            self._count(list(other.counts), np.array(list(other.counts.values()), np.int64))

    @property
    def distinct(self) -> float:
        """Number of levels, an estimate if there are very many."""
        return float(len(self.counts)) if self.sample is None else self.sample.distinct

    @property
    def words(self) -> float:
        """Mean number of words of a level."""
        if self.sample is not None:
            return float(self.sample.words.mean())
        return int(_words(list(self.counts)).sum()) / max(1, len(self.counts))

    @property
    def all_distinct(self) -> bool:
        """Whether every known value occurs in one row only."""
        if self.sample is not None:
            return not self.sample.repeats
        return max(self.counts.values(), default=0) <= 1

    def frequent(self, least: int) -> list[str]:
        """Return the levels that occur in at least ``least`` rows, sorted."""
        return sorted(level for level, count in self.counts.items() if count >= least)


def _words(levels: list[str]) -> IntArray:
    return np.array([len(level.split()) for level in levels], np.int64)


class Times:
    """Statistics of a column of times, as microseconds since 1970."""

    def __init__(self) -> None:
        self.missing = self.known = 0
        self.low, self.high = np.iinfo(np.int64).max, _NO_TIME
        self.hours = False  #: whether any time is not midnight
        self.values = ValueCounts(_VALUES)

    def add(self, values: npt.NDArray[Any]) -> None:
        """Add values of type datetime64[us]."""
        stamps = values.view(np.int64) if values.flags.c_contiguous else values.astype(np.int64)
        stamps = stamps[stamps != _NO_TIME]
        self.missing += len(values) - len(stamps)
        self.known += len(stamps)
        if len(stamps):
            self.low = min(self.low, int(stamps.min()))
            self.high = max(self.high, int(stamps.max()))
            self.hours |= bool((stamps % 86_400_000_000 != 0).any())
            self.values.add(stamps)

    def merge(self, other: Times) -> None:
        """Add the statistics of other rows."""
        self.missing, self.known = self.missing + other.missing, self.known + other.known
        self.low, self.high = min(self.low, other.low), max(self.high, other.high)
        self.hours |= other.hours
        self.values.merge(other.values)


class ColumnStatistics:
    """Statistics of all columns of some rows.

    ``kinds`` maps column names to the kinds in which they are encoded; ``categories`` are columns that the user
    declared categorical.
    """

    def __init__(self, kinds: dict[str, str], categories: Iterable[str] = ()) -> None:
        self.kinds, self.n = kinds, 0
        self.types: dict[str, str] = {}  #: column types set by the user
        self.reading: dict[str, Any] = {}  #: how the file was read, as in ``Table``
        kept = set(categories)
        self.number_names = [name for name, kind in kinds.items() if kind in (NUMBER, BOOLEAN)]
        self.numbers = Numbers(self.number_names)
        self.strings = {
            name: Strings(bounded=name not in kept)
            for name, kind in kinds.items()
            if kind == STRING
        }
        self.times = {name: Times() for name, kind in kinds.items() if kind == TIME}

    def add_numbers(self, X: FloatArray) -> None:
        """Add rows of all columns of numbers, (n, columns)."""
        infinite = np.isinf(X)
        if infinite.any():
            row, column = np.unravel_index(int(np.argmax(infinite)), X.shape)
            raise infinite_number(self.number_names[int(column)], self.n + int(row))
        self.numbers.add(X)

    def merge(self, other: ColumnStatistics) -> None:
        """Add the statistics of the rows that follow."""
        for name, kind in other.types.items():
            self.types.setdefault(name, kind)
        self.reading = self.reading or other.reading
        if other.kinds != self.kinds:
            self._take_kinds(other)
            other = deepcopy(other)
            other._take_kinds(self)
            if other.kinds != self.kinds:
                raise _other_columns(self.kinds, other.kinds)
        self.n += other.n
        self.numbers.merge(other.numbers)
        for name, strings in self.strings.items():
            strings.merge(other.strings[name])
        for name, times in self.times.items():
            times.merge(other.times[name])

    def _take_kinds(self, other: ColumnStatistics) -> None:
        """Convert string columns without any value to the kind that they have in ``other``."""
        empty = {name for name, column in self.strings.items() if not column.known}
        changed = [name for name in empty if other.kinds.get(name, STRING) != STRING]
        if not changed:
            return
        self.kinds = {
            name: other.kinds[name] if name in changed else kind
            for name, kind in self.kinds.items()
        }
        for name in changed:
            del self.strings[name]
            if self.kinds[name] == TIME:
                self.times[name] = Times()
                self.times[name].missing = self.n
        before = self.number_names
        self.number_names = [n for n, kind in self.kinds.items() if kind in (NUMBER, BOOLEAN)]
        self.numbers.flush()
        self.numbers = self.numbers.with_columns(before, self.number_names, self.n)

    def missing_counts(self) -> dict[str, int]:
        """Return the number of missing values of each column."""
        self.numbers.flush()
        numbers = dict(zip(self.number_names, self.numbers.missing.tolist(), strict=True))
        found: dict[str, int] = {
            **numbers,
            **{name: column.missing for name, column in self.strings.items()},
            **{name: column.missing for name, column in self.times.items()},
        }
        return {name: found[name] for name in self.kinds}


def merged(parts: Iterable[ColumnStatistics]) -> ColumnStatistics:
    """Return the statistics of all parts, given in row order; the parts are not changed."""
    whole: ColumnStatistics | None = None
    own = False
    for part in parts:
        if whole is None:
            whole = part
            continue
        if not own:
            whole, own = deepcopy(whole), True
        whole.merge(part)
    if whole is None:
        raise BadInput("There are no rows to fit an encoder to: merge needs at least one part.")
    return whole


def infinite_number(name: str, row: int) -> NonFinite:
    """Return the error for an infinity in a column."""
    return NonFinite(
        f"column {name!r} is infinite at row {row} (counting from 0); every number must be "
        "finite: correct it or leave it empty."
    )


def _other_columns(mine: dict[str, str], theirs: dict[str, str]) -> BadInput:
    for name, kind in theirs.items():
        if name in mine and mine[name] != kind:
            return BadInput(
                f"column {name!r} holds values of kind {mine[name]} in some parts of the table and {kind} in others; "
                f"convert it, or set its type: types={{{name!r}: 'category'}}."
            )
    differ = sorted(set(mine) ^ set(theirs))
    shown = ", ".join(map(repr, differ[:5]))
    what = f"only some have {shown}" if differ else "their order differs"
    return BadInput(f"The parts of the table do not have the same columns: {what}.")
