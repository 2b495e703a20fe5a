"""Residuals of the Karush-Kuhn-Tucker conditions of a support vector machine.

Objective 1/2 |w|^2 + C sum_i s_i l(m_i), multipliers alpha_i = C s_i u_i. At an optimum

    stationarity       w = sum_i y_i alpha_i x_i
    intercept          sum_i y_i alpha_i = 0                 (if there is one)
    box                0 <= alpha_i <= C s_i                 (hinge; squared hinge: 0 <= alpha_i)
    complementarity    C s_i (l(m_i) + l*(-u_i) + u_i m_i) = 0

The last is equality in the Fenchel-Young inequality. For the hinge loss it says alpha_i (m_i - 1) = 0 for rows beyond
the margin and (C s_i - alpha_i) (1 - m_i) = 0 for rows inside it, as usually written with slack variables. If the first
three hold exactly, its sum over the rows is the duality gap. For the hard margin (C = inf) alpha has no upper bound,
alpha_i (m_i - 1) = 0, and scaling a margin below 1 up to 1 costs about sum(alpha) (1 - m_i).
Losses that couple k classes have k multipliers per row, C s_i (onehot(y_i) - p_i), and the same conditions.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.parts import Part, chunks, score, vector_or_default, weigh
from linsep.losses import CoupledLoss, Loss
from linsep.penalties import GroupElasticNet
from linsep.problem import hard_margin


@dataclass(frozen=True)
class KKT:
    """Residuals of the optimality conditions; all are 0 at an optimum in exact arithmetic.

    Attributes
    ----------
    stationarity : float
        |w - sum_i y_i alpha_i x_i|.
    intercept : float
        |sum_i y_i alpha_i|, 0 without an intercept.
    box : float
        Largest violation of 0 <= alpha_i <= C s_i.
    complementarity : float
        Largest product of a multiplier and the slack of its constraint, in units of the objective.
    """

    stationarity: float
    intercept: float
    box: float
    complementarity: float

    def __str__(self) -> str:
        return (
            f"KKT residuals: stationarity {self.stationarity:.1e}, intercept {self.intercept:.1e}, "
            f"box {self.box:.1e}, complementarity {self.complementarity:.1e}"
        )

    __repr__ = __str__


def kkt(parts: Iterable[tuple[Part, FloatArray]]) -> KKT:
    """Combine the residuals of subproblems, given with their multipliers (n,) or (n, k): norm or maximum."""
    found = [_residuals(part, alpha) for part, alpha in parts]
    return KKT(
        stationarity=math.hypot(*(one.stationarity for one in found)),
        intercept=max(one.intercept for one in found),
        box=max(one.box for one in found),
        complementarity=max(one.complementarity for one in found),
    )


def _residuals(part: Part, alpha: FloatArray) -> KKT:
    W, scale = part.W, part.penalty.scale
    v, totals = np.zeros_like(W[:-1]), np.zeros(W.shape[1])
    box = slack = 0.0
    total = float(alpha.sum())
    for rows, block in chunks(part.X):
        cap = scale * vector_or_default(part.weight, rows, 1.0)
        a, Z = alpha[rows].reshape(-1, W.shape[1]), score(block, W)
        if isinstance(part.loss, CoupledLoss):
            signed, outside, gaps = _coupled_residuals(part.loss, part.labels[rows], cap, a, Z)
        else:
            signed, outside, gaps = _two_class(part, rows, cap, a[:, 0], Z[:, 0], total)
        v += block.T @ signed
        totals += signed.sum(axis=0)
        box, slack = max(box, outside), max(slack, float(gaps.max(initial=0.0)))
    return KKT(
        stationarity=float(np.linalg.norm(_ridge_gradient(part) - v)),
        intercept=float(np.abs(totals).max()) if part.fit_intercept else 0.0,
        box=box,
        complementarity=slack,
    )


def _ridge_gradient(part: Part) -> FloatArray:
    """Gradient of the quadratic penalty in reported units: w, times the penalty factors if there are any."""
    w, penalty = part.W[:-1], part.penalty
    return np.asarray(penalty.factor[:, None] * w if isinstance(penalty, GroupElasticNet) else w)


def _two_class(
    part: Part, rows: slice, cap: FloatArray, alpha: FloatArray, z: FloatArray, total: float
) -> tuple[FloatArray, float, FloatArray]:
    """Return y alpha as a column, the largest box violation and the Fenchel-Young slacks; ``total`` is sum alpha."""
    loss = part.loss
    assert isinstance(loss, Loss)
    sigma = np.asarray(part.sigma[rows], dtype=np.float64)
    m = sigma * z
    if hard_margin(loss, part.penalty):
        gaps = weigh(cap, np.where(m < 1.0, total * (1.0 - m), alpha * (m - 1.0)))
        outside = np.where(cap > 0.0, -alpha, np.abs(alpha))
        return (sigma * alpha)[:, None], max(0.0, float(outside.max())), gaps
    low, high = loss.domain
    top = np.where(cap > 0.0, cap * high if high < math.inf else math.inf, 0.0)
    outside = np.maximum(alpha - top, cap * low - alpha)
    u = np.clip(np.divide(alpha, cap, out=np.zeros_like(alpha), where=cap > 0.0), low, high)
    gaps = weigh(cap, loss.value(m) + loss.conjugate(-u) + u * m)
    return (sigma * alpha)[:, None], max(0.0, float(outside.max())), gaps


def _coupled_residuals(
    loss: CoupledLoss, labels: Any, cap: FloatArray, alpha: FloatArray, Z: FloatArray
) -> tuple[FloatArray, float, FloatArray]:
    """Return alpha, the largest violation of the simplex constraints, and the Fenchel-Young slacks."""
    index = np.arange(len(labels))
    off = alpha.copy()
    off[index, labels] = 0.0
    own = alpha[index, labels]
    outside = max(
        float(off.max()), float((own - cap).max()), float(np.abs(alpha.sum(axis=1)).max())
    )
    P = np.maximum(
        np.divide(-off, cap[:, None], out=np.zeros_like(off), where=cap[:, None] > 0.0), 0.0
    )
    P /= np.maximum(P.sum(axis=1, keepdims=True), 1.0)
    U = -P
    U[index, labels] = P.sum(axis=1)
    gaps = weigh(cap, loss.value(Z, labels) + loss.conjugate(-U, labels) + (U * Z).sum(axis=1))
    return alpha, max(0.0, outside), gaps
