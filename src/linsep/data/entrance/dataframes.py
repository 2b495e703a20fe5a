"""Conversion of dataframes (pandas, polars, pyarrow, ...) to numeric arrays and column names, through narwhals."""

from __future__ import annotations

from typing import Any

import narwhals as nw
import numpy as np
import numpy.typing as npt

from linsep.errors import BadInput

Names = npt.NDArray[np.object_]

# Accepted besides numbers: booleans (0 and 1), and objects and sparse columns, which narwhals does not know.
_ACCEPTED = (nw.Boolean, nw.Object, nw.Unknown)


def open_frame(X: Any) -> tuple[Any, Names | None]:
    """Return values and column names of X if it is a dataframe; otherwise X itself and None.

    The names are None unless all of them are strings, as in scikit-learn.
    """
    try:
        frame = nw.from_native(X, pass_through=True)
    except ValueError as error:
        raise BadInput(f"X has columns of the same name; rename them. {error}") from error
    if isinstance(frame, nw.LazyFrame):
        raise BadInput(
            f"X is a lazy frame ({type(X).__name__}) and holds no rows yet; collect it first (of DuckDB: X.df(), or "
            "X.pl() for polars)."
        )
    if not isinstance(frame, nw.DataFrame):
        return X, None
    schema = frame.collect_schema()
    _refuse_text(schema)
    return _values(frame, schema), _names(frame.columns)


def _refuse_text(schema: Any) -> None:
    wrong = [
        f"{name!r} ({str(dtype).partition('(')[0]})"  # Datetime, without unit and zone
        for name, dtype in schema.items()
        if not dtype.is_numeric() and dtype not in _ACCEPTED
    ]
    if wrong:
        shown = ", ".join(wrong[:5]) + (f" and {len(wrong) - 5} more" if len(wrong) > 5 else "")
        raise BadInput(
            f"X must hold numbers, but these columns do not: {shown}; encode them, for instance by "
            "make_pipeline(linsep.Encoder(), model), which takes text, categories and times, or leave them out."
        )


def _values(frame: nw.DataFrame[Any], schema: Any) -> Any:
    """Return the values in C order: float32 if every column is float32, otherwise float64; nulls become NaN."""
    dtypes = list(schema.values())
    if frame.implementation.is_pandas() and any(t in (nw.Object, nw.Unknown) for t in dtypes):
        return _from_pandas(frame.to_native())
    if not any(all(t == kind for t in dtypes) for kind in (nw.Float32, nw.Float64)):
        frame = frame.select(nw.all().cast(nw.Float64))
    return np.ascontiguousarray(frame.to_numpy())


def _from_pandas(frame: Any) -> Any:
    """Convert a pandas frame with object columns to an array of objects, or with sparse columns for scikit-learn."""
    if "object" in map(str, frame.dtypes):
        return frame.to_numpy(dtype=object)
    for name, dtype in frame.dtypes.items():
        if getattr(dtype, "fill_value", 0) != 0:  # scipy's sparse matrices can omit only zeros
            frame = frame.assign(**{str(name): frame[name].sparse.to_dense()})
    return frame


def _names(columns: list[Any]) -> Names | None:
    """Return the column names if all are strings, None if none are; raise for a mixture."""
    strings = sum(isinstance(name, str) for name in columns)
    if strings and strings < len(columns):
        other = next(name for name in columns if not isinstance(name, str))
        raise TypeError(
            "Feature names are only supported if all input features have string names, but "
            f"column {other!r} is a {type(other).__name__}; rename the columns, for instance "
            "X.columns = X.columns.astype(str)."
        )
    return np.asarray(columns, dtype=object) if strings else None
