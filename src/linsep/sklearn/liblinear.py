"""Replacement of scikit-learn's calls of LIBLINEAR: classifiers and regressors with a penalised intercept."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.svm import _base as svm_base
from sklearn.utils.validation import _check_sample_weight

from linsep import sklearn_objectives
from linsep.sklearn import fitting
from linsep.sklearn.fitting import Delegated
from linsep.sklearn_objectives import Given


def fit_liblinear(model: Any, given: dict[str, Any]) -> tuple[Any, Any, Any]:
    """Minimise what ``_fit_liblinear`` is called for; return coefficients, intercept and iterations in its shapes."""
    X, y = given["X"], np.asarray(given["y"])
    fitting.need_arrays(X)
    fitting.need_iterations(given["max_iter"])
    weight = given["sample_weight"]
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64)
    classes = getattr(model, "classes_", None)
    if classes is None:
        fitting.need_weights(weight)
    else:
        _need_classes(given, classes, weight, y)
    problem = sklearn_objectives.objective_of(model, Given(X.shape[0], y, weight))
    minimise = fitting.minimise_proven if classes is None else fitting.minimise
    found = minimise(problem, X, fitting.gap_tolerance(given["tol"]))
    model.certificate_ = found.certificate
    passes = fitting.iterations(found.passes, given["max_iter"])
    n_iter = np.full(max(1, len(problem.parts)), passes, dtype=np.int32)
    intercept = found.W[-1].copy() if model.fit_intercept else 0.0
    return np.ascontiguousarray(found.W[:-1].T), intercept, n_iter


def _need_classes(given: dict[str, Any], classes: Any, weight: Any, y: Any) -> None:
    """Delegate what LIBLINEAR refuses, and classes without rows of positive weight, to scikit-learn."""
    if len(classes) < 2:
        raise Delegated("there is one class only")
    # raises for combinations of loss, penalty and dual that LIBLINEAR does not support
    svm_base._get_liblinear_solver_type(
        given["multi_class"], given["penalty"], given["loss"], given["dual"]
    )
    if not given["fit_intercept"] or weight is not None:
        fitting.need_weight(weight, sklearn_objectives.codes(classes, y), len(classes))
