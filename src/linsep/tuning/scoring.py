"""Scores on held-out rows: error, log-loss, AUC, mean squared or absolute error, or any scorer of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.metrics import get_scorer

from linsep.data import Location, location_of
from linsep.errors import BadInput, LinsepError

NAMES = ("error", "log_loss", "auc")


@dataclass(frozen=True)
class Score:
    """Score with its name, its orientation, and the function (model, X, y, weight) -> float."""

    name: str
    greater_is_better: bool
    of: Callable[[Any, Any, npt.NDArray[Any], Any], float]
    is_mean: bool = False  #: whether it is a mean over rows, which can be computed in parts


def resolve(scoring: Any, regression: bool) -> Score:
    """Return the score for a name or scorer; None means error for classes, mean squared error for numeric targets."""
    if scoring is None:
        scoring = "mean_squared_error" if regression else "error"
    if isinstance(scoring, str) and scoring in _OWN:
        return _OWN[scoring]
    if callable(scoring):
        return Score(getattr(scoring, "__name__", "score"), True, _scorer(scoring))
    try:
        scorer = get_scorer(scoring)
    except (ValueError, KeyError, TypeError) as error:
        raise BadInput(
            f"Unknown scoring {scoring!r}. Use one of {', '.join(NAMES)}, the name of a scikit-learn "
            "scorer (sklearn.metrics.get_scorer_names()), or a function (model, X, y) -> float."
        ) from error
    return Score(str(scoring), True, _scorer(scorer))


def _scorer(scorer: Any) -> Callable[[Any, Any, npt.NDArray[Any], Any], float]:
    def of(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
        if location_of(X) is not Location.MEMORY:
            raise BadInput(
                f"Rows on disk or on a cluster are scored by one of {', '.join(_OWN)}: give one as scoring."
            )
        try:
            return float(scorer(model, X, y))
        except LinsepError:
            raise
        except Exception as error:  # a user's function may raise anything
            name = getattr(scorer, "__name__", scorer)
            raise BadInput(
                f"scoring={name} failed on a fold ({type(error).__name__}: {error}); it must be a function "
                "(model, X, y) -> float."
            ) from error

    return of


def mean(values: npt.NDArray[Any], weight: Any) -> float:
    """Return the mean of the values, weighted unless ``weight`` is None."""
    return float(np.average(values, weights=weight))


def _error(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
    return mean(np.asarray(model.predict(X)) != y, weight)


def _log_loss(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
    if not hasattr(model, "predict_log_proba"):
        raise BadInput(
            f"scoring='log_loss' needs probabilities, which {type(model).__name__} does not give; "
            "use scoring='error' or 'auc'."
        )
    logs = np.asarray(model.predict_log_proba(X))
    at = np.searchsorted(model.classes_, y)
    return mean(-logs[np.arange(len(at)), at], weight)


def _auc(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
    from sklearn.metrics import roc_auc_score  # noqa: PLC0415

    if len(model.classes_) != 2:
        raise BadInput("scoring='auc' is for two classes; use scikit-learn's 'roc_auc_ovr'.")
    if len(np.unique(y)) < 2:
        raise BadInput(
            "scoring='auc' needs rows of both classes in every fold, and one fold has only "
            f"{np.unique(y).tolist()}; use stratified folds (an integer cv) or scoring='log_loss'."
        )
    z = np.asarray(model.decision_function(X))
    return float(roc_auc_score(y == model.classes_[1], z, sample_weight=weight))


def _squared_error(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
    return mean((np.asarray(model.predict(X)) - y) ** 2, weight)


def _absolute_error(model: Any, X: Any, y: npt.NDArray[Any], weight: Any) -> float:
    return mean(np.abs(np.asarray(model.predict(X)) - y), weight)


ERROR = Score("error", False, _error, is_mean=True)
_OWN = {
    score.name: score
    for score in (
        ERROR,
        Score("log_loss", False, _log_loss, is_mean=True),
        Score("auc", True, _auc),
        Score("mean_squared_error", False, _squared_error, is_mean=True),
        Score("mean_absolute_error", False, _absolute_error, is_mean=True),
    )
}
