"""Validation of estimator parameters, which happens in ``fit``, and their conversion to a ``Recipe``."""

from __future__ import annotations

from dataclasses import replace
from functools import cache
from typing import Any

import numpy as np

from linsep import arguments, losses
from linsep.errors import BadInput, Refused, require_tolerance
from linsep.losses import CoupledLoss, Loss
from linsep.losses.laws import require_convex
from linsep.penalties import ElasticNet, resolve
from linsep.train import Recipe

# Checks shared with other layers.
one_of, flag, number = arguments.one_of, arguments.flag, arguments.number
count, threads = arguments.count, arguments.threads
positive, seed = arguments.positive, arguments.seed

#: Parameters with a value for each feature.
_BY_FEATURE = ("penalty_factor", "feature_groups")


def recipe(model: Any, loss: Loss | CoupledLoss) -> Recipe:
    """Return the Recipe of an estimator whose attributes include the common parameters."""
    flag("warm_start", model.warm_start)
    return Recipe(
        loss=loss,
        penalty=ElasticNet(
            number("C", model.C), number("l1_ratio", getattr(model, "l1_ratio", 0.0))
        ),
        fit_intercept=flag("fit_intercept", model.fit_intercept),
        tol=tolerance(model.tol),
        solver=_solver(model.solver),
        time_limit=_limit("time_limit", model.time_limit, "seconds"),
        max_passes=_limit("max_passes", model.max_passes, "passes over the data"),
        n_threads=threads(model.n_threads),
        seed=seed(model.random_state),
    )


def _solver(given: Any) -> str:
    if not isinstance(given, str):
        raise BadInput(
            f"solver must be a name, for instance 'auto' or 'newton', got {given!r:.80}."
        )
    return given


def has_feature_penalties(model: Any) -> bool:
    """Return whether the parameters specify a penalty that differs between features."""
    return any(getattr(model, name, None) is not None for name in _BY_FEATURE)


def tolerance(given: Any) -> float:
    """Return ``tol`` as a float; raise unless it is a valid relative gap, between 0 and 1."""
    value = number("tol", given)
    require_tolerance(value)
    return value


def for_features(model: Any, recipe: Recipe, d: int, names: Any) -> Recipe:
    """Return the recipe with ``penalty_factor`` and ``feature_groups`` resolved to the d features and their names."""
    if not has_feature_penalties(model):
        return recipe
    factor, groups = (getattr(model, name, None) for name in _BY_FEATURE)
    return replace(recipe, penalty=resolve(recipe.penalty, factor, groups, d, names))


def classification_loss(given: Any) -> Loss:
    """Return the given loss (a name or a Loss); raise if it is not for class labels."""
    return _loss_for("classification", "class labels", given)


def has_probabilities(model: Any) -> bool:
    """Return True; raise if the loss of the classifier gives no probabilities."""
    if not classification_loss(model.loss).probabilistic:
        raise Refused(
            f"loss={model.loss!r} gives no probabilities; use loss='logistic', or "
            "sklearn.calibration.CalibratedClassifierCV around this model."
        )
    return True


def regression_loss(given: Any) -> Loss:
    """Return the given loss (a name or a Loss) as a function of the residual; raise if it is not for real targets."""
    return _loss_for("regression", "real targets", given).for_targets()


def positive_or_auto(name: str, given: Any) -> float | None:
    """Return a positive finite number, or None if "auto" was given instead."""
    if isinstance(given, str):
        if given == "auto":
            return None
        raise BadInput(f"{name} must be a positive finite number or 'auto', got {given!r}.")
    return positive(name, given, " or 'auto'")


def limit(name: str, given: Any, unit: str) -> float:
    """Return a positive limit, or infinity for None."""
    found = _limit(name, given, unit)
    return np.inf if found is None else found


@cache
def _convex_losses(fact: str) -> tuple[str, ...]:
    """Return the names of the convex losses with a fact."""
    return tuple(name for name in losses.names_with(fact) if losses.get(name).convex)


def _loss_for(fact: str, what: str, given: Any) -> Loss:
    fit = _convex_losses(fact)
    loss = require_convex(losses.get(given, fit))
    if not getattr(loss, fact):
        raise BadInput(
            f"the loss {loss.name!r} is not a loss for {what}; use one of {', '.join(fit)}."
        )
    return loss


def _limit(name: str, given: Any, unit: str) -> float | None:
    if given is None:
        return None
    limit = number(name, given)
    if not limit > 0:
        raise BadInput(f"{name} must be a positive number of {unit}, or None, got {given!r}.")
    return limit
