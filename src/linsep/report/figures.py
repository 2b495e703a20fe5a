"""The figures of the report, in the style of ``linsep.plot``."""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep import plot
from linsep.arrays import FloatArray
from linsep.plot import style
from linsep.report import formatting as words
from linsep.report.evaluation import UNKNOWN, Evaluation
from linsep.report.influence import Coefficients
from linsep.report.ranking import Calibration, Ranking
from linsep.report.residuals import Residuals
from linsep.report.subject import Subject
from linsep.report.svg import Placeholders, new_axes, to_svg

_BARS = 20


def roc(curve: Ranking, at: tuple[float, float]) -> str:
    """Draw the true against the false positive rate."""
    ax = new_axes()
    ax.plot([0, 1], [0, 1], "--", color=style.GREY, linewidth=1)
    ax.plot(curve.fpr, curve.tpr, color=style.BLUE, linewidth=2)
    _unit_square(ax)
    style.finish(ax, "false positive rate", "true positive rate (recall)")
    text = f"ROC curve, area {curve.auc:.4f}; the dashed diagonal is guessing"
    return to_svg(ax, "roc", text, dot=at)


def precision_recall(curve: Ranking, at: tuple[float, float]) -> str:
    """Draw precision against recall."""
    ax = new_axes()
    ax.axhline(curve.share_positive, linestyle="--", color=style.GREY, linewidth=1)
    ax.step(curve.recall, curve.precision, where="pre", color=style.BLUE, linewidth=2)
    _unit_square(ax)
    style.finish(ax, "recall", "precision")
    text = f"Precision-recall curve, average precision {curve.average_precision:.4f}"
    return to_svg(ax, "pr", f"{text}; the dashed line is guessing", dot=at)


def calibration(found: Calibration) -> str:
    """Draw observed frequencies against predicted probabilities."""
    ax = new_axes()
    ax.plot([0, 1], [0, 1], "--", color=style.GREY, linewidth=1)
    if found.low is not None and found.high is not None:
        ax.vlines(found.predicted, found.low, found.high, color=style.BLUE, alpha=0.5, linewidth=2)
    ax.plot(found.predicted, found.observed, "o-", color=style.BLUE, linewidth=1.2, markersize=5)
    _unit_square(ax)
    style.finish(ax, "predicted probability", "observed share")
    text = "Calibration: observed share of the second class against its predicted probability"
    return to_svg(ax, "calibration", f"{text}; bars are exact 95 % intervals")


def margins(subject: Subject, evaluated: Evaluation) -> str:
    """Draw histograms of the scores of two classes, or of the margins of several classes."""
    ax = new_axes(7.4, 3.2)
    kept = (evaluated.truth != UNKNOWN) & (evaluated.weight > 0)
    if subject.several:
        parts = [(kept, style.BLUE, "margin of the true class")]
    else:
        assert subject.classes is not None
        labels = [f"class {words.name(label, 24)}" for label in subject.classes.tolist()]
        parts = [
            (kept & (evaluated.truth == c), style.CLASSES[c][0], label)
            for c, label in enumerate(labels)
        ]
    shown = evaluated.margin if subject.several else evaluated.score
    stand_in = Placeholders()
    low, high = (float(end) for end in np.quantile(shown[kept], [0.002, 0.998]))
    low, high = min(low, -1e-9), max(high, 1e-9)
    edges = np.linspace(low, high, 41)
    for at, (rows, colour, label) in enumerate(parts):
        height = np.histogram(shown[rows].clip(low, high), edges, weights=evaluated.weight[rows])[0]
        look = {"color": colour, "alpha": 0.35, "linewidth": 0}
        ax.stairs(height, edges, fill=True, label=stand_in(label), **look)
        ax.stairs(height, edges, color=colour, linewidth=1.5, linestyle=("-", "--")[at])
    ax.axvline(0, color=style.BLACK, linewidth=1)
    ax.set_ylim(bottom=0)
    ax.legend(frameon=False)
    style.finish(ax, "margin" if subject.several else "score", "rows")
    what = "margins of the true class" if subject.several else "scores of each class"
    text = f"Histogram of the {what}; the decision changes at 0. The outermost bars hold what lies beyond."
    return to_svg(ax, "margins", text, stand_in.names)


def coefficients(found: Coefficients) -> str:
    """Draw standardised coefficients as bars, with confidence intervals where they are valid."""
    lines = found.lines[:_BARS][::-1]
    stand_in = Placeholders()
    labels = [stand_in(words.name(line.name, 32)) for line in lines]
    ax = new_axes(7.4, 1.0 + 0.25 * len(lines))
    weight = np.array([line.weight for line in lines])
    for sign, colour in ((1, style.VERMILION), (-1, style.BLUE)):
        rows = np.flatnonzero(np.sign(weight) == sign)
        ax.barh(rows, weight[rows], height=0.7, color=colour, linewidth=0)
    if found.intervals:
        low = [(line.low or 0.0) * line.spread for line in lines]
        high = [(line.high or 0.0) * line.spread for line in lines]
        ax.hlines(range(len(lines)), low, high, color=style.BLACK, linewidth=1.5)
    ax.axvline(0, color=style.BLACK, linewidth=0.8)
    ax.set_yticks(range(len(lines)), labels)
    ax.set_ylim(-0.6, len(lines) - 0.4)
    ax.tick_params(axis="y", length=0)
    style.finish(ax, "coefficient × standard deviation of its column")
    text = "Bars of the largest coefficients, each times the standard deviation of its column"
    return to_svg(ax, "coefficients", text, stand_in.names)


def validation(tuning: Any) -> str:
    """Draw held-out scores against C."""
    curve = tuning.curve
    finite = np.isfinite(curve.Cs)
    ax = new_axes(7.4, 3.4)
    scores = curve.scores[finite]
    plot.validation_curve(
        curve.Cs[finite], scores if scores.shape[1] > 1 else scores[:, 0], best=tuning.best_C, ax=ax
    )
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    scoring = str(curve.scoring).replace("_", " ")
    style.finish(ax, "strength C", scoring if scoring.isascii() else "score", "")
    text = f"Validation curve: held-out score against C; the chosen C is {tuning.best_C:g}"
    return to_svg(ax, "validation", text)


def predictions(evaluated: Evaluation, found: Residuals) -> str:
    """Draw targets against predictions."""
    ax = new_axes()
    z, t = evaluated.score[found.shown], evaluated.target[found.shown]
    ends = [float(min(z.min(), t.min())), float(max(z.max(), t.max()))]
    ax.plot(ends, ends, "--", color=style.GREY, linewidth=1)
    ax.plot(z, t, "o", color=style.BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
    style.finish(ax, "prediction", "target")
    return to_svg(
        ax, "predictions", "Targets against predictions; the dashed line is a perfect fit"
    )


def residual_plot(evaluated: Evaluation, found: Residuals) -> str:
    """Draw residuals against predictions."""
    ax = new_axes()
    z, r = evaluated.score[found.shown], evaluated.margin[found.shown]
    ax.axhline(0, linestyle="--", color=style.GREY, linewidth=1)
    ax.plot(z, r, "o", color=style.BLUE, markersize=3, alpha=0.5, markeredgewidth=0)
    style.finish(ax, "prediction", "residual: target - prediction")
    return to_svg(
        ax, "residuals", "Residuals against predictions: a pattern means a linear model misses it"
    )


def residual_histogram(evaluated: Evaluation) -> str:
    """Draw a histogram of the residuals."""
    ax = new_axes(7.4, 3.0)
    r: FloatArray = evaluated.margin
    low, high = (float(v) for v in np.quantile(r, [0.002, 0.998]))
    edges = np.linspace(low, high if high > low else low + 1.0, 41)
    height = np.histogram(r.clip(edges[0], edges[-1]), edges, weights=evaluated.weight)[0]
    ax.stairs(height, edges, fill=True, color=style.BLUE, alpha=0.35, linewidth=0)
    ax.stairs(height, edges, color=style.BLUE, linewidth=1.5)
    ax.axvline(0, color=style.BLACK, linewidth=1)
    style.finish(ax, "residual: target - prediction", "rows")
    return to_svg(ax, "spread", "Histogram of the residuals")


def _unit_square(ax: Any) -> None:
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.grid(color=style.GREY, alpha=0.2, linewidth=0.6)
