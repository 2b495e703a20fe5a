"""Classifier fitted by stochastic sub-gradient descent: approximate, with a proven bound on its suboptimality."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.utils.metaestimators import available_if
from sklearn.utils.validation import check_is_fitted

from linsep.arrays import FloatArray, IntArray
from linsep.certificates import loss_factor
from linsep.data import Memory, readable
from linsep.data.entrance import inputs, labels
from linsep.data.entrance.opened import read_rows
from linsep.errors import BadInput
from linsep.estimators import fitting, parameters, sgd_certificates, streaming
from linsep.estimators.classification import ByScores, subproblems
from linsep.estimators.keywords import explain_keywords
from linsep.estimators.scoring import log_probabilities, probabilities, scores
from linsep.losses import CoupledLoss, Loss
from linsep.online import KEEPS, Plan, Scaling, StepSizes, descend
from linsep.online.schedules import check_name
from linsep.penalties import ElasticNet
from linsep.spelling import accept_american
from linsep.train import Recipe


@dataclass(frozen=True, eq=False)
class SGDHistory:
    """Objective during the descent, evaluated at some iterates: one number each, or one for each class.

    Attributes
    ----------
    steps : ndarray of int
        Number of steps before the iterate.
    last, best : ndarray
        Objective of the iterate itself, and of the best one so far.
    averaged : ndarray or None
        Objective of the mean of the iterates; None unless ``keep="average"``.
    """

    steps: IntArray
    last: FloatArray
    best: FloatArray
    averaged: FloatArray | None


def without_rows(
    weight: FloatArray | None, n: int, rows: Sequence[int] | IntArray
) -> FloatArray | None:
    """Return the weights of n rows, set to 0 for the given ones."""
    if not len(rows):
        return weight
    left = np.ones(n) if weight is None else weight.copy()
    left[rows] = 0.0
    return left


@accept_american
class SGDClassifier(ByScores):
    """Linear classifier fitted by stochastic sub-gradient descent, with a proven distance from the optimum.

    The objective is that of ``LinearClassifier``: 1/2 |w|^2 + C sum_i s_i loss(y_i (x_i.w + b)), the intercept
    not penalised. With S = sum s, step k at a row drawn with probability s_i/S is

        w <- (1 - eta_k/(C S)) w - eta_k y_i loss'(m_i) x_i,      b <- b - eta_k y_i loss'(m_i)

    Three or more classes: one such problem for each class against the others, in one pass. The rows must be in
    memory, because they are read in random order. Scale the columns alike, or pass ``standardise=True``, because one
    step size serves all of them.

    Parameters
    ----------
    loss : str or Loss, default "hinge"
        A convex loss in ``linsep.losses.NAMES``, or an instance of ``linsep.losses.Loss``. At a kink
        the compiled losses use the slope on the decreasing side: the hinge at margin 1 causes an update.
    C : float, default 1.0
        Weight of the loss against the penalty, in (0, inf]; inf means no penalty: the steps minimise the mean loss. For
        the hinge the certificate is then that of the hard margin, whose objective is inf if a margin is below 1; the
        sums of the losses are in ``history_``.
    schedule : {"inverse_sqrt", "inverse", "constant"} or callable
        eta_k = eta0/sqrt(1 + decay k), eta0/(1 + decay k), eta0, or a function of k = 0, 1, 2, ...
    eta0 : float or "auto"
        First step size. "auto" tries a range of values on a thousand rows and takes the best.
    decay : float or "auto"
        How fast step sizes decrease; eta0=1, decay=1 and "inverse" give 1/(k + 1). "auto": they start to
        decrease after a thousand rows, those of "inverse" after the first epoch.
    batch_size : int or "all"
        Number of rows averaged in one step; "all" is sub-gradient descent.
    keep : {"best", "last", "average"}
        Which iterate is returned: the best by the full objective among those evaluated, the last, or the mean of all
        with weights 1, 2, 3, ...
    epochs : int, default 20
        Number of passes over the data.
    replacement : bool, default True
        Whether to draw each row from all rows; otherwise every epoch visits all rows once, in random order.
    standardise : bool, default False
        Whether to take the steps in standardised columns, for columns of very different scale. This is a change of
        variables: X is not copied, and objective and penalty are still those of the given columns. Steps cost about
        ten times as much. Sparse columns, and all columns without an intercept, are scaled but not centred.
        ``partial_fit`` takes mean and scale from its first batch. The spelling ``standardize`` is accepted.
    fit_intercept : bool, default True
        Whether to fit the intercept b; otherwise it is 0.
    class_weight : dict {class: weight}, "balanced" or None
        Factor on the sample weights of each class; "balanced" gives all classes the same total weight.
    tol : float, default 1e-3
        The fit is certified if the proven relative gap is at most ``tol``. With ``keep="best"`` the fit then ends
        before the last epoch.
    early_stopping : bool, default False
        Whether to hold out some of the rows and stop once the accuracy on them has not risen by more than ``tol`` for
        ``n_iter_no_change`` epochs. ``keep="best"`` then keeps the iterate of best accuracy. Objective and certificate
        are those of the remaining rows.
    validation_fraction : float, default 0.1
        Fraction of each class that is held out.
    n_iter_no_change : int, default 5
        Number of epochs without improvement after which early stopping ends the descent.
    n_threads : int, optional
        Number of threads that evaluate iterates; one thread makes the steps. The result does not depend on it.
    random_state : int, RandomState or None
        Seed of the draws; None means 0.

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
    n_features_in_ : int
        Number of features d.
    feature_names_in_ : ndarray of str
        Column names, if the rows came with them.
    history_ : SGDHistory
        Objective of the last, best and averaged iterate during the descent.
    eta0_ : ndarray
        First step size of each class.
    n_steps_ : int
        Number of steps.
    n_iter_ : int
        Number of epochs.
    validation_scores_ : ndarray (epochs,)
        With ``early_stopping``: accuracy on the held-out rows after every epoch.
    validation_rows_ : ndarray of int
        With ``early_stopping``: the rows that were held out.

    Raises
    ------
    BadInput
        If X, y or a parameter is not usable; the message names it.
    Refused
        If the rows are not in memory, or the loss is not convex.

    See Also
    --------
    LinearClassifier : The same objective, solved to the optimum.
    check_schedule : Do step sizes satisfy the conditions of Robbins and Monro?
    linsep.sklearn.SGDClassifier : scikit-learn's signature.
    sklearn.linear_model.SGDClassifier : Without a proof.

    Notes
    -----
    ``s_i`` is the sample weight of row i times the weight of its class, 1 by default; a weight of 2 is equivalent to
    repeating the row.

    The certificate says how far from the optimum the descent ended. Stochastic descent rarely reaches ``tol``, so it
    does not warn if the fit is not certified. Step sizes follow Robbins and Monro [1]_; the averaged point is weighted
    as in [2]_.

    References
    ----------
    .. [1] Robbins and Monro, A stochastic approximation method, Annals of Mathematical Statistics 22, 1951.
    .. [2] Lacoste-Julien, Schmidt and Bach, A simpler approach to obtaining an O(1/t) convergence rate for the
       projected stochastic subgradient method, 2012.

    Examples
    --------
    >>> from linsep import SGDClassifier
    >>> model = SGDClassifier("hinge").fit([[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1])
    >>> model.predict([[0.5], [2.5]])
    array([0, 1])
    """

    _saved_records = (SGDHistory, streaming.Stream, StepSizes, Scaling)

    @explain_keywords
    def __init__(
        self,
        loss: str | Loss = "hinge",
        *,
        C: float = 1.0,
        schedule: Any = "inverse_sqrt",
        eta0: float | str = "auto",
        decay: float | str = "auto",
        batch_size: int | str = 1,
        keep: str = "best",
        epochs: int = 20,
        replacement: bool = True,
        standardise: bool = False,
        fit_intercept: bool = True,
        class_weight: Any = None,
        tol: float = 1e-3,
        early_stopping: bool = False,
        validation_fraction: float = 0.1,
        n_iter_no_change: int = 5,
        n_threads: int | None = None,
        random_state: Any = None,
    ) -> None:
        self.loss = loss
        self.C = C
        self.schedule = schedule
        self.eta0 = eta0
        self.decay = decay
        self.batch_size = batch_size
        self.keep = keep
        self.epochs = epochs
        self.replacement = replacement
        self.standardise = standardise
        self.fit_intercept = fit_intercept
        self.class_weight = class_weight
        self.tol = tol
        self.early_stopping = early_stopping
        self.validation_fraction = validation_fraction
        self.n_iter_no_change = n_iter_no_change
        self.n_threads = n_threads
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> SGDClassifier:
        """Run stochastic descent from w = 0 and certify the distance from the optimum.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or scan (n, d)
            Finite numbers. Rows in files (``linsep.scan``) or on a cluster are read into memory; too many are refused.
        y : array (n,)
            Class labels: strings, integers or booleans. Optional if X is a scan with its own target.
        sample_weight : array (n,), optional
            Weight of each row, >= 0: weight 2 is equivalent to repeating the row, weight 0 to omitting it.

        Returns
        -------
        self
        """
        owner, plan, recipe = type(self).__name__, self._plan(), self._recipe()
        rows, names, y, sample_weight = read_rows(X, y, sample_weight, owner)
        known_labels = labels.encode(y, rows.shape[0], owner)
        weight = labels.combined_weights(
            known_labels, inputs.weights(sample_weight, rows.shape[0]), self.class_weight, owner
        )
        began = perf_counter()
        k = len(known_labels.classes)
        codes = np.ascontiguousarray(known_labels.codes, dtype=np.int64)
        rows = readable(rows)
        held, monitor = self._hold_out(rows, codes, weight, plan.seed)
        weight = without_rows(weight, len(codes), held)
        data = Memory(
            rows,
            weight=weight,
            labels=codes,
            n_threads=parameters.threads(self.n_threads),
        )
        try:
            certifier = sgd_certificates.SgdCertifier(recipe, data, k)
            with sgd_certificates.locate_nonfinite(data.X, names):
                sure = self.keep == "best" and monitor is None
                done = descend(plan, data, k, certifier.is_certified if sure else None, monitor)
            sgd_certificates.refuse_divergence(done, self.keep)
            fits = certifier.fits(done, perf_counter() - began)
        finally:
            data.close()
        curves, scale = done.curves, certifier.factor.objective
        self.__dict__.pop("validation_scores_", None)  # left by an earlier fit
        own = {} if monitor is None else {"validation_scores_": np.array(monitor.scores)}
        fitting.store(
            self,
            fits,
            names,
            classes_=known_labels.classes,
            history_=SGDHistory(
                np.array(curves.steps, dtype=np.int64),
                sgd_certificates.curve(curves.last, scale),
                sgd_certificates.curve(curves.best, scale),
                sgd_certificates.curve(curves.averaged, scale) if self.keep == "average" else None,
            ),
            eta0_=done.step_sizes.eta0,
            n_steps_=done.n_steps,
            n_iter_=done.epochs,
            validation_rows_=held,
            **own,
            n_passes_=done.passes + certifier.passes,
            trace_=fits[0].trace,
            _class_weight=self.class_weight,
            _stream=streaming.Stream.after_fit(done, certifier.total),
        )
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> SGDClassifier:
        """Continue the descent with the given rows: one pass, in their order.

        The penalty is relative to all rows seen so far. Sample weights multiply the steps. The model is the last
        iterate, or the mean if ``keep="average"``. There is no certificate and no best iterate, because both require
        all rows.

        Parameters
        ----------
        X, y, sample_weight
            As in ``fit``.
        classes : array, optional
            All classes that will occur; required in the first call.

        Returns
        -------
        self
        """
        plan = self._plan()
        streaming.advance(self, plan, X, y, classes, sample_weight)
        return self

    @available_if(parameters.has_probabilities)  # type: ignore[untyped-decorator]
    def predict_proba(self, X: Any) -> FloatArray:
        """Return P(class | x) of each row, one column for each of ``classes_``. The loss must have a link function."""
        check_is_fitted(self, "coef_")
        return probabilities(parameters.classification_loss(self.loss), scores(self, X))

    @available_if(parameters.has_probabilities)  # type: ignore[untyped-decorator]
    def predict_log_proba(self, X: Any) -> FloatArray:
        """Return the logarithm of ``predict_proba``."""
        check_is_fitted(self, "coef_")
        return log_probabilities(parameters.classification_loss(self.loss), scores(self, X))

    def _hold_out(
        self, rows: Any, codes: IntArray, weight: FloatArray | None, seed: int
    ) -> tuple[IntArray, sgd_certificates.ValidationMonitor | None]:
        """Return the held-out rows of early stopping and their monitor; no rows and None without early stopping."""
        if not parameters.flag("early_stopping", self.early_stopping):
            return np.empty(0, dtype=np.intp), None
        fraction = parameters.positive("validation_fraction", self.validation_fraction)
        if fraction >= 1.0:
            raise BadInput(f"validation_fraction must lie between 0 and 1, got {fraction!r}.")
        patience = parameters.count("n_iter_no_change", self.n_iter_no_change, "epochs")
        held = sgd_certificates.held_out_rows(codes, weight, fraction, seed)
        own = None if weight is None else weight[held]
        tol = parameters.tolerance(self.tol)
        return held, sgd_certificates.ValidationMonitor(rows[held], codes[held], own, tol, patience)

    def _recipe(self) -> Recipe:
        return Recipe(
            loss=self._current_loss(),
            penalty=ElasticNet(parameters.number("C", self.C)),
            fit_intercept=parameters.flag("fit_intercept", self.fit_intercept),
            tol=parameters.tolerance(self.tol),
            n_threads=parameters.threads(self.n_threads),
        )

    def _current_loss(self) -> Loss:
        """Return the loss that the current parameters specify."""
        return parameters.classification_loss(self.loss)

    def _plan(self) -> Plan:
        automatic = isinstance(self.eta0, str) and isinstance(self.decay, str)
        if isinstance(self.schedule, str):
            check_name(self.schedule)
        elif not callable(self.schedule):
            raise BadInput(f"schedule must be a name or a function of k, got {self.schedule!r}.")
        elif not automatic:
            raise BadInput(
                "eta0 and decay belong to the named schedules; a function returns the whole step: multiply "
                "it by eta0 there, and leave both at 'auto'."
            )
        whole = isinstance(self.batch_size, str) and self.batch_size == "all"
        factor = loss_factor(self._current_loss(), ElasticNet(parameters.number("C", self.C)))
        assert not isinstance(factor.loss, CoupledLoss)
        return Plan(
            loss=factor.loss,
            C=factor.penalty.C,
            schedule=self.schedule,
            eta0=parameters.positive_or_auto("eta0", self.eta0),
            decay=parameters.positive_or_auto("decay", self.decay),
            batch=None
            if whole
            else parameters.count("batch_size", self.batch_size, "rows, or 'all'"),
            replacement=parameters.flag("replacement", self.replacement),
            keep=parameters.one_of("keep", self.keep, KEEPS),
            epochs=parameters.count("epochs", self.epochs, "passes"),
            fit_intercept=parameters.flag("fit_intercept", self.fit_intercept),
            seed=parameters.seed(self.random_state) or 0,
            standardise=parameters.flag("standardise", self.standardise),
        )

    def _verification_parts(self, X: Any, y: Any, sample_weight: Any) -> Iterator[tuple[Any, ...]]:
        """Yield the fields of a ``Part`` for each subproblem."""
        owner = type(self).__name__
        rows = inputs.validate_new_rows(self, X)
        known_labels = labels.encode_as(self.classes_, y, rows.shape[0], owner)
        weight = labels.combined_weights(
            known_labels, inputs.weights(sample_weight, rows.shape[0]), self._class_weight, owner
        )
        held = vars(self).get("validation_rows_", ())
        if len(held) and held[-1] >= rows.shape[0]:
            raise BadInput(
                f"early_stopping held out row {held[-1]}, but X has {rows.shape[0]} rows; give the rows that the model "
                "was fitted to."
            )
        weight = without_rows(weight, rows.shape[0], held)
        parts = subproblems(self._fits[0].recipe.loss, known_labels)
        yield from fitting.verification_parts(self, parts, rows, weight)
