"""Passes for a loss without a kernel: compiled code computes scores and sums, numpy evaluates the loss."""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.losses import Loss
from linsep.problem.closing_rows import TINY_NORM, close_rows, feasible


def _combine(block: Block, a: FloatArray) -> FloatArray:
    """Sum of a_i (x_i, 1) over the rows of the block, (d+1,)."""
    full = np.zeros(block.rows.n)
    full[block.lo : block.hi] = a
    out = np.zeros(block.rows.d + 1)
    _kernels.combine(block.rows, block.lo, block.hi, full, out)
    return out


class NumpyPasses:
    """Passes over a block for any ``Loss``, with the interface of the compiled passes (``pointwise._Native``)."""

    def __init__(self, loss: Loss) -> None:
        self._loss = loss

    def sweep(self, block: Block, theta: FloatArray, out: FloatArray, blend: float) -> None:
        """Add the loss and its gradient to ``out``; store the curvatures s l'' in the row state."""
        s, sign = block.weights(), block.sign[block.lo : block.hi]
        m = block.margins(block.scores(theta))
        out[0] += s @ self._loss.value(m)
        out[1:] += _combine(block, s * sign * self._loss.slope(m))
        h = self._loss.curvature(m)
        if blend and np.isfinite(self._loss.curvature_bound):
            h = np.maximum(h, blend * self._loss.curvature_bound)
        block.row_state("curvature")[block.lo : block.hi] = s * h

    def ray(
        self,
        block: Block,
        theta: FloatArray,
        delta: FloatArray,
        steps: FloatArray,
        out: FloatArray,
    ) -> None:
        """Add the loss and its derivative by the step at each theta + step * delta to ``out``."""
        s, sign = block.weights(), block.sign[block.lo : block.hi]
        z, dz = block.scores(theta), block.scores(delta)
        for k, step in enumerate(steps):
            m = block.margins(z + step * dz)
            out[2 * k] += s @ self._loss.value(m)
            out[2 * k + 1] += (s * sign * self._loss.slope(m)) @ dz

    def closing(
        self,
        block: Block,
        base: FloatArray,
        step: FloatArray,
        theta: FloatArray,
        explicit: bool,
        out: FloatArray,
    ) -> None:
        """Add the sums of a certificate to ``out``, in the layout of kernels/sums/closing.hpp."""
        loss, rows = self._loss, slice(block.lo, block.hi)
        s, sign = block.weights(), block.sign[rows]
        m = block.margins(block.scores(theta))
        if explicit:
            u = feasible(loss, block.row_state("dual")[rows], m, s)
        else:
            u = self.dual_variables(block, base, step, theta)
        offset = np.zeros(len(u)) if block.offset is None else block.offset[rows]
        norms = np.zeros(block.rows.n)
        _kernels.row_norms(block.rows, block.lo, block.hi, norms)
        lengths, w = np.sqrt(norms[rows]), theta[:-1]
        # bound on |x|.|w| + |b| by the Cauchy-Schwarz inequality
        q = (lengths + TINY_NORM) * float(np.sqrt(w @ w) + TINY_NORM) + abs(float(theta[-1]))
        d = block.rows.d
        header, mass = close_rows(loss, (s, sign, offset), m, u, (q, lengths), d)
        out[:8] += header
        out[8 : 8 + d] += _combine(block, np.maximum(mass, 0.0))[:d]
        out[8 + d : 8 + 2 * d] += _combine(block, np.minimum(mass, 0.0))[:d]

    def dual_variables(
        self, block: Block, base: FloatArray, step: FloatArray, theta: FloatArray
    ) -> FloatArray:
        """Dual variables that ``closing`` uses for the rows of the block."""
        loss, sign = self._loss, block.sign[block.lo : block.hi]
        m0, dz = block.margins(block.scores(base)), block.scores(step)
        with np.errstate(over="ignore", invalid="ignore"):
            u = -(loss.slope(m0) + loss.curvature(m0) * sign * dz)
        return feasible(loss, u, block.margins(block.scores(theta)), block.weights())
