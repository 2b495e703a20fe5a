"""Dual points for exact verification: the stored one, and improved ones.

A dual point in float64 misses v = lam w by its rounding error, which |v|^2/(2 lam) amplifies if lam is small; without a
penalty v must vanish exactly, which no rounded point achieves. Both are corrected here. With A the
columns s sigma x~ of the nonzero coefficients, u moves by h sigma x~.lambda where

    (A diag(h/s) A' + lam I) lambda = lam w + l1 sign(w) - v,

the Newton step on the dual if h is the curvature of the losses. The right-hand side is exact, and the step is added to
u as a further piece, so the error decreases by a factor of about 1e-15 with every step, although each step is computed
in float64. Without a penalty, the remainder is removed by solving a rational system on as many rows as there are
columns. Nothing here needs to be trusted: the bound is evaluated at whatever point results.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg as sl

from linsep.arrays import BoolArray, FloatArray
from linsep.certificates.exact.coupled import ClassSums, CoupledRows
from linsep.certificates.exact.points import Point
from linsep.certificates.exact.pointwise import PointwiseRows, SideSums
from linsep.exact.budget import spend
from linsep.exact.decimals import (
    DIGITS,
    backward,
    cholesky,
    count_work,
    decimals,
    floats,
    forward,
    gram,
    many_digits,
    multiply_adds,
    powers_of_two,
    worthwhile,
)
from linsep.exact.dyadic import Dyadic, DyadicRows, nearest, rational
from linsep.exact.rational import common_denominator, independent_columns, solve_rational
from linsep.interrupts import lapack

#: Most corrections of a dual point, each of which gains about 15 digits.
_STEPS = 12
#: Most halvings in the line search along a Newton step, whose minimum may lie at 1e-30 of the step.
_HALVINGS = 200
#: Number of float64 arrays that represent a step computed in decimals.
_PIECES = 4
#: Largest number of entries in the matrix of directions for which points are corrected.
_LARGEST = 4e7
#: Relative thresholds for pivots, tried in turn; 0 is for columns that are nearly dependent, and None selects the
#: columns that are independent in integer arithmetic.
_RANKS = (1e-11, 0.0, None)
#: Number of corrected points whose v is made exactly 0; rational arithmetic is slow.
_NEAREST = 3
#: Fractions by which a point at the ends of its domain is shrunk into the interior.
_SHRINK = (2.0**-34, 2.0**-25)
#: Freedom of rows at the kink of a dead zone, relative to the largest.
_AT_KINK = 2.0**-60
#: Most products of rationals for which the remainder is distributed over all rows.
_SPREAD = 50_000
#: Cost of an entry of the rows in integers, and in fractions, in multiply-adds of decimals.
_ENTRY, _FRACTION = 3, 20
#: Most multiply-adds of the factorisation for which all classes are corrected at once.
_JOINTLY = 2e6


@dataclass(frozen=True, eq=False)
class Target:
    """Value of v at an optimum with the coefficients of the model, for those that are ``active`` (d + 1, k).

    ``v`` is flat like ``active``, and 0 for the intercepts, in its last row; ``strength`` are the ridges.
    """

    active: BoolArray
    v: list[Fraction]
    strength: FloatArray

    @classmethod
    def zero(cls, shape: tuple[int, int], fit_intercept: bool) -> Target:
        """Target v = 0 for all coefficients."""
        active = np.ones(shape, dtype=bool)
        active[-1] = fit_intercept
        return cls(active, [Fraction(0)] * active.size, np.zeros(shape))

    def miss(self, gradient: list[Fraction]) -> FloatArray:
        """Target minus v for the active entries, each rounded once."""
        wanted = np.flatnonzero(self.active.ravel()).tolist()
        return np.array([nearest(self.v[j] - gradient[j]) for j in wanted])

    def decimals(self) -> Any:
        """Target v of the active entries, in decimals."""
        wanted = [self.v[j] for j in np.flatnonzero(self.active.ravel()).tolist()]
        return np.array([Decimal(v.numerator) / v.denominator for v in wanted], dtype=object)

    def ridge(self) -> FloatArray:
        """lam for the active coefficients, 0 for the intercepts."""
        return np.asarray(self.strength[self.active])


Rows = PointwiseRows | CoupledRows
Sums = SideSums | ClassSums


def candidates(rows: Rows, dual: Any, target: Target) -> Iterator[tuple[Point, Any]]:
    """Yield dual points and their sums, the cheapest first."""
    stored = rows.unfold(dual)
    yield stored, rows.evaluate(stored)
    if rows.n * rows.k * float(target.active.sum()) > _LARGEST:
        return
    for start in (stored, *rows.slopes()):
        yield from _correct(rows, start, target)
    if isinstance(rows, CoupledRows) or not worthwhile(rows.n, int(target.active.sum())):
        return
    if rows.formula.curved:
        for point in _newton(rows, target):
            yield point, _evaluate(rows, point)


def _evaluate(rows: Rows, point: Point) -> Any:
    """Sums of a point; its work is counted against the budget."""
    width = (rows.d + 1) * rows.k
    spend(_ENTRY * rows.n * width + _FRACTION * len(point.fixed) * width)
    return rows.evaluate(point)


def _correct(rows: Rows, point: Point, target: Target) -> Iterator[tuple[Point, Any]]:
    """Yield the point and its successive corrections, as long as each reduces the distance of v from its target 10x."""
    point = rows.snap_to_ends(point)
    sums = _evaluate(rows, point)
    yield point, sums
    before = np.inf
    for _ in range(_STEPS):
        miss = target.miss(sums.gradient())
        far = float(np.abs(miss).max(initial=0.0))
        closer = far <= before / 10 and 0.0 < far < np.inf
        step = _step(rows, point, target, miss) if closer else None
        if step is None:
            return
        point, before = step, far
        sums = _evaluate(rows, point)
        yield point, sums


def _step(rows: Rows, point: Point, target: Target, miss: FloatArray) -> Point | None:
    B, factors = rows.directions(point, target.active)
    if not B.size:
        return None
    count = len(B)
    if rows.loss.smooth:  # at a kink there is no curvature, so u may move as far as required
        B = np.vstack([B, np.diag(np.sqrt(target.ridge()))])
    scale = np.sqrt((B * B).sum(axis=0))
    scale[scale == 0.0] = 1.0
    try:
        U, S, Vt = lapack(np.linalg.svd, B / scale, full_matrices=False)
    except np.linalg.LinAlgError:
        return None
    cut = S > max(B.shape) * np.finfo(float).eps * S[0]
    y = U[:count, cut] @ ((Vt[cut] @ (miss / scale)) / S[cut])
    return rows.move(point, y, factors) if np.isfinite(y).all() else None


def _newton(rows: PointwiseRows, target: Target) -> Iterator[Point]:
    """Yield minus the slopes of the losses at Newton iterates from the solution, computed with 140 digits.

    They converge to the optimal dual point, while a corrected point has the v of a solution that is not quite optimal.
    Near the end of a piece of the loss, a step between dual points may leave the domain of the conjugate; slopes never
    do.
    """
    active = target.active[:, 0]
    with many_digits(2 * DIGITS):
        X = decimals(rows.dense()) * decimals(rows.sigma)[:, None]
        m = X @ decimals(rows.W[:, 0]) + decimals(rows.offset)
        units = powers_of_two(np.abs(rows.dense()[:, active]).max(axis=0, initial=0.0))
        X, s = X[:, active] * units, decimals(rows.s) * decimals(rows.factor)
        ridge = decimals(target.ridge()) * units * units
        slope = target.decimals() * units  # of the penalty
    before: list[FloatArray] = []
    for _ in range(_STEPS):
        with many_digits(2 * DIGITS):
            u, h = rows.formula.slopes(m)
            pieces = list(_pieces(u))
        if not all(np.isfinite(piece).all() for piece in pieces):
            return
        if len(before) == len(pieces) and all(map(np.array_equal, before, pieces)):
            return
        yield Point(pieces)
        before = pieces
        with many_digits(2 * DIGITS):
            count_work(multiply_adds(*X.shape))
            L = cholesky(gram(X, h * s) + np.diag(ridge))
            step = backward(L, forward(L, X.T @ (s * u) - slope))
            along = X @ step
            t = _length(rows.formula, m, along, s, slope @ step, (ridge * step) @ step)
            m, slope = m + t * along, slope + t * ridge * step


def _length(formula: Any, m: Any, along: Any, s: Any, fixed: Any, growing: Any) -> Decimal:
    """How far to go along a Newton step: all of it, or to where the objective no longer falls.

    The penalty has the slope fixed + t growing at t. Beyond the end of a piece of the loss the whole step may lead back
    and forth for ever.
    """

    def rises(t: Decimal) -> bool:
        return bool(fixed + t * growing > (s * formula.slopes(m + t * along)[0]) @ along)

    low, high = Decimal(0), Decimal(1)
    if not rises(high * Decimal("0.75")):
        return high
    count_work(_HALVINGS * len(m))
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (low, middle) if rises(middle) else (middle, high)
    return high


def _pieces(values: Any) -> Iterator[FloatArray]:
    """Yield float64 arrays that add up to decimal numbers, up to the last digit of the last array.

    One array is not enough where columns have very different scales: its rounding alone may change v by more than the
    step corrects.
    """
    for _ in range(_PIECES):
        piece = floats(values)
        yield piece
        if not np.isfinite(piece).all():
            return
        values = values - decimals(piece)


def sums_with_zero_v(rows: Rows, dual: Any, fit_intercept: bool) -> Iterator[Any]:
    """Yield sums of dual points with v = 0 exactly (or None) near the stored point and the best other candidates."""
    target = Target.zero(rows.W.shape, fit_intercept)

    def distance(found: tuple[Point, Any]) -> float:
        return float(np.abs(target.miss(found[1].gradient())).max(initial=0.0))

    points = candidates(rows, dual, target)
    stored, sums = next(points)
    yield without_residual(rows, stored, sums, fit_intercept)
    others = list(points)  # the last one is closest to the optimum
    for point, sums in others[-1:] + sorted(others[:-1], key=distance)[:_NEAREST]:
        yield without_residual(rows, point, sums, fit_intercept)
    for point in rows.shrink(stored, _SHRINK):
        yield without_residual(rows, point, _evaluate(rows, point), fit_intercept)


def without_residual(
    rows: Rows, point: Point, sums: Any, fit_intercept: bool, columns: list[int] | None = None
) -> Any:
    """Return the sums of a nearby point with v = 0 exactly in all columns; None if none is found.

    For a pointwise loss, ``columns`` restricts the condition to these columns and the intercept.
    """
    if columns is None:
        columns = list(range(rows.d * rows.k))
    wanted = columns + list(range(rows.d * rows.k, (rows.d + 1) * rows.k)) * fit_intercept
    for found in _corrected_points(rows, point, sums, wanted, fit_intercept):
        if found is not None:
            again = _evaluate(rows, found)
            gradient = again.gradient()
            if not any(gradient[j] for j in wanted):
                return again
    return None


def _corrected_points(
    rows: Rows, point: Point, sums: Any, columns: list[int], fit_intercept: bool
) -> Iterator[Point | None]:
    """Yield the point corrected in these columns, by each available method in turn."""
    if isinstance(rows, PointwiseRows):
        yield from (_clear(rows, point, sums, columns, rank) for rank in _RANKS)
        return
    for way in (_clear_classes, _clear_jointly):
        yield from (way(rows, point, sums, fit_intercept, rank) for rank in _RANKS)


def _clear(
    rows: PointwiseRows, point: Point, sums: SideSums, columns: list[int], rank: float | None
) -> Point | None:
    gradient = sums.gradient()
    u, h = point.floats(), np.sqrt(rows.room(point))
    ends = np.minimum(u - rows.formula.low, rows.formula.high - u)
    h = np.minimum(h, ends)
    # Inside the domain only a dead zone, which has a kink at u = 0, leaves no freedom: such rows move if they must.
    h = np.where((h == 0.0) & (ends > 0.0), _AT_KINK * h.max(initial=0.0), h)
    room = h * rows.s * rows.factor  # freedom of s u, the quantity that changes
    X = rows.dense()[:, columns]
    changes = _balance(X, room, [gradient[j] for j in columns], rank)
    return None if changes is None else rows.correct(point, changes)


def _clear_classes(
    rows: CoupledRows, point: Point, sums: ClassSums, fit_intercept: bool, rank: float | None
) -> Point | None:
    """Correct class by class, compensated in the largest class; rows of U sum to 0, so its sums vanish as well."""
    to = max(range(rows.k), key=lambda c: sums.mass[c])
    p = rows.probabilities(point)
    found: Point | None = point
    for c in range(rows.k):
        if c == to or found is None:
            continue
        room = rows.s * np.minimum(p[:, c], p[:, to])
        residual = sums.column(c, fit_intercept)
        changes = _balance(rows.dense()[:, : len(residual)], room, residual, rank)
        pairs = None if changes is None else {(i, c, to): t for i, t in changes.items()}
        found = None if pairs is None else rows.correct(found, pairs)
    return found


def _clear_jointly(
    rows: CoupledRows, point: Point, sums: ClassSums, fit_intercept: bool, rank: float | None
) -> Point | None:
    """Correct all classes at once, compensated in each row's likeliest class: two classes may share too few rows."""
    p, index = rows.probabilities(point), np.arange(rows.n)
    likeliest = p.argmax(axis=1)
    residual = [x for c in range(rows.k - 1) for x in sums.column(c, fit_intercept)]
    width = len(residual) // (rows.k - 1)
    if rows.n * rows.k * float(len(residual)) ** 2 > _JOINTLY:
        return None
    X = rows.dense()[:, :width]
    # Row (i, c) changes s U_ic by 1 and that of the likeliest class by -1; the sums of the last class follow.
    moves = np.eye(rows.k) - np.eye(rows.k)[likeliest][:, None, :]
    matrix = np.einsum("ica,ij->icaj", moves[:, :, :-1], X).reshape(rows.n * rows.k, -1)
    room = rows.s[:, None] * p
    room[index, likeliest] = 0.0
    changes = _balance(matrix, room.ravel(), residual, rank)
    if changes is None:
        return None
    places = ((divmod(at, rows.k), t) for at, t in changes.items())
    return rows.correct(point, {(i, c, int(likeliest[i])): t for (i, c), t in places})


def _balance(
    X: FloatArray, room: FloatArray, residual: list[Fraction], rank: float | None
) -> dict[int, Fraction] | None:
    """Exact changes t_i of all rows, or of a few, with sum t_i x~_i = -residual in the independent columns."""
    if not any(residual):
        return {}
    free = np.flatnonzero(room > 0.0)
    if rank is None:  # weights of very different sizes defeat the rank test in float64
        if not 0 < len(free) * float(X.shape[1]) ** 2 <= _SPREAD:
            return None
        whole = DyadicRows.of(X[free]).num
        columns = np.array(independent_columns((whole.T @ whole).tolist()), dtype=int)
        return _spread(X[np.ix_(free, columns)], free, room, [residual[j] for j in columns])
    scale = np.sqrt((X * X).sum(axis=0))
    scale[scale == 0.0] = 1.0
    weighted = room[free, None] * X[free] / scale
    if not weighted.size:
        return None
    _, R, order = lapack(sl.qr, weighted, mode="economic", pivoting=True)
    size = np.abs(np.diag(R))
    count = int((size > rank * size[0]).sum())
    columns = np.sort(order[:count])
    if len(free) * float(count) ** 2 <= _SPREAD:
        return _spread(X[np.ix_(free, columns)], free, room, [residual[j] for j in columns])
    _, _, chosen = lapack(sl.qr, weighted[:, columns].T, mode="economic", pivoting=True)
    picked = free[chosen[:count]]
    spend(_FRACTION * float(count) ** 3)
    matrix = [[Fraction(x) for x in X[picked, j].tolist()] for j in columns.tolist()]
    found = solve_rational(matrix, [-residual[j] for j in columns.tolist()])
    return None if found is None else dict(zip(picked.tolist(), found, strict=True))


def _spread(
    X: FloatArray, free: Any, room: FloatArray, residual: list[Fraction]
) -> dict[int, Fraction] | None:
    """Changes t = diag(room) X lambda, the smallest relative to ``room``; None if the columns are dependent."""
    # In integers: x_ij = a_ij 2^e_j, room_i = r_i 2^e, so t_i = r_i sum_j a_ij mu_j with mu_j = 2^(e + e_j) lambda_j.
    rows, r = DyadicRows.of(X), Dyadic.of(room[free]).num
    spend(rows.num.size * rows.num.shape[1] + _FRACTION * rows.num.shape[1] ** 3)
    gram = (rows.num * r[:, None]).T @ rows.num
    rhs = [-x * rational(1, -exp) for x, exp in zip(residual, rows.exps, strict=True)]
    mu = solve_rational([[Fraction(x) for x in row] for row in gram.tolist()], rhs)
    if mu is None:
        return None
    whole, common = common_denominator(mu)
    changes = [Fraction(t, common) for t in (r * (rows.num @ whole)).tolist()]
    return dict(zip(free.tolist(), changes, strict=True))
