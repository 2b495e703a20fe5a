"""The best intercept for given scores, and dual variables that allow it.

For scores z the loss sum s l(m) is convex in b, and its minimiser costs no visit to X:

* losses with curvature: Newton's method between the b whose slopes enclose the best;
* hinge and absolute loss: each row has one break point, where its slope jumps by s times the width of its
  interval of u, and the minimiser is a weighted order statistic of the break points.

A dual point is feasible for a free intercept only if e = sum s sigma u = 0. The u that ascent leaves are
moved there as one shift of b would move them. To shrink the u of one class would also do, but costs
much where u is at the end of its interval.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray


class Smooth:
    """Losses with a slope everywhere."""

    def __init__(self, problem: Problem, block: Block, loss: _kernels.Loss) -> None:
        self.block, self.loss, self.free = block, loss, problem.fit_intercept

    def best(self, z: FloatArray, b: float, fine: float) -> tuple[float, float]:
        """The best intercept at the scores z, begun at b, and the sum of losses close to it."""
        return self._best(self.block.targets, z, b, fine)

    def _best(
        self, targets: _kernels.Targets, z: FloatArray, b: float, fine: float
    ) -> tuple[float, float]:
        low, high, value = -math.inf, math.inf, 0.0
        for _ in range(60):
            out = np.zeros(3)
            _kernels.shifted(targets, self.loss, 0, len(z), z, b, out)
            value, slope, curvature = out.tolist()
            if not self.free or slope == 0.0 or not math.isfinite(slope):
                break
            low, high = (low, b) if slope > 0.0 else (b, high)
            # Far out, where there is no curvature, a slope says nothing about the distance.
            reach = 4.0 + 2.0 * abs(b)
            move = -slope / curvature if curvature > 0.0 else math.copysign(reach, -slope)
            move = min(max(move, -reach), reach)
            b = b + move if low <= b + move <= high else 0.5 * (low + high)
            if abs(move) <= fine * (1.0 + abs(b)):
                break
        return b, value

    def alone(self, zero: FloatArray, b: float) -> tuple[float, float]:
        """The same at the scores 0, where without offsets all rows of a class are one."""
        block = self.block
        if block.offset is not None:
            return self.best(zero, b, 1e-6)
        weight, total = block.weights(), float(block.weights().sum())
        positive = dot(weight, (block.sign > 0.0).astype(np.float64))
        sides = np.array([positive, total - positive])
        rows = _kernels.Targets(np.array([1.0, -1.0]), None, sides)
        return self._best(rows, np.zeros(2), b, 1e-6)

    def balanced(self, u: FloatArray, z: FloatArray, seen: FloatArray) -> FloatArray:
        """u with e = 0: u_i is the slope at z_i + seen_i, and those at z_i + seen_i + t add up to 0."""
        if not self.free:
            return u.copy()
        at = z + seen
        return -self.slopes(self.block.margins(at + self.best(at, 0.0, 1e-9)[0]))

    def slopes(self, m: FloatArray) -> FloatArray:
        """l'(m)."""
        slope, spare = np.empty_like(m), np.empty_like(m)
        _kernels.pointwise(self.loss, m, spare, slope, spare, spare)
        return slope


class Kinked(Smooth):
    """Hinge and absolute loss: -l' jumps from one end of its interval to the other at the margin 1."""

    def __init__(self, problem: Problem, block: Block, loss: _kernels.Loss) -> None:
        super().__init__(problem, block, loss)
        self.low, self.high = problem.loss.domain
        self.weight = block.weights()
        self.mass = self.weight * block.sign
        self.total = float(self.weight.sum())
        offset = 0.0 if block.offset is None else block.offset
        self.end = block.sign * (1.0 - offset)  # z + b at the kink
        self.jump = (self.high - self.low) * self.weight
        at_left = np.where(block.sign > 0.0, self.high, -self.low)
        self.target = dot(self.weight, at_left)  # minus the slope by b at the far left

    def best(self, z: FloatArray, b: float, fine: float) -> tuple[float, float]:
        """The best intercept at the scores z, and the sum of losses there."""
        if self.free and len(z):
            b = _kernels.quantile(self.end - z, self.jump.copy(), self.target)
        out = np.zeros(3)
        _kernels.shifted(self.block.targets, self.loss, 0, len(z), z, b, out)
        return b, float(out[0])

    def alone(self, zero: FloatArray, b: float) -> tuple[float, float]:
        """The same at the scores 0."""
        return self.best(zero, b, 0.0)

    def balanced(self, u: FloatArray, z: FloatArray, seen: FloatArray) -> FloatArray:
        """u with e = 0, where it costs least.

        Free rows are at their kink and cost nothing, to first order, and all of them together little to second.
        If they have not room enough the others follow: to lower e by one unit at row i changes the
        dual by (b - break point of i) whatever its class, so they give in the order of their break points.
        """
        u = u.copy()
        if not self.free or not len(z):
            return u
        for attempt in range(4):  # again for what rounding left
            e = dot(self.mass, u)
            if (
                abs(e) <= 1e-14 * self.total
            ):  # what is left is rounding, and shrinking a class will do
                break
            goal = np.where((self.mass > 0.0) != (e > 0.0), self.high, self.low)
            room = self.weight * np.abs(goal - u)
            giving = (u > self.low) & (u < self.high)
            given = dot(room, giving.astype(np.float64))
            if given <= abs(e) or attempt > 1:
                key = (self.end - z) if e > 0.0 else (z - self.end)
                last = _kernels.quantile(key.copy(), room.copy(), abs(e))
                before, giving = key < last, key == last
                u[before] = goal[before]
                e = max(0.0, abs(e) - float(room[before].sum()))
                given = float(room[giving].sum())
            if given > 0.0:
                u += np.where(giving, min(1.0, abs(e) / given), 0.0) * (goal - u)
                np.clip(u, self.low, self.high, out=u)
        return u


def intercept(problem: Problem, block: Block, loss: _kernels.Loss) -> Smooth:
    """The one for this loss."""
    return (Smooth if problem.loss.smooth else Kinked)(problem, block, loss)
