"""The audit of a model: its objective, proven bounds on the minimum, and what an optimal model would do differently."""

from __future__ import annotations

import copy
import math
from dataclasses import dataclass, field
from html import escape
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.utils.validation import check_array

from linsep.auditing import objectives
from linsep.auditing.objectives import FloatArray, Given, Objective
from linsep.data import Memory
from linsep.errors import BadInput, SeparableData
from linsep.losses import Loss
from linsep.penalties import ElasticNet
from linsep.train import Fit, Recipe, train

#: Relative gap of the optimum that a model is compared with.
TOL = 1e-8
#: Covers the relative rounding of C, ``unit`` and the extra terms of a penalised intercept.
UNITS = 2.0**-48


@dataclass(frozen=True, eq=False)
class Audit:
    """How far a model is from the optimum of its own problem.

    All values are in the units of the model's own objective.

    Attributes
    ----------
    model_name, problem : str
        Class of the model, and the objective it minimises.
    objective : float
        Objective at the model's coefficients.
    minimum : tuple (low, high)
        Proven bounds on the minimum of that objective. ``low`` is 0 where no minimiser exists.
    excess : tuple (at_least, at_most)
        Proven bounds on ``objective`` minus the minimum.
    relative_excess : tuple (at_least, at_most)
        The same relative to the minimum.
    coef_error : float
        Proven bound on the distance |w - w*| to the optimal coefficients, inf where there is none.
    coef_distance : float
        Distance to the coefficients that linsep found.
    changed : int or None
        Training rows whose predicted class differs at the optimum; None for regression.
    n_rows : int
    separable : bool
        Whether no minimiser exists, because the classes are separable and nothing is penalised.
    optimal : bool
        Whether the relative excess is at most ``tol``, proven.
    tol : float
    """

    model_name: str
    problem: str
    objective: float
    minimum: tuple[float, float]
    excess: tuple[float, float]
    relative_excess: tuple[float, float]
    coef_error: float
    coef_distance: float
    changed: int | None
    n_rows: int
    separable: bool
    tol: float
    _model: Any = field(repr=False, default=None)
    _optimum: FloatArray | None = field(repr=False, default=None)

    @property
    def optimal(self) -> bool:
        """Whether the model is proven to be within ``tol`` of its optimum, relatively."""
        return self.relative_excess[1] <= self.tol

    def __str__(self) -> str:
        lines = [f"{self.model_name}: {self.problem}", f"  objective  {self.objective:.9g}"]
        if self.separable:
            lines.append("  no minimum exists: the classes are separable and nothing is penalised")
            return "\n".join(lines)
        low, high = self.relative_excess
        lines.append(f"  minimum    {self.minimum[0]:.9g} to {self.minimum[1]:.9g}, proven")
        lines.append(f"  verdict    {self._verdict(low, high)}")
        if math.isfinite(self.coef_error):
            lines.append(
                f"  |w - w*|   {self.coef_distance:.2g} (proven: at most {self.coef_error:.2g})"
            )
        if self.changed is not None:
            lines.append(
                f"  predictions that change at the optimum: {self.changed:,} of {self.n_rows:,}"
            )
        return "\n".join(lines)

    __repr__ = __str__

    def _verdict(self, low: float, high: float) -> str:
        if high <= self.tol:
            return f"optimal: at most {high:.1e} above the minimum, relatively"
        if low > self.tol:
            return f"not optimal: {_percent(low)} above the minimum"
        return f"at most {_percent(high)} above the minimum"

    def _repr_html_(self) -> str:
        return f"<pre>{escape(str(self))}</pre>"

    def to_dict(self) -> dict[str, Any]:
        """The audit as plain numbers and strings, ready for JSON apart from infinities."""
        return {
            "model": self.model_name,
            "problem": self.problem,
            "objective": self.objective,
            "minimum": list(self.minimum),
            "excess": list(self.excess),
            "relative_excess": list(self.relative_excess),
            "coef_error": self.coef_error,
            "coef_distance": self.coef_distance,
            "changed": self.changed,
            "rows": self.n_rows,
            "separable": self.separable,
            "optimal": self.optimal,
            "tol": self.tol,
        }

    def improve(self) -> Any:
        """A copy of the model with the coefficients of the proven optimum."""
        if self._optimum is None or self._model is None:
            raise BadInput(
                "There is no optimum to move to: the classes are separable and nothing is penalised."
            )
        model = copy.deepcopy(self._model)
        final = model[-1] if hasattr(model, "steps") else model
        if not hasattr(final, "coef_"):
            raise BadInput(
                "improve needs a model of scikit-learn; plain coefficients are in no model."
            )
        rows = self._optimum.T
        if type(final).__name__ == "SVC":
            raise BadInput(
                "SVC computes coef_ from its support vectors and cannot be given another."
            )
        shape = np.shape(final.coef_)
        final.coef_ = rows[:, :-1].reshape(shape).astype(final.coef_.dtype)
        intercept = rows[:, -1]
        final.intercept_ = intercept.copy() if np.ndim(final.intercept_) else float(intercept[0])
        return model


def audit(
    model: Any,
    X: Any,
    y: Any,
    sample_weight: Any = None,
    *,
    loss: str | Loss | None = None,
    C: float | None = None,
    l1_ratio: float | None = None,
    tol: float = 1e-6,
) -> Audit:
    """Prove how far a fitted linear model is from the optimum of its own problem.

    The minimum is enclosed by linsep's certificate, so the verdict does not rest on the word of any solver.

    Parameters
    ----------
    model : fitted estimator of scikit-learn, Pipeline that ends in one, or tuple (coef, intercept)
        LogisticRegression, LogisticRegressionCV, LinearSVC, SVC(kernel="linear"), RidgeClassifier, Ridge, Lasso,
        ElasticNet, LinearRegression, SGDClassifier, SGDRegressor, HuberRegressor (at its own scale), QuantileRegressor
        (the unpenalised median). The objective is the model's own: penalised intercepts, ``alpha`` and means included.
    X, y, sample_weight
        The rows the model was fitted to.
    loss, C, l1_ratio
        The objective of plain coefficients: (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i loss(m_i), where s_i
        are the sample weights; by default "logistic", 1 and 0. Estimators know theirs: with one, an error.
    tol : float, default 1e-6
        Relative excess up to which a model counts as optimal.

    Returns
    -------
    Audit

    Examples
    --------
    >>> from sklearn.linear_model import Ridge
    >>> from linsep import audit
    >>> X, t = [[0.0], [1.0], [2.0], [3.0]], [0.1, 0.9, 2.2, 2.8]
    >>> audit(Ridge(alpha=0.5).fit(X, t), X, t).optimal
    True
    """
    rows, final = X, model
    if hasattr(model, "steps"):
        rows, final = model[:-1].transform(X) if len(model.steps) > 1 else X, model[-1]
    numbers = check_array(rows, accept_sparse="csr", dtype=np.float64)
    n = numbers.shape[0]
    weight = None if sample_weight is None else objectives.targets(sample_weight, n).astype(float)
    given = Given(n, objectives.targets(y, n), weight)
    if isinstance(model, tuple):
        coef, intercept = model
        choice = "logistic" if loss is None else loss
        C, l1_ratio = 1.0 if C is None else C, 0.0 if l1_ratio is None else l1_ratio
        problem = objectives.plain(given, choice, C, l1_ratio)
    else:
        if not hasattr(final, "coef_"):
            raise BadInput(
                f"audit needs a fitted linear model, got {type(final).__name__} without coef_."
            )
        if (loss, C, l1_ratio) != (None, None, None):
            raise BadInput(
                f"loss, C and l1_ratio are for plain coefficients: {type(final).__name__} knows its own."
            )
        problem = objectives.objective_of(final, given)
        coef, intercept = final.coef_, final.intercept_
    name = "coefficients" if isinstance(model, tuple) else type(final).__name__
    parts = zip(problem.parts, objectives.split(problem, coef, intercept), strict=True)
    found = [_compare(problem, part, W, numbers) for part, W in parts]
    return _collect(name, model, problem, found, numbers, given, tol)


@dataclass(frozen=True, eq=False)
class _Compared:
    """One subproblem: the objective at the model's coefficients, and the optimum (None if there is no minimiser)."""

    value: float  #: objective at the model's coefficients
    rounding: float  #: bound on its rounding error
    optimum: Fit | None
    given: FloatArray  #: the model's coefficients, (d + 1, k)
    W: FloatArray  #: the optimum in the same coordinates


def _compare(problem: Objective, part: objectives.Part, W: FloatArray, X: Any) -> _Compared:
    rows = X if part.rows is None else X[part.rows]
    scaling = problem.intercept_scaling
    offset = None if part.target is None else -part.target
    penalty = ElasticNet(problem.C if part.C is None else part.C, problem.l1_ratio)
    wide = _with_constant(rows, scaling) if scaling else rows
    recipe = Recipe(problem.loss, penalty, problem.fit_intercept and not scaling, TOL)
    fit: Fit | None
    try:
        data = Memory(wide, part.sign, offset, part.weight, part.labels)
        fit = train(recipe, data, warn=False)
    except SeparableData:
        fit = None
    dual = None if fit is None or scaling else fit.dual
    value, rounding = objectives.objective_at(problem, part, rows, W, TOL, dual)
    best = W if fit is None else fit.W
    if fit is not None and scaling:
        best = np.vstack([fit.W[:-2], scaling * fit.W[-2:-1]])
    return _Compared(value, rounding, fit, W, best)


def _with_constant(X: Any, value: float) -> Any:
    """X with a constant column, whose coefficient is a penalised intercept."""
    column = np.full((X.shape[0], 1), value)
    if sp.issparse(X):
        return sp.hstack([X, sp.csr_array(column)], format="csr")
    return np.hstack([X, column])


def _collect(
    name: str,
    model: Any,
    problem: Objective,
    found: list[_Compared],
    X: Any,
    given: Given,
    tol: float,
) -> Audit:
    unit = problem.unit
    value = math.fsum(each.value for each in found)
    error = math.fsum(each.rounding for each in found) + UNITS * value
    separable = any(each.optimum is None for each in found)
    certificates = [each.optimum.certificate for each in found if each.optimum is not None]
    low = 0.0 if separable else math.fsum(c.dual for c in certificates) * (1.0 - UNITS)
    high = (
        0.0 if separable else math.fsum(c.primal + c.rounding for c in certificates) * (1.0 + UNITS)
    )
    at_least, at_most = max(value - error - high, 0.0), max(value + error - low, 0.0)
    moved = [float(np.linalg.norm(each.W[:-1] - each.given[:-1])) for each in found]
    return Audit(
        model_name=name,
        problem=problem.text,
        objective=unit * value,
        minimum=(unit * low, unit * high),
        excess=(unit * at_least, unit * at_most),
        relative_excess=(_ratio(at_least, high), _ratio(at_most, low)),
        coef_error=math.inf if separable else _distance_bound(problem, at_most),
        coef_distance=math.hypot(*moved),
        changed=None if separable else _changed(problem, found, X),
        n_rows=given.n,
        separable=separable,
        tol=tol,
        _model=model,
        _optimum=None if separable else np.hstack([each.W for each in found]),
    )


def _ratio(excess: float, minimum: float) -> float:
    if excess == 0.0:
        return 0.0
    return excess / minimum if minimum > 0.0 else math.inf


def _distance_bound(problem: Objective, excess: float) -> float:
    """|w - w*| <= sqrt(2 (P - P*) / l2), l2 the weight of |w|^2/2 in the reported objective."""
    l2 = 1.0 - problem.l1_ratio
    return math.sqrt(2.0 * excess / l2) if l2 > 0.0 and math.isfinite(problem.C) else math.inf


def _changed(problem: Objective, found: list[_Compared], X: Any) -> int | None:
    if any(part.target is not None or part.rows is not None for part in problem.parts):
        return None
    before = _labels(X, np.hstack([each.given for each in found]))
    after = _labels(X, np.hstack([each.W for each in found]))
    return int(np.count_nonzero(before != after))


def _labels(X: Any, W: FloatArray) -> npt.NDArray[np.int64]:
    scores = np.asarray(X @ W[:-1] + W[-1])
    if scores.shape[1] == 1:
        return (scores[:, 0] > 0.0).astype(np.int64)
    return np.asarray(scores.argmax(axis=1), dtype=np.int64)


def _percent(share: float) -> str:
    if not math.isfinite(share):
        return "any amount"
    return f"{100 * share:.3g} %" if share >= 1e-4 else f"a relative {share:.1e}"
