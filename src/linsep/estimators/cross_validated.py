"""Estimators that choose C by cross-validation: ``fit`` calls ``tune``."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar, TypeVar

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput
from linsep.estimators.classification import Classification
from linsep.estimators.keywords import explain_keywords
from linsep.estimators.logistic import LogisticRegression
from linsep.estimators.svm import LinearSVC
from linsep.losses import CoupledLoss, Loss
from linsep.tuning import Tuning, tune
from linsep.tuning.results import cv_results
from linsep.tuning.scoring import ERROR, resolve

_CHOICES = frozenset({"Cs", "l1_ratios", "cv", "scoring", "rule"})


Chosen = TypeVar("Chosen", bound="_Choosing")


class _Choosing(Classification):
    """Base of the estimators that tune C: the tuned estimator, ``fit`` and ``score``."""

    _plain: ClassVar[type[Classification]]

    def fit(
        self: Chosen,
        X: Any,
        y: Any = None,
        sample_weight: Any = None,
        groups: Any = None,
        *,
        offset: None = None,
    ) -> Chosen:
        """Choose C by cross-validation, then fit all rows with it.

        Parameters
        ----------
        X, y, sample_weight
            Rows, class labels and weights, as in ``LogisticRegression.fit``.
        groups : array (n,), optional
            For splitters that keep groups together.
        offset : None
            Not supported; fit ``LogisticRegression`` with a fixed C.

        Returns
        -------
        self
        """
        if offset is not None:
            raise BadInput(
                f"{type(self).__name__} has no offset: fit {self._plain.__name__}(C=...) with it, for each C."
            )
        tuning = tune(
            self._unchosen(),
            X,
            y,
            self.Cs,
            l1_ratios=getattr(self, "l1_ratios", None),
            cv=self.cv,
            scoring=self.scoring,
            rule=self.rule,
            sample_weight=sample_weight,
            groups=groups,
            random_state=self.random_state,
            keep=True,
        )
        fitted = vars(tuning.best_estimator_)
        state: dict[str, Any] = self.__dict__
        state.pop("feature_names_in_", None)
        state.update({k: v for k, v in fitted.items() if k.endswith("_") or k.startswith("_")})
        for name in ("l1_ratio_", "l1_ratios_"):
            state.pop(name, None)
        state.update(C_=tuning.best_C, Cs_=tuning.curve.Cs)
        if tuning.by_l1_ratio:
            state.update(l1_ratio_=tuning.best_l1_ratio, l1_ratios_=np.array([*tuning.by_l1_ratio]))
            every = [_by_fold(one, self.fit_intercept) for one in tuning.by_l1_ratio.values()]
            scores, paths = (np.stack(arrays, axis=1) for arrays in zip(*every, strict=True))
        else:
            scores, paths = _by_fold(tuning, self.fit_intercept)
        slim = {r: replace(t, coefs=None, intercepts=None) for r, t in tuning.by_l1_ratio.items()}
        tuning = replace(tuning, coefs=None, intercepts=None, by_l1_ratio=slim)
        state.update(scores_=scores, coefs_paths_=paths, tuning_=tuning)
        return self

    @property
    def cv_results_(self) -> dict[str, Any]:
        """Scores of the whole grid with the keys of scikit-learn's ``GridSearchCV``; greater is better."""
        if "scores_" not in vars(self):
            raise AttributeError("cv_results_: not fitted yet; call fit first.")
        params = [{"C": float(C)} for C in self.Cs_]
        if "l1_ratios_" in vars(self):
            params = [{**one, "l1_ratio": float(r)} for r in self.l1_ratios_ for one in params]
        return cv_results(params, self.scores_.reshape(len(self.scores_), -1).T)

    def _unchosen(self) -> Classification:
        """Return the estimator that is tuned, with the default C."""
        return self._plain(
            **{k: v for k, v in self.get_params(deep=False).items() if k not in _CHOICES}
        )

    def _current_loss(self) -> Loss | CoupledLoss:
        return self._unchosen().set_params(C=self.C_)._loss_for(len(self.classes_))  # type: ignore[no-any-return]

    def score(self, X: Any, y: Any = None, sample_weight: Any = None) -> float:
        """Score the predictions by ``scoring``, greater is better: minus the log-loss, or accuracy for "error".

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.

        Returns
        -------
        float
        """
        chosen = resolve(self.scoring, regression=False)
        if chosen is ERROR:
            return float(super().score(X, y, sample_weight))
        value = chosen.of(self, X, np.asarray(y), sample_weight)
        return value if chosen.greater_is_better else -value


def _by_fold(tuning: Tuning, fit_intercept: bool) -> tuple[FloatArray, FloatArray]:
    """Return scores (folds, c), greater is better, and coefficients (folds, c, k, d), with intercepts (..., d + 1)."""
    assert tuning.coefs is not None and tuning.intercepts is not None
    paths = np.moveaxis(tuning.coefs, 1, 0)
    if fit_intercept:
        paths = np.concatenate([paths, np.moveaxis(tuning.intercepts, 1, 0)[..., None]], axis=-1)
    return np.ascontiguousarray(tuning.curve.utilities.T), paths


class LogisticRegressionCV(_Choosing, LogisticRegression):
    """Logistic regression whose C is chosen by cross-validation; every model of the grid is certified.

    Parameters
    ----------
    Cs : int or array of floats, default 10
        The values to try, or how many from 1e-4 to 1e4 on a logarithmic scale.
    l1_ratios : array of floats or None
        Values of ``l1_ratio`` to try with every C, on the same folds; None leaves it at ``l1_ratio``.
    cv : int, scikit-learn splitter or list of (train, held out) pairs, default 5
        Stratified folds for an int; shuffled if ``random_state`` is given.
    scoring : {"error", "log_loss", "auc"}, scikit-learn scorer or None
        Score on held-out rows; None means "error".
    rule : {"best", "one_standard_error"}
        The best mean score, or the smallest C within one standard error of it.
    multiclass : {"multinomial", "ovr"}
        How three or more classes are treated.
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
        Budget in seconds for the whole grid, and in passes over the data for each of its models. When it is spent, the
        fit ends with valid certificates of the gaps it has reached and a ``ConvergenceWarning``.
    n_threads : int, optional
        Number of threads; all processors by default. Results are bit-identical for any number.
    warm_start : bool, default False
        Start from the previous fit if it has the same classes and columns.
    random_state : int, RandomState or None
        Seed of solvers that draw at random; None means 0. If it is given, folds are shuffled with it.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray (c,)
        Values of C, in increasing order.
    l1_ratio_, l1_ratios_ : float and ndarray (r,)
        The chosen ``l1_ratio`` and those that were tried, in increasing order; only with ``l1_ratios``.
    scores_ : ndarray (folds, c), or (folds, r, c) with ``l1_ratios``
        Held-out scores, greater is better: accuracy for "error", minus the log-loss for "log_loss".
    coefs_paths_ : ndarray (folds, c, classes or 1, d + 1), or (folds, r, c, classes or 1, d + 1)
        Coefficients of every model of the grid, the intercept last (without one, d).
    cv_results_ : dict
        ``scores_`` as scikit-learn's ``GridSearchCV`` tabulates them.
    tuning_ : Tuning
        Curve, certificates of the whole grid, timings.
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
    tune : The same choice for any estimator or pipeline, with test rows.
    LogisticRegression : A fixed C.

    Notes
    -----
    The objective is that of ``LogisticRegression``. All folds and values of C are fitted together,
    and every model is certified on its own objective.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from linsep import LogisticRegressionCV
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> model = LogisticRegressionCV(Cs=[0.01, 1.0, 100.0]).fit(X, y)
    >>> model.tuning_.certified
    True
    """

    _plain = LogisticRegression

    # A model file contains the chosen model, the scores and the coefficients of the grid, but not the whole search.
    _not_saved = ("tuning_",)

    @explain_keywords
    def __init__(
        self,
        Cs: Any = 10,
        *,
        l1_ratios: Any = None,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        multiclass: str = "multinomial",
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
        self.Cs = Cs
        self.l1_ratios = l1_ratios
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
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


class LinearSVCCV(_Choosing, LinearSVC):
    """Linear support vector machine whose C is chosen by cross-validation; every model of the grid is certified.

    Parameters
    ----------
    Cs : int or array of floats, default 10
        The values to try, or how many from 1e-4 to 1e4 on a logarithmic scale.
    cv : int, scikit-learn splitter or list of (train, held out) pairs, default 5
        Stratified folds for an int; shuffled if ``random_state`` is given.
    rule : {"best", "one_standard_error"}
        The best mean score, or the smallest C within one standard error of it.
    scoring : {"error", "auc"}, scikit-learn scorer or None
        Score on held-out rows; None means "error".
    loss : {"hinge", "squared_hinge"}
        Loss of the margin.
    multiclass : {"ovr", "crammer_singer"}
        How three or more classes are treated.
    penalty_factor : array (d,), dict {column: factor} or None
        Factor p_j >= 0 on the penalty of each feature, which is 1/2 sum_j p_j w_j^2; 0 leaves a feature unpenalised.
    fit_intercept : bool, default True
        Whether to fit the intercept b; otherwise it is 0.
    class_weight : dict {class: weight}, "balanced" or None
        Factor on the sample weights of each class; "balanced" gives all classes the same total weight.
    tol : float, default 1e-6
        Stop when the proven relative gap is at most ``tol``.
    solver : str, default "auto"
        "auto" picks the method that is predicted to be fastest. The page "How to choose a loss and a solver" lists all.
    time_limit, max_passes : float, optional
        Budget in seconds for the whole grid, and in passes over the data for each of its models. When it is spent, the
        fit ends with valid certificates of the gaps it has reached and a ``ConvergenceWarning``.
    n_threads : int, optional
        Number of threads; all processors by default. Results are bit-identical for any number.
    warm_start : bool, default False
        Start from the previous fit if it has the same classes and columns.
    random_state : int, RandomState or None
        Seed of solvers that draw at random; None means 0. If it is given, folds are shuffled with it.

    Attributes
    ----------
    C_ : float
        The chosen C.
    Cs_ : ndarray (c,)
        Values of C, in increasing order.
    scores_ : ndarray (folds, c)
        Held-out scores, greater is better: accuracy for "error".
    coefs_paths_ : ndarray (folds, c, classes or 1, d + 1)
        Coefficients of every model of the grid, the intercept last (without one, d).
    cv_results_ : dict
        ``scores_`` as scikit-learn's ``GridSearchCV`` tabulates them.
    tuning_ : Tuning
        Curve, certificates of the whole grid, timings.
    alpha_ : ndarray (n,), or (n, k) for k >= 3 classes
        Dual coefficients of the model with ``C_``; see ``LinearSVC``.
    support_ : ndarray of int
        Rows whose dual coefficient is not 0.
    free_support_, bounded_support_ : ndarray of int
        Rows with a dual coefficient strictly inside its box, and at its upper end.
    support_vectors_ : array or CSR matrix
        ``X[support_]``, kept if that is at most a million numbers.
    margin_, margin_width_ : float, or ndarray
        ``1/|w|`` and ``2/|w|``; see ``LinearSVC``.
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

    See Also
    --------
    tune : The same choice for any estimator or pipeline, with test rows.
    LinearSVC : A fixed C.

    Notes
    -----
    The objective is that of ``LinearSVC``. All folds and values of C are fitted together, and every
    model is certified on its own objective.

    Examples
    --------
    >>> from sklearn.datasets import load_iris
    >>> from linsep import LinearSVCCV
    >>> X, y = load_iris(return_X_y=True)
    >>> model = LinearSVCCV(Cs=[0.01, 1.0, 100.0]).fit(X, y)
    >>> model.tuning_.certified
    True
    """

    _plain = LinearSVC

    # A model file contains the chosen model, the scores and the coefficients of the grid, but not the whole search.
    _not_saved = ("tuning_",)

    @explain_keywords
    def __init__(
        self,
        Cs: Any = 10,
        *,
        cv: Any = 5,
        scoring: Any = None,
        rule: str = "best",
        loss: str = "hinge",
        multiclass: str = "ovr",
        penalty_factor: Any = None,
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
        self.Cs = Cs
        self.cv = cv
        self.scoring = scoring
        self.rule = rule
        self.loss = loss
        self.multiclass = multiclass
        self.penalty_factor = penalty_factor
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.solver = solver
        self.time_limit = time_limit
        self.max_passes = max_passes
        self.n_threads = n_threads
        self.warm_start = warm_start
        self.random_state = random_state
