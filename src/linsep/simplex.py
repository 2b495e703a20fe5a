"""Bounds on the multinomial objective from the sums of one closing pass.

With U = onehot(y) - p, one p in the simplex for each row, and V = sum_i s_i x_i U_i' (d, k)::

    P(W) = lam/2 |W_w|^2 + sum_i s_i (logsumexp(z_i) - z_{i,y_i})
    D(U) = sum_i s_i H(p_i) - |V|^2 / (2 lam),        H the entropy,

and D bounds every P from below if the class sums e_c = sum_i s_i U_ic are 0 (free intercepts). They are made 0 by
mixing all p_i with one distribution r, p_i <- (1 - t) p_i + t r. With n_c the weight of class c and S = sum n_c,

    r_c = (t n_c + (1 - t) e_c) / (t S)  >= 0    iff    t >= -e_c / (n_c - e_c),

so the smallest t is known from the sums. H is concave: the entropy of the mixture is at least the mixture of
the entropies, and V becomes (1 - t) V + t (M - m r') where M (d, k) holds sum s x of each class and m = M 1.
"""

from __future__ import annotations

import math
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]

ROUNDOFF = 2.0**-53


class Bounds(NamedTuple):
    """P at W, a lower bound on the minimum of P, and what rounding may have done to their difference."""

    primal: float
    dual: float
    rounding: float


class Sums(NamedTuple):
    """What ``CoupledProblem.closing`` returns, by name."""

    loss: float
    entropy: float
    magnitude: float
    absolute: float
    mass: FloatArray
    residual: FloatArray
    v: FloatArray
    features: FloatArray
    spread: float
    bulk: float


def read(flat: FloatArray, d: int, k: int) -> Sums:
    """Sums from [loss, entropy, magnitude, absolute, n (k), e (k), V (d, k), M (d, k), spread, bulk]."""
    head, mass, residual, v, features, tail = np.split(flat, np.cumsum([4, k, k, d * k, d * k]))
    loss, entropy, magnitude, absolute = head.tolist()
    spread, bulk = tail.tolist()
    V, M = v.reshape(d, k), features.reshape(d, k)
    return Sums(loss, entropy, magnitude, absolute, mass, residual, V, M, spread, bulk)


def _entropy(p: FloatArray) -> float:
    positive = p[p > 0.0]
    return -float(positive @ np.log(positive))


def _balanced(sums: Sums) -> tuple[float, float, FloatArray]:
    """t, the entropy and V after mixing."""
    n, e = sums.mass, sums.residual
    short = e < 0.0
    t = min(1.0, float((-e[short] / (n - e)[short]).max(initial=0.0)))
    r = np.maximum(t * n + (1.0 - t) * e, 0.0)
    if t == 0.0 or not r.sum() > 0.0:  # balanced, or so nearly that e is far below its own rounding
        return 0.0, sums.entropy, sums.v
    r /= r.sum()
    entropy = (1.0 - t) * sums.entropy + t * float(n.sum()) * _entropy(r)
    M = sums.features
    return t, entropy, (1.0 - t) * sums.v + t * (M - np.outer(M.sum(axis=1), r))


def _exactness(sums: Sums, v: FloatArray, at: FloatArray, lam: float, error: float) -> float:
    """Cost of class sums that vanish exactly, though they are known only up to rounding.

    e_c errs by at most ``error`` sum_i s_i |U_ic| <= ``error`` (2 n_c + |e_c|). Mixing once more, with a share t of
    the largest (2 + |e_c|/n_c) ``error``, removes that; D moves by at most t (entropy + <at, V> + <at, M> +
    max_c |at_c . m|) plus the square of the change of V, with at = V/lam.
    """
    if not sums.mass.min() > 0.0:
        return math.inf
    t = 1.01 * error * float((2.0 + np.abs(sums.residual) / sums.mass).max())
    m = sums.features.sum(axis=1)
    first = abs(sums.entropy) + abs(float(np.vdot(at, v))) + abs(float(np.vdot(at, sums.features)))
    first += float(np.abs(m @ at).max())
    length = sum(math.sqrt(float(np.vdot(a, a))) for a in (v, sums.features, m))
    return t * first + 0.5 * (t * length) ** 2 / lam


def bounds(
    flat: FloatArray,
    W: FloatArray,
    *,
    lam: float,
    fit_intercept: bool,
    rows_per_sum: float,
    rows: float,
) -> Bounds:
    """Primal value, lower bound and rounding allowance, internal units, from the sums at W (d+1, k).

    The dual point is by definition the U that were computed, so only these errors count: scores, (d + k + 8) u times
    ``magnitude``; adding up, ``chain`` times the absolute values of the terms, for V times |at| with
    at = W + off: magnitude for the first part, ``spread`` |off| for the second, ``bulk`` for what mixing brings in.
    ``rows_per_sum`` is the length of the longest chain of additions in the sums of losses and of U, ``rows`` (all of
    them, to be safe) in mass and M. With lam = 0 the lower bound is 0.
    """
    (d, k), w = (len(W) - 1, W.shape[1]), W[:-1]
    sums = read(flat, d, k)
    primal = sums.loss + 0.5 * lam * float(np.vdot(w, w))
    chain, plain = (rows_per_sum + k + 8) * ROUNDOFF, (rows + 8) * ROUNDOFF
    rounding = (d + k + 8) * ROUNDOFF * sums.magnitude + chain * (sums.absolute + sums.magnitude)
    dual = 0.0
    if lam > 0.0:
        t, entropy, v = _balanced(sums) if fit_intercept else (0.0, sums.entropy, sums.v)
        at = v / lam
        dual = entropy - 0.5 * float(np.vdot(v, at))
        off = math.sqrt(float(np.vdot(at - w, at - w)))
        error, extra = chain * sums.spread, plain * 2.0 * t * sums.bulk
        rounding += error * off + extra * math.sqrt(float(np.vdot(at, at)))
        rounding += 0.5 * (error + extra) ** 2 / lam
        if fit_intercept:
            rounding += _exactness(sums, v, at, lam, chain + t * plain)
    rounding += (d * k + 8) * ROUNDOFF * (primal + abs(dual))
    return Bounds(primal, dual, rounding)
