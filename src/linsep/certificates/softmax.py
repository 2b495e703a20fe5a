"""The certificate of losses that couple k classes: the softmax and the multiclass hinge.

With U = onehot(y) - p, one row per sample, p in the simplex, and V = sum_i s_i x_i U_i' (d, k)::

    P(W) = lam/2 |W|^2 + l1 |W|_1 + sum_i s_i l(z_i, y_i)
    D(U) = sum_i s_i entropy(p_i) - sum_jc max(|V_jc| - l1, 0)^2 / (2 lam)

where entropy stands for minus the conjugate, -l*(p_i - onehot(y_i)): the entropy of p for the softmax, the
sum of p off the label for the hinge of Crammer and Singer.

D bounds every P from below if the class sums ``e_c = sum_i s_i U_ic`` vanish (free intercepts). To that
end all p_i are mixed with one fixed distribution r: p'_i = (1 - t) p_i + t r. With n_c the weight of class
c and S the total, e' = 0 asks for r_c = (t n_c + (1 - t) e_c) / (t S), which is a distribution as soon
as t >= -e_c / (n_c - e_c) for all c. Entropy is concave, so

    D >= (1 - t) sum s entropy(p) + t sum s entropy(r) - |(1 - t) V + t (M - (M 1) r')|^2 / (2 lam)

where column c of M is the sum of s x over the rows of class c: sums only, one pass (with l1 the same of the
soft-thresholded V). With lam = 0 < l1 all U are shrunk by kappa = l1/max |V_jc| <= 1: p becomes (1 - kappa) onehot(y) +
kappa p, whose entropy is at least kappa entropy(p), because entropy is concave and 0 at onehot(y).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from linsep.certificates.optimality import Optimality, enclose
from linsep.certificates.recheck import Dual, add_up, chunks, given, row_norms, score, weigh
from linsep.losses import CoupledLoss, Multinomial
from linsep.problem.closing_rows import ROUNDOFF
from linsep.solution import Explicit

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

#: Numbers before the class sums in the flat layout.
HEADER = 4


@dataclass(frozen=True, eq=False)
class SoftmaxSums:
    """Sums of the closing pass of a loss that couples the classes.

    ``entropy`` is sum s entropy(p); ``magnitude`` is sum s |U_c| (|x|.|w_c| + |b_c|) over rows and classes,
    ``absolute`` the sum of the absolute values of all terms; ``mass`` (k,) the weight of each class,
    ``residual`` (k,) is e, ``v`` (d, k) is V and ``features`` (d, k) is M. ``spread`` is sum s |U_i| |x_i|
    and ``bulk`` is sum s |x_i|; they, too, only bound rounding errors.
    """

    loss: float
    entropy: float
    magnitude: float
    absolute: float
    mass: FloatArray
    residual: FloatArray
    v: FloatArray
    features: FloatArray
    spread: float = 0.0
    bulk: float = 0.0

    @classmethod
    def from_flat(cls, vec: FloatArray, d: int, k: int) -> SoftmaxSums:
        """Read [loss, entropy, magnitude, absolute, mass, residual, V, M, spread, bulk]."""
        head: tuple[float, float, float, float] = tuple(vec[:HEADER].tolist())
        mass, residual, v, features, tail = np.split(vec[HEADER:], np.cumsum([k, k, d * k, d * k]))
        return cls(*head, mass, residual, v.reshape(d, k), features.reshape(d, k), *tail.tolist())


class Bounds(NamedTuple):
    """P at W, a lower bound on the minimum of P, and what rounding may have done to their difference."""

    primal: float
    dual: float
    rounding: float


def from_softmax_sums(  # noqa: PLR0913
    sums: SoftmaxSums,
    w: FloatArray,
    *,
    loss: CoupledLoss,
    lam: float,
    l1: float = 0.0,
    fit_intercept: bool,
    scale: float,
    tol: float,
    rows_per_sum: float,
    rows: float = 0.0,
) -> Optimality:
    """Assemble the certificate of the coefficients ``w`` (d, k), without the intercepts."""
    found = bounds(
        sums,
        w,
        loss=loss,
        lam=lam,
        l1=l1,
        fit_intercept=fit_intercept,
        rows_per_sum=rows_per_sum,
        rows=rows,
    )
    distance = math.sqrt(2.0 / lam) if lam > 0.0 else math.inf
    return enclose(*found, scale=scale, tol=tol, distance=distance, kind="dual")


def bounds(
    sums: SoftmaxSums,
    w: FloatArray,
    *,
    loss: CoupledLoss,
    lam: float,
    l1: float = 0.0,
    fit_intercept: bool,
    rows_per_sum: float,
    rows: float = 0.0,
) -> Bounds:
    """Primal value, lower bound and rounding allowance in internal units.

    The dual point is by definition the U that were computed, so only these errors count: scores, (d + k + 8) u
    times ``magnitude``; adding up, ``chain`` times the absolute values of the terms, for V times |at| with
    at = V/lam = w + off: magnitude for the first part, ``spread`` |off| for the second, ``bulk`` for what mixing
    brings in. ``rows_per_sum`` is the longest chain of additions in the sums of losses and of U, ``rows`` (if
    longer) in mass and M. The p of a row may add up to 1 + 8 k u: shrinking all U by that share costs D no more
    than the share of ``absolute``. With lam = l1 = 0 the lower bound is 0.
    """
    d, k = w.shape
    primal = sums.loss + 0.5 * lam * float(np.vdot(w, w)) + l1 * float(np.abs(w).sum())
    chain = (rows_per_sum + 9 * k + 8) * ROUNDOFF
    plain = (max(rows, rows_per_sum) + k + 8) * ROUNDOFF
    rounding = (d + k + 8) * ROUNDOFF * sums.magnitude + chain * (sums.absolute + sums.magnitude)
    dual = 0.0
    if lam > 0.0:
        t, entropy, v = mixed(sums, loss) if fit_intercept else (0.0, sums.entropy, sums.v)
        at = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0) / lam if l1 else v / lam
        dual = entropy - 0.5 * lam * float(np.vdot(at, at))
        error, mixed_in = chain * sums.spread, 2.0 * t * plain * sums.bulk
        rounding += error * _length(at - w) + mixed_in * _length(at)
        rounding += 0.5 * (error + mixed_in) ** 2 / lam
        if fit_intercept:
            rounding += _repair(sums, v, at, loss=loss, lam=lam, chain=chain + t * plain)
    elif l1 > 0.0:
        t, entropy, v = mixed(sums, loss) if fit_intercept else (0.0, sums.entropy, sums.v)
        doubt = chain * sums.spread + 2.0 * t * plain * sums.bulk  # of every V_jc
        if fit_intercept:
            again, move = _closing_share(sums, v, loss, chain + t * plain)
            doubt, rounding = doubt + move, rounding + again * abs(entropy)
        largest = float(np.abs(v).max(initial=0.0))
        dual = entropy * l1 / max(largest, l1)
        rounding += dual - entropy * l1 / max(largest + doubt, l1)
    rounding += (d * k + 8) * ROUNDOFF * (primal + abs(dual))
    return Bounds(primal, dual, rounding)


def _length(a: FloatArray) -> float:
    return math.sqrt(float(np.vdot(a, a)))


def mixed(sums: SoftmaxSums, loss: CoupledLoss) -> tuple[float, float, FloatArray]:
    """The share t of r that makes the class sums vanish; entropy and V after mixing."""
    n, e = sums.mass, sums.residual
    short = e < 0.0
    t = min(1.0, float((-e[short] / (n - e)[short]).max(initial=0.0)))
    r = np.maximum(t * n + (1.0 - t) * e, 0.0)
    if t == 0.0 or not r.sum() > 0.0:  # balanced, as far as float64 can tell
        return 0.0, sums.entropy, sums.v
    r /= r.sum()
    entropy = (1.0 - t) * sums.entropy + t * loss.spread(r, n)
    spread_out = sums.features - np.outer(sums.features.sum(axis=1), r)
    return t, entropy, (1.0 - t) * sums.v + t * spread_out


def _repair(
    sums: SoftmaxSums,
    v: FloatArray,
    at: FloatArray,
    *,
    loss: CoupledLoss,
    lam: float,
    chain: float,
) -> float:
    """Cost of making the class sums vanish exactly.

    e_c errs by at most ``chain`` times S_c = sum s |U_c| <= 2 n_c + |e_c|, so mixing once more with a share t of
    ``chain`` max_c S_c/n_c closes it. With at = V/lam, D moves by at most t times the entropy and
    <at, M - m r' - V>, m = M 1, plus the square of the change of V; r is any distribution.
    """
    if not sums.mass.min() > 0.0:
        return math.inf
    t, move = _closing_share(sums, v, loss, chain)
    total = sums.features.sum(axis=1)
    pull = abs(float(np.vdot(at, sums.features))) + float(np.abs(total @ at).max())
    return t * (abs(sums.entropy) + pull + abs(float(np.vdot(at, v)))) + 0.5 * move * move / lam


def _closing_share(
    sums: SoftmaxSums, v: FloatArray, loss: CoupledLoss, chain: float
) -> tuple[float, float]:
    """The share t that :func:`_repair` mixes in, and how far V moves by it at most."""
    if not sums.mass.min() > 0.0:
        return math.inf, math.inf
    moved = loss.moved(sums.entropy, sums.mass) + np.abs(sums.residual)
    t = 1.01 * chain * float((moved / sums.mass).max())
    total = sums.features.sum(axis=1)
    return t, t * (_length(sums.features) + _length(total) + _length(v))


def softmax_sums_numpy(
    loss: CoupledLoss,
    X: Any,
    labels: IntArray,
    weight: FloatArray | None,
    W: FloatArray,
    dual: Dual,
) -> SoftmaxSums:
    """Sums of the closing pass in plain numpy; W is (d+1, k)."""
    d, k = X.shape[1], loss.k
    scalars: list[tuple[float, ...]] = []
    mass, residual, v, features = np.zeros(k), np.zeros(k), np.zeros((d, k)), np.zeros((d, k))
    for rows, block in chunks(X):
        s, y = given(weight, rows, 1.0), np.asarray(labels[rows])
        Z = score(block, W)
        U = _dual_point(loss, dual, rows, block, y, Z)
        own = np.zeros_like(Z)
        own[np.arange(len(y)), y] = s
        sU = s[:, None] * U
        value, entropy = weigh(s, loss.value(Z, y)), -s * loss.conjugate(-U, y)
        reach = score(abs(block), np.abs(W))
        error = (d + 6) * ROUNDOFF * reach.max(axis=1, keepdims=True)
        steep = np.maximum(np.abs(U), loss.steepest(Z, y, error))
        lengths = row_norms(block)
        mass += own.sum(axis=0)
        residual += sU.sum(axis=0)
        v += block.T @ sU
        features += block.T @ own
        scalars.append(
            (
                value.sum(),
                entropy.sum(),
                (s[:, None] * steep * reach).sum(),
                (value + np.abs(entropy)).sum(),
                (np.sqrt((sU * sU).sum(axis=1)) * lengths).sum(),
                float(s @ lengths),
            )
        )
    total, entropies, magnitude, absolute, spread, bulk = add_up(scalars)
    head = total, entropies, magnitude, absolute
    return SoftmaxSums(*head, mass, residual, v, features, spread, bulk)


def _dual_point(
    loss: CoupledLoss, dual: Dual, rows: slice, block: Any, labels: IntArray, Z: FloatArray
) -> FloatArray:
    """U of a chunk; rows of the proposal that leave the simplex take the slope at the answer."""
    index = np.arange(len(labels))
    fallback = -loss.slope(Z, labels)
    if isinstance(dual, Explicit):
        U = np.array(dual.u[rows], dtype=np.float64)
    else:
        assert isinstance(loss, Multinomial)
        P = loss.proba(score(block, dual.base))
        change = score(block, dual.step)
        with np.errstate(over="ignore", invalid="ignore"):
            U = -P * (1.0 + change - (P * change).sum(axis=1, keepdims=True))
    U[index, labels] = 0.0
    U[index, labels] = -U.sum(axis=1)  # the entries off the label define the point
    inside = np.isfinite(U).all(axis=1) & np.isfinite(loss.conjugate(-U, labels))
    return np.where(inside[:, None], U, fallback)
