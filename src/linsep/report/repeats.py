"""Rows that occur more than once: found by a 64-bit hash of each, and compared number by number."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

_BLOCK = 1 << 17  # numbers hashed together
LARGEST = 2e8  #: numbers up to which rows are compared with each other

Hashes = npt.NDArray[np.uint64]
Places = npt.NDArray[np.intp]


@dataclass(frozen=True)
class Repeats:
    """How many rows repeat an earlier one, and how many of these contradict it."""

    repeated: int
    contradictory: int
    leaked: int | None  # rows of the second matrix that occur in the first; None without one


def repeats(X: Any, y: npt.NDArray[Any], Z: Any | None) -> Repeats:
    """Count rows of X that repeat an earlier one, with another label or not, and rows of Z that are in X."""
    hashes = _hashes(X)
    order = np.argsort(hashes, kind="stable")
    ordered = hashes[order]
    del hashes
    again = np.flatnonzero(ordered[1:] == ordered[:-1]) + 1
    later, earlier = order[again], order[np.searchsorted(ordered, ordered[again])]
    same = _equal(X, later, X, earlier)
    contradictory = int(np.count_nonzero(y[later[same]] != y[earlier[same]]))
    leaked = None
    if Z is not None:
        at = np.minimum(np.searchsorted(ordered, theirs := _hashes(Z)), len(ordered) - 1)
        met = np.flatnonzero(ordered[at] == theirs)
        leaked = int(np.count_nonzero(_equal(Z, met, X, order[at[met]])))
    return Repeats(int(np.count_nonzero(same)), contradictory, leaked)


def _hashes(X: Any) -> Hashes:
    """One number for each row, the same for equal rows; -0 is 0."""
    odd = np.random.default_rng(0).integers(0, 2**63, X.shape[1], dtype=np.uint64) * 2 + 1
    if sp.issparse(X):
        mixed = _mixed(X.data, odd[X.indices])
        mixed[X.data == 0] = 0
        sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
        return np.asarray(sums[X.indptr[1:]] - sums[X.indptr[:-1]])
    found = np.empty(X.shape[0], np.uint64)
    step = max(1, _BLOCK // max(1, X.shape[1]))
    for low in range(0, X.shape[0], step):
        found[low : low + step] = _mixed(X[low : low + step], odd).sum(axis=1, dtype=np.uint64)
    return found


def _mixed(x: npt.NDArray[Any], odd: Hashes) -> Hashes:
    """The bits of each number, stirred: those of round numbers are mostly zero."""
    bits = (np.ascontiguousarray(x, dtype=np.float64) + 0.0).view(np.uint64)
    bits ^= bits >> np.uint64(32)
    bits *= odd
    bits ^= bits >> np.uint64(29)
    bits *= np.uint64(0x9E3779B97F4A7C15)
    return bits


def _equal(A: Any, rows: Places, B: Any, others: Places) -> npt.NDArray[np.bool_]:
    """Whether each of these rows of A equals the row of B beside it."""
    same = np.empty(len(rows), dtype=bool)
    step = max(1, _BLOCK // max(1, A.shape[1])) if not sp.issparse(A) else 10_000
    for low in range(0, len(rows), step):
        here = slice(low, low + step)
        if sp.issparse(A):
            difference = sp.csr_array(A[rows[here]] - B[others[here]])
            difference.eliminate_zeros()
            same[here] = np.diff(difference.indptr) == 0
        else:
            same[here] = (A[rows[here]] == B[others[here]]).all(axis=1)
    return same
