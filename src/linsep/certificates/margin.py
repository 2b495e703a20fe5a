"""The certificate of a hard margin: a feasible point, and a lower bound from two points of the convex hulls.

    P = 1/2 |w|^2  with  sigma_i (x_i.w + b) >= 1,      D = sum alpha - 1/2 |v|^2,   v = sum alpha_i sigma_i x_i,

for alpha >= 0 with sum sigma_i alpha_i = 0. If the smallest margin of (w, b) is mu > 0, then (w, b) / mu is feasible.
Any positive multiple of alpha is dual feasible as well; the best one has D = (sum alpha)^2 / (2 |v|^2), which is 1/2
over the square of half the distance between two points of the hulls. The intercept's condition is met by shrinking the
heavier class. A margin below 1 is accepted only as far as rounding explains it. All bounds are rounded outwards; in
exact arithmetic none needs to be.
"""

from __future__ import annotations

import math
import sys
from fractions import Fraction
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, dense
from linsep.certificates.optimality import Optimality, relative
from linsep.certificates.parts import Dual, Part, chunks, row_norms, score, vector_or_default
from linsep.exact.dyadic import Dyadic, DyadicRows, below
from linsep.problem.closing_rows import ROUNDOFF
from linsep.solution import Explicit

#: Largest number of entries in the support rows for which their sum is computed in integers.
_EXACT_ENTRIES = 20_000


def margin_certificate(part: Part, *, exact: bool = False) -> Optimality:
    """Enclose the minimum 1/2 |w*|^2. Rows of weight 0 are ignored."""
    X, sigma, weight, tol = part.X, part.sigma, part.weight, part.tol
    alpha, rest = _multipliers(part.dual, X.shape[0], weight)
    theta = np.asarray(part.W, dtype=np.float64)[:, 0]
    low = _smallest_margin(X, sigma, weight, theta)
    if exact:
        least = _exact_smallest_margin(X, sigma, weight, theta)
        if least > 0 if low > 0.0 else least >= 1:
            bound = _exact_bound(X, sigma, alpha, part.fit_intercept, rest)
            return _exactly(theta, least, bound, tol)
    w = theta[:-1]
    primal = 0.5 * float(w @ w)
    lower = _lower_bound(X, sigma, alpha, part.fit_intercept)
    if not low > 0.0:
        return Optimality(math.inf, lower, math.inf, math.inf, math.inf, tol, False, math.inf)
    grown = 1.0 / min(low, 1.0)
    reached = primal * grown * grown * (1.0 + (len(w) + 8) * ROUNDOFF)
    gap = max(reached - lower, 0.0)
    return _conclude(
        primal, lower, gap, tol, math.sqrt(2 * primal) * (grown - 1.0), reached - primal
    )


def _multipliers(
    dual: Dual, n: int, weight: FloatArray | None
) -> tuple[FloatArray, FloatArray | None]:
    """alpha >= 0 of the rows with positive weight, and its digits beyond float64."""
    if not isinstance(dual, Explicit):
        return np.zeros(n), None
    u = np.asarray(dual.u, dtype=np.float64).reshape(-1)
    kept = np.isfinite(u) & (u > 0.0)
    if weight is not None:
        kept &= weight > 0.0
    if dual.rest is None:
        return np.where(kept, u, 0.0), None
    rest = np.asarray(dual.rest, dtype=np.float64).reshape(-1)
    return np.where(kept, u, 0.0), np.where(kept & np.isfinite(rest), rest, 0.0)


def _conclude(
    primal: float, lower: float, gap: float, tol: float, stretch: float, rounding: float
) -> Optimality:
    if not (math.isfinite(gap) and math.isfinite(rounding)):  # also nan
        gap = rounding = stretch = math.inf
    share = relative(gap, primal, lower)
    return Optimality(
        primal=primal,
        dual=lower,
        gap=gap,
        relative_gap=share,
        coef_error=math.sqrt(2 * gap) + stretch,
        tol=tol,
        certified=share <= tol,
        rounding=rounding,
        kind="dual",
    )


def _smallest_margin(
    X: Any, sigma: FloatArray, weight: FloatArray | None, theta: FloatArray
) -> float:
    """Lower bound on the smallest margin, rounding included; -inf if it is below 1 by more than rounding explains."""
    smallest = math.inf
    size, shift = float(np.sqrt(theta[:-1] @ theta[:-1])), abs(float(theta[-1]))
    for rows, block in chunks(X):
        m = np.asarray(sigma[rows]) * score(block, theta[:, None])[:, 0]
        loose = m - (len(theta) + 8) * ROUNDOFF * (row_norms(block) * size + shift)
        counted = vector_or_default(weight, rows, 1.0) > 0.0
        near = counted & (loose <= min(smallest, float(m[counted].min(initial=math.inf))))
        if near.any():  # |x|.|w| is the sharper bound, needed only for the closest rows
            reach = score(abs(block[np.flatnonzero(near)]), np.abs(theta)[:, None])[:, 0]
            error = (len(theta) + 8) * ROUNDOFF * reach
            if (m[near] + 2 * error < 1.0).any():
                return -math.inf
            smallest = min(smallest, float((m[near] - error).min()))
    return smallest


def _lower_bound(X: Any, sigma: FloatArray, alpha: FloatArray, fit_intercept: bool) -> float:
    """(sum alpha)^2 / (2 |v|^2) for the balanced alpha, rounded down."""
    used = np.flatnonzero(alpha)
    if not len(used):
        return 0.0
    if len(used) * X.shape[1] <= _EXACT_ENTRIES:  # the terms of v cancel: sum in integers
        return below(_exact_bound(X, sigma, alpha, fit_intercept))
    largest = float(alpha[used].max())
    a, sign, block = alpha[used] / largest, sigma[used], X[used].astype(np.float64)
    sides = [float(a[sign > 0].sum()), float(a[sign < 0].sum())]
    if fit_intercept:
        if min(sides) == 0.0:
            return 0.0
        a = np.where(sign > 0, a * min(1.0, sides[1] / sides[0]), a * min(1.0, sides[0] / sides[1]))
    chain = (2 * len(used) + 24) * ROUNDOFF
    v = np.asarray(block.T @ (a * sign)).ravel()
    # Errors of the sums, and of the balance: the remaining imbalance is removed by shrinking one side by chain.
    size = float(np.sqrt(v @ v)) * (1 + chain) + 2 * chain * float(a @ row_norms(block))
    total = float(a.sum()) * (1 - 2 * chain)
    return 0.5 * (total / size) ** 2 * (1 - 8 * ROUNDOFF) if size > 0 and total > 0 else 0.0


def _exact_bound(
    X: Any,
    sigma: FloatArray,
    alpha: FloatArray,
    fit_intercept: bool,
    rest: FloatArray | None = None,
) -> Fraction:
    """Lower bound of the hard margin as a rational number, for the multipliers alpha + rest."""
    used = np.flatnonzero(alpha)
    if not len(used):
        return Fraction(0)
    block = X[used].astype(np.float64)
    rows = DyadicRows.of(dense(block))
    sign, a = sigma[used], Dyadic.of(alpha[used])
    a = a if rest is None else (a + Dyadic.of(rest[used])).positive()
    both = [Dyadic(np.where(sign == s, a.num, 0), a.exp) for s in (1, -1)]
    parts, sides = [rows.transposed_dot(x).fractions() for x in both], [x.sum() for x in both]
    shrink = [Fraction(1), Fraction(1)]
    if fit_intercept:
        heavy = int(sides[1] > sides[0])
        if not sides[heavy]:
            return Fraction(0)
        shrink[heavy] = sides[1 - heavy] / sides[heavy]
    total = shrink[0] * sides[0] + shrink[1] * sides[1]
    v = (shrink[0] * p - shrink[1] * q for p, q in zip(*parts, strict=True))
    square = sum((x * x for x in v), Fraction(0))
    return total * total / (2 * square) if square else Fraction(0)


def _exactly(theta: FloatArray, low: Fraction, lower: Fraction, tol: float) -> Optimality:
    """Certificate of the hard margin from its smallest margin and a lower bound, both rational numbers."""
    w = [Fraction(x) for x in theta[:-1].tolist()]
    primal = sum((x * x for x in w), Fraction(0)) / 2
    reached = primal / min(low, Fraction(1)) ** 2
    dual = math.nextafter(below(lower), 0.0)
    if reached >= sys.float_info.max:
        return Optimality(math.inf, dual, math.inf, math.inf, math.inf, tol, False, kind="exact")
    value = float(primal)
    # primal and dual are rounded, so the reported gap must be at least their difference
    gap = math.nextafter(max(float(reached - lower), value - dual), math.inf)
    share = math.nextafter(gap / min(value, float(reached)), math.inf) if value else math.inf
    stretch = math.sqrt(2 * value) * float(1 / min(low, Fraction(1)) - 1)
    return Optimality(
        primal=value,
        dual=dual,
        gap=gap,
        relative_gap=share,
        coef_error=(math.sqrt(2 * gap) + stretch) * (1 + 8 * ROUNDOFF),
        tol=tol,
        certified=share <= tol,
        kind="exact",
    )


def _exact_smallest_margin(
    X: Any, sigma: FloatArray, weight: FloatArray | None, theta: FloatArray
) -> Fraction:
    """Smallest margin as a rational number: float64 finds the candidate rows, integers decide among them."""
    smallest: Fraction | None = None
    limit = math.inf
    for rows, block in chunks(X):
        sign = np.asarray(sigma[rows], dtype=np.float64)
        m = sign * score(block, theta[:, None])[:, 0]
        error = (len(theta) + 8) * ROUNDOFF * score(abs(block), np.abs(theta)[:, None])[
            :, 0
        ] + 1e-300
        counted = vector_or_default(weight, rows, 1.0) > 0.0
        limit = min(limit, float((m + error)[counted].min(initial=math.inf)))
        near = np.flatnonzero(counted & (m - error <= limit))
        if len(near):
            part = dense(block[near])
            scores = DyadicRows.of(part).dot(Dyadic.of(theta[:-1])) + Dyadic.of(theta[-1])
            least = min((Dyadic.of(sign[near]) * scores).fractions())
            smallest = least if smallest is None else min(smallest, least)
    assert smallest is not None
    return smallest
