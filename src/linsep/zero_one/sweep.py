"""Two features: a line that turns about every point in turn, O(n^2 log n) in all.

Move a line that passes through no point until it meets one, then turn it about that point until it meets another.
The sides of all other points stay as they were; the points on the line are split in two by where the lines cross. So
the optimum is the least, over lines through two points, of the errors off the line plus those of the best split on it.
Angles that floats cannot tell apart are taken together: if exact arithmetic finds the points on one line they are
split as such, else all count as right, which keeps the result a lower bound.
"""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from linsep.dyadic import DyadicRows
from linsep.watching import note
from linsep.zero_one.line import best_threshold
from linsep.zero_one.points import FloatArray, IntArray, Mask, Points

_SAME = 1e-14  # angles nearer than this may be equal


@dataclass(frozen=True, eq=False)
class Best:
    """Least errors, which points they leave positive, and a lower bound (below it where floats cannot tell)."""

    errors: float
    positive: Mask
    bound: float


def sweep(points: Points, deadline: float) -> Best | None:
    """The optimum of two features; None if time ran out."""
    X = points.X / 2.0 ** np.frexp(np.abs(points.X).max(axis=0))[1]  # powers of two: no rounding
    c = points.sign * points.weight
    total = float(c.sum())
    least = 0.5 * (points.total - abs(total))
    best = Best(least, np.full(len(c), total >= 0.0), least)
    for pivot in range(len(c)):
        if perf_counter() > deadline:
            return None
        note(0.0, best.errors)
        best = _turn(X, c, pivot, best)
    return best


def _turn(X: FloatArray, c: FloatArray, pivot: int, best: Best) -> Best:
    """All lines through one point."""
    delta = X - X[pivot]
    here = (delta[:, 0] == 0.0) & (delta[:, 1] == 0.0)
    others = np.flatnonzero(~here)
    if not len(others):
        return best
    dx, dy = delta[others, 0], delta[others, 1]
    upper = (dy > 0.0) | ((dy == 0.0) & (dx > 0.0))
    angle = np.arctan2(np.where(upper, dy, -dy), np.where(upper, dx, -dx))
    order = np.argsort(angle)
    gap = np.diff(angle[order], append=angle[order[0]] + np.pi)
    start = int(np.argmax(gap)) + 1  # begin after the widest gap, so that no group is cut
    order = np.roll(order, -start)
    gap = np.roll(gap, -start)
    # beyond the seam the direction is the opposite one, and so are the sides
    wrapped = np.arange(len(order)) >= len(order) - start
    value = np.where(upper[order] != wrapped, c[others[order]], -c[others[order]])
    ends = np.flatnonzero(np.append(gap[:-1] > _SAME, True)) + 1
    starts = np.concatenate([[0], ends[:-1]])
    running = np.concatenate([[0.0], np.cumsum(value)])
    weigh = np.concatenate([[0.0], np.cumsum(np.abs(value))])
    balance = running[-1] - running[ends] - running[starts]  # left minus right, signed
    off = weigh[-1] - (weigh[ends] - weigh[starts])
    hopeful = 0.5 * (off - np.abs(balance))
    slack = 1e-9 * max(1.0, best.errors)
    for group in np.flatnonzero(hopeful < min(best.errors, best.bound) - slack):
        on = others[order[starts[group] : ends[group]]]
        line = np.concatenate([np.flatnonzero(here), on])
        left = np.zeros(len(c), dtype=bool)
        left[others[order]] = upper[order] != wrapped
        before = others[order[: starts[group]]]
        left[before] = ~left[before]
        best = _better(X, c, best, line, left if balance[group] >= 0.0 else ~left, hopeful[group])
    return best


def _better(
    X: FloatArray, c: FloatArray, best: Best, line: IntArray, positive: Mask, off: float
) -> Best:
    """What a line and the best split of the points on it achieve."""
    along = _positions(X[line])
    if along is None:
        return Best(best.errors, best.positive, min(best.bound, off))
    split, chosen = best_threshold(along, c[line])
    value = off + split
    if value >= best.errors:
        return best
    positive = positive.copy()
    positive[line] = chosen
    return Best(value, positive, min(best.bound, value))


def _positions(P: FloatArray) -> FloatArray | None:
    """Ranks of points along the line that they share; None if they do not lie on one, exactly."""
    if len(np.unique(P, axis=0)) > 2:
        rows = DyadicRows.of(P)
        low = min(rows.exps)
        D = rows.num * np.array([1 << (exp - low) for exp in rows.exps], dtype=object)
        D = D - D[0]
        far = D[int(np.argmax([abs(a) + abs(b) for a, b in D]))]
        if any(a * far[1] != b * far[0] for a, b in D):
            return None
    axis = int(np.argmax(np.ptp(P, axis=0)))
    return np.asarray(P[:, axis])
