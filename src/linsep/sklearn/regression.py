"""scikit-learn's linear regressions, minimised by linsep."""

from __future__ import annotations

import math
import numbers
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn import linear_model
from sklearn.base import _fit_context
from sklearn.utils.validation import _check_sample_weight, check_array, validate_data

from linsep import certificates, sklearn_objectives
from linsep.arrays import FloatArray
from linsep.penalties import ElasticNet as ElasticNetPenalty
from linsep.sklearn import fitting, least_squares, ordinary
from linsep.sklearn.fitting import Delegated, Minimum
from linsep.sklearn_objectives import Given, Objective


def minimise_each(
    model: Any, X: Any, y: FloatArray, weight: FloatArray | None, tol: float
) -> Minimum:
    """Minimum for every column of the targets (n, k): W (d + 1, k), with one certificate per column."""
    fitting.need_arrays(X)
    fitting.need_weights(weight)
    X = X.tocsr() if sp.issparse(X) else X
    found = [
        fitting.minimise_proven(objective(model, column, weight), X, tol, dtype=X.dtype)
        for column in y.astype(np.float64, copy=False).T
    ]
    W = np.hstack([each.W for each in found])
    proof = certificates.combine([each.certificate for each in found])
    return Minimum(W, proof, max(each.passes for each in found))


def objective(model: Any, target: FloatArray, weight: FloatArray | None) -> Objective:
    """Objective of a model that is about to be fitted to one target."""
    given = Given(len(target), np.ascontiguousarray(target), weight)
    return sklearn_objectives.objective_of(model, given)


def earlier(model: Any) -> FloatArray | None:
    """Coefficients of a warm start; None without one."""
    if not model.warm_start or getattr(model, "coef_", None) is None:
        return None
    return np.append(np.ravel(model.coef_), np.ravel(getattr(model, "intercept_", 0.0)))


def at_minimum(before: FloatArray | None, model: Any) -> bool:
    """Return whether the warm start was already at the minimum, so that no iteration was needed."""
    if before is None:
        return False
    found = np.append(np.ravel(model.coef_), np.ravel(model.intercept_))
    return found.shape == before.shape and bool(np.allclose(found, before, rtol=1e-6, atol=1e-12))


def store(model: Any, found: Minimum, dtype: Any, targets: int | None) -> None:
    """Store coefficients, intercepts and certificate in scikit-learn's shapes; ``targets`` is None for a vector y."""
    coef, intercept = found.W[:-1].T.astype(dtype), found.W[-1].astype(dtype)
    model.coef_ = np.ascontiguousarray(coef if targets is not None else coef[0])
    model.intercept_ = 0.0
    if model.fit_intercept:
        model.intercept_ = intercept if targets is not None else intercept[0]
    model.certificate_ = found.certificate


def check_weight(sample_weight: Any, X: Any, **options: Any) -> FloatArray | None:
    """Sample weights checked by scikit-learn, as float64; None without weights."""
    if sample_weight is None:
        return None
    found = _check_sample_weight(sample_weight, X, dtype=X.dtype, **options)
    return np.asarray(found, dtype=np.float64)


class Minimised:
    """Mixin with ``fit`` for regressors that linsep validates and minimises itself, in ``_minimise``."""

    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Any:
        """Minimise scikit-learn's objective and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,), or (n_samples, n_targets) if the class supports several targets
        sample_weight : array-like of shape (n_samples,), default=None

        Returns
        -------
        self
        """
        if sample_weight is None and self._fit_ordinary(X, y):
            return self
        return self._fit_or_delegate(X, y, sample_weight)

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _fit_or_delegate(self, X: Any, y: Any, sample_weight: Any) -> Any:
        theirs = super().fit  # type: ignore[misc]
        return fitting.attempt(
            self,
            lambda: self._minimise(X, y, sample_weight),
            lambda: theirs(X, y, sample_weight),
        )

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit small data that need none of scikit-learn's checks; return False if they do, or if the fit fails."""
        return False

    def _minimise(self, X: Any, y: Any, sample_weight: Any) -> None:
        """Minimise and store, or raise Delegated."""
        raise NotImplementedError


class LinearRegression(Minimised, linear_model.LinearRegression):  # type: ignore[misc]
    """scikit-learn's ``LinearRegression`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.LinearRegression``. If the minimiser is not
    unique, the one of minimum norm is returned. scikit-learn drops singular values below ``tol`` times the largest, so
    it does not reach the minimum on ill-conditioned data; here ``tol`` affects only ``rank_``. linsep leaves
    ``positive=True`` to scikit-learn.

    See Also
    --------
    sklearn.linear_model.LinearRegression : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i (t_i - x_i.w - b)^2

    where ``s_i`` is the sample weight.

    Examples
    --------
    >>> from linsep.sklearn import LinearRegression
    >>> model = LinearRegression().fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.5])
    >>> model.certificate_.certified
    True
    """

    def _minimise(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.positive:
            raise Delegated("linsep does not support positive=True")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc", "coo"],
            y_numeric=True,
            multi_output=True,
        )
        X = as_floats(X)
        weight = check_weight(sample_weight, X, ensure_non_negative=True)
        fitting.need_weights(weight)
        Y = np.asarray(y, dtype=X.dtype).astype(np.float64).reshape(len(y), -1)
        if isinstance(X, np.ndarray):
            found = self._dense(X, Y, weight)
        else:
            none, free = np.zeros(Y.shape[1]), bool(self.fit_intercept)
            residual = 1e-2 * getattr(self, "tol", 1e-6)
            given = X, Y, weight, none, free
            found = least_squares.sparse_ridge(*given, least_squares.TOL, residual)
        if found is None:
            found = minimise_each(self, X, Y, weight, least_squares.TOL)
        store(self, found, X.dtype, None if y.ndim == 1 else Y.shape[1])

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        if not ordinary.targets(self, LinearRegression, X, y) or not np.isfinite(X).all():
            return False
        found = self._dense(X, y.reshape(-1, 1), None)
        if found is None:
            return False
        intercept = found.W[-1, 0] if self.fit_intercept else 0.0
        ordinary.store(self, X, found, coef_=found.W[:-1, 0].copy(), intercept_=intercept)
        return True

    def _dense(self, X: Any, Y: FloatArray, weight: FloatArray | None) -> Minimum | None:
        """Minimum-norm solution by decomposition, if it can be proven; sets ``rank_`` and ``singular_``."""
        free = bool(self.fit_intercept)
        found = least_squares.Centred(
            X.astype(np.float64, copy=False), Y, weight, free
        ).least_norm()
        if found is None:
            return None
        largest = found.singular.max(initial=0.0)
        self.rank_ = int(np.count_nonzero(found.singular > getattr(self, "tol", 1e-6) * largest))
        self.singular_ = found.singular.astype(X.dtype)
        if X.dtype != np.float64:
            return None
        none = np.zeros(Y.shape[1])
        return least_squares.proven(X, Y, weight, found.W, none, free)


class ElasticNet(linear_model.ElasticNet):  # type: ignore[misc]
    """scikit-learn's ``ElasticNet`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.ElasticNet``. ``max_iter`` is never reached, and
    ``selection``, ``random_state`` and ``warm_start`` have no effect: the minimum is the same. linsep leaves
    ``positive=True``, ``alpha=0``, ``max_iter`` below 10 and ``check_input=False`` to scikit-learn.

    See Also
    --------
    sklearn.linear_model.ElasticNet : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i (t_i - x_i.w - b)^2 / (2 S) + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)

    where ``s_i`` is the sample weight and ``S`` the sum of all.

    Examples
    --------
    >>> from linsep.sklearn import ElasticNet
    >>> model = ElasticNet(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    def fit(self, X: Any, y: Any, sample_weight: Any = None, check_input: bool = True) -> Any:
        """Minimise scikit-learn's objective and certify it.

        Parameters
        ----------
        X : {array-like, sparse matrix} of shape (n_samples, n_features)
        y : array-like of shape (n_samples,) or (n_samples, n_targets)
        sample_weight : float or array-like of shape (n_samples,), default=None
        check_input : bool, default=True
            False leaves the fit to scikit-learn.

        Returns
        -------
        self
        """
        if sample_weight is None and check_input is True and self._fit_ordinary(X, y):
            return self
        return self._fit_or_delegate(X, y, sample_weight, check_input)

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        """Fit small data that need none of scikit-learn's checks; return False if they do, or if the fit fails."""
        ratio, kind = self.l1_ratio, Lasso if isinstance(self, Lasso) else ElasticNet
        if type(ratio) not in (int, float) or not 0.0 < ratio <= 1.0:
            return False
        tol = fitting.gap_tolerance(self.tol)
        found = ordinary.minimise_targets(self, kind, X, y, tol, "l1_ratio")
        if found is None and ordinary.targets(self, kind, X, y, "l1_ratio", math.inf):
            found = self._on_working_set(X, y, tol)
        if found is None:
            return False
        ordinary.store(
            self,
            X,
            found,
            coef_=found.W[:-1, 0].copy(),
            intercept_=found.W[-1, 0] if self.fit_intercept else 0.0,
            n_iter_=fitting.iterations(found.passes, self.max_iter),
            dual_gap_=np.float64(found.certificate.gap),
        )
        return True

    @_fit_context(prefer_skip_nested_validation=True)  # type: ignore[untyped-decorator]
    def _fit_or_delegate(self, X: Any, y: Any, sample_weight: Any, check_input: bool) -> Any:
        return fitting.attempt(
            self,
            lambda: self._minimise(X, y, sample_weight, check_input),
            lambda: super(ElasticNet, self).fit(X, y, sample_weight, check_input),
        )

    def _minimise(self, X: Any, y: Any, sample_weight: Any, check_input: bool) -> None:
        if self.positive:
            raise Delegated("linsep does not support positive=True")
        if not check_input:
            raise Delegated("check_input=False is for scikit-learn's own solver")
        if self.alpha == 0:
            raise Delegated("alpha=0 is least squares, of which scikit-learn warns")
        fitting.need_iterations(self.max_iter)
        before = earlier(self)
        if not isinstance(self.precompute, bool | np.bool_):  # scikit-learn checks the Gram matrix
            super().fit(X, y, sample_weight, check_input)
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csr", "csc"],
            dtype=[np.float64, np.float32],
            multi_output=True,
            y_numeric=True,
        )
        y = check_array(y, dtype=X.dtype.type, ensure_2d=False)
        if isinstance(sample_weight, numbers.Number):
            sample_weight = None
        weight = check_weight(sample_weight, X)
        tol = fitting.gap_tolerance(self.tol, X.dtype)
        found = self._find_minimum(X, y.reshape(len(y), -1), weight, tol)
        k = found.W.shape[1]
        store(self, found, X.dtype, None if y.ndim == 1 else k)
        self.coef_: FloatArray = self.coef_.ravel() if k == 1 else self.coef_
        parts = found.certificate.parts or (found.certificate,)
        gaps = np.array([part.gap for part in parts], dtype=X.dtype)
        passes = fitting.iterations(found.passes, self.max_iter)
        passes = 0 if at_minimum(before, self) else passes
        self.n_iter_ = passes if k == 1 else [passes] * k
        self.dual_gap_ = gaps[0] if k == 1 else gaps

    def _find_minimum(
        self, X: Any, Y: FloatArray, weight: FloatArray | None, tol: float
    ) -> Minimum:
        """Find the minimum; dense rows use the methods of ``least_squares``."""
        found = None
        dense = isinstance(X, np.ndarray)
        if self.l1_ratio > 0.0 and dense and weight is None and Y.shape[1] == 1:
            found = self._on_working_set(X, Y[:, 0].astype(np.float64), tol)
        if self.l1_ratio == 0.0 and dense:
            mass = float(len(X)) if weight is None else float(weight.sum())
            alphas = np.full(Y.shape[1], self.alpha * mass)
            T = Y.astype(np.float64)
            free = bool(self.fit_intercept)
            found = least_squares.minimise_ridge(X, T, weight, alphas, free, small=0)
            unit = 0.5 / mass
            if found is not None:
                found = found._replace(certificate=fitting.in_units(found.certificate, unit))
        return minimise_each(self, X, Y, weight, tol) if found is None else found

    def _on_working_set(self, X: Any, target: FloatArray, tol: float) -> Minimum | None:
        """Minimum by coordinate descent on a working set of dense columns; None if the proof falls short."""
        problem = objective(self, target, None)
        penalty = ElasticNetPenalty(problem.C, problem.l1_ratio)
        found = least_squares.elastic_net(X, target, penalty, problem.fit_intercept, tol)
        if found is None:
            return None
        return found._replace(certificate=fitting.in_units(found.certificate, problem.unit))


class Lasso(ElasticNet, linear_model.Lasso):  # type: ignore[misc]
    """scikit-learn's ``Lasso`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.Lasso``. ``max_iter`` is never reached, and
    ``selection``, ``random_state`` and ``warm_start`` have no effect: the minimum is the same. linsep leaves
    ``positive=True``, ``alpha=0``, ``max_iter`` below 10 and ``check_input=False`` to scikit-learn.

    See Also
    --------
    sklearn.linear_model.Lasso : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i (t_i - x_i.w - b)^2 / (2 S) + alpha |w|_1

    where ``s_i`` is the sample weight and ``S`` the sum of all.

    Examples
    --------
    >>> from linsep.sklearn import Lasso
    >>> model = Lasso(alpha=0.1).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    _parameter_constraints = linear_model.Lasso._parameter_constraints
    __init__ = linear_model.Lasso.__init__


class QuantileRegressor(Minimised, linear_model.QuantileRegressor):  # type: ignore[misc]
    """scikit-learn's ``QuantileRegressor`` with a proof of optimality in ``certificate_``.

    Parameters and attributes are those of ``sklearn.linear_model.QuantileRegressor``. ``solver`` has no effect.
    linsep leaves ``solver_options`` and more than 6,000 features to scikit-learn.

    See Also
    --------
    sklearn.linear_model.QuantileRegressor : Parameters and attributes.
    linsep.LinearRegressor : With linsep's own parameters.

    Notes
    -----
    The objective is

        sum_i s_i pinball(t_i - x_i.w - b) / S + alpha |w|_1

    where ``s_i`` is the sample weight and ``S`` the sum of all. The pinball loss of a residual r is ``quantile r`` for
    ``r >= 0`` and ``(quantile - 1) r`` below.

    Examples
    --------
    >>> from linsep.sklearn import QuantileRegressor
    >>> model = QuantileRegressor(quantile=0.8, alpha=0.0).fit([[0.0], [1.0], [2.0]], [0.0, 1.0, 2.0])
    >>> model.certificate_.certified
    True
    """

    def _fit_ordinary(self, X: Any, y: Any) -> bool:
        if type(self.quantile) is not float or not 0.0 < self.quantile < 1.0:
            return False
        given = self, QuantileRegressor, X, y, least_squares.TOL
        found = ordinary.minimise_targets(*given, "quantile")
        if found is None:
            return False
        intercept = found.W[-1, 0] if self.fit_intercept else 0.0
        n_iter, coef = found.passes, found.W[:-1, 0].copy()
        ordinary.store(self, X, found, coef_=coef, intercept_=intercept, n_iter_=n_iter)
        return True

    def _minimise(self, X: Any, y: Any, sample_weight: Any) -> None:
        if self.solver_options is not None or self.solver == "interior-point":
            raise Delegated("solver_options and old solvers are for scipy's linprog")
        if sp.issparse(X) and not self.solver.startswith("highs"):
            raise Delegated(f"solver={self.solver!r} does not take sparse rows")
        X, y = validate_data(
            self,
            X,
            y,
            accept_sparse=["csc", "csr", "coo"],
            y_numeric=True,
            multi_output=False,
        )
        weight = np.asarray(_check_sample_weight(sample_weight, X), dtype=np.float64)
        kept = weight > 0.0
        X, y = as_floats(X), np.asarray(y, dtype=np.float64)
        if not kept.all():
            X, y, weight = X.tocsr()[kept] if sp.issparse(X) else X[kept], y[kept], weight[kept]
        plain = None if (weight == 1.0).all() else weight
        found = minimise_each(self, X, y.reshape(-1, 1), plain, least_squares.TOL)
        store(self, found, np.float64, None)
        self.n_iter_ = found.passes


def as_floats(X: Any) -> Any:
    """Convert X to floating point."""
    return X if X.dtype.kind == "f" else X.astype(np.float64)
