"""Sequences of stochastic steps: compiled for losses that have a kernel, in numpy for the others.

One step on the rows of a batch, with eta = eta_k and t the total weight by which the batch is divided::

    w <- (1 - eta lam) w - eta/t sum s y l'(m) x,      b <- b - eta/t sum s y l'(m)

``sums`` accumulates the iterates weighted by their step numbers, k W_k, from which their mean is computed.
"""

from __future__ import annotations

from dataclasses import KW_ONLY, dataclass
from functools import cached_property
from typing import Any

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.losses import Loss
from linsep.online.schedules import StepSizes

_CALL = 1 << 20  # entries read by one call: about a millisecond


@dataclass(frozen=True, eq=False)
class Steps:
    """Steps on rows with classes 0 .. k-1; W is (columns, d+1), one column for class 1 or one per class."""

    loss: Loss
    X: Any
    rows: _kernels.Rows
    labels: IntArray
    k: int
    _: KW_ONLY
    weight: FloatArray | None
    lam: float
    batch: int
    total: float
    fit_intercept: bool

    @cached_property
    def _positive(self) -> IntArray:
        """Class of each column."""
        return np.array([1] if self.k == 2 else range(self.k))

    @cached_property
    def _classes(self) -> _kernels.Classes:
        return _kernels.Classes(self.labels, self.weight, self.k)

    @cached_property
    def in_a_call(self) -> int:
        """Number of steps per call."""
        n, d = self.rows.n, self.rows.d
        entries = getattr(self.X, "nnz", n * d) / max(1, n)
        work = max(_CALL, 4 * d)  # every call ends with a pass over all d columns
        return max(1, int(work / (max(1.0, entries) * len(self._positive) * self.batch)))

    def run(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """Take steps first, first + 1, ... at the drawn rows; updates W and sums in place."""
        if self.loss.native is None:
            with np.errstate(all="ignore"):  # descend detects steps that overflow
                self._step_composed(step_sizes, first, draws, W, sums)
            return
        name, eta0, decay = step_sizes.for_kernel(first, len(draws) // self.batch)
        _kernels.sgd(
            self.rows,
            self._classes,
            _kernels.Loss(self.loss.native, *self.loss.params),
            name,
            eta0,
            decay,
            self.lam,
            self.total,
            self.batch,
            first,
            self.fit_intercept,
            draws,
            W,
            sums,
        )

    def _step_composed(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        batches = draws.reshape(-1, self.batch)
        for k, (rows, eta) in enumerate(
            zip(batches, step_sizes.table(first, len(batches)), strict=True), first + 1
        ):
            x = self.X[rows]
            z = np.asarray(x @ W[:, :-1].T) + W[:, -1]
            sign = np.where(self.labels[rows, None] == self._positive, 1.0, -1.0)
            a = -eta / self.total * sign * self.loss.slope(sign * z)
            if self.weight is not None:
                a *= self.weight[rows, None]
            W[:, :-1] *= (1.0 - eta * self.lam)[:, None]
            W[:, :-1] += np.asarray((x.T @ a).T)
            if self.fit_intercept:
                W[:, -1] += a.sum(axis=0)
            if sums is not None:
                sums += k * W
