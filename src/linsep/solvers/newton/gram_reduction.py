"""Reduce a problem with more features than rows to coordinates in the span of the rows.

With mu a centre of the rows and K = (X - mu)(X - mu)' = V E V', the rows L = V E^(1/2) have the same inner products:
min lam/2 |w|^2 + sum s l(sigma (x.w + b) + o) has the same dual on L as on X, with at most n features. Its solution y
gives w = (X - mu)' V E^(-1/2) y. For smooth and piecewise quadratic losses the Gram matrix K suffices
(``gram_space.py``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Memory
from linsep.interrupts import lapack
from linsep.problem import Problem, dot
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, sweeps
from linsep.solvers.linalg.row_products import centred_rows, row_products
from linsep.solvers.newton import gram_space
from linsep.solvers.run import LimitReached, Run, begin

MAX_ORDER = 6000  # largest order (rows or features) of a matrix that is factorised
MAX_ORDER_SMOOTH = 3000  # largest order for smooth losses, which have other methods
FEW_SPARSE = 1000  # largest order for sparse rows
DROP = 1e-14  # relative eigenvalue of K below which a direction is dropped
SHARE = 0.3  # relative gap to reach in Gram space, as a fraction of tol

Attempt = Callable[["Run[Problem]", "FloatArray"], bool]


def applies(problem: Problem) -> bool:
    """Return whether there are more features than rows, and at most MAX_ORDER rows."""
    return problem.data.n < problem.data.d and problem.data.n <= MAX_ORDER


def work(shape: Shape) -> Work:
    """Return the work of a whole fit with the Gram matrix: the matrix, and ten to fifteen factorisations of it."""
    n = float(shape.n)
    return {
        **{"calls": 20.0, **sweeps(shape, 3.0)},
        **{shape.storage + "products": 0.5 * n * shape.entries, "factors": 12.0 * n**3 / 3.0},
    }


def finishes(problem: Problem) -> bool:
    """Return whether the Gram matrix is used after dual ascent has stalled on a smooth loss.

    This includes few sparse rows: with entries of different magnitudes conjugate gradients take thousands of passes.
    """
    most = FEW_SPARSE if problem.data.sparse else MAX_ORDER_SMOOTH
    smooth = problem.loss.smooth and gram_space.covers(problem.loss)
    return applies(problem) and problem.data.n <= most and smooth


def _products(problem: Problem) -> FloatArray:
    """Return the Gram matrix K of the centred rows. One pass."""
    problem.passes += 1
    return row_products(centred_rows(problem.data.X, problem.centre()))


class Reduced:
    """The reduced problem on L, and the map from its solution to all features."""

    def __init__(self, problem: Problem) -> None:
        self.whole, data = problem, problem.data
        values, vectors = lapack(np.linalg.eigh, _products(problem))
        keep = values > DROP * max(float(values[-1]), 1e-300)
        self._roots, self._vectors = np.sqrt(values[keep]), vectors[:, keep]
        rows = np.ascontiguousarray(self._vectors * self._roots)
        reduced = Memory(rows, data.sign, data.offset, data.weight, n_threads=1)
        self.problem = Problem(problem.loss, problem.penalty, reduced, problem.fit_intercept)

    def lift(self, theta: FloatArray) -> FloatArray:
        """Map a point or a step to all features. One pass."""
        problem = self.whole
        at = _combine(problem, self._vectors @ (theta[:-1] / self._roots))
        mu = problem.centre()
        at[:-1] -= at[-1] * mu
        at[-1] = theta[-1] - dot(mu, at[:-1]) if problem.fit_intercept else 0.0
        return at


def _spanned(run: Run[Problem]) -> tuple[FloatArray, Explicit]:
    """Solve with the Gram matrix of the rows; return point and dual point for all features. Two passes."""
    problem, data = run.problem, run.problem.data
    n, mu = data.n, problem.centre()
    offset = np.zeros(n) if data.offset is None else data.offset
    weight = np.ones(n) if data.weight is None else data.weight
    span = gram_space.Span(
        problem.loss, _products(problem), data.sign, offset, weight, problem.fit_intercept
    )
    found = gram_space.solve(span, problem.lam, SHARE * run.stop.tol, None, run.check_limits)
    mass = (found.stretch / problem.lam) * weight * data.sign * found.u
    at = _combine(problem, mass)
    at[:-1] -= at[-1] * mu
    at[-1] = found.stretch * found.b - dot(mu, at[:-1]) if problem.fit_intercept else 0.0
    return at, Explicit(found.u)


def _combine(problem: Problem, mass: FloatArray) -> FloatArray:
    """Return sum mass x~ over the rows. One pass."""
    problem.passes += 1
    return problem.data.combine(mass)


def solve(run: Run[Problem], attempt: Attempt) -> bool:
    """Solve with the Gram matrix, else with ``attempt`` on the reduced problem; return whether the gap closed."""
    if gram_space.applies(run.problem.loss) and run.problem.lam > 0.0:
        if run.close(*_spanned(run)):
            return True
    reduced = Reduced(run.problem)
    inner = begin(reduced.problem, run.rest(0.1 * run.stop.tol))
    attempt(inner, np.zeros(reduced.problem.order))
    if inner.best is None:
        return False
    _, found, dual, _ = inner.best
    return run.close(reduced.lift(found), dual)


def solve_smooth(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve a problem with a smooth loss with the Gram matrix of the rows alone."""
    run = Run(problem, stop)
    theta, dual = np.zeros(problem.order), Explicit(np.zeros(problem.data.n))
    try:
        with run.in_time():
            theta, dual = _spanned(run)
            closed = run.close(theta, dual)
    except LimitReached as limit:
        return run.solution(limit.status, theta, dual)
    return run.solution(Status.CERTIFIED if closed else Status.WORKING_PRECISION, theta, dual)
