"""Rows of the local certificate, in memory or on disk, summed block by block by kernels.

This is the compiled counterpart of ``rows`` and ``certificate``, used for the certificate of a fit; ``verify`` uses
those. The loss is still evaluated by the formulas of ``losses/``; the kernels only multiply rows. A rounding bound
needs sum |x_ij| v_i only approximately: by the Cauchy-Schwarz inequality it is at most sqrt(sum v x^2 sum v).
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.certificates.curvature.metric import ROUNDING_FACTOR, Metric
from linsep.certificates.curvature.rows import UNDERFLOW, Evaluation, Rows, product_error
from linsep.certificates.parts import vector_or_default
from linsep.data import Block, Dataset
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF, margin_error
from linsep.problem.gram import symmetric


@dataclass(frozen=True, eq=False)
class KernelRows(Rows):
    """Rows of ``data``, with sums computed by kernels."""

    data: Dataset

    @classmethod
    def of(cls, data: Dataset, fit_intercept: bool, lam: float = 0.0) -> KernelRows:
        """Build from all rows of a data set."""
        everyone = slice(0, data.n)
        offset, weight = (
            vector_or_default(data.offset, everyone, 0.0),
            vector_or_default(data.weight, everyone, 1.0),
        )
        return cls(data.X, data.sign, offset, weight, fit_intercept, lam, data)

    @property
    def chain(self) -> float:
        """Relative rounding error of a sum over the rows of terms of one sign."""
        return (self.data.longest_sum((self.data.d + 1) ** 2) + 8) * ROUNDOFF

    def gram(self, h: FloatArray) -> FloatArray:
        """lam I_w + sum h x~ x~'."""
        order, centre = self.data.d + 1, np.zeros(self.data.d)

        def add(block: Block, out: FloatArray) -> None:
            _kernels.gram(block.rows, block.lo, block.hi, block.own(h), centre, out)

        G = self.data.sum(add, order * order).reshape(order, order)
        H = symmetric(G, self.data.sparse)
        H = np.ascontiguousarray(H[: self.size, : self.size])
        H[np.diag_indices(self.data.d)] += self.lam
        return H

    def reach(self, metric: Metric) -> FloatArray:
        """Upper bound on sqrt(x~' M^-1 x~) = |T'x~| for every row, including the rounding of the product. One pass."""
        T, sizes = padded_root(metric, self.data.d, self.size)
        reach = np.empty(self.data.n)

        def put(block: Block, out: FloatArray) -> None:
            block.own(reach)[block.lo : block.hi] = row_reach(block, T, sizes, self.size)

        self.data.sum(put, 1)
        return reach * ROUNDING_FACTOR

    def visit(self, loss: Loss, theta: FloatArray) -> Evaluation:
        """Objective, gradient and their rounding errors at theta (one pass)."""
        data, order, size = self.data, self.data.d + 1, self.size
        at, whole, slopes = Evaluation.empty(data.n, theta), np.zeros(order), np.empty(data.n)
        whole[:size] = theta

        def add(block: Block, out: FloatArray) -> None:
            here = slice(block.first + block.lo, block.first + block.hi)
            z, reach = np.empty((2, block.hi - block.lo))
            _kernels.scores(block.rows, block.lo, block.hi, whole, z)
            _kernels.reaches(block.rows, block.lo, block.hi, whole, reach)
            s, o, sign = self.weight[here], self.offset[here], self.sigma[here]
            loss_sum, loss_error = at.put(loss, here, sign * z + o, margin_error(size, reach, o), s)
            out[:2] += loss_sum, loss_error
            slopes[here] = sign * at.slope[here]
            own = block.own(slopes)
            _kernels.combine(block.rows, block.lo, block.hi, own, out[2 : 2 + order])
            np.abs(at.slope[here], out=slopes[here])
            _kernels.moments(block.rows, block.lo, block.hi, own, out[2 + order :])

        out = data.sum(add, 2 + order + 2 * data.d + 1)
        at.primal, at.rounding = (float(v) for v in out[:2])
        at.rounding += self.chain * at.primal
        at.g[:] = out[2 : 2 + size]
        at.sum_error[:] = self.chain * absolute_sums(out[2 + order :], size) + data.n * UNDERFLOW
        at.penalise(self.lam, theta, data.d)
        return at


def padded_root(metric: Metric, d: int, size: int) -> tuple[FloatArray, FloatArray]:
    """T of a metric on ``size`` unknowns and the norms of its rows, padded to d + 1 rows for the kernels."""
    T, sizes = np.zeros((d + 1, -(-metric.T.shape[1] // 8) * 8)), np.zeros(d + 1)
    T[:size, : metric.T.shape[1]] = metric.T
    sizes[:size] = metric.row_norms
    return T, sizes


def row_reach(block: Block, T: FloatArray, sizes: FloatArray, size: int) -> FloatArray:
    """|T'x~| for the rows of a block, including the rounding of the product."""
    Z, absolute = np.empty((block.hi - block.lo, T.shape[1])), np.empty(block.hi - block.lo)
    _kernels.scores_k(block.rows, block.lo, block.hi, T, Z.reshape(-1))
    _kernels.reaches(block.rows, block.lo, block.hi, sizes, absolute)
    lengths: FloatArray = np.sqrt(np.einsum("ij,ij->i", Z, Z))
    return lengths + product_error(size, absolute)


def absolute_sums(moments: FloatArray, size: int) -> FloatArray:
    """Bounds on sum v |x_j| for every feature, and on sum v for the intercept, from the moments sum v (x^2, x, 1).

    A square underflows only if |x| < 2^-511; such entries add at most 2^-511 sum v.
    """
    d = len(moments) // 2
    total = moments[-1]
    sums = np.sqrt(moments[:d] * total) + 2.0**-511 * total
    return np.append(sums, total)[:size] * (1.0 + 1e-6)
