"""Exact sums of a loss that couples the classes, and the directions in which a dual point may move."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.certificates.exact.losses import ZERO_INTERVAL, Interval, exact_coupled_loss
from linsep.certificates.exact.points import ExactRows, Point, dense_blocks, row_of
from linsep.certificates.parts import Dual, score
from linsep.exact.dyadic import Dyadic, DyadicRows
from linsep.losses import CoupledLoss, Multinomial
from linsep.solution import Explicit

#: A dual variable of a kinked loss within this distance of an end of its interval is set to that end.
_AT_THE_END = 1e-10
#: Sums of p that exceed 1 by less than this are due to rounding, and corrected in exact arithmetic.
_ABOVE = 2.0**-40


@dataclass(eq=False)
class ClassSums:
    """Sums of a loss that couples k classes; lists of lists are (k, d)."""

    entropy: Interval
    mass: list[Fraction]
    residual: list[Fraction]
    v: list[list[Fraction]]
    features: list[list[Fraction]]
    spread: Any  #: minus the sum of the conjugates if every row had p = r

    def gradient(self) -> list[Fraction]:
        """V flattened like W, followed by the class sums."""
        flat = [x for row in zip(*self.v, strict=True) for x in row]
        return flat + self.residual

    def column(self, c: int, fit_intercept: bool) -> list[Fraction]:
        """V of one class, followed by its class sum if there is an intercept."""
        return [*self.v[c], *([self.residual[c]] if fit_intercept else [])]

    def plain(self) -> tuple[Interval, list[Fraction]]:
        """Minus the sum of conjugates, and V."""
        return self.entropy, self.gradient()[: -len(self.mass)]

    def balance(self) -> tuple[Interval, list[Fraction]]:
        """Mix all p with one distribution r so that the class sums vanish (see ``softmax``)."""
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


class CoupledRows(ExactRows):
    """Rows of a coupled loss, with k scores and a label each."""

    def __init__(
        self, loss: CoupledLoss, X: Any, labels: Any, weight: FloatArray | None, W: FloatArray
    ) -> None:
        super().__init__(X, weight, W)
        self.loss, self.formula = loss, exact_coupled_loss(loss)
        self.labels = np.asarray(labels).astype(np.int64)

    def primal(self) -> Interval:
        """Sum of s l(z)."""
        total = ZERO_INTERVAL
        for rows, block, columns in dense_blocks(self.X):
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

    def unfold(self, dual: Dual) -> Point:
        """Dual point of the model, unfolded in float64."""
        if isinstance(dual, Explicit):
            return self._explicit(dual)
        if not isinstance(self.loss, Multinomial):
            return self._slopes()
        block = self.X.astype(np.float64)
        return self._off_label(
            self.loss.linearised_dual(score(block, dual.base), score(block, dual.step))
        )

    def slopes(self) -> list[Point]:
        """Minus the slopes of a smooth loss at the solution; empty for a loss with kinks."""
        return [self._slopes()] if self.loss.smooth else []

    def _slopes(self) -> Point:
        return self._off_label(
            -self.loss.slope(score(self.X.astype(np.float64), self.W), self.labels)
        )

    def _explicit(self, dual: Explicit) -> Point:
        """Entries off the label, including digits beyond float64 where the entry was not otherwise changed."""
        U = np.array(dual.u, dtype=np.float64).reshape(self.n, self.k)
        point = self._off_label(U)
        if dual.rest is None:
            return point
        rest = -np.array(dual.rest, dtype=np.float64).reshape(self.n, self.k)
        kept = np.isfinite(rest) & (point.pieces[0] == -U) & (point.pieces[0] > 0.0)
        kept[np.arange(self.n), self.labels] = False
        return point.plus(np.where(kept, rest, 0.0))

    def _off_label(self, U: FloatArray) -> Point:
        p = np.where(np.isfinite(U), np.maximum(-U, 0.0), 0.0)
        p[np.arange(self.n), self.labels] = 0.0
        rest = p.sum(axis=1, keepdims=True)
        return Point([np.where(rest > 1.0 + _ABOVE, p / np.where(rest > 0, rest, 1), p)])

    def evaluate(self, point: Point) -> ClassSums:
        """Compute the sums of the dual bound."""
        k, d = self.k, self.d
        entropy, mass, residual = ZERO_INTERVAL, [Fraction(0)] * k, [Fraction(0)] * k
        v, features = ([[Fraction(0)] * d for _ in range(k)] for _ in range(2))
        for rows, block, columns in dense_blocks(self.X):
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
        if point.fixed:
            before = self._rational(point, list(point.fixed))
            for (i, p_i), old in zip(point.fixed.items(), before, strict=True):
                self._exchange(i, old, p_i, residual, v)
            entropy += self._entropy_change(point, before)
        return ClassSums(entropy, mass, residual, v, features, lambda r: self._spread(r, mass))

    def _rational(self, point: Point, rows: list[int]) -> list[list[Fraction]]:
        """p of some rows, one number for each class, as the pieces of the point have it."""
        per_class = [part.fractions() for part in self._cut(point, np.array(rows))]
        return [list(p) for p in zip(*per_class, strict=True)]

    def _exchange(
        self,
        i: int,
        before: list[Fraction],
        p: list[Fraction],
        residual: list[Fraction],
        v: Any,
    ) -> None:
        """Replace the float p of a fixed row by its rational p in the sums."""
        s, x = self.weight_at(i), row_of(self.X, i)
        change = [a - b for a, b in zip(before, p, strict=True)]  # change of U off the label
        change[self.labels[i]] = -sum(change, Fraction(0))
        for c, moved in enumerate(change):
            if moved:
                residual[c] += s * moved
                v[c] = [a + s * moved * b for a, b in zip(v[c], x, strict=True)]

    def _entropy_change(self, point: Point, before: list[list[Fraction]]) -> Interval:
        s = [self.weight_at(i) for i in point.fixed]
        old, new = (
            self.formula.entropy(
                (
                    [x for c, x in enumerate(p) if c != self.labels[i]]
                    for i, p in zip(point.fixed, rows, strict=True)
                ),
                s,
            )
            for rows in (before, point.fixed.values())
        )
        return new + Interval(-old.high, -old.low)

    def _spread(self, r: list[Fraction], mass: list[Fraction]) -> Interval:
        """Sum over classes of their weight times the entropy of a row with p = r."""
        off = [[x for c, x in enumerate(r) if c != label] for label in range(self.k)]
        return self.formula.entropy(off, mass)

    def _cut(self, point: Point, rows: slice | IntArray) -> list[Dyadic]:
        """p of each class off the label, clipped at 0; any excess of a row's sum over 1 is taken from its largest p."""
        p = []
        for c in range(self.k):
            part = Dyadic.of(point.pieces[0][rows, c])
            for piece in point.pieces[1:]:
                part = part + Dyadic.of(piece[rows, c])
            p.append(part.positive())
        rest = p[0]
        for part in p[1:]:
            rest = rest + part
        over = (rest - Dyadic.of(1.0)).positive()
        if not over.num.any():
            return p
        largest = np.argmax([part.floats() for part in p], axis=0)
        p = [
            part - Dyadic(np.where(largest == c, over.num, 0), over.exp) for c, part in enumerate(p)
        ]
        lost = np.any([part.num < 0 for part in p], axis=0)
        return [Dyadic(np.where(lost, 0, part.num), part.exp) for part in p]

    def snap_to_ends(self, point: Point) -> Point:
        """Set p of the multiclass hinge that are close to 0 to 0, and rescale rows whose sum exceeds 1."""
        p = np.maximum(point.floats(), 0.0)
        if not self.loss.smooth:
            p = np.where(p <= _AT_THE_END, 0.0, p)
        return self._off_label(-p)

    def shrink(self, point: Point, shares: tuple[float, ...]) -> Iterator[Point]:
        """Yield no points: p = 0 is an end of the domain."""
        yield from ()

    def probabilities(self, point: Point) -> FloatArray:
        """Probabilities of all classes including the label, rounded to float64."""
        p = np.maximum(point.floats(), 0.0)
        p[np.arange(self.n), self.labels] = np.maximum(1.0 - p.sum(axis=1), 0.0)
        return p

    def directions(self, point: Point, active: BoolArray) -> tuple[FloatArray, FloatArray]:
        """Directions from the factor H = diag(p) - p p' = L L' of each row, L = diag(sqrt p) - p sqrt(p)'."""
        p = self.probabilities(point)
        root = np.sqrt(p)
        L = root[:, :, None] * np.eye(self.k) - p[:, :, None] * root[:, None, :]
        s = np.sqrt(self.s)
        L *= (s > 0.0)[:, None, None]
        # rows (i, a), columns (j, c): sqrt(s_i) x_ij L_i[c, a]
        B = np.einsum("ij,ica->iajc", s[:, None] * self.dense(), L, optimize=True)
        B = B.reshape(self.n * self.k, (self.d + 1) * self.k)[:, active.ravel()]
        return B, np.divide(L, s[:, None, None], out=np.zeros_like(L), where=s[:, None, None] > 0.0)

    def move(self, point: Point, y: FloatArray, factors: FloatArray) -> Point:
        """Return the point after a step y along the directions; U changes by +step, p by -step."""
        step = np.einsum("ica,ia->ic", factors, y.reshape(self.n, self.k))
        step[np.arange(self.n), self.labels] = 0.0
        step[(point.floats() - step).sum(axis=1) > 1.0 + _ABOVE] = 0.0  # would leave the simplex
        return point.plus(-step)

    def correct(self, point: Point, changes: dict[tuple[int, int, int], Fraction]) -> Point | None:
        """Change s U_ic exactly, compensated in another class, by (i, c, other class); None if outside the domain."""
        others = sorted({i for i, _, _ in changes} - set(point.fixed))
        fixed = dict(point.fixed)
        if others:
            fixed.update(zip(others, self._rational(point, others), strict=True))
        for (i, c, to), change in changes.items():
            p = list(fixed[i])
            moved = change / self.weight_at(i)
            for place, by in ((c, -moved), (to, moved)):
                if place != self.labels[i]:
                    p[place] += by
            fixed[i] = p
        inside = all(min(p) >= 0 and sum(p, Fraction(0)) <= 1 for p in fixed.values())
        return Point(point.pieces, fixed) if inside else None
