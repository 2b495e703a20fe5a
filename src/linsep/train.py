"""The one road: data + recipe -> fit.

``train`` builds the problem, lets ``choose`` pick a solver whose needs are met, and hands what comes back to
the certificates. Nothing else in linsep fits a model.
"""

from __future__ import annotations

import time
import warnings
from dataclasses import dataclass, replace

import numpy as np

from linsep.certificates import Optimality, conclude, explain
from linsep.data import Dataset, Location
from linsep.errors import BadInput, ConvergenceWarning
from linsep.losses import CoupledLoss, Loss
from linsep.monitoring import Job, note
from linsep.penalties import ElasticNet
from linsep.problem import CoupledProblem, MaxMarginProblem, Problem
from linsep.refinement import refine
from linsep.solution import Explicit, FloatArray, Linearised, Solution, Status, Stop, TraceRecord
from linsep.solvers import choose, choose_coupled, needs_local_rows, rescaled, solve_again
from linsep.solvers.newton.recession import refuse_without_minimiser
from linsep.solvers.null_model import null_model


@dataclass(frozen=True)
class Recipe:
    """What was asked."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    fit_intercept: bool = True
    tol: float = 1e-6
    solver: str = "auto"
    time_limit: float | None = None
    max_passes: float | None = None
    n_threads: int | None = None
    seed: int | None = None


def reproducible_fields(recipe: Recipe) -> Recipe:
    """What of a recipe decides the answer: neither threads nor the clock."""
    return replace(recipe, n_threads=None, time_limit=None)


@dataclass(frozen=True, eq=False)
class Fit:
    """All that came out. W is (d+1, k), the intercepts in its last row."""

    recipe: Recipe
    W: FloatArray
    dual: Linearised | Explicit
    certificate: Optimality
    status: Status
    n_passes: float
    seconds: float
    trace: tuple[TraceRecord, ...]
    solver: str


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


def _solve(
    recipe: Recipe, data: Dataset, start: FloatArray | None, job: Job
) -> tuple[Problem | CoupledProblem, Solution, str]:
    """Build the problem, choose a solver, run it."""
    stop = Stop(recipe.tol, recipe.time_limit, recipe.max_passes)
    seed = recipe.seed or 0
    if isinstance(recipe.loss, CoupledLoss):
        kind = CoupledProblem if recipe.loss.smooth else MaxMarginProblem
        coupled = kind(recipe.loss, recipe.penalty, data, recipe.fit_intercept)
        job.owner = coupled
        if needs_local_rows(coupled, recipe.solver):
            return _solve(recipe, data.to_memory(), start, job)
        name, solve = choose_coupled(coupled, recipe.solver)
        W = _start(data, recipe.loss.k, start, recipe.fit_intercept)
        return coupled, solve(coupled, W, stop, seed), name
    problem = Problem(recipe.loss, recipe.penalty, data, recipe.fit_intercept)
    job.owner = problem
    if needs_local_rows(problem, recipe.solver):
        return _solve(recipe, data.to_memory(), start, job)
    solver = choose(problem, recipe.solver, stop)
    theta = np.ascontiguousarray(_start(data, 1, start, recipe.fit_intercept)[:, 0])
    solution = solver.run(problem, theta, stop, seed)
    return problem, rescaled.improve(problem, solution, stop, solve_again), solver.name


def train(recipe: Recipe, data: Dataset, start: FloatArray | None = None, warn: bool = True) -> Fit:
    """Fit, certify, and warn only if a limit or working precision left the gap above tol."""
    began = time.perf_counter()
    with Job("fit", tol=recipe.tol) as job:
        problem, solution, name = _solve(recipe, data, start, job)
        solution, certificate = conclude(problem, solution, recipe.tol)
        if (
            not certificate.certified
            and isinstance(problem, Problem)
            and problem.data.location is not Location.CLUSTER
        ):
            theta, value = null_model(problem)
            if value == 0.0:  # a constant target, which no rounding of the weights should spoil
                constant = replace(solution, W=theta.reshape(-1, 1), sums=None)
                solution, certificate = conclude(problem, constant, recipe.tol)
        note(problem.passes, certificate.primal, certificate.dual)
    status = solution.status
    precise = status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    if precise and not certificate.certified and isinstance(problem, Problem):
        refuse_without_minimiser(problem)
        solution, certificate = refine(problem, solution, certificate, recipe.tol)
    if certificate.certified:
        status = Status.CERTIFIED
    elif status is Status.CERTIFIED:  # rounding took back what the solver believed
        status = Status.WORKING_PRECISION
    if problem.data is not data:  # rows of a cluster that were brought here
        problem.data.close()
    if warn and status is not Status.CERTIFIED:
        text = explain(status, certificate, data.X)
        warnings.warn(ConvergenceWarning(text, certificate), stacklevel=2)
    return Fit(
        recipe=recipe,
        W=solution.W,
        dual=solution.dual,
        certificate=certificate,
        status=status,
        n_passes=problem.passes,
        seconds=time.perf_counter() - began,
        trace=solution.trace,
        solver=name,
    )
