"""Rosenblatt's perceptron, which ends with a separating hyperplane or, at its budget, with a proof if that is cheap."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.bounds import MistakeBounds, best_mistake_bounds
from linsep.data import Memory, readable
from linsep.data.entrance import inputs, labels
from linsep.data.entrance.opened import read_rows
from linsep.errors import BadInput, Refused
from linsep.estimators import parameters
from linsep.estimators.classification import ByScores
from linsep.estimators.keywords import explain_keywords
from linsep.estimators.sgd_certificates import locate_nonfinite
from linsep.estimators.streaming import validated_batch
from linsep.hyperplane import Hyperplane
from linsep.online import (
    ORDERS,
    UPDATES,
    PerceptronHistory,
    PerceptronRun,
    Stream,
    begin,
    lengths_of,
    stream,
    train_perceptron,
)
from linsep.separability import Answer, Inseparable, Separable, Undecided, decide, proven

_KEPT = ("classes_", "n_features_in_", "feature_names_in_")  # not changed by further rows
_CHEAP = 2e7  # n (d + 1)^2 up to which separability is decided after a run that did not separate the classes


class Perceptron(ByScores):
    """Rosenblatt's perceptron: correct one mistake after another until no row is misclassified.

    While some row has y (x.w + b) <= 0, take one such row and add s y x to w and s y to b (raw), or both divided by
    |(x, 1)| (normalised); s is the weight of the row, 1 by default. If a hyperplane separates the classes, the fit ends
    after at most as many updates as ``bounds`` allows; otherwise it ends at its budget. Three or more classes:
    one perceptron for each class against the others.

    Parameters
    ----------
    update : {"raw", "normalised"}
        Vector that is added: y (x, 1), or y (x, 1) scaled to length 1. The spelling "normalized" is accepted.
    order : {"cyclic", "first", "random", "worst"}
        Which mistake is corrected next: the next row in cyclic order, the first of all rows, the next row in a new
        random order for each pass, or the row with the smallest margin (times its weight, and divided by the length
        of the row if updates are).
    max_updates : int, default 1_000_000
        Largest number of updates, for each class against the others.
    max_passes : float, default 1000
        Largest number of passes over the data, counted in visited rows.
    time_limit : float, optional
        Budget in seconds.
    fit_intercept : bool, default True
        Whether to fit the intercept b, as the coefficient of a constant 1; otherwise it is 0.
    average : bool, default False
        Whether to return the mean of (w, b) over all visited rows (Freund and Schapire 1999). It varies less if
        classes overlap, but need not separate separable classes.
    class_weight : dict {class: weight}, "balanced" or None
        Factor on the sample weights of each class; "balanced" gives all classes the same total weight.
    random_state : int, RandomState or None
        Seed of the random order; None means 0.

    Attributes
    ----------
    coef_ : ndarray (1, d), or (k, d) for k >= 3 classes
        Coefficients w.
    intercept_ : ndarray (1,) or (k,)
        Intercept b.
    classes_ : ndarray (k,)
        Labels in sorted order; a positive score means ``classes_[1]``.
    separated_ : bool
        Whether every row lies strictly on its side of the fitted hyperplane, for every class against the others.
    certificate_ : Separable, Inseparable, Undecided or None; a tuple for k >= 3 classes
        Proof that the hyperplane separates the classes, or else the answer of ``separate``; None if that would take
        too long.
    n_updates_ : int
        Number of updates, summed over the classes.
    history_ : PerceptronHistory, or a tuple with one for each of k >= 3 classes
        The row that each update corrected, and |(w, b)| after it, for the first 100,000 updates.
    skipped_ : ndarray of int
        Rows that are 0 if there is no intercept. They lie on every hyperplane, so they are skipped, and no
        hyperplane separates the classes.
    n_passes_ : float
        Passes over the data.
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
    separate : Decide separability, with a proof either way.
    SGDClassifier : Stochastic descent on other losses.
    bounds.mistake_bounds : All forms of the mistake bound.
    linsep.sklearn.Perceptron : scikit-learn's signature.
    sklearn.linear_model.Perceptron : Without the bound on the number of updates.

    Notes
    -----
    The weights s of the rows are their sample weights times the weights of their classes, 1 by default. The rule is
    Rosenblatt's [1]_, the bound on the number of updates Novikoff's [2]_.

    References
    ----------
    .. [1] Rosenblatt, The perceptron: a probabilistic model for information storage and organization in the brain,
       Psychological Review 65, 1958.
    .. [2] Novikoff, On convergence proofs for perceptrons, 1962.

    Examples
    --------
    >>> from linsep import Perceptron
    >>> model = Perceptron().fit([[0.0], [1.0], [2.0], [3.0]], ["no", "no", "yes", "yes"])
    >>> model.separated_, model.n_updates_
    (True, 9)
    """

    _saved_records = (Stream, PerceptronHistory, Hyperplane, Separable, Inseparable, Undecided)

    @explain_keywords
    def __init__(
        self,
        update: str = "raw",
        *,
        order: str = "cyclic",
        max_updates: int = 1_000_000,
        max_passes: float | None = 1000.0,
        time_limit: float | None = None,
        fit_intercept: bool = True,
        average: bool = False,
        class_weight: Any = None,
        random_state: Any = None,
    ) -> None:
        self.update = update
        self.order = order
        self.max_updates = max_updates
        self.max_passes = max_passes
        self.time_limit = time_limit
        self.fit_intercept = fit_intercept
        self.average = average
        self.class_weight = class_weight
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None, sample_weight: Any = None) -> Perceptron:
        """Start at w = 0 and correct mistakes until no row is misclassified or the budget is spent.

        Parameters
        ----------
        X : array, sparse matrix, dataframe or scan (n, d)
            Finite numbers. Rows in files (``linsep.scan``) or on a cluster are read into memory; too many are refused.
        y : array (n,)
            Class labels: strings, integers or booleans. Optional if X is a scan with its own target.
        sample_weight : array (n,), optional
            Weight of each row, >= 0, which multiplies its updates, as in scikit-learn's ``Perceptron``; a row of weight
            0 is left out. Positive weights do not affect whether the classes are separable.

        Returns
        -------
        self
        """
        owner = type(self).__name__
        settings = self._settings()
        rows, names, y, sample_weight = read_rows(X, y, sample_weight, owner)
        known = labels.encode(y, rows.shape[0], owner)
        weight = inputs.weights(sample_weight, rows.shape[0])
        weight = labels.combined_weights(known, weight, self.class_weight, owner)
        used = None
        if weight is not None and not weight.all():
            used = np.flatnonzero(weight)
            rows, weight = rows[used], weight[used]
        data = Memory(readable(rows), n_threads=1)
        with locate_nonfinite(data.X, names):
            lengths = lengths_of(data, settings["fit_intercept"])
        k = len(known.classes)
        runs = []
        for c in [1] if k == 2 else range(k):
            sign = known.signs(c) if used is None else known.signs(c)[used]
            run = train_perceptron(data, sign, lengths, weight=weight, **settings)
            classes = known.classes if k == 2 else np.array([False, True])
            runs.append((run, _proof(data, sign, run, settings, classes)))
        histories = tuple(run.history for run, _ in runs)
        if used is not None:  # refer to all rows instead of those of positive weight
            histories = tuple(replace(past, rows=used[past.rows]) for past in histories)
        skipped = np.flatnonzero(lengths == 0.0)
        _store(
            self,
            [run.end for run, _ in runs],
            **({} if names is None else {"feature_names_in_": names}),
            classes_=known.classes,
            n_features_in_=data.d,
            separated_=all(is_separated for _, (_, is_separated) in runs),
            certificate_=runs[0][1][0] if k == 2 else tuple(answer for _, (answer, _) in runs),
            n_updates_=sum(history.n_updates for history in histories),
            history_=histories[0] if k == 2 else histories,
            skipped_=skipped if used is None else used[skipped],
            _weighted=weight is not None,
            n_passes_=sum(run.passes for run, _ in runs),
            n_iter_=max(1, *(int(np.ceil(run.passes)) for run, _ in runs)),
        )
        return self

    def partial_fit(
        self, X: Any, y: Any, classes: Any = None, sample_weight: Any = None
    ) -> Perceptron:
        """Learn online: visit each row once, in the given order, and update where the prediction is wrong.

        A score of 0 predicts the second class, so at 0 only rows of the first class cause an update.

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
        settings = self._settings()
        rows, known, weight, settled = validated_batch(self, X, y, classes, sample_weight)
        data = Memory(rows, n_threads=1)
        lengths = lengths_of(data, settings["fit_intercept"])
        positive = [1] if len(known.classes) == 2 else range(len(known.classes))
        streams = (
            [begin(data.d, settings["average"]) for _ in positive] if settled else self._streams
        )
        if (streams[0].sum is None) == settings["average"]:
            raise BadInput(
                "average was changed after the first rows were learned; start anew with a clone of the model."
            )
        updates, ends = 0 if settled else self.n_updates_, []
        for start, c in zip(streams, positive, strict=True):
            end, made = stream(
                data,
                known.signs(c),
                lengths,
                start,
                weight=weight,
                update=settings["update"],
                fit_intercept=settings["fit_intercept"],
            )
            updates += made
            ends.append(end)
        kept = {name: getattr(self, name) for name in _KEPT if name in vars(self)}
        own = {
            "n_updates_": updates,
            "n_iter_": 1,
            "_weighted": weight is not None or self._has_weights,
        }
        _store(self, ends, **{**kept, **settled, **own})
        return self

    def bounds(self, X: Any, y: Any) -> MistakeBounds | tuple[MistakeBounds, ...]:
        """Return bounds on the number of updates on these rows: a MistakeBounds, or one for each of k >= 3 classes.

        Raises ``Refused`` if no hyperplane separates the rows, or if the model was fitted with weights.
        """
        if self._has_weights:
            raise Refused(
                "The bounds are for updates without weights. With weights between a and b there are at most (b/a)^2 "
                "times as many updates: take the bounds of a Perceptron fitted without weights."
            )
        rows = readable(inputs.validate_new_rows(self, X))
        known = labels.encode_as(self.classes_, y, rows.shape[0], type(self).__name__)
        intercept = parameters.flag("fit_intercept", self.fit_intercept)
        k = len(known.classes)
        found = tuple(
            best_mistake_bounds(rows, known.signs(c), intercept)
            for c in ([1] if k == 2 else range(k))
        )
        return found[0] if k == 2 else found

    @property
    def _has_weights(self) -> bool:
        return bool(vars(self).get("_weighted", False))

    def _settings(self) -> dict[str, Any]:
        return {
            "update": parameters.one_of(
                "update", {"normalized": "normalised"}.get(str(self.update), self.update), UPDATES
            ),
            "order": parameters.one_of("order", self.order, ORDERS),
            "fit_intercept": parameters.flag("fit_intercept", self.fit_intercept),
            "average": parameters.flag("average", self.average),
            "max_updates": parameters.count("max_updates", self.max_updates, "updates"),
            "max_passes": parameters.limit("max_passes", self.max_passes, "passes over the data"),
            "time_limit": parameters.limit("time_limit", self.time_limit, "seconds"),
            "seed": parameters.seed(self.random_state) or 0,
        }


def _store(model: Any, ends: list[Stream], **attributes: Any) -> None:
    """Write all fitted attributes at once, after deleting those of an earlier fit."""
    W = np.array([end.answer for end in ends])
    state = vars(model)
    for name in [name for name in state if name.endswith("_")]:
        del state[name]
    state.update(
        coef_=np.ascontiguousarray(W[:, :-1]),
        intercept_=W[:, -1].copy(),
        _streams=ends,
        **attributes,
    )


def _proof(
    data: Memory, sign: FloatArray, run: PerceptronRun, settings: dict[str, Any], classes: Any
) -> tuple[Answer | None, bool]:
    """Return a proof that the fitted hyperplane separates the rows, and True.

    If it does not, return the answer of ``decide``, or None if that would be expensive, and False.
    """
    rows = Memory(data.X, sign, n_threads=1)
    common = {"fit_intercept": settings["fit_intercept"], "classes": classes}
    theta = np.ascontiguousarray(run.end.answer)
    if (run.history.separated or settings["average"]) and theta[:-1].any():
        found = proven(rows, theta, **common)
        if found is not None:
            return found, True
    if data.n * (data.d + 1) ** 2 > _CHEAP:
        return None, False
    return decide(rows, seed=settings["seed"], **common), False
