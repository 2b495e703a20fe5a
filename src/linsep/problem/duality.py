"""Weak duality: primal and dual values from the sums of a closing pass.

Pointwise losses, with lam = l2 and v = sum s sigma u x::

    P(w, b) = lam/2 |w|^2 + l1 |w|_1 + sum_i s_i l(m_i)
    D(u)    = -sum_i s_i (l*(-u_i) + u_i offset_i) - sum_j max(|v_j| - l1, 0)^2 / (2 lam)

D is a lower bound on every P if ``sum s sigma u = 0`` (free intercept) and every u lies in the domain of the conjugate.
The intercept's condition is met by shrinking: rows are split by the sign of sigma u into two sides of mass T+ and T-,
and the u of the heavier side are multiplied by kappa = lighter/heavier <= 1. As l* is convex with l*(0) = 0,
l*(-kappa u) <= kappa l*(-u), so

    D >= -kappa+ A+ - kappa- A- - penalty*(kappa+ v+ + kappa- v-),    A = sum s (l*(-u) + u offset)

which needs only the sums of each side: one pass. For the same reason all u may be shrunk by one more factor; the best
factor is 1 near the optimum. With lam = 0 < l1 the factor must reduce every |v_j| to at most l1. With lam = l1 = 0 a
dual point is feasible only if v is exactly 0, which rounded sums cannot establish: the bound is then 0.

Losses that couple k classes, with U = onehot(y) - p, one row per sample, p in the simplex, and V = sum s x U' (d, k)::

    P(W) = lam/2 |W|^2 + l1 |W|_1 + sum_i s_i l(z_i, y_i)
    D(U) = sum_i s_i entropy(p_i) - sum_jc max(|V_jc| - l1, 0)^2 / (2 lam)

where entropy denotes minus the conjugate, -l*(p_i - onehot(y_i)): the entropy of p for the softmax, the sum of p over
the classes other than the label for the hinge of Crammer and Singer. D is a lower bound on every P if the class sums
``e_c = sum_i s_i U_ic`` vanish (free intercepts). To achieve this, all p_i are mixed with one fixed distribution r:
p'_i = (1 - t) p_i + t r. With n_c the weight of class c and S the total, e' = 0 requires
r_c = (t n_c + (1 - t) e_c) / (t S), which is a distribution if t >= -e_c / (n_c - e_c) for all c. Entropy is
concave, so

    D >= (1 - t) sum s entropy(p) + t sum s entropy(r) - |(1 - t) V + t (M - (M 1) r')|^2 / (2 lam)

where column c of M is the sum of s x over the rows of class c: again only sums, one pass (with l1, V is
soft-thresholded first). With lam = 0 < l1 all U are shrunk by kappa = l1/max |V_jc| <= 1: p becomes
(1 - kappa) onehot(y) + kappa p, whose entropy is at least kappa entropy(p), because entropy is concave and 0 at
onehot(y).

This is the only Python module that turns closing sums into a primal or a dual value. Solvers compare the two to decide
when to stop; the certificates bound their rounding errors (``certificates.closing``, ``certificates.softmax``).
kernels/sums/enclosure.hpp is the compiled implementation for a ridge penalty.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet, GroupElasticNet

#: Longest vectors whose inner product is computed by BLAS.
SHORT = 1000
#: Scalars before v+ in the flat sums of a pointwise loss, and before the class weights in those of a coupled loss.
HEADER, COUPLED_HEADER = 8, 4


def dot(a: FloatArray, b: FloatArray) -> float:
    """a.b on one thread. BLAS uses several threads for long vectors, and its result then depends on their number."""
    return float(a.dot(b)) if len(a) <= SHORT else float(np.einsum("i,i->", a, b))


@dataclass(frozen=True, eq=False)
class ClosingSums:
    """Sums of the closing pass over the rows, split by the sign of sigma_i u_i into plus and minus.

    ``magnitude``, ``absolute`` and ``spread`` are used only to bound rounding errors (``certificates.closing``).
    ``entry`` bounds sum s |u| |x_j| for every j, where a sharper bound than ``spread`` is known.
    """

    loss: float
    conj_plus: float
    conj_minus: float
    mass_plus: float
    mass_minus: float
    magnitude: float
    absolute: float
    spread: float
    v_plus: FloatArray
    v_minus: FloatArray
    entry: float = math.inf

    @classmethod
    def from_flat(cls, vec: FloatArray, d: int) -> ClosingSums:
        """Read [loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread, v+ (d), v- (d)]."""
        head: tuple[float, float, float, float, float, float, float, float]
        head = tuple(vec[:HEADER].tolist())
        return cls(*head, vec[HEADER : HEADER + d], vec[HEADER + d : HEADER + 2 * d])

    @property
    def conj(self) -> tuple[float, float]:
        """A = sum s (l*(-u) + u offset) for each side."""
        return self.conj_plus, self.conj_minus

    @property
    def mass(self) -> tuple[float, float]:
        """Sum s |u| for each side."""
        return self.mass_plus, self.mass_minus

    @property
    def v(self) -> tuple[FloatArray, FloatArray]:
        """Sum s sigma u x for each side, (d,)."""
        return self.v_plus, self.v_minus


@dataclass(frozen=True, eq=False)
class CoupledSums:
    """Sums of the closing pass of a loss that couples the classes.

    ``entropy`` is sum s entropy(p); ``magnitude`` is sum s |U_c| (|x|.|w_c| + |b_c|) over rows and classes, with the
    steepest slope near W where that exceeds |U_c|; ``absolute`` is the sum of the absolute values of all terms and, for
    the softmax, of 1 - p_y (several times where p_y is small); ``mass`` (k,) is the weight of each class,
    ``residual`` (k,) is e, ``v`` (d, k) is V and ``features`` (d, k) is M. ``spread`` is sum s |U_i| |x_i| and ``bulk``
    is sum s |x_i|, underflow included; both are used only to bound rounding errors.
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
    def from_flat(cls, vec: FloatArray, d: int, k: int) -> CoupledSums:
        """Read [loss, entropy, magnitude, absolute, mass, residual, V, M, spread, bulk]."""
        head: tuple[float, float, float, float] = tuple(vec[:COUPLED_HEADER].tolist())
        ends = np.cumsum([k, k, d * k, d * k])
        mass, residual, v, features, tail = np.split(vec[COUPLED_HEADER:], ends)
        return cls(*head, mass, residual, v.reshape(d, k), features.reshape(d, k), *tail.tolist())


class DualValue(NamedTuple):
    """Dual value at the feasible point derived from the sums, with the quantities its rounding bound depends on.

    ``conj`` and ``v`` are the sums of the two sides at that point, before the final factor ``shrink`` =
    l1/max(|v_j|, l1) of a pure L1 penalty; ``minimiser`` is the w that minimises penalty(w) - v.w, None without a
    ridge.
    """

    value: float
    conj: tuple[float, float]
    v: tuple[FloatArray, FloatArray]
    minimiser: FloatArray | None
    shrink: float = 1.0


class CoupledDualValue(NamedTuple):
    """Dual value at the feasible mixture derived from the sums, with the quantities its rounding bound depends on.

    ``share`` is t; ``entropy`` and ``v`` belong to the mixture (NaN if there is none); ``minimiser`` is the W that
    minimises penalty(W) - <V, W>, None without a ridge.
    """

    value: float
    share: float
    entropy: float
    v: FloatArray
    minimiser: FloatArray | None


def penalty_value(w: FloatArray, lam: float, l1: float) -> float:
    """lam/2 |w|^2 + l1 |w|_1, for w (d,) or (d, k) without the intercepts."""
    square = dot(w, w) if w.ndim == 1 else float(np.vdot(w, w))
    return 0.5 * lam * square + (l1 * float(np.abs(w).sum()) if l1 else 0.0)


def ridge_values(
    loss: float, conj: float, square: float, dual_square: float, lam: float
) -> tuple[float, float]:
    """P and D for a ridge penalty, from the sums of losses and of conjugates, |w|^2 and |v/lam|^2."""
    return loss + 0.5 * lam * square, -conj - 0.5 * lam * dual_square


def soft_threshold(v: FloatArray, l1: float) -> FloatArray:
    """sign(v) max(|v| - l1, 0), elementwise."""
    return np.sign(v) * np.maximum(np.abs(v) - l1, 0.0) if l1 else v


def balance(mass_plus: float, mass_minus: float) -> tuple[float, float]:
    """Factors (kappa+, kappa-) <= 1 that give both sides the same mass."""
    if mass_plus > mass_minus:
        return mass_minus / mass_plus, 1.0
    if mass_minus > mass_plus:
        return 1.0, mass_plus / mass_minus
    return 1.0, 1.0


def _shrinkage(conj: float, v: FloatArray, lam: float) -> float:
    """Factor kappa in [0, 1] on all u that maximises the bound -kappa conj - kappa^2 |v|^2/(2 lam).

    It is 1 near the optimum. Far from it, where the loss slopes give a dual point that is too long, shrinking
    keeps the bound useful.
    """
    square = dot(v, v)
    return min(1.0, max(0.0, -conj * lam / square)) if square > 0.0 and conj < 0.0 else 1.0


def dual_value(
    conj: tuple[float, float],
    mass: tuple[float, float],
    v: tuple[FloatArray, FloatArray],
    *,
    lam: float,
    l1: float,
    fit_intercept: bool,
) -> DualValue:
    """Largest lower bound obtainable by scaling the two sides of a dual point, from its sums per side."""
    plus, minus = balance(*mass) if fit_intercept else (1.0, 1.0)
    if lam > 0.0 and not l1:
        kappa = _shrinkage(plus * conj[0] + minus * conj[1], plus * v[0] + minus * v[1], lam)
        plus, minus = plus * kappa, minus * kappa
    v = plus * v[0], minus * v[1]
    conj = plus * conj[0], minus * conj[1]
    if lam > 0.0:
        at = soft_threshold(v[0] + v[1], l1) / lam
        return DualValue(-conj[0] - conj[1] - 0.5 * lam * dot(at, at), conj, v, at)
    if not l1 > 0.0:
        return DualValue(0.0, conj, v, None)
    shrink = l1 / max(float(np.abs(v[0] + v[1]).max(initial=0.0)), l1)
    return DualValue(-shrink * (conj[0] + conj[1]), conj, v, None, shrink)


def group_dual_value(
    conj: tuple[float, float],
    mass: tuple[float, float],
    v: tuple[FloatArray, FloatArray],
    *,
    penalty: GroupElasticNet,
    fit_intercept: bool,
) -> DualValue:
    """Lower bound for a penalty with factors and groups, at a point with v_j = 0 where the penalty factor is 0.

    The caller must know that such a feasible point is nearby. ``shrink`` is 1/max(|v_g|/l1_g, 1).
    """
    plus, minus = balance(*mass) if fit_intercept else (1.0, 1.0)
    held = penalty.factor > 0.0
    v = np.where(held, plus * v[0], 0.0), np.where(held, minus * v[1], 0.0)
    conj = plus * conj[0], minus * conj[1]
    gain = -(conj[0] + conj[1])
    if penalty.l1_ratio == 1.0:
        shrink = 1.0 / max(penalty.gauge(v[0] + v[1]), 1.0)
        return DualValue(shrink * gain, conj, v, None, shrink)
    cost = penalty.conjugate(v[0] + v[1])
    if penalty.l1_ratio == 0.0 and 0.0 < gain < 2.0 * cost:
        # use the best multiple of a dual point that is too long
        kappa = gain / (2.0 * cost)
        v, conj = (kappa * v[0], kappa * v[1]), (kappa * conj[0], kappa * conj[1])
        gain, cost = -(conj[0] + conj[1]), penalty.conjugate(v[0] + v[1])
    return DualValue(gain - cost, conj, v, penalty.minimiser(v[0] + v[1]))


def group_values(
    sums: FloatArray, theta: FloatArray, penalty: GroupElasticNet, fit_intercept: bool
) -> tuple[float, float]:
    """P and D >= 0 for a penalty with factors and groups, from the sums of a closing pass, without a rounding bound."""
    read = ClosingSums.from_flat(sums, len(theta) - 1)
    with np.errstate(over="ignore", invalid="ignore"):
        found = group_dual_value(
            read.conj, read.mass, read.v, penalty=penalty, fit_intercept=fit_intercept
        )
        return read.loss + penalty.value(theta[:-1]), max(found.value, 0.0)


def values(
    sums: FloatArray, theta: FloatArray, penalty: ElasticNet, fit_intercept: bool
) -> tuple[float, float]:
    """P and D of a pointwise loss from the flat sums of its closing pass, without a rounding bound."""
    d, lam, l1 = len(theta) - 1, penalty.l2, penalty.l1
    loss, plus, minus, mass_plus, mass_minus = sums[:5].tolist()
    v = sums[HEADER : HEADER + d], sums[HEADER + d :]
    with np.errstate(over="ignore", invalid="ignore"):
        found = dual_value(
            (plus, minus), (mass_plus, mass_minus), v, lam=lam, l1=l1, fit_intercept=fit_intercept
        )
        return loss + penalty_value(theta[:-1], lam, l1), found.value


def balanced_v(sums: FloatArray, d: int, fit_intercept: bool) -> FloatArray:
    """v = kappa+ v+ + kappa- v- (d,) of the balanced dual point, from the flat sums."""
    plus, minus = balance(*sums[3:5].tolist()) if fit_intercept else (1.0, 1.0)
    return plus * sums[HEADER : HEADER + d] + minus * sums[HEADER + d :]


def mixture(sums: CoupledSums, loss: CoupledLoss) -> tuple[float, float, FloatArray]:
    """Share t of r for which the class sums vanish; entropy (NaN if there is no such r) and V of the mixture."""
    n, e = sums.mass, sums.residual
    short = e < 0.0
    t = min(1.0, float((-e[short] / (n - e)[short]).max(initial=0.0)))
    r = np.maximum(t * n + (1.0 - t) * e, 0.0)
    if t == 0.0:  # balanced in float64
        return 0.0, sums.entropy, sums.v
    if not r.sum() > 0.0:
        return t, math.nan, sums.v
    r /= r.sum()
    entropy = (1.0 - t) * sums.entropy + t * loss.spread(r, n)
    spread_out = sums.features - np.outer(sums.features.sum(axis=1), r)
    return t, entropy, (1.0 - t) * sums.v + t * spread_out


def coupled_dual_value(
    sums: CoupledSums, loss: CoupledLoss, *, lam: float, l1: float, fit_intercept: bool
) -> CoupledDualValue:
    """Lower bound at the mixture of the dual point that is feasible for free intercepts."""
    if lam == 0.0 and l1 == 0.0:
        return CoupledDualValue(0.0, 0.0, 0.0, sums.v, None)
    t, entropy, v = mixture(sums, loss) if fit_intercept else (0.0, sums.entropy, sums.v)
    if lam > 0.0:
        at = soft_threshold(v, l1) / lam
        value = entropy - 0.5 * lam * float(np.vdot(at, at))
        return CoupledDualValue(value, t, entropy, v, at)
    value = entropy * l1 / max(float(np.abs(v).max(initial=0.0)), l1)
    return CoupledDualValue(value, t, entropy, v, None)


def coupled_values(
    sums: FloatArray, W: FloatArray, loss: CoupledLoss, penalty: ElasticNet, fit_intercept: bool
) -> tuple[float, float]:
    """P and D of a coupled loss from the flat sums of its closing pass, without a rounding bound."""
    lam, l1 = penalty.l2, penalty.l1
    read = CoupledSums.from_flat(sums, len(W) - 1, loss.k)
    with np.errstate(over="ignore", invalid="ignore"):
        found = coupled_dual_value(read, loss, lam=lam, l1=l1, fit_intercept=fit_intercept)
        return read.loss + penalty_value(W[:-1], lam, l1), found.value
