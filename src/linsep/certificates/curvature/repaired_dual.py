"""A dual bound without a penalty, for losses whose curvature does not give one.

With lam = 0 a dual point bounds the objective only if rho = sum s sigma u x~ vanishes exactly, x~ = (x, 1):

    P(theta) >= -sum_i s_i (l*(-u_i) + u_i offset_i)      for every theta.

No rounded u achieves that, but a point close to it does. Let a_i <= 1 be at most the distance of u_i from the ends of
the domain of the conjugate (its room) and M = sum s a x~ x~'. Then u_i - sigma_i a_i x~_i . y with M y = rho is
feasible, and by the Cauchy-Schwarz inequality no u_i changes by more than c_i = a_i sqrt(x~_i' M^-1 x~_i)
|rho|_{M^-1}, which is less than its room if the last two factors are below 1. The step is computed in float64 as
accurately as possible, which leaves a rho of the size of rounding; the remaining exact step is only bounded. As l* is
convex, its largest value on [u_i - c_i, u_i + c_i] is at an end, and the bound uses that value.

At a vertex of the polytope of dual points only a few rows have room, and changing those alone keeps the bound as sharp
as float64 allows. If they do not suffice (a degenerate vertex) all u are first shrunk by a tiny fraction, which reduces
the bound by at most that fraction (it is concave and 0 at u = 0); if 0 is an end of the domain, u that are almost 0 are
set to 0.

A column with a single nonzero entry requires u = 0 in its row. If no u is negative, so does a column whose entries
times sigma have one sign, in all of its rows. Without these rows the same may hold for other columns, so that many of
the rows and columns of a table of words need no matrix.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray
from linsep.certificates.curvature.dependence import proven_metric
from linsep.certificates.curvature.metric import ROUNDING_FACTOR
from linsep.certificates.curvature.rows import UNDERFLOW, Rows, row_curvatures
from linsep.certificates.parts import Dual, dual_point, weigh
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF

#: Fraction of tol by which u is shrunk to gain room.
_SHRINK = 0.05
#: Room above which a row is certainly free.
_AMPLE = 1e-3
#: Dual variables below this fraction of the largest one may be 0 at the optimum.
_NEGLIGIBLE = 1e-7
_REFINEMENTS = 3
_NOTHING = (0.0, 0.0)


def repaired_bound(
    loss: Loss, part: Rows, m: FloatArray, dual: Dual, tol: float
) -> tuple[float, float]:
    """Lower bound on the objective, and a bound on its rounding error; (0, 0) if none is found."""
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
    """Dual variables near u, and c such that a feasible point with rho = 0 exactly lies within c_i of each.

    None if the existence of such a point is not proven. ``u`` is overwritten.
    """
    low, high = loss.domain
    held = _held_rows(loss, part)
    u[held] = 0.0
    start, room = u.copy(), _room(loss, u, held)
    ample = np.where(part.weight > 0.0, room >= _AMPLE, False)
    if 2 * np.count_nonzero(ample) < len(u):  # a vertex: few rows are free, and may suffice
        found = _move_to_feasible(loss, part, u.copy(), np.where(ample, room, 0.0))
        if found is not None:
            return found
    if low < 0.0 < high and math.isfinite(high - low):
        u *= 1.0 - _SHRINK * tol
        room = _room(loss, u, held)
    found = _move_to_feasible(loss, part, u, room)
    if found is not None or low < 0.0:
        return found
    # dual variables that are 0 at the optimum have no room to correct what others lack
    held |= start <= _NEGLIGIBLE * start.max(initial=0.0)
    start = np.where(held, 0.0, start if math.isinf(high) else (1.0 - _SHRINK * tol) * start)
    return _move_to_feasible(loss, part, start, _room(loss, start, held))


def _room(loss: Loss, u: FloatArray, held: BoolArray) -> FloatArray:
    """Distance of u from the ends of the domain, at most 1; 0 in the rows that are held."""
    low, high = loss.domain
    return np.where(held, 0.0, np.clip(np.minimum(u - low, high - u), 0.0, 1.0))


def _held_rows(loss: Loss, part: Rows) -> BoolArray:
    """Rows of sparse tables in which every feasible point has u = 0, because of a column without cancelling terms."""
    n, d = part.X.shape
    held = np.zeros(n, dtype=bool)
    if not sp.issparse(part.X):
        return held
    X = sp.coo_matrix(part.X)
    row, column, up = X.row, X.col, X.data * part.sigma[X.row] > 0.0
    left = (X.data != 0.0) & (part.weight[row] > 0.0)
    one_sided = loss.domain[0] == 0.0
    while True:
        row, column, up = row[left], column[left], up[left]
        rises, all_of_them = (np.bincount(c, minlength=d) for c in (column[up], column))
        alone = (rises == 0) | (rises == all_of_them) if one_sided else all_of_them == 1
        held[row[alone[column]]] = True
        if not held[row].any():
            return held
        left = ~held[row]


def _move_to_feasible(
    loss: Loss, part: Rows, u: FloatArray, room: FloatArray
) -> tuple[FloatArray, FloatArray] | None:
    """Change u in the rows with room until rho vanishes up to rounding; bound the distance to the feasible point.

    If columns are exact combinations of others on all rows with room or u != 0, rho vanishes in all columns once it
    vanishes in those others.
    """
    free = np.flatnonzero((room > 0.0) & (part.weight > 0.0))
    inner = part.take(free) if len(free) < len(u) else part
    counts = ((room > 0.0) | (u != 0.0)) & (part.weight > 0.0)
    metric = proven_metric(inner, row_curvatures(inner.weight, room[free]), counts, part)
    if metric is None:
        return None  # rho may have a component that no row with room can correct
    for _ in range(_REFINEMENTS):
        y = metric.T @ (metric.T.T @ _residual(part, u)[0])
        for rows, A in inner.blocks():
            at = free[rows]
            u[at] -= part.sigma[at] * room[at] * (A @ y)
    rho, slack = _residual(part, u)
    reach = np.zeros(len(u))
    reach[free] = inner.reach(metric)
    # |rho|_{M^-1} for the true M: T'MT >= floor
    norm = metric.dual_norm(rho, slack) / math.sqrt(metric.floor) * ROUNDING_FACTOR
    if not math.isfinite(norm):
        return None
    c = room * reach / math.sqrt(metric.floor) * norm * ROUNDING_FACTOR
    low, high = loss.domain
    left = np.minimum(u - low, high - u)  # remaining room after the changes to u
    inside = (c <= left / ROUNDING_FACTOR)[part.weight > 0.0].all()
    return (u, c) if inside else None


def _residual(part: Rows, u: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Sum of s sigma u x~, and a bound on its rounding error."""
    rho, slack = np.zeros((2, part.size))
    mass = part.weight * part.sigma * u
    rounded = np.where(part.weight == 1.0, 0.0, ROUNDOFF * np.abs(mass) + UNDERFLOW)
    for rows, A in part.blocks():
        own, error = part.pull(A, mass[rows])
        rho += own
        slack += error + abs(A).T @ rounded[rows] + ROUNDOFF * np.abs(rho)
    return rho, ROUNDING_FACTOR * slack


def worst_case_bound(loss: Loss, part: Rows, u: FloatArray, c: FloatArray) -> tuple[float, float]:
    """Lower bound with the worse end of every [u - c, u + c], and a bound on its rounding error."""
    worst, size = largest_conjugates(loss, u, c, part.offset)
    rounding = (part.chain + 8 * ROUNDOFF) * float(weigh(part.weight, size).sum())
    return -float(weigh(part.weight, worst).sum()), rounding + len(u) * UNDERFLOW


def largest_conjugates(
    loss: Loss, u: FloatArray, c: FloatArray, offset: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Largest l*(-t) + t offset for t in [u - c, u + c] of each row, and bounds on the size of its terms."""
    low, high = loss.domain
    worst, size = np.full(len(u), -math.inf), np.zeros(len(u))
    for side in (-math.inf, math.inf):
        moved = u + math.copysign(1.0, side) * c
        end = np.where(c > 0.0, np.clip(np.nextafter(moved, side), low, high), u)
        conjugate, shift = loss.conjugate(-end), end * offset
        worst = np.maximum(worst, conjugate + shift)
        size = np.maximum(size, np.abs(conjugate) + np.abs(shift))
    return worst, size
