"""Initial step size by trial (Bottou 2012): the one that reduces the objective most on a few rows.

A sample of about a thousand rows is processed once with each of a range of constant step sizes; the step with the
smallest objective on these rows is chosen. The scale follows from the data, so no step size needs to be guessed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.losses import Loss
from linsep.online.objective_evaluator import ObjectiveEvaluator
from linsep.online.scaling import Scaling, make_steps
from linsep.online.schedules import StepSizes

#: Number of rows in the trial.
TRIAL = 1024
_LARGEST = 1 << 19  # most entries in the trial
_COARSE = 4.0 ** np.arange(-7, 8)
_TOGETHER = 16  # columns evaluated in one pass


def trial_size(data: Memory) -> int:
    """Number of rows for the trial."""
    return max(64, min(TRIAL, _LARGEST * data.n // max(1, data.n_entries)))


def find_first_step(  # noqa: PLR0913
    loss: Loss,
    X: Any,
    labels: IntArray,
    k: int,
    *,
    lam: float,
    batch: int,
    fit_intercept: bool,
    start: FloatArray,
    scaling: Scaling | None = None,
) -> FloatArray:
    """Initial step size eta0 of each column, from a trial on these rows."""
    data = Memory(X, labels=labels, n_threads=1)
    assert data.whole is not None
    steps = make_steps(
        scaling,
        *(loss, data.X, data.whole.rows, labels, k),
        weight=None,
        lam=lam,
        batch=batch,
        total=float(batch),
        fit_intercept=fit_intercept,
    )
    C = 1.0 / (lam * data.n) if lam > 0.0 else math.inf
    evaluate = ObjectiveEvaluator(loss, C, data, k)
    visits = np.arange(data.n // batch * batch)
    no_decay = np.zeros(len(start))

    def end(eta: FloatArray) -> FloatArray:
        W = start.copy()
        steps.run(StepSizes("constant", eta, no_decay), 0, visits, W, None)
        return W

    def take_better(
        tried: list[FloatArray], eta: FloatArray, P: FloatArray
    ) -> tuple[FloatArray, FloatArray]:
        """Return, for each column, the best of these steps and ``eta``, whose objective is ``P``."""
        together = max(1, _TOGETHER // len(start))
        for first in range(0, len(tried), together):
            some = tried[first : first + together]
            for other, value in zip(some, evaluate([end(one) for one in some]), strict=True):
                eta, P = np.where(value < P, other, eta), np.where(value < P, value, P)
        return eta, P

    seen = data.X if scaling is None else scaling.rows(data.X)
    squares = seen.multiply(seen) if data.sparse else np.square(seen, dtype=np.float64)
    length = float(squares.sum()) / data.n + fit_intercept
    unit = np.full(len(start), 1.0 / length if length > 0.0 else 1.0)
    coarse = [unit * factor for factor in _COARSE]
    eta, P = take_better(coarse, coarse[0], np.full(len(start), math.inf))
    found, _ = take_better([0.5 * eta, 2.0 * eta], eta, P)
    return found
