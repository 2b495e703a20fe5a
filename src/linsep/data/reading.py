"""Rows and labels as plain arrays, for small questions asked of any table: a hyperplane's scores, a check."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.data.cluster import ClusterRows
from linsep.data.scanning import Scan
from linsep.data.stored import StoredRows
from linsep.errors import BadInput

_BLOCK = 1 << 20  # numbers looked at together


def column_sizes(X: Any) -> npt.NDArray[np.float64]:
    """The largest absolute value of every column, of rows in memory, on disk or on a cluster (one round)."""
    if isinstance(X, ClusterRows):
        return np.asarray(np.max(X.apply(_sizes_of_part), axis=0))
    if isinstance(X, StoredRows):
        return np.asarray(np.max([column_sizes(block) for _, block in X.blocks()], axis=0))
    if sp.issparse(X):
        largest = abs(X).max(axis=0).toarray().ravel()
    else:
        step = max(1, _BLOCK // max(1, X.shape[1]))
        parts = [np.abs(X[at : at + step]).max(axis=0) for at in range(0, X.shape[0], step)]
        largest = np.max(parts, axis=0) if parts else np.zeros(X.shape[1])
    return np.asarray(largest, dtype=np.float64)


def extremes(X: Any) -> tuple[float, float]:
    """The least and the largest stored number, 0 among them, wherever the rows are (one round on a cluster)."""
    if isinstance(X, ClusterRows):
        parts = X.apply(_extremes_of_part)
    elif isinstance(X, StoredRows):
        parts = [np.array(extremes(block)) for _, block in X.blocks()]
    else:
        stored = X.data if sp.issparse(X) else X
        return float(stored.min(initial=0.0)), float(stored.max(initial=0.0))
    return float(np.min(parts)), float(np.max(parts))


def _extremes_of_part(X: Any, *vectors: Any) -> npt.NDArray[np.float64]:
    """On a worker."""
    return np.array(extremes(X))


def _sizes_of_part(X: Any, *vectors: Any) -> npt.NDArray[np.float64]:
    """On a worker."""
    return column_sizes(X)


def plain_rows(X: Any) -> Any:
    """X (n, d) as a float array or a CSR matrix; frames and lists are converted, text and NaN refused.

    Of a scan its rows on disk, which are read by ``X[rows]``.
    """
    if isinstance(X, Scan | StoredRows):
        stored = X.rows if isinstance(X, Scan) else X
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
    """y, or the target that a scan brings along."""
    return X.given(y, None, "check")[0] if isinstance(X, Scan) else y


def plain_signs(y: Any, n: int, classes: npt.NDArray[Any] | None = None) -> npt.NDArray[np.float64]:
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
