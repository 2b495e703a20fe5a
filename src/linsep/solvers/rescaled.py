"""What becomes of a fit that ended short of tol: other coordinates, and never an answer worse than a simpler model.

A column whose entries are many times those of the others (an identifier, a time in nanoseconds), or far from 0 as
compared with their spread, costs a solver its digits: v_j = sum s sigma u x_j is a difference of huge numbers, and
v_j^2/(2 lam) is part of the gap. In the coordinates

    x'_j = (x_j - mu_j) 2^-k_j,    w'_j = 2^k_j w_j,    b' = b + mu.w

every score is the same. The intercept is not penalised, so mu is free; without an intercept, and for sparse rows, it is
0. The penalty lam/2 w_j^2 becomes lam/2 4^-k_j w'_j^2, for which lam/2 w'_j^2 is taken: the objective is too large by
at most lam/2 T^2/S^2, where T is the part of the scores that the column makes up and S the size of x'_j. The rounding
of v'_j leaves (eps S)^2 n/(2 lam). ``_size`` balances the two.

The minimum of that problem lies between that of P and that of P with w_j = 0 in the columns that were divided. So if
its gap closes, the answer is no worse than the model without those columns, up to tol; else that model is fitted too.
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


LARGEST = 100_000_000  # numbers of X up to which a copy is made
FEW = 2000  # rows whose inner products are factorised once more
FAR = 2.0**10  # times its spread: an offset worth subtracting
_EPS = 2.0**-52


@dataclass(frozen=True, eq=False)
class Coordinates:
    """x' = (x - centre) 2^-powers."""

    centre: FloatArray
    powers: IntArray

    @property
    def factors(self) -> FloatArray:
        """2^-powers."""
        return np.ldexp(1.0, -self.powers)

    def rows(self, X: Any) -> Any:
        """The rows in these coordinates: a copy."""
        if sp.issparse(X):
            X = sp.csr_matrix(X, dtype=np.float64, copy=True)
            X.data *= self.factors[X.indices]
            return X
        return (np.asarray(X, dtype=np.float64) - self.centre) * self.factors

    def back(self, theta: FloatArray) -> FloatArray:
        """Point in the coordinates of the user."""
        out = np.append(theta[:-1] * self.factors, theta[-1])
        # The intercept may be the difference of huge numbers: it is rounded once, not once for each product.
        exact = (Dyadic.of(self.centre) * Dyadic.of(out[:-1])).sum()
        out[-1] = float(Fraction(float(theta[-1])) - exact)
        return out


class _Best:
    """The point with the least objective, and the dual point with the greatest bound, wherever they come from."""

    def __init__(self, problem: Problem, solution: Solution) -> None:
        self.problem, self.solution = problem, solution
        self.theta, self.dual = np.ascontiguousarray(solution.W[:, 0]), solution.dual
        sums = solution.sums
        if sums is None:
            sums = problem.closing(self.theta, self.dual)
            self.solution = replace(solution, sums=sums)
        self.primal, self.lower = problem.values(self.theta, sums)
        self.mixed = False  # point and dual point have not met in a closing pass

    def offer(self, theta: FloatArray, dual: Linearised | Explicit | None, value: float) -> None:
        """A point with its objective, and a dual point for it (a pass)."""
        if dual is not None and np.isfinite(theta).all():
            value, lower = self.problem.values(theta, self.problem.closing(theta, dual))
            if lower > self.lower or not np.isfinite(self.lower):
                self.lower, self.dual, self.mixed = lower, dual, True
        if value < self.primal or not np.isfinite(self.primal):
            self.primal, self.theta, self.mixed = value, theta, True

    def is_closed(self, stop: Stop) -> bool:
        """Whether the gap is below tol."""
        return self.primal - self.lower <= stop.tol * abs(self.primal)

    def result(self, stop: Stop) -> Solution:
        """The solution with these, its status what their gap says."""
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


@np.errstate(over="ignore", invalid="ignore", divide="ignore")  # what is not finite is not better
def improve(problem: Problem, solution: Solution, stop: Stop, again: Again) -> Solution:
    """A better solution if one is found; ``again`` solves a problem from the start.

    A certified solution is returned as it is. One that ended at a limit of the user is compared with the model without
    features; any other is solved again in other coordinates where these differ.
    """
    penalised = problem.lam > 0.0 or problem.penalty.l1 > 0.0
    if solution.status is Status.CERTIFIED or hard_margin(problem.loss, problem.penalty):
        return solution
    if not problem.loss.convex or problem.data.location is Location.CLUSTER:
        return solution
    best = _Best(problem, solution)
    best.offer(*_null(problem))

    def offer_others() -> None:
        with suppress(NonFinite, np.linalg.LinAlgError):  # then what there is must do
            _solve_otherwise(best, stop.after(solution.seconds, problem.passes), again)

    if penalised and solution.status in (Status.GIVEN_UP, Status.WORKING_PRECISION):
        if_in_time(offer_others, lambda: None)
    return best.result(stop)


def _solve_otherwise(best: _Best, stop: Stop, again: Again) -> None:
    """Offer what is found in the span of few rows, and in other coordinates."""
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
    """Coordinates in which no column is large; None if those of the user are like that."""
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
    """The size of a column at which the change of the penalty and the rounding of v cost the same."""
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
    """Solve in coordinates of the span of the rows, which are fewer than the features.

    There the Gram of the rows has full rank as a rule. That of the features has not: it keeps the penalty only while
    C |x|^2 is below 1e15 or so. The interior point method has tried this way already.
    """
    problem = best.problem
    if gram_space.applies(problem.loss):
        found = gram_reduction.solve_smooth(problem, best.theta, stop)
        best.offer(np.ascontiguousarray(found.W[:, 0]), found.dual, math.inf)
    elif problem.loss.smooth:
        reduced = gram_reduction.Reduced(problem)
        found = again(reduced.problem, stop)
        problem.passes += reduced.problem.passes
        theta = reduced.lift(np.ascontiguousarray(found.W[:, 0]))
        best.offer(theta, Explicit(_unfold(reduced.problem, found.dual)), math.inf)


def _solve_in(best: _Best, coordinates: Coordinates, stop: Stop, again: Again) -> None:
    """Solve in these coordinates, and without the columns that are divided if that does not get there."""
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
    """Status, point and dual variables of the problem on these rows."""
    data = problem.data
    other = Memory(
        rows, data.sign, data.offset, data.weight, n_threads=getattr(data, "n_threads", 1)
    )
    part = Problem(problem.loss, problem.penalty, other, problem.fit_intercept)
    found = again(part, stop)
    problem.passes += part.passes
    theta = np.ascontiguousarray(found.W[:, 0])
    u = _unfold(part, found.dual)
    other.close()
    return found.status, theta, u


def _unfold(problem: Problem, dual: Linearised | Explicit) -> FloatArray:
    """The dual variables of all rows."""
    if isinstance(dual, Explicit):
        return np.array(dual.u)
    data, loss = problem.data, problem.loss
    base, step = dual.base[:, 0], dual.step[:, 0]
    offset = 0.0 if data.offset is None else data.offset
    m = data.sign * (data.X @ base[:-1] + base[-1]) + offset
    moved = data.sign * (data.X @ step[:-1] + step[-1])
    return np.asarray(np.clip(-(loss.slope(m) + loss.curvature(m) * moved), *loss.domain))
