"""Runs of stochastic steps: compiled for the losses that have a kernel, in numpy for the others.

One step at the rows of a batch, eta = eta_k, t the total weight that the batch is divided by::

    w <- (1 - eta lam) w - eta/t sum s y l'(m) x,      b <- b - eta/t sum s y l'(m)

``sums`` collects the iterates weighted by their number, k W_k, from which their mean is made.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.losses import Loss
from linsep.online.schedules import StepSizes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
_CALL = 1 << 20  # entries that one call reads: about a millisecond


class Steps:
    """Steps on rows with classes 0 .. k-1; W is (columns, d+1), a column for class 1 or for each."""

    def __init__(  # noqa: PLR0913
        self,
        loss: Loss,
        X: Any,
        rows: _kernels.Rows,
        labels: IntArray,
        k: int,
        *,
        weight: FloatArray | None,
        lam: float,
        batch: int,
        total: float,
        fit_intercept: bool,
    ) -> None:
        self._loss, self._X, self._rows, self._labels = loss, X, rows, labels
        self._weight, self._lam, self._batch, self._total = weight, lam, batch, total
        self._intercept = fit_intercept
        self._positive = np.array([1] if k == 2 else range(k))
        self._classes = _kernels.Classes(labels, weight, k)
        entries = getattr(X, "nnz", rows.n * rows.d) / max(1, rows.n)
        work = max(_CALL, 4 * rows.d)  # a call ends with a look at all d columns
        self.in_a_call = max(1, int(work / (max(1.0, entries) * len(self._positive) * batch)))

    def run(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        """Steps first, first + 1, ... at the rows drawn; moves W and sums."""
        if self._loss.native is None:
            with np.errstate(all="ignore"):  # a step too large ends in inf, which descend notices
                self._composed(step_sizes, first, draws, W, sums)
            return
        name, eta0, decay = step_sizes.for_kernel(first, len(draws) // self._batch)
        _kernels.sgd(
            self._rows,
            self._classes,
            _kernels.Loss(self._loss.native, *self._loss.params),
            name,
            eta0,
            decay,
            self._lam,
            self._total,
            self._batch,
            first,
            self._intercept,
            draws,
            W,
            sums,
        )

    def _composed(
        self,
        step_sizes: StepSizes,
        first: int,
        draws: IntArray,
        W: FloatArray,
        sums: FloatArray | None,
    ) -> None:
        batches = draws.reshape(-1, self._batch)
        for k, (rows, eta) in enumerate(
            zip(batches, step_sizes.listed(first, len(batches)), strict=True), first + 1
        ):
            x = self._X[rows]
            z = np.asarray(x @ W[:, :-1].T) + W[:, -1]
            sign = np.where(self._labels[rows, None] == self._positive, 1.0, -1.0)
            a = -eta / self._total * sign * self._loss.slope(sign * z)
            if self._weight is not None:
                a *= self._weight[rows, None]
            W[:, :-1] *= (1.0 - eta * self._lam)[:, None]
            W[:, :-1] += np.asarray((x.T @ a).T)
            if self._intercept:
                W[:, -1] += a.sum(axis=0)
            if sums is not None:
                sums += k * W
