"""How C was chosen, and how to reproduce the model and verify it."""

from __future__ import annotations

import inspect
import math
import platform
import sys
from functools import partial
from importlib.metadata import PackageNotFoundError, version
from typing import Any

import numpy as np

from linsep import plot
from linsep.model_files import LARGEST_DIGEST, digest
from linsep.plot import style
from linsep.report import formatting as words
from linsep.report import svg
from linsep.report.evaluation import Content
from linsep.report.subject import Subject
from linsep.tuning import Tuning


def facts(content: Content) -> dict[str, Any]:
    """Return the values of the section on how to reproduce the model."""
    subject = content.subject
    return {
        "parameters": parameters(subject.model),
        "penalties": penalties(subject),
        "versions": versions(),
        "fingerprint": fingerprint(subject),
        "code": code(subject),
        "steps": steps(subject),
    }


def parameters(model: Any) -> list[tuple[str, str, bool]]:
    """Return name, value and whether it differs from the default, for each parameter."""
    defaults = inspect.signature(type(model).__init__).parameters
    lines = []
    for name, value in sorted(model.get_params(deep=False).items()):
        usual = defaults[name].default if name in defaults else None
        lines.append((name, words.name(repr(value), 120), repr(value) != repr(usual)))
    return lines


def code(subject: Subject) -> str:
    """Return Python code that fits the model and verifies it."""
    model = subject.model
    own = type(model).__name__
    changed = [f"{name}={value}" for name, value, other in parameters(model) if other]
    weight = ", sample_weight" if subject.train.weight is not None else ""
    lines = [f"from linsep import {own}, verify", ""]
    if subject.steps is not None:
        lines += ["# X: the table, transformed by the steps before the model"]
    lines += [
        f"model = {own}({', '.join(changed)}).fit(X, y{weight})",
        "print(model.certificate_)",
        f"print(verify(model, X, y{weight}))  # recomputed without any solver",
    ]
    return "\n".join(lines)


def steps(subject: Subject) -> str:
    """Describe the preprocessing steps before the linear model."""
    if subject.steps is None:
        return ""
    listed = getattr(subject.steps, "steps", None)
    kinds = (
        [type(step).__name__ for _, step in listed] if listed else [type(subject.steps).__name__]
    )
    return " → ".join([*kinds, type(subject.model).__name__])


def penalties(subject: Subject) -> list[tuple[str, str]]:
    """Return the penalty in two other notations: lambda |w|^2 + mean loss, and alpha/2 |w|^2 + mean loss."""
    C = subject.regularisation
    if C is None:
        return []
    if math.isinf(C):
        return [("C", "∞ (no penalty)")]
    m = subject.train.total
    return [
        ("C", words.copyable(C, 6)),
        ("λ in λ|w|² + mean loss: 1/(2 C m)", words.copyable(1 / (2 * C * m), 6)),
        ("α in α/2 |w|² + mean loss: 1/(C m)", words.copyable(1 / (C * m), 6)),
    ]


def versions() -> list[tuple[str, str]]:
    """Return the versions of the software that wrote the page."""
    found = [("Python", platform.python_version()), ("System", sys.platform)]
    for package in ("linsep", "numpy", "scipy", "scikit-learn"):
        try:
            found.append((package, version(package)))
        except PackageNotFoundError:
            found.append((package, "not installed as a package"))
    return found


def fingerprint(subject: Subject) -> str:
    """Return the SHA-256 digest of the training rows and their targets."""
    rows = subject.train
    if rows.X.shape[0] * rows.X.shape[1] > LARGEST_DIGEST:
        return "not computed: too many numbers"
    return digest(rows.X, rows.y)


def validation_facts(content: Content) -> dict[str, Any] | None:
    """Return the values of the section on the choice of C; None without tuning."""
    tuning = content.tuning
    if tuning is None:
        return None
    finite = bool(np.isfinite(tuning.best_C))
    return {
        "tuning": tuning,
        "figures": {"validation": partial(_draw_curve, tuning)} if finite else {},
    }


def _draw_curve(tuning: Tuning) -> str:
    """Draw held-out scores against C."""
    curve = tuning.curve
    finite = np.isfinite(curve.Cs)
    ax = svg.new_axes(7.4, 3.4)
    scores = curve.scores[finite]
    plot.validation_curve(
        curve.Cs[finite], scores if scores.shape[1] > 1 else scores[:, 0], best=tuning.best_C, ax=ax
    )
    ax.minorticks_off()
    ax.xaxis.set_major_formatter(lambda value, _: f"{value:g}")
    scoring = str(curve.scoring).replace("_", " ")
    style.finish(ax, "strength C", scoring if scoring.isascii() else "score", "")
    text = f"Validation curve: held-out score against C; the chosen C is {tuning.best_C:g}"
    return svg.to_svg(ax, "validation", text)
