"""Primal and dual sums over the rows without rounding, and the directions in which a dual point may move.

A dual point is a sum of float64 arrays (``pieces``), so that corrections far below the last digit of the first
piece can be added, and of a few rows in rational numbers (``fixed``). Whatever it is, it is cut to the domain of
the conjugate in exact arithmetic before it is used: every point proves a bound.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.certificates.exact_losses import (
    NOTHING,
    Interval,
    coupled_formula_of,
    formula_of,
)
from linsep.certificates.recheck import Dual, dual_point, given, score
from linsep.exact.dyadic import Dyadic, DyadicRows
from linsep.losses import CoupledLoss, Loss, Multinomial, Scaled
from linsep.solution import Explicit

FloatArray = npt.NDArray[np.float64]

#: Numbers of X turned into integers at a time.
_CHUNK = 1 << 16
#: Distance from the end of an interval below which a dual variable of a kinked loss is taken for the end itself.
_AT_THE_END = 1e-10


@dataclass(eq=False)
class Point:
    """Dual variables u (n,), or p off the label (n, k): the sum of the pieces, but for the rows in ``fixed``."""

    pieces: list[FloatArray]
    fixed: dict[int, list[Fraction]] = field(default_factory=dict)

    def floats(self) -> FloatArray:
        """The sum of the pieces, rounded."""
        return np.asarray(sum(reversed(self.pieces)))

    def moved(self, by: FloatArray) -> Point:
        """The point plus one more piece."""
        return Point([*self.pieces, by])


@dataclass(eq=False)
class SideSums:
    """Sums of a pointwise loss; index 0 is the side of sigma u >= 0, 1 the other."""

    conj: list[Interval]
    mass: list[Fraction]
    v: list[list[Fraction]]

    def gradient(self) -> list[Fraction]:
        """The sum of s sigma u x, its entry for the intercept last."""
        return [a + b for a, b in zip(*self.v, strict=True)] + [self.mass[0] - self.mass[1]]

    def balanced(self) -> tuple[Interval, list[Fraction]]:
        """Minus the conjugates, and v, once the heavier side is shrunk to suit a free intercept."""
        shrink = [Fraction(1), Fraction(1)]
        heavy = int(self.mass[1] > self.mass[0])
        if self.mass[heavy]:
            shrink[heavy] = self.mass[1 - heavy] / self.mass[heavy]
        return self._scaled(shrink)

    def plain(self) -> tuple[Interval, list[Fraction]]:
        """Minus the conjugates, and v."""
        return self._scaled([Fraction(1), Fraction(1)])

    def _scaled(self, by: list[Fraction]) -> tuple[Interval, list[Fraction]]:
        conj = self.conj[0].times(by[0]) + self.conj[1].times(by[1])
        v = [by[0] * a + by[1] * b for a, b in zip(*self.v, strict=True)]
        return Interval(-conj.high, -conj.low), v


def _blocks(X: Any) -> Iterator[tuple[slice, FloatArray, Any]]:
    """Yield (rows, dense block, its columns); a sparse block keeps the columns it uses."""
    n, d = X.shape
    sparse = sp.issparse(X)
    height = max(1, min(_CHUNK // max(d, 1), 256) if sparse else _CHUNK // max(d, 1))
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block = X[rows].astype(np.float64)
        columns = np.unique(block.indices) if sparse else np.arange(d)
        yield rows, block[:, columns].toarray() if sparse else block, columns


def _row(X: Any, i: int) -> list[Fraction]:
    row = X[[i]].astype(np.float64)
    return [Fraction(x) for x in (row.toarray() if sp.issparse(row) else row)[0].tolist()]


class _Rows:
    """What pointwise and coupled losses share."""

    def __init__(self, X: Any, weight: FloatArray | None, W: FloatArray) -> None:
        self.X, self.W = X, np.asarray(W, dtype=np.float64)
        self.n, self.d = X.shape
        self.k = self.W.shape[1]
        self.s = given(weight, slice(0, self.n), 1.0)
        self.factor = 1.0  #: that weights are multiplied with, for scaled losses

    def weights(self, rows: slice) -> Dyadic:
        """s times the factor of the loss."""
        return Dyadic.of(self.s[rows]) * Dyadic.of(self.factor)

    def weight_at(self, i: int) -> Fraction:
        """The same of one row."""
        return Fraction(float(self.s[i])) * Fraction(self.factor)

    def dense(self) -> FloatArray:
        """X in float64 with a column of ones behind it."""
        block = self.X.astype(np.float64)
        return np.column_stack([block.toarray() if sp.issparse(block) else block, np.ones(self.n)])


class PointwiseRows(_Rows):
    """Rows with margins sigma (x.w + b) + offset."""

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
        self.loss, self.formula = loss, formula_of(loss)
        self.sigma = np.asarray(sigma, dtype=np.float64)
        self.offset = given(offset, slice(0, self.n), 0.0)
        block = X.astype(np.float64)
        self.m = self.sigma * score(block, self.W)[:, 0] + self.offset

    def primal(self) -> Interval:
        """Sum of s l(m)."""
        total = NOTHING
        theta = self.W[:, 0]
        for rows, block, columns in _blocks(self.X):
            scores = DyadicRows.of(block).dot(Dyadic.of(theta[columns])) + Dyadic.of(theta[-1])
            m = Dyadic.of(self.sigma[rows]) * scores + Dyadic.of(self.offset[rows])
            kept = self.s[rows] > 0.0  # a row of weight 0 is not there
            total += self.formula.value(m.take(kept), self.weights(rows).take(kept))
        return total

    def stored(self, dual: Dual) -> Point:
        """The dual point of the model, unfolded in floats."""
        rows = slice(0, self.n)
        block = self.X.astype(np.float64)
        u = dual_point(self.given_loss, dual, rows, block, self.sigma, self.offset, self.m)
        return Point([u / self.factor])

    def slopes(self) -> Point:
        """Minus the slopes of the losses at the answer."""
        with np.errstate(over="ignore"):
            u = -self.loss.slope(self.m)
        return Point([np.where(np.isfinite(u), u, 0.0)])

    def evaluate(self, point: Point) -> SideSums:
        """The sums of the dual bound."""
        conj, mass = [NOTHING, NOTHING], [Fraction(0)] * 2
        v = [[Fraction(0)] * self.d for _ in range(2)]
        for rows, block, columns in _blocks(self.X):
            u, s = self._cut(point, rows), self.weights(rows)
            push = s * Dyadic.of(self.sigma[rows]) * u
            shift = s * u * Dyadic.of(self.offset[rows])
            matrix = DyadicRows.of(block)
            used = (u.num != 0).astype(bool) & (self.s[rows] > 0.0)
            for side, sign in enumerate((push.num >= 0, push.num < 0)):
                mask = sign.astype(bool) & used
                conj[side] += self.formula.conjugate(u.take(mask), s.take(mask))
                conj[side] += Interval.of(shift.take(mask).sum())
                part = Dyadic(np.where(mask, push.num, 0), push.exp)
                mass[side] += abs(part).sum()
                sums = matrix.transposed_dot(part).fractions()
                for j, x in zip(columns.tolist(), sums, strict=True):
                    v[side][j] += x
        for i, (u_i,) in point.fixed.items():
            s_i = self.weight_at(i)
            push_i = s_i * Fraction(float(self.sigma[i])) * u_i
            side = int(push_i < 0)
            shifted = s_i * u_i * Fraction(float(self.offset[i]))
            conj[side] += self.formula.conjugate_at(u_i).times(s_i) + Interval.of(shifted)
            mass[side] += abs(push_i)
            v[side] = [a + push_i * x for a, x in zip(v[side], _row(self.X, i), strict=True)]
        return SideSums(conj, mass, v)

    def _cut(self, point: Point, rows: slice) -> Dyadic:
        """u of a block inside the domain of the conjugate; 0 in the rows that are fixed."""
        u = Dyadic.of(point.pieces[0][rows])
        for piece in point.pieces[1:]:
            u = u + Dyadic.of(piece[rows])
        low, high = self.formula.low, self.formula.high
        if np.isfinite(low):
            u = (u - Dyadic.of(low)).positive() + Dyadic.of(low)
        if np.isfinite(high):
            u = u.at_most(Dyadic.of(high))
        for i in point.fixed:
            if rows.start <= i < rows.stop:
                u.num[i - rows.start] = 0
        return u

    def snapped(self, point: Point) -> Point:
        """The point with variables of a kinked loss next to an end of the domain put on it."""
        if self.loss.smooth:
            return point
        u = point.floats()
        for end in (self.formula.low, self.formula.high):
            u = np.where(np.abs(u - end) <= _AT_THE_END, end, u)
        return Point([u])

    def room(self, point: Point) -> FloatArray:
        """h >= 0 of each row, how freely its u may move: see ``Formula.freedom``; 0 at an end of the domain."""
        u = point.floats()
        inside = (u > self.formula.low) & (u < self.formula.high) & (self.s > 0.0)
        with np.errstate(over="ignore", invalid="ignore"):
            h = self.formula.freedom(u)
        return np.where(inside & np.isfinite(h), h, 0.0)

    def directions(
        self, point: Point, active: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """B (n, active) and the factors f: moving u by f y moves the active sums by B'y."""
        h, s = self.room(point), self.s * self.factor
        length = np.sqrt(h * s) * self.sigma
        B = length[:, None] * self.dense()[:, active[:, 0]]
        return B, np.sqrt(np.divide(h, s, out=np.zeros_like(h), where=s > 0.0))

    def move(self, point: Point, y: FloatArray, factors: FloatArray) -> Point:
        """The point after a step y along the directions."""
        return point.moved(factors * y)

    def corrected(self, point: Point, rows: dict[int, Fraction]) -> Point | None:
        """The point with s sigma u of some rows changed exactly, or None where that leaves the domain."""
        fixed = {}
        for i, change in rows.items():
            u = self._cut(point, slice(i, i + 1)).fractions()[0]
            u += change / (self.weight_at(i) * Fraction(float(self.sigma[i])))
            if not self.formula.low <= u <= self.formula.high:
                return None
            fixed[i] = [u]
        return Point(point.pieces, fixed)


@dataclass(eq=False)
class CoupledSums:
    """Sums of a loss that couples k classes; lists of lists are (k, d)."""

    entropy: Interval
    mass: list[Fraction]
    residual: list[Fraction]
    v: list[list[Fraction]]
    features: list[list[Fraction]]
    spread: Any  #: minus the sum of the conjugates if every row had p = r

    def gradient(self) -> list[Fraction]:
        """V flattened as W is, class sums last."""
        flat = [x for row in zip(*self.v, strict=True) for x in row]
        return flat + self.residual

    def plain(self) -> tuple[Interval, list[Fraction]]:
        """Minus the conjugates, and V."""
        return self.entropy, self.gradient()[: -len(self.mass)]

    def balanced(self) -> tuple[Interval, list[Fraction]]:
        """The same once all p are mixed with one r so that the class sums vanish (see ``softmax``)."""
        n, e = self.mass, self.residual
        t = max((-b / (a - b) for a, b in zip(n, e, strict=True) if b < 0), default=Fraction(0))
        if t == 0:
            return self.plain()
        total = sum(n, Fraction(0))
        r = [(t * a + (1 - t) * b) / (t * total) for a, b in zip(n, e, strict=True)]
        entropy = self.entropy.times(1 - t) + self.spread(r).times(t)
        sums = [sum(column, Fraction(0)) for column in zip(*self.features, strict=True)]
        v = [
            (1 - t) * self.v[c][j] + t * (self.features[c][j] - sums[j] * r[c])
            for j in range(len(sums))
            for c in range(len(n))
        ]
        return entropy, v


class CoupledRows(_Rows):
    """Rows with k scores and a label."""

    def __init__(
        self, loss: CoupledLoss, X: Any, labels: Any, weight: FloatArray | None, W: FloatArray
    ) -> None:
        super().__init__(X, weight, W)
        self.loss, self.formula = loss, coupled_formula_of(loss)
        self.labels = np.asarray(labels).astype(np.int64)

    def primal(self) -> Interval:
        """Sum of s l(z)."""
        total = NOTHING
        for rows, block, columns in _blocks(self.X):
            matrix = DyadicRows.of(block)
            scores = [
                (matrix.dot(Dyadic.of(theta[columns])) + Dyadic.of(theta[-1])).fractions()
                for theta in self.W.T
            ]
            kept = np.flatnonzero(self.s[rows] > 0.0).tolist()
            y = self.labels[rows].tolist()
            leads = [
                [scores[c][i] - scores[y[i]][i] for c in range(self.k) if c != y[i]] for i in kept
            ]
            total += self.formula.value(leads, [self.weight_at(rows.start + i) for i in kept])
        return total

    def stored(self, dual: Dual) -> Point:
        """The dual point of the model, unfolded in floats."""
        if isinstance(dual, Explicit):
            return self._off_label(np.array(dual.u, dtype=np.float64).reshape(self.n, self.k))
        if not isinstance(self.loss, Multinomial):
            return self.slopes()
        block = self.X.astype(np.float64)
        P, change = self.loss.proba(score(block, dual.base)), score(block, dual.step)
        with np.errstate(over="ignore", invalid="ignore"):
            U = -P * (1.0 + change - (P * change).sum(axis=1, keepdims=True))
        return self._off_label(U)

    def slopes(self) -> Point:
        """Minus the slopes of the losses at the answer."""
        return self._off_label(
            -self.loss.slope(score(self.X.astype(np.float64), self.W), self.labels)
        )

    def _off_label(self, U: FloatArray) -> Point:
        p = np.where(np.isfinite(U), np.maximum(-U, 0.0), 0.0)
        p[np.arange(self.n), self.labels] = 0.0
        rest = p.sum(axis=1, keepdims=True)
        return Point([np.where(rest >= 1.0, p / np.where(rest > 0, rest, 1) * (1.0 - 2.0**-48), p)])

    def evaluate(self, point: Point) -> CoupledSums:
        """The sums of the dual bound."""
        k, d = self.k, self.d
        entropy, mass, residual = NOTHING, [Fraction(0)] * k, [Fraction(0)] * k
        v, features = ([[Fraction(0)] * d for _ in range(k)] for _ in range(2))
        for rows, block, columns in _blocks(self.X):
            matrix, s, y = DyadicRows.of(block), self.weights(rows), self.labels[rows]
            p = self._cut(point, rows)
            kept = np.flatnonzero(self.s[rows] > 0.0).tolist()
            per_class = [part.fractions() for part in p]
            off = ([per_class[c][i] for c in range(k) if c != y[i]] for i in kept)
            entropy += self.formula.entropy(off, [self.weight_at(rows.start + i) for i in kept])
            rest = p[0]
            for part in p[1:]:
                rest = rest + part
            for c in range(k):
                own = (y == c).astype(object)
                U = Dyadic(rest.num * own, rest.exp) - p[c]
                residual[c] += (s * U).sum()
                count = Dyadic(s.num * own, s.exp)
                mass[c] += count.sum()
                for into, part in ((v, s * U), (features, count)):
                    for j, x in zip(
                        columns.tolist(), matrix.transposed_dot(part).fractions(), strict=True
                    ):
                        into[c][j] += x
        for i, p_i in point.fixed.items():
            self._exchange(point, i, p_i, residual, v)
        entropy += self._entropy_change(point)
        return CoupledSums(entropy, mass, residual, v, features, lambda r: self._spread(r, mass))

    def _exchange(
        self, point: Point, i: int, p: list[Fraction], residual: list[Fraction], v: Any
    ) -> None:
        """Put the rational p of a fixed row in the place of its float one."""
        before = [part.fractions()[0] for part in self._cut(point, slice(i, i + 1))]
        s, x = self.weight_at(i), _row(self.X, i)
        change = [a - b for a, b in zip(before, p, strict=True)]  # of U off the label
        change[self.labels[i]] = -sum(change, Fraction(0))
        for c, moved in enumerate(change):
            residual[c] += s * moved
            v[c] = [a + s * moved * b for a, b in zip(v[c], x, strict=True)]

    def _entropy_change(self, point: Point) -> Interval:
        total = NOTHING
        for i, p in point.fixed.items():
            before = [part.fractions()[0] for part in self._cut(point, slice(i, i + 1))]
            others = [c for c in range(self.k) if c != self.labels[i]]
            old, new = (
                self.formula.entropy([[q[c] for c in others]], [self.weight_at(i)])
                for q in (before, p)
            )
            total += new + Interval(-old.high, -old.low)
        return total

    def _spread(self, r: list[Fraction], mass: list[Fraction]) -> Interval:
        """Sum over the classes of their weight times the entropy of a row with p = r."""
        off = [[x for c, x in enumerate(r) if c != label] for label in range(self.k)]
        return self.formula.entropy(off, mass)

    def _cut(self, point: Point, rows: slice) -> list[Dyadic]:
        """p of each class off the label, not negative; a row whose sum exceeds 1 becomes its label."""
        p = []
        for c in range(self.k):
            part = Dyadic.of(point.pieces[0][rows, c])
            for piece in point.pieces[1:]:
                part = part + Dyadic.of(piece[rows, c])
            p.append(part.positive())
        rest = p[0]
        for part in p[1:]:
            rest = rest + part
        over = ((Dyadic.of(1.0) - rest).num < 0).astype(bool)
        if over.any():
            p = [Dyadic(np.where(over, 0, part.num), part.exp) for part in p]
        return p

    def snapped(self, point: Point) -> Point:
        """The point with p of the multiclass hinge next to 0 put on it, and sums above 1 brought below it."""
        p = np.maximum(point.floats(), 0.0)
        if not self.loss.smooth:
            p = np.where(p <= _AT_THE_END, 0.0, p)
        return self._off_label(-p)

    def directions(
        self, point: Point, active: npt.NDArray[np.bool_]
    ) -> tuple[FloatArray, FloatArray]:
        """As for pointwise losses, with H = diag(p) - p p' = L L' of each row and L = diag(sqrt p) - p sqrt(p)'."""
        p = np.maximum(point.floats(), 0.0)
        index = np.arange(self.n)
        p[index, self.labels] = np.maximum(1.0 - p.sum(axis=1), 0.0)
        root = np.sqrt(p)
        L = root[:, :, None] * np.eye(self.k) - p[:, :, None] * root[:, None, :]
        s = np.sqrt(self.s)
        L *= (s > 0.0)[:, None, None]
        # rows (i, a), columns (j, c): sqrt(s_i) x_ij L_i[c, a]
        B = np.einsum("ij,ica->iajc", s[:, None] * self.dense(), L, optimize=True)
        B = B.reshape(self.n * self.k, (self.d + 1) * self.k)[:, active.ravel()]
        return B, np.divide(L, s[:, None, None], out=np.zeros_like(L), where=s[:, None, None] > 0.0)

    def move(self, point: Point, y: FloatArray, factors: FloatArray) -> Point:
        """The point after a step y along the directions; U moves by +step, p by -step."""
        step = np.einsum("ica,ia->ic", factors, y.reshape(self.n, self.k))
        step[np.arange(self.n), self.labels] = 0.0
        # a row that would leave the simplex, or whose label has no share that floats can tell from 0, stays
        step[(point.floats() - step).sum(axis=1) > 1.0 - 2.0**-50] = 0.0
        return point.moved(-step)

    def corrected_class(
        self, point: Point, c: int, to: int, rows: dict[int, Fraction]
    ) -> Point | None:
        """The point with s U_c of some rows changed exactly, at the expense of the class ``to``."""
        fixed = dict(point.fixed)
        for i, change in rows.items():
            p = fixed.get(i)
            if p is None:
                p = [part.fractions()[0] for part in self._cut(point, slice(i, i + 1))]
            p = list(p)
            moved = change / self.weight_at(i)
            for place, by in ((c, -moved), (to, moved)):
                if place != self.labels[i]:
                    p[place] += by
            if min(p) < 0 or sum(p, Fraction(0)) > 1:
                return None
            fixed[i] = p
        return Point(point.pieces, fixed)
