"""Exact sums of a pointwise loss over the rows, and the directions in which a dual point may move."""

from __future__ import annotations

import functools
import math
import operator
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray
from linsep.certificates.exact.losses import ZERO_INTERVAL, Interval, exact_loss
from linsep.certificates.exact.points import ExactRows, Point, dense_blocks, row_of
from linsep.certificates.parts import Dual, dual_point, score, vector_or_default, zero_interval
from linsep.exact.dyadic import Dyadic, DyadicRows
from linsep.losses import Loss, Scaled, zero_margin
from linsep.problem.closing_rows import score_share
from linsep.solution import Explicit

#: A dual variable of a kinked loss within this distance of an end of its interval is set to that end.
_AT_THE_END = 1e-10


@dataclass(eq=False)
class SideSums:
    """Exact sums of a pointwise loss; index 0 is the side with sigma u >= 0, 1 the other."""

    conj: list[Interval]
    mass: list[Fraction]
    v: list[list[Fraction]]

    def gradient(self) -> list[Fraction]:
        """Sum of s sigma u x, followed by its entry for the intercept."""
        return [a + b for a, b in zip(*self.v, strict=True)] + [self.mass[0] - self.mass[1]]

    def balance(self) -> tuple[Interval, list[Fraction]]:
        """Minus the sum of conjugates, and v, after shrinking the heavier side to balance the intercept."""
        shrink = [Fraction(1), Fraction(1)]
        heavy = int(self.mass[1] > self.mass[0])
        if self.mass[heavy]:
            shrink[heavy] = self.mass[1 - heavy] / self.mass[heavy]
        return self._scale(shrink)

    def plain(self) -> tuple[Interval, list[Fraction]]:
        """Minus the sum of conjugates, and v."""
        return self._scale([Fraction(1), Fraction(1)])

    def _scale(self, by: list[Fraction]) -> tuple[Interval, list[Fraction]]:
        conj = self.conj[0].times(by[0]) + self.conj[1].times(by[1])
        v = [by[0] * a + by[1] * b for a, b in zip(*self.v, strict=True)]
        return Interval(-conj.high, -conj.low), v


class PointwiseRows(ExactRows):
    """Rows of a pointwise loss, with margins sigma (x.w + b) + offset."""

    def __init__(
        self,
        loss: Loss,
        X: Any,
        sigma: FloatArray,
        offset: FloatArray | None,
        weight: FloatArray | None,
        W: FloatArray,
    ) -> None:
        super().__init__(X, weight, W)
        self.given_loss = loss
        if isinstance(loss, Scaled):  # factor * l of weight s is l of weight factor * s
            self.factor, loss = loss.factor, loss.plain
        self.loss, self.formula = loss, exact_loss(loss)
        self.sigma = np.asarray(sigma, dtype=np.float64)
        self.offset = vector_or_default(offset, slice(0, self.n), 0.0)
        block = self.X.astype(np.float64)
        self.m = self.sigma * score(block, self.W)[:, 0] + self.offset

    def primal(self) -> Interval:
        """Sum of s l(m)."""
        total = ZERO_INTERVAL
        for rows, m in self._margins():
            kept = self.s[rows] > 0.0  # rows of weight 0 contribute nothing
            total += self.formula.value(m.take(kept), self.weights(rows).take(kept))
        return total

    def rounded_zero(self) -> float:
        """Largest sum of s l that scores with rounding errors up to 4 (d + 16) 2^-53 q can produce from zero loss."""
        q = score(abs(self.X.astype(np.float64)), np.abs(self.W))[:, 0] + np.abs(self.offset)
        error = 4.0 * score_share(self.d) * q
        low, high = zero_interval(self.loss, zero_margin(self.loss))
        with np.errstate(over="ignore"):
            most = np.maximum(self.loss.value(low - error), self.loss.value(high + error))
            return float((self.s * self.factor * most).sum())

    def _margins(self) -> Iterator[tuple[slice, Dyadic]]:
        """Yield the exact margins, one block of rows after another."""
        theta = self.W[:, 0]
        for rows, block, columns in dense_blocks(self.X):
            scores = DyadicRows.of(block).dot(Dyadic.of(theta[columns])) + Dyadic.of(theta[-1])
            yield rows, Dyadic.of(self.sigma[rows]) * scores + Dyadic.of(self.offset[rows])

    def unfold(self, dual: Dual) -> Point:
        """Dual point of the model, unfolded in float64."""
        rows = slice(0, self.n)
        block = self.X.astype(np.float64)
        u = dual_point(self.given_loss, dual, rows, block, self.sigma, self.offset, self.m)
        point = Point([u / self.factor])
        if isinstance(dual, Explicit) and dual.rest is not None:
            rest = np.asarray(dual.rest, dtype=np.float64).reshape(u.shape) / self.factor
            point = point.plus(np.where(np.isfinite(rest), rest, 0.0))
        return point

    def slopes(self) -> list[Point]:
        """Minus the slopes of the losses at the solution; the mean of both one-sided slopes at (or near) a kink."""
        if self.loss.smooth:
            return [self._slopes(self.m, 0.0)]
        m = np.concatenate([np.zeros(0), *(m.floats() for _, m in self._margins())])
        own = np.abs(m) + np.abs(self.offset) + abs(zero_margin(self.loss))
        terms = score(abs(self.X.astype(np.float64)), np.abs(self.W))[:, 0] + own
        return [self._slopes(m, score_share(self.d) * size) for size in (own, terms)]

    def _slopes(self, m: FloatArray, error: Any) -> Point:
        with np.errstate(over="ignore", invalid="ignore"):
            u = -(self.loss.slope(m - error) + self.loss.slope(m + error)) / 2.0
        return Point([np.where(np.isfinite(u), u, 0.0)])

    def evaluate(self, point: Point) -> SideSums:
        """Compute the sums of the dual bound."""
        conj, mass = [ZERO_INTERVAL, ZERO_INTERVAL], [Fraction(0)] * 2
        v = [[Fraction(0)] * self.d for _ in range(2)]
        for rows, block, columns in dense_blocks(self.X):
            u, s = self._cut(point, rows), self.weights(rows)
            signed_mass = s * Dyadic.of(self.sigma[rows]) * u
            shift = s * u * Dyadic.of(self.offset[rows])
            matrix = DyadicRows.of(block)
            used = (u.num != 0).astype(bool) & (self.s[rows] > 0.0)
            for side, sign in enumerate((signed_mass.num >= 0, signed_mass.num < 0)):
                mask = sign.astype(bool) & used
                conj[side] += self.formula.conjugate(u.take(mask), s.take(mask))
                conj[side] += Interval.of(shift.take(mask).sum())
                part = Dyadic(np.where(mask, signed_mass.num, 0), signed_mass.exp)
                mass[side] += abs(part).sum()
                sums = matrix.transposed_dot(part).fractions()
                for j, x in zip(columns.tolist(), sums, strict=True):
                    v[side][j] += x
        for i, (u_i,) in point.fixed.items():
            s_i = self.weight_at(i)
            mass_i = s_i * Fraction(float(self.sigma[i])) * u_i
            side = int(mass_i < 0)
            shifted = s_i * u_i * Fraction(float(self.offset[i]))
            conj[side] += self.formula.conjugate_at(u_i).times(s_i) + Interval.of(shifted)
            mass[side] += abs(mass_i)
            v[side] = [a + mass_i * x for a, x in zip(v[side], row_of(self.X, i), strict=True)]
        return SideSums(conj, mass, v)

    def _cut(self, point: Point, rows: slice) -> Dyadic:
        """u of a block, clipped to the domain of the conjugate; 0 in rows with a rational value."""
        u = self._inside(piece[rows] for piece in point.pieces)
        for i in point.fixed:
            if rows.start <= i < rows.stop:
                u.num[i - rows.start] = 0
        return u

    def _inside(self, pieces: Iterable[FloatArray]) -> Dyadic:
        """Sum of the pieces, clipped to the domain of the conjugate."""
        u = functools.reduce(operator.add, map(Dyadic.of, pieces))
        low, high = self.formula.low, self.formula.high
        if np.isfinite(low):
            u = (u - Dyadic.of(low)).positive() + Dyadic.of(low)
        if np.isfinite(high):
            u = u.at_most(Dyadic.of(high))
        return u

    def snap_to_ends(self, point: Point) -> Point:
        """Set the dual variables of a kinked loss that are close to an end of the domain to that end."""
        if self.loss.smooth:
            return point
        u = point.floats()
        for end in (self.formula.low, self.formula.high):
            u = np.where(np.abs(u - end) <= _AT_THE_END, end, u)
        return Point([u])

    def shrink(self, point: Point, shares: tuple[float, ...]) -> Iterator[Point]:
        """Yield the point with all u scaled by 1 - share, if both ends of the domain are finite and nonzero.

        At a degenerate vertex too few variables are inside the domain to be moved. The bound is concave and 0 at u = 0,
        so it loses at most the same fraction.
        """
        if self.formula.low < 0.0 < self.formula.high and math.isfinite(
            self.formula.high - self.formula.low
        ):
            for share in shares:
                yield Point([piece * (1.0 - share) for piece in point.pieces])

    def room(self, point: Point) -> FloatArray:
        """h >= 0 of each row, the freedom of its u (see ``Formula.freedom``); 0 at an end of the domain."""
        u = point.floats()
        inside = (u > self.formula.low) & (u < self.formula.high) & (self.s > 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            h = self.formula.freedom(u)
        return np.where(inside & np.isfinite(h), h, 0.0)

    def directions(self, point: Point, active: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Return B (n, active) and factors f: changing u by f y changes the active sums by B'y."""
        h, s = self.room(point), self.s * self.factor
        length = np.sqrt(h * s) * self.sigma
        B = length[:, None] * self.dense()[:, active[:, 0]]
        return B, np.sqrt(np.divide(h, s, out=np.zeros_like(h), where=s > 0.0))

    def move(self, point: Point, y: FloatArray, factors: FloatArray) -> Point:
        """Return the point after a step y along the directions."""
        return point.plus(factors * y)

    def correct(self, point: Point, rows: dict[int, Fraction]) -> Point | None:
        """Change s sigma u of some rows exactly; return None if that leaves the domain."""
        fixed = {}
        before = self._inside(piece[list(rows)] for piece in point.pieces).fractions()
        for (i, change), old in zip(rows.items(), before, strict=True):
            u = old + change / (self.weight_at(i) * Fraction(float(self.sigma[i])))
            if not self.formula.low <= u <= self.formula.high:
                return None
            fixed[i] = [u]
        return Point(point.pieces, fixed)
