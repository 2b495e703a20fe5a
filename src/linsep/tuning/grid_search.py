"""``tune``: choose C by cross-validation, a validation set or approximate leave-one-out."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import _num_samples

from linsep.arguments import flag, one_of, seed
from linsep.arrays import IntArray
from linsep.bounds import clopper_pearson
from linsep.certificates import Optimality
from linsep.data import Location, location_of
from linsep.data import open as open_data
from linsep.data.cluster import persist
from linsep.data.entrance.inputs import weights
from linsep.data.memory_rows import with_names
from linsep.errors import BadInput, ConvergenceWarning
from linsep.monitoring import Job
from linsep.pipelines import Parts, final_step, take_apart
from linsep.tuning import one_by_one as separate
from linsep.tuning import pruning, splits
from linsep.tuning.grid_scores import GridScores, score_folds, score_left_out_rows
from linsep.tuning.grids import grid_of
from linsep.tuning.labelled_rows import LabelledRows
from linsep.tuning.results import Tuning, ValidationCurve
from linsep.tuning.scoring import Score, resolve
from linsep.tuning.tunable import Tunable, tunable, within_its_time_limit

RULES = ("best", "one_standard_error")


@within_its_time_limit
def tune(  # noqa: PLR0913
    estimator: Any,
    X: Any,
    y: Any = None,
    Cs: Any = None,
    *,
    l1_ratios: Any = None,
    cv: Any = 5,
    validation: float | None = None,
    test: float | None = None,
    scoring: Any = None,
    rule: str = "best",
    reject: bool = False,
    refit: bool = True,
    keep: bool = False,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: Any = None,
) -> Tuning:
    """Choose C by cross-validation. All folds and values of C are fitted together.

    Every model of the grid is certified, and its scores are those of a separate fit.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        An estimator of linsep, fitted or not. Its own C is not used; its ``time_limit`` applies to the whole grid.
        The steps of a pipeline are fitted to the training rows of every fold, once for all C.
    X, y : array-likes
        As for ``fit``. A scan (``linsep.scan``) may contain y and the weights.
    Cs : array of floats, int or None
        The values to try, or how many from 1e-4 to 1e4 on a logarithmic scale; 10 by default.
    l1_ratios : array of floats, optional
        Values of ``l1_ratio`` to try, each with all values of C on the same folds; the best mean decides.
    cv : int, scikit-learn splitter, list of (train, held out) pairs or "loo-approximate"
        Stratified folds for an int, shuffled if ``random_state`` is given. "loo-approximate" fits every C to all
        rows and approximates the scores of leave-one-out by a Newton step for each row (smooth losses).
    validation : float, optional
        Fraction of the rows for a single validation set, instead of ``cv``.
    test : float, optional
        Fraction of the rows held out from the whole grid, on which the chosen model is evaluated.
    scoring : {"error", "log_loss", "auc"}, scikit-learn scorer or None
        None means "error" for classes and "mean_squared_error" for targets.
    rule : {"best", "one_standard_error"}
        The best mean, or the smallest C within one standard error of it.
    reject : bool
        Stop fitting the models of a C once its error is proven to exceed that of another (two classes, "error",
        rule "best"); ``Tuning.rejected`` lists these C. If the whole grid is fitted together, no C is rejected.
    refit : bool
        Fit the chosen C to all rows except the test rows.
    keep : bool
        Keep the coefficients of every model of the grid (``Tuning.coefs``, ``Tuning.intercepts``).
    sample_weight : array (n,), optional
        Weight of each row, in the fits and in "error", "log_loss" and "auc"; the steps of a pipeline are fitted
        without weights.
    groups : array (n,), optional
        For splitters that keep groups together.
    random_state : int, RandomState or None
        Seed of the folds and parts.

    Returns
    -------
    Tuning

    Raises
    ------
    BadInput
        If the estimator has no parameter ``C``, a class has fewer rows than there are folds, or an argument is not
        usable.
    Refused
        If ``reject`` or ``cv="loo-approximate"`` does not support the loss, the penalty or the number of classes.

    See Also
    --------
    path : The models themselves, for increasing C.
    LogisticRegressionCV : The same choice inside ``fit``.

    Notes
    -----
    Cross-validation [1]_ fits each C once without each fold; the models of all folds share their passes over the data.
    Rule "one_standard_error" takes the smallest C whose mean is within one standard error of the best [2]_.

    References
    ----------
    .. [1] Stone, Cross-validatory choice and assessment of statistical predictions, Journal of the Royal Statistical
       Society B 36, 1974.
    .. [2] Breiman, Friedman, Olshen and Stone, Classification and Regression Trees, 1984.

    Examples
    --------
    >>> from sklearn.datasets import load_breast_cancer
    >>> from linsep import LogisticRegression, tune
    >>> X, y = load_breast_cancer(return_X_y=True)
    >>> tuning = tune(LogisticRegression(), X, y, [0.01, 1.0, 100.0], cv=5)
    >>> tuning.certified
    True
    """
    began = perf_counter()
    one_of("rule", rule, RULES)
    for name, given in (("reject", reject), ("refit", refit), ("keep", keep)):
        flag(name, given)
    if l1_ratios is not None:
        how: dict[str, Any] = {"cv": cv, "validation": validation, "test": test, "groups": groups}
        how |= {"scoring": scoring, "rule": rule, "reject": reject, "refit": refit, "keep": keep}
        how |= {"sample_weight": sample_weight, "random_state": seed(random_state, most=2**32 - 1)}
        return _tune_ratios(estimator, X, y, Cs, l1_ratios, how)
    parts_of = tunable_parts(estimator, "tune")
    grid = grid_of(Cs)
    if splits.leaves_one_out(cv):
        _refuse_with_leave_one_out(validation, groups, rule)
    if parts_of.steps is not None:
        _refuse_with_steps(X, cv, reject)
    classifier = is_classifier(parts_of.model)
    score = resolve(scoring, regression=not classifier)
    data = read(parts_of, X, y, sample_weight)
    parts = splits.make(
        data.y,
        cv=cv,
        validation=validation,
        test=test,
        groups=groups,
        classifier=classifier,
        seed=seed(random_state, most=2**32 - 1),
    )
    in_memory = data.location is Location.MEMORY
    if reject and not in_memory:
        raise BadInput("reject=True needs the rows in memory; leave it out.")
    if reject:
        pruning.refuse(parts_of.model, data.y, classifier, score.name, rule)
    approximate = not parts.count
    rest = data.take(parts.rest)
    found = GridScores(grid, max(1, parts.count), began, reject, keep)
    with Job("tune", total=found.scores.size) as found.job:
        if approximate:
            score_left_out_rows(parts_of, rest, score, found)
        else:
            numbered = parts.renumber() if in_memory else parts
            score_folds(parts_of, rest, numbered, score, found)
    scores, certificates = found.scores, found.certificates
    if np.isnan(scores).any(axis=1).all():
        raise BadInput(
            f"scoring={score.name!r} gave nan on some fold for every C, so none can be chosen; "
            "a score must be a number."
        )
    curve = ValidationCurve(grid, scores, score.name, score.greater_is_better, approximate)
    best_C = float(grid[curve.best if rule == "best" else curve.within_one_error])
    model, tested, bound = None, None, None
    if refit or parts.test is not None:
        model = _copy_with(estimator, C=best_C)
        separate.fit(model, rest)
        if rest.traffic is not None:
            model.traffic_ = rest.traffic
    if parts.test is not None:
        tested, bound = _test_score(model, data, parts.test, score)
    warn_uncertified(certificates.flat, "grid")
    return Tuning(
        best_C=best_C,
        rule=rule,
        curve=curve,
        certificates=certificates,
        best_estimator_=model if refit else None,
        test_score=tested,
        test_bound=bound,
        seconds=perf_counter() - began,
        trace=tuple(found.trace),
        rejected=found.rejected,
        coefs=found.stack_weights(0),
        intercepts=found.stack_weights(1),
    )


def _tune_ratios(
    estimator: Any, X: Any, y: Any, Cs: Any, l1_ratios: Any, how: dict[str, Any]
) -> Tuning:
    """Tune C for every l1_ratio on the same folds; return the result whose chosen C has the best mean score."""
    began, model = perf_counter(), tunable_parts(estimator, "tune").model
    if "l1_ratio" not in model.get_params(deep=False):
        raise BadInput(
            f"l1_ratios: {type(model).__name__} has no parameter l1_ratio; leave it out."
        )
    try:
        ratios = np.unique(np.atleast_1d(np.asarray(l1_ratios, dtype=np.float64)))
    except (TypeError, ValueError) as error:
        raise BadInput(f"l1_ratios must be numbers from 0 to 1 ({error}).") from error
    if not len(ratios) or not ((ratios >= 0.0) & (ratios <= 1.0)).all():
        raise BadInput(f"l1_ratios must be numbers from 0 to 1, got {l1_ratios!r}.")
    if hasattr(how["cv"], "split") and how["test"] is None and y is not None:
        # A splitter may draw different folds in every call, but all ratios must be compared on the same folds.
        pairs = how["cv"].split(np.zeros((_num_samples(y), 1)), np.asarray(y), how["groups"])
        how = {**how, "cv": list(pairs)}
    found = {
        ratio: tune(_copy_with(estimator, l1_ratio=ratio), X, y, Cs, **how)
        for ratio in ratios.tolist()
    }
    best = max(found, key=lambda ratio: found[ratio].best_score_)
    others = {ratio: replace(one, best_estimator_=None) for ratio, one in found.items()}
    seconds = perf_counter() - began
    return replace(found[best], best_l1_ratio=best, by_l1_ratio=others, seconds=seconds)


def tunable_parts(estimator: Any, caller: str) -> Parts:
    """Return steps and model of a pipeline or an estimator; raise if the model has no parameter C."""
    if isinstance(estimator, type):
        raise BadInput(
            f"{caller} needs an estimator, got the class {estimator.__name__}; give {estimator.__name__}()."
        )
    parts = take_apart(estimator)
    model = parts.model
    if not hasattr(model, "get_params") or "C" not in model.get_params(deep=False):
        raise BadInput(
            f"{caller} needs an estimator with a parameter C, or a Pipeline that ends in one; got "
            f"{type(model).__name__}."
        )
    return parts


def _copy_with(estimator: Any, **params: float) -> Any:
    """Return an unfitted copy of an estimator or a pipeline, with the given parameters of the model."""
    before = f"{final_step(estimator)}__" if isinstance(estimator, Pipeline) else ""
    return clone(estimator).set_params(**{before + name: value for name, value in params.items()})


def read(parts: Parts, X: Any, y: Any, weight: Any) -> LabelledRows:
    """Validate X, y and weights before anything is fitted, and return them in the form that the fits use.

    Rows that the steps of a pipeline transform are not validated. A frame is kept, because its columns have names; a
    scan is separated from its target and weights. Rows in files or on a cluster are read into memory if they are few
    enough. Otherwise rows on a cluster are computed once and stay there, while targets and weights are copied to the
    client, 8 bytes per row.
    """
    if location_of(X) is Location.CLUSTER:
        rows, y, weight = persist(X, y, weight)
        found, asked = LabelledRows(rows, y, weight), tunable(parts.model)
        return _fetched(asked, found) if asked is not None and rows.few() else found
    on_disk = location_of(X) is Location.DISK
    if on_disk:
        y, weight = X.given(y, weight, "tuning")
        X = X.without_targets()
    asked = tunable(parts.model)
    if asked is None:
        target = np.asarray(y)
    elif parts.steps is not None:
        target = asked._read_targets(np.zeros((_num_samples(X), 1)), y)[2]
    else:
        rows, names, target = asked._read_targets(X, y)
        if on_disk:
            X = X if location_of(rows) is Location.DISK else with_names(rows, names)
        elif names is None:
            X = rows
    return LabelledRows(X, target, weights(weight, len(target)))


def _fetched(asked: Tunable, data: LabelledRows) -> LabelledRows:
    """Return the few rows of a cluster in memory, read as ``fit`` reads them."""
    numbers, owner = not is_classifier(asked), type(asked).__name__
    opened = open_data(data.X, data.y, data.weight, owner, numbers=numbers)
    X, traffic = with_names(opened.rows, opened.names), opened.fitted["traffic_"]
    return LabelledRows(X, data.y, opened.weights(), traffic)


def _refuse_with_steps(X: Any, cv: Any, reject: bool) -> None:
    if location_of(X) is not Location.MEMORY:
        raise BadInput(
            "tune of a pipeline needs the rows in memory: its steps are fitted in every fold. Tune the model without "
            "steps; linsep.scan and linsep fit encode and standardise rows on disk themselves."
        )
    if splits.leaves_one_out(cv) or reject:
        asked = "reject=True" if reject else f"cv={cv!r}"
        raise BadInput(
            f"{asked} needs rows that all folds share, but the steps of a pipeline are fitted anew in every fold; "
            "leave it out."
        )


def _refuse_with_leave_one_out(validation: Any, groups: Any, rule: str) -> None:
    option = f"cv={splits.LEAVE_ONE_OUT!r}"
    if validation is not None or groups is not None:
        raise BadInput(f"{option} leaves out single rows: it takes neither validation nor groups.")
    if rule != "best":
        raise BadInput(
            f"{option} has no folds whose spread rule={rule!r} could use; take rule='best'."
        )


def _test_score(
    model: Any, data: LabelledRows, rows: IntArray, score: Score
) -> tuple[float, float | None]:
    """Return the score on the test rows and, for an unweighted error, its 95 % upper confidence bound."""
    value = separate.score_held_out(score, model, data, rows)
    if score.name != "error" or data.weight is not None:
        return value, None
    wrong = round(value * len(rows))
    return value, float(clopper_pearson(wrong, len(rows), delta=0.05))


def warn_uncertified(certificates: Iterable[Optimality], whole: str) -> None:
    """Issue a ConvergenceWarning to the caller of ``tune`` or ``path`` if models are not certified."""
    proofs = tuple(certificates)
    short = [proof for proof in proofs if not proof.certified]
    if short:
        worst = max(short, key=lambda proof: proof.relative_gap)
        text = (
            f"{len(short)} of {len(proofs)} models of the {whole} are not certified. Worst: {worst}"
        )
        warnings.warn(ConvergenceWarning(text, worst), stacklevel=4)
