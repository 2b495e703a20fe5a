"""From what a column holds to how it is encoded."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.errors import BadInput
from linsep.tables.encodings import (
    Boolean,
    Category,
    Dropped,
    Encoding,
    Hashed,
    Number,
    Text,
    Time,
)

_ID_NAME = re.compile(r"(.*[_ ])?(id|uuid|guid|index|key|rownum|row)", re.IGNORECASE)
_ID_ROWS = 20  # fewer distinct values prove nothing
_WORDS = 3.0  # per value, from which strings are text
_DAY = np.timedelta64(1, "D")


@dataclass(frozen=True)
class Settings:
    """What the encoder was asked."""

    standardise: bool
    max_levels: int
    min_count: int
    hash_size: int
    analyzer: str
    ngrams: tuple[int, int]


def count_gaps(values: npt.NDArray[Any]) -> int:
    """How many of the stored values are missing."""
    if values.dtype.kind == "i":
        return int(np.count_nonzero(values < 0))
    return int(np.count_nonzero(np.isnat(values) if values.dtype.kind == "M" else np.isnan(values)))


def stored_kind(asked: str | None, kind: str) -> str:
    """The kind a column must be stored as for the type that was asked for."""
    if asked in ("category", "hashed", "text"):
        return STRING
    return {"number": NUMBER, "boolean": BOOLEAN, "time": TIME}.get(asked or "", kind)


def plan(
    name: str,
    kind: str,
    values: npt.NDArray[Any],
    levels: list[str],
    asked: str | None,
    how: Settings,
) -> Encoding:
    """The encoding of a column; ``asked`` is what the user said about it, or None."""
    if asked == "drop":
        return Dropped(name, "as asked")
    if kind == STRING:
        return _plan_strings(name, values, levels, asked, how)
    if kind == TIME:
        return _plan_times(name, values)
    missing = np.isnan(values)
    known = values[~missing] if missing.any() else values
    why = _worthless(name, known, missing, asked)
    if why:
        return Dropped(name, why)
    if kind == BOOLEAN:
        return Boolean(name, float(known.mean() >= 0.5), bool(missing.any()))
    fill = _median(known)
    mean, scale = 0.0, 1.0
    if how.standardise:
        whole = np.where(missing, fill, values)
        mean, scale = float(whole.mean()), float(whole.std()) or 1.0
    return Number(name, fill, bool(missing.any()), mean, scale)


def convert(
    name: str, kind: str, values: npt.NDArray[Any], levels: list[str], wanted: str
) -> tuple[npt.NDArray[Any], list[str]]:
    """Stored values of one kind as another."""
    if kind == wanted or (kind, wanted) == (BOOLEAN, NUMBER):
        return values, levels
    if kind == STRING and not (values >= 0).any():  # nothing is known: missing in any kind
        empty: npt.NDArray[Any] = np.full(len(values), np.nan)
        return (empty.astype("datetime64[us]") if wanted == TIME else empty), []
    if wanted == STRING and kind in (NUMBER, BOOLEAN):
        found, codes = np.unique(values, return_inverse=True)
        codes = np.where(np.isnan(values), -1, codes).astype(np.int32)
        return codes, [_written(x) for x in found.tolist()]
    if (kind, wanted) == (NUMBER, BOOLEAN) and np.isin(values[~np.isnan(values)], (0, 1)).all():
        return values, []
    shown = f", for instance {levels[0]!r}" if levels else ""
    raise BadInput(
        f"column {name!r} holds values of kind {kind}{shown}, but {wanted} is needed; convert the "
        f"column, or fit again with types={{{name!r}: ...}}."
    )


def _written(x: float) -> str:
    return str(int(x)) if x == x and float(x).is_integer() else repr(x)  # noqa: PLR0124


def _worthless(
    name: str, known: npt.NDArray[Any], missing: npt.NDArray[np.bool_], asked: str | None
) -> str | None:
    """Why a column of numbers carries nothing, if so."""
    if not len(known):
        return "every value is missing"
    if not missing.any() and known.min() == known.max():
        return f"constant: every value is {_written(float(known[0]))}"
    if asked is not None or len(known) < _ID_ROWS or not _whole(known):
        return None
    if not missing.any() and np.all(np.diff(known) == 1):
        return "a running number: it names the row and says nothing about it"
    if _ID_NAME.fullmatch(name) and len(np.unique(known)) == len(known):
        return "an identifier by its name, different in every row"
    return None


def _median(x: npt.NDArray[np.float64]) -> float:
    """Without the overhead of numpy's, which counts for a hundred thousand columns."""
    half = len(x) // 2
    if len(x) % 2:
        return float(np.partition(x, half)[half])
    middle = np.partition(x, (half - 1, half))
    return float((middle[half - 1] + middle[half]) / 2)


def _whole(x: npt.NDArray[np.float64]) -> bool:
    first = x[:_ID_ROWS]
    return bool(np.all(first == np.floor(first)) and np.all(x == np.floor(x)))


def _plan_strings(
    name: str, codes: npt.NDArray[np.int32], levels: list[str], asked: str | None, how: Settings
) -> Encoding:
    known = codes[codes >= 0]
    missing = len(known) < len(codes)
    if not len(known):
        return Dropped(name, "every value is missing")
    counts = np.bincount(known, minlength=len(levels))
    if not missing and (counts > 0).sum() == 1:
        return Dropped(name, f"constant: every value is {levels[int(counts.argmax())]!r}")
    words = sum(len(level.split()) for level in levels) / max(len(levels), 1)
    mostly_distinct = len(levels) > 0.5 * len(known) and len(known) >= _ID_ROWS
    if asked == "text" or (asked is None and mostly_distinct and words >= _WORDS):
        return Text(name, how.hash_size, how.analyzer, *how.ngrams)
    if asked is None and counts.max() == 1 and len(known) >= _ID_ROWS:
        return Dropped(name, "an identifier: different in every row")
    frequent = np.flatnonzero(counts >= how.min_count)
    if asked == "hashed" or (asked is None and len(frequent) > how.max_levels):
        return Hashed(name, how.hash_size, missing)
    kept = tuple(sorted(levels[at] for at in frequent))
    rare = bool(((counts > 0) & (counts < how.min_count)).any())
    return Category(name, kept, rare, missing)


def _plan_times(name: str, values: npt.NDArray[Any]) -> Encoding:
    missing = np.isnat(values)
    known = values[~missing]
    if not len(known):
        return Dropped(name, "every value is missing")
    first, last = known.min(), known.max()
    if first == last and not missing.any():
        return Dropped(name, f"constant: every value is {first}")
    days = (known - first) / _DAY
    return Time(
        name=name,
        origin=str(first),
        scale=max(float(days.max()), 1.0),
        fill=float(np.median(days)),
        indicator=bool(missing.any()),
        month=bool(days.max() > 60),
        weekday=bool(days.max() > 13),
        hour=bool((known != known.astype("datetime64[D]")).any()),
    )
