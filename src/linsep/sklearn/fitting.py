"""Run scikit-learn's own ``fit`` with its numerical routine replaced by linsep.

scikit-learn's ``fit`` validates, warns, calls one numerical routine (``_logistic_regression_path``, ``_fit_liblinear``,
...) and stores the result. A class of this package runs a copy of that function with the routine replaced: the
replacement describes the problem (``linsep.sklearn_objectives``), minimises it here, and returns numbers in the shape
of the original. Unsupported problems are passed on to the original with the same arguments.
"""

from __future__ import annotations

import functools
import inspect
import logging
import math
import types
import warnings
from collections.abc import Callable
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from sklearn.base import _fit_context

from linsep import certificates
from linsep.arrays import FloatArray
from linsep.auditing.objectives import objective_at
from linsep.certificates import Optimality
from linsep.certificates.optimality import relative
from linsep.errors import ConvergenceWarning, LinsepError
from linsep.estimators import fitting
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet
from linsep.sklearn_objectives import Objective, Part
from linsep.solvers.grid.problem import GridProblem
from linsep.train import Fit, Recipe
from linsep.train_grid import fit_grid

log = logging.getLogger("linsep.sklearn")

#: Bounds on the requested relative gap.
_TIGHTEST, _LOOSEST = 1e-12, 1e-6
#: Relative gap that a regression must prove; otherwise the fit is left to scikit-learn.
PROVEN = 1e-6
#: Covers the relative rounding of C and of the unit of the objective.
_UNITS = 2.0**-48
#: Fewer iterations than this request a model that has not converged.
FEW_ITERATIONS = 10


class Delegated(Exception):
    """Raised to delegate a fit to scikit-learn's own routine; the message gives the reason."""


class Minimum(NamedTuple):
    """Minimum of an objective: W (d + 1, k) with the intercepts last, in scikit-learn's coordinates."""

    W: FloatArray
    certificate: Optimality
    passes: int


def run(
    model: Any,
    fit: Callable[..., Any],
    routines: dict[str, Any],
    *args: Any,
    through: tuple[str, ...] = (),
    **given: Any,
) -> Any:
    """Call a copy of scikit-learn's ``fit``, a bound method, in which ``routines`` replace functions by name.

    A routine is called as ``routine(arguments)``, with the arguments of the original by name. If it raises
    ``Delegated`` or an error of linsep, the original is called instead and the reason is logged. Functions named in
    ``through`` are copied like ``fit``, because they call the routines too.
    """
    forget(model)
    plain = inspect.unwrap(fit.__func__)  # type: ignore[attr-defined]
    names = plain.__globals__
    missing = [name for name in (*routines, *through) if name not in names]
    if missing:
        delegating(model, f"this version of scikit-learn has no {missing[0]}")
        return fit(*args, **given)
    exchanged = {name: exchange(model, names[name], routine) for name, routine in routines.items()}
    exchanged |= {name: with_globals(names[name], exchanged) for name in through}
    validated = _fit_context(prefer_skip_nested_validation=True)(with_globals(plain, exchanged))
    return validated(model, *args, **given)


def with_globals(function: Any, names: dict[str, Any]) -> Any:
    """Return a copy of a function with some of its globals replaced."""
    copy = types.FunctionType(
        function.__code__,
        {**function.__globals__, **names},
        function.__name__,
        function.__defaults__,
        function.__closure__,
    )
    copy.__kwdefaults__ = function.__kwdefaults__
    return copy


def exchange(model: Any, original: Callable[..., Any], routine: Callable[..., Any]) -> Any:
    """Return ``routine`` as a replacement of ``original``, which is called where ``routine`` cannot be used."""

    @functools.wraps(original)
    def replacement(*args: Any, **given: Any) -> Any:
        bound = _signature(original).bind(*args, **given)
        bound.apply_defaults()
        try:
            return routine(bound.arguments)
        except (Delegated, LinsepError) as reason:
            delegating(model, str(reason))
            return original(*args, **given)

    return replacement


@functools.lru_cache(maxsize=64)
def _signature(function: Callable[..., Any]) -> inspect.Signature:
    return inspect.signature(function)


def forget(model: Any, name: str = "certificate_") -> None:
    """Remove an attribute left by an earlier fit."""
    vars(model).pop(name, None)


def attempt(model: Any, own: Callable[[], None], theirs: Callable[[], Any]) -> Any:
    """Fit by linsep or, if linsep cannot, by scikit-learn; the reason is logged."""
    forget(model)
    try:
        own()
    except (Delegated, LinsepError) as reason:
        delegating(model, str(reason))
        return theirs()
    return model


def delegating(model: Any, reason: str) -> None:
    """Log that scikit-learn's own routine is used, and why."""
    log.info("%s is fitted by scikit-learn: %s", type(model).__name__, reason)


def need_arrays(X: Any) -> None:
    """Delegate arrays of libraries other than numpy and scipy to scikit-learn."""
    if not isinstance(X, np.ndarray) and not sp.issparse(X):
        raise Delegated(f"arrays of {type(X).__module__.split('.')[0]} are computed in place")


def need_iterations(max_iter: int | None) -> None:
    """Delegate a fit with very few iterations to scikit-learn: it is not meant to reach the minimum."""
    if max_iter is not None and 0 <= max_iter < FEW_ITERATIONS:
        raise Delegated(f"max_iter={max_iter} asks for a fit that stops before it has converged")


def need_weights(weight: FloatArray | None) -> None:
    """Delegate weights that are all 0 or that make the objective non-convex to scikit-learn."""
    if weight is None:
        return
    if not weight.min(initial=0.0) >= 0.0:
        raise Delegated("with negative sample weights the objective is not convex")
    if not weight.any():
        raise Delegated("all sample weights are 0")


def need_weight(weight: FloatArray | None, codes: Any, k: int) -> None:
    """Delegate negative weights, and classes without a row of positive weight, to scikit-learn."""
    if weight is not None and not weight.min(initial=0.0) >= 0.0:
        raise Delegated("with negative sample weights the objective is not convex")
    if not np.bincount(codes, weight, minlength=k).all():
        raise Delegated("a class has no row of positive weight, so that no minimiser exists")


def gap_tolerance(tol: float | None, dtype: Any = np.float64) -> float:
    """Relative gap to prove: 100 times the square of scikit-learn's ``tol``, within bounds.

    ``tol`` bounds a gradient, and the excess of a curved objective is proportional to its square. At the default of
    1e-4 this is 1e-6, where scikit-learn's solvers end between 1e-3 and 1e-8. Coefficients in single precision cannot
    reach more than 1e-6 if the loss has a kink.
    """
    if dtype != np.float64:
        return _LOOSEST
    return min(max(100.0 * (tol or 0.0) ** 2, _TIGHTEST), _LOOSEST)


def minimise(
    problem: Objective,
    X: Any,
    tol: float,
    start: FloatArray | None = None,
    dtype: Any = np.float64,
) -> Minimum:
    """Minimise the objective on the rows of X; coefficients are rounded to ``dtype``, and certified as rounded."""
    scaling = problem.intercept_scaling
    rows = problem.rows(X)
    free = problem.fit_intercept and not scaling
    if start is not None and scaling:
        start = np.vstack([start[:-1], start[-1:] / scaling, np.zeros_like(start[-1:])])
    fits: list[Fit] = []
    for number, part in enumerate(problem.parts):
        penalty = ElasticNet(problem.C if part.C is None else part.C, problem.l1_ratio)
        recipe = Recipe(problem.loss, penalty, free, tol)
        columns = slice(number * problem.width, (number + 1) * problem.width)
        before = None if start is None else start[:, columns]
        offset = None if part.target is None else -part.target
        piece = fitting.Subproblem(problem.loss, part.sign, offset, part.labels)
        with np.errstate(all="ignore"):  # for huge C, an overflow shows up in the certificate
            fits += fitting.solve(recipe, [piece], 1, rows, None, part.weight, before)
    found = [
        _report(problem, part, fit, X, dtype) for part, fit in zip(problem.parts, fits, strict=True)
    ]
    W = found[0][0] if len(found) == 1 else np.hstack([each for each, _ in found])
    certificate = certificates.combine([each for _, each in found])
    passes = max(1, math.ceil(sum(fit.n_passes for fit in fits)))
    return Minimum(W, in_units(certificate, problem.unit), passes)


def minimise_proven(
    problem: Objective,
    X: Any,
    tol: float,
    start: FloatArray | None = None,
    dtype: Any = np.float64,
) -> Minimum:
    """Return the minimum, proven at least to ``PROVEN`` and to ``tol`` if rounding allows; or raise Delegated."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        found = minimise(problem, X, tol, start, dtype)
    proof = found.certificate
    if proof.certified:
        return found
    if not proof.relative_gap <= PROVEN:
        raise Delegated(f"only a relative gap of {proof.relative_gap:.1e} is proven")
    return found._replace(certificate=replace(proof, tol=PROVEN, certified=True))


def minimise_grid(problem: Objective, X: Any, Cs: FloatArray, tol: float) -> list[Minimum] | None:
    """Minima of one subproblem for all C, fitted together; None if no grid engine supports it."""
    part, coupled = problem.parts[0], isinstance(problem.loss, CoupledLoss)
    single = np.dtype(X.dtype).itemsize < 8
    if len(problem.parts) > 1 or coupled or problem.intercept_scaling or single:
        return None
    penalty = ElasticNet(1.0, problem.l1_ratio)
    recipe = Recipe(problem.loss, penalty, problem.fit_intercept, tol)
    order = np.argsort(Cs)
    grid = GridProblem(recipe, X, part.sign, None, part.weight).with_grid(Cs[order].tolist())
    fits = fit_grid(grid)
    if fits is None:
        return None
    found: dict[int, Minimum] = {}
    for at, number in enumerate(order.tolist()):
        fit = fits[at, -1]
        found[number] = Minimum(fit.W, fit.certificate, max(1, math.ceil(fit.n_passes)))
    return [found[number] for number in range(len(Cs))]


def _report(
    problem: Objective, part: Part, fit: Fit, X: Any, dtype: Any
) -> tuple[FloatArray, Optimality]:
    """Coefficients of a subproblem as scikit-learn reports them, and the certificate at exactly these."""
    W, scaling = fit.W, problem.intercept_scaling
    if not scaling and dtype == np.float64:
        return W, fit.certificate
    if scaling:
        W = np.vstack([W[:-2], scaling * W[-2:-1]])
    rounded = W.astype(dtype).astype(np.float64)
    exact_scaling = not scaling or math.frexp(scaling)[0] == 0.5
    if exact_scaling and np.array_equal(rounded, W):
        return W, fit.certificate
    return rounded, _certificate_at(problem, part, fit, rounded, X)


def _certificate_at(problem: Objective, part: Part, fit: Fit, W: FloatArray, X: Any) -> Optimality:
    """Certificate of coefficients other than those of the fit, with the lower bound that the fit proved."""
    # the terms of a penalised intercept and the change of units are rounded once more
    primal, rounding = objective_at(problem, part, X, W, fit.recipe.tol)
    rounding += _UNITS * primal
    known = fit.certificate
    gap = max(primal + rounding - known.dual, 0.0)
    share = relative(gap, primal, known.dual)
    l2 = 1.0 - problem.l1_ratio
    finite = l2 > 0.0 and math.isfinite(fit.recipe.penalty.C)
    error = math.sqrt(2.0 * gap / l2) * (1.0 + _UNITS) if finite else math.inf
    return replace(
        known,
        primal=primal,
        gap=gap,
        relative_gap=share,
        coef_error=error,
        certified=share <= known.tol,
        rounding=rounding,
    )


def in_units(found: Optimality, unit: float) -> Optimality:
    """Certificate of the objective documented by scikit-learn, ``unit`` times linsep's."""
    if unit == 1.0:
        return found
    primal, slack = unit * found.primal, _UNITS * unit * abs(found.primal)
    dual = unit * found.dual * (1.0 - _UNITS)
    gap = max(unit * found.gap * (1.0 + _UNITS) + slack, primal - dual)
    exact_fit = found.relative_gap == 0.0  # no relative gap is defined
    share = 0.0 if exact_fit else relative(gap, primal, dual)
    return replace(
        found,
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=share,
        certified=found.certified and share <= found.tol,
        rounding=unit * found.rounding * (1.0 + _UNITS) + slack,
        parts=tuple(in_units(part, unit) for part in found.parts),
    )


def iterations(passes: int, max_iter: int | None) -> int:
    """``n_iter_`` of a converged fit: passes over the data, if possible fewer than ``max_iter``."""
    return passes if max_iter is None else max(1, min(passes, max_iter - 1))
