"""A table: named columns of four kinds, in batches of rows.

======== ============================================ ==================
kind     stored as                                    missing
======== ============================================ ==================
number   float64                                      NaN
boolean  float64, 0 and 1                             NaN
string   int32, a position in the list of its levels  -1
time     datetime64[us]                               NaT
======== ============================================ ==================

Columns of one kind lie side by side in one matrix per batch, so that a table of numbers is already
the matrix a model wants, and large batches go back to the system when they are given up.
"""

from __future__ import annotations

import difflib
import math
import mmap
from collections.abc import Iterable
from dataclasses import dataclass, field, replace
from datetime import date, datetime
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from linsep.errors import BadInput

NUMBER, BOOLEAN, STRING, TIME = KINDS = ("number", "boolean", "string", "time")
_OWN_PAGES = 1 << 18
_STORE = {NUMBER: "numbers", BOOLEAN: "numbers", STRING: "codes", TIME: "times"}


@dataclass(frozen=True, eq=False)
class Batch:
    """Some rows: one matrix for each way of storing."""

    numbers: npt.NDArray[np.float64]
    codes: npt.NDArray[np.int32]
    times: npt.NDArray[np.datetime64]

    def __len__(self) -> int:
        return len(self.numbers)


@dataclass(eq=False)
class Table:
    """Named columns, and the target if one was asked for.

    Attributes
    ----------
    kinds : dict {name: kind}
        The columns in their order.
    levels : dict {name: list of str}
        The distinct values of each string column, in order of appearance.
    y : ndarray (n,) or None
        The target.
    matrix : CSR or ndarray (n, d), or None
        The rows themselves, if the file held numbers without names (LIBSVM, npz).
    types : dict {name: str}
        What the caller said about columns; the encoder follows it.
    """

    kinds: dict[str, str] = field(default_factory=dict)
    levels: dict[str, list[str]] = field(default_factory=dict)
    batches: list[Batch] = field(default_factory=list)
    y: npt.NDArray[Any] | None = None
    matrix: Any = None
    types: dict[str, str] = field(default_factory=dict)
    source: str = "table"
    _places: dict[str, tuple[str, int]] = field(default_factory=dict, repr=False)

    def __len__(self) -> int:
        if self.matrix is not None:
            return int(self.matrix.shape[0])
        return sum(map(len, self.batches))

    @property
    def columns(self) -> list[str]:
        """Names, in order."""
        return list(self.kinds)

    def place(self, name: str) -> tuple[str, int]:
        """The store of a column, and its position there."""
        if len(self._places) != len(self.kinds):
            taken = dict.fromkeys(_STORE.values(), 0)
            for column, kind in self.kinds.items():
                store = _STORE[kind]
                self._places[column] = store, taken[store]
                taken[store] += 1
        return self._places[name]

    def values(self, name: str) -> npt.NDArray[Any]:
        """All rows of one column, as stored."""
        store, at = self.place(name)
        return np.concatenate([getattr(batch, store)[:, at] for batch in self.batches])

    def take(self, rows: npt.NDArray[np.int64]) -> Table:
        """These rows, in this order, as a table of its own."""
        y = None if self.y is None else self.y[rows]
        if self.matrix is not None:
            return replace(self, matrix=self.matrix[rows], y=y, _places={})
        stores = ("numbers", "codes", "times")
        edges = np.cumsum([0, *map(len, self.batches)])
        if (np.diff(rows) > 0).all():  # batch by batch: nothing is copied twice
            cuts = np.searchsorted(rows, edges)
            batches = [
                Batch(*(getattr(b, store)[rows[lo:hi] - edge] for store in stores))
                for b, edge, lo, hi in zip(self.batches, edges, cuts, cuts[1:], strict=False)
            ]
        else:
            joined = (
                np.concatenate([getattr(b, store) for b in self.batches])[rows] for store in stores
            )
            batches = [Batch(*joined)]
        return replace(self, batches=batches, y=y, _places={})

    def __repr__(self) -> str:
        if self.matrix is not None:
            return f"<Table {self.source}: matrix {self.matrix.shape}>"
        return f"<Table {self.source}: {len(self)} rows, {len(self.kinds)} columns>"


class Levels:
    """Strings as codes: each level gets the next number when it first appears."""

    def __init__(self, missing: frozenset[str] = frozenset()) -> None:
        self.names: list[str] = []
        self._code: dict[str | None, int] = {None: -1, **dict.fromkeys(missing, -1)}

    def codes(self, values: Iterable[str | None]) -> npt.NDArray[np.int32]:
        """The codes of some values; blanks around a value do not count."""
        found = []
        for value in values:
            level = value if value is None else value.strip()
            code = self._code.get(level)
            if code is None:
                code = self._code[level] = len(self.names)
                self.names.append(str(level))
            found.append(code)
        return np.array(found, np.int32)


def printable(text: str, longest: int = 200) -> str:
    """Text fit for a terminal on one line: control characters are written out, and it is not too long."""
    cut = text if len(text) <= longest else f"{text[: longest - 3]}..."
    return "".join(c if c.isprintable() else c.encode("unicode_escape").decode() for c in cut)


def missing_name(name: str, names: Iterable[str], what: str) -> BadInput:
    """The error for a column that is not there, with the names that come near."""
    names = list(names)
    near = difflib.get_close_matches(name, names, 3) or names[:10]
    shown = ", ".join(repr(printable(one, 60)) for one in near)
    return BadInput(f"{what} has no column {name!r}; did you mean one of {shown}?")


def from_frame(frame: Any, types: dict[str, str] | None = None) -> Table:
    """A table from a dataframe of any make; a Table passes as it is."""
    if isinstance(frame, Table):
        return frame
    try:
        data = nw.from_native(frame, eager_only=True)
    except TypeError as error:
        raise BadInput(
            f"an encoder needs named columns: a dataframe (pandas, polars, pyarrow) or what "
            f"linsep.read_table returns, got {type(frame).__name__}."
        ) from error
    except ValueError as error:
        raise BadInput(f"the frame has columns of the same name; rename them. {error}") from error
    table = Table(types=dict(types or {}), source=type(frame).__name__)
    stores: dict[str, list[npt.NDArray[Any]]] = {"numbers": [], "codes": [], "times": []}
    for name in data.columns:
        if not isinstance(name, str):
            raise BadInput(f"column names must be strings, got {name!r}; rename the columns.")
        kind, values, levels = _column(data[name], name)
        table.kinds[name] = kind
        stores[_STORE[kind]].append(values)
        if kind == STRING:
            table.levels[name] = levels
    table.batches.append(batch(len(data), **stores))
    return table


def batch(
    n: int,
    numbers: list[npt.NDArray[Any]],
    codes: list[npt.NDArray[Any]],
    times: list[npt.NDArray[Any]],
) -> Batch:
    """Columns side by side; each list is emptied as it is copied."""
    return Batch(
        _side_by_side(n, numbers, np.float64),
        _side_by_side(n, codes, np.int32),
        _side_by_side(n, times, "datetime64[us]"),
    )


def _side_by_side(n: int, columns: list[npt.NDArray[Any]], dtype: Any) -> npt.NDArray[Any]:
    block = _room(n, len(columns), np.dtype(dtype))
    for at in range(len(columns)):
        block[:, at] = columns[at]
        columns[at] = block[:0, at]
    return block


def _room(n: int, d: int, dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    """An empty matrix. A large one gets pages of its own, which go back to the system with it."""
    size = n * d * dtype.itemsize
    if size < _OWN_PAGES:
        return np.empty((n, d), dtype)
    try:
        pages = mmap.mmap(-1, size)
    except OSError:  # the system counts them
        return np.empty((n, d), dtype)
    return np.frombuffer(pages, dtype).reshape(n, d)


def _column(series: Any, name: str) -> tuple[str, npt.NDArray[Any], list[str]]:
    """Kind, stored values and levels of one narwhals series."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
        refuse_rounding(series, values, name)
        return (BOOLEAN if dtype == nw.Boolean else NUMBER), values, []
    if dtype in (nw.String, nw.Categorical, nw.Enum):
        return _strings(series.cast(nw.String).to_list())
    if dtype in (nw.Datetime, nw.Date):
        if getattr(dtype, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return TIME, series.to_numpy().astype("datetime64[us]"), []
    if dtype in (nw.Object, nw.Unknown):
        return _objects(series.to_list(), name)
    raise BadInput(
        f"column {name!r} holds {dtype}, which has no numeric form; leave it out or convert it."
    )


def refuse_rounding(series: Any, values: npt.NDArray[np.float64], name: str) -> None:
    """Whole numbers beyond 2^53 would be merged with their neighbours."""
    if not series.dtype.is_integer() or not len(values) or not np.nanmax(np.abs(values)) >= 2**53:
        return
    raise BadInput(
        f"column {name!r} holds whole numbers beyond 2^53, which float64 cannot tell apart; "
        "convert it to text if they are names, or leave it out."
    )


def _strings(values: list[Any]) -> tuple[str, npt.NDArray[Any], list[str]]:
    levels = Levels()
    plain = [value if isinstance(value, str) else None for value in values]
    return STRING, levels.codes(plain), levels.names


def _objects(values: list[Any], name: str) -> tuple[str, npt.NDArray[Any], list[str]]:
    """Python objects of one kind, None and NaN among them."""
    plain = [None if _is_missing(value) else value for value in values]
    kinds = {type(value) for value in plain if value is not None}
    if kinds <= {str}:
        return _strings(plain)
    if kinds == {bool} or kinds <= {int, float}:
        numbers = np.array([math.nan if value is None else float(value) for value in plain])
        return (BOOLEAN if kinds == {bool} else NUMBER), numbers, []
    if all(issubclass(kind, date | datetime) for kind in kinds):
        return TIME, np.array(plain, "datetime64[us]"), []
    shown = ", ".join(sorted(kind.__name__ for kind in kinds))
    raise BadInput(
        f"column {name!r} holds objects of type {shown}; make it all numbers or all strings."
    )


def _is_missing(value: Any) -> bool:
    if value is None or type(value).__name__ in ("NAType", "NaTType"):
        return True
    return isinstance(value, float) and math.isnan(value)
