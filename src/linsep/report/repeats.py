"""Detection of rows that occur more than once, by a 64-bit hash of each and exact comparison of candidates."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import IntArray, mix_bits
from linsep.report.subject import Rows

_COMPARED = 8  # blocks of rows compared at a time
LARGEST = 2e8  #: number of entries up to which repeated rows are searched

Hashes = npt.NDArray[np.uint64]


@dataclass(frozen=True)
class Repeats:
    """Number of rows that repeat an earlier one, and of those with a different target."""

    repeated: int
    contradictory: int
    leaked: int | None  # rows of the second matrix that occur in the first; None without one


def repeats(rows: Rows, others: Rows | None) -> Repeats:
    """Count rows that repeat an earlier one, those with a different label, and rows of ``others`` among them.

    One hash per row is stored; rows whose hash occurs twice are compared in a second pass.
    """
    hashes = np.empty(len(rows), np.uint64)
    for here, some in _hashes(rows):
        hashes[here] = some
    hashes.sort()
    twice = np.unique(hashes[1:][hashes[1:] == hashes[:-1]])
    met, theirs = (np.empty(0, np.intp), np.empty(0, np.uint64)), None
    if others is not None:
        theirs = _rows_among(others, hashes)
        twice = np.union1d(twice, theirs[1])
    del hashes
    if len(twice):
        met = _rows_among(rows, twice)
    order = np.argsort(met[1], kind="stable")
    places, ordered = met[0][order], met[1][order]
    first = np.searchsorted(ordered, ordered)  # the first row of the same hash
    again = np.flatnonzero(first < np.arange(len(first)))
    later, earlier = _equal(rows, places[again], rows, places[first[again]])
    contradictory = int(np.count_nonzero(np.asarray(rows.y[later]) != np.asarray(rows.y[earlier])))
    leaked = None
    if others is not None and theirs is not None:
        at = np.searchsorted(ordered, theirs[1])
        leaked = len(_equal(others, theirs[0], rows, places[at])[0])
    return Repeats(len(later), contradictory, leaked)


def _rows_among(rows: Rows, known: Hashes) -> tuple[IntArray, Hashes]:
    """Return indices and hashes of the rows whose hash is in ``known``, which is sorted."""
    places, found = [np.empty(0, np.intp)], [np.empty(0, np.uint64)]
    for here, some in _hashes(rows):
        at = np.minimum(np.searchsorted(known, some), len(known) - 1)
        met = np.flatnonzero(known[at] == some)
        places.append(met + here.start)
        found.append(some[met])
    return np.concatenate(places), np.concatenate(found)


def _hashes(rows: Rows) -> Iterator[tuple[slice, Hashes]]:
    """Iterate over blocks of row hashes; equal rows have equal hashes, and -0 equals 0."""
    odd = np.random.default_rng(0).integers(0, 2**63, rows.X.shape[1], dtype=np.uint64) * 2 + 1
    for here, block in rows.blocks():
        if rows.sparse:
            mixed = _hash_numbers(block.data, odd[block.indices])
            mixed[block.data == 0] = 0
            sums = np.concatenate([np.zeros(1, np.uint64), np.cumsum(mixed, dtype=np.uint64)])
            yield here, sums[block.indptr[1:]] - sums[block.indptr[:-1]]
        else:
            yield here, _hash_numbers(block, odd).sum(axis=1, dtype=np.uint64)


def _hash_numbers(x: npt.NDArray[Any], odd: Hashes) -> Hashes:
    """Return 64-bit hashes of numbers, which differ between columns; that of 0 is 0."""
    return mix_bits((np.ascontiguousarray(x, dtype=np.float64) + 0.0).view(np.uint64)) * odd


def _equal(A: Rows, rows: IntArray, B: Rows, others: IntArray) -> tuple[IntArray, IntArray]:
    """Return the pairs of a row of A and a row of B that are equal, ordered by the row of A."""
    order = np.argsort(rows, kind="stable")  # read rows on disk in their order
    rows, others = rows[order], others[order]
    same = np.empty(len(rows), dtype=bool)
    step = _COMPARED * A.step
    for low in range(0, len(rows), step):
        here = slice(low, low + step)
        if A.sparse:
            difference = sp.csr_array(A.X[rows[here]] - B.X[others[here]])
            difference.eliminate_zeros()
            same[here] = np.diff(difference.indptr) == 0
        else:
            same[here] = (A.X[rows[here]] == B.X[others[here]]).all(axis=1)
    return rows[same], others[same]
