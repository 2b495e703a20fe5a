"""scikit-learn's linear support vector machines, minimised by linsep."""

from __future__ import annotations

from typing import Any

from sklearn import svm

from linsep.sklearn import fitting, ordinary
from linsep.sklearn.fitting import Delegated
from linsep.sklearn.liblinear import fit_liblinear


class _ByLiblinear:
    """Mixin with ``fit`` for the classes that scikit-learn fits by LIBLINEAR."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
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
        if sample_weight is not None or not self._fit_ordinary(X, y):
            routines = {"_fit_liblinear": self._liblinear}
            theirs = super().fit  # type: ignore[misc]
            fitting.run(self, theirs, routines, X, y, sample_weight=sample_weight)
        return self

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit small data that need none of scikit-learn's checks; return False if they do, or if the fit fails."""
        raise NotImplementedError

    def _liblinear(self, given: dict[str, Any]) -> tuple[Any, Any, Any]:
        return fit_liblinear(self, given)


class LinearSVC(_ByLiblinear, svm.LinearSVC):  # type: ignore[misc]
    """scikit-learn's ``LinearSVC`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.svm.LinearSVC``. ``dual`` and ``random_state`` have no effect,
    ``max_iter`` is never reached (below 10 it leaves the fit to scikit-learn), and the relative gap to prove is 100
    ``tol`` squared, kept between 1e-12 and 1e-6.

    See Also
    --------
    sklearn.svm.LinearSVC : Parameters and attributes.
    linsep.LinearSVC : With linsep's own parameters.

    Notes
    -----
    With the default parameters the objective is

        1/2 (|w|^2 + b^2) + C sum_i s_i max(0, 1 - y_i (x_i.w + b))^2

    where ``s_i`` is the sample weight. The intercept is penalised as the coefficient of a column of value
    ``intercept_scaling``. Three or more classes are fitted one-vs-rest, or by Crammer and Singer.

    Examples
    --------
    >>> from linsep.sklearn import LinearSVC
    >>> model = LinearSVC().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        also = "loss" if self.loss == "hinge" else ""
        tol = fitting.gap_tolerance(self.tol)
        made = ordinary.minimise_classes(self, LinearSVC, X, y, tol, also)
        if made is None:
            return False
        found, classes = made
        n_iter = fitting.iterations(found.passes, self.max_iter)
        ordinary.store(self, X, found, classes_=classes, n_iter_=n_iter)
        if not self.fit_intercept:
            self.intercept_ = 0.0
        return True


class LinearSVR(_ByLiblinear, svm.LinearSVR):  # type: ignore[misc]
    """scikit-learn's ``LinearSVR`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.svm.LinearSVR``. ``dual`` and ``random_state`` have no effect, nor
    has ``max_iter``, except that a value below 10 leaves the fit to scikit-learn.

    See Also
    --------
    sklearn.svm.LinearSVR : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    With the default parameters the objective is

        1/2 (|w|^2 + b^2) + C sum_i s_i max(0, |t_i - x_i.w - b| - epsilon)

    where ``s_i`` is the sample weight. The intercept is penalised as the coefficient of a column of value
    ``intercept_scaling``.

    Examples
    --------
    >>> from linsep.sklearn import LinearSVR
    >>> model = LinearSVR().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        found = ordinary.minimise_targets(self, LinearSVR, X, y, fitting.gap_tolerance(self.tol))
        if found is None:
            return False
        n_iter = fitting.iterations(found.passes, self.max_iter)
        ordinary.store(self, X, found, coef_=found.W[:-1, 0].copy(), n_iter_=n_iter)
        if not self.fit_intercept:
            self.intercept_ = 0.0
        return True

    def _liblinear(self, given: dict[str, Any]) -> tuple[Any, Any, Any]:
        if self.epsilon < 0:
            raise Delegated("scikit-learn raises the error for a negative epsilon")
        return fit_liblinear(self, given)
