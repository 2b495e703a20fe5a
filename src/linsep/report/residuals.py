"""Residuals of a regression."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import IntArray
from linsep.report.evaluation import Evaluation
from linsep.report.subject import Subject

_MOST_POINTS = 1500  # of a scatter plot


@dataclass(frozen=True, eq=False)
class Residuals:
    """Weighted prediction errors, and those of the constant prediction for comparison."""

    r2: float
    rmse: float
    mae: float
    mae_error: float  # standard error of the mean absolute error, nan with weights
    median: float
    baseline_rmse: float  # of always predicting the mean of the training targets
    baseline_mae: float
    shown: IntArray  # rows in the figures, evenly spaced


def residuals(subject: Subject, evaluated: Evaluation) -> Residuals:
    """Compare predictions with the targets, and with the mean of the training targets."""
    s, r, t = evaluated.weight, evaluated.margin, evaluated.target
    total = float(s.sum())
    train = subject.train
    weight = np.ones(len(train)) if train.weight is None else train.weight
    guess = float(np.average(train.y.astype(np.float64), weights=weight))
    centre = float(np.average(t, weights=s))
    spread = float(s @ (t - centre) ** 2)
    squares = float(s @ r**2)
    size = np.abs(r)
    mae = float(s @ size) / total
    n = len(r)
    exact = evaluated.rows.weight is None and n > 1
    order = np.argsort(size, kind="stable")
    half = int(np.searchsorted(np.cumsum(s[order]), 0.5 * total))
    return Residuals(
        1.0 - squares / spread if spread > 0 else math.nan,
        math.sqrt(squares / total),
        mae,
        float(size.std(ddof=1)) / math.sqrt(n) if exact else math.nan,
        float(size[order][min(half, n - 1)]),
        math.sqrt(float(s @ (t - guess) ** 2) / total),
        float(s @ np.abs(t - guess)) / total,
        np.unique(np.linspace(0, n - 1, min(n, _MOST_POINTS)).astype(np.intp)),
    )
