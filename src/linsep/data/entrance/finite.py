"""Errors for NaN and infinity in the input, with row and column of the first."""

from __future__ import annotations

from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data.location import Location, location_of
from linsep.data.mapped_files import require_untruncated
from linsep.errors import NonFinite

_BLOCK = 1 << 18  # entries checked together, so that temporary arrays stay in the cache


def refuse_nonfinite(X: Any, names: npt.NDArray[np.object_] | None = None) -> None:
    """Raise if X contains NaN or infinity, with the position of the first in row order.

    Parameters
    ----------
    X : ndarray (n, d), CSR matrix or rows on disk
    names : ndarray of str, optional
        Column names, for the message.
    """
    if X.dtype.kind in "iub":
        return
    if location_of(X) is Location.DISK:
        if X.sparse:
            return  # checked when they were decoded
    elif _surely_finite(X):
        return
    require_untruncated(X)  # lost pages of a truncated file read as NaN
    if sp.issparse(X):
        at = _first(X.data[: X.nnz])
        if at >= 0:
            row = int(np.searchsorted(X.indptr, at, side="right")) - 1
            _refuse(X.data[at], row, int(X.indices[at]), names)
        return
    n, d = X.shape
    step = max(1, _BLOCK // d)
    for start in range(0, n, step):
        part = X[start : start + step]
        finite = np.isfinite(part)
        if not finite.all():
            row, col = divmod(int(np.argmin(finite)), d)
            _refuse(part[row, col], start + row, col, names)


def _surely_finite(X: Any) -> bool:
    """Return whether the kernels can read X and find only finite numbers."""
    if X.dtype.char not in "fd" or not X.dtype.isnative:
        return False
    sparse = type(X) is not np.ndarray and sp.issparse(X)
    values = X.data[: X.nnz].reshape(1, -1) if sparse else X
    readable = values.flags.c_contiguous and values.flags.aligned
    return bool(readable) and _kernels.all_finite(_kernels.Rows(values))


def refuse_nonfinite_vector(v: FloatArray, name: str) -> None:
    """Raise if a vector contains NaN or infinity; ``name`` is its name in the message."""
    at = _first(v)
    if at >= 0:
        raise NonFinite(
            f"Input {name} contains {_kind(v[at])}.\nThe first is at row {at} (counting from 0): "
            f"every entry of {name} must be finite; correct it or leave that row out."
        )


def _refuse(value: Any, row: int, col: int, names: npt.NDArray[np.object_] | None) -> NoReturn:
    name = "" if names is None else f" ({str(names[col])!r})"
    how = (
        "fill the value in, for instance with linsep.Encoder or sklearn.impute.SimpleImputer in a pipeline."
        if np.isnan(value)
        else "replace the value."
    )
    raise NonFinite(
        f"Input X contains {_kind(value)}.\nThe first is at row {row}, column {col}{name} "
        f"(counting from 0): every number must be finite; leave that row out, or {how}"
    )


def _kind(value: Any) -> str:
    return "NaN" if np.isnan(value) else f"infinity or a value too large for {value.dtype!r}"


def _first(v: npt.NDArray[Any]) -> int:
    """Return the position of the first NaN or infinity of v, or -1."""
    for start in range(0, len(v), _BLOCK):
        finite = np.isfinite(v[start : start + _BLOCK])
        if not finite.all():
            return start + int(np.argmin(finite))
    return -1
