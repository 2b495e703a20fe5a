"""The first step size, found by trying (Bottou 2012): the one that learns most from a few rows.

A thousand rows are drawn and gone through once with each of a range of constant steps; the step that leaves
the least objective on those very rows wins. The data decide the scale: no step needs to be guessed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data import Memory
from linsep.losses import Loss
from linsep.online.judge import Judge
from linsep.online.schedules import StepSizes
from linsep.online.steps import Steps

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
#: Rows of the trial.
TRIAL = 1024
_LARGEST = 1 << 22  # entries of the trial
_COARSE = 4.0 ** np.arange(-7, 8)


def trial_size(d: int) -> int:
    """How many rows to try on."""
    return max(64, min(TRIAL, _LARGEST // max(1, d)))


def find_first_step(
    loss: Loss,
    X: Any,
    labels: IntArray,
    k: int,
    *,
    lam: float,
    batch: int,
    fit_intercept: bool,
    start: FloatArray,
) -> FloatArray:
    """eta0 of each column, from a trial on these rows."""
    data = Memory(X, labels=labels, n_threads=1)
    assert data.whole is not None
    steps = Steps(
        loss,
        data.X,
        data.whole.rows,
        labels,
        k,
        weight=None,
        lam=lam,
        batch=batch,
        total=float(batch),
        fit_intercept=fit_intercept,
    )
    C = 1.0 / (lam * data.n) if lam > 0.0 else math.inf
    judge = Judge(loss, C, data, k)
    visits = np.arange(data.n // batch * batch)
    no_decay = np.zeros(len(start))

    def value(eta: FloatArray) -> FloatArray:
        W = start.copy()
        steps.run(StepSizes("constant", eta, no_decay), 0, visits, W, None)
        P: FloatArray = judge([W])[0]
        return P

    squares = data.X.multiply(data.X) if data.sparse else np.square(data.X, dtype=np.float64)
    length = float(squares.sum()) / data.n + fit_intercept
    unit = np.full(len(start), 1.0 / length if length > 0.0 else 1.0)
    best_eta, best = unit * _COARSE[0], np.full(len(start), math.inf)
    for factor in _COARSE:
        best_eta, best = _better(best_eta, best, unit * factor, value(unit * factor))
    for factor in (0.5, 2.0):
        centre = best_eta.copy()
        best_eta, best = _better(best_eta, best, centre * factor, value(centre * factor))
    found: FloatArray = best_eta
    return found


def _better(
    eta: FloatArray, P: FloatArray, other_eta: FloatArray, other_P: FloatArray
) -> tuple[FloatArray, FloatArray]:
    take = other_P < P
    return np.where(take, other_eta, eta), np.where(take, other_P, P)
