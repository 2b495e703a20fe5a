"""A block: some rows that the kernels can read where they lie."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt

from linsep import _kernels

FloatArray = npt.NDArray[np.float64]


class Kept(Protocol):
    """Room for numbers that belong to rows."""

    def __call__(self, name: str, k: int | None = None) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``lo .. hi`` of ``rows``, whose row 0 is row ``first`` of the data set.

    ``kept(name)`` is room for one number per row of ``rows`` that survives from pass to pass (the
    curvatures of the last sweep, say), ``kept(name, k)`` for k of them, (k, rows); a back end that loses it
    must recompute, never guess.
    """

    rows: _kernels.Rows
    targets: _kernels.Targets
    sign: FloatArray
    offset: FloatArray | None
    weight: FloatArray | None
    labels: npt.NDArray[np.int64] | None
    lo: int
    hi: int
    first: int
    kept: Kept

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
