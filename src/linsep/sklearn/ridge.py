"""scikit-learn's ridge regression and classification, for one or several targets, minimised by linsep."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.linear_model._ridge import _BaseRidge
from sklearn.preprocessing import LabelBinarizer
from sklearn.utils.validation import _check_sample_weight

from linsep import losses, sklearn_objectives
from linsep.sklearn import fitting, least_squares, ordinary
from linsep.sklearn.fitting import Delegated, Minimum
from linsep.sklearn_objectives import Objective, Part

#: Solvers of scikit-learn that fit an intercept to sparse rows.
_SPARSE = ("auto", "lsqr", "sag", "sparse_cg")
#: ``tol`` above which scikit-learn warns about solver="sag" with an intercept on sparse rows.
_WARNS = 1e-4
#: Solvers of scikit-learn that report iterations.
_ITERATIVE = ("lsqr", "sag", "saga")
#: Relative gap to prove by linsep's own solvers; on small data, loose enough for the fastest proof despite rounding.
_GAP = 1e-8
#: scikit-learn's class, even if ``linsep.accel`` later replaces it in ``sklearn.linear_model``.
_RIDGE = linear_model.Ridge


class MinimisedRidge(_BaseRidge):  # type: ignore[misc]
    """Step of ``Ridge.fit`` and ``RidgeClassifier.fit`` after their validation.

    Both end in ``super().fit(X, y, sample_weight)``, which resolves to this ``fit`` in a class that inherits from both.
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Minimise sum s_i (t_i - x_i.w - b)^2 + alpha |w|^2 for each target, and certify it."""
        return fitting.attempt(
            self,
            lambda: self._minimise(X, y, sample_weight),
            lambda: super(MinimisedRidge, self).fit(X, y, sample_weight=sample_weight),
        )

    def _minimise(self, X: Any, y: Any, sample_weight: Any) -> None:
        fitting.need_arrays(X)
        fitting.need_iterations(self.max_iter)
        if self.positive or self.solver == "lbfgs":
            raise Delegated("linsep does not support positive=True")
        if sp.issparse(X) and self.fit_intercept and self.solver not in _SPARSE:
            raise Delegated(f"solver={self.solver!r} fits no intercept to sparse rows")
        if sp.issparse(X) and self.fit_intercept and self.solver == "sag" and self.tol > _WARNS:
            raise Delegated("scikit-learn warns of solver='sag' on sparse rows")
        if sample_weight is not None:
            sample_weight = _check_sample_weight(sample_weight, X, dtype=X.dtype)
            sample_weight = None if (sample_weight == 1.0).all() else sample_weight
        targets = np.asarray(y, dtype=float).reshape(len(y), -1)
        problem = ridge(targets, sample_weight, self.alpha, bool(self.fit_intercept))
        alphas = np.broadcast_to(np.ravel(np.asarray(self.alpha, float)), targets.shape[1:])
        given = targets, problem.parts[0].weight, alphas, problem.fit_intercept
        if isinstance(X, np.ndarray):
            found = least_squares.minimise_ridge(X, *given)
        else:
            gap = fitting.gap_tolerance(self.tol)
            found = least_squares.sparse_ridge(X, *given, gap, self.tol)
        if found is None:
            gap = _GAP if X.dtype == np.float64 else fitting.gap_tolerance(self.tol, X.dtype)
            found = fitting.minimise(problem, X, gap, dtype=X.dtype)
        self._keep(found, X, np.ndim(y) == 1)

    def _keep(self, found: Minimum, X: Any, flat: bool) -> None:
        """Store the coefficients; ``flat`` means that y is a vector."""
        coef, intercept = found.W[:-1].T.astype(X.dtype), found.W[-1].astype(X.dtype)
        k = len(coef)
        self.coef_ = coef[0] if flat or (k == 1 and _flattens()) else coef
        self.intercept_ = intercept[0] if flat else intercept
        if not self.fit_intercept:
            self.intercept_ = 0.0
        auto = "sparse_cg" if sp.issparse(X) else "cholesky"
        self.solver_ = auto if self.solver == "auto" else self.solver
        passes = fitting.iterations(found.passes, self.max_iter)
        counts = self.solver_ in _ITERATIVE
        self.n_iter_ = np.full(k, passes, dtype=np.int32) if counts else None
        self.certificate_ = found.certificate


@functools.cache
def _flattens() -> bool:
    """Return whether this version of scikit-learn returns the coefficients of a single target column as a vector."""
    return bool(_RIDGE().fit([[0.0], [1.0]], [[0.0], [1.0]]).coef_.ndim == 1)


def _is_small(X: Any) -> bool:
    """Return whether linsep's native fit is faster than a LAPACK factorisation."""
    return type(X) is np.ndarray and X.size <= least_squares.SMALL


def ridge(targets: Any, weight: Any, alpha: Any, fit_intercept: bool) -> Objective:
    """Objective of ``Ridge`` for each column of the targets; ``alpha`` may differ between targets."""
    k = targets.shape[1]
    alphas = np.ravel(np.asarray(alpha, dtype=float))
    if len(alphas) not in (1, k):
        raise Delegated("alpha has neither one entry nor one for each target")
    if weight is not None:
        weight = np.asarray(weight, dtype=float)
        if not weight.min(initial=0.0) >= 0.0:
            raise Delegated("with negative sample weights the objective is not convex")
    parts = tuple(Part(target=np.ascontiguousarray(t), weight=weight) for t in targets.T)
    loss = losses.Squared().for_targets()
    return sklearn_objectives.ridge(loss, parts, alphas.tolist(), fit_intercept)


class Ridge(linear_model.Ridge, MinimisedRidge):  # type: ignore[misc]
    """scikit-learn's ``Ridge`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.Ridge``. linsep leaves ``positive=True`` and
    ``max_iter`` below 10 to scikit-learn; otherwise ``solver``, ``max_iter`` and ``random_state`` have no effect.

    See Also
    --------
    sklearn.linear_model.Ridge : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i (t_i - x_i.w - b)^2 + alpha |w|^2

    where ``s_i`` is the sample weight.

    Examples
    --------
    >>> from linsep.sklearn import Ridge
    >>> model = Ridge().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Ridge:
        """Minimise scikit-learn's objective and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        found = None
        if sample_weight is None and _is_small(X):
            found = ordinary.minimise_targets(self, Ridge, X, y, _GAP)
        if found is None:
            super().fit(X, y, sample_weight)
        else:
            self.n_features_in_ = X.shape[1]
            self._keep(found, X, flat=True)
            fitting.forget(self, "feature_names_in_")
        return self


class RidgeClassifier(linear_model.RidgeClassifier, MinimisedRidge):  # type: ignore[misc]
    """scikit-learn's ``RidgeClassifier`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.RidgeClassifier``. linsep leaves ``positive=True``
    and ``max_iter`` below 10 to scikit-learn; otherwise ``solver`` has no effect.

    See Also
    --------
    sklearn.linear_model.RidgeClassifier : Parameters and attributes.
    linsep.LinearClassifier : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i (t_i - x_i.w - b)^2 + alpha |w|^2

    where ``s_i`` is the sample weight and ``t_i`` is +1 or -1; three or more classes are fitted one-vs-rest.

    Examples
    --------
    >>> from linsep.sklearn import RidgeClassifier
    >>> model = RidgeClassifier().fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> RidgeClassifier:
        """Minimise scikit-learn's objective and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_labels)
        sample_weight : float or array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        if not (sample_weight is None and self._fit_ordinary(X, y)):
            super().fit(X, y, sample_weight)
        return self

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit data that need none of scikit-learn's checks; return False if they do, or if the fit fails."""

        def factorise(problem: Objective) -> Minimum | None:
            Y = np.column_stack([np.asarray(part.sign) for part in problem.parts])
            alphas = np.full(Y.shape[1], float(self.alpha))
            return least_squares.minimise_ridge(X, Y, None, alphas, problem.fit_intercept)

        large = None if _is_small(X) else factorise
        made = ordinary.minimise_classes(self, RidgeClassifier, X, y, _GAP, large=large)
        if made is None:
            return False
        found, classes = made
        self.n_features_in_ = X.shape[1]
        self._label_binarizer = encoder = LabelBinarizer(neg_label=-1, pos_label=1)
        encoder.classes_, encoder.sparse_input_ = classes, False
        encoder.y_type_ = "binary" if len(classes) == 2 else "multiclass"
        if not isinstance(getattr(type(self), "classes_", None), property):
            self.classes_ = classes  # scikit-learn before 1.8 reads them from the binarizer
        self._keep(found, X, flat=False)
        fitting.forget(self, "feature_names_in_")
        return True
