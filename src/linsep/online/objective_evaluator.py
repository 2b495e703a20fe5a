"""Evaluation of the objective at several points in one pass."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Memory
from linsep.losses import Loss


class ObjectiveEvaluator:
    """Objective P = 1/2 |w|^2 + C sum s l for each column of a point (columns, d+1); without the norm if C = inf."""

    def __init__(self, loss: Loss, C: float, data: Memory, k: int) -> None:
        assert data.labels is not None and data.whole is not None
        self._loss, self._C, self._data = loss, C, data
        self._classes = _kernels.Classes(data.labels, data.weight, k)
        self._positive = [1] if k == 2 else list(range(k))
        self.passes = 0

    def __call__(self, points: Sequence[FloatArray]) -> FloatArray:
        """P at the points, (points, columns); inf where it is not finite. One pass."""
        used = len(points) * len(self._positive)
        K = -(-used // 8) * 8
        W = np.zeros((self._data.d + 1, K))
        W[:, :used] = np.concatenate(points).T
        of = np.zeros(K, dtype=np.int64)
        of[:used] = self._positive * len(points)
        self.passes += 1
        with np.errstate(all="ignore"):
            P = self._data.sum(self._visit(W, of), K)[:used]
            if not math.isinf(self._C):
                P = self._C * P + 0.5 * np.einsum("ij,ij->j", W[:-1, :used], W[:-1, :used])
        return np.where(np.isfinite(P), P, math.inf).reshape(len(points), -1)

    def at_zero(self, total: float) -> FloatArray:
        """P of each column at w = 0, b = 0, where all margins are 0; ``total`` is the weight of the rows (no pass)."""
        each = float(self._loss.value(np.zeros(1))[0]) * total
        P = each if math.isinf(self._C) else self._C * each
        return np.full(len(self._positive), P)

    def _visit(self, W: FloatArray, of: IntArray) -> Callable[[Block, FloatArray], None]:
        if self._loss.native is not None:
            loss = _kernels.Loss(self._loss.native, *self._loss.params)
            return lambda block, out: _kernels.losses_k(
                block.rows, self._classes, loss, block.lo, block.hi, W, of, out
            )

        def add_losses(block: Block, out: FloatArray) -> None:
            Z = np.empty((block.hi - block.lo, len(of)))
            _kernels.scores_k(block.rows, block.lo, block.hi, W, Z.reshape(-1))
            assert block.labels is not None
            sign = np.where(block.labels[block.lo : block.hi, None] == of, 1.0, -1.0)
            with np.errstate(all="ignore"):
                out += block.weights() @ self._loss.value(sign * Z)

        return add_losses
