"""The features with the largest influence, the margins of the rows, and the rows with the largest losses."""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.errors import LinsepError
from linsep.inference import summary
from linsep.inference.intervals import refusal
from linsep.plot import style
from linsep.report import formatting as words
from linsep.report import svg
from linsep.report.columns import Columns
from linsep.report.evaluation import UNKNOWN, Content, Evaluation, scores
from linsep.report.largest import largest
from linsep.report.subject import MOST_CLASSES, Subject

MOST_COEFFICIENTS = 40
_BARS = 20
_WIDEST_INFERENCE = 1000  # columns up to which standard errors are computed
WORST = 12


@dataclass(frozen=True)
class Line:
    """One coefficient; ``weight`` is the coefficient times the standard deviation of its column."""

    name: str
    value: float
    weight: float
    low: float | None = None
    high: float | None = None
    p_value: float | None = None
    spread: float = 0.0  # standard deviation of the column


@dataclass(frozen=True)
class Coefficients:
    """The largest standardised coefficients, with confidence intervals if available."""

    lines: list[Line]
    left_out: int
    zeros: int
    intercept: Line | None
    intervals: bool
    inference: str  # kind of the intervals, or why there are none


@dataclass(frozen=True)
class ClassFeatures:
    """Features with the largest coefficients for and against a class."""

    label: str
    towards: list[tuple[str, float]]
    against: list[tuple[str, float]]


def feature_facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the features."""
    subject, columns = content.subject, content.columns
    if subject.several:
        features, left_out = class_features(subject, columns)
        return {"features": features, "features_left_out": left_out}
    found = coefficients(subject, columns)
    figures = {"coefficients": partial(_draw_coefficients, found)} if found.lines else {}
    return {"coefficients": found, "figures": figures}


def coefficients(subject: Subject, found: Columns) -> Coefficients:
    """Return the largest coefficients of a two-class model or a regression."""
    w = subject.coef[0]
    order = largest(
        lambda some: np.where(w[some] != 0, np.abs(w[some] * found.std[some]), -np.inf),
        len(w),
        MOST_COEFFICIENTS,
    )
    table, inference = _intervals(subject)
    lines = []
    for j in order.tolist():
        more = table[j] if table else None
        lines.append(
            Line(
                words.name(subject.names[j]),
                float(w[j]),
                float(w[j] * found.std[j]),
                more.low if more else None,
                more.high if more else None,
                more.p_value if more else None,
                float(found.std[j]),
            )
        )
    zeros = int((w == 0).sum())
    b = float(subject.intercept[0])
    last = table[len(w)] if table and len(table) > len(w) else None
    intercept = Line("intercept", b, float("nan"), *((last.low, last.high) if last else ()))
    return Coefficients(
        lines, len(w) - zeros - len(lines), zeros, intercept, bool(table), inference
    )


def _intervals(subject: Subject) -> tuple[Any, str]:
    """Return coefficients with intervals from ``summary``, or None and the reason."""
    fits = getattr(subject.model, "_fits", None)
    if not fits or not hasattr(subject.model, "_verification_parts"):
        return None, "this model does not minimise a likelihood."
    reason = refusal(fits[0].recipe)
    if reason is not None:
        return None, reason
    train = subject.train
    if subject.coef.shape[1] > _WIDEST_INFERENCE:
        return (
            None,
            f"there are more than {_WIDEST_INFERENCE} columns; linsep.summary computes them.",
        )
    try:
        found = summary(subject.model, train.seen, np.asarray(train.y), train.weight)
    except (LinsepError, TypeError) as error:
        return None, f"the rows do not fit the model ({error})."
    if not found.valid:
        return None, found.inference.removeprefix("No standard errors: ")
    return next(iter(found.coefficients.values())), found.inference


def class_features(
    subject: Subject, found: Columns, most: int = 4
) -> tuple[list[ClassFeatures], int]:
    """Return the features with the largest standardised coefficients of each class, for at most 30 classes."""
    assert subject.classes is not None
    labels = subject.classes.tolist()[:MOST_CLASSES]
    lines = []
    for c, label in enumerate(labels):

        def pull(some: Any, own: FloatArray = subject.coef[c]) -> FloatArray:
            return np.asarray((own[some] - subject.coef[:, some].mean(axis=0)) * found.std[some])

        d = len(found.std)
        towards = largest(pull, d, most)
        against = largest(lambda some, pull=pull: -pull(some), d, most)  # type: ignore[misc]
        up, down = (
            [
                (words.name(subject.names[j], 32), float(x))
                for j, x in zip(at, pull(at), strict=True)
            ]
            for at in (towards, against)
        )
        lines.append(
            ClassFeatures(
                words.name(label), [f for f in up if f[1] > 0], [f for f in down if f[1] < 0]
            )
        )
    return lines, len(subject.classes) - len(lines)


def strongest(subject: Subject, found: Columns, most: int = 3) -> list[str]:
    """Return the names of the features with the largest standardised coefficients of any class."""

    def size(some: slice) -> FloatArray:
        return np.asarray(np.abs(subject.coef[:, some]).max(axis=0) * found.std[some])

    order = largest(size, len(found.std), most)
    return [
        words.name(subject.names[j], 32)
        for j in order.tolist()
        if np.any(subject.coef[:, j]) and found.std[j]
    ]


def _draw_coefficients(found: Coefficients) -> str:
    """Draw standardised coefficients as bars, with confidence intervals where they are valid."""
    lines = found.lines[:_BARS][::-1]
    stand_in = svg.Placeholders()
    labels = [stand_in(words.name(line.name, 32)) for line in lines]
    ax = svg.new_axes(7.4, 1.0 + 0.25 * len(lines))
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
    return svg.to_svg(ax, "coefficients", text, stand_in.names)


@dataclass(frozen=True)
class WorstRow:
    """A row with a large loss."""

    row: int
    truth: str
    answer: str
    score: float
    loss: float | None
    reasons: list[tuple[str, float]]


def row_facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on the rows."""
    subject, evaluated = content.subject, content.evaluated
    regression = subject.classes is None
    return {
        "worst": worst_rows(subject, evaluated, content.columns),
        "support": _support(subject),
        "figures": {} if regression else {"margins": partial(_draw_margins, subject, evaluated)},
    }


def worst_rows(subject: Subject, evaluated: Evaluation, found: Columns) -> list[WorstRow]:
    """Return the rows with the largest losses (or smallest margins), and the features that contributed most."""

    def size(some: slice) -> FloatArray:
        if evaluated.loss is not None:
            found = evaluated.loss[some]
        else:
            margin = evaluated.margin[some]
            found = -margin if subject.classes is not None else np.abs(margin)
        counts = evaluated.weight[some] > 0
        if len(evaluated.truth):
            counts &= evaluated.truth[some] != UNKNOWN
        return np.where(counts, found, -np.inf)

    worst = largest(size, len(evaluated.rows), WORST)
    Z = scores(subject, evaluated.rows, worst)
    return [_worst_row(subject, evaluated, found, int(i), Z[k]) for k, i in enumerate(worst)]


def _worst_row(
    subject: Subject, evaluated: Evaluation, found: Columns, i: int, z: FloatArray
) -> WorstRow:
    x = evaluated.rows.X[[i]]
    x = (x.toarray() if sp.issparse(x) else np.asarray(x))[0].astype(np.float64) - found.mean
    if subject.classes is None:
        w, truth, answer = subject.coef[0], words.number(evaluated.target[i]), words.number(z[0])
    else:
        labels = subject.classes.tolist()
        own, said = int(evaluated.truth[i]), int(evaluated.answer[i])
        truth, answer = words.name(labels[own], 24), words.name(labels[said], 24)
        if len(subject.coef) == 1:
            w = subject.coef[0]
        else:
            other = said if said != own else int(np.argsort(-z)[1])
            w = subject.coef[other] - subject.coef[own]
    contribution = w * x
    top = np.argsort(-np.abs(contribution), kind="stable")[:3]
    return WorstRow(
        i,
        truth,
        answer,
        float(evaluated.score[i]),
        None if evaluated.loss is None else float(evaluated.loss[i]),
        [
            (words.name(subject.names[j], 32), float(contribution[j]))
            for j in top.tolist()
            if contribution[j] != 0
        ],
    )


def _draw_margins(subject: Subject, evaluated: Evaluation) -> str:
    """Draw histograms of the scores of two classes, or of the margins of several classes."""
    ax = svg.new_axes(7.4, 3.2)
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
    stand_in = svg.Placeholders()
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
    return svg.to_svg(ax, "margins", text, stand_in.names)


def _support(subject: Subject) -> list[tuple[str, str]]:
    """Return the number of support vectors and the width of the margin, if the model has them."""
    model, lines = subject.model, []
    kept = getattr(model, "support_", None)
    if kept is not None:
        share = words.percent(len(kept) / len(subject.train))
        lines.append(("Support vectors", f"{words.count(len(kept))} ({share} of the rows)"))
    alpha = getattr(model, "alpha_", None)
    if (
        alpha is not None
        and subject.regularisation is not None
        and np.isfinite(subject.regularisation)
    ):
        at_bound = int((np.abs(np.ravel(alpha)) >= subject.regularisation * (1 - 1e-9)).sum())
        lines.append(("of these with alpha = C (inside the margin)", words.count(at_bound)))
    for name, text in (("margin_", "Margin"), ("margin_width_", "Width of the margin")):
        value = getattr(model, name, None)
        if value is not None and np.ndim(value) == 0:
            lines.append((text, words.number(float(value), 6)))
    return lines
