"""Rows and dual points in exact arithmetic.

A dual point is a sum of float64 arrays (``pieces``), so that corrections far below the last digit of the first piece
can be added; a few rows may instead have rational values (``fixed``). Before use it is clipped to the domain of the
conjugate in exact arithmetic, so every point proves a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, dense
from linsep.certificates.parts import vector_or_default
from linsep.exact.dyadic import Dyadic

#: Entries of X converted to integers at a time.
_CHUNK = 1 << 16


@dataclass(eq=False)
class Point:
    """Dual variables u (n,), or p off the label (n, k): the sum of the pieces, except for the rows in ``fixed``."""

    pieces: list[FloatArray]
    fixed: dict[int, list[Fraction]] = field(default_factory=dict)

    def floats(self) -> FloatArray:
        """Sum of the pieces, rounded to float64."""
        return np.asarray(sum(reversed(self.pieces)))

    def plus(self, *by: FloatArray) -> Point:
        """Return the point with further pieces added."""
        return Point([*self.pieces, *by])


def dense_blocks(X: Any) -> Iterator[tuple[slice, FloatArray, Any]]:
    """Yield (rows, dense block, its columns); a sparse block is restricted to the columns it uses."""
    n, d = X.shape
    sparse = sp.issparse(X)
    height = max(1, min(_CHUNK // max(d, 1), 256) if sparse else _CHUNK // max(d, 1))
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block = X[rows].astype(np.float64)
        columns = np.unique(block.indices) if sparse else np.arange(d)
        yield rows, block[:, columns].toarray() if sparse else block, columns


def row_of(X: Any, i: int) -> list[Fraction]:
    """Entries of row i as fractions."""
    row = X[[i]].astype(np.float64)
    return [Fraction(x) for x in dense(row)[0].tolist()]


class ExactRows:
    """Base class of the rows of pointwise and coupled losses."""

    def __init__(self, X: Any, weight: FloatArray | None, W: FloatArray) -> None:
        # C order, so that results do not depend on the layout of X
        self.X: Any = X if sp.issparse(X) else np.ascontiguousarray(X)
        self.W = np.asarray(W, dtype=np.float64)
        self.n, self.d = X.shape
        self.k = self.W.shape[1]
        self.s = vector_or_default(weight, slice(0, self.n), 1.0)
        self.factor = 1.0  #: factor on the weights, for scaled losses

    def weights(self, rows: slice) -> Dyadic:
        """Weights s times the factor of the loss."""
        return Dyadic.of(self.s[rows]) * Dyadic.of(self.factor)

    def weight_at(self, i: int) -> Fraction:
        """Exact weight of one row, times the factor of the loss."""
        return Fraction(float(self.s[i])) * Fraction(self.factor)

    def dense(self) -> FloatArray:
        """X as a dense float64 array with a column of ones appended."""
        block = self.X.astype(np.float64)
        return np.column_stack([dense(block), np.ones(self.n)])
