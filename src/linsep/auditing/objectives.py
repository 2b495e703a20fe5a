"""The optimisation problem that a fitted linear model solved, read from its class and parameters.

Every problem is written in linsep's terms, minimise

    unit * ( (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(m_i) ),

so that ``unit`` times linsep's objective is the number that the model's own documentation defines. A penalised
intercept is the coefficient of a constant column (LIBLINEAR's ``intercept_scaling``).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.utils.class_weight import compute_class_weight

from linsep import losses
from linsep.errors import BadInput, Refused
from linsep.losses import CoupledLoss, CrammerSinger, Loss, Multinomial

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Part:
    """One subproblem: its rows, its targets, and the coefficients (d + 1, k) that the model found for it."""

    W: FloatArray
    sign: FloatArray | None = None
    target: FloatArray | None = None
    labels: IntArray | None = None
    weight: FloatArray | None = None
    rows: npt.NDArray[np.bool_] | None = None
    C: float | None = None  #: where the subproblems differ in C


@dataclass(frozen=True, eq=False)
class Objective:
    """What a model minimised."""

    text: str  #: the objective as its documentation writes it
    loss: Loss | CoupledLoss
    C: float
    parts: tuple[Part, ...]
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    intercept_scaling: float = (
        0.0  #: > 0: the intercept is penalised, as the weight of a column of this value
    )
    unit: float = 1.0


@dataclass(frozen=True, eq=False)
class Given:
    """The rows as numbers, the targets and the weights as they were given."""

    n: int
    y: npt.NDArray[Any]
    weight: FloatArray | None

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights, n without any."""
        return float(self.n if self.weight is None else self.weight.sum())


Reader = Callable[[Any, Given], Objective]
_READERS: dict[str, Reader] = {}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Register a reader for estimators of scikit-learn with these class names."""

    def register(reader: Reader) -> Reader:
        for name in names:
            _READERS[name] = reader
        return reader

    return register


def objective_of(model: Any, given: Given) -> Objective:
    """The problem of a fitted estimator, found by the name of its class or of a base class."""
    for kind in type(model).__mro__:
        reader = _READERS.get(kind.__name__)
        if reader is not None and kind.__module__.startswith("sklearn."):
            return reader(model, given)
    raise Refused(
        f"linsep.audit does not know the objective of {type(model).__name__}. It audits "
        f"{', '.join(sorted(_READERS))} of scikit-learn, pipelines that end in one of them, and (coef, intercept) with "
        "loss= and C=."
    )


def plain(
    coef: Any, intercept: Any, given: Given, loss: str | Loss, C: float, l1_ratio: float
) -> Objective:
    """The problem of coefficients from elsewhere: linsep's objective with a free intercept."""
    found = losses.get(loss)
    W = np.append(np.asarray(coef, float).ravel(), float(np.ravel(intercept)[0])).reshape(-1, 1)
    if np.issubdtype(given.y.dtype, np.floating) and found.regression:
        part = Part(W, target=given.y.astype(float), weight=given.weight)
        found = found.for_targets()
    else:
        part = next(_one_vs_rest(np.unique(given.y), W.T, given))
    return Objective(f"1/2 |w|^2 + C sum {found.name}", found, C, (part,), l1_ratio)


def _one_vs_rest(classes: Any, rows: FloatArray, given: Given) -> Iterator[Part]:
    """One subproblem for two classes, one for each class against the others for more."""
    known = np.asarray(classes)
    if len(known) == 2:
        yield Part(rows.T, sign=np.where(given.y == known[1], 1.0, -1.0), weight=given.weight)
        return
    for label, row in zip(known, rows, strict=True):
        yield Part(
            row.reshape(-1, 1), sign=np.where(given.y == label, 1.0, -1.0), weight=given.weight
        )


def _weighted_one_vs_rest(model: Any, given: Given) -> tuple[Part, ...]:
    """One-vs-rest as LIBLINEAR and scikit-learn's SGD weight it: the class against rows of weight 1, not of theirs."""
    classes, rows = np.asarray(model.classes_), _coefficients(model)
    if len(classes) == 2 or model.class_weight is None:
        return tuple(_one_vs_rest(classes, rows, _weighted(model, given)))
    parts = _one_vs_rest(classes, rows, given)
    factors = compute_class_weight(model.class_weight, classes=classes, y=given.y)
    plain = np.ones(given.n) if given.weight is None else given.weight
    return tuple(
        replace(part, weight=np.where(part.sign == 1.0, factor, 1.0) * plain)
        for part, factor in zip(parts, factors, strict=True)
    )


def _coefficients(model: Any) -> FloatArray:
    """Rows (w, b), one for each column of the scores."""
    coef = model.coef_.toarray() if hasattr(model.coef_, "toarray") else np.asarray(model.coef_)
    coef = np.atleast_2d(coef.astype(float))
    intercept = np.broadcast_to(np.ravel(model.intercept_).astype(float), (len(coef),))
    return np.column_stack([coef, intercept])


def _weighted(model: Any, given: Given) -> Given:
    """Sample weights times class weights."""
    if model.class_weight is None:
        return given
    classes = np.asarray(model.classes_)
    factor = compute_class_weight(model.class_weight, classes=classes, y=given.y)
    each = np.asarray(factor, float)[np.searchsorted(classes, given.y)]
    return replace(given, weight=each if given.weight is None else each * given.weight)


def _mixing(model: Any) -> tuple[float, bool]:
    """``l1_ratio``, and whether there is a penalty at all."""
    penalty = getattr(model, "penalty", "deprecated")
    if penalty in ("l1", "l2", None):
        return (1.0 if penalty == "l1" else 0.0), penalty is not None
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0))
    return float(np.ravel(0.0 if ratio is None else ratio)[0]), True


@reads("LogisticRegression", "LogisticRegressionCV")
def _logistic(model: Any, given: Given) -> Objective:
    ratio, penalised = _mixing(model)
    strengths = np.ravel(getattr(model, "C_", model.C if hasattr(model, "C") else 1.0)).astype(
        float
    )
    C = float(strengths[0]) if penalised else math.inf
    rows, k = _coefficients(model), len(model.classes_)
    liblinear = model.solver == "liblinear"
    scaling = float(model.intercept_scaling) if liblinear and model.fit_intercept else 0.0
    common: dict[str, Any] = {
        "C": C,
        "l1_ratio": ratio,
        "fit_intercept": bool(model.fit_intercept),
        "intercept_scaling": scaling,
    }
    ovr = liblinear or getattr(model, "multi_class", None) == "ovr"
    if k == 2 or ovr:
        if liblinear:
            parts = _weighted_one_vs_rest(model, given)
        else:
            parts = tuple(_one_vs_rest(model.classes_, rows, _weighted(model, given)))
        if len(strengths) == len(parts) > 1:
            parts = tuple(
                replace(part, C=float(c)) for part, c in zip(parts, strengths, strict=True)
            )
        return Objective(
            _text("log(1 + exp(-m))", **common), losses.Logistic(), parts=parts, **common
        )
    codes = np.searchsorted(np.asarray(model.classes_), given.y).astype(np.int64)
    part = Part(rows.T, labels=codes, weight=_weighted(model, given).weight)
    return Objective(_text("multinomial loss", **common), Multinomial(k), parts=(part,), **common)


@reads("LinearSVC")
def _linear_svc(model: Any, given: Given) -> Objective:
    common: dict[str, Any] = {
        "C": float(model.C),
        "l1_ratio": 1.0 if model.penalty == "l1" else 0.0,
        "fit_intercept": bool(model.fit_intercept),
        "intercept_scaling": float(model.intercept_scaling) if model.fit_intercept else 0.0,
    }
    rows, k = _coefficients(model), len(model.classes_)
    if model.multi_class == "crammer_singer":
        codes = np.searchsorted(np.asarray(model.classes_), given.y).astype(np.int64)
        W = np.column_stack([-rows[0], rows[0]]) / 2.0 if k == 2 and len(rows) == 1 else rows.T
        part = Part(W, labels=codes, weight=_weighted(model, given).weight)
        return Objective(
            _text("Crammer-Singer", **common), CrammerSinger(k), parts=(part,), **common
        )
    loss, parts = losses.get(model.loss), _weighted_one_vs_rest(model, given)
    return Objective(_text(model.loss.replace("_", " "), **common), loss, parts=parts, **common)


@reads("SVC")
def _svc(model: Any, given: Given) -> Objective:
    given = _weighted(model, given)
    rows, classes = _coefficients(model), np.asarray(model.classes_)
    if len(classes) == 2:
        parts = tuple(_one_vs_rest(classes, rows, given))
    else:
        parts = tuple(_one_vs_one(classes, rows, given))
    return Objective(
        "1/2 |w|^2 + C sum hinge, free intercept", losses.Hinge(), float(model.C), parts
    )


def _one_vs_one(classes: Any, rows: FloatArray, given: Given) -> Iterator[Part]:
    """LIBSVM's pairs of classes: a positive score is a vote for the first."""
    pairs = [(a, b) for i, a in enumerate(classes) for b in classes[i + 1 :]]
    for (a, b), row in zip(pairs, rows, strict=True):
        kept = (given.y == a) | (given.y == b)
        weight = None if given.weight is None else given.weight[kept]
        sign = np.where(given.y[kept] == a, 1.0, -1.0)
        yield Part(row.reshape(-1, 1), sign=sign, weight=weight, rows=kept)


@reads("RidgeClassifier", "RidgeClassifierCV")
def _ridge_classifier(model: Any, given: Given) -> Objective:
    given = _weighted(model, given)
    parts = tuple(_one_vs_rest(model.classes_, _coefficients(model), given))
    return _ridge_objective(model, losses.Squared(), parts)


@reads("Ridge", "RidgeCV")
def _ridge(model: Any, given: Given) -> Objective:
    return _ridge_objective(model, losses.Squared().for_targets(), (_numeric(model, given),))


def _ridge_objective(model: Any, loss: Loss, parts: tuple[Part, ...]) -> Objective:
    _refuse_positive(model)
    alpha = float(
        np.ravel(getattr(model, "alpha_", model.alpha if hasattr(model, "alpha") else 0.0))[0]
    )
    C, unit = (math.inf, 1.0) if alpha == 0.0 else (1.0 / (2.0 * alpha), 2.0 * alpha)
    text = "sum (t - x.w - b)^2 + alpha |w|^2"
    return Objective(text, loss, C, parts, fit_intercept=bool(model.fit_intercept), unit=unit)


@reads("LinearRegression")
def _linear_regression(model: Any, given: Given) -> Objective:
    _refuse_positive(model)
    part = _numeric(model, given)
    loss = losses.Squared().for_targets()
    text, free = "sum (t - x.w - b)^2", bool(model.fit_intercept)
    return Objective(text, loss, math.inf, (part,), fit_intercept=free)


@reads("ElasticNet", "Lasso", "ElasticNetCV", "LassoCV")
def _elastic_net(model: Any, given: Given) -> Objective:
    _refuse_positive(model)
    alpha = float(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    total = given.total_weight
    C, unit = (math.inf, 0.5 / total) if alpha == 0.0 else (0.5 / (alpha * total), alpha)
    part = _numeric(model, given)
    text = "mean (t - x.w - b)^2 / 2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)"
    loss, free = losses.Squared().for_targets(), bool(model.fit_intercept)
    return Objective(text, loss, C, (part,), float(ratio), free, unit=unit)


@reads("HuberRegressor")
def _huber(model: Any, given: Given) -> Objective:
    scale, alpha = float(model.scale_), float(model.alpha)
    loss = losses.Huber(float(model.epsilon) * scale).for_targets()
    C, unit = (math.inf, 2.0 / scale) if alpha == 0.0 else (1.0 / (alpha * scale), 2.0 * alpha)
    text = f"sum scale H((t - x.w - b)/scale) + alpha |w|^2 at its own scale {scale:.6g}"
    part, free = _numeric(model, given), bool(model.fit_intercept)
    return Objective(text, loss, C, (part,), fit_intercept=free, unit=unit)


@reads("QuantileRegressor")
def _quantile(model: Any, given: Given) -> Objective:
    if model.quantile != 0.5 or model.alpha != 0.0:
        raise Refused(
            "linsep.audit takes QuantileRegressor with quantile=0.5 and alpha=0: linsep has no other quantile loss, "
            "and no absolute loss with an L1 penalty."
        )
    loss, free = losses.Absolute().for_targets(), bool(model.fit_intercept)
    text, unit = "mean |t - x.w - b| / 2", 0.5 / given.total_weight
    return Objective(text, loss, math.inf, (_numeric(model, given),), fit_intercept=free, unit=unit)


_SGD: dict[str, Callable[[Any], tuple[Loss, float]]] = {
    "hinge": lambda model: (losses.Hinge(), 1.0),
    "log_loss": lambda model: (losses.Logistic(), 1.0),
    "squared_hinge": lambda model: (losses.SquaredHinge(), 1.0),
    "modified_huber": lambda model: (losses.HuberisedHinge(2.0), 4.0),
    "squared_error": lambda model: (losses.Squared(), 0.5),
    "huber": lambda model: (losses.Huber(float(model.epsilon)), 1.0),
}


@reads("SGDClassifier", "SGDRegressor")
def _sgd(model: Any, given: Given) -> Objective:
    known = _SGD.get(model.loss)
    if known is None:
        raise Refused(f"linsep.audit has no loss {model.loss!r}; it knows {', '.join(_SGD)}.")
    loss, factor = known(model)
    classifier = hasattr(model, "classes_")
    if classifier:
        parts = _weighted_one_vs_rest(model, given)
    else:
        parts, loss = (_numeric(model, given),), loss.for_targets()
    alpha, ratio = (
        float(model.alpha),
        {"l1": 1.0, "l2": 0.0}.get(model.penalty, float(model.l1_ratio)),
    )
    none = model.penalty is None or alpha == 0.0
    C = math.inf if none else factor / (alpha * given.n)
    unit = factor / given.n if none else alpha
    text = f"alpha penalty + mean {model.loss.replace('_', ' ')}"
    free = bool(model.fit_intercept)
    return Objective(text, loss, C, parts, 0.0 if none else ratio, free, unit=unit)


def _numeric(model: Any, given: Given) -> Part:
    if np.ndim(model.coef_) > 1 and len(model.coef_) > 1:
        raise Refused("linsep.audit takes one target at a time.")
    return Part(_coefficients(model).T, target=given.y.astype(float), weight=given.weight)


def _refuse_positive(model: Any) -> None:
    if getattr(model, "positive", False):
        raise Refused("linsep.audit does not take positive=True: linsep has no such constraint.")


def _text(
    loss: str, C: float, l1_ratio: float, fit_intercept: bool, intercept_scaling: float
) -> str:
    penalty = {0.0: "1/2 |w|^2", 1.0: "|w|_1"}.get(l1_ratio, "elastic net")
    weights = "sum" if math.isinf(C) else "C sum"
    intercept = "no intercept"
    if fit_intercept:
        intercept = "penalised intercept" if intercept_scaling else "free intercept"
    head = "" if math.isinf(C) else f"{penalty} + "
    return f"{head}{weights} {loss}, {intercept}"


def targets(y: Any, n: int) -> npt.NDArray[Any]:
    """y as a vector of n entries."""
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    if found.shape != (n,):
        raise BadInput(
            f"y must have one entry for each of the {n:,} rows, got shape {found.shape}."
        )
    return found
