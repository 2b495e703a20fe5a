"""Fit a model: build the problem from data and recipe, choose and run a solver, certify its solution.

``conclude`` is the only function that constructs a ``Fit``. Single fits, small native fits, the models of a grid and
stochastic descent all call it, with a certificate computed by ``linsep.certificates``.
"""

from __future__ import annotations

import math
import time
import warnings
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.certificates import LossFactor, Optimality, explain, prove
from linsep.certificates.optimality import SMALLEST
from linsep.data import Dataset, Location
from linsep.errors import BadInput, ConvergenceWarning, Refused
from linsep.exact.budget import OF_A_FIT, OverBudget, at_most
from linsep.interrupts import if_in_time, seconds_left, until
from linsep.losses import CoupledLoss
from linsep.monitoring import Job, note
from linsep.penalties import GroupElasticNet
from linsep.problem import (
    CoupledProblem,
    GroupProblem,
    MaxMarginProblem,
    Problem,
)
from linsep.problem.recipe import Recipe, reproducible_fields
from linsep.records import fast_constructor
from linsep.refinement import refine
from linsep.solution import Explicit, Linearised, Solution, Status, Stop, TraceRecord
from linsep.solvers import (
    Solver,
    choose,
    choose_coupled,
    needs_local_rows,
    rescaled,
    solve_again,
)
from linsep.solvers.empty_columns import occurring_columns, restore
from linsep.solvers.group import block_newton, reduction
from linsep.solvers.multiclass import softmax_recession
from linsep.solvers.newton import exact_fit
from linsep.solvers.newton.recession import (
    refuse_unpenalised_column,
    refuse_unpenalised_separation,
    refuse_without_minimiser,
)
from linsep.solvers.null_model import null_model

__all__ = [
    "Fit",
    "Recipe",
    "conclude",
    "reproducible_fields",
    "to_scaled_loss",
    "train",
]


@fast_constructor
@dataclass(frozen=True, eq=False)
class Fit:
    """Result of a fit. ``W`` is (d+1, k) with the intercepts in its last row."""

    recipe: Recipe
    W: FloatArray
    dual: Linearised | Explicit
    certificate: Optimality
    status: Status
    n_passes: float
    seconds: float
    trace: tuple[TraceRecord, ...]
    solver: str

    def __getstate__(self) -> dict[str, Any]:
        # skops cannot store members of an Enum.
        return {**self.__dict__, "status": self.status.name}

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update({**state, "status": Status[state["status"]]})


def conclude(
    recipe: Recipe,
    solution: Solution,
    certificate: Optimality,
    solver: str,
    passes: float,
    seconds: float,
) -> Fit:
    """Construct the fit of a solution; the certificate alone decides whether its status is CERTIFIED."""
    status = solution.status
    if certificate.certified:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:  # the rounding bound raises the solver's gap above tol
        status = Status.WORKING_PRECISION
    return Fit(
        recipe,
        solution.W,
        solution.dual,
        certificate,
        status,
        passes,
        seconds,
        solution.trace,
        solver,
    )


def to_scaled_loss(factor: LossFactor, found: Fit, recipe: Recipe) -> Fit:
    """Convert the fit of an unscaled loss to the fit of the scaled loss of ``recipe``."""
    if factor.plain:
        return found if found.recipe is recipe else replace(found, recipe=recipe)
    certificate, status = factor.certificate(found.certificate, recipe.tol), found.status
    if certificate.certified:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:
        out_of_range = not math.isfinite(certificate.gap)
        status = Status.OUT_OF_RANGE if out_of_range else Status.WORKING_PRECISION
    return replace(
        found,
        recipe=recipe,
        dual=factor.user_dual(found.dual),
        certificate=certificate,
        status=status,
        trace=factor.user_trace(found.trace),
    )


def _start(data: Dataset, k: int, start: FloatArray | None, fit_intercept: bool) -> FloatArray:
    if start is None:
        return np.zeros((data.d + 1, k))
    if start.shape != (data.d + 1, k) or not np.isfinite(start).all():
        raise BadInput(
            f"A start must be finite and of shape {(data.d + 1, k)} (features and intercept, columns), "
            f"got shape {start.shape}."
        )
    W = np.array(start, dtype=np.float64)
    if not fit_intercept:
        W[-1] = 0.0
    return W


def _run(solver: Solver, problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Run a solver; return the starting point if the time limit ends before the solver has an iterate."""

    def run() -> Solution:
        return solver.run(problem, theta, stop, seed)

    def start() -> Solution:
        dual = Explicit(np.zeros(problem.data.n))
        W = theta.reshape(-1, 1).copy()
        return Solution(W, dual, Status.TIME_LIMIT, problem.passes, 0.0)

    return if_in_time(run, start)


def _solve(
    recipe: Recipe, data: Dataset, start: FloatArray | None, job: Job
) -> tuple[Problem | CoupledProblem | GroupProblem, Solution, str]:
    """Build the problem, choose a solver and run it. Returns the problem, the solution and the solver's name."""
    stop = Stop(recipe.tol, seconds_left(), recipe.max_passes)
    seed = recipe.seed or 0
    if isinstance(recipe.penalty, GroupElasticNet):
        if data.location is not Location.MEMORY and data.fits_memory(data.n):
            data = data.sample(np.arange(data.n))
        return _solve_group(recipe, recipe.penalty, data, start, job, stop)
    chosen = occurring_columns(data)
    if chosen is not None:
        return _solve_without_empty_columns(recipe, data, chosen, start, job)
    if isinstance(recipe.loss, CoupledLoss):
        coupled = _coupled_problem(recipe, recipe.loss, data)
        job.owner = coupled
        if needs_local_rows(coupled, recipe.solver):
            return _solve(recipe, data.to_local(), start, job)
        name, solve = choose_coupled(coupled, recipe.solver)
        W = _start(data, recipe.loss.k, start, recipe.fit_intercept)
        return coupled, solve(coupled, W, stop, seed), name
    problem = Problem(recipe.loss, recipe.penalty, data, recipe.fit_intercept)
    job.owner = problem
    if needs_local_rows(problem, recipe.solver):
        return _solve(recipe, data.to_local(), start, job)
    solver = choose(problem, recipe.solver, stop)
    theta = np.ascontiguousarray(_start(data, 1, start, recipe.fit_intercept)[:, 0])
    solution = _run(solver, problem, theta, stop, seed)
    return problem, rescaled.improve(problem, solution, stop, solve_again), solver.name


def _coupled_problem(recipe: Recipe, loss: CoupledLoss, data: Dataset) -> CoupledProblem:
    assert not isinstance(recipe.penalty, GroupElasticNet)
    kind = CoupledProblem if loss.smooth else MaxMarginProblem
    return kind(loss, recipe.penalty, data, recipe.fit_intercept)


def _solve_without_empty_columns(
    recipe: Recipe, data: Dataset, chosen: IntArray, start: FloatArray | None, job: Job
) -> tuple[Problem | CoupledProblem | GroupProblem, Solution, str]:
    """Solve on the columns with nonzero entries; the returned problem, which is certified, has all columns."""
    assert not isinstance(recipe.penalty, GroupElasticNet)
    k = recipe.loss.k if isinstance(recipe.loss, CoupledLoss) else 1
    W = _start(data, k, start, recipe.fit_intercept)[np.append(chosen, data.d)]
    with closing(data.columns(chosen)) as part:
        small, solution, name = _solve(recipe, part, W, job)
    whole: Problem | CoupledProblem
    if isinstance(recipe.loss, CoupledLoss):
        whole = _coupled_problem(recipe, recipe.loss, data)
    else:
        whole = Problem(recipe.loss, recipe.penalty, data, recipe.fit_intercept)
    whole.passes = 1.0 + small.passes
    job.owner = whole
    return whole, restore(solution, chosen, data.d), name


def _solve_group(
    recipe: Recipe,
    penalty: GroupElasticNet,
    data: Dataset,
    start: FloatArray | None,
    job: Job,
    stop: Stop,
) -> tuple[GroupProblem, Solution, str]:
    """Solve with penalty factors and groups: without L1 as a ridge in scaled columns, else by ``block-newton``."""
    if isinstance(recipe.loss, CoupledLoss):
        raise Refused(
            f"The {recipe.loss.name} loss does not take penalty_factor or feature_groups yet. Use multiclass='ovr'."
        )
    problem = GroupProblem(recipe.loss, penalty, data, recipe.fit_intercept)
    job.owner = problem
    theta = np.ascontiguousarray(_start(data, 1, start, recipe.fit_intercept)[:, 0])
    seed, names = recipe.seed or 0, []
    refuse_unpenalised_column(problem)
    exact = exact_fit.solve_unpenalised(problem)
    if exact is not None:
        return problem, exact, exact_fit.NAME
    if penalty.l1_ratio > 0.0:
        if recipe.solver not in ("auto", block_newton.NAME):
            raise Refused(
                f"solver={recipe.solver!r} does not take penalty_factor or feature_groups with l1_ratio > 0. Use "
                f"solver={block_newton.NAME!r} or 'auto'."
            )
        return problem, block_newton.solve(problem, theta, stop, seed), block_newton.NAME

    def run(plain: Problem, theta: FloatArray, stop: Stop) -> Solution:
        solver = choose(plain, recipe.solver, stop)
        names.append(solver.name)
        found = _run(solver, plain, theta, stop, seed)
        return rescaled.improve(plain, found, stop, solve_again)

    return problem, reduction.solve(problem, theta, stop, run), names[-1]


def _refine(
    problem: Problem | CoupledProblem | GroupProblem,
    solution: Solution,
    certificate: Optimality,
    tol: float,
    smallest: float,
) -> tuple[Solution, Optimality]:
    """Return the refined solution and its certificate, or the given ones if no time is left."""
    return if_in_time(
        lambda: refine(problem, solution, certificate, Stop(tol, seconds_left()), smallest),
        lambda: (solution, certificate),
    )


def _refuse_without_minimiser(problem: Problem | CoupledProblem | GroupProblem) -> None:
    """Raise SeparableData if no minimiser provably exists, within the work budget and the time limit of a fit."""

    def refuse() -> None:
        if isinstance(problem, GroupProblem):
            refuse_unpenalised_separation(problem)
        elif isinstance(problem, CoupledProblem):
            softmax_recession.refuse_without_minimiser(problem)
        else:
            refuse_without_minimiser(problem)

    with suppress(OverBudget), at_most(OF_A_FIT):
        if_in_time(refuse, lambda: None)


@np.errstate(over="ignore", invalid="ignore")  # steps that overflow are rejected
def train(
    recipe: Recipe,
    data: Dataset,
    start: FloatArray | None = None,
    warn: bool = True,
    smallest: float = SMALLEST,
) -> Fit:
    """Fit and certify a model; warn if a limit or working precision leaves the relative gap above ``tol``.

    ``smallest`` is the smallest objective that a certificate can state.
    """
    began = time.perf_counter()
    deadline = math.inf if recipe.time_limit is None else began + recipe.time_limit
    with Job("fit", tol=recipe.tol) as job, until(deadline):
        problem, solution, name = _solve(recipe, data, start, job)
        solution, certificate = prove(problem, solution, recipe.tol)
        here = problem.data.location is not Location.CLUSTER
        late = time.perf_counter() > deadline
        if late and not certificate.certified:
            solution = replace(solution, status=Status.TIME_LIMIT)
        if not certificate.certified and isinstance(problem, Problem) and here and not late:
            theta, value = null_model(problem)
            if value == 0.0:  # constant target: the null model is exact, without rounding in w
                constant = replace(solution, W=theta.reshape(-1, 1), sums=None)
                solution, certificate = prove(problem, constant, recipe.tol)
        note(problem.passes, certificate.primal, certificate.dual)
    precise = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    if not certificate.certified:
        with until(deadline):
            if precise and not isinstance(problem, GroupProblem):
                _refuse_without_minimiser(problem)
            solution, certificate = _refine(problem, solution, certificate, recipe.tol, smallest)
            if precise and not certificate.certified and isinstance(problem, GroupProblem):
                _refuse_without_minimiser(problem)
    if problem.data is not data:  # rows copied from a cluster to local memory
        problem.data.close()
    seconds = time.perf_counter() - began
    fit = conclude(recipe, solution, certificate, name, problem.passes, seconds)
    if warn and fit.status is not Status.CERTIFIED:
        text = explain(fit.status, certificate, data.X)
        warnings.warn(ConvergenceWarning(text, certificate), stacklevel=2)
    return fit
