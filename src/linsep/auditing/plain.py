"""The problem of plain coefficients without a model: linsep's objective, as stated by the caller."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import losses
from linsep.auditing.objectives import split
from linsep.auditing.subject import Stated, Subject
from linsep.errors import BadInput
from linsep.losses import CoupledLoss, CrammerSinger, Loss, Multinomial
from linsep.losses.laws import require_convex
from linsep.sklearn_objectives import (
    Given,
    Objective,
    Part,
    apply_class_weights,
    class_factors,
    codes,
    one_vs_rest,
)

#: Losses that couple all classes, by name.
COUPLED: dict[str, type[Multinomial] | type[CrammerSinger]] = {
    kind.name: kind for kind in (Multinomial, CrammerSinger)
}
ACCEPTED = ("loss", "C", "l1_ratio", "epsilon", "class_weight")


def read(
    name: str,
    coef: Any,
    intercept: Any,
    X: Any,
    given: Given,
    stated: Stated,
    classes: npt.NDArray[Any] | None = None,
) -> Subject:
    """Return coefficients (k, d) or (d,) with (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(m_i).

    The intercept is not penalised; ``intercept=None`` means that there is none.
    """
    stated.refuse_all_but(ACCEPTED, "(coef, intercept)")
    C = 1.0 if stated.C is None else float(stated.C)
    ratio = 0.0 if stated.l1_ratio is None else float(stated.l1_ratio)
    loss, parts = _loss_and_parts(given, stated, classes)
    penalty = {0.0: "1/2 |w|^2", 1.0: "|w|_1"}.get(ratio, "elastic net")
    text = f"{penalty} + C sum {loss.name}" if np.isfinite(C) else f"sum {loss.name}"
    problem = Objective(text, loss, C, parts, ratio, intercept is not None)
    W = split(problem, _rows(coef), 0.0 if intercept is None else intercept)
    if not all(np.isfinite(each).all() for each in W):
        raise BadInput("The coefficients must be finite numbers.")
    return Subject(name, problem, W, X, given)


def _rows(coef: Any) -> Any:
    return coef if hasattr(coef, "toarray") else np.asarray(coef, dtype=np.float64)


def _loss_and_parts(
    given: Given, stated: Stated, classes: npt.NDArray[Any] | None
) -> tuple[Loss | CoupledLoss, tuple[Part, ...]]:
    name = "logistic" if stated.loss is None else stated.loss
    coupled = COUPLED.get(name) if isinstance(name, str) else None
    if coupled is None:
        loss = _with_epsilon(require_convex(losses.get(name)), stated.epsilon)
        numeric = classes is None and np.issubdtype(given.y.dtype, np.floating)
        if (numeric and loss.regression) or not loss.classification:
            part = Part(target=given.y.astype(float), weight=given.weight)
            return loss.for_targets(), (part,)
    known = np.unique(given.y) if classes is None else classes
    check_labels(known, given.y)
    given = apply_class_weights(given, known, class_factors(stated.class_weight, known, given.y))
    if coupled is None:
        return loss, one_vs_rest(known, given)
    part = Part(labels=codes(known, given.y), weight=given.weight)
    return coupled(len(known)), (part,)


def _with_epsilon(loss: Loss, epsilon: float | None) -> Loss:
    if epsilon is None:
        return loss
    if not any(each.name == "epsilon" for each in fields(loss)):
        raise BadInput(f"The {loss.name} loss has no epsilon.")
    return replace(loss, epsilon=float(epsilon))  # type: ignore[call-arg]


def check_labels(classes: npt.NDArray[Any], y: npt.NDArray[Any]) -> None:
    """Raise if y contains labels that the model does not know."""
    known = set(classes.tolist())
    unknown = [each for each in np.unique(y).tolist() if each not in known]
    if unknown:
        raise BadInput(
            f"y holds {unknown[0]!r}, which is not a class of the model; its classes are {classes.tolist()}."
        )
