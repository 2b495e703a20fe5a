"""Two-class figures: confusion counts over thresholds, ROC and precision-recall curves, calibration."""

from __future__ import annotations

import json
import math
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from scipy.stats import beta

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.plot import style
from linsep.report import svg
from linsep.report.evaluation import UNKNOWN, Content, Evaluation
from linsep.report.largest import pieces
from linsep.report.subject import Subject

_STEPS = 200  # steps of the slider
_POINTS = 400  # points of a curve


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Confusion counts at the stops of the slider; a row is predicted positive if its value >= t."""

    t: FloatArray
    on_probabilities: bool
    tp: FloatArray
    fp: FloatArray
    positives: float
    negatives: float
    start: int  # the stop at the threshold of the model


@dataclass(frozen=True, eq=False)
class Ranking:
    """ROC and precision-recall curves."""

    fpr: FloatArray
    tpr: FloatArray
    auc: float
    recall: FloatArray
    precision: FloatArray
    average_precision: float
    share_positive: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean predicted probability and observed frequency in bins of equally many rows."""

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray | None  # exact binomial intervals, 95 % each; None with weights
    high: FloatArray | None
    rows: FloatArray
    brier: float
    log_loss: float


def facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the quality of a model of two classes."""
    subject, evaluated = content.subject, content.evaluated
    stops = thresholds(subject, evaluated)
    z, positive, weight = positives(evaluated)
    curve = ranking(z, positive, weight)
    drawn: dict[str, Callable[[], str]] = {}
    if curve is not None:
        tp, fp = float(stops.tp[stops.start]), float(stops.fp[stops.start])
        recall = tp / stops.positives
        drawn["roc"] = partial(_draw_roc, curve, (fp / stops.negatives, recall))
        precision = tp / (tp + fp) if tp + fp else 1.0
        drawn["pr"] = partial(_draw_precision_recall, curve, (recall, precision))
    found = None
    if subject.probabilistic:
        p, q = probability(subject, z), probability(subject, -z)
        found = calibration(p, q, positive, weight)
        drawn["calibration"] = partial(_draw_calibration, found)
    slider = _slider_data(stops)
    return {
        "stops": stops,
        "slider": slider,
        "curve": curve,
        "calibration": found,
        "figures": drawn,
    }


def positives(evaluated: Evaluation) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return score, whether positive, and weight of the rows with a known label and positive weight."""
    kept = (evaluated.truth != UNKNOWN) & (evaluated.weight > 0)
    some = slice(None) if kept.all() else kept
    return evaluated.score[some], np.asarray(evaluated.truth[some] == 1), evaluated.weight[some]


def probability(subject: Subject, z: FloatArray) -> FloatArray:
    """Return P(second class | score), computed in pieces because the formulas need several arrays of their length."""
    assert subject.loss is not None
    found = np.empty(len(z))
    for here in pieces(len(z)):
        found[here] = subject.loss.proba(z[here])
    return found


def thresholds(subject: Subject, evaluated: Evaluation) -> Thresholds:
    """Compute confusion counts at 201 probabilities, or at quantiles of the scores and 0."""
    z, y, s = positives(evaluated)

    def value(scores: FloatArray) -> FloatArray:
        return probability(subject, scores) if subject.probabilistic else scores

    if subject.probabilistic:
        t = np.linspace(0.0, 1.0, _STEPS + 1)
    else:
        inner = np.quantile(z, np.linspace(0.0, 1.0, _STEPS - 1))
        t = np.unique(np.concatenate([inner, [0.0, np.nextafter(z.max(), np.inf)]]))
    below = np.zeros((2, len(t) + 1))  # weight of the rows of each class between two stops
    for here in pieces(len(z)):
        place = np.searchsorted(t, value(z[here]), side="right")
        for side, own in enumerate((~y[here], y[here])):
            below[side] += np.bincount(place, s[here] * own, len(t) + 1)
    above = below[:, ::-1].cumsum(axis=1)[:, ::-1]
    start = int(np.searchsorted(t, 0.5 if subject.probabilistic else 0.0))
    return Thresholds(
        t,
        subject.probabilistic,
        above[1, 1:],
        above[0, 1:],
        float(above[1, 0]),
        float(above[0, 0]),
        start,
    )


def ranking(score: FloatArray, y: BoolArray, s: FloatArray) -> Ranking | None:
    """Compute ROC and precision-recall curves; None if only one class is present.

    Few arrays of length n are held at a time, because there may be many rows.
    """
    order = np.argsort(-score, kind="stable").astype(np.min_scalar_type(len(score)))
    ends = _changes(score, order)
    tp, fp = (_cumulative(side, s, order, ends) for side in (y, ~y))
    del order, ends
    pos, neg = (float(side[-1]) if len(side) else 0.0 for side in (tp, fp))
    if pos == 0 or neg == 0:
        return None
    share = pos / (pos + neg)
    precision = tp + fp
    np.divide(tp, precision, out=precision)
    tp /= pos
    fp /= neg
    recall, alarms = tp, fp
    average = math.fsum(
        float(np.diff(_from_zero(recall, here)) @ precision[here]) for here in pieces(len(recall))
    )
    turn = thin(recall, precision)
    recall_shown, precision_shown = recall[turn], precision[turn]
    del precision
    fpr, tpr = np.append(0.0, alarms), np.append(0.0, recall)
    del tp, fp, recall, alarms
    auc = math.fsum(
        float(np.diff(fpr[low : high + 1]) @ (tpr[low + 1 : high + 1] + tpr[low:high]))
        for low, high in ((here.start, here.stop) for here in pieces(len(fpr) - 1))
    )
    corner = thin(fpr, tpr)
    return Ranking(
        fpr[corner],
        tpr[corner],
        auc / 2,
        recall_shown,
        precision_shown,
        average,
        share,
    )


def _changes(score: FloatArray, order: IntArray) -> BoolArray:
    """Mask of the last of equal scores in their order, which ends at a threshold."""
    found = np.ones(len(order), bool)
    for here in pieces(len(order) - 1):
        found[here] = np.diff(score[order[here.start : here.stop + 1]]) != 0.0
    return found


def _cumulative(side: BoolArray, s: FloatArray, order: IntArray, ends: BoolArray) -> FloatArray:
    """Weight of the rows of one class up to each threshold, in the order of the scores."""
    found = np.empty(len(order))
    for here in pieces(len(order)):
        some = order[here]
        found[here] = np.where(side[some], s[some], 0.0)
    np.cumsum(found, out=found)
    return found if ends.all() else found[ends]


def _from_zero(x: FloatArray, here: slice) -> FloatArray:
    """Return a slice of x with the preceding number, which is 0 before the first."""
    return np.append(x[here.start - 1] if here.start else 0.0, x[here])


def thin(x: FloatArray, y: FloatArray) -> IntArray:
    """Return at most 400 positions along a curve, evenly spaced by arc length, including the ends."""
    if len(x) <= _POINTS:
        return np.arange(len(x))
    length = np.zeros(len(x))
    for here in pieces(len(x) - 1):
        some = slice(here.start, here.stop + 1)
        steps = np.hypot(np.diff(x[some]), np.diff(y[some]))
        steps[0] += length[here.start]
        np.cumsum(steps, out=length[here.start + 1 : here.stop + 1])
    wanted = np.linspace(0.0, length[-1], _POINTS)
    return np.unique(
        np.append(np.searchsorted(length, wanted), [0, len(x) - 1]).clip(0, len(x) - 1)
    )


def calibration(
    p: FloatArray, q: FloatArray, y: BoolArray, s: FloatArray, bins: int = 10
) -> Calibration:
    """Compute calibration bins of equally many rows, with ties in one bin; q = 1 - p without cancellation."""
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1]))
    count, tiny = len(edges) + 1, np.finfo(np.float64).tiny
    weight, sums, hits = np.zeros((3, count))
    brier, log_loss = [], []
    for here in pieces(len(p)):
        some, own, rest, w = p[here], y[here], q[here], s[here]
        place = np.searchsorted(edges, some, side="right")
        weight += np.bincount(place, w, count)
        sums += np.bincount(place, w * some, count)
        hits += np.bincount(place, w * own, count)
        brier.append(float(w @ (some - own) ** 2))
        log_loss.append(-float(w @ np.log(np.maximum(np.where(own, some, rest), tiny))))
    filled = weight > 0
    rows, hits = weight[filled], hits[filled]
    predicted = sums[filled] / rows
    low = high = None
    if (s == 1.0).all():
        with np.errstate(all="ignore"):
            low = np.where(hits > 0, beta.ppf(0.025, hits, rows - hits + 1), 0.0)
            high = np.where(hits < rows, beta.ppf(0.975, hits + 1, rows - hits), 1.0)
    total = float(s.sum())
    return Calibration(
        predicted,
        hits / rows,
        low,
        high,
        rows,
        math.fsum(brier) / total,
        math.fsum(log_loss) / total,
    )


def _draw_roc(curve: Ranking, at: tuple[float, float]) -> str:
    """Draw the true against the false positive rate."""
    ax = svg.new_axes()
    ax.plot([0, 1], [0, 1], "--", color=style.GREY, linewidth=1)
    ax.plot(curve.fpr, curve.tpr, color=style.BLUE, linewidth=2)
    _unit_square(ax)
    style.finish(ax, "false positive rate", "true positive rate (recall)")
    text = f"ROC curve, area {curve.auc:.4f}; the dashed diagonal is guessing"
    return svg.to_svg(ax, "roc", text, dot=at)


def _draw_precision_recall(curve: Ranking, at: tuple[float, float]) -> str:
    """Draw precision against recall."""
    ax = svg.new_axes()
    ax.axhline(curve.share_positive, linestyle="--", color=style.GREY, linewidth=1)
    ax.step(curve.recall, curve.precision, where="pre", color=style.BLUE, linewidth=2)
    _unit_square(ax)
    style.finish(ax, "recall", "precision")
    text = f"Precision-recall curve, average precision {curve.average_precision:.4f}"
    return svg.to_svg(ax, "pr", f"{text}; the dashed line is guessing", dot=at)


def _draw_calibration(found: Calibration) -> str:
    """Draw observed frequencies against predicted probabilities."""
    ax = svg.new_axes()
    ax.plot([0, 1], [0, 1], "--", color=style.GREY, linewidth=1)
    if found.low is not None and found.high is not None:
        ax.vlines(found.predicted, found.low, found.high, color=style.BLUE, alpha=0.5, linewidth=2)
    ax.plot(found.predicted, found.observed, "o-", color=style.BLUE, linewidth=1.2, markersize=5)
    _unit_square(ax)
    style.finish(ax, "predicted probability", "observed share")
    text = "Calibration: observed share of the second class against its predicted probability"
    return svg.to_svg(ax, "calibration", f"{text}; bars are exact 95 % intervals")


def _unit_square(ax: Any) -> None:
    ax.set(xlim=(-0.02, 1.02), ylim=(-0.02, 1.02))
    ax.grid(color=style.GREY, alpha=0.2, linewidth=0.6)


def _slider_data(found: Thresholds) -> str:
    """Return the stops of the slider as JSON, numbers only, so that nothing in it can close the element."""
    digits = 3 if found.on_probabilities else 6
    return json.dumps(
        {
            "t": [float(f"{t:.{digits}g}") for t in found.t.tolist()],
            "tp": [round(value, 6) for value in found.tp.tolist()],
            "fp": [round(value, 6) for value in found.fp.tolist()],
            "positives": found.positives,
            "negatives": found.negatives,
        },
        separators=(",", ":"),
    )
