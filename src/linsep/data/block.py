"""A block: some rows that the kernels can read where they lie."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.targets import Targets


class RowState(Protocol):
    """Numbers that belong to rows, by name."""

    def __call__(self, name: str, k: int | None = None) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``lo .. hi`` of ``rows``, whose row 0 is row ``first`` of the data set.

    ``row_state(name)`` is one number per row of ``rows`` that survives from pass to pass (the
    curvatures of the last sweep, say), ``row_state(name, k)`` k of them, (k, rows); a back end that loses it
    must recompute, never guess.
    """

    rows: _kernels.Rows
    targets: _kernels.Targets
    sign: FloatArray
    offset: FloatArray | None
    weight: FloatArray | None
    labels: IntArray | None
    lo: int
    hi: int
    first: int
    row_state: RowState

    @classmethod
    def of(cls, rows: _kernels.Rows, targets: Targets, first: int, row_state: RowState) -> Block:
        """All of the rows, with their targets."""
        native = _kernels.Targets(*targets[:3])
        return cls(rows, native, *targets, 0, rows.n, first, row_state)

    def between(self, lo: int, hi: int) -> Block:
        """Rows lo .. hi of the same rows."""
        return self if (lo, hi) == (self.lo, self.hi) else replace(self, lo=lo, hi=hi)

    def scores(self, theta: FloatArray) -> FloatArray:
        """Scores x.w + b of the rows lo .. hi."""
        z = np.empty(self.hi - self.lo)
        _kernels.scores(self.rows, self.lo, self.hi, theta, z)
        return z

    def margins(self, z: FloatArray) -> FloatArray:
        """Margins sign * z + offset of the rows lo .. hi with scores z."""
        m = self.sign[self.lo : self.hi] * z
        if self.offset is not None:
            m += self.offset[self.lo : self.hi]
        return m

    def weights(self) -> FloatArray:
        """Sample weights of the rows lo .. hi."""
        if self.weight is None:
            return np.ones(self.hi - self.lo)
        return self.weight[self.lo : self.hi]
