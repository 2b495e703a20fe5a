"""Two classes: what happens when the threshold moves, and whether probabilities mean what they say."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
from scipy.stats import beta

from linsep.arrays import FloatArray
from linsep.report.judging import UNKNOWN, Judged
from linsep.report.subject import Subject

_STEPS = 200  # of the slider
_POINTS = 400  # of a curve


@dataclass(frozen=True, eq=False)
class Thresholds:
    """Confusion counts at the stops of the slider; a row is called positive if its value >= t."""

    t: FloatArray
    on_probabilities: bool
    tp: FloatArray
    fp: FloatArray
    positives: float
    negatives: float
    start: int  # the stop at which the model itself decides


@dataclass(frozen=True, eq=False)
class Ranking:
    """Curves over all thresholds."""

    fpr: FloatArray
    tpr: FloatArray
    auc: float
    recall: FloatArray
    precision: FloatArray
    average_precision: float
    share_positive: float


@dataclass(frozen=True, eq=False)
class Calibration:
    """Mean predicted probability and observed share in bins of equally many rows."""

    predicted: FloatArray
    observed: FloatArray
    low: FloatArray | None  # exact binomial intervals, 95 % each; None with weights
    high: FloatArray | None
    rows: FloatArray
    brier: float
    log_loss: float


def positives(judged: Judged) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Scores, whether positive (0 or 1) and weights, of rows with a known label and some weight."""
    kept = (judged.truth != UNKNOWN) & (judged.weight > 0)
    return (
        judged.score[kept],
        (judged.truth[kept] == 1).astype(np.float64),
        judged.weight[kept],
    )


def probability(subject: Subject, z: FloatArray) -> FloatArray:
    """P(second class | score)."""
    assert subject.loss is not None
    return np.asarray(subject.loss.proba(z))


def thresholds(subject: Subject, judged: Judged) -> Thresholds:
    """Counts at 201 probabilities, or at quantiles of the scores and 0."""
    z, y, s = positives(judged)
    if subject.probabilistic:
        value = probability(subject, z)
        t = np.linspace(0.0, 1.0, _STEPS + 1)
    else:
        value = z
        inner = np.quantile(z, np.linspace(0.0, 1.0, _STEPS - 1))
        t = np.unique(np.concatenate([inner, [0.0, np.nextafter(z.max(), np.inf)]]))
    order = np.argsort(value, kind="stable")
    at = np.searchsorted(value[order], t, side="left")
    hits = np.concatenate([[0.0], np.cumsum((s * y)[order])])
    alarms = np.concatenate([[0.0], np.cumsum((s * (1 - y))[order])])
    start = int(np.searchsorted(t, 0.5 if subject.probabilistic else 0.0))
    return Thresholds(
        t,
        subject.probabilistic,
        hits[-1] - hits[at],
        alarms[-1] - alarms[at],
        float(hits[-1]),
        float(alarms[-1]),
        start,
    )


def ranking(score: FloatArray, y: FloatArray, s: FloatArray) -> Ranking | None:
    """ROC and precision-recall curves; None if only one class is present."""
    pos, neg = float(s @ y), float(s @ (1 - y))
    if pos == 0 or neg == 0:
        return None
    order = np.argsort(-score, kind="stable")
    last = np.append(np.flatnonzero(np.diff(score[order])), len(order) - 1)  # one for equal scores
    tp, fp = (np.cumsum((s * side)[order])[last] for side in (y, 1 - y))
    del order
    fpr, tpr = np.append(0.0, fp / neg), np.append(0.0, tp / pos)
    auc = float(np.sum(np.diff(fpr) * (tpr[1:] + tpr[:-1]))) / 2
    precision, recall = tp / (tp + fp), tpr[1:]
    del tp, fp
    average = float(np.sum(np.diff(np.append(0.0, recall)) * precision))
    share = pos / (pos + neg)
    corner, turn = thin(fpr, tpr), thin(recall, precision)
    return Ranking(
        fpr[corner],
        tpr[corner],
        auc,
        recall[turn],
        precision[turn],
        average,
        share,
    )


def thin(x: FloatArray, y: FloatArray) -> npt.NDArray[np.intp]:
    """At most 400 positions along a curve, evenly spread over its length, the ends kept."""
    if len(x) <= _POINTS:
        return np.arange(len(x))
    length = np.concatenate([[0.0], np.cumsum(np.hypot(np.diff(x), np.diff(y)))])
    wanted = np.linspace(0.0, length[-1], _POINTS)
    return np.unique(
        np.append(np.searchsorted(length, wanted), [0, len(x) - 1]).clip(0, len(x) - 1)
    )


def calibration(
    p: FloatArray, q: FloatArray, y: FloatArray, s: FloatArray, bins: int = 10
) -> Calibration:
    """Bins of equally many rows, equal probabilities together; q = 1 - p without cancellation."""
    edges = np.unique(np.quantile(p, np.linspace(0, 1, bins + 1)[1:-1]))
    place = np.searchsorted(edges, p, side="right")
    count = len(edges) + 1
    weight = np.bincount(place, s, count).astype(np.float64)
    filled = weight > 0
    predicted = np.bincount(place, s * p, count)[filled] / weight[filled]
    hits = np.bincount(place, s * y, count)[filled]
    rows = weight[filled]
    low = high = None
    if (s == 1.0).all():
        with np.errstate(all="ignore"):
            low = np.where(hits > 0, beta.ppf(0.025, hits, rows - hits + 1), 0.0)
            high = np.where(hits < rows, beta.ppf(0.975, hits + 1, rows - hits), 1.0)
    total = float(s.sum())
    tiny = np.finfo(np.float64).tiny
    log = -(y * np.log(np.maximum(p, tiny)) + (1 - y) * np.log(np.maximum(q, tiny)))
    return Calibration(
        predicted,
        hits / rows,
        low,
        high,
        rows,
        float(s @ (p - y) ** 2) / total,
        float(s @ log) / total,
    )
