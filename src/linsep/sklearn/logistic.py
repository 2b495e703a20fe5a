"""scikit-learn's logistic regression, minimised by linsep."""

from __future__ import annotations

import functools
from dataclasses import replace
from numbers import Integral
from typing import Any

import numpy as np
from sklearn import linear_model

from linsep import sklearn_objectives
from linsep.arrays import FloatArray
from linsep.sklearn import fitting, ordinary
from linsep.sklearn.fitting import Delegated
from linsep.sklearn.liblinear import fit_liblinear
from linsep.sklearn_objectives import Given, Objective

Arguments = dict[str, Any]
#: Largest entry of X for which scikit-learn calls LIBLINEAR.
_LARGEST = 1e30
#: Solvers that support dense rows and an L2 penalty.
_SOLVERS = ("lbfgs", "liblinear", "newton-cg", "newton-cholesky", "sag", "saga")


class LogisticRegression(linear_model.LogisticRegression):  # type: ignore[misc]
    """scikit-learn's ``LogisticRegression`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.LogisticRegression``. ``solver`` matters only
    if it changes the objective: "liblinear" penalises the intercept, the others do not. ``max_iter`` is never
    reached (below 10 it leaves the fit to scikit-learn), and the relative gap to prove is 100 ``tol`` squared, kept
    between 1e-12 and 1e-6.

    See Also
    --------
    sklearn.linear_model.LogisticRegression : Parameters and attributes.
    linsep.LogisticRegression : With linsep's own parameters.

    Notes
    -----
    The objective is

        (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i log(1 + exp(-y_i (x_i.w + b)))

    where ``s_i`` is the sample weight; three or more classes have the multinomial loss.

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
        if sample_weight is None and self._fit_ordinary(X, y):
            return self
        routines = {
            "_logistic_regression_path": self._path,
            "_fit_liblinear": functools.partial(fit_liblinear, self),
        }
        fitting.run(self, super().fit, routines, X, y, sample_weight=sample_weight)
        return self

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit small data that need none of scikit-learn's checks; return False if they do, or if the fit fails."""
        if self.solver not in _SOLVERS:
            return False
        tol, liblinear = fitting.gap_tolerance(self.tol), self.solver == "liblinear"
        most = 2 if liblinear else None
        made = ordinary.minimise_classes(self, LogisticRegression, X, y, tol, "solver", most)
        if made is None:
            return False
        found, classes = made
        if liblinear and not np.abs(X).max() <= _LARGEST:
            return False
        n_iter = np.array([fitting.iterations(found.passes, self.max_iter)], dtype=np.int32)
        ordinary.store(self, X, found, classes_=classes, n_iter_=n_iter)
        if liblinear and not self.fit_intercept:
            self.intercept_ = 0.0
        return True

    def _path(self, given: Arguments) -> tuple[FloatArray, FloatArray, Any]:
        """Minimise the problem of a ``_logistic_regression_path`` call; for a single C, store the certificate."""
        if getattr(self, "_skl_callbacks", None):
            raise Delegated("callbacks follow the iterations of scikit-learn's solver")
        fitting.need_iterations(given["max_iter"])
        given = _with_classes(given)
        Cs = given["Cs"]
        Cs = np.logspace(-4, 4, Cs) if isinstance(Cs, Integral) else np.asarray(Cs, dtype=float)
        found = _along_path(given, Cs)
        if len(found) == 1:
            self.certificate_ = found[0].certificate
        passes = [fitting.iterations(each.passes, given["max_iter"]) for each in found]
        return _path_coefficients(given, found), Cs, np.array(passes, dtype=np.int32)


class LogisticRegressionCV(LogisticRegression, linear_model.LogisticRegressionCV):  # type: ignore[misc]
    """scikit-learn's ``LogisticRegressionCV``; ``certificate_`` proves the refitted model.

    Parameters and attributes are those of ``sklearn.linear_model.LogisticRegressionCV``. Every model of the grid is
    fitted to the minimum of its objective. With ``refit=False`` the coefficients are a mean over the folds, which
    minimises nothing, and there is no certificate.

    See Also
    --------
    sklearn.linear_model.LogisticRegressionCV : Parameters and attributes.
    linsep.LogisticRegressionCV : With linsep's own parameters.

    Notes
    -----
    Every model minimises

        (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i log(1 + exp(-y_i (x_i.w + b)))

    where ``s_i`` is the sample weight; three or more classes have the multinomial loss.

    Examples
    --------
    >>> from linsep.sklearn import LogisticRegressionCV
    >>> model = LogisticRegressionCV(
    ...     Cs=[0.1, 1.0], cv=2, l1_ratios=(0.0,), scoring="accuracy", use_legacy_attributes=False
    ... ).fit([[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, **params: Any) -> LogisticRegressionCV:
        """Choose C and l1_ratio by cross-validation, refit and certify.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,)
        sample_weight : array-like of shape (n_samples,), default=None
        **params : dict
            Parameters for the splitter and the scorer.

        Returns
        -------
        self
        """
        fit = super(LogisticRegression, self).fit
        given = {"sample_weight": sample_weight, **params}
        routines = {"_logistic_regression_path": self._path}
        fitting.run(self, fit, routines, X, y, through=("_log_reg_scoring_path",), **given)
        if not self.refit:
            fitting.forget(self)
        return self


def _along_path(given: Arguments, Cs: FloatArray) -> list[fitting.Minimum]:
    """Minima for all C: fitted together if there is a grid engine for it, otherwise each warm-started from the last."""
    X, problem = given["X"], _problem(given, float(Cs[0]))
    tol = fitting.gap_tolerance(given["tol"], X.dtype)
    if len(Cs) > 1:
        together = fitting.minimise_grid(problem, X, Cs, tol)
        if together is not None:
            return together
    start = None if given["coef"] is None else _start(given)
    found = []
    for C in Cs.tolist():
        found.append(fitting.minimise(replace(problem, C=C), X, tol, start, X.dtype))
        start = found[-1].W
    return found


def _with_classes(given: Arguments) -> Arguments:
    """Arguments in the form of scikit-learn 1.8 and later; earlier versions pass a scheme instead of the classes."""
    if "pos_class" not in given:
        return given
    classes, scheme = np.unique(given["y"]), given["multi_class"]
    if scheme == ("ovr" if len(classes) > 2 else "multinomial"):
        raise Delegated(f"multi_class={scheme!r} of {len(classes)} classes is not solved by linsep")
    return {**given, "classes": classes}


def _problem(given: Arguments, C: float) -> Objective:
    """Objective of ``_logistic_regression_path`` for one C."""
    fitting.need_arrays(given["X"])
    if given["solver"] == "liblinear" and len(given["classes"]) > 2:
        raise Delegated("LIBLINEAR takes two classes")
    penalty, ratio = given["penalty"], given["l1_ratio"]
    scaling = float(given["intercept_scaling"]) if given["solver"] == "liblinear" else 0.0
    known = _rows_of(given)
    codes = sklearn_objectives.codes(given["classes"], known.y)
    if given["fit_intercept"] and not scaling:
        fitting.need_weight(known.weight, codes, len(given["classes"]))
    return sklearn_objectives.logistic(
        given["classes"],
        known,
        np.inf if penalty is None else C,
        {"l1": 1.0, "elasticnet": ratio}.get(penalty, 0.0),
        fit_intercept=bool(given["fit_intercept"]),
        intercept_scaling=scaling,
        class_weight=given["class_weight"],
    )


def _start(given: Arguments) -> FloatArray:
    """Initial coefficients, (d + 1, k)."""
    rows = np.atleast_2d(np.asarray(given["coef"], dtype=float))
    if not given["fit_intercept"]:
        rows = np.column_stack([rows, np.zeros(len(rows))])
    return np.ascontiguousarray(rows.T)


def _path_coefficients(given: Arguments, found: list[fitting.Minimum]) -> FloatArray:
    """Coefficients for all C in the shape that ``_logistic_regression_path`` returns."""
    columns = slice(None) if given["fit_intercept"] else slice(None, -1)
    rows = [each.W.T[:, columns].astype(given["X"].dtype) for each in found]
    return np.array([each[0] if len(each) == 1 else each for each in rows])


def _rows_of(given: Arguments) -> Given:
    weight = given["sample_weight"]
    if weight is not None:
        weight = np.asarray(weight, dtype=float)
    return Given(given["X"].shape[0], np.asarray(given["y"]), weight)
