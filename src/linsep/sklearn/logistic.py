"""scikit-learn's logistic regression, minimised by linsep."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import linear_model

from linsep import sklearn_objectives
from linsep.sklearn import fitting
from linsep.sklearn.fitting import Delegated
from linsep.sklearn_objectives import FloatArray, Given, Objective

Arguments = dict[str, Any]


class LogisticRegression(linear_model.LogisticRegression):  # type: ignore[misc]
    """scikit-learn's ``LogisticRegression`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.LogisticRegression``. ``solver`` decides only what it
    decides about the objective: "liblinear" penalises the intercept, the others do not. ``max_iter`` is not reached,
    ``tol`` bounds the proven relative gap by its square.

    Examples
    --------
    >>> from linsep.sklearn import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LogisticRegression:
        """Minimise scikit-learn's objective and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        routines = {"_logistic_regression_path": self._path, "_fit_liblinear": self._liblinear}
        fit = linear_model.LogisticRegression.fit
        fitting.run(self, fit, routines, X, y, sample_weight=sample_weight)
        return self

    def _path(self, given: Arguments) -> tuple[FloatArray, FloatArray, Any]:
        """``_logistic_regression_path`` for one C."""
        if getattr(self, "_skl_callbacks", None):
            raise Delegated("callbacks are told of the iterations of scikit-learn's solver")
        problem = path_problem(given, float(given["Cs"][0]))
        tol, dtype = fitting.gap_tolerance(given["tol"], given["X"].dtype), given["X"].dtype
        start = None if given["coef"] is None else path_start(given)
        found = fitting.minimise(problem, given["X"], tol, start, dtype)
        self.certificate_ = found.certificate
        n_iter = np.array([fitting.iterations(found.passes, given["max_iter"])], dtype=np.int32)
        return path_coefficients(given, [found.W]), np.asarray(given["Cs"], dtype=float), n_iter

    def _liblinear(self, given: Arguments) -> tuple[FloatArray, Any, Any]:
        """``_fit_liblinear`` for two classes."""
        X = given["X"]
        fitting.need_arrays(X)
        problem = sklearn_objectives.objective_of(self, _given(given))
        tol = fitting.gap_tolerance(given["tol"])
        found = fitting.minimise(problem, X, tol)
        self.certificate_ = found.certificate
        n_iter = np.array([fitting.iterations(found.passes, given["max_iter"])], dtype=np.int32)
        intercept = found.W[-1].copy() if self.fit_intercept else 0.0
        return np.ascontiguousarray(found.W[:-1].T), intercept, n_iter


def path_problem(given: Arguments, C: float) -> Objective:
    """The objective of ``_logistic_regression_path`` for one C."""
    fitting.need_arrays(given["X"])
    if "pos_class" in given:
        raise Delegated("one-vs-rest inside the path is that of scikit-learn before 1.8")
    penalty, ratio = given["penalty"], given["l1_ratio"]
    liblinear = given["solver"] == "liblinear"
    return sklearn_objectives.logistic(
        given["classes"],
        _given(given),
        np.inf if penalty is None else C,
        {"l1": 1.0, "elasticnet": ratio}.get(penalty, 0.0),
        fit_intercept=bool(given["fit_intercept"]),
        intercept_scaling=float(given["intercept_scaling"]) if liblinear else 0.0,
        class_weight=given["class_weight"],
    )


def path_start(given: Arguments) -> FloatArray:
    """Coefficients to begin with, (d + 1, k)."""
    rows = np.atleast_2d(np.asarray(given["coef"], dtype=float))
    if not given["fit_intercept"]:
        rows = np.column_stack([rows, np.zeros(len(rows))])
    return np.ascontiguousarray(rows.T)


def path_coefficients(given: Arguments, found: list[FloatArray]) -> FloatArray:
    """Coefficients for all C in the shape that ``_logistic_regression_path`` returns."""
    columns = slice(None) if given["fit_intercept"] else slice(None, -1)
    rows = [W.T[:, columns].astype(given["X"].dtype) for W in found]
    return np.array([each[0] if len(each) == 1 else each for each in rows])


def _given(given: Arguments) -> Given:
    weight = given["sample_weight"]
    if weight is not None:
        weight = np.asarray(weight, dtype=float)
    return Given(given["X"].shape[0], np.asarray(given["y"]), weight)
