"""Certificates by duality for losses that couple k classes: the softmax and the multiclass hinge.

``problem.duality`` states the problem, its dual, and how a feasible point follows from the sums of one pass. This
module bounds the rounding errors of the two values.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.certificates.optimality import Optimality, enclose
from linsep.certificates.parts import (
    Dual,
    add_up,
    chunks,
    row_norms,
    score,
    vector_or_default,
    weigh,
)
from linsep.losses import CoupledLoss, Multinomial
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import ROUNDOFF
from linsep.problem.duality import CoupledSums, coupled_dual_value, penalty_value
from linsep.solution import Explicit

#: Roundings in a loss or an entropy besides those of summation: exp and log of the kernels (6 ulp each), products.
EVALUATION = 64
#: Factor on 1 - p_y in ``absolute``, and the p_y below which it applies: -p_y log p_y amplifies the rounding of p_y.
STEEP, SMALL = 16.0, 2.0**-7
#: Bound on the underflow error of a sum of up to 2^52 products, 2^-1074 each.
UNDERFLOW = 2.0**-1022
#: Bound on the error of a norm sqrt(sum a^2), per entry, from underflow of its square.
SHORT = 2.0**-537
#: Covers the roundings of the rounding bound itself, which are of second order.
_ROUNDING_FACTOR = 1.001


class Bounds(NamedTuple):
    """P at W, a lower bound on the minimum of P, and a bound on the rounding error of their difference."""

    primal: float
    dual: float
    rounding: float


class Errors(NamedTuple):
    """Bounds on the rounding errors of the sums of a closing pass.

    ``losses`` is that of the sum of the losses due to the scores; ``along`` and ``norm`` bound <|w|, |E|> and |E| for
    the error E of V; ``linear`` is relative to sum s |U_c|, and ``share``, relative to the weight of each class, is
    added to it: both bound the errors of the class sums.
    """

    losses: float
    along: float
    norm: float
    linear: float
    share: float = 0.0


def from_softmax_sums(  # noqa: PLR0913
    sums: CoupledSums,
    w: FloatArray,
    loss: CoupledLoss,
    penalty: ElasticNet,
    *,
    fit_intercept: bool,
    tol: float,
    rows_per_sum: float = 0.0,
    rows: float = 0.0,
    errors: Errors | None = None,
) -> Optimality:
    """Assemble the certificate of the coefficients ``w`` (d, k), without the intercepts.

    ``errors`` are known for sums in more than float64 precision; otherwise they follow from ``rows_per_sum``.
    """
    lam = penalty.l2
    found = bounds(
        *(sums, w),
        loss=loss,
        lam=lam,
        l1=penalty.l1,
        fit_intercept=fit_intercept,
        rows_per_sum=rows_per_sum,
        rows=rows,
        errors=errors,
    )
    distance = math.sqrt(2.0 / lam) if lam > 0.0 else math.inf
    return enclose(*found, scale=penalty.scale, tol=tol, distance=distance, kind="dual")


def bounds(  # noqa: PLR0913
    sums: CoupledSums,
    w: FloatArray,
    *,
    loss: CoupledLoss,
    lam: float,
    l1: float = 0.0,
    fit_intercept: bool,
    rows_per_sum: float,
    rows: float = 0.0,
    errors: Errors | None = None,
) -> Bounds:
    """Compute primal value, lower bound and rounding bound in internal units.

    With u = 2^-53, S the total weight, ``chain`` = (rows_per_sum + 12 k + 64) u for sums of losses and entropies and
    ``linear`` = (rows_per_sum + k + 8) u for those of U, valid to first order; a factor of 1.001 covers the second
    order. The dual point is by definition the computed U, so these errors count:

    *Losses.* A score errs by at most (d + 1) u (|x|.|w_c| + |b_c|), a difference of two scores by 2 u more, a loss by
    the steepest slope that much around W: (d + k + 8) u ``magnitude``. Given the scores, the softmax adds up k
    exponentials of relative error 12 u; a logarithm of that sum errs by 1.45 (k + 16) u + 14 u times itself, because
    the loss is at least log 2 where the label does not lead, and log1p contracts relative errors where it does.
    Multiplying by s and summing: rows_per_sum + 1. Together at most ``chain`` times the losses.

    *Entropies.* The terms -p log p err by 28 u and their sum by k u. p_y = 1 - rest, where rest, a sum, errs by
    h = (k + 3) u: -p_y log p_y changes by h (1 + |log(p_y/2)|) <= 6.5 h if p_y >= 2^-7, and by at most 111 h otherwise,
    as |log h| <= 37. The term rest or 16 rest in ``absolute``, times (12 k + 64) u, is larger. A rest may exceed 1 by
    9 k u, which shrinking all U by that fraction repairs: entropy is concave and 0 at U = 0, so D loses at most that
    fraction of it.

    *V.* An entry errs by ``linear`` sum s |U_c| |x_j|: products, the label's entry (a sum of k), summation. D is
    smooth: an error E of V costs <|at|, |E|> + |E|^2/(2 lam) with at = V/lam = w + off, soft-thresholded if there is
    an l1. For w this is ``linear`` ``magnitude``, for off |off| ``linear`` ``spread``. Mixing with share t adds
    2 t ``plain`` ``bulk``, where ``plain`` is the chain of M and of ``mass``, which kernels sum row by row: ``rows``
    terms, if given. The entropy of the mixture, t sum s entropy(r), errs by t S ``plain`` (log k + 3), because S, r and
    1 - r are rounded.

    *Final sums.* |w|^2, |at|^2 and |w|_1 have d k terms: (d k + 8) u times penalty, entropy and lam/2 |at|^2.

    *Underflow.* A product loses at most 2^-1074, 2^52 of them 2^-1022: in scores and exponentials (exp is kept above
    e^-708 < 2^-1021) times S, in V and at per entry, in squares per entry, times lam.

    With lam = l1 = 0 the lower bound is 0. Any non-finite value makes the rounding bound non-finite and proves nothing.
    """
    d, k = w.shape
    total = float(sums.mass.sum())
    primal = sums.loss + penalty_value(w, lam, l1)
    chain = (rows_per_sum + 12 * k + EVALUATION) * ROUNDOFF
    plain = (max(rows, rows_per_sum) + k + 16) * ROUNDOFF
    if errors is None:
        linear = (rows_per_sum + k + 8) * ROUNDOFF
        magnitude = sums.magnitude
        scores = (d + k + 8) * ROUNDOFF * magnitude
        errors = Errors(scores, linear * magnitude, linear * sums.spread, linear)
    rounding = errors.losses + chain * sums.absolute + errors.along
    rounding += 4.0 * UNDERFLOW * ((d + 4 * k + 8) * total + w.size * (1.0 + lam) + 8.0)
    dual = coupled_dual_value(sums, loss, lam=lam, l1=l1, fit_intercept=fit_intercept)
    t, entropy, v, at = dual.share, dual.entropy, dual.v, dual.minimiser
    rounding += t * plain * total * (math.log(k) + 3.0)
    square = 0.0
    if at is not None:
        square = 0.5 * lam * float(np.vdot(at, at))
        error = errors.norm
        mixing = 2.0 * t * plain * sums.bulk + math.sqrt(w.size) * UNDERFLOW * (1.0 + lam)
        rounding += error * _length(at - w) + mixing * _length(at)
        rounding += 0.5 * (error + mixing) * ((error + mixing) / lam)
        if fit_intercept:
            share = _closing_share(sums, loss, errors, t * plain)
            rounding += _repair(sums, entropy, v, at, lam=lam, share=share)
    elif l1 > 0.0:
        v_error = errors.norm + 2.0 * t * plain * sums.bulk + UNDERFLOW  # for every V_jc
        if fit_intercept:
            share = _closing_share(sums, loss, errors, t * plain)
            v_error, rounding = (
                v_error + _mixing_error(sums, v, share),
                rounding + share * abs(entropy),
            )
        largest = float(np.abs(v).max(initial=0.0))
        rounding += dual.value - entropy * l1 / max(largest + v_error, l1)
    rounding += (w.size + 8) * ROUNDOFF * (primal + abs(entropy) + square)
    return Bounds(primal, dual.value, _ROUNDING_FACTOR * rounding)


def _length(a: FloatArray) -> float:
    """Upper bound on the Euclidean norm, including underflow of squares."""
    return math.sqrt(float(np.vdot(a, a))) + math.sqrt(a.size) * SHORT


def _repair(
    sums: CoupledSums, entropy: float, v: FloatArray, at: FloatArray, *, lam: float, share: float
) -> float:
    """Cost of making the class sums vanish exactly, by mixing with a ``share`` t of a distribution r once more.

    With at = V/lam, D changes by at most t times the entropy and <at, M - m r' - V>, m = M 1, plus the square of the
    change of V.
    """
    total = sums.features.sum(axis=1)
    pull = abs(float(np.vdot(at, sums.features))) + float(np.abs(total @ at).max())
    move = _mixing_error(sums, v, share)
    at_most = max(abs(sums.entropy), abs(entropy))
    return share * (at_most + pull + abs(float(np.vdot(at, v)))) + 0.5 * move * (move / lam)


def _closing_share(sums: CoupledSums, loss: CoupledLoss, errors: Errors, mixing: float) -> float:
    """Share t of a last mixture that makes the class sums vanish exactly; inf if a class has no weight.

    e_c errs by at most ``errors.linear`` times S_c = sum s |U_c| <= 2 n_c + |e_c|. Mixing has added the roundings of
    n_c and r_c, ``mixing`` = t ``plain`` times n_c each. A share of the largest error relative to n_c removes them all.
    """
    if not sums.mass.min() > 0.0:
        return math.inf
    moved = loss.dual_mass_bound(sums.entropy, sums.mass) + np.abs(sums.residual)
    lost = UNDERFLOW / float(sums.mass.min())
    relative = errors.linear * float((moved / sums.mass).max()) + errors.share
    return 1.01 * (relative + 4.0 * mixing + lost)


def _mixing_error(sums: CoupledSums, v: FloatArray, share: float) -> float:
    """Bound on the change of V when a ``share`` of some distribution is mixed in."""
    return share * (_length(sums.features) + _length(sums.features.sum(axis=1)) + _length(v))


def softmax_sums_numpy(
    loss: CoupledLoss,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    W: FloatArray,
    dual: Dual,
) -> CoupledSums:
    """Compute the sums of the closing pass of a coupled loss in plain numpy; W is (d+1, k)."""
    d, k = X.shape[1], loss.k
    scalars: list[tuple[float, ...]] = []
    mass, residual, v, features = np.zeros(k), np.zeros(k), np.zeros((d, k)), np.zeros((d, k))
    for rows, block in chunks(X):
        s, y = vector_or_default(weight, rows, 1.0), np.asarray(labels[rows])
        Z = score(block, W)
        U = dual_point(loss, dual, rows, block, y, Z)
        own = np.zeros_like(Z)
        own[np.arange(len(y)), y] = s
        sU = s[:, None] * U
        value, entropy = weigh(s, loss.value(Z, y)), weigh(s, -loss.conjugate(-U, y))
        reach = score(abs(block), np.abs(W))
        error = (d + 6) * ROUNDOFF * reach.max(axis=1, keepdims=True)
        steep = np.maximum(np.abs(U), loss.steepest(Z, y, error))
        lengths = row_norms(block) + math.sqrt(d) * SHORT
        sizes = np.sqrt((U * U).sum(axis=1)) + math.sqrt(k) * SHORT
        mass += own.sum(axis=0)
        residual += sU.sum(axis=0)
        v += block.T @ sU
        features += block.T @ own
        scalars.append(
            (
                value.sum(),
                entropy.sum(),
                (s[:, None] * steep * reach).sum(),
                (value + np.abs(entropy) + s * sensitivity(loss, U, y)).sum(),
                ((s * sizes + k * 2.0**-1010) * lengths).sum(),
                float(s @ lengths),
            )
        )
    total, entropies, magnitude, absolute, spread, bulk = add_up(scalars)
    head = total, entropies, magnitude, absolute
    return CoupledSums(*head, mass, residual, v, features, spread, bulk)


def sensitivity(loss: CoupledLoss, U: FloatArray, labels: IntArray) -> FloatArray:
    """1 - p_y, times STEEP where p_y is small: the term that ``absolute`` adds for the entropy of the softmax."""
    if not isinstance(loss, Multinomial):
        return np.zeros(len(U))
    rest = U[np.arange(len(labels)), labels]
    return np.asarray(np.where(1.0 - rest < SMALL, STEEP, 1.0) * rest)


def dual_point(
    loss: CoupledLoss, dual: Dual, rows: slice, block: Any, labels: IntArray, Z: FloatArray
) -> FloatArray:
    """U of a chunk; a row that leaves the simplex is replaced by minus the slope at the solution.

    If even that is infeasible (non-finite scores), the conjugate is +inf, and so is the rounding bound.
    """
    index = np.arange(len(labels))
    with np.errstate(invalid="ignore"):
        fallback = -loss.slope(Z, labels)
    if isinstance(dual, Explicit):
        U = np.array(dual.u[rows], dtype=np.float64)
    else:
        assert isinstance(loss, Multinomial)
        U = loss.linearised_dual(score(block, dual.base), score(block, dual.step))
    U[index, labels] = 0.0
    with np.errstate(invalid="ignore"):
        U[index, labels] = -U.sum(axis=1)  # the point is defined by its entries off the label
    finite = np.isfinite(U).all(axis=1)
    U[~finite] = fallback[~finite]
    inside = np.isfinite(loss.conjugate(-U, labels))
    return np.where(inside[:, None], U, fallback)
