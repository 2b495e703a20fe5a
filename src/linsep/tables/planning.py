"""Choice of the encoding of each column from its statistics, and conversion between kinds of columns."""

from __future__ import annotations

import re
from collections.abc import Collection
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.errors import BadInput
from linsep.tables.encodings import (
    ENCODINGS,
    Boolean,
    Category,
    Dropped,
    Encoding,
    Hashed,
    Number,
    Text,
    Time,
)
from linsep.tables.statistics import ColumnStatistics, Numbers, Strings, Times

_ID_ROWS = 20  # with fewer values, distinct ones do not indicate an identifier
_WORDS = 3.0  # mean number of words from which strings are treated as text
_DAY = 86_400e6  # microseconds
_DATE_LIKE = re.compile(r"\d{1,4}[./-]\d{1,2}[./-]\d{1,4}([T ].*)?")
OTHER_DATES = "dates are read as such if written 2024-01-31"


@dataclass(frozen=True)
class Settings:
    """Checked parameters of the encoder."""

    standardise: bool
    max_levels: int
    min_count: int
    hash_size: int
    analyzer: str
    ngrams: tuple[int, int]


def count_gaps(values: npt.NDArray[Any]) -> int:
    """Return the number of missing values."""
    if values.dtype.kind == "i":
        return int(np.count_nonzero(values < 0))
    return int(np.count_nonzero(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)))


def stored_kind(asked: str | None, kind: str) -> str:
    """Return the kind in which a column of the given type must be stored; its own kind if no type was set."""
    return kind if asked in (None, "drop") else ENCODINGS[asked].kind


def plan(found: ColumnStatistics, types: dict[str, str], how: Settings) -> list[Encoding]:
    """Choose the encodings of all columns; ``types`` are the column types set by the user."""
    found.numbers.flush()
    place = {name: j for j, name in enumerate(found.number_names)}
    encodings: list[Encoding] = []
    for name, kind in found.kinds.items():
        asked = types.get(name)
        if asked == "drop":
            encodings.append(Dropped(name, "as asked"))
        elif kind == STRING:
            encodings.append(_plan_strings(name, found.strings[name], asked, how))
        elif kind == TIME:
            encodings.append(_plan_times(name, found.times[name]))
        else:
            encodings.append(
                _plan_numbers(name, kind, found.numbers, place[name], found.n, asked, how)
            )
    return encodings


def _plan_numbers(
    name: str, kind: str, found: Numbers, j: int, n: int, asked: str | None, how: Settings
) -> Encoding:
    missing = int(found.missing[j])
    why = _worthless(found, j, n, asked)
    if why:
        return Dropped(name, why)
    if kind == BOOLEAN:
        mean, _ = found.moments.mean_and_deviation(j, n - missing, 0, 0.0)
        return Boolean(name, float(mean >= 0.5), bool(missing))
    fill, mean, scale = found.median(j), 0.0, 1.0
    if how.standardise:
        mean, scale = found.moments.mean_and_deviation(j, n, missing, fill)
    return Number(name, fill, bool(missing), mean, scale or 1.0)


def convert(
    name: str, kind: str, values: npt.NDArray[Any], levels: list[str], wanted: str
) -> tuple[npt.NDArray[Any], list[str]]:
    """Convert stored values of one kind to another; return values and levels, or raise."""
    if kind == wanted or (kind, wanted) == (BOOLEAN, NUMBER):
        return values, levels
    if kind == STRING and not (values >= 0).any():  # all values are missing, in any kind
        empty: npt.NDArray[Any] = np.full(len(values), np.nan)
        return (empty.astype("datetime64[us]") if wanted == TIME else empty), []
    if wanted == STRING and kind in (NUMBER, BOOLEAN):
        found, codes = np.unique(values, return_inverse=True)
        codes = np.where(np.isnan(values), -1, codes).astype(np.int32)
        return codes, [_write(x) for x in found.tolist()]
    if (kind, wanted) == (NUMBER, BOOLEAN) and np.isin(values[~np.isnan(values)], (0, 1)).all():
        return values, []
    shown = f", for instance {levels[0]!r}" if levels else ""
    raise BadInput(
        f"column {name!r} holds values of kind {kind}{shown}, but {wanted} is needed; convert the "
        f"column, or fit again with types={{{name!r}: ...}}."
    )


def _write(x: float) -> str:
    return str(int(x)) if x == x and float(x).is_integer() else repr(x)  # noqa: PLR0124


def _worthless(found: Numbers, j: int, n: int, asked: str | None) -> str | None:
    """Return why a column of numbers has no information, or None."""
    missing = int(found.missing[j])
    known = n - missing
    if not known:
        return "every value is missing"
    if not missing and found.low[j] == found.high[j]:
        return f"constant: every value is {_write(float(found.low[j]))}"
    if asked is not None or known < _ID_ROWS or not found.whole[j]:
        return None
    if not missing and found.consecutive[j]:
        return "a row number: it identifies the row and carries no information"
    if j in found.identifiers and found.all_distinct(j, known):
        return "an identifier by its name, different in every row"
    return None


def look_like_dates(levels: Collection[str]) -> bool:
    """Return whether all levels look like dates, in a format that is not read as a date."""
    return len(levels) > 0 and all(map(_DATE_LIKE.fullmatch, levels))


def _plan_strings(name: str, found: Strings, asked: str | None, how: Settings) -> Encoding:
    missing = found.missing > 0
    if not found.known:
        return Dropped(name, "every value is missing")
    if not missing and found.distinct == 1:
        return Dropped(name, f"constant: every value is {next(iter(found.counts))!r}")
    mostly_distinct = found.distinct > 0.5 * found.known and found.known >= _ID_ROWS
    if asked == "text" or (asked is None and mostly_distinct and found.words >= _WORDS):
        return Text(name, how.hash_size, how.analyzer, *how.ngrams)
    if asked is None and found.known >= _ID_ROWS and found.all_distinct:
        hint = f"; {OTHER_DATES}" if look_like_dates(found.counts) else ""
        return Dropped(name, f"an identifier: different in every row{hint}")
    kept = found.frequent(how.min_count)
    many = len(kept) > how.max_levels or found.sample is not None
    if asked == "hashed" or (asked is None and many):
        return Hashed(name, how.hash_size, missing)
    return Category(name, tuple(kept), len(kept) < len(found.counts), missing)


def _plan_times(name: str, found: Times) -> Encoding:
    if not found.known:
        return Dropped(name, "every value is missing")
    first = np.datetime64(found.low, "us")
    if found.low == found.high and not found.missing:
        return Dropped(name, f"constant: every value is {first}")
    longest = (found.high - found.low) / _DAY
    low, high = ((key - found.low) / _DAY for key in found.values.middle())
    middle = low if low == high else (low + high) / 2
    return Time(
        name=name,
        origin=str(first),
        scale=max(longest, 1.0),
        fill=min(max(middle, 0.0), longest),
        indicator=found.missing > 0,
        month=longest > 60,
        weekday=longest > 13,
        hour=found.hours,
    )
