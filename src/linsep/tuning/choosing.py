"""Choosing C by held-out rows."""

from __future__ import annotations

import warnings
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone, is_classifier
from sklearn.utils import check_random_state

from linsep.bounds import clopper_pearson
from linsep.errors import BadInput, ConvergenceWarning
from linsep.tuning import separate, shared, splits
from linsep.tuning.grids import grid_of
from linsep.tuning.results import Tuning, ValidationCurve
from linsep.tuning.scoring import Score, resolve
from linsep.watching import Job

FloatArray = npt.NDArray[np.float64]

RULES = ("best", "one_standard_error")


def tune(  # noqa: PLR0913
    estimator: Any,
    X: Any,
    y: Any,
    Cs: Any = None,
    *,
    cv: Any = 5,
    validation: float | None = None,
    test: float | None = None,
    scoring: Any = None,
    rule: str = "best",
    refit: bool = True,
    sample_weight: Any = None,
    groups: Any = None,
    random_state: Any = None,
) -> Tuning:
    """Choose C: fit every C without each fold, score it there, and take the best.

    Every model of the grid is certified, and its scores are those of a fit on its own.

    Parameters
    ----------
    estimator : estimator
        Of linsep, unfitted or not; its own C is not used.
    X, y : array-likes
        As for ``fit``.
    Cs : array of floats, int or None
        The values to try, or how many from 1e-4 to 1e4 on a logarithmic scale; 10 by default.
    cv : int, scikit-learn splitter or list of (train, held out) pairs
        Stratified folds for an int, shuffled if ``random_state`` is given.
    validation : float, optional
        One validation part of this share of the rows in place of ``cv``.
    test : float, optional
        Share of the rows that no model of the grid sees; the chosen one is judged by it.
    scoring : {"error", "log_loss", "auc"}, scikit-learn scorer or None
        None means "error" for classes and "mean_squared_error" for targets.
    rule : {"best", "one_standard_error"}
        The best mean, or the smallest C within one standard error of it.
    refit : bool
        Fit the chosen C to all rows but those of the test part.
    sample_weight : array (n,), optional
        Weight of each row, in the fits and in "error", "log_loss" and "auc".
    groups : array (n,), optional
        For splitters that keep groups together.
    random_state : int, RandomState or None
        Seed of the folds and parts.

    Returns
    -------
    Tuning

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
    if rule not in RULES:
        raise BadInput(f"rule must be one of {', '.join(map(repr, RULES))}, got {rule!r}.")
    if not hasattr(estimator, "get_params") or "C" not in estimator.get_params(deep=False):
        raise BadInput(
            f"tune needs an estimator with a parameter C, got {type(estimator).__name__}; of a pipeline "
            "tune the last step on the transformed rows, or use GridSearchCV."
        )
    grid = grid_of(Cs)
    classifier = is_classifier(estimator)
    score = resolve(scoring, regression=not classifier)
    X, target = examined(estimator, X, y)
    parts = splits.make(
        target,
        cv=cv,
        validation=validation,
        test=test,
        groups=groups,
        classifier=classifier,
        seed=_seed(random_state),
    )
    weight = None if sample_weight is None else np.asarray(sample_weight, dtype=np.float64)
    with Job("tune", total=len(grid) * len(parts.pairs)) as job:
        scores, certificates = _grid_scores(estimator, X, target, weight, grid, parts, score, job)
    curve = ValidationCurve(grid, scores, score.name, score.greater_is_better)
    best_C = float(grid[curve.best if rule == "best" else curve.within_one_error])
    model, tested, bound = None, None, None
    if refit or parts.test is not None:
        model = clone(estimator).set_params(C=best_C)
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
    )


def examined(estimator: Any, X: Any, y: Any) -> tuple[Any, npt.NDArray[Any]]:
    """X and y as the fits will see them: what is refused, is refused before anything is fitted.

    A frame stays one, because its columns have names.
    """
    examine = getattr(estimator, "_examined", None)
    if examine is None:
        return X, np.asarray(y)
    rows, names, target = examine(X, y)
    return (rows if names is None else X), target


def _seed(random_state: Any) -> int | None:
    if random_state is None:
        return None
    if isinstance(random_state, int | np.integer):
        return int(random_state)
    try:
        return int(check_random_state(random_state).randint(2**31 - 1))
    except ValueError as error:
        raise BadInput(f"random_state: {error}") from error


def _grid_scores(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    Cs: FloatArray,
    parts: splits.Splits,
    score: Score,
    job: Job,
) -> tuple[FloatArray, npt.NDArray[Any]]:
    """Held-out scores (c, folds), and the certificates."""
    scores = np.empty((len(Cs), len(parts.pairs)))
    certificates = np.empty(scores.shape, dtype=object)
    part = parts.parts(len(y))
    pose = getattr(estimator, "_shared_problem", None)
    given = pose(X, y, weight) if pose is not None and part is not None else None
    if given is None or part is None or not shared.applies(given, Cs.tolist(), part):
        for c, f, model in separate.models(estimator, X, y, weight, Cs, parts.pairs):
            rows = parts.pairs[f][1]
            scores[c, f] = score.of(
                model, separate.some(X, rows), y[rows], None if weight is None else weight[rows]
            )
            certificates[c, f] = model.certificate_
            job.done += 1
        return scores, certificates
    held = np.zeros((len(y), len(Cs)))
    fits = shared.fit_grid(given, Cs.tolist(), part, held)
    for (c, f), fit in fits.items():
        rows = parts.pairs[f][1]
        judge = estimator._judge(given, fit)
        own = None if weight is None else weight[rows]
        scores[c, f] = score.of(judge, np.ascontiguousarray(held[rows, c : c + 1]), y[rows], own)
        certificates[c, f] = fit.certificate
    return scores, certificates


def _tested(
    model: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    rows: npt.NDArray[np.int64],
    score: Score,
) -> tuple[float, float | None]:
    own = None if weight is None else weight[rows]
    value = score.of(model, separate.some(X, rows), y[rows], own)
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
