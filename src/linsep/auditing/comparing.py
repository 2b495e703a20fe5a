"""Compare the objective at a model's coefficients with an enclosure of its minimum (``audit``)."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.auditing import objectives, reading, support_vectors
from linsep.auditing.subject import Stated, Subject
from linsep.auditing.support_vectors import SupportVectors
from linsep.auditing.verdict import Audit, PerceptronAudit
from linsep.data import Memory
from linsep.errors import BadInput, SeparableData, require_tolerance
from linsep.estimators.support import multipliers
from linsep.losses import Loss
from linsep.pipelines import take_apart
from linsep.separability import Inseparable, Separable, decide
from linsep.sklearn_objectives import Objective, Part, codes
from linsep.train import Fit, Recipe, train
from linsep.zero_one import exact_signs

#: Relative gap of the optimum with which a model is compared.
TOL = 1e-8
#: Covers the relative rounding of C, ``unit`` and the additional terms of a penalised intercept.
UNITS = 2.0**-48


def audit(  # noqa: PLR0913
    model: Any,
    X: Any = None,
    y: Any = None,
    sample_weight: Any = None,
    *,
    loss: str | Loss | None = None,
    C: float | None = None,
    l1_ratio: float | None = None,
    alpha: Any = None,
    epsilon: float | None = None,
    class_weight: Any = None,
    tol: float = 1e-6,
) -> Audit:
    """Prove how far a fitted linear model is from the optimum of its own problem.

    The minimum is enclosed by linsep's certificate, so no solver has to be trusted.

    Parameters
    ----------
    model : fitted model, tuple (coef, intercept), or path
        From scikit-learn: LogisticRegression, LogisticRegressionCV, LinearSVC, LinearSVR, SVC(kernel="linear"),
        RidgeClassifier, Ridge, Lasso, ElasticNet, LinearRegression, SGDClassifier, SGDRegressor, Perceptron,
        HuberRegressor (at its own scale), QuantileRegressor, and pipelines that end in one of them. From statsmodels,
        results of OLS, WLS, Logit, MNLogit, GLM (Binomial or Gaussian), RLM, QuantReg, including ``fit_regularized``.
        Models of LIBLINEAR. The objective is the model's own, including penalised intercepts, ``alpha`` and means. A
        path names an ONNX, skops or LIBLINEAR file; pickles are refused.
    X, y, sample_weight
        The rows the model was fitted to. statsmodels results contain theirs, so that X and y can be omitted.
    loss, C, l1_ratio
        The objective of plain coefficients and of ONNX files: (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i
        loss(m_i), where s_i are the sample weights; by default "logistic", 1 and 0. ``loss`` is a name or instance of
        linsep.losses, or "multinomial" or "crammer_singer". Model files of LIBLINEAR need ``C``. Other models
        contain their objective; passing one of these for them raises an error.
    alpha : float or array
        Penalty of ``fit_regularized`` in statsmodels, whose results do not store it; its L1_wt is ``l1_ratio``.
    epsilon : float
        Half width of the epsilon-insensitive losses, for plain coefficients and model files of LIBLINEAR.
    class_weight : dict
        Class weights, for plain coefficients and for models of LIBLINEAR trained with -wi.
    tol : float, default 1e-6
        Relative excess up to which a model counts as optimal.

    Returns
    -------
    Audit
        Objective, proven bounds on the minimum, relative excess, and the optimum; print it.

    Raises
    ------
    BadInput
        If the model is not fitted or not linear, or X and y do not match it.

    See Also
    --------
    verify : Recompute the certificate of a model of linsep.
    linsep.accel : Run a program written for scikit-learn with linsep.

    Notes
    -----
    The excess is P(w, b) of the model minus the minimum, which lies between the objective and the lower bound of a
    certified fit of the same problem.

    References
    ----------
    Boyd and Vandenberghe, Convex Optimization, 2004, chapter 5.

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from linsep import audit
    >>> X, t = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8]
    >>> audit(Ridge(alpha=0.5).fit(X, t), X, t).optimal
    True
    """
    require_tolerance(tol)
    stated = Stated(loss, C, l1_ratio, alpha, epsilon, class_weight)
    subject = reading.read(model, X, y, sample_weight, stated)
    problem, d = subject.objective, len(subject.W[0]) - 1
    if subject.X.shape[1] != d:
        raise BadInput(f"The model has {d} features and X has {subject.X.shape[1]} columns.")
    if isinstance(problem.loss, Loss) and problem.loss.zero_at_origin:
        return _perceptron(model, subject, tol)
    parts = zip(problem.parts, subject.W, strict=True)
    found = [_compare(problem, part, W, subject.X) for part, W in parts]
    return _collect(model, subject, found, tol)


@dataclass(frozen=True, eq=False)
class _Compared:
    """One subproblem: the objective at the model's coefficients, and the optimum (None if there is no minimiser)."""

    value: float  #: objective at the model's coefficients
    rounding: float  #: bound on its rounding error
    optimum: Fit | None
    given: FloatArray  #: the model's coefficients, (d + 1, k)
    W: FloatArray  #: the optimum in the same coordinates

    @property
    def bounds(self) -> tuple[float, float]:
        """Bounds on the infimum; without a minimiser, 0 and the attained value, as only some rows may be separable."""
        if self.optimum is None:
            return 0.0, self.value + self.rounding
        certificate = self.optimum.certificate
        return certificate.dual, certificate.primal + certificate.rounding


def _compare(problem: Objective, part: Part, W: FloatArray, X: Any) -> _Compared:
    rows = X if part.rows is None else X[part.rows]
    scaling = problem.intercept_scaling
    offset = part.offset if part.target is None else -part.target
    wide = problem.rows(rows)
    free, penalty = problem.fit_intercept and not scaling, objectives.penalty_of(problem, part)
    fit: Fit | None
    try:
        data = Memory(wide, part.sign, offset, part.weight, part.labels)
        fit = train(Recipe(problem.loss, penalty, free, TOL), data, warn=False)
    except SeparableData:
        fit = None
    dual = None if fit is None or scaling else fit.dual
    value, rounding = objectives.objective_at(problem, part, rows, W, TOL, dual)
    best = W if fit is None else fit.W
    if fit is not None and scaling:
        best = np.vstack([fit.W[:-2], scaling * fit.W[-2:-1]])
    return _Compared(value, rounding, fit, W, best)


def _perceptron(model: Any, subject: Subject, tol: float) -> PerceptronAudit:
    """Audit a model whose loss is 0 at w = 0: separability, errors and objective."""
    problem, X = subject.objective, subject.X
    value, rounding, mistakes, answers = 0.0, 0.0, 0, []
    for part, W in zip(problem.parts, subject.W, strict=True):
        sign = np.ones(X.shape[0]) if part.sign is None else part.sign
        at_model = objectives.objective_at(problem, part, X, W, TOL)
        value, rounding = value + at_model[0], rounding + at_model[1]
        mistakes += _count_mistakes(X, sign, W[:, 0])
        data = Memory(X, sign, None, part.weight)
        answers.append(decide(data, fit_intercept=problem.fit_intercept))
    found = [each for each in answers if isinstance(each, Separable)]
    meeting = [each for each in answers if isinstance(each, Inseparable)]
    every = len(found) == len(answers)
    weakly = not every and len(found) + sum(bool(each.quasi) for each in meeting) == len(answers)
    optimum = None
    if every:
        optimum = np.column_stack(
            [np.append(each.hyperplane.w, each.hyperplane.b) for each in found]
        )
    error = rounding + UNITS * value
    excess = (problem.unit * max(value - error, 0.0), problem.unit * (value + error))
    distance = math.inf
    if optimum is not None:
        distance = float(np.linalg.norm(optimum[:-1] - np.hstack(subject.W)[:-1]))
    return PerceptronAudit(
        model_name=subject.name,
        problem=problem.text,
        objective=problem.unit * value,
        minimum=(0.0, 0.0),
        excess=excess,
        relative_excess=(_ratio(excess[0], 0.0), _ratio(excess[1], 0.0)),
        coef_error=math.inf,
        coef_distance=distance,
        changed=None,
        n_rows=subject.given.n,
        separable=True if every else False if any(each.proven for each in meeting) else None,
        tol=tol,
        _model=model,
        _optimum=optimum,
        quasi=weakly,
        mistakes=mistakes,
    )


def _count_mistakes(X: Any, sign: FloatArray, theta: FloatArray) -> int:
    """Number of rows whose margin is not positive, in rational arithmetic where rounding could hide the sign."""
    with np.errstate(over="ignore", invalid="ignore"):
        scores = np.asarray(X @ theta[:-1] + theta[-1])
    return int(np.count_nonzero(sign * exact_signs(X, theta, scores) <= 0.0))


def _collect(model: Any, subject: Subject, found: list[_Compared], tol: float) -> Audit:
    problem, unit = subject.objective, subject.objective.unit
    value = math.fsum(each.value for each in found)
    error = math.fsum(each.rounding for each in found) + UNITS * value
    separable = any(each.optimum is None for each in found)
    low = math.fsum(each.bounds[0] for each in found) * (1.0 - UNITS)
    high = math.fsum(each.bounds[1] for each in found) * (1.0 + UNITS)
    at_least, at_most = max(value - error - high, 0.0), max(value + error - low, 0.0)
    moved = [float(np.linalg.norm(each.W[:-1] - each.given[:-1])) for each in found]
    return Audit(
        model_name=subject.name,
        problem=problem.text,
        objective=unit * value,
        minimum=(unit * low, unit * high),
        excess=(unit * at_least, unit * at_most),
        relative_excess=(_ratio(at_least, high), _ratio(at_most, low)),
        coef_error=math.inf if separable else _distance_bound(problem, at_most),
        coef_distance=math.hypot(*moved),
        changed=None if separable else _count_changes(problem, found, subject.X),
        n_rows=subject.given.n,
        separable=separable,
        tol=tol,
        _model=model,
        _optimum=None if separable else np.hstack([each.W for each in found]),
        _support=_support(model, subject, found),
    )


def _support(model: Any, subject: Subject, found: list[_Compared]) -> SupportVectors | None:
    """Support vectors of the optimum, for a model that computes its coefficients from them."""
    final = take_apart(model).model
    if not hasattr(final, "support_vectors_"):
        return None
    parts, alphas = subject.objective.parts, []
    for part, each in zip(parts, found, strict=True):
        assert each.optimum is not None and part.sign is not None
        rows = subject.X if part.rows is None else subject.X[part.rows]
        alphas.append(multipliers(each.optimum, rows, part.sign, part.weight))
    labels = codes(final.classes_, subject.given.y)
    intercept = np.concatenate([each.W[-1] for each in found])
    return support_vectors.gather(subject.X, labels, parts, alphas, intercept)


def _ratio(excess: float, minimum: float) -> float:
    if excess == 0.0:
        return 0.0
    return excess / minimum if minimum > 0.0 else math.inf


def _distance_bound(problem: Objective, excess: float) -> float:
    """Bound sqrt(2 (P - P*) / l2) on |w - w*|, where l2 is the weight of |w|^2/2 in the reported objective."""
    l2 = 1.0 - problem.l1_ratio
    l2 *= 1.0 if problem.factor is None else float(problem.factor.min(initial=math.inf))
    return math.sqrt(2.0 * excess / l2) if l2 > 0.0 and math.isfinite(problem.C) else math.inf


def _count_changes(problem: Objective, found: list[_Compared], X: Any) -> int | None:
    if any(part.target is not None or part.rows is not None for part in problem.parts):
        return None
    before = _labels(X, np.hstack([each.given for each in found]))
    after = _labels(X, np.hstack([each.W for each in found]))
    return int(np.count_nonzero(before != after))


def _labels(X: Any, W: FloatArray) -> IntArray:
    scores = np.asarray(X @ W[:-1] + W[-1])
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)
