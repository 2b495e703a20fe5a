"""Facts and parts of rows wherever they are stored, and rows and labels as plain arrays for small checks."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data.location import Location, location_of
from linsep.data.scanning import Scan
from linsep.errors import BadInput

_BLOCK = 1 << 20  # numbers looked at together


def column_sizes(X: Any) -> FloatArray:
    """The largest absolute value of every column, of rows in memory, on disk or on a cluster (one round)."""
    if location_of(X) is not Location.MEMORY:
        return np.asarray(np.max(_of_parts(column_sizes, X), axis=0))
    if sp.issparse(X):
        largest = abs(X).max(axis=0).toarray().ravel()
    else:
        step = max(1, _BLOCK // max(1, X.shape[1]))
        parts = [np.abs(X[at : at + step]).max(axis=0) for at in range(0, X.shape[0], step)]
        largest = np.max(parts, axis=0) if parts else np.zeros(X.shape[1])
    return np.asarray(largest, dtype=np.float64)


def extremes(X: Any) -> tuple[float, float]:
    """The least and the largest stored number, 0 among them, wherever the rows are (one round on a cluster)."""
    if location_of(X) is not Location.MEMORY:
        parts = _of_parts(extremes, X)
        return float(np.min(parts)), float(np.max(parts))
    stored = X.data if sp.issparse(X) else X
    return float(stored.min(initial=0.0)), float(stored.max(initial=0.0))


def _of_parts(fn: Callable[[Any], Any], X: Any) -> list[Any]:
    """``fn(rows)`` of all parts of rows on disk or on a cluster."""
    if location_of(X) is Location.CLUSTER:
        return list(X.apply(partial(_of_rows, fn)))
    return [fn(block) for _, block in row_blocks(X)]


def _of_rows(fn: Callable[[Any], Any], X: Any, *vectors: Any) -> Any:
    """On a worker."""
    return fn(X)


def row_blocks(X: Any) -> Iterable[tuple[slice, Any]]:
    """All rows in memory or on disk: one block, or many, each of which the next one overwrites."""
    return X.blocks() if location_of(X) is Location.DISK else [(slice(0, X.shape[0]), X)]


def is_sparse(X: Any) -> bool:
    """Whether rows, wherever they are, are stored by their nonzero entries."""
    return bool(sp.issparse(X)) if location_of(X) is Location.MEMORY else X.sparse


def plain_rows(X: Any) -> Any:
    """X (n, d) as a float array or a CSR matrix; frames and lists are converted, text and NaN refused.

    Of a scan its rows on disk, which are read by ``X[rows]``.
    """
    if location_of(X) is Location.DISK:
        stored = getattr(X, "rows", X)
        if not np.isfinite(column_sizes(stored)).all():
            raise BadInput("X contains NaN or infinity; every number must be finite.")
        return stored
    if sp.issparse(X):
        rows = X.tocsr()
        values = rows.data
    else:
        try:
            rows = np.asarray(X)
            rows = rows if rows.dtype.kind == "f" else rows.astype(np.float64)
        except (TypeError, ValueError) as error:
            raise BadInput(f"X could not be read as a table of numbers: {error}") from error
        values = rows
    if rows.ndim != 2:
        raise BadInput(
            f"X needs two dimensions, one row per point, got shape {rows.shape}; for a single point use "
            "X.reshape(1, -1)."
        )
    if not np.isfinite(values).all():
        raise BadInput("X contains NaN or infinity; every number must be finite.")
    return rows


def y_of(X: Any, y: Any) -> Any:
    """y, or the target of a scan."""
    return X.given(y, None, "check")[0] if isinstance(X, Scan) else y


def plain_signs(y: Any, n: int, classes: npt.NDArray[Any] | None = None) -> FloatArray:
    """-1.0 for the first and +1.0 for the second of two classes, in rising order unless they are given."""
    labels = np.asarray(y).ravel()
    if len(labels) != n:
        raise BadInput(f"X has {n} rows, y has {len(labels)} labels; give one label for each row.")
    known = np.unique(labels) if classes is None else np.asarray(classes)
    if len(known) != 2:
        raise BadInput(f"two classes are needed, y holds {len(known)}.")
    second = labels == known[1]
    strangers = ~(second | (labels == known[0]))
    if strangers.any():
        row = int(np.argmax(strangers))
        raise BadInput(
            f"y holds the label {labels[row]!r} at row {row}; the classes are {known[0]!r} and {known[1]!r}."
        )
    return np.where(second, 1.0, -1.0)
