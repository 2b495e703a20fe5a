"""Choosing C by held-out rows."""

from __future__ import annotations

import warnings
from dataclasses import replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.pipeline import Pipeline
from sklearn.utils import check_random_state
from sklearn.utils.validation import _num_samples

from linsep.arguments import flag, one_of
from linsep.bounds import clopper_pearson
from linsep.certificates import Optimality
from linsep.data import Location, location_of
from linsep.data.cluster import persist
from linsep.data.entrance.inputs import weights
from linsep.errors import BadInput, ConvergenceWarning, require_certificate
from linsep.monitoring import Job
from linsep.pipelines import Parts, final_step, stacked, take_rows, taken_apart
from linsep.solvers.grid.problem import HeldOut
from linsep.train_grid import fit_grid
from linsep.tuning import leave_one_out, splits
from linsep.tuning import one_by_one as separate
from linsep.tuning import pruning as rejecting
from linsep.tuning.grids import grid_of
from linsep.tuning.results import GridRecord, Tuning, ValidationCurve
from linsep.tuning.scoring import ERROR, Score, resolve
from linsep.tuning.tunable import tunable

FloatArray = npt.NDArray[np.float64]

_HELD = 4_000_000  # scores of held-out rows that are kept from the grid; more are computed again, fold by fold

RULES = ("best", "one_standard_error")


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
        An estimator of linsep, fitted or not; its own C is not used. The steps of a pipeline are fitted to the training
        rows of every fold, once for all C.
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
        Leave the models of a C unfinished once its error is proven to exceed that of another (two classes, "error",
        rule "best"); ``Tuning.rejected`` says which. Where the whole grid is fitted together all are finished.
    refit : bool
        Fit the chosen C to all rows but those of the test part.
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
        If a class has fewer rows than there are folds, or an argument is not usable.
    Refused
        If the estimator has no ``C``, or the scoring does not fit it.

    See Also
    --------
    path : The models themselves, for rising C.
    LogisticRegressionCV : The same choice inside ``fit``.

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
        how |= {"sample_weight": sample_weight, "random_state": _seed(random_state)}
        return _tune_ratios(estimator, X, y, Cs, l1_ratios, how)
    parts_of = tunable_parts(estimator, "tune")
    grid = grid_of(Cs)
    if splits.leaves_one_out(cv):
        _refuse_with_leave_one_out(validation, groups, rule)
    if parts_of.steps is not None:
        _refuse_with_steps(X, cv, reject)
    classifier = is_classifier(parts_of.model)
    score = resolve(scoring, regression=not classifier)
    X, target, weight = examined(parts_of, X, y, sample_weight)
    parts = splits.make(
        target,
        cv=cv,
        validation=validation,
        test=test,
        groups=groups,
        classifier=classifier,
        seed=_seed(random_state),
    )
    if reject and location_of(X) is not Location.MEMORY:
        raise BadInput("reject=True needs the rows in memory; leave it out.")
    if reject:
        rejecting.refuse(parts_of.model, target, classifier, score.name, rule)
    approximate = not parts.count
    grid_scores = _left_out_scores if approximate else _scores_of_folds
    some = _rows_of(X, target, weight, parts.rest)
    found = _Found(grid, max(1, parts.count), began, reject, keep)
    with Job("tune", total=found.scores.size) as found.job:
        numbered = parts if location_of(X) is not Location.MEMORY else parts.renumbered()
        grid_scores(parts_of, *some, numbered, score, found)
    scores, certificates = found.scores, found.certificates
    if np.isnan(scores).any(axis=1).all():
        raise BadInput(
            f"scoring={score.name!r} gave nan on some held-out part for every C, so none can be chosen; "
            "a score must be a number."
        )
    curve = ValidationCurve(grid, scores, score.name, score.greater_is_better, approximate)
    best_C = float(grid[curve.best if rule == "best" else curve.within_one_error])
    model, tested, bound = None, None, None
    if refit or parts.test is not None:
        model = with_strength(estimator, best_C)
        separate.fit(model, X, target, weight, parts.rest)
    if parts.test is not None:
        tested, bound = _tested(model, X, target, weight, parts.test, score)
    _warn(certificates)
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
        coefs=found.kept(0),
        intercepts=found.kept(1),
    )


def _tune_ratios(
    estimator: Any, X: Any, y: Any, Cs: Any, l1_ratios: Any, how: dict[str, Any]
) -> Tuning:
    """Tune C for every l1_ratio on the same folds, and take the ratio whose chosen C has the best mean score."""
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
        # a splitter may draw other folds in every call
        pairs = how["cv"].split(np.zeros((_num_samples(y), 1)), np.asarray(y), how["groups"])
        how = {**how, "cv": list(pairs)}
    found = {
        ratio: tune(_with(estimator, l1_ratio=ratio), X, y, Cs, **how) for ratio in ratios.tolist()
    }
    best = max(found, key=lambda ratio: found[ratio].best_score_)
    others = {ratio: replace(one, best_estimator_=None) for ratio, one in found.items()}
    seconds = perf_counter() - began
    return replace(found[best], best_l1_ratio=best, by_l1_ratio=others, seconds=seconds)


def tunable_parts(estimator: Any, caller: str) -> Parts:
    """Steps and model of a pipeline or an estimator; refused if the model has no parameter C."""
    parts = taken_apart(estimator)
    model = parts.model
    if not hasattr(model, "get_params") or "C" not in model.get_params(deep=False):
        raise BadInput(
            f"{caller} needs an estimator with a parameter C, or a Pipeline that ends in one; got "
            f"{type(model).__name__}."
        )
    return parts


def with_strength(estimator: Any, C: float) -> Any:
    """An unfitted copy of an estimator or a pipeline, whose model has this C."""
    return _with(estimator, C=C)


def _with(estimator: Any, **params: float) -> Any:
    """An unfitted copy of an estimator or a pipeline, whose model has these parameters."""
    before = f"{final_step(estimator)}__" if isinstance(estimator, Pipeline) else ""
    return clone(estimator).set_params(**{before + name: value for name, value in params.items()})


def examined(parts: Parts, X: Any, y: Any, weight: Any) -> tuple[Any, npt.NDArray[Any], Any]:
    """X, y and weights as the fits will see them: what is refused, is refused before anything is fitted.

    Rows that the steps of a pipeline are to read are not looked at.

    A frame stays one, because its columns have names; a scan hands over its target and weights. Of rows on a cluster
    the targets and weights come here, 8 bytes for each row; the rows are made once and stay there.
    """
    if location_of(X) is Location.CLUSTER:
        return persist(X, y, weight)
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
        X = rows if names is None and not on_disk else X
    return X, target, weights(weight, len(target))


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, int | np.integer):
        if not 0 <= random_state < 2**32:
            raise BadInput(
                f"random_state must be a whole number from 0 to 2**32 - 1, got {random_state!r:.40}."
            )
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise BadInput(f"random_state: {error}") from error


def _rows_of(
    X: Any, y: npt.NDArray[Any], weight: FloatArray | None, rows: npt.NDArray[np.int64] | None
) -> tuple[Any, npt.NDArray[Any], FloatArray | None]:
    """X, y and the weights at these rows; as they are if all are meant. On disk the others weigh nothing."""
    if rows is None:
        return X, y, weight
    if location_of(X) is not Location.MEMORY:
        return X, y, separate.without(weight, len(y), rows)
    return take_rows(X, rows), y[rows], None if weight is None else weight[rows]


class _Found:
    """What is known of the grid so far: scores and certificates (c, folds), and the order of the models."""

    def __init__(self, Cs: FloatArray, folds: int, began: float, reject: bool, keep: bool) -> None:
        self.Cs, self._began, self.reject = Cs, began, reject
        self.rejected: dict[float, tuple[float, float]] = {}
        self.scores = np.full((len(Cs), folds), np.nan)
        self.certificates = np.empty(self.scores.shape, dtype=object)
        self.trace: list[GridRecord] = []
        self.job: Job | None = None
        self.fold = 0  #: number of the fold whose models come as fold 0
        self._keep = keep
        self._weights: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}

    def kept(self, which: int) -> FloatArray | None:
        """The coefficients (c, folds, k, d) or the intercepts (c, folds, k), if they were to be kept."""
        if not self._keep:
            return None
        c, folds = self.scores.shape
        rows = [[self._weights[i, f][which] for f in range(folds)] for i in range(c)]
        if len({row.shape for line in rows for row in line}) > 1:
            raise BadInput(
                "keep=True needs the same number of features in every fold, but the steps of the pipeline made "
                f"{sorted({row.shape[-1] for line in rows for row in line})}; leave keep out."
            )
        return np.array(rows)

    def add_fit(self, c: int, f: int, score: float, fit: Any) -> None:
        """One model of a grid that was fitted together is done."""
        self.add(c, f, score, fit.certificate, fit.n_passes, fit.W[:-1].T, fit.W[-1])

    def add_model(self, c: int, f: int, score: float, model: Any) -> None:
        """One model that was fitted on its own is done."""
        proof, passes = require_certificate(model, "tune"), getattr(model, "n_passes_", 0.0)
        self.add(c, f, score, proof, passes, model.coef_, model.intercept_)

    def add(
        self, c: int, f: int, score: float, proof: Optimality, passes: float, coef: Any, b: Any
    ) -> None:
        """One model is done."""
        f += self.fold
        if self._keep:
            self._weights[c, f] = np.atleast_2d(coef).copy(), np.atleast_1d(b).copy()
        self.scores[c, f], self.certificates[c, f] = score, proof
        seconds = perf_counter() - self._began
        self.trace.append(GridRecord(float(self.Cs[c]), f, seconds, passes, proof.relative_gap))
        if self.job is not None:
            self.job.done = max(self.job.done, len(self.trace))


def _scores_of_folds(
    whole: Parts,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    parts: splits.Splits,
    score: Score,
    found: _Found,
) -> None:
    """Every model of the grid: on rows that all folds share, or, after steps, on the rows that each fold has made.

    The steps are fitted to the training rows of a fold and applied to the held-out ones; what they return serves
    every C.
    """
    if whole.steps is None:
        _grid_scores(whole.model, X, y, weight, parts, score, found)
        return
    for f, (train, held) in enumerate(parts.pairs):
        steps, order = clone(whole.steps), np.concatenate([train, held])
        seen = steps.fit_transform(take_rows(X, train), y[train])
        rows = stacked(seen, steps.transform(take_rows(X, held)))
        cut = np.arange(len(train)), np.arange(len(train), len(order))
        own = None if weight is None else weight[order]
        found.fold = f
        one = splits.Splits((cut,), None, None)
        _grid_scores(whole.model, rows, y[order], own, one, score, found)


def _grid_scores(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    parts: splits.Splits,
    score: Score,
    found: _Found,
) -> None:
    """Every model of the grid, scored by the rows that were held out from it."""
    if not _scores_together(estimator, X, y, weight, parts, score, found):
        given_rows = (estimator, X, y, weight, found.Cs, parts.pairs)
        if found.reject:
            models = rejecting.models(*given_rows, found.rejected)
        else:
            models = separate.models(*given_rows)
        for c, f, model in models:
            value = separate.held_out(score, model, X, y, weight, parts.pairs[f][1])
            found.add_model(c, f, value, model)


def _scores_together(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    parts: splits.Splits,
    score: Score,
    found: _Found,
) -> bool:
    """Score a grid that is fitted together; False if no engine takes it."""
    Cs, part = found.Cs.tolist(), parts.parts(len(y))
    here = location_of(X) is not Location.CLUSTER
    asked = tunable(estimator) if here and part is not None else None
    problem = None if asked is None else asked._grid_problem(X, y, weight)
    if asked is None or problem is None:
        return False
    problem, counted = problem.on(Cs, part), score is ERROR and is_classifier(estimator)
    if counted and problem.weight is None:
        errors = np.zeros((len(Cs), parts.count), dtype=np.int64)
        fits = fit_grid(problem, HeldOut(errors=errors))
        if fits is None:
            return False
        for f, size in enumerate(parts.sizes):
            for c in range(len(Cs)):
                found.add_fit(c, f, errors[c, f] / size, fits[c, f])
        return True
    many = len(y) * len(Cs) > _HELD and isinstance(problem.rows, np.ndarray)
    held = None if many else np.zeros((len(y), len(Cs)))
    fits = fit_grid(problem, HeldOut(held))
    if fits is None:
        return False
    for f, (_, rows) in enumerate(parts.pairs):
        if held is not None:
            z = np.ascontiguousarray(held[rows].T)
        else:
            z = separate.scores(problem.rows, rows, [fits[c, f].W for c in range(len(Cs))])
        own = None if weight is None else weight[rows]
        for c in range(len(Cs)):
            model = asked._scoring_model(problem, fits[c, f])
            found.add_fit(c, f, score.of(model, z[c, :, None], y[rows], own), fits[c, f])
    return True


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
    wish = f"cv={splits.LEAVE_ONE_OUT!r}"
    if validation is not None or groups is not None:
        raise BadInput(f"{wish} leaves out single rows: it takes neither validation nor groups.")
    if rule != "best":
        raise BadInput(
            f"{wish} has no folds whose spread rule={rule!r} could use; take rule='best'."
        )


def _left_out_scores(
    whole: Parts,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    parts: splits.Splits,
    score: Score,
    found: _Found,
) -> None:
    """The fits of every C to all rows, scored by approximate leave-one-out."""
    if location_of(X) is Location.CLUSTER:
        raise BadInput(
            f"cv={splits.LEAVE_ONE_OUT!r} needs the rows in memory or on disk; give a number of folds."
        )
    asked = tunable(whole.model)
    problem = None if asked is None else asked._grid_problem(X, y, weight)
    leave_one_out.refuse(problem)
    assert asked is not None and problem is not None
    for c, fit in enumerate(leave_one_out.fits_of(problem, found.Cs.tolist())):
        z = leave_one_out.scores(problem, fit)
        value = score.of(asked._scoring_model(problem, fit), z[:, None], y, weight)
        found.add_fit(c, 0, value, fit)


def _tested(
    model: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    rows: npt.NDArray[np.int64],
    score: Score,
) -> tuple[float, float | None]:
    value = separate.held_out(score, model, X, y, weight, rows)
    if score.name != "error" or weight is not None:
        return value, None
    n = len(rows)
    wrong = round(value * n)
    return value, float(clopper_pearson(wrong, n, delta=0.05))


def _warn(certificates: npt.NDArray[Any]) -> None:
    short = [c for c in certificates.flat if not c.certified]
    if short:
        worst = max(short, key=lambda c: c.relative_gap)
        text = f"{len(short)} of {certificates.size} models of the grid are not certified. Worst: {worst}"
        warnings.warn(ConvergenceWarning(text, worst), stacklevel=3)
