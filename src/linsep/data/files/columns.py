"""Conversion of file columns: arrow types to kinds, strings to codes, target values, arrow arrays to NumPy."""

from __future__ import annotations

import difflib
import re
from collections.abc import Callable, Collection, Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME, is_exact, is_number
from linsep.data.files.source import refuse
from linsep.errors import BadInput, Refused

SHOWN = 10  # data rows that a message lists
_INTEGER = re.compile(r"[+-]?(0|[1-9][0-9]{0,17})")

#: Function of a data row (counting from 0) and a column name that returns line and column in the file, for messages.
Locate = Callable[[int, str], tuple[int | None, int | None]]


def arrow() -> Any:
    """Return the pyarrow module; raise ``Refused`` if it is not installed."""
    try:
        import pyarrow
    except ImportError as error:
        raise Refused(
            "Reading CSV, Parquet and Arrow files needs pyarrow: pip install pyarrow."
        ) from error
    return pyarrow


def kind_of_arrow(kind: Any) -> str | None:
    """Return the kind of a column of an arrow type, or None if it has no numeric form."""
    t = arrow().types
    if t.is_dictionary(kind):
        return kind_of_arrow(kind.value_type)
    if t.is_boolean(kind):
        return BOOLEAN
    if t.is_integer(kind) or t.is_floating(kind) or t.is_decimal(kind):
        return NUMBER
    if t.is_string(kind) or t.is_large_string(kind) or t.is_string_view(kind) or t.is_null(kind):
        return STRING
    return TIME if t.is_date(kind) or t.is_timestamp(kind) else None


class Levels:
    """Encoder of strings as integers: each level gets the next number when it first occurs, missing values -1."""

    def __init__(self, missing: frozenset[str] = frozenset()) -> None:
        self.names: list[str] = []
        self._code: dict[str | None, int] = {None: -1, **dict.fromkeys(missing, -1)}

    def codes(self, values: Iterable[str | None]) -> npt.NDArray[np.int32]:
        """Return the codes of some values; blanks around a value are ignored."""
        found = []
        for value in values:
            level = value if value is None else value.strip()
            code = self._code.get(level)
            if code is None:
                code = self._code[level] = len(self.names)
                self.names.append(str(level))
            found.append(code)
        return np.array(found, np.int32)


class Target:
    """Collector of the target column of one or several files; strings are stored as codes.

    With ``drop``, rows without a value are left out, and ``dropped`` counts them; otherwise they raise an error.
    """

    def __init__(
        self, name: str, missing: frozenset[str] = frozenset(), drop: bool = False
    ) -> None:
        self.name = name
        self.dropped = 0
        self._drop = drop
        self._levels = Levels(missing)
        self._chunks: list[npt.NDArray[Any]] = []
        self._text: bool | None = None
        self._absent: list[int] = []  # rows of this file without a value
        self._rows = 0  # rows of this file so far
        self._files = 0  # number of chunks of earlier files

    def add(self, values: Any) -> IntArray:
        """Append an arrow array and return the numbers of its rows that are left out."""
        pa = arrow()
        if pa.types.is_null(values.type):
            values = values.cast(pa.string())
        text = kind_of_arrow(values.type) == STRING
        if text:
            chunk = string_codes(values, self._levels)
            absent = np.flatnonzero(chunk < 0)
        else:
            absent = np.flatnonzero(values.is_null(nan_is_null=True).to_numpy(zero_copy_only=False))
            chunk = values.fill_null(False if pa.types.is_boolean(values.type) else 0)
            chunk = chunk.to_numpy(zero_copy_only=False)
        if self._text is not None and self._text != text:
            raise self._mixed()
        self._text = text
        if self._drop:
            self.dropped += len(absent)
            chunk = np.delete(chunk, absent)
        elif len(self._absent) <= SHOWN:
            self._absent += (absent[: SHOWN + 1] + self._rows).tolist()
        self._rows += len(values)
        self._chunks.append(chunk)
        return absent if self._drop else absent[:0]

    def merge(self, other: Target) -> None:
        """Append the target of the following files, which was read by another worker."""
        if None not in (self._text, other._text) and self._text != other._text:
            raise self._mixed()
        self._text = other._text if self._text is None else self._text
        self.dropped += other.dropped
        codes = np.append(self._levels.codes(other._levels.names), np.int32(-1))
        self._chunks += [codes[chunk] if other._text else chunk for chunk in other._chunks]

    def _mixed(self) -> BadInput:
        return BadInput(
            f"The target {self.name!r} holds text in some files and numbers in others; store it alike in all."
        )

    def end_file(self, path: str, locate: Locate) -> None:
        """Raise if the file that was just read has missing or infinite values."""
        if self._absent:
            rows = ", ".join(str(row + 1) for row in self._absent[:SHOWN])
            plural = "s" if len(self._absent) > 1 else ""
            more = ", ..." if len(self._absent) > SHOWN else ""
            refuse(
                path,
                f"the target {self.name!r} is missing in data row{plural} {rows}{more} (counting from 1); fill it in, "
                "or leave out rows without a target: unlabelled='drop'.",
                *locate(self._absent[0], self.name),
            )
        infinite = self._first_infinite()
        if infinite is not None:
            refuse(
                path,
                f"the target {self.name!r} is infinite or too large for float64 in data row "
                f"{infinite + 1} (counting from 1); correct it or leave the row out.",
                *locate(infinite, self.name),
            )
        self._files = len(self._chunks)
        self._rows = 0

    def _first_infinite(self) -> int | None:
        """Return the first row of this file whose target is infinite, or None; None also for text labels."""
        y = np.concatenate(self._chunks[self._files :] or [np.empty(0)])
        if self._text:
            try:
                of_level = np.array(self._levels.names, np.float64)
            except ValueError:
                return None
            if not np.isinf(of_level).any() or not all(map(is_number, self._levels.names)):
                return None
            y = of_level[y]
        infinite = y.dtype.kind == "f" and np.isinf(y)
        return int(np.argmax(infinite)) if np.any(infinite) else None

    def values(self) -> npt.NDArray[Any]:
        """Return all values: as integers if every label is written as one, otherwise as floats or strings."""
        y = np.concatenate(self._chunks) if self._chunks else np.empty(0)
        names = self._levels.names
        if not names:
            return y
        if all(_INTEGER.fullmatch(name) for name in names):
            return np.array([int(name) for name in names])[y]
        if all(map(is_number, names)):
            found = np.array([float(name) for name in names])
            if all(map(is_exact, names)) or len(np.unique(found)) == len(names):
                return found[y]  # otherwise rounding would merge two classes
        return np.array(names, dtype=object)[y]


def whole_labels(y: FloatArray) -> npt.NDArray[Any]:
    """Return the labels of a LIBSVM file, as integers if all of them are whole numbers."""
    whole = np.all(y == np.floor(y)) and np.abs(y).max(initial=0.0) < 2**53
    return y.astype(np.int64) if whole else y


def string_codes(values: Any, levels: Levels) -> npt.NDArray[np.int32]:
    """Return the codes of an arrow array of strings; each distinct value of the batch is looked up once."""
    pa = arrow()
    if not pa.types.is_dictionary(values.type):
        if pa.types.is_null(values.type):
            return np.full(len(values), -1, np.int32)
        values = values.cast(pa.large_string()).dictionary_encode()
    of_level = np.append(
        levels.codes(values.dictionary.cast(pa.string()).to_pylist()), np.int32(-1)
    )
    indices = values.indices.cast(pa.int64()).fill_null(len(of_level) - 1)
    return np.asarray(of_level[indices.to_numpy(zero_copy_only=False)])


def numbers(values: Any, path: str, name: str, row: int, locate: Locate) -> FloatArray:
    """Convert an arrow array to float64, with NaN for missing values; ``row`` is the number of the first row."""
    pa = arrow()
    if pa.types.is_dictionary(values.type):
        values = values.dictionary_decode()
    if pa.types.is_boolean(values.type):
        values = values.cast(pa.uint8())
    try:
        values = values.cast(pa.float64())
    except pa.ArrowInvalid:
        refuse(
            path,
            f"column {name!r} holds whole numbers beyond 2^53, which float64 cannot tell apart; "
            "store them as text if they are names, or leave the column out with "
            f"ignore=[{name!r}].",
        )
    found: FloatArray = values.to_numpy(zero_copy_only=False)
    infinite = np.isinf(found)
    if infinite.any():
        at = row + int(np.argmax(infinite))
        refuse(
            path,
            f"column {name!r} is infinite or too large for float64 in data row {at + 1} "
            "(counting from 1); correct it or leave it empty.",
            *locate(at, name),
        )
    return found


def times(values: Any) -> npt.NDArray[np.datetime64]:
    """Convert an arrow array of dates or times to datetime64[us], with NaT for missing values."""
    pa = arrow()
    values = values.cast(pa.timestamp("us", getattr(values.type, "tz", None)), safe=False)
    return np.asarray(values.to_numpy(zero_copy_only=False).astype("datetime64[us]"))


def printable(text: str, longest: int = 200) -> str:
    """Return text for one line of a terminal: control characters are escaped, and long text is truncated."""
    cut = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def refuse_ignored_target(target: str | None, ignore: frozenset[str]) -> None:
    """Raise BadInput if the target column is also to be ignored."""
    if target is not None and target in ignore:
        raise BadInput(f"column {target!r} is the target and also in ignore; take it out of one.")


def missing_name(
    name: str, names: Iterable[str], what: str, used: Collection[str] = ()
) -> BadInput:
    """Return the error for a column that does not exist, with similar names that are not ``used`` themselves."""
    names, given = list(names), str(name).casefold()
    free = [one for one in names if one not in used]
    near = difflib.get_close_matches(given, (one.casefold() for one in free), 3)
    near = [one for one in free if one.casefold() in near]
    near = near or [one for one in free if given and given in one.casefold()][:3]
    if near:
        return BadInput(f"{what} has no column {name!r}; did you mean {_listed(near, ' or ')}?")
    return BadInput(f"{what} has no column {name!r}; its columns are {_listed(names)}.")


def missing_target(names: Iterable[str], what: str) -> BadInput:
    """Return the error for a table whose target column was not named."""
    return BadInput(
        f"{what}: name the column to predict with target='NAME'; its columns are {_listed([*names])}."
    )


def _listed(names: list[str], last: str = ", ") -> str:
    """Quote names; of more than 20, the first 19 and the last, which is often the target."""
    left_out = len(names) - 20
    quoted = [repr(printable(one, 60)) for one in names]
    if left_out > 0:
        quoted = [*quoted[:19], f"{left_out:,} more", quoted[-1]]
    return last.join([", ".join(quoted[:-1]), quoted[-1]] if len(quoted) > 1 else quoted)
