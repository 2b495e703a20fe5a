"""Solve uncertified fits again in rescaled coordinates, and return the best of several solutions.

A column with entries much larger than those of the others (an identifier, a time in nanoseconds), or far from 0
compared with their spread, makes a solver lose digits: v_j = sum s sigma u x_j is a difference of huge numbers, and
v_j^2/(2 lam) is part of the gap. In the coordinates

    x'_j = (x_j - mu_j) 2^-k_j,    w'_j = 2^k_j w_j,    b' = b + mu.w

every score is unchanged. The intercept is not penalised, so mu is free; without an intercept, and for sparse rows, it
is 0. The penalty lam/2 w_j^2 becomes lam/2 4^-k_j w'_j^2 and is replaced by lam/2 w'_j^2: the objective is too large by
at most lam/2 T^2/S^2, where T is the contribution of the column to the scores and S the size of x'_j. The rounding
error of v'_j adds (eps S)^2 n/(2 lam) to the gap. ``_size`` balances the two.

The minimum of this problem lies between the minimum of P and that of P with w_j = 0 in the rescaled columns. So if its
gap closes, the solution is no worse than the model without those columns, up to tol; else that model is fitted too.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray
from linsep.data import Location, Memory
from linsep.errors import NonFinite
from linsep.exact.dyadic import Dyadic
from linsep.interrupts import if_in_time
from linsep.problem import Problem, hard_margin
from linsep.solution import Explicit, Linearised, Solution, Status, Stop
from linsep.solvers.newton import gram_reduction, gram_space
from linsep.solvers.null_model import null_model

Again = Callable[[Problem, Stop], Solution]


LARGEST = 100_000_000  # largest number of entries of X that is copied
FEW = 2000  # rows up to which the problem is solved again in their span
FAR = 2.0**10  # a column is centred if its mean exceeds this times its spread
_EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class Coordinates:
    """Affine change of coordinates x' = (x - centre) 2^-powers."""

    centre: FloatArray
    powers: IntArray

    @property
    def factors(self) -> FloatArray:
        """2^-powers."""
        return np.ldexp(1.0, -self.powers)

    def rows(self, X: Any) -> Any:
        """Return a copy of the rows in these coordinates."""
        if sp.issparse(X):
            X = sp.csr_matrix(X, dtype=np.float64, copy=True)
            X.data *= self.factors[X.indices]
            return X
        return (np.asarray(X, dtype=np.float64) - self.centre) * self.factors

    def back(self, theta: FloatArray) -> FloatArray:
        """Transform a point back to the user's coordinates."""
        out = np.append(theta[:-1] * self.factors, theta[-1])
        # The intercept may be a difference of huge numbers: sum exactly and round once.
        exact = (Dyadic.of(self.centre) * Dyadic.of(out[:-1])).sum()
        out[-1] = float(Fraction(float(theta[-1])) - exact)
        return out


class _Best:
    """The point with the smallest objective and the dual point with the largest bound among all solutions."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.problem, self.solution = problem, solution
        self.theta, self.dual = np.ascontiguousarray(solution.W[:, 0]), solution.dual
        sums = solution.sums
        if sums is None:
            sums = problem.closing(self.theta, self.dual)
            self.solution = replace(solution, sums=sums)
        self.primal, self.lower = problem.values(self.theta, sums)
        self.mixed = False  # whether point and dual point come from different solutions

    def offer(self, theta: FloatArray, dual: Linearised | Explicit | None, value: float) -> None:
        """Compare with another point and its objective, or its dual point (one pass), and keep the better."""
        if dual is not None and np.isfinite(theta).all():
            value, lower = self.problem.values(theta, self.problem.closing(theta, dual))
            if lower > self.lower or not np.isfinite(self.lower):
                self.lower, self.dual, self.mixed = lower, dual, True
        if value < self.primal or not np.isfinite(self.primal):
            self.primal, self.theta, self.mixed = value, theta, True

    def is_closed(self, stop: Stop) -> bool:
        """Return whether the relative gap is at most tol."""
        return self.primal - self.lower <= stop.tol * abs(self.primal)

    def result(self, stop: Stop) -> Solution:
        """Return the best point and dual point as a solution, with the status that their gap implies."""
        found = self.solution
        if not self.mixed:
            return found
        status = found.status
        if status in (Status.GIVEN_UP, Status.WORKING_PRECISION):
            status = Status.CERTIFIED if self.is_closed(stop) else Status.WORKING_PRECISION
        W = self.theta.reshape(-1, 1).copy()
        return replace(
            found, W=W, dual=self.dual, status=status, sums=None, passes=self.problem.passes
        )


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # non-finite values are rejected
def improve(problem: Problem, solution: Solution, stop: Stop, again: Again) -> Solution:
    """Improve an uncertified solution; ``again`` solves a problem from theta = 0.

    Certified solutions are returned unchanged. All others are compared with the null model; those that did not end at a
    limit of the user are also solved again in the span of the rows and in rescaled coordinates, where these apply.
    """
    penalised = problem.lam > 0.0 or problem.penalty.l1 > 0.0
    if solution.status is Status.CERTIFIED or hard_margin(problem.loss, problem.penalty):
        return solution
    if not problem.loss.convex or problem.data.location is Location.CLUSTER:
        return solution
    best = _Best(problem, solution)
    best.offer(*_null(problem))

    def offer_others() -> None:
        with suppress(NonFinite, np.linalg.LinAlgError):  # keep the best solution so far
            _solve_otherwise(best, stop.after(solution.seconds, problem.passes), again)

    if penalised and solution.status in (Status.GIVEN_UP, Status.WORKING_PRECISION):
        if_in_time(offer_others, lambda: None)
    return best.result(stop)


def _solve_otherwise(best: _Best, stop: Stop, again: Again) -> None:
    """Solve again in the span of the rows, if these are few, and in rescaled coordinates."""
    problem = best.problem
    few = gram_reduction.applies(problem) and problem.data.n <= FEW
    if few and problem.lam > 0.0 and problem.penalty.l1 == 0.0:
        _solve_in_span(best, stop, again)
    coordinates = _coordinates(problem)
    if coordinates is not None and not best.is_closed(stop):
        _solve_in(best, coordinates, stop, again)


def _null(problem: Problem) -> tuple[FloatArray, None, float]:
    theta, value = null_model(problem)
    return theta, None, value


def _coordinates(problem: Problem) -> Coordinates | None:
    """Return coordinates in which no column is large; None if the user's are suitable."""
    data = problem.data
    if data.location is not Location.MEMORY or data.n_entries > LARGEST or not data.n_entries:
        return None
    centre = problem.centre()
    if data.sparse:
        largest = np.asarray(abs(data.X).max(axis=0).todense(), dtype=np.float64).ravel()
    else:
        X = np.asarray(data.X, dtype=np.float64)
        largest = np.maximum(np.abs(X.max(axis=0) - centre), np.abs(X.min(axis=0) - centre))
    if not (np.isfinite(largest).all() and largest.any()):
        return None
    centre = np.where(largest > 0.0, centre, 0.0)
    _, exponents = np.frexp(largest)
    _, most = np.frexp(_size(problem))
    powers = np.where(largest > 0.0, np.maximum(exponents.astype(np.int64) - int(most), 0), 0)
    if not powers.any() and not (np.abs(centre) > FAR * largest).any():
        return None
    return Coordinates(centre, powers)


def _size(problem: Problem) -> float:
    """Return the column size S at which the change of the penalty equals the rounding error of v."""
    data = problem.data
    part = 1.0
    if data.offset is not None:
        part = max(float(np.median(np.abs(data.offset - np.median(data.offset)))), 1e-300)
    rounding = _EPS * math.sqrt(data.n)
    if problem.lam > 0.0:
        return math.sqrt(problem.lam * part / rounding)
    value = max(null_model(problem)[1], 1e-300)
    return problem.penalty.l1 * math.sqrt(part / (rounding * value))


def _solve_in_span(best: _Best, stop: Stop, again: Again) -> None:
    """Solve a smooth loss in the span of the rows, which are fewer than the features.

    The Gram matrix of the rows usually has full rank. That of the features does not: the penalty added to it is lost
    to rounding if C |x|^2 exceeds about 1e15. For other losses the interior point method has already done this.
    """
    problem = best.problem
    if gram_space.applies(problem.loss):
        found = gram_reduction.solve_smooth(problem, best.theta, stop)
        best.offer(np.ascontiguousarray(found.W[:, 0]), found.dual, math.inf)
    elif problem.loss.smooth:
        reduced = gram_reduction.Reduced(problem)
        found = again(reduced.problem, stop)
        problem.passes += reduced.problem.passes
        theta, u = _unfold(reduced.problem, found)
        best.offer(reduced.lift(theta), Explicit(u), math.inf)


def _solve_in(best: _Best, coordinates: Coordinates, stop: Stop, again: Again) -> None:
    """Solve in these coordinates; if that is not certified, also without the rescaled columns."""
    problem, data = best.problem, best.problem.data
    rows = coordinates.rows(data.X)
    status, theta, u = _solve(problem, rows, stop, again)
    best.offer(coordinates.back(theta), Explicit(u), math.inf)
    if status is Status.CERTIFIED or not coordinates.powers.any():
        return
    kept = np.where(coordinates.powers > 0, 0.0, 1.0)
    rows = rows.multiply(kept).tocsr() if sp.issparse(rows) else rows * kept
    _, theta, u = _solve(problem, rows, stop, again)
    theta[:-1] *= kept
    best.offer(coordinates.back(theta), Explicit(u), math.inf)


def _solve(
    problem: Problem, rows: Any, stop: Stop, again: Again
) -> tuple[Status, FloatArray, FloatArray]:
    """Solve the problem on these rows; return status, point and dual variables."""
    data = problem.data
    other = Memory(
        rows, data.sign, data.offset, data.weight, n_threads=getattr(data, "n_threads", 1)
    )
    part = Problem(problem.loss, problem.penalty, other, problem.fit_intercept)
    found = again(part, stop)
    problem.passes += part.passes
    theta, u = _unfold(part, found)
    other.close()
    return found.status, theta, u


def _unfold(problem: Problem, found: Solution) -> tuple[FloatArray, FloatArray]:
    """Return theta and the dual variables of all rows."""
    theta, dual = np.ascontiguousarray(found.W[:, 0]), found.dual
    return theta, np.array(dual.u) if isinstance(dual, Explicit) else problem.unfold(theta, dual)
