"""What scikit-learn calls LIBLINEAR for: classifiers with a penalised intercept."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.svm import _base as svm_base
from sklearn.utils.validation import _check_sample_weight

from linsep import sklearn_objectives
from linsep.sklearn import fitting
from linsep.sklearn.fitting import Delegated, Minimum
from linsep.sklearn_objectives import Given


def minimise(model: Any, given: dict[str, Any]) -> tuple[Minimum, npt.NDArray[np.int32]]:
    """Minimise what ``_fit_liblinear`` was called for; the certificate goes to the model."""
    X, y = given["X"], np.asarray(given["y"])
    fitting.need_arrays(X)
    fitting.need_iterations(given["max_iter"])
    if len(model.classes_) < 2:
        raise Delegated("there is one class only")
    # refuses combinations of loss, penalty and dual that LIBLINEAR does not have
    svm_base._get_liblinear_solver_type(
        given["multi_class"], given["penalty"], given["loss"], given["dual"]
    )
    weight = given["sample_weight"]
    if weight is not None:
        weight = _check_sample_weight(weight, X, dtype=np.float64)
    codes = sklearn_objectives.codes(model.classes_, y)
    if not given["fit_intercept"] or weight is not None:
        fitting.need_weight(weight, codes, len(model.classes_))
    problem = sklearn_objectives.objective_of(model, Given(X.shape[0], y, weight))
    found = fitting.minimise(problem, X, fitting.gap_tolerance(given["tol"]))
    model.certificate_ = found.certificate
    passes = fitting.iterations(found.passes, given["max_iter"])
    return found, np.full(max(1, len(problem.parts)), passes, dtype=np.int32)
