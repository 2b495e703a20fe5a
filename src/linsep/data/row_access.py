"""Column statistics and blocks of rows at any location, and conversion of X and y to plain arrays for checks."""

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

_BLOCK = 1 << 20  # entries processed together


def column_sizes(X: Any) -> FloatArray:
    """Return the largest absolute value of every column, at any location. One pass."""
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
    """Return the smallest and the largest entry, 0 included, at any location. One pass."""
    if location_of(X) is not Location.MEMORY:
        parts = _of_parts(extremes, X)
        return float(np.min(parts)), float(np.max(parts))
    stored = X.data if sp.issparse(X) else X
    return float(stored.min(initial=0.0)), float(stored.max(initial=0.0))


def _of_parts(fn: Callable[[Any], Any], X: Any) -> list[Any]:
    """Return ``fn(rows)`` for every block on disk or partition on a cluster."""
    if location_of(X) is Location.CLUSTER:
        return list(X.apply(partial(_of_rows, fn)))
    return [fn(block) for _, block in row_blocks(X)]


def _of_rows(fn: Callable[[Any], Any], X: Any, *vectors: Any) -> Any:
    """Return ``fn(X)``; called on a worker, with the target vectors, which it ignores."""
    return fn(X)


def row_blocks(X: Any) -> Iterable[tuple[slice, Any]]:
    """Iterate over (slice, rows): one block in memory, many on disk, where each block overwrites the previous one."""
    return X.blocks() if location_of(X) is Location.DISK else [(slice(0, X.shape[0]), X)]


def is_sparse(X: Any) -> bool:
    """Return whether rows, at any location, are stored by their nonzero entries."""
    return bool(sp.issparse(X)) if location_of(X) is Location.MEMORY else X.sparse


def plain_rows(X: Any) -> Any:
    """Return X (n, d) as a float array or a CSR matrix; convert frames and lists, raise for text and NaN.

    For a scan, return its rows on disk, which are read by ``X[rows]``.
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
    """Return y, or the target of X if X is a scan."""
    return X.given(y, None, "check")[0] if isinstance(X, Scan) else y


def plain_signs(y: Any, n: int, classes: npt.NDArray[Any] | None = None) -> FloatArray:
    """Return -1.0 for rows of the first class and +1.0 for the second, in the order of ``classes`` or sorted."""
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
