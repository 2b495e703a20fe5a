"""Read the optimisation problems of scikit-learn's linear models from their classes and parameters.

Every problem is expressed in linsep's terms, minimise

    unit * ( (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(m_i) ),

so that ``unit`` times linsep's objective is the objective in the model's own documentation. A penalised intercept is
the coefficient of a constant column (LIBLINEAR's ``intercept_scaling``).

``linsep.audit`` reads the problem of a fitted model here; ``linsep.sklearn`` reads the one that it is about to solve.
"""

from __future__ import annotations

import inspect
import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from itertools import combinations
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.class_weight import compute_class_weight

from linsep import losses
from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.errors import Refused
from linsep.losses import CoupledLoss, CrammerSinger, Loss, Multinomial

_WEIGHTED_BALANCE = "sample_weight" in inspect.signature(compute_class_weight).parameters


@dataclass(frozen=True, eq=False)
class Part:
    """One subproblem: its rows, and their signs, numeric targets or class numbers."""

    sign: FloatArray | None = None
    target: FloatArray | None = None
    labels: IntArray | None = None
    weight: FloatArray | None = None
    rows: BoolArray | None = None
    C: float | None = None  #: if the subproblems differ in C
    offset: FloatArray | None = None  #: added to sign * score, if there is no target


@dataclass(frozen=True, eq=False)
class Objective:
    """The objective that a model minimises."""

    text: str  #: the objective as its documentation writes it
    loss: Loss | CoupledLoss
    C: float
    parts: tuple[Part, ...]
    l1_ratio: float = 0.0
    fit_intercept: bool = True
    #: if > 0, the intercept is penalised, as the coefficient of a column of this value
    intercept_scaling: float = 0.0
    unit: float = 1.0
    factor: FloatArray | None = None  #: penalty factor of each feature, if they differ

    @property
    def width(self) -> int:
        """Number of columns in the coefficients of a subproblem."""
        return self.loss.k if isinstance(self.loss, CoupledLoss) else 1

    def rows(self, X: Any) -> Any:
        """X, with a constant column whose coefficient is the intercept, if the intercept is penalised."""
        return _with_constant(X, self.intercept_scaling) if self.intercept_scaling else X


@dataclass(frozen=True, eq=False)
class Given:
    """Number of rows, targets and weights, as given by the caller."""

    n: int
    y: npt.NDArray[Any]
    weight: FloatArray | None
    classes: Any = None  #: classes of a model that is about to be fitted

    def classes_of(self, model: Any) -> Any:
        """Classes given here, or those of the fitted model."""
        return model.classes_ if self.classes is None else self.classes

    @property
    def total_weight(self) -> float:
        """Sum of the sample weights; n without weights."""
        return float(self.n if self.weight is None else self.weight.sum())


Reader = Callable[[Any, Given], Objective]
_READERS: dict[str, Reader] = {}


def reads(*names: str) -> Callable[[Reader], Reader]:
    """Register a reader for scikit-learn estimators with these class names."""

    def register(reader: Reader) -> Reader:
        for name in names:
            _READERS[name] = reader
        return reader

    return register


def objective_of(model: Any, given: Given) -> Objective:
    """Return the problem of an estimator, found by the name of its class or of a base class."""
    for kind in type(model).__mro__:
        reader = _READERS.get(kind.__name__)
        if reader is not None and kind.__module__.startswith("sklearn."):
            return reader(model, given)
    raise Refused(
        f"linsep.audit does not know the objective of {type(model).__name__}. It audits "
        f"{', '.join(sorted(_READERS))} of scikit-learn, pipelines that end in one of them, and (coef, intercept) with "
        "loss= and C=."
    )


def _with_constant(X: Any, value: float) -> Any:
    """X with a last constant column, in double precision if single precision would round the value."""
    dtype = X.dtype if X.dtype.type(value) == value else np.result_type(X.dtype, np.float64)
    if sp.issparse(X):
        X = X.tocsr()
        n, d = X.shape
        ends = X.indptr[1:]
        data, indices = (
            np.insert(X.data.astype(dtype, copy=False), ends, value),
            np.insert(X.indices, ends, d),
        )
        indptr = X.indptr + np.arange(n + 1, dtype=X.indptr.dtype)
        return sp.csr_array((data, indices, indptr), shape=(n, d + 1))
    wide = np.empty((X.shape[0], X.shape[1] + 1), dtype=dtype)
    wide[:, :-1] = X
    wide[:, -1] = value
    return wide


def class_factors(
    class_weight: Any, classes: Any, y: Any, sample_weight: Any = None
) -> FloatArray | None:
    """Weight of each class; since scikit-learn 1.7, "balanced" uses the sample weights if they are given."""
    if class_weight is None:
        return None
    counted = sample_weight is not None and _WEIGHTED_BALANCE
    known = {"sample_weight": sample_weight} if counted else {}
    factors = compute_class_weight(class_weight, classes=np.asarray(classes), y=y, **known)
    return np.asarray(factors, float)


def one_vs_rest(classes: Any, given: Given, factors: FloatArray | None = None) -> tuple[Part, ...]:
    """Return one subproblem for two classes, and one for each class against the rest for more.

    ``factors`` multiply the weights of the classes as in LIBLINEAR and in scikit-learn's SGD: with more than two
    classes, only the rows of the positive class are multiplied, by its factor.
    """
    known = np.asarray(classes)
    numbers = [1] if len(known) == 2 else range(len(known))
    parts = []
    for number in numbers:
        inside = given.y == known[number]
        weight = given.weight
        if factors is not None:
            other = factors[0] if len(known) == 2 else 1.0
            factor = np.where(inside, factors[number], other)
            weight = factor if weight is None else factor * weight
        parts.append(Part(sign=np.where(inside, 1.0, -1.0), weight=weight))
    return tuple(parts)


def apply_class_weights(given: Given, classes: Any, factors: FloatArray | None) -> Given:
    """Multiply the sample weights by the factor of each row's class."""
    if factors is None:
        return given
    each = factors[codes(classes, given.y)]
    return replace(given, weight=each if given.weight is None else each * given.weight)


def codes(classes: Any, y: Any) -> IntArray:
    """Class number of each row."""
    return np.asarray(np.searchsorted(np.asarray(classes), y), dtype=np.int64)


def _mixing(model: Any) -> tuple[float, bool]:
    """``l1_ratio``, and whether there is a penalty at all."""
    penalty = getattr(model, "penalty", "deprecated")
    if penalty in ("l1", "l2", None):
        return (1.0 if penalty == "l1" else 0.0), penalty is not None
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 0.0))
    # None, or an array of None, stands for the default L2 penalty of LogisticRegressionCV.
    first = np.ravel(ratio)[0]
    return (0.0 if first is None else float(first)), True


@reads("LogisticRegression", "LogisticRegressionCV")
def _logistic(model: Any, given: Given) -> Objective:
    ratio, penalised = _mixing(model)
    strengths = np.ravel(getattr(model, "C_", model.C if hasattr(model, "C") else 1.0)).astype(
        float
    )
    C = float(strengths[0]) if penalised else math.inf
    liblinear = model.solver == "liblinear"
    ovr = liblinear or getattr(model, "multi_class", None) == "ovr"
    found = logistic(
        given.classes_of(model),
        given,
        C,
        ratio,
        fit_intercept=bool(model.fit_intercept),
        intercept_scaling=float(model.intercept_scaling) if liblinear else 0.0,
        class_weight=model.class_weight,
        ovr=ovr,
    )
    if len(strengths) == len(found.parts) > 1 and penalised:
        pairs = zip(found.parts, strengths, strict=True)
        found = replace(found, parts=tuple(replace(part, C=float(c)) for part, c in pairs))
    return found


def logistic(
    classes: Any,
    given: Given,
    C: float,
    l1_ratio: float,
    *,
    fit_intercept: bool = True,
    intercept_scaling: float = 0.0,
    class_weight: Any = None,
    ovr: bool = False,
) -> Objective:
    """Objective of logistic regression: two classes, one-vs-rest, or the multinomial loss."""
    common: dict[str, Any] = {
        "C": C,
        "l1_ratio": l1_ratio,
        "fit_intercept": fit_intercept,
        "intercept_scaling": intercept_scaling if fit_intercept else 0.0,
    }
    k = len(classes)
    factors = class_factors(class_weight, classes, given.y, given.weight)
    if k == 2 or ovr:
        if intercept_scaling:
            parts = one_vs_rest(classes, given, factors)
        else:
            parts = one_vs_rest(classes, apply_class_weights(given, classes, factors))
        text = _text("log(1 + exp(-m))", **common)
        return Objective(text, losses.Logistic(), parts=parts, **common)
    given = apply_class_weights(given, classes, factors)
    part = Part(labels=codes(classes, given.y), weight=given.weight)
    return Objective(_text("multinomial loss", **common), Multinomial(k), parts=(part,), **common)


@reads("LinearSVC")
def _linear_svc(model: Any, given: Given) -> Objective:
    common: dict[str, Any] = {
        "C": float(model.C),
        "l1_ratio": 1.0 if model.penalty == "l1" else 0.0,
        "fit_intercept": bool(model.fit_intercept),
        "intercept_scaling": float(model.intercept_scaling) if model.fit_intercept else 0.0,
    }
    classes = given.classes_of(model)
    k, factors = len(classes), class_factors(model.class_weight, classes, given.y, given.weight)
    if model.multi_class == "crammer_singer":
        given = apply_class_weights(given, classes, factors)
        common["l1_ratio"] = 0.0  # LIBLINEAR ignores loss and penalty here
        part = Part(labels=codes(classes, given.y), weight=given.weight)
        return Objective(
            _text("Crammer-Singer", **common), CrammerSinger(k), parts=(part,), **common
        )
    parts = one_vs_rest(classes, given, factors)
    text = _text(model.loss.replace("_", " "), **common)
    return Objective(text, losses.get(model.loss), parts=parts, **common)


@reads("SVC")
def _svc(model: Any, given: Given) -> Objective:
    classes = np.asarray(model.classes_)
    given = apply_class_weights(given, classes, class_factors(model.class_weight, classes, given.y))
    parts = one_vs_rest(classes, given) if len(classes) == 2 else _one_vs_one(classes, given)
    text = "1/2 |w|^2 + C sum hinge, free intercept"
    return Objective(text, losses.Hinge(), float(model.C), parts)


def _one_vs_one(classes: Any, given: Given) -> tuple[Part, ...]:
    """Subproblems of LIBSVM for pairs of classes: a positive score is a vote for the first."""
    parts = []
    for a, b in combinations(classes, 2):
        kept = (given.y == a) | (given.y == b)
        weight = None if given.weight is None else given.weight[kept]
        parts.append(Part(sign=np.where(given.y[kept] == a, 1.0, -1.0), weight=weight, rows=kept))
    return tuple(parts)


@reads("RidgeClassifier", "RidgeClassifierCV")
def _ridge_classifier(model: Any, given: Given) -> Objective:
    classes = given.classes_of(model)
    given = apply_class_weights(given, classes, class_factors(model.class_weight, classes, given.y))
    return _ridge_objective(model, losses.Squared(), one_vs_rest(classes, given))


@reads("Ridge", "RidgeCV")
def _ridge(model: Any, given: Given) -> Objective:
    return _ridge_objective(model, losses.Squared().for_targets(), _targets(given))


def _ridge_objective(model: Any, loss: Loss, parts: tuple[Part, ...]) -> Objective:
    _refuse_positive(model)
    alphas = np.ravel(getattr(model, "alpha_", model.alpha if hasattr(model, "alpha") else 0.0))
    if (alphas != alphas[0]).any():
        raise Refused("The targets have different alpha: audit them one by one.")
    return ridge(loss, parts, alphas.tolist(), bool(model.fit_intercept))


def ridge(
    loss: Loss, parts: tuple[Part, ...], alphas: Sequence[float], fit_intercept: bool
) -> Objective:
    """Objective of ridge regression, with one alpha or one for each subproblem."""
    Cs = [math.inf if alpha == 0.0 else 1.0 / (2.0 * alpha) for alpha in alphas]
    unit = 1.0
    if len(set(Cs)) > 1:
        parts = tuple(replace(part, C=C) for part, C in zip(parts, Cs, strict=True))
    elif alphas[0] > 0.0:
        unit = 2.0 * alphas[0]
    text = "sum (t - x.w - b)^2 + alpha |w|^2"
    return Objective(text, loss, Cs[0], parts, fit_intercept=fit_intercept, unit=unit)


@reads("LinearRegression")
def _linear_regression(model: Any, given: Given) -> Objective:
    _refuse_positive(model)
    loss = losses.Squared().for_targets()
    text, free = "sum (t - x.w - b)^2", bool(model.fit_intercept)
    return Objective(text, loss, math.inf, _targets(given), fit_intercept=free)


@reads("ElasticNet", "Lasso", "ElasticNetCV", "LassoCV")
def _elastic_net(model: Any, given: Given) -> Objective:
    _refuse_positive(model)
    alpha = float(getattr(model, "alpha_", getattr(model, "alpha", 0.0)))
    ratio = getattr(model, "l1_ratio_", getattr(model, "l1_ratio", 1.0))
    total = given.total_weight
    C, unit = (math.inf, 0.5 / total) if alpha == 0.0 else (0.5 / (alpha * total), alpha)
    text = "mean (t - x.w - b)^2 / 2 + alpha (l1_ratio |w|_1 + (1 - l1_ratio)/2 |w|^2)"
    loss, free = losses.Squared().for_targets(), bool(model.fit_intercept)
    return Objective(text, loss, C, _targets(given), float(ratio), free, unit=unit)


@reads("HuberRegressor")
def _huber(model: Any, given: Given) -> Objective:
    return huber(
        given, model.epsilon, model.alpha, model.scale_, fit_intercept=bool(model.fit_intercept)
    )


def huber(
    given: Given, epsilon: float, alpha: float, scale: float, *, fit_intercept: bool
) -> Objective:
    """Objective of ``HuberRegressor`` at a fixed scale, without its term scale * total weight."""
    epsilon, alpha, scale = float(epsilon), float(alpha), float(scale)
    loss = losses.Huber(epsilon * scale).for_targets()
    C, unit = (math.inf, 2.0 / scale) if alpha == 0.0 else (1.0 / (alpha * scale), 2.0 * alpha)
    text = f"sum scale H((t - x.w - b)/scale) + alpha |w|^2 at its own scale {scale:.6g}"
    return Objective(text, loss, C, (_numeric(given),), fit_intercept=fit_intercept, unit=unit)


@reads("QuantileRegressor")
def _quantile(model: Any, given: Given) -> Objective:
    quantile, alpha = float(model.quantile), float(model.alpha)
    median = quantile == 0.5  # half the absolute loss, which has a kernel
    loss = losses.Absolute() if median else losses.Pinball(quantile)
    unit = (0.5 if median else 1.0) / given.total_weight
    C, ratio = (math.inf, 0.0) if alpha == 0.0 else (unit / alpha, 1.0)
    text = "mean pinball(t - x.w - b)" + (" + alpha |w|_1" if alpha else "")
    return Objective(
        text,
        *(loss.for_targets(), C, (_numeric(given),), ratio, bool(model.fit_intercept)),
        unit=unit if alpha == 0.0 else alpha,
    )


@reads("LinearSVR")
def _linear_svr(model: Any, given: Given) -> Objective:
    squared = model.loss.startswith("squared")
    free = bool(model.fit_intercept)
    end = "penalised intercept" if free else "no intercept"
    text = f"1/2 |w|^2 + C sum max(0, |t - x.w - b| - epsilon){'^2' if squared else ''}, {end}"
    loss = insensitive(model.loss, float(model.epsilon)).for_targets()
    return Objective(
        text,
        *(loss, float(model.C), (_numeric(given),)),
        fit_intercept=free,
        intercept_scaling=float(model.intercept_scaling) if free else 0.0,
    )


def insensitive(name: str, epsilon: float) -> Loss:
    """Epsilon-insensitive loss by scikit-learn's name; for epsilon = 0, the equivalent loss that has a kernel."""
    if name == "squared_epsilon_insensitive":
        return losses.SquaredEpsilonInsensitive(epsilon) if epsilon else losses.Squared()
    return losses.EpsilonInsensitive(epsilon) if epsilon else losses.Absolute()


_SGD: dict[str, Callable[[Any], tuple[Loss, float]]] = {
    "hinge": lambda model: (losses.Hinge(), 1.0),
    "log_loss": lambda model: (losses.Logistic(), 1.0),
    "squared_hinge": lambda model: (losses.SquaredHinge(), 1.0),
    "modified_huber": lambda model: (losses.HuberisedHinge(2.0), 4.0),
    "perceptron": lambda model: (losses.Perceptron(), 1.0),
    "squared_error": lambda model: (losses.Squared(), 0.5),
    "huber": lambda model: (losses.Huber(float(model.epsilon)), 1.0),
    "epsilon_insensitive": lambda model: (insensitive(model.loss, float(model.epsilon)), 1.0),
    "squared_epsilon_insensitive": lambda model: (
        insensitive(model.loss, float(model.epsilon)),
        1.0,
    ),
}


@reads("SGDClassifier", "SGDRegressor", "Perceptron")
def _sgd(model: Any, given: Given) -> Objective:
    if hasattr(model, "class_weight"):
        classes = given.classes_of(model)
        factors = class_factors(model.class_weight, classes, given.y)
        return sgd(model, one_vs_rest(classes, given, factors), given.n)
    return sgd(model, (_numeric(given),), given.n)


def sgd(model: Any, parts: tuple[Part, ...], n: int) -> Objective:
    """Objective that stochastic gradient descent minimises, for subproblems on n rows."""
    known = _SGD.get(model.loss)
    if known is None:
        raise Refused(f"linsep has no loss {model.loss!r}; it knows {', '.join(_SGD)}.")
    loss, factor = known(model)
    if parts[0].target is not None:
        loss = loss.for_targets()
    alpha = 0.0 if model.penalty is None else float(model.alpha)
    ratio = {None: 0.0, "l1": 1.0, "l2": 0.0}.get(model.penalty, model.l1_ratio)
    C = factor / (alpha * n) if alpha else math.inf
    unit = alpha if alpha else factor / n
    words = "max(0, -m)" if loss.zero_at_origin else model.loss.replace("_", " ")
    text = f"alpha penalty + mean {words}" if alpha else f"mean {words}"
    free = bool(model.fit_intercept)
    return Objective(text, loss, C, parts, float(ratio) if alpha else 0.0, free, unit=unit)


def _numeric(given: Given) -> Part:
    return Part(target=given.y.astype(float), weight=given.weight)


def _targets(given: Given) -> tuple[Part, ...]:
    """Subproblems, one for each column of the targets."""
    columns = given.y.astype(float).reshape(given.n, -1).T
    return tuple(Part(target=np.ascontiguousarray(t), weight=given.weight) for t in columns)


def _refuse_positive(model: Any) -> None:
    if getattr(model, "positive", False):
        raise Refused("linsep does not support positive=True.")


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
