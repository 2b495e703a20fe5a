"""A dual bound without a penalty, for losses whose curvature proves nothing.

With lam = 0 a dual point bounds the objective only if rho = sum s sigma u x~ vanishes exactly, x~ = (x, 1):

    P(theta) >= -sum_i s_i (l*(-u_i) + u_i offset_i)      for every theta.

No rounded u achieves that, but one close by does. Let a_i <= 1 be at most the room of u_i inside the domain of the
conjugate and M = sum s a x~ x~'. Then u_i - sigma_i a_i x~_i . y with M y = rho is feasible, and by
Cauchy-Schwarz no u_i moves by more than c_i = a_i sqrt(x~_i' M^-1 x~_i) |rho|_{M^-1}, that is by less than its room as
soon as the last two factors are below 1. The move is made in float64 as well as can be, which leaves a rho
of the size of rounding; the exact move that remains is only bounded. As l* is convex, its largest value on
[u_i - c_i, u_i + c_i] is at an end, and that is what the bound is charged with.

At a vertex of the polytope of dual points few rows have room, and moving those alone keeps the bound as sharp as
float64 is. Where they do not suffice (a degenerate vertex), room is made: if the domain contains 0 in its interior,
all u are first shrunk by a tiny share, which costs the bound that share at most (it is concave and 0 at u = 0).
"""

from __future__ import annotations

import math

import numpy as np

from linsep.arrays import BoolArray, FloatArray
from linsep.certificates.dependence import independent_columns
from linsep.certificates.metric import AMPLE, Metric
from linsep.certificates.recheck import Dual, dual_point, weigh
from linsep.certificates.rows import UNDERFLOW, Rows, row_curvatures
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF

#: Share of tol that is given up to make room.
_SHRINK = 0.05
#: Room of a row that is surely free.
_AMPLE = 1e-3
_REFINEMENTS = 3
_NOTHING = (0.0, 0.0)


def repaired_bound(
    loss: Loss, part: Rows, m: FloatArray, dual: Dual, tol: float
) -> tuple[float, float]:
    """A lower bound on the objective, and the rounding allowance of computing it; (0, 0) if none."""
    u = np.empty(len(m))
    for rows, A in part.chunks():
        block = A[:, : part.X.shape[1]]
        sign, o = part.sigma[rows], part.offset[rows]
        u[rows] = dual_point(loss, dual, rows, block, sign, o, m[rows])
    if not np.isfinite(u).all():
        return _NOTHING
    found = feasible_point(loss, part, u, tol)
    return _NOTHING if found is None else worst_case_bound(loss, part, *found)


def feasible_point(
    loss: Loss, part: Rows, u: FloatArray, tol: float
) -> tuple[FloatArray, FloatArray] | None:
    """Dual variables near u, and c: a feasible point with rho = 0 exactly lies within c of them, row by row.

    None if no such point is proven to exist. The variables in ``u`` are overwritten.
    """
    low, high = loss.domain
    room = np.clip(np.minimum(u - low, high - u), 0.0, 1.0)
    ample = np.where(part.weight > 0.0, room >= _AMPLE, False)
    if 2 * np.count_nonzero(ample) < len(u):  # a vertex: few rows are free, and they suffice
        found = _move_to_feasible(loss, part, u.copy(), np.where(ample, room, 0.0))
        if found is not None:
            return found
    if low < 0.0 < high and math.isfinite(high - low):
        u *= 1.0 - _SHRINK * tol
        room = np.clip(np.minimum(u - low, high - u), 0.0, 1.0)
    return _move_to_feasible(loss, part, u, room)


def _move_to_feasible(
    loss: Loss, part: Rows, u: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """The point near u that differs from it in the rows with room, and how far the feasible one may be from it.

    Where columns are exactly combinations of others on all rows with room or u != 0, rho vanishes in all columns if it
    vanishes in those others.
    """
    free = np.flatnonzero((room > 0.0) & (part.weight > 0.0))
    inner = part.take(free) if len(free) < len(u) else part
    counts = ((room > 0.0) | (u != 0.0)) & (part.weight > 0.0)
    metric = _metric(part, inner, row_curvatures(inner.weight, room[free]), counts)
    if metric is None:
        return None  # rho may point where no row with room can follow
    for _ in range(_REFINEMENTS):
        y = metric.T @ (metric.T.T @ _residual(part, u)[0])
        for rows, A in inner.chunks():
            at = free[rows]
            u[at] -= part.sigma[at] * room[at] * (A @ y)
    rho, slack = _residual(part, u)
    reach = np.zeros(len(u))
    reach[free] = inner.reach(metric)
    # |rho|_{M^-1} for the true M: T'MT >= floor
    norm = metric.dual_norm(rho, slack) / math.sqrt(metric.floor) * AMPLE
    if not math.isfinite(norm):
        return None
    c = room * reach / math.sqrt(metric.floor) * norm * AMPLE
    low, high = loss.domain
    left = np.minimum(u - low, high - u)  # of the room, now that u was moved
    inside = (c <= left / AMPLE)[part.weight > 0.0].all()
    return (u, c) if inside else None


def _metric(part: Rows, inner: Rows, h: FloatArray, counts: BoolArray) -> Metric | None:
    """A norm in which M is proven positive definite on columns that span all others on the rows that count."""
    metric = inner.metric(h)
    if metric is not None:
        return metric
    columns = independent_columns(part, counts)
    return inner.metric(h, columns) if len(columns) < part.size else None


def _residual(part: Rows, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of s sigma u x~, and its rounding error."""
    rho, slack = np.zeros((2, part.size))
    mass = part.weight * part.sigma * u
    rounded = np.where(part.weight == 1.0, 0.0, ROUNDOFF * np.abs(mass) + UNDERFLOW)
    for rows, A in part.chunks():
        own, error = part.pull(A, mass[rows])
        rho += own
        slack += error + np.abs(A).T @ rounded[rows] + ROUNDOFF * np.abs(rho)
    return rho, AMPLE * slack


def worst_case_bound(loss: Loss, part: Rows, u: FloatArray, c: FloatArray) -> tuple[float, float]:
    """The bound at the worse end of every [u - c, u + c], and its rounding allowance."""
    worst, size = largest_conjugates(loss, u, c, part.offset)
    rounding = (part.chain + 8 * ROUNDOFF) * float(weigh(part.weight, size).sum())
    return -float(weigh(part.weight, worst).sum()), rounding + len(u) * UNDERFLOW


def largest_conjugates(
    loss: Loss, u: FloatArray, c: FloatArray, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Largest l*(-t) + t offset for t in [u - c, u + c], row by row, and bounds on the size of the terms."""
    low, high = loss.domain
    worst, size = np.full(len(u), -math.inf), np.zeros(len(u))
    for side in (-math.inf, math.inf):
        moved = u + math.copysign(1.0, side) * c
        end = np.where(c > 0.0, np.clip(np.nextafter(moved, side), low, high), u)
        conjugate, shift = loss.conjugate(-end), end * offset
        worst = np.maximum(worst, conjugate + shift)
        size = np.maximum(size, np.abs(conjugate) + np.abs(shift))
    return worst, size
