"""Read the problem to audit from an estimator, results, a file or plain coefficients of any library."""

from __future__ import annotations

import os
from typing import Any

import numpy as np

from linsep.auditing import liblinear_models, model_files, objectives, plain, statsmodels_results
from linsep.auditing.onnx_graphs import OnnxModel
from linsep.auditing.subject import Stated, Subject
from linsep.data.entrance import inputs
from linsep.data.entrance.finite import refuse_nonfinite
from linsep.errors import BadInput, Refused
from linsep.pipelines import take_apart
from linsep.sklearn_objectives import Given, objective_of


def _cure(final: Any) -> str:
    """Say how to get coefficients from an estimator that has none, if there is a way."""
    if getattr(final, "kernel", "linear") != "linear":
        return f": with kernel={final.kernel!r} it has none; audit takes kernel='linear'"
    fitted = any(name.endswith("_") for name in vars(final)) if hasattr(final, "fit") else True
    return "" if fitted else ": call fit first"


def read(model: Any, X: Any, y: Any, sample_weight: Any, stated: Stated) -> Subject:
    """Return rows, targets and objective of a model."""
    if statsmodels_results.is_results(model):
        return statsmodels_results.read(model, X, y, sample_weight, stated)
    if X is None or y is None:
        raise BadInput("audit needs X and y, the rows and targets that the model was fitted to.")
    if isinstance(model, str | os.PathLike):
        model = model_files.load(model)
    parts = take_apart(model)
    final = parts.model
    rows = model.transform(X) if isinstance(model, OnnxModel) else parts.transform(X)
    numbers = inputs.rows(rows, "audit")[0].astype(np.float64)
    refuse_nonfinite(numbers)
    n = numbers.shape[0]
    weight = inputs.weights(sample_weight, n)
    several = np.ndim(getattr(final, "coef_", 0.0)) == 2 and not hasattr(final, "classes_")
    given = Given(n, objectives.targets(y, n, several), weight)
    if isinstance(final, tuple):
        if len(final) != 2:
            raise BadInput(
                f"Plain coefficients are a pair (coef, intercept), got a tuple of {len(final)}."
            )
        coef, intercept = final
        return plain.read("coefficients", coef, intercept, numbers, given, stated)
    if isinstance(final, OnnxModel):
        return final.read(numbers, given, stated)
    if liblinear_models.is_liblinear(final):
        return liblinear_models.read(final, numbers, given, stated)
    name = type(final).__name__
    if not hasattr(final, "coef_"):
        raise BadInput(
            f"audit needs a fitted linear model, got {name} without coef_{_cure(final)}."
        )
    if hasattr(final, "_verification_parts"):
        raise Refused(
            f"This {name} is a model of linsep: its certificate_ says how far it is from the optimum, and "
            "linsep.verify(model, X, y) recomputes that. audit is for models of other libraries."
        )
    stated.refuse_all_but((), name)
    if getattr(final, "classes_", None) is not None:
        plain.check_labels(np.asarray(final.classes_), given.y)
    problem = objective_of(final, given)
    W = objectives.split(problem, final.coef_, final.intercept_)
    return Subject(name, problem, W, numbers, given)
