"""Conversion of sparse matrices of any format to CSR with validated indices.

The kernels use indices as memory offsets without checks, so every index is checked here.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep import _kernels
from linsep.errors import BadInput

SORTED = 4000  # columns up to which rows are sorted, because Gram matrices need sorted rows


def to_csr(X: Any) -> Any:
    """Return X as a CSR matrix without duplicate entries; X itself if it is one already.

    Sorting the columns of each row takes longer than most fits of text, so wide matrices, for which no Gram matrix is
    computed, are not sorted.
    """
    if X.ndim != 2:
        raise BadInput(
            f"Expected 2D input, got a sparse array of shape {X.shape}. Reshape your data: "
            "X.reshape(-1, 1) if it is one column, X.reshape(1, -1) if it is one row."
        )
    _check_structure(X)
    if X.format != "csr":
        X = X.tocsr()
    if not (X.data.flags.aligned and X.indices.flags.aligned and X.indptr.flags.aligned):
        X = X.copy()
    if not X.dtype.isnative:
        X = X.astype(X.dtype.newbyteorder("="))
    if X.indices.dtype != X.indptr.dtype or not X.indices.dtype.isnative:
        X = type(X)((X.data, X.indices.astype(np.int64), X.indptr.astype(np.int64)), X.shape)
    if not X.has_canonical_format and (X.shape[1] <= SORTED or _repeats(X)):
        X = X.copy()
        X.sum_duplicates()
    return X


def _repeats(X: Any) -> bool:
    """Return whether a row has a duplicate column; also True if there are too many columns to tell without sorting."""
    if X.shape[1] > 16 * X.nnz + 1_000_000 or X.shape[0] >= 2**31:
        return True
    return _kernels.csr_repeats(X.indices, X.indptr, X.shape[1])


def _check_structure(X: Any) -> None:
    n, d = X.shape
    if X.format in ("csr", "csc"):
        major, minor = (n, d) if X.format == "csr" else (d, n)
        if _sound(X, major, minor):
            return
        _check_pointers(X, major)
        _check_range(X, "indices", X.indices[: X.indptr[-1]], minor)
    elif X.format == "coo":
        _check_range(X, "row", X.row, n)
        _check_range(X, "col", X.col, d)
    elif X.format == "bsr":
        try:
            X.check_format(full_check=True)
        except ValueError as error:
            raise _damaged(X, str(error)) from error


def _sound(X: Any, major: int, minor: int) -> bool:
    """Return whether a kernel confirms that the structure is valid; if not, slower checks find the error."""
    pointers = X.indptr, X.indices
    kinds = {
        (a.dtype.char, a.dtype.isnative, a.flags.c_contiguous, a.flags.aligned) for a in pointers
    }
    plain = len(kinds) == 1 and kinds <= {(kind, True, True, True) for kind in "ilq"}
    whole = len(X.indptr) == major + 1 and X.indptr[-1] <= len(X.data)
    return plain and whole and _kernels.sound(X.indptr, X.indices, minor)


def _check_pointers(X: Any, major: int) -> None:
    pointers = X.indptr
    if len(pointers) != major + 1:
        raise _damaged(X, f"indptr has {len(pointers)} entries, {major + 1} are needed")
    if pointers[0] != 0:
        raise _damaged(X, f"indptr must begin with 0, not {pointers[0]}")
    steps = np.diff(pointers)
    if len(steps) and steps.min() < 0:
        at = int(np.argmax(steps < 0))
        raise _damaged(X, f"indptr falls from {pointers[at]} to {pointers[at + 1]} at {at}")
    stored = min(len(X.indices), len(X.data))
    if pointers[-1] > stored:
        raise _damaged(X, f"indptr ends at {pointers[-1]}, but only {stored} entries are stored")


def _check_range(X: Any, name: str, indices: Any, bound: int) -> None:
    if len(indices) and (indices.min() < 0 or indices.max() >= bound):
        at = int(np.argmax((indices < 0) | (indices >= bound)))
        raise _damaged(
            X, f"{name}[{at}] is {indices[at]}, outside 0..{bound - 1} for shape {X.shape}"
        )


def _damaged(X: Any, what: str) -> BadInput:
    return BadInput(
        f"X is a damaged {X.format.upper()} matrix: {what}; build it again, for instance from "
        "scipy.sparse.coo_matrix((data, (row, col)), shape)."
    )
