"""A block: consecutive rows in a layout that the kernels read, with targets and row state."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol, TypeVar

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.targets import Targets

Scalar = TypeVar("Scalar", bound=np.generic)


class RowState(Protocol):
    """Function that returns the named state of the rows, one number per row or k."""

    def __call__(self, name: str, k: int | None = None) -> FloatArray: ...


@dataclass(frozen=True, eq=False)
class Block:
    """Rows ``lo .. hi`` of ``rows``, whose row 0 is row ``first`` of the data set.

    ``row_state(name)`` is a vector with one number per row of ``rows`` that is kept between passes (for example the
    curvatures of the last pass); ``row_state(name, k)`` has k numbers per row, (k, rows). A data set that loses its
    state must recompute it exactly.
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
        """Return all of ``rows``, with their targets, as a block."""
        native = _kernels.Targets(*targets[:3])
        return cls(rows, native, *targets, 0, rows.n, first, row_state)

    def between(self, lo: int, hi: int) -> Block:
        """Return the block of rows lo .. hi of the same rows."""
        return self if (lo, hi) == (self.lo, self.hi) else replace(self, lo=lo, hi=hi)

    def own(self, values: npt.NDArray[Scalar]) -> npt.NDArray[Scalar]:
        """Return the entries of an array over all rows of the data set that belong to ``rows``, as a view."""
        return values[self.first : self.first + self.rows.n]

    def scores(self, theta: FloatArray) -> FloatArray:
        """Return the scores x.w + b of the rows lo .. hi."""
        z = np.empty(self.hi - self.lo)
        _kernels.scores(self.rows, self.lo, self.hi, theta, z)
        return z

    def margins(self, z: FloatArray) -> FloatArray:
        """Return the margins sign * z + offset of the rows lo .. hi with scores z."""
        m = self.sign[self.lo : self.hi] * z
        if self.offset is not None:
            m += self.offset[self.lo : self.hi]
        return m

    def weights(self) -> FloatArray:
        """Return the sample weights of the rows lo .. hi."""
        if self.weight is None:
            return np.ones(self.hi - self.lo)
        return self.weight[self.lo : self.hi]
