"""Conversion of dataframes (pandas, polars, pyarrow, ...) to tables, through narwhals."""

from __future__ import annotations

import math
from datetime import date, datetime
from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray
from linsep.data.entrance.inputs import is_missing
from linsep.data.files.columns import Levels
from linsep.data.files.inference import BOOLEAN, NUMBER, STRING, TIME
from linsep.errors import BadInput
from linsep.tables.batches import batch
from linsep.tables.table import STORE, Table


def from_frame(frame: Any, types: dict[str, str] | None = None) -> Table:
    """Convert a dataframe to a Table; a Table is returned unchanged."""
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
    known = []
    for name in data.columns:
        if not isinstance(name, str):
            raise BadInput(f"column names must be strings, got {name!r}; rename the columns.")
        kind, values, levels = _column(data[name], name)
        table.kinds[name] = kind
        stores[STORE[kind]].append(values)
        if kind == STRING:
            known.append(levels)
    table.batches.append(batch(len(data), **stores, levels=known))
    return table


def _column(series: Any, name: str) -> tuple[str, npt.NDArray[Any], list[str]]:
    """Return kind, stored values and levels of one narwhals series."""
    dtype = series.dtype
    if dtype.is_numeric() or dtype == nw.Boolean:
        values = series.cast(nw.Float64).to_numpy()
        refuse_rounding(series, values, name)
        return (BOOLEAN if dtype == nw.Boolean else NUMBER), values, []
    if dtype == nw.String:  # a cast would convert None in an object column to text
        return _strings(series.to_list())
    if dtype in (nw.Categorical, nw.Enum):
        return _strings([None if is_missing(v) else str(v) for v in series.to_list()])
    if dtype in (nw.Datetime, nw.Date):
        if getattr(dtype, "time_zone", None):
            series = series.dt.convert_time_zone("UTC").dt.replace_time_zone(None)
        return TIME, series.to_numpy().astype("datetime64[us]"), []
    if dtype in (nw.Object, nw.Unknown):
        return _objects(series.to_list(), name)
    raise BadInput(
        f"column {name!r} holds {dtype}, which has no numeric form; leave it out or convert it."
    )


def refuse_rounding(series: Any, values: FloatArray, name: str) -> None:
    """Raise if a column has integers beyond 2^53, which rounding to float64 would merge with their neighbours."""
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
    """Return kind, values and levels of Python objects of one type, with None and NaN for missing values."""
    plain = [None if is_missing(value) else value for value in values]
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
