"""Residuals of a regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.plot import style
from linsep.report import svg
from linsep.report.evaluation import Content, Evaluation
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


def facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the quality of a regression."""
    found = residuals(content.subject, content.evaluated)
    figures = {
        "predictions": partial(_draw_predictions, content.evaluated, found),
        "residuals": partial(_draw_residuals, content.evaluated, found),
        "spread": partial(_draw_histogram, content.evaluated),
    }
    return {"regression": found, "figures": figures}


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


def _draw_predictions(evaluated: Evaluation, found: Residuals) -> str:
    """Draw targets against predictions."""
    ax = svg.new_axes()
    z, t = evaluated.score[found.shown], evaluated.target[found.shown]
    ends = [float(min(z.min(), t.min())), float(max(z.max(), t.max()))]
    ax.plot(ends, ends, "--", color=style.GREY, linewidth=1)
    ax.plot(z, t, "o", color=style.BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
    style.finish(ax, "prediction", "target")
    return svg.to_svg(
        ax, "predictions", "Targets against predictions; the dashed line is a perfect fit"
    )


def _draw_residuals(evaluated: Evaluation, found: Residuals) -> str:
    """Draw residuals against predictions."""
    ax = svg.new_axes()
    z, r = evaluated.score[found.shown], evaluated.margin[found.shown]
    ax.axhline(0, linestyle="--", color=style.GREY, linewidth=1)
    ax.plot(z, r, "o", color=style.BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
    style.finish(ax, "prediction", "residual: target - prediction")
    return svg.to_svg(
        ax, "residuals", "Residuals against predictions: a pattern means a linear model misses it"
    )


def _draw_histogram(evaluated: Evaluation) -> str:
    """Draw a histogram of the residuals."""
    ax = svg.new_axes(7.4, 3.0)
    r: FloatArray = evaluated.margin
    low, high = (float(v) for v in np.quantile(r, [0.002, 0.998]))
    edges = np.linspace(low, high if high > low else low + 1.0, 41)
    height = np.histogram(r.clip(edges[0], edges[-1]), edges, weights=evaluated.weight)[0]
    ax.stairs(height, edges, fill=True, color=style.BLUE, alpha=0.35, linewidth=0)
    ax.stairs(height, edges, color=style.BLUE, linewidth=1.5)
    ax.axvline(0, color=style.BLACK, linewidth=1)
    style.finish(ax, "residual: target - prediction", "rows")
    return svg.to_svg(ax, "spread", "Histogram of the residuals")
