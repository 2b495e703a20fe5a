"""scikit-learn's linear support vector classifier, minimised by linsep."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn import svm

from linsep import sklearn_objectives
from linsep.errors import LinsepError
from linsep.sklearn import fitting, liblinear
from linsep.sklearn_objectives import Given


class LinearSVC(svm.LinearSVC):  # type: ignore[misc]
    """scikit-learn's ``LinearSVC`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.svm.LinearSVC``: squared hinge by default, the intercept penalised
    as the coefficient of a column of value ``intercept_scaling``, classes one against the others or by Crammer and
    Singer. ``dual`` and ``random_state`` make no difference, ``max_iter`` is not reached, ``tol`` bounds the proven
    relative gap by its square.

    Examples
    --------
    >>> from linsep.sklearn import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> LinearSVC:
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
        routines = {"_fit_liblinear": self._liblinear}
        fitting.run(self, super().fit, routines, X, y, sample_weight=sample_weight)
        return self

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit small data that need none of scikit-learn's checks; False if these do, or cannot be fitted."""
        known = fitting.ordinary_labels(self, LinearSVC, X, y)
        if known is None:
            return False
        self.classes_ = known.classes
        try:
            problem = sklearn_objectives.objective_of(self, Given(len(y), y, None))
            found = fitting.minimise(problem, X, fitting.gap_tolerance(self.tol))
        except LinsepError:
            return False
        n_iter = fitting.iterations(found.passes, self.max_iter)
        fitting.store(self, X, found, n_iter_=n_iter)
        if not self.fit_intercept:
            self.intercept_ = 0.0
        return True

    def _liblinear(self, given: dict[str, Any]) -> tuple[Any, Any, Any]:
        """Minimise what ``_fit_liblinear`` is called for."""
        found, n_iter = liblinear.minimise(self, given)
        intercept = found.W[-1].copy() if self.fit_intercept else 0.0
        return np.ascontiguousarray(found.W[:-1].T), intercept, n_iter
