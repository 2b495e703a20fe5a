"""The local certificate: a proof from the curvature around the solution instead of a dual point.

Duality needs a penalty. Without one (C = inf) the argument is as follows. Let g be the gradient of P at the solution
theta, M any positive definite matrix, and on the ball B = {|delta|_M <= rho}, with x~ = (x, 1),

    q_i = x~_i' M^-1 x~_i,     h_i = min of l'' over [m_i - rho sqrt(q_i), m_i + rho sqrt(q_i)],
    kappa = smallest eigenvalue of M^-1/2 (lam I_w + sum_i s_i h_i x~_i x~_i') M^-1/2.

On B the margins stay within those intervals, so P is kappa-strongly convex there in the norm of M:
P(theta + delta) >= P(theta) - mu |delta|_M + kappa/2 |delta|_M^2 with mu = |g|_{M^-1}. If
2 mu / kappa <= rho, P is at least P(theta) on the boundary of B, so by convexity a minimiser lies inside and

    P(theta) - P* <= mu^2 / (2 kappa),      |theta - theta*|_M <= sqrt(2 (P(theta) - P*) / kappa).

M is the Hessian at theta as computed. It only defines the norm: its rounding errors do not matter, as kappa is bounded
from below for the true rows. If X'X has lost too many digits, M is obtained as a triangular factor from orthogonal
transformations of the rows, so that ill-conditioned features can be certified as well.

If M cannot be proven positive definite, nothing is claimed, with one exception. Without a penalty, columns that are
exact linear combinations of the others (see ``dependence``) are left out first: the same scores remain attainable
without them. Rows that provably have zero loss and zero slope at theta need not satisfy the combination: P is at least
the sum over the other rows, with equality at theta. Minimisers are then not unique, so coef_error is inf.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.curvature.dependence import proven_metric
from linsep.certificates.curvature.metric import ROUNDING_FACTOR, Metric, bound
from linsep.certificates.curvature.quadratic import parabola_drop
from linsep.certificates.curvature.repaired_dual import repaired_bound
from linsep.certificates.curvature.rows import DoubledRows, Evaluation, Rows, row_curvatures
from linsep.certificates.optimality import EXACT_FIT, Optimality, enclose, preference
from linsep.certificates.parts import Dual, Part, weigh
from linsep.interrupts import if_in_time, lapack
from linsep.losses import Loss
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import ROUNDOFF

#: Largest number of unknowns for which the Hessian is formed.
LARGEST = 4000
#: Fraction of tol that the cheaper proof for a loss of constant curvature must reach.
_SHARP = 0.5


def visit(loss: Loss, part: Rows, theta: FloatArray) -> Evaluation:
    """Objective, gradient and their rounding errors at theta. One pass."""
    at = Evaluation.empty(part.X.shape[0], theta)
    for rows, A in part.chunks():
        value, loss_error = at.put(loss, rows, *part.margins(rows, A, theta), part.weight[rows])
        g, slack = part.pull(A, part.sigma[rows] * at.slope[rows])
        at.g += g
        at.sum_error += slack + ROUNDOFF * np.abs(at.g)
        at.primal += value
        at.rounding += part.chain * value + loss_error
    at.penalise(part.lam, theta, part.X.shape[1])
    return at


def local_certificate(part: Part, *, finest: bool = False) -> Optimality:
    """Certify the coefficients of a pointwise problem by the curvature of its loss; the penalty may be 0.

    ``finest`` requests the smallest provable bound on the error of the coefficients, in doubled precision.

    Without a penalty, if curvature does not suffice (a loss with kinks or linear pieces), the dual point is made
    feasible and used instead.
    """
    assert isinstance(part.loss, Loss)
    rows = Rows(part.X, *part.vectors(), part.fit_intercept, part.penalty.l2)
    at = visit(part.loss, rows, np.asarray(part.W, dtype=np.float64)[: rows.size, 0])
    settings = {"scale": part.penalty.scale, "tol": part.tol}
    return certify_locally(part.loss, rows, at, dual=part.dual, finest=finest, **settings)


def certify_locally(
    loss: Loss,
    part: Rows,
    at: Evaluation,
    *,
    scale: float,
    tol: float,
    dual: Dual,
    finest: bool = False,
) -> Optimality:
    """Certify an evaluated solution; repeat in doubled precision if float64 does not prove enough."""
    settings = {"scale": scale, "tol": tol}
    found = _certify_once(loss, part, at, dual, at.rounding, **settings)
    enough = (found.certified and not finest) or part.size > LARGEST
    finer = None if enough else DoubledRows.of(part)
    if finer is None or not math.isfinite(at.primal):
        return found
    again = if_in_time(
        lambda: _certify_once(
            loss, finer, visit(loss, finer, at.theta), dual, at.rounding, **settings
        ),
        lambda: found,
    )
    return min(found, again, key=_error_of_coefficients if finest else preference)


def _error_of_coefficients(found: Optimality) -> float:
    return found.coef_error


def _certify_once(
    loss: Loss,
    part: Rows,
    at: Evaluation,
    dual: Dual,
    float64_rounding: float,
    *,
    scale: float,
    tol: float,
) -> Optimality:
    """Certify by curvature or, if that does not suffice and there is no penalty, by a repaired dual point."""
    interpolates = at.primal <= float64_rounding and exact_fit(loss, part, at, tol)
    settings: dict[str, Any] = {"scale": scale, "tol": tol, "exact_fit": interpolates}
    drop, distance = math.inf, math.inf
    if loss.smooth and part.size <= LARGEST and np.isfinite(at.g).all() and not interpolates:
        drop, distance = if_in_time(
            lambda: _excess_bound(loss, part, at, tol), lambda: (math.inf, math.inf)
        )
    found = enclose(
        *(at.primal, at.primal - drop, at.rounding),
        distance=distance,
        kind="local",
        drop=drop,
        **settings,
    )
    if found.certified or interpolates or part.lam > 0.0 or part.size > LARGEST:
        return found
    lower, rounding = if_in_time(
        lambda: repaired_bound(loss, part, at.m, dual, tol), lambda: (0.0, 0.0)
    )
    other = enclose(
        *(at.primal, lower, at.rounding + rounding), distance=math.inf, kind="dual", **settings
    )
    return found if found.gap <= other.gap else replace(other, coef_error=found.coef_error)


def exact_fit(loss: Loss, part: Rows, at: Evaluation, tol: float) -> bool:
    """Return whether the objective is zero to working precision, so that no relative gap can be defined.

    Only without a penalty, only for losses that can be 0, and only if the objective plus its rounding bound is at most
    tol / 10^6 of the loss of constant models. Callers also require an objective below its rounding error in float64.
    """
    if part.lam > 0.0 or loss.recedes:
        return False
    vectors = part.sigma, part.offset, part.weight
    most = tol * EXACT_FIT * constant_loss(loss, *vectors, part.fit_intercept)
    return at.primal + at.rounding <= most


def fits_without_penalty(penalty: ElasticNet, W: FloatArray) -> bool:
    """Return whether there is no penalty on any nonzero coefficient, and some feature has none."""
    free = penalty.unpenalised(len(W) - 1)
    return penalty.absent or (bool(free.any()) and not W[:-1][~free].any())


def constant_loss(
    loss: Loss, sigma: FloatArray, offset: FloatArray, weight: FloatArray, fit_intercept: bool
) -> float:
    """At most twice the loss of any constant model; without an intercept, the loss of the zero model.

    At the mean b of the targets, the losses of some rows increase with b, and those of the others decrease. By
    convexity, a larger b does not reduce the former, and a smaller b not the latter. Twice the smaller sum is at most
    their total.
    """
    total = float(weight.sum())
    b = -float(weigh(weight, sigma * offset).sum()) / total if fit_intercept and total else 0.0
    m = sigma * b + offset
    values, slope = weigh(weight, loss.value(m)), sigma * loss.slope(m)
    if not fit_intercept:
        return float(values.sum())
    return 2.0 * float(min(values[slope > 0.0].sum(), values[slope < 0.0].sum()))


def _excess_bound(loss: Loss, part: Rows, at: Evaluation, tol: float) -> tuple[float, float]:
    """Bound on P - P*, and c in |w - w*| <= c sqrt(P - P*); infinite if the proof fails."""
    h = row_curvatures(part.weight, loss.curvature(at.m))
    if not np.isfinite(h).all():
        return math.inf, math.inf
    if loss.constant_curvature:
        parabola = parabola_drop(part, at, h)
        if parabola is not None and parabola[0] <= _SHARP * tol * at.primal:
            return parabola
    metric = proven_metric(part, h, at.sloped & (part.weight > 0.0))
    if metric is None:
        return math.inf, math.inf
    reach = part.reach(metric)
    # The error of a slope acts along its own row; the error of summation may act in any direction.
    mu = (metric.dual_norm(at.g, at.sum_error) + float(at.slope_error @ reach)) * (
        ROUNDING_FACTOR + len(reach) * ROUNDOFF
    )
    if not 0.5 * mu * mu < max(at.primal, at.rounding):  # kappa <= 1: the bound 0 is no worse
        return math.inf, math.inf

    def kappa_at(rho: float) -> float:
        # Summing |m| and the radius has a rounding error of at most 2 u (|m| + e + rho reach).
        radius = (at.e + rho * reach) * ROUNDING_FACTOR + 4 * ROUNDOFF * np.abs(at.m)
        low = row_curvatures(part.weight, loss.curvature_floor(at.m, radius))
        share = float((low[h > 0.0] / h[h > 0.0]).min(initial=1.0)) / ROUNDING_FACTOR
        kappa = share * metric.floor  # as sum s h_lo x~ x~' >= share * H
        return kappa if kappa >= 0.5 else max(kappa, part.floor(metric, low / ROUNDING_FACTOR))

    found = bound(mu, kappa_at)
    if found is None:
        return math.inf, math.inf
    drop, kappa = found
    if not metric.full:
        return drop, math.inf
    return drop, coefficient_distance(metric, part.X.shape[1], kappa)


def coefficient_distance(metric: Metric, d: int, kappa: float) -> float:
    """Factor c in |w - w*| <= c sqrt(P - P*), where P is kappa-strongly convex in the metric."""
    own = metric.T[:d]
    stretch = math.sqrt(float(lapack(np.linalg.eigvalsh, own @ own.T).max(initial=0.0))) * 1.001
    return stretch * math.sqrt(2.0 / kappa)
