"""``write_report``: write a report about a fitted model to a file."""

from __future__ import annotations

import os
from collections.abc import Callable
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from linsep.errors import BadInput
from linsep.monitoring import Job
from linsep.paths import write_file
from linsep.report import (
    assurance,
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
from linsep.report.columns import columns
from linsep.report.evaluation import Content, evaluate
from linsep.report.subject import open_subject
from linsep.report.svg import drawing
from linsep.tables import Encoder
from linsep.tuning import Tuning


@dataclass(frozen=True)
class Section:
    """A section of the page: its id, its title in the navigation, its template, and its values (None: no section).

    Among the values, ``figures`` are functions that draw: all other values are computed before matplotlib is loaded,
    which takes about 35 MB.
    """

    name: str
    title: str
    template: str
    facts: Callable[[Content], dict[str, Any] | None]


SECTIONS = (
    Section("features", "Features", "features.html", influence.feature_facts),
    Section("rows", "Rows", "rows.html", influence.row_facts),
    Section("proof", "Proof", "proof.html", assurance.proof_facts),
    Section("bounds", "Bounds", "bounds.html", assurance.bound_facts),
    Section("validation", "Validation", "validation.html", recipe.validation_facts),
    Section("data", "Data", "data.html", health.facts),
    Section("reproduce", "Reproduce", "reproduce.html", recipe.facts),
    Section("glossary", "Glossary", "glossary.html", lambda content: {}),
)
#: The first section, by kind of model.
QUALITY = {
    "two": Section("quality", "Quality", "two.html", ranking.facts),
    "several": Section("quality", "Quality", "several.html", several.facts),
    "regression": Section("quality", "Quality", "regression.html", residuals.facts),
}


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
        evaluated, found = evaluate(subject, subject.evaluated), columns(subject.train)
        text = page.render(_facts(Content(subject, evaluated, found, tuning, source), title))
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


def _facts(content: Content, title: str | None) -> dict[str, Any]:
    """Collect all values that the templates show, and the sections that have any."""
    subject, evaluated, source = content.subject, content.evaluated, content.source
    own, classes = type(subject.model).__name__, subject.classes
    kind = "regression" if classes is None else "several" if subject.several else "two"
    facts: dict[str, Any] = {
        "title": words.name(title if title is not None else f"{own} report", 120),
        "source": None if source is None else words.name(source, 200),
        "model": own,
        "loss": None if subject.loss is None else subject.loss.name.replace("_", " "),
        "kind": kind,
        "classes": [] if classes is None else [words.name(c, 32) for c in classes[:2].tolist()],
        "n_classes": 0 if classes is None else len(classes),
        "held_out": evaluated.held_out,
        "n_evaluated": len(evaluated.rows),
        "sections": [],
        "figures": {},
    }
    for section in (QUALITY[kind], *SECTIONS):
        found = section.facts(content)
        if found is not None:
            facts["sections"].append(section)
            facts["figures"] |= found.pop("figures", {})
            facts |= found
    with drawing():
        facts["figures"] = {name: draw() for name, draw in facts["figures"].items()}
    facts["answers"] = verdict.answers(content, facts["proof"], facts.get("regression"))
    return facts
