"""Enumerate hyperplanes in one or two dimensions, exactly, by comparing floats and adding integers.

One feature: try every threshold in both directions. Two features: enumerate the lines through pairs of points by
rotating a line about each point, O(n^2 log n).

Move a line that passes through no point until it meets one, then rotate it about that point until it meets another.
The sides of all other points are unchanged; the points on the line are split at the intersection with the original
line. So the optimum is the minimum, over lines through two points, of the errors off the line plus those of the best
split on it. Weights are integers. Angles that floats cannot distinguish are first grouped, with all their points
counted as correct; where that could beat the best line so far, they are sorted by cross products in integers. Nothing
is rounded.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cmp_to_key
from time import perf_counter
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.exact.dyadic import DyadicRows
from linsep.monitoring import note
from linsep.zero_one.points import Points

_HUGE = 2.0**1022  # differences of numbers up to this size do not overflow


def best_threshold(x: FloatArray, signed_units: Any) -> tuple[int, BoolArray]:
    """Smallest number of error units of sign(+-(x - t)), and a mask of the points then predicted +1.

    ``signed_units`` is sign times weight, as integers. Thresholds lie between distinct values, or beyond all of them.
    """
    order = np.argsort(x, kind="stable")
    values, c = x[order], signed_units[order]
    # whether a threshold may lie before entry j
    cut = np.concatenate([[True], values[1:] > values[:-1], [True]])
    below = np.zeros(len(c) + 1, dtype=c.dtype)
    below[1:] = np.cumsum(c)
    total, size = int(below[-1]), int(np.abs(c).sum())
    agreement = total - 2 * below  # +1 above the threshold
    at = int(np.argmax(np.where(cut, np.abs(agreement), -1)))
    upward = agreement[at] >= 0
    positive = np.zeros(len(x), dtype=bool)
    positive[order[at:] if upward else order[:at]] = True
    return (size - abs(int(agreement[at]))) // 2, positive


def threshold_plane(x: FloatArray, positive: BoolArray) -> FloatArray:
    """(w, b) with w x + b >= 0 exactly for the positive points, which lie all above or all below the others.

    w is a power of two, so that the score is rounded once and its sign is correct. Between adjacent floats there is no
    threshold; the nearest positive point is used instead, whose score is then 0.
    """
    if positive.all() or not positive.any():
        return np.array([0.0, 1.0 if positive.all() else -1.0])
    upward = x[positive].min() > x[~positive].max()
    inner = float(x[positive].min() if upward else x[positive].max())
    outer = float(x[~positive].max() if upward else x[~positive].min())
    middle = 0.5 * inner + 0.5 * outer
    if middle == outer:
        middle = inner
    size = 1.0 if max(float(np.abs(x).max()), abs(middle)) < _HUGE else 0.25
    return np.array([size, -size * middle]) if upward else np.array([-size, size * middle])


_SAME = 1e-14  # closer angles may be equal: their error is below 1e-15


@dataclass(frozen=True, eq=False)
class Best:
    """Smallest errors in units, and a mask of the points predicted positive."""

    errors: int
    positive: BoolArray


def sweep(points: Points, deadline: float) -> Best | None:
    """Optimum for two features; None if time ran out."""
    lines = _Lines(points)
    c = points.signed_units
    total = int(c.sum())
    best = Best((points.total // points.step - abs(total)) // 2, np.full(len(c), total >= 0))
    for pivot in range(len(c)):
        if perf_counter() > deadline:
            return None
        note(0.0, points.value(best.errors * points.step))
        best = lines.best_line_through(pivot, best)
    return Best(best.errors * points.step, best.positive)


@dataclass(frozen=True, eq=False)
class _Fan:
    """Points in the order in which a rotating line meets them.

    ``ahead`` marks the points in the direction of the line when it meets them; the others lie in the opposite
    direction. Runs of equal angles, up to rounding, begin at ``starts`` and end before ``ends``.
    """

    order: IntArray
    ahead: BoolArray
    starts: IntArray
    ends: IntArray


class _Lines:
    """Lines through pairs of points, evaluated in exact arithmetic where necessary."""

    def __init__(self, points: Points) -> None:
        self.X, self.c = points.X, points.signed_units
        self.whole = DyadicRows.of(points.X).num  # scaling columns preserves orientations
        self.scaled = _scale_columns(points.X)

    def best_line_through(self, pivot: int, best: Best) -> Best:
        """Return the best of ``best`` and all lines through one point."""
        here = (self.X == self.X[pivot]).all(axis=1)
        others = np.flatnonzero(~here)
        if not len(others):
            return best
        fan = self._fan(pivot, others)
        value = np.where(fan.ahead, self.c[fan.order], -self.c[fan.order])
        running, weigh = _sums(value), _sums(np.abs(value))
        balance = running[-1] - running[fan.ends] - running[fan.starts]  # left minus right, signed
        off = weigh[-1] - (weigh[fan.ends] - weigh[fan.starts])
        hopeful = (off - np.abs(balance)) // 2
        for group in np.flatnonzero(hopeful < best.errors):
            lo, hi = int(fan.starts[group]), int(fan.ends[group])
            inside = self._sort(pivot, fan, lo, hi)
            for order, start, end in self._runs(pivot, fan, inside, lo):
                best = self._best_split(np.flatnonzero(here), fan, order, (start, end), best)
        return best

    def _fan(self, pivot: int, others: IntArray) -> _Fan:
        if self.scaled is None:  # the scaled numbers underflow: treat all angles as one group
            delta = self.whole[others] - self.whole[pivot]
            upper = np.array([y > 0 or (y == 0 and x > 0) for x, y in delta.tolist()])
            return _Fan(others, upper, np.array([0]), np.array([len(others)]))
        dx, dy = (self.scaled[others] - self.scaled[pivot]).T
        upper = (dy > 0.0) | ((dy == 0.0) & (dx > 0.0))
        angle = np.arctan2(np.where(upper, dy, -dy), np.where(upper, dx, -dx))
        order = np.argsort(angle)
        gap = np.diff(angle[order], append=angle[order[0]] + np.pi)
        start = int(np.argmax(gap)) + 1  # begin after the widest gap, so that no group is split
        order = np.roll(order, -start)
        gap = np.roll(gap, -start)
        # beyond the seam the direction of the line is reversed, and so are the sides
        wrapped = np.arange(len(order)) >= len(order) - start
        ends = np.flatnonzero(np.append(gap[:-1] > _SAME, True)) + 1
        starts = np.concatenate([[0], ends[:-1]])
        return _Fan(others[order], upper[order] != wrapped, starts, ends)

    def _sort(self, pivot: int, fan: _Fan, lo: int, hi: int) -> list[tuple[int, Any, Any]]:
        """Sort positions lo..hi of the fan by exact angle, each with the direction of the line that meets it."""
        delta = self.whole[fan.order[lo:hi]] - self.whole[pivot]
        ahead = fan.ahead[lo:hi].tolist()
        turned = [
            (at, *((x, y) if front else (-x, -y)))
            for at, ((x, y), front) in enumerate(zip(delta.tolist(), ahead, strict=True), lo)
        ]
        if all(_cross(turned[0], other) == 0 for other in turned):
            return turned
        return sorted(turned, key=_by_angle)

    def _runs(
        self, pivot: int, fan: _Fan, inside: list[tuple[int, Any, Any]], lo: int
    ) -> Iterator[tuple[IntArray, int, int]]:
        """Yield the positions of the fan in exact order, and the start and end of each run of equal angles."""
        order = np.arange(len(fan.order))
        order[lo : lo + len(inside)] = [at for at, _, _ in inside]
        start = 0
        for end in range(1, len(inside) + 1):
            if end == len(inside) or _cross(inside[start], inside[end]) != 0:
                yield order, lo + start, lo + end
                start = end

    def _best_split(
        self, here: IntArray, fan: _Fan, order: IntArray, run: tuple[int, int], best: Best
    ) -> Best:
        """Return the better of ``best`` and a line with the best split of the points on it."""
        start, end = run
        left = np.zeros(len(self.c), dtype=bool)
        left[fan.order] = fan.ahead
        before = fan.order[order[:start]]
        left[before] = ~left[before]
        line = np.concatenate([here, fan.order[order[start:end]]])
        apart = np.ones(len(self.c), dtype=bool)
        apart[line] = False
        signed = self.c[apart]
        balance = int(np.where(left[apart], signed, -signed).sum())
        off = (int(np.abs(signed).sum()) - abs(balance)) // 2
        if off >= best.errors:
            return best
        axis = int((self.X[line, 0] == self.X[line[0], 0]).all())
        split, chosen = best_threshold(self.X[line, axis], self.c[line])
        if off + split >= best.errors:
            return best
        positive = left if balance >= 0 else ~left
        positive[line] = chosen
        return Best(off + split, positive)


def _scale_columns(X: FloatArray) -> FloatArray | None:
    """X with columns divided by powers of two to at most 1; None if that is not exact because of underflow."""
    powers = np.frexp(np.abs(X).max(axis=0))[1]
    scaled = np.ldexp(X, -powers)
    return scaled if (np.ldexp(scaled, powers) == X).all() else None


def _sums(values: Any) -> Any:
    """Partial sums, starting with 0."""
    sums = np.zeros(len(values) + 1, dtype=values.dtype)
    sums[1:] = np.cumsum(values)
    return sums


def _turns(u: Any, v: Any) -> int:
    """Comparison: negative if the rotating line points along u before v."""
    return _cross(v, u)


_by_angle = cmp_to_key(_turns)


def _cross(u: tuple[int, Any, Any], v: tuple[int, Any, Any]) -> int:
    """-1, 0 or +1 if the direction of v lies to the right of that of u, along it, or to its left."""
    product = u[1] * v[2] - u[2] * v[1]
    return int(product > 0) - int(product < 0)
