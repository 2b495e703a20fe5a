"""Multiclass figures: the confusion matrix, and each class against the others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.report import formatting as words
from linsep.report.evaluation import UNKNOWN, Content, Evaluation, scores
from linsep.report.ranking import ranking
from linsep.report.subject import MOST_CLASSES, Subject

_MOST_SCORES = 4e6  # number of scores up to which areas under curves use all rows


@dataclass(frozen=True)
class ClassLine:
    """One class against the others."""

    label: str
    rows: float
    precision: float
    recall: float
    f1: float
    auc: float | None


@dataclass(frozen=True, eq=False)
class Confusion:
    """Confusion matrix: rows are true classes, columns predicted ones; classes beyond 30 are merged into the last."""

    labels: list[str]
    counts: FloatArray  # (m, m)
    together: int  # number of classes merged into the last, 0 if none

    def shade(self, i: int, j: int) -> int:
        """Return the fraction of the row, from 0 to 10, for the background colour."""
        total = float(self.counts[i].sum())
        share = float(self.counts[i, j]) / total if total else 0.0
        return 0 if share == 0 else max(1, round(10 * share))


def facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the quality of a model of several classes."""
    lines, left_out, rows = class_lines(content.subject, content.evaluated)
    return {
        "confusion": confusion(content.subject, content.evaluated),
        "lines": lines,
        "lines_left_out": left_out,
        "area_rows": rows,
    }


def confusion(subject: Subject, evaluated: Evaluation) -> Confusion:
    """Compute weighted counts of (true, predicted) for the 30 most frequent classes."""
    assert subject.classes is not None
    k = len(subject.classes)
    known = evaluated.truth != UNKNOWN
    truth, answer, weight = evaluated.truth[known], evaluated.answer[known], evaluated.weight[known]
    place = np.arange(k)
    shown = np.arange(k)
    if k > MOST_CLASSES:
        size = np.bincount(truth, weight, k)
        shown = np.sort(np.argsort(-size, kind="stable")[: MOST_CLASSES - 1])
        place = np.full(k, MOST_CLASSES - 1)
        place[shown] = np.arange(len(shown))
    m = min(k, MOST_CLASSES)
    counts = (
        np.bincount(place[truth] * m + place[answer], weight, m * m)
        .reshape(m, m)
        .astype(np.float64)
    )
    labels = [words.name(label, 20) for label in subject.classes[shown].tolist()]
    together = k - len(shown)
    return Confusion([*labels, *["others"] * (together > 0)], counts, together)


def class_lines(subject: Subject, evaluated: Evaluation) -> tuple[list[ClassLine], int, int]:
    """Return a line for each of the 30 most frequent classes, the number of others, and the rows used for areas."""
    assert subject.classes is not None
    k = len(subject.classes)
    known = np.flatnonzero(evaluated.truth != UNKNOWN)
    truth, answer, weight = evaluated.truth[known], evaluated.answer[known], evaluated.weight[known]
    size = np.bincount(truth, weight, k)
    called = np.bincount(answer, weight, k)
    right = np.bincount(truth[truth == answer], weight[truth == answer], k)
    shown = np.arange(k)
    if k > MOST_CLASSES:
        shown = np.sort(np.argsort(-size, kind="stable")[:MOST_CLASSES])
    stride = max(1, int(np.ceil(len(known) * k / _MOST_SCORES)))
    sample = np.arange(0, len(known), stride)
    Z = scores(subject, evaluated.rows, known[sample])
    lines = []
    for c in shown.tolist():
        curve = ranking(Z[:, c], truth[sample] == c, weight[sample])
        precision = float(right[c] / called[c]) if called[c] else float("nan")
        recall = float(right[c] / size[c]) if size[c] else float("nan")
        both = float(size[c] + called[c])
        lines.append(
            ClassLine(
                words.name(subject.classes.tolist()[c]),
                float(size[c]),
                precision,
                recall,
                2 * float(right[c]) / both if both else float("nan"),
                None if curve is None else curve.auc,
            )
        )
    return lines, k - len(shown), len(sample)
