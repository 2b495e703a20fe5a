"""Logistic regression for two or more classes, with class probabilities."""

from __future__ import annotations

from typing import Any

from linsep.arrays import FloatArray
from linsep.estimators.classification import Classification
from linsep.estimators.keywords import explain_keywords
from linsep.estimators.scoring import predicted_log_probabilities, predicted_probabilities
from linsep.losses import Loss, get


class LogisticRegression(Classification):
    """Logistic regression with a certificate of optimality.

    Two classes, y in {-1, +1}: minimise over w and b

        (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i log(1 + exp(-y_i (x_i.w + b)))

    The intercept is never penalised. Three or more classes: the softmax cross-entropy of k scores
    (``multinomial``), or one such problem for each class against the others (``ovr``).

    Parameters
    ----------
    C : float, default 1.0
        Weight of the loss against the penalty, in (0, inf]: a small C means a strong penalty, inf means none.
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
    LogisticRegressionCV : Choose C by cross-validation.
    LinearClassifier : Other losses.
    linsep.sklearn.LogisticRegression : scikit-learn's signature and objective.
    summary : Standard errors and p-values (C=inf).
    sklearn.linear_model.LogisticRegression : Without a proof.

    Notes
    -----
    ``s_i`` is the sample weight of row i times the weight of its class, 1 by default; a weight of 2 is equivalent to
    repeating the row.

    The certificate follows from Fenchel duality [1]_: any dual point gives a lower bound on the minimum. The bound
    includes rounding errors, and ``verify`` recomputes it.

    References
    ----------
    .. [1] Boyd and Vandenberghe, Convex Optimization, 2004, chapter 5.

    Examples
    --------
    >>> from linsep import LogisticRegression
    >>> model = LogisticRegression().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.predict([[0.5], [2.5]])
    array(['no', 'yes'], dtype='<U3')
    >>> model.certificate_.certified
    True
    """

    _schemes = ("multinomial", "ovr")

    @explain_keywords
    def __init__(
        self,
        C: float = 1.0,
        *,
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

    def predict_proba(self, X: Any) -> FloatArray:
        """Return P(class | x) of each row, one column for each of ``classes_``."""
        return predicted_probabilities(self, X)

    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of ``predict_proba``, finite where the probability underflows to 0."""
        return predicted_log_probabilities(self, X)

    def _two_class_loss(self) -> Loss:
        return get("logistic")
