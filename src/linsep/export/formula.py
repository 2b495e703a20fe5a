"""What every export writes down: scores, how they become classes and probabilities, and from what columns."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.pipeline import Pipeline
from sklearn.utils.validation import check_is_fitted

from linsep.errors import Refused
from linsep.losses import Logistic, Multinomial
from linsep.tables import Encoder


@dataclass(frozen=True, eq=False)
class Formula:
    """z = W x + b, and what is made of z.

    ``link`` is "softmax" (of all scores), "logistic" (of one score), "ovr" (logistic of each, divided by
    their sum), or None if the scores carry no probabilities. ``classes`` is None for a regression.
    """

    W: npt.NDArray[np.float64]  # (k, d)
    b: npt.NDArray[np.float64]  # (k,)
    columns: list[str]
    classes: list[Any] | None
    link: str | None
    encoder: Encoder | None


def formula(model: Any) -> Formula:
    """The formula of a fitted linsep model, or of a Pipeline of an Encoder and one."""
    encoder = None
    if isinstance(model, Pipeline) and len(model.steps) == 2 and type(model[0]) is Encoder:
        encoder, model = model[0], model[1]
    if not hasattr(type(model), "get_params") or not type(model).__module__.startswith("linsep."):
        raise Refused(
            f"A {type(model).__name__} cannot be exported; give a fitted linsep estimator, or a Pipeline of "
            "an Encoder and one."
        )
    check_is_fitted(model, "coef_")
    W = np.atleast_2d(model.coef_).astype(np.float64)
    names = getattr(model, "feature_names_in_", None)
    columns = [f"x{j + 1}" for j in range(W.shape[1])] if names is None else list(names)
    classes = model.classes_.tolist() if hasattr(model, "classes_") else None
    b = np.atleast_1d(np.asarray(model.intercept_, dtype=np.float64))
    return Formula(W, b, columns, classes, _link(model), encoder)


def plain(model: Any, what: str) -> Formula:
    """The formula of a model that takes numbers; one with an encoder is refused."""
    found = formula(model)
    if found.encoder is not None:
        raise Refused(
            f"{what} holds the numeric part of a model only; export model[-1], and encode the rows with "
            "model[0], or use sql, which writes the encoder down too."
        )
    return found


def _link(model: Any) -> str | None:
    """How the model's predict_proba works, if it has one."""
    if not hasattr(model, "predict_proba"):
        return None
    loss = model._fits[0].recipe.loss.plain
    if isinstance(loss, Multinomial):
        return "softmax"
    if not isinstance(loss, Logistic):
        return None
    return "logistic" if len(model.classes_) == 2 else "ovr"
