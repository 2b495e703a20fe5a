"""The best intercept for given scores, and dual variables that allow it (kernels/intercept.hpp has both).

For scores z the loss sum s l(m) is convex in b, and its minimiser costs no visit to X: Newton's method where the loss
has curvature, a weighted order statistic of the rows' break points where it has a kink.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray


class Intercept:
    """Of one problem, all rows of which are in one block."""

    def __init__(self, problem: Problem, block: Block, loss: _kernels.Loss) -> None:
        self.block, self.loss, self.free = block, loss, problem.fit_intercept

    def best(
        self, z: FloatArray, b: float, fine: float, reach: float = math.inf
    ) -> tuple[float, float]:
        """The best intercept at the scores z, begun at b, and the sum of losses close to it.

        ``fine``: the step of Newton's method, as a share of 1 + |b|, that is the last. ``reach``: how far from b the
        order statistic is looked for first.
        """
        return _kernels.best_intercept(self.block.targets, self.loss, self.free, z, b, reach, fine)

    def among(
        self,
        rows: npt.NDArray[np.int64],
        z: FloatArray,
        u: FloatArray,
        e: float,
        b: float,
        fine: float,
        reach: float,
    ) -> float:
        """The same for some rows, while the u of the others stay; e = sum s sigma u over all."""
        return _kernels.best_among(
            self.block.targets, self.loss, self.free, rows, z, u, e, b, reach, fine
        )[0]

    def alone(self, zero: FloatArray, b: float) -> tuple[float, float]:
        """The same at the scores 0, where without offsets all rows of a class are one."""
        block = self.block
        if block.offset is not None:
            return self.best(zero, b, 1e-6)
        weight, total = block.weights(), float(block.weights().sum())
        positive = dot(weight, (block.sign > 0.0).astype(np.float64))
        sides = np.array([positive, total - positive])
        rows = _kernels.Targets(np.array([1.0, -1.0]), None, sides)
        return _kernels.best_intercept(rows, self.loss, self.free, np.zeros(2), b, math.inf, 1e-6)

    def balanced(self, u: FloatArray, z: FloatArray, seen: FloatArray) -> FloatArray:
        """u with sum s sigma u = 0, moved there as one shift of b would move it; u_i is the slope at z_i + seen_i."""
        u = u.copy()
        if self.free and len(z):
            _kernels.balance(self.block.targets, self.loss, z, seen, u)
        return u

    def slopes(self, m: FloatArray) -> FloatArray:
        """l'(m)."""
        slope, spare = np.empty_like(m), np.empty_like(m)
        _kernels.pointwise(self.loss, m, spare, slope, spare, spare)
        return slope
