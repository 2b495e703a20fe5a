"""The certificate of a penalty with factors and groups of features (``penalties.group``).

Lower bound. With v = sum s sigma u x and A = sum s (l*(-u) + u offset), every feasible u proves

    P >= -A - sum_g max(|v_g| - l1_g, 0)^2/(2 l2_g).

If l2 = 0 (l1_ratio = 1), all |v_g| <= l1_g is required: all u are multiplied by the largest kappa <= 1 that achieves
it, and P >= -kappa A, as l* is convex with l*(0) = 0. Features with factor 0 require v_j = 0 exactly, like the
intercept. Without such features the intercept's condition is met by shrinking the heavier side, as in ``closing``. With
them, ``repaired_dual.feasible_point`` finds u and c for which a point that satisfies all these conditions exactly
provably exists within c_i of u_i; the conjugates are taken at their largest within c, and v changes by at most the sum
of s c |x|.

Rounding is bounded as in ``closing``. Omega* is 1/l2_min-smooth, so an error e of v costs at most
|at|.|e| + |e|^2/(2 l2_min), where ``at`` is the gradient of Omega* at v. A norm of d_g numbers has relative error
(d_g + 4) eps, and l1_g and l2_j have 4 eps.
"""

from __future__ import annotations

import math
from dataclasses import replace

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.closing import SQUARE_UNDERFLOW, BoundedSums
from linsep.certificates.curvature.certificate import constant_loss, fits_without_penalty
from linsep.certificates.curvature.metric import ROUNDING_FACTOR
from linsep.certificates.curvature.repaired_dual import feasible_point, largest_conjugates
from linsep.certificates.curvature.rows import UNDERFLOW, DoubledRows, Rows
from linsep.certificates.optimality import EXACT_FIT, Optimality, enclose, stronger
from linsep.certificates.parts import (
    Part,
    chunks,
    closing_sums_numpy,
    dual_point,
    longest_sum,
    row_norms,
    score,
    weigh,
)
from linsep.certificates.precise import precise_sums
from linsep.interrupts import if_in_time
from linsep.losses import Loss
from linsep.penalties import GroupElasticNet
from linsep.problem import dot
from linsep.problem.closing_rows import ROUNDOFF, feasible, score_share
from linsep.problem.duality import DualValue, group_dual_value
from linsep.solution import Explicit


def group_certificate(part: Part) -> Optimality:
    """Certify a subproblem whose penalty has factors or groups.

    If rounding keeps the gap above tol, the sums are repeated in about twice the working precision.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        found = _by_sums(part, precise=False)
        if found.certified:
            return found
        return stronger(found, lambda: _by_sums(part, precise=True))


def _by_sums(part: Part, precise: bool) -> Optimality:
    assert isinstance(part.loss, Loss) and isinstance(part.penalty, GroupElasticNet)
    free = part.penalty.unpenalised(part.X.shape[1]).any()
    point = _feasible_dual(part, part.loss, precise) if free else None
    sums = _sums(part, part.loss, point, precise)
    return _assemble(part, part.penalty, sums, point, exact=bool(free) and not precise)


def repair_dual(part: Part) -> Part:
    """Return the part with dual variables for which the unpenalised columns of v vanish up to rounding, if found."""
    penalised = part.penalty.uniform or not part.penalty.unpenalised(part.X.shape[1]).any()
    if penalised or not isinstance(part.loss, Loss):
        return part
    point = _feasible_dual(part, part.loss, precise=True)
    return part._replace(dual=Explicit(point.u)) if point.proven else part


class _FeasibleDual:
    """Dual variables u, with a feasible point for unpenalised features and intercept within c of u."""

    def __init__(self, u: FloatArray, c: FloatArray) -> None:
        self.u, self.c = u, c
        self.proven = bool(np.isfinite(c).all())


def _feasible_dual(part: Part, loss: Loss, precise: bool) -> _FeasibleDual:
    """Find dual variables near those of the part for which the unpenalised columns of v vanish.

    If that cannot be proven, all are set to 0, which is feasible for every column.
    """
    n, d = part.X.shape
    (sigma, o, s), m, u = part.vectors(), np.empty(n), np.empty(n)
    for rows, block in chunks(part.X):
        m[rows] = sigma[rows] * score(block, part.W)[:, 0] + o[rows]
        vectors = sigma[rows], o[rows], m[rows], s[rows]
        u[rows] = dual_point(loss, part.dual, rows, block, *vectors)
    if not u.any():  # feasible for every column
        return _FeasibleDual(u, np.zeros(n))
    columns = np.flatnonzero(part.penalty.unpenalised(d))
    own = Rows(part.X[:, columns], sigma, o, s, part.fit_intercept, 0.0)
    if precise:
        own = DoubledRows.of(own) or own
    found = None
    if np.isfinite(u).all():
        found = if_in_time(lambda: feasible_point(loss, own, u, part.tol), lambda: None)
    if found is None:
        return _FeasibleDual(np.zeros(n), np.full(n, math.inf))
    u, c = found
    safe = feasible(loss, u, m, s)  # sets values that may underflow to 0
    return _FeasibleDual(safe, (c + np.abs(u - safe)) * ROUNDING_FACTOR)


def _sums(part: Part, loss: Loss, point: _FeasibleDual | None, precise: bool) -> BoundedSums:
    """Sums of the closing pass, with bounds on their errors."""
    dual = part.dual if point is None else Explicit(point.u)
    rows = loss, part.X, part.sigma, part.offset, part.weight, part.W, dual
    if precise:
        balanced = part.fit_intercept and point is None
        sums = precise_sums(part._replace(dual=dual, fit_intercept=balanced))
    else:
        sums = BoundedSums.of(closing_sums_numpy(*rows), longest_sum(part.X))
    return sums if point is None or not point.proven else _worst_case_sums(part, loss, point, sums)


def _worst_case_sums(
    part: Part, loss: Loss, point: _FeasibleDual, sums: BoundedSums
) -> BoundedSums:
    """Sums for the worst point within c of u, both sides combined."""
    n = part.X.shape[0]
    _, o, s = part.vectors()
    worst, size = largest_conjugates(loss, point.u, point.c, o)
    moved = along = 0.0
    for rows, block in chunks(part.X):
        c = weigh(s[rows], point.c[rows])
        moved += float(c @ (row_norms(block) + 2.0**-500))
        along += float(c @ score(abs(block), np.abs(part.W))[:, 0])
    chain = (n + 40) * ROUNDOFF
    return replace(
        sums,
        conj=(math.fsum(weigh(s, worst).tolist()), 0.0),
        mass=(1.0, 1.0),
        v=(sums.v[0] + sums.v[1], np.zeros_like(sums.v[0])),
        terms_error=sums.terms_error + 48 * ROUNDOFF * float(weigh(s, size).sum()) + n * UNDERFLOW,
        v_error=sums.v_error + ROUNDING_FACTOR * moved * (1.0 + chain),
        v_error_along=sums.v_error_along + ROUNDING_FACTOR * along * (1.0 + chain),
        v_error_entry=sums.v_error_entry + ROUNDING_FACTOR * moved * (1.0 + chain),
        mass_share=0.0,
    )


def _assemble(
    part: Part,
    penalty: GroupElasticNet,
    sums: BoundedSums,
    point: _FeasibleDual | None,
    exact: bool,
) -> Optimality:
    """Assemble the certificate from sums with error bounds; ``exact``: features without a penalty may fit exactly."""
    w = np.ascontiguousarray(part.W[:-1, 0])
    value, d = penalty.value(w), len(w)
    primal = sums.loss + value
    rounding = sums.terms_error + 2.0 * score_share(d) * value
    rounding += SQUARE_UNDERFLOW * (d * float(penalty.ridge.max()) + 1.0)
    exact = exact and fits_without_penalty(penalty, part.W)
    interpolates = exact and primal <= rounding and _fits_exactly(part, primal + rounding)
    bound = 0.0
    if (point is None or point.proven) and penalty.full_precision:
        balanced = part.fit_intercept and point is None
        dual = group_dual_value(
            sums.conj, sums.mass, sums.v, penalty=penalty, fit_intercept=balanced
        )
        error = _error_without_ridge if dual.minimiser is None else _error_with_ridge
        bound, rounding = dual.value, rounding + error(sums, w, penalty, dual, balanced)
    modulus = penalty.modulus
    return enclose(
        *(primal, bound, rounding * (1.0 + 2.0**-10)),
        scale=penalty.scale,
        tol=part.tol,
        distance=math.sqrt(2.0 / modulus) * (1.0 + 8 * ROUNDOFF) if modulus > 0.0 else math.inf,
        kind="dual",
        exact_fit=interpolates,
    )


def _fits_exactly(part: Part, most: float) -> bool:
    """Return whether an objective of at most ``most`` is zero to working precision, as in ``curvature``."""
    assert isinstance(part.loss, Loss)
    if part.loss.recedes:
        return False
    constant = constant_loss(part.loss, *part.vectors(), part.fit_intercept)
    return most <= part.tol * EXACT_FIT * constant


def _error_with_ridge(
    sums: BoundedSums, w: FloatArray, penalty: GroupElasticNet, dual: DualValue, balanced: bool
) -> float:
    """Rounding error of the dual value for l1_ratio < 1, beyond that of its terms."""
    at, least, d = dual.minimiser, penalty.least_l2, len(w)
    assert at is not None
    off = np.where(penalty.unpenalised(d), 0.0, at - w)
    error = min(
        sums.v_error * math.sqrt(dot(at, at)),
        sums.v_error_along + sums.v_error * math.sqrt(dot(off, off)),
    )
    size = penalty.conjugate(dual.v[0] + dual.v[1]) + float(penalty.thresholds @ penalty.norms(at))
    error += 4.0 * score_share(d) * size + SQUARE_UNDERFLOW * d * (1.0 + 1.0 / least)
    moved = sums.v_error
    if balanced:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        costs = [share * (abs(a) + abs(dot(x, at))) for a, x in zip(dual.conj, dual.v, strict=True)]
        error += math.nan if any(map(math.isnan, costs)) else max(costs)
        moved += share * math.sqrt(max(dot(x, x) for x in dual.v))
    error += 4.0 * ROUNDOFF * (abs(dual.conj[0]) + abs(dual.conj[1]))
    return error + 0.5 * (1.0 + 1e-6) * moved * moved / least


def _error_without_ridge(
    sums: BoundedSums, w: FloatArray, penalty: GroupElasticNet, dual: DualValue, balanced: bool
) -> float:
    """Rounding error of the dual value for l1_ratio = 1, beyond that of its terms."""
    conj, largest = dual.conj[0] + dual.conj[1], penalty.gauge(dual.v[0] + dual.v[1])
    excess = penalty.gauge_bound(sums.v_error_entry, sums.v_error)
    excess += 2.0 * score_share(len(w)) * (largest + excess)
    error = 8.0 * ROUNDOFF * (abs(dual.conj[0]) + abs(dual.conj[1]))
    if balanced:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        excess += share * (max(map(penalty.gauge, dual.v)) + excess) * (1.0 + 1e-6)
        error += share * max(abs(a) for a in dual.conj)
    surely = 1.0 / max(largest + excess, 1.0)
    return error + (dual.shrink - surely) * abs(conj) + 8.0 * ROUNDOFF * abs(conj)
