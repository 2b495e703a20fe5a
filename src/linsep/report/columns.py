"""Statistics of the columns of the model: mean, spread, constant and equal columns."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.report.subject import Rows

MOST_PAIRS = 300  #: maximum number of pairs of columns that are compared entry by entry


@dataclass(frozen=True, eq=False)
class Columns:
    """Statistics of each column."""

    mean: FloatArray
    std: FloatArray
    constant: BoolArray  # whether it has a single value
    duplicates: list[tuple[int, int]]  # pairs (first, later) that are equal in every row
    filled: float  # fraction of nonzero entries


def columns(rows: Rows) -> Columns:
    """Compute mean, spread and range of every column, weighted, and find equal ones. Three passes, four if sparse."""
    measure = _measure_sparse if rows.sparse else _measure_dense
    mean, std, low, high, filled = measure(rows)
    constant = np.asarray(low == high)
    std[constant] = 0.0
    return Columns(mean, std, constant, _duplicates(rows, std, low, high), filled)


#: Mean, standard deviation, smallest and largest entry of each column, and the fraction of nonzero entries.
_Measures = tuple[FloatArray, FloatArray, FloatArray, FloatArray, float]


def _measure_dense(rows: Rows) -> _Measures:
    n, d = rows.X.shape
    low, high, filled = np.full(d, np.inf), np.full(d, -np.inf), 0
    base = rows.X[:1][0].astype(np.float64)
    first, second = np.zeros(d), np.zeros(d)
    for here, block in rows.blocks():
        weight = rows.weights(here)
        np.minimum(low, block.min(axis=0), out=low)
        np.maximum(high, block.max(axis=0), out=high)
        shifted = block - base
        first += weight @ shifted
        second += weight @ shifted**2
        filled += int(np.count_nonzero(block))
    mean = first / rows.total
    std = np.sqrt(np.maximum(second / rows.total - mean**2, 0.0))
    return base + mean, std, low, high, filled / (n * d)


def _measure_sparse(rows: Rows) -> _Measures:
    """Statistics of sparse columns. Hashed columns are many, so only the results and two counts have one entry each."""
    n, d = rows.X.shape
    low, high, filled = np.full(d, np.inf), np.full(d, -np.inf), 0
    mean, std = np.zeros(d), np.zeros(d)
    stored = np.zeros(d, np.int32)  # stored entries of each column
    met = stored if rows.weight is None else np.zeros(d)  # their total weight
    for here, block in rows.blocks():
        weight = _of_entries(rows.weights(here), block)
        np.minimum.at(low, block.indices, block.data)
        np.maximum.at(high, block.indices, block.data)
        np.add.at(mean, block.indices, weight * block.data)
        np.add.at(stored, block.indices, np.int32(1))
        if met is not stored:
            np.add.at(met, block.indices, weight)
        filled += int(np.count_nonzero(block.data))
    np.minimum(low, 0.0, out=low, where=stored < n)
    np.maximum(high, 0.0, out=high, where=stored < n)
    mean /= rows.total
    for here, block in rows.blocks():
        far = block.data - mean[block.indices]
        np.add.at(std, block.indices, _of_entries(rows.weights(here), block) * far**2)
    zeros = rows.total - met  # weight of the entries that are not stored
    zeros *= mean
    zeros *= mean
    std += zeros
    std /= rows.total
    np.sqrt(std, out=std)
    return mean, std, low, high, filled / (n * d)


def _of_entries(values: FloatArray, block: Any) -> FloatArray:
    """One number per row, repeated for each stored entry of its row."""
    return np.repeat(values, np.diff(block.indptr))


def _duplicates(
    rows: Rows, std: FloatArray, low: FloatArray, high: FloatArray
) -> list[tuple[int, int]]:
    """Return pairs (first, later) of columns that are equal in every row, except constant columns.

    Equal columns have equal inner products with a random vector: only neighbours in the order of these products are
    compared, at most 300 pairs.
    """
    varying = np.flatnonzero(low != high)
    if not len(varying):
        return []
    projection = _projections(rows, len(std))[varying]
    order = np.argsort(projection, kind="stable")
    projection, order = projection[order], varying[order]
    reach = np.maximum(np.abs(projection), std[order] * math.sqrt(len(rows)))
    left, right = order[:-1], order[1:]
    close = np.diff(projection) <= 1e-9 * reach[:-1]
    close &= low[left] == low[right]
    close &= high[left] == high[right]
    where = np.flatnonzero(close)[:MOST_PAIRS]
    same = _equal_columns(rows, left[where], right[where])
    pairs = zip(left[where][same].tolist(), right[where][same].tolist(), strict=True)
    return sorted((min(pair), max(pair)) for pair in pairs)


def _projections(rows: Rows, d: int) -> FloatArray:
    """Inner product of each column with a random vector."""
    rng, total = np.random.default_rng(0), np.zeros(d)
    for here, block in rows.blocks():
        direction = rng.standard_normal(here.stop - here.start)
        if rows.sparse:
            np.add.at(total, block.indices, _of_entries(direction, block) * block.data)
        else:
            total += block.T @ direction
    return total


def _equal_columns(rows: Rows, left: IntArray, right: IntArray) -> BoolArray:
    """Return whether each column of ``left`` equals its counterpart in ``right`` in every row."""
    same = np.ones(len(left), dtype=bool)
    if not len(left):
        return same
    for _, block in rows.blocks():
        if rows.sparse:
            columns = sp.csc_array(block)
            difference = columns[:, left] - columns[:, right]
            difference.eliminate_zeros()
            same &= np.diff(sp.csc_array(difference).indptr) == 0
        else:
            same &= (block[:, left] == block[:, right]).all(axis=0)
    return same
