"""The local certificate for rows on a cluster, from sums over rows only.

``certificate`` gives the argument, and stores some numbers per row. Here two rounds suffice, and the size of the
results does not grow with the number of rows:

1. the objective and its gradient g, bounds on their rounding errors, and H = lam I_w + sum h x~ x~';
2. with T from H, T'HT close to the identity: the sum of eta_i |T'x~_i| over the rows, where eta_i bounds the rounding
   error of a slope, and for some radii rho the smallest ratio of the curvature within rho of the solution to h.

All columns must be independent: a combination of others cannot be certified here, and neither can columns whose inner
products have lost too many digits.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.certificates.curvature.certificate import coefficient_distance
from linsep.certificates.curvature.kernel_rows import absolute_sums, padded_root, row_reach
from linsep.certificates.curvature.metric import ROUNDING_FACTOR, Metric, proven_root
from linsep.certificates.curvature.rows import UNDERFLOW, Evaluation, row_curvatures
from linsep.certificates.optimality import Optimality, enclose
from linsep.data import Block
from linsep.losses import Loss
from linsep.problem import Problem
from linsep.problem.closing_rows import ROUNDOFF, margin_error
from linsep.problem.gram import symmetric

#: Radii in units of |g|_{M^-1}, not including the rounding errors of the slopes.
_RADII = np.array([8.0, 64.0, 512.0, 4096.0])


def local_certificate_by_sums(problem: Problem, theta: FloatArray, tol: float) -> Optimality:
    """Certify theta (d+1,) by the curvature of a smooth loss; proves nothing if H may be singular. Two rounds."""
    data, size = problem.data, problem.data.d + int(problem.fit_intercept)
    rows = _RowsAt(problem.loss, theta.copy(), size)
    sums = data.sum(rows.add_first_round, rows.length, reads=())
    at, H = _evaluation(problem, rows, sums)
    drop, distance = math.inf, math.inf
    root = proven_root(H, _chain(problem, rows)) if np.isfinite(at.g).all() else None
    if root is not None:
        metric = Metric(root[0], np.arange(size), root[1], True)
        drop, distance = _excess_bound(problem, rows, at, metric)
    return enclose(
        *(at.primal, at.primal - drop, at.rounding),
        scale=problem.penalty.scale,
        tol=tol,
        distance=distance,
        kind="local",
        drop=drop,
    )


@dataclass(frozen=True, eq=False)
class _RowsAt:
    """Margins, slopes and curvatures of a block at theta, computed on the worker that holds its rows."""

    loss: Loss
    theta: FloatArray
    size: int  #: number of unknowns

    @property
    def length(self) -> int:
        """Number of sums in the first round: objective, its rounding error, gradient, moments, H."""
        order = len(self.theta)
        return 2 + order + (2 * order - 1) + order * order

    def visit(self, block: Block) -> tuple[Evaluation, FloatArray, float, float]:
        """Return margins and slopes, curvatures h, the sum of the losses and its rounding error."""
        lo, hi, s = block.lo, block.hi, block.weights()
        reach = np.empty(hi - lo)
        _kernels.reaches(block.rows, lo, hi, self.theta, reach)
        offset = np.zeros(hi - lo) if block.offset is None else block.offset[lo:hi]
        m, e = block.margins(block.scores(self.theta)), margin_error(self.size, reach, offset)
        at = Evaluation.empty(hi - lo, self.theta)
        value, loss_error = at.put(self.loss, slice(0, hi - lo), m, e, s)
        return at, row_curvatures(s, self.loss.curvature(m)), value, loss_error

    def add_first_round(self, block: Block, out: FloatArray) -> None:
        """Add the sums of the first round for one block."""
        at, h, value, loss_error = self.visit(block)
        order, lo, hi = len(self.theta), block.lo, block.hi
        g, moments, H = np.split(out[2:], [order, 3 * order - 1])
        factors = np.empty(block.rows.n)  # kernels read only the entries of this block
        out[:2] += value, loss_error
        factors[lo:hi] = block.sign[lo:hi] * at.slope
        _kernels.combine(block.rows, lo, hi, factors, g)
        factors[lo:hi] = np.abs(at.slope)
        _kernels.moments(block.rows, lo, hi, factors, moments)
        factors[lo:hi] = h
        _kernels.gram(block.rows, lo, hi, factors, np.zeros(order - 1), H)


def _chain(problem: Problem, rows: _RowsAt) -> float:
    """Relative rounding error of a sum over the rows of terms of one sign."""
    return (problem.data.longest_sum(rows.length) + 8) * ROUNDOFF


def _evaluation(problem: Problem, rows: _RowsAt, sums: FloatArray) -> tuple[Evaluation, FloatArray]:
    """Objective and gradient with their rounding errors, and H, from the sums of the first round."""
    data, size, order = problem.data, rows.size, problem.order
    g, moments, H = np.split(sums[2:], [order, 3 * order - 1])
    at, chain = Evaluation.empty(0, rows.theta[:size]), _chain(problem, rows)
    at.primal, at.rounding = float(sums[0]), float(sums[1]) + chain * float(sums[0])
    at.g[:] = g[:size]
    at.sum_error[:] = chain * absolute_sums(moments, size) + data.n * UNDERFLOW
    at.penalise(problem.lam, rows.theta, data.d)
    full = symmetric(H.reshape(order, order), data.sparse)
    full = np.ascontiguousarray(full[:size, :size])
    full[np.diag_indices(data.d)] += problem.lam
    return at, full


def _excess_bound(
    problem: Problem, rows: _RowsAt, at: Evaluation, metric: Metric
) -> tuple[float, float]:
    """Bound on P - P*, and c in |w - w*| <= c sqrt(P - P*); infinite if the proof fails. One round."""
    loss, size, d = problem.loss, rows.size, problem.data.d
    (T, sizes), plain = padded_root(metric, d, size), metric.dual_norm(at.g, at.sum_error)
    radii = _RADII * plain

    def add(block: Block, out: FloatArray) -> tuple[FloatArray]:
        here, h, _, _ = rows.visit(block)
        reach, s, live = (
            row_reach(block, T, sizes, size) * ROUNDING_FACTOR,
            block.weights(),
            h > 0.0,
        )
        out[0] += here.slope_error @ reach
        ratios = np.ones(len(radii))
        for k, rho in enumerate(radii):
            radius = (here.e + rho * reach) * ROUNDING_FACTOR + 4 * ROUNDOFF * np.abs(here.m)
            low = row_curvatures(s, loss.curvature_floor(here.m, radius))
            ratios[k] = (low[live] / h[live]).min(initial=1.0)
        return (ratios,)

    errors, found = problem.data.visit(add, 1, reads=())
    ratios = np.min([part for (part,) in found], axis=0) / ROUNDING_FACTOR
    mu = (plain + float(errors[0])) * (ROUNDING_FACTOR + problem.data.n * ROUNDOFF)
    for rho, kappa in zip(radii, ratios * metric.floor, strict=True):
        if kappa * rho >= 2.0 * mu * ROUNDING_FACTOR:
            drop = 0.5 * mu * mu / kappa * ROUNDING_FACTOR
            return drop, coefficient_distance(metric, d, float(kappa))
    return math.inf, math.inf
