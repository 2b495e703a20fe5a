"""Linear models for any loss: ``LinearClassifier`` and ``LinearRegressor``."""

from __future__ import annotations

import math
from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np
from sklearn.base import BaseEstimator, RegressorMixin, clone
from sklearn.utils.metaestimators import available_if

from linsep import data
from linsep.arrays import FloatArray
from linsep.certificates import target_units
from linsep.data import Location, location_of
from linsep.data.cluster import predict_lazily
from linsep.data.entrance import inputs, partitions
from linsep.estimators import fitting, parameters
from linsep.estimators.classification import Classification
from linsep.estimators.fitting import Subproblem
from linsep.estimators.keywords import ExplainsParameters, explain_keywords
from linsep.estimators.scoring import predicted_log_probabilities, predicted_probabilities, scores
from linsep.losses import Loss, zero_margin
from linsep.notebook import ShowsCertificate
from linsep.solvers.grid.problem import GridProblem
from linsep.train import Fit


class LinearClassifier(Classification):
    """Linear classifier for any loss of the margin, with a certificate of optimality.

    Two classes, y in {-1, +1}: minimise over w and b

        (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(y_i (x_i.w + b))

    The intercept is never penalised. Three or more classes: one such problem for each class
    against the others.

    Parameters
    ----------
    loss : str or Loss, default "logistic"
        A name in ``linsep.losses.NAMES``, one of scikit-learn's ("log_loss", "modified_huber", "squared_error"), or an
        instance of ``linsep.losses.Loss``.
    C : float, default 1.0
        Weight of the loss against the penalty, in (0, inf]: a small C means a strong penalty, inf means none.
    multiclass : {"ovr"}
        How three or more classes are treated: one-vs-rest.
    l1_ratio : float, default 0.0
        0: L2 penalty; 1: L1 (lasso); between: elastic net.
    penalty_factor : array (d,), dict {column: factor} or None
        Factor p_j >= 0 on the penalty of each feature, as ``penalty.factor`` of glmnet but without rescaling; 0 leaves
        a feature unpenalised. The penalty is sum_j p_j ((1 - l1_ratio)/2 w_j^2 + l1_ratio |w_j|).
    feature_groups : array of labels (d,), list of lists of feature numbers, dict {column: label} or None
        Groups of features that enter or leave the model together (group lasso; needs l1_ratio > 0): in place of |w_j|
        the penalty has sqrt(d_g) |w_g|_2 for each group g of d_g features, times its factor. Features in no list are
        groups of their own.
    fit_intercept : bool, default True
        Whether to fit the intercept b; otherwise it is 0.
    class_weight : dict {class: weight}, "balanced" or None
        Factor on the sample weights of each class; "balanced" gives all classes the same total weight.
    tol : float, default 1e-6
        Stop when the proven relative gap is at most ``tol``.
    solver : str, default "auto"
        "auto" picks the method that is predicted to be fastest. The page "How to choose a loss and a solver" lists all.
    time_limit, max_passes : float, optional
        Budget in seconds and in passes over the data. When it is spent, the fit ends with a valid certificate of the
        gap it has reached and a ``ConvergenceWarning``.
    n_threads : int, optional
        Number of threads; all processors by default. Results are bit-identical for any number.
    warm_start : bool, default False
        Start from the previous fit if it has the same classes and columns.
    random_state : int, RandomState or None
        Seed of solvers that draw at random; None means 0, so that results are reproducible.

    Attributes
    ----------
    coef_ : ndarray (1, d), or (k, d) for k >= 3 classes
        Coefficients w.
    intercept_ : ndarray (1,) or (k,)
        Intercept b.
    classes_ : ndarray (k,)
        Labels in sorted order; a positive score means ``classes_[1]``.
    certificate_ : Optimality
        Objective, proven lower bound, the gap between them, and the bound on |w - w*| it implies.
    n_passes_ : float
        Passes over the data.
    solver_ : str
        Solver used.
    trace_ : tuple of TraceRecord
        Passes, seconds, objective and lower bound during the fit.
    n_iter_ : ndarray of int (1,), or (k,) for one-vs-rest
        Passes over the data for each problem, rounded up.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of str
        Column names, if the rows came with them.

    Raises
    ------
    BadInput
        If X, y or a parameter is not usable; the message names it.
    SeparableData
        If ``C=inf`` and the classes are separable, so that there is no minimiser.
    Refused
        If the combination of loss, penalty and solver is not supported.

    See Also
    --------
    LogisticRegression : Logistic loss, also multinomial.
    LinearSVC : Hinge losses, with dual coefficients and support vectors.
    LinearRegressor : Numeric targets.
    losses : The losses, and how to write one.

    Notes
    -----
    ``s_i`` is the sample weight of row i times the weight of its class, 1 by default; a weight of 2 is equivalent to
    repeating the row.

    The certificate needs only the conjugate of the loss [1]_, so a loss of your own is certified like the others.

    References
    ----------
    .. [1] Boyd and Vandenberghe, Convex Optimization, 2004, chapter 5.

    Examples
    --------
    >>> from linsep import LinearClassifier
    >>> model = LinearClassifier("squared_hinge").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    """

    _schemes = ("ovr",)

    @explain_keywords
    def __init__(
        self,
        loss: str | Loss = "logistic",
        *,
        C: float = 1.0,
        multiclass: str = "ovr",
        l1_ratio: float = 0.0,
        penalty_factor: Any = None,
        feature_groups: Any = None,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-6,
        solver: str = "auto",
        time_limit: float | None = None,
        max_passes: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.multiclass = multiclass
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.solver = solver
        self.time_limit = time_limit
        self.max_passes = max_passes
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state

    @available_if(parameters.has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return P(class | x) of each row, one column for each of ``classes_``. The loss must have a link function."""
        return predicted_probabilities(self, X)

    @available_if(parameters.has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of ``predict_proba``."""
        return predicted_log_probabilities(self, X)

    def _two_class_loss(self) -> Loss:
        return parameters.classification_loss(self.loss)


class LinearRegressor(ExplainsParameters, ShowsCertificate, RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """Linear regression for any loss of the residual, with a certificate of optimality.

    Minimise over w and b, for real targets t

        (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(t_i - x_i.w - b)

    The intercept is never penalised. With C = inf, the default, there is no penalty; if the squared
    loss then has several minimisers, the one of minimum norm is returned.

    Parameters
    ----------
    loss : str or Loss, default "squared"
        "squared" r^2, "squared_error" r^2/2 (scikit-learn's name and factor in ``SGDRegressor``), "absolute" |r|,
        "huber", or an instance of ``linsep.losses.Loss``. With C = inf "absolute" is median regression; its fit passes
        through as many rows as there are coefficients.
    C : float, default inf
        Weight of the loss against the penalty, in (0, inf]: a small C means a strong penalty, inf means none.
    l1_ratio : float, default 0.0
        0: L2 penalty; 1: L1 (lasso); between: elastic net.
    penalty_factor : array (d,), dict {column: factor} or None
        Factor p_j >= 0 on the penalty of each feature, as ``penalty.factor`` of glmnet but without rescaling; 0 leaves
        a feature unpenalised. The penalty is sum_j p_j ((1 - l1_ratio)/2 w_j^2 + l1_ratio |w_j|).
    feature_groups : array of labels (d,), list of lists of feature numbers, dict {column: label} or None
        Groups of features that enter or leave the model together (group lasso; needs l1_ratio > 0): in place of |w_j|
        the penalty has sqrt(d_g) |w_g|_2 for each group g of d_g features, times its factor. Features in no list are
        groups of their own.
    fit_intercept : bool, default True
        Whether to fit the intercept b; otherwise it is 0.
    tol : float, default 1e-6
        Stop when the proven relative gap is at most ``tol``.
    solver : str, default "auto"
        "auto" picks the method that is predicted to be fastest. The page "How to choose a loss and a solver" lists all.
    time_limit, max_passes : float, optional
        Budget in seconds and in passes over the data. When it is spent, the fit ends with a valid certificate of the
        gap it has reached and a ``ConvergenceWarning``.
    n_threads : int, optional
        Number of threads; all processors by default. Results are bit-identical for any number.
    warm_start : bool, default False
        Start from the previous fit if it has the same columns.
    random_state : int, RandomState or None
        Seed of solvers that draw at random; None means 0, so that results are reproducible.

    Attributes
    ----------
    coef_ : ndarray (d,)
        Coefficients w.
    intercept_ : float
        Intercept b.
    n_iter_ : int
        Passes over the data, rounded up.
    certificate_ : Optimality
        Objective, proven lower bound, the gap between them, and the bound on |w - w*| it implies.
    n_passes_ : float
        Passes over the data.
    solver_ : str
        Solver used.
    trace_ : tuple of TraceRecord
        Passes, seconds, objective and lower bound during the fit.
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of str
        Column names, if the rows came with them.

    Raises
    ------
    BadInput
        If X, the targets or a parameter is not usable; the message names it.
    Refused
        If the combination of loss, penalty and solver is not supported.

    See Also
    --------
    LinearClassifier : Class labels.
    linsep.sklearn.Ridge : scikit-learn's signatures and objectives; also Lasso, QuantileRegressor and others.
    summary : Standard errors and p-values of least squares.

    Notes
    -----
    ``s_i`` is the sample weight of row i, 1 by default; a weight of 2 is equivalent to repeating the row.

    Losses made of lines (absolute, quantile) with C = inf are linear programmes. Their minimum is attained at a vertex:
    a fit that passes through as many rows as there are coefficients [1]_. The fit ends at a vertex where it can
    identify one, and within tol of the minimum otherwise. If several vertices are optimal, any of them may be returned.

    References
    ----------
    .. [1] Koenker, Quantile Regression, 2005, section 2.2.

    Examples
    --------
    >>> from linsep import LinearRegressor
    >>> model = LinearRegressor().fit([[0.0], [1.0], [2.0]], [1.0, 2.0, 4.0])
    >>> model.predict([[3.0]]).round(3)
    array([5.333])
    >>> X = [[0.0], [1.0], [2.0], [3.0], [4.0]]
    >>> median = LinearRegressor("absolute").fit(X, [1.0, 2.0, 3.0, 90.0, 5.0])
    >>> median.predict([[3.0]]).round(3)
    array([4.])
    """

    @explain_keywords
    def __init__(
        self,
        loss: str | Loss = "squared",
        *,
        C: float = math.inf,
        l1_ratio: float = 0.0,
        penalty_factor: Any = None,
        feature_groups: Any = None,
        fit_intercept: bool = True,
        tol: float = 1e-6,
        solver: str = "auto",
        time_limit: float | None = None,
        max_passes: float | None = None,
        n_threads: int | None = None,
        warm_start: bool = False,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.l1_ratio = l1_ratio
        self.penalty_factor = penalty_factor
        self.feature_groups = feature_groups
        self.fit_intercept = fit_intercept
        self.tol = tol
        self.solver = solver
        self.time_limit = time_limit
        self.max_passes = max_passes
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state

    def fit(
        self, X: Any, y: Any = None, sample_weight: Any = None, *, offset: Any = None
    ) -> LinearRegressor:
        """Minimise the objective and certify it.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or scan (n, d)
            Finite numbers. Float arrays in C order and CSR matrices are not copied. A scan (``linsep.scan``)
            is read from disk in every pass.
        y : array (n,)
            Finite targets. Optional if X is a scan with its own target.
        sample_weight : array (n,), optional
            Weight of each row, >= 0: weight 2 is equivalent to repeating the row, weight 0 to omitting it.
        offset : array (n,), optional
            Known part of the prediction of each row: the residual is y - x.w - b - offset, and the targets are the
            differences y - offset, rounded to float64. Pass it to ``verify`` too, and add it to the predictions.

        Returns
        -------
        self
        """
        recipe = parameters.recipe(self, parameters.regression_loss(self.loss))
        owner = type(self).__name__
        opened = data.open(
            X, y, sample_weight, owner, numbers=True, prefetch=partial(fitting.first_rows, recipe)
        )
        rows, names = opened.rows, opened.names
        recipe = parameters.for_features(self, recipe, rows.shape[1], names)
        part, weight = _subproblem(recipe.loss, opened, self, offset), opened.weights()
        start = fitting.warm_start_matrix(self, (rows.shape[1] + 1, 1))
        fits = fitting.solve(recipe, [part], 1, rows, names, weight, start)
        w, b = fits[0].W[:-1, 0].copy(), float(fits[0].W[-1, 0])
        own = {"coef_": w, "intercept_": b, "n_iter_": max(1, math.ceil(fits[0].n_passes))}
        own["_has_offset"] = offset is not None
        fitting.store(self, fits, names, **own, **opened.fitted)
        return self

    def predict(self, X: Any) -> FloatArray:
        """Predict the target x.w + b of each row."""
        if location_of(X) is Location.CLUSTER:
            return predict_lazily(self, "predict", X)  # type: ignore[no-any-return]
        return scores(self, X)[:, 0]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Return the weighted coefficient of determination R^2. A scan may contain y and the weights."""
        if location_of(X) is Location.CLUSTER:
            return partitions.r_squared(self, X, y, sample_weight)
        if location_of(X) is Location.DISK:
            y, sample_weight = X.given(y, sample_weight, type(self).__name__)
        return float(super().score(X, y, sample_weight))

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags

    def _read_targets(self, X: Any, y: Any) -> tuple[Any, Any, FloatArray]:
        """Return rows, column names and targets, read as ``fit`` reads them."""
        rows, names = inputs.rows_or_scan(X, type(self).__name__)
        return rows, names, inputs.targets(y, rows.shape[0], type(self).__name__)

    def _grid_problem(self, X: Any, y: Any, weight: FloatArray | None) -> GridProblem | None:
        """Return the problem that all models of a grid of C share, or None if each must be fitted separately."""
        if parameters.has_feature_penalties(self):
            return None
        recipe = parameters.recipe(self, parameters.regression_loss(self.loss))
        opened = data.open(X, y, weight, type(self).__name__, numbers=True)
        part, weight = _subproblem(recipe.loss, opened, self, None), opened.weights()
        if not target_units(recipe.loss, recipe.penalty, part.offset).plain:
            return None  # grids do not support rescaled targets
        return GridProblem(recipe, opened.rows, part.sigma, part.offset, weight)

    def _scoring_model(self, problem: GridProblem, fit: Fit) -> LinearRegressor:
        """Return a fitted model whose only feature is the prediction of another model: w = 1, b = 0."""
        judge: LinearRegressor = clone(self)
        fitting.store(judge, [fit], None, coef_=np.ones(1), intercept_=0.0, n_features_in_=1)
        return judge

    def _current_loss(self) -> Loss:
        """Return the loss that the current parameters specify."""
        return parameters.regression_loss(self.loss)

    def _verification_parts(
        self, X: Any, y: Any, sample_weight: Any, offset: Any = None
    ) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of a ``Part``, which an independent check needs."""
        owner = type(self).__name__
        fitting.need_offset(self, offset)
        opened = data.open(X, y, sample_weight, owner, numbers=True, model=self)
        part = _subproblem(self._fits[0].recipe.loss, opened, self, offset)
        yield from fitting.verification_parts(self, [part], opened.rows, opened.weights())


def _subproblem(loss: Any, opened: data.Opened, model: Any, offset: Any) -> Subproblem:
    """Return the regression as a subproblem with margins m = z + centre - t, so that centre - m is the residual t - z.

    The losses of linsep have centre 0. The user's offsets are added to z.
    """
    sigma, own = opened.regression(zero_margin(loss))
    if offset is not None:
        fitting.refuse_offset(model, opened)
        own = own + inputs.offsets(offset, opened.rows.shape[0])
    return Subproblem(loss, sigma, own)
