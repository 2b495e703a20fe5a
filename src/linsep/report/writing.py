"""``write_report``: write a report about a fitted model to a file."""

from __future__ import annotations

import os
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np

from linsep.errors import BadInput
from linsep.monitoring import Job
from linsep.paths import write_file
from linsep.report import (
    assurance,
    figures,
    health,
    influence,
    page,
    ranking,
    recipe,
    residuals,
    several,
    verdict,
)
from linsep.report import formatting as words
from linsep.report.evaluation import Evaluation, evaluate
from linsep.report.subject import Subject, open_subject
from linsep.report.svg import drawing
from linsep.tables import Encoder
from linsep.tuning import Tuning


def write_report(  # noqa: PLR0913
    model: Any,
    X: Any,
    y: Any,
    path: str | os.PathLike[str],
    *,
    sample_weight: Any = None,
    test: tuple[Any, Any] | None = None,
    tuning: Tuning | None = None,
    title: str | None = None,
    encoder: Encoder | None = None,
    source: str | None = None,
) -> Path:
    """Write a report on a fitted model: one self-contained HTML file.

    It answers four questions: How good is the model? How sure are we? Which features matter? Is it proven optimal?
    The file is smaller than two megabytes for any input, needs no network, and is the same for the same input.

    Parameters
    ----------
    model : fitted estimator of linsep, or a Pipeline that ends in one
    X, y : array-likes
        The training rows and their targets.
    path : str or path
        The file to write; an existing one is replaced.
    sample_weight : array (n,), optional
        The weights with which the model was fitted.
    test : (X_test, y_test), optional
        Held-out rows, on which the model is evaluated. Without them there is no bound on the true error.
    tuning : Tuning, optional
        The result of ``linsep.tune``, for its validation curve.
    title : str, optional
        Heading of the page; the name of the model by default.
    encoder : Encoder, optional
        The encoder that produced the columns, if ``model`` is not a pipeline that contains it. X may then be the table
        itself or the encoded matrix.
    source : str, optional
        Where the rows came from, for instance a file name; shown in the report.

    Returns
    -------
    Path
        The file that was written.

    Raises
    ------
    BadInput
        If the rows do not belong to the model.
    ImportError
        If jinja2 or matplotlib is not installed.

    See Also
    --------
    summary : Coefficients with standard errors, as text.
    tune : Choose C; the report can show its curve.

    Examples
    --------
    >>> from linsep import LogisticRegression, datasets, write_report
    >>> X, y = datasets.breast_cancer()
    >>> model = LogisticRegression().fit(X[::2], y[::2])
    >>> write_report(model, X[::2], y[::2], "report.html", test=(X[1::2], y[1::2])) # doctest: +SKIP
    PosixPath('report.html')
    """
    require()
    if tuning is not None and not isinstance(tuning, Tuning):
        raise BadInput(f"tuning must be what linsep.tune returns, got {type(tuning).__name__}.")
    if encoder is not None and not isinstance(encoder, Encoder):
        raise BadInput(f"encoder must be a linsep.Encoder, got {type(encoder).__name__}.")
    with Job("report"):
        subject = open_subject(model, X, y, sample_weight, test, encoder)
        text = page.render(_facts(subject, tuning, title, source))
    size = len(text.encode())
    if size > page.LARGEST:
        raise AssertionError(f"the report has {size} bytes, more than it ever should")
    written = Path(path)
    write_file(written, text.encode())
    return written


def require() -> None:
    """Raise if a package required for the page is not installed."""
    missing = [name for name in ("jinja2", "matplotlib") if find_spec(name) is None]
    if missing:
        raise ImportError(
            f"write_report needs {' and '.join(missing)}: pip install {' '.join(missing)}."
        )


def _facts(
    subject: Subject, tuning: Tuning | None, title: str | None, source: str | None
) -> dict[str, Any]:
    """Collect all values that the template shows."""
    evaluated = evaluate(subject, subject.evaluated)
    found = health.columns(subject.train)
    about_data = health.health(subject, evaluated, found)
    found = found.without_range()
    proof = assurance.proof(subject)
    regression = residuals.residuals(subject, evaluated) if subject.classes is None else None
    guarantees, notes = assurance.error_bounds(subject, evaluated)
    own = type(subject.model).__name__
    facts: dict[str, Any] = {
        "title": words.name(title if title is not None else f"{own} report", 120),
        "source": None if source is None else words.name(source, 200),
        "model": own,
        "loss": None if subject.loss is None else subject.loss.name.replace("_", " "),
        "kind": "regression" if regression else "several" if subject.several else "two",
        "classes": []
        if subject.classes is None
        else [words.name(label, 32) for label in subject.classes[:2].tolist()],
        "n_classes": 0 if subject.classes is None else len(subject.classes),
        "held_out": evaluated.held_out,
        "n_evaluated": len(evaluated.rows),
        "answers": verdict.answers(subject, evaluated, found, proof, regression, tuning),
        "proof": proof,
        "health": about_data,
        "bounds": guarantees,
        "bound_notes": notes,
        "worst": influence.worst_rows(subject, evaluated, found),
        "regression": regression,
        "tuning": tuning,
        "parameters": recipe.parameters(subject.model),
        "penalties": recipe.penalties(subject),
        "versions": recipe.versions(),
        "fingerprint": recipe.fingerprint(subject),
        "code": recipe.code(subject),
        "steps": recipe.steps(subject),
        "schema": _schema(subject),
        "support": _support(subject),
    }
    with drawing():
        drawn = _classification(subject, evaluated, facts) if regression is None else {}
        if regression is not None:
            drawn["predictions"] = figures.predictions(evaluated, regression)
            drawn["residuals"] = figures.residual_plot(evaluated, regression)
            drawn["spread"] = figures.residual_histogram(evaluated)
        if subject.several:
            facts["features"], facts["features_left_out"] = influence.class_features(subject, found)
        else:
            facts["coefficients"] = influence.coefficients(subject, found)
            if facts["coefficients"].lines:
                drawn["coefficients"] = figures.coefficients(facts["coefficients"])
        if tuning is not None and np.isfinite(tuning.best_C):
            drawn["validation"] = figures.validation(tuning)
    facts["figures"] = drawn
    return facts


def _classification(
    subject: Subject, evaluated: Evaluation, facts: dict[str, Any]
) -> dict[str, str]:
    """Return the figures of a classifier, and add its tables to ``facts``."""
    drawn = {"margins": figures.margins(subject, evaluated)}
    if subject.several:
        facts["confusion"] = several.confusion(subject, evaluated)
        facts["lines"], facts["lines_left_out"], facts["area_rows"] = several.class_lines(
            subject, evaluated
        )
        return drawn
    stops = ranking.thresholds(subject, evaluated)
    z, positive, weight = ranking.positives(evaluated)
    curve = ranking.ranking(z, positive, weight)
    facts["stops"], facts["slider"] = stops, page.slider_data(stops)
    facts["curve"], facts["calibration"] = curve, None
    if curve is not None:
        tp, fp = float(stops.tp[stops.start]), float(stops.fp[stops.start])
        recall = tp / stops.positives
        drawn["roc"] = figures.roc(curve, (fp / stops.negatives, recall))
        precision = tp / (tp + fp) if tp + fp else 1.0
        drawn["pr"] = figures.precision_recall(curve, (recall, precision))
    if subject.probabilistic:
        p, q = ranking.probability(subject, z), ranking.probability(subject, -z)
        facts["calibration"] = ranking.calibration(p, q, positive, weight)
        drawn["calibration"] = figures.calibration(facts["calibration"])
    return drawn


def _schema(subject: Subject) -> list[tuple[str, str, int]]:
    """Return the columns of the table, their inferred types, and the number of model columns of each."""
    steps = subject.steps
    if hasattr(steps, "steps"):
        steps = next((step for _, step in steps.steps if isinstance(step, Encoder)), None)
    if not isinstance(steps, Encoder):
        return []
    return [(words.name(e.name), e.type, e.width) for e in steps.encodings_]


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
