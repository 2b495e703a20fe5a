"""Minimise c.x + x'Sx/2 + sum_g t_g |x_g| for a positive semidefinite S: the quadratic models of ``block_newton``.

Method: accelerated proximal gradient steps (Beck and Teboulle 2009, restarted after O'Donoghue and Candes 2015) in the
metric of the blocks of S find the nonzero groups; Newton's method on these, where the norms are smooth, finds the
minimiser to working precision. Both are repeated until no zero group has a gradient longer than t_g. If S is so badly
conditioned that two rounds are not enough, the norms are smoothed, |x_g| -> (|x_g|^2 + mu^2)^(1/2), and a primal-dual
Newton method follows mu to 0 (Chan, Golub and Mulet, SIAM J. Scientific Computing 20, 1999).
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg as sl

from linsep.arrays import FloatArray
from linsep.interrupts import lapack
from linsep.penalties import GroupElasticNet

ROUNDS = 8
GRADIENT_STEPS = 60  # in the first round; doubled in each round, up to MOST_STEPS
MOST_STEPS = 1000
SMOOTHED_ROUND = 2  # the round that smooths the norms
SMOOTHED_STEPS = 80
SHRINK = 0.25  # factor on mu from step to step
LEAST_MU = 1e-13  # smallest mu, relative to the norm of a group
NEWTON_STEPS = 25
_EPS = 2.0**-52
_EIGEN = 64  # largest group whose largest eigenvalue is computed


class Model:
    """Quadratic model; of ``penalty`` the groups and their thresholds t_g are used."""

    def __init__(self, S: FloatArray, c: FloatArray, penalty: GroupElasticNet) -> None:
        self.S, self.c, self.penalty = S, c, penalty
        self.t, self.group = penalty.thresholds, penalty.group

    def value(self, x: FloatArray) -> float:
        """Return c.x + x'Sx/2 + sum_g t_g |x_g|."""
        return float(self.c @ x + 0.5 * (x @ (self.S @ x)) + self.t @ self.penalty.norms(x))

    def violation(self, x: FloatArray) -> float:
        """Largest distance of minus the gradient from the subdifferential of t_g |x_g|, relative to t_g.

        The rounding error of the gradient is subtracted.
        """
        g = self.c + self.S @ x
        norms = self.penalty.norms(x)
        share = np.divide(self.t, norms, out=np.zeros_like(norms), where=norms > 0.0)
        off = self.penalty.norms(g + share[self.group] * x)
        off = np.where(norms > 0.0, off, np.maximum(self.penalty.norms(g) - self.t, 0.0))
        rounding = _EPS * self.penalty.norms(np.abs(self.c) + np.abs(self.S) @ np.abs(x))
        return float(
            (np.maximum(off - rounding, 0.0) / (self.t + rounding + 1e-300)).max(initial=0.0)
        )


# A model without curvature is unbounded.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def minimise(
    S: FloatArray, c: FloatArray, x: FloatArray, penalty: GroupElasticNet, fine: float
) -> FloatArray:
    """Minimise from x to a relative violation of the optimality conditions of at most ``fine``.

    The result is NaN if the model is unbounded below, or its numbers overflow.
    """
    model = Model(S, c, penalty)
    if not len(x):
        return x
    if not (np.isfinite(S).all() and np.isfinite(c).all()):
        return np.full_like(x, math.nan)
    metric = _metric(model)
    steps = GRADIENT_STEPS
    best, least = x, model.violation(x)
    for number in range(ROUNDS):
        if least <= fine:
            break
        if number == SMOOTHED_ROUND:
            x = _newton(model, _smooth(model, best, metric))
        else:
            x = _newton(model, _accelerate(model, x, metric, steps))
        off = model.violation(x)
        if not np.isfinite(x).all() or math.isnan(off):
            return np.full_like(x, math.nan)
        if off < least:
            best, least = x, off
        steps = min(2 * steps, MOST_STEPS)
    return best


def _metric(model: Model) -> FloatArray:
    """Return L with diag(L) >= S: the largest eigenvalue of each block, times that of S scaled by them (estimated)."""
    S, group = model.S, model.group
    L = np.array(np.diagonal(S))
    sizes, order = model.penalty.sizes, np.argsort(group, kind="stable")
    starts = np.cumsum(sizes) - sizes
    for k in np.unique(sizes[sizes > 1]).tolist():
        own = order[starts[sizes == k][:, None] + np.arange(k)]  # (groups of this size, k)
        blocks = S[own[:, :, None], own[:, None, :]]
        small = k <= _EIGEN
        most = lapack(np.linalg.eigvalsh, blocks)[:, -1] if small else np.abs(blocks).sum(2).max(1)
        L[own] = most[:, None]
    L = np.maximum(L, 1e-12 * float(L.max(initial=0.0)) + 1e-300)
    root = 1.0 / np.sqrt(L)
    left = S * root * root[:, None]
    bound = float(np.abs(left).sum(axis=1).max())
    y = np.ones(len(L)) / math.sqrt(len(L))
    top = 0.0
    for _ in range(30):
        z = left @ y
        top = float(np.linalg.norm(z))
        if top == 0.0:
            break
        y = z / top
    return np.asarray(L * max(1e-12, min(bound, 1.1 * top + 1e-12)))


def _accelerate(model: Model, x: FloatArray, L: FloatArray, steps: int) -> FloatArray:
    """Make accelerated proximal gradient steps, with a restart when the momentum points uphill."""
    penalty = model.penalty
    t = model.t / L[penalty.first]
    y, momentum, value, start = x, 1.0, model.value(x), x
    for count in range(steps):
        z = y - (model.c + model.S @ y) / L
        norms = penalty.norms(z)
        kept = np.maximum(norms - t, 0.0) / np.where(norms > 0.0, norms, 1.0)
        new = z * kept[model.group]
        if float(((y - new) * L) @ (new - x)) > 0.0:
            momentum = 1.0
        following = 0.5 * (1.0 + math.sqrt(1.0 + 4.0 * momentum * momentum))
        y = new + (momentum - 1.0) / following * (new - x)
        still = float(np.abs((new - x) * np.sqrt(L)).max()) <= 1e-12 * float(
            np.abs(new * np.sqrt(L)).max() + 1e-300
        )
        x, momentum = new, following
        if still:
            break
        if count % 50 == 49:  # the estimate of the largest eigenvalue may be too small
            now = model.value(x)
            if not now <= value + 1e-12 * abs(value):
                L, x, y, momentum = 4.0 * L, start, start, 1.0
                t = model.t / L[penalty.first]
                continue
            value, start = now, x
    return x


def _smooth(model: Model, x: FloatArray, L: FloatArray) -> FloatArray:
    """Minimise with smoothed norms, mu decreasing to almost 0; set groups with norms not much above mu to 0.

    Newton's method for S x + c + t z = 0 and z_g (|x_g|^2 + mu_g^2)^(1/2) = x_g, |z_g| <= 1.
    """
    penalty, group = model.penalty, model.group
    t = model.t[group]
    scale = np.maximum(penalty.norms(x), model.t / L[penalty.first])
    scale = np.where(scale > 0.0, scale, 1.0)
    z, mu = np.zeros_like(x), 1.0
    for _ in range(SMOOTHED_STEPS):
        lengths = np.hypot(penalty.norms(x), mu * scale)[group]
        u = x / lengths
        same = group[:, None] == group[None, :]
        pairs = np.where(same, 0.5 * (np.outer(z, u) + np.outer(u, z)), 0.0)
        H = model.S - pairs * (t / lengths)
        H[np.diag_indices(len(x))] += t / lengths
        dx = -_solve(H, model.c + model.S @ x + t * u)
        if not np.isfinite(dx).all():
            return x
        inner = np.bincount(group, u * dx)[group]
        dz = u - z + (dx - z * inner) / lengths
        x, z = x + dx, z + dz
        z /= np.maximum(penalty.norms(z), 1.0)[group]
        if mu <= LEAST_MU:
            break
        mu *= SHRINK
    return np.where((penalty.norms(x) > 1e3 * mu * scale)[group], x, 0.0)


def _newton(model: Model, x: FloatArray) -> FloatArray:
    """Run Newton's method on the nonzero groups with step halving; stop after a step shorter than half."""
    penalty, value = model.penalty, model.value(x)
    for _ in range(NEWTON_STEPS):
        norms = penalty.norms(x)
        on = np.flatnonzero((norms > 0.0)[model.group])
        if not len(on):
            return x
        share = np.divide(model.t, norms, out=np.zeros_like(norms), where=norms > 0.0)[model.group]
        unit = x / np.where(norms > 0.0, norms, 1.0)[model.group]
        g = (model.c + model.S @ x + share * x)[on]
        H = model.S[np.ix_(on, on)]
        if len(norms) < len(x):  # otherwise the norms are absolute values without curvature
            same = model.group[on][:, None] == model.group[on][None, :]
            H -= np.where(same, np.outer(unit[on], unit[on]) * share[on], 0.0)
            H[np.diag_indices(len(on))] += share[on]
        delta = np.zeros_like(x)
        delta[on] = -_solve(H, g)
        length, moved = 1.0, False
        for _ in range(12):
            trial = x + length * delta
            now = model.value(trial)
            if now <= value:
                moved = bool(np.any(trial != x))
                x, value = trial, now
                break
            length *= 0.5
        if not moved or length < 0.5 or np.abs(delta).max() <= 1e-15 * np.abs(x).max():
            return x
    return x


def _solve(H: FloatArray, g: FloatArray) -> FloatArray:
    """Return H^-1 g; the least-squares solution if H is not positive definite."""
    scale = 1.0 / np.sqrt(np.where(np.diagonal(H) > 0.0, np.diagonal(H), 1.0))
    A = H * scale * scale[:, None]
    if not np.isfinite(A).all():
        return np.full_like(g, np.nan)
    try:
        return np.asarray(scale * sl.cho_solve(lapack(sl.cho_factor, A), scale * g))
    except np.linalg.LinAlgError:
        return np.asarray(scale * lapack(np.linalg.lstsq, A, scale * g, rcond=1e-14)[0])
