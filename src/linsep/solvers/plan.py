"""Sequences of methods: which method continues when another one stalls.

A method that ends with a gap above tol and before the user's limits hands over to the next one, which gets the
remaining limits. Time, bounds and trace continue across methods; the problem counts the passes.

=============  =======================================================================================
small          native Newton; the interior point method if it stalls on a quadratic hinge; Newton
newton         Newton (any direction); the interior point method if it stalls; Newton again
newton-cg      Newton by conjugate gradients; with a Cholesky factor once that would have been cheaper
newton-rounds  Newton in few rounds on a cluster; Newton on a copy of the rows at the client
dual-cd        dual ascent; Newton in the span of the rows, or in the features; interior point if kinked
sifting        sifting; on a cluster then the interior point method on a copy of the rows at the client
=============  =======================================================================================
"""

from __future__ import annotations

import math
from collections.abc import Callable
from contextlib import closing
from dataclasses import replace

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.problem import Problem
from linsep.solution import Solution, Status, Stop
from linsep.solvers.dual_ascent import solve as dual_ascent
from linsep.solvers.interior import (
    absolute_rows,
    hinge_rows,
    kinked,
    quadratic_hinge,
    sifting,
    vertex,
)
from linsep.solvers.newton import cluster as newton_cluster
from linsep.solvers.newton import continuation, exact_fit, gram_reduction, subsampled
from linsep.solvers.newton import native as native_newton
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import Cholesky, ConjugateGradients
from linsep.solvers.newton.quasi_newton import QuasiNewton
from linsep.solvers.prediction import predict

Method = Callable[[Problem, "FloatArray", Stop, int], Solution]

MAX_SHORT_STEPS = 6  # short Newton steps before an interior point method takes over
# Cost of conjugate gradients [factorisations] before it does: its own, so that it costs at most as much again if a few
# more steps on sparse rows would have sufficed.
FACTORISATIONS = 20.0
# Predicted number of remaining quasi-Newton steps above which conjugate gradients need fewer passes. The second value
# is for clusters, where each of their products is a round.
LONGEST, LONGEST_FEW = 60.0, 200.0
# Largest relative gap of ascent at which its solution is a good start for the next method, and for sifting.
GOOD_START, GOOD_START_SIFTING = 0.3, 1e-3


class Relay:
    """Sequence of methods on one problem that share limits, passes, bounds and trace."""

    def __init__(self, problem: Problem, stop: Stop, seed: int) -> None:
        self.problem, self.stop, self.seed = problem, stop, seed
        self._so_far: Solution | None = None

    @property
    def solution(self) -> Solution:
        """Solution of the last method, with the cost, trace and bounds of all of them."""
        assert self._so_far is not None
        return self._so_far

    @property
    def point(self) -> FloatArray:
        """Final theta of the last method."""
        return np.ascontiguousarray(self.solution.W[:, 0])

    @property
    def gap(self) -> float:
        """Relative gap at the end of the last method; inf if it recorded none."""
        if not self.solution.trace:
            return math.inf
        last = self.solution.trace[-1]
        return (last.primal - last.dual) / abs(last.primal) if last.primal else math.inf

    def run(self, method: Method, theta: FloatArray) -> Status:
        """Run a method with the remaining limits; return its status."""
        return self._add(method(self.problem, theta, self._rest(), self.seed))

    def run_in_memory(self, method: Method, theta: FloatArray) -> Status:
        """Run a method on a copy of the rows in local memory; the certificate uses the original rows."""
        problem = self.problem
        with closing(problem.data.to_local()) as data:
            copy = Problem(problem.loss, problem.penalty, data, problem.fit_intercept)
            found = method(copy, theta, self._rest(), self.seed)
        problem.passes += copy.passes
        return self._add(replace(found, sums=None))

    def _rest(self) -> Stop:
        return self.stop if self._so_far is None else self.stop.after(self._so_far.seconds)

    def _add(self, found: Solution) -> Status:
        before, self._so_far = self._so_far, found
        if before is not None:
            lower = before.trace[-1].dual if before.trace else 0.0
            later = tuple(
                replace(t, seconds=t.seconds + before.seconds, dual=max(t.dual, lower))
                for t in found.trace
            )
            seconds = before.seconds + found.seconds
            self._so_far = replace(found, seconds=seconds, trace=before.trace + later)
        return found.status


def small(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Fit in one native call; if the gap stays above tol, continue with Newton's method in Python."""
    if continuation.applies(problem):
        return continuation.solve(problem, theta, stop, seed, _small)
    return _small(problem, theta, stop, seed)


def _small(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    if not native_newton.ends_before(stop):  # the limits may interrupt the fit
        return _with_interior_fallback(_cholesky)(problem, theta, stop, seed)
    relay = Relay(problem, stop, seed)
    status = relay.run(native_newton.solve, theta)
    if status is Status.CERTIFIED or (status is Status.WORKING_PRECISION and problem.lam == 0.0):
        return relay.solution
    if status is Status.GIVEN_UP and quadratic_hinge.applies(problem):
        if relay.run(quadratic_hinge.solve, relay.point) is not Status.WORKING_PRECISION:
            return relay.solution
    relay.run(_cholesky, theta)
    return relay.solution


def newton_cholesky(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Newton's method with a Cholesky factor, started from a pilot if that pays."""
    method = _with_interior_fallback(subsampled.solve_cholesky)
    if continuation.applies(problem):
        return continuation.solve(problem, theta, stop, seed, method)
    return method(problem, theta, stop, seed)


def newton_preconditioned(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Quasi-Newton steps, then conjugate gradients, preconditioned by the Hessian of a pilot."""
    return _with_interior_fallback(subsampled.solve_preconditioned)(problem, theta, stop, seed)


def newton_truncated(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Quasi-Newton steps, then Newton's method by conjugate gradients, with a diagonal preconditioner.

    The number of products depends on the spectrum and is hard to predict, so their budget is the predicted cost of
    Newton's method with a Cholesky factor, which then takes over.
    """
    truncated = _with_interior_fallback(_solve_truncated)
    most = problem.passes + _passes_worth_factorising(problem, stop)
    if most >= (math.inf if stop.max_passes is None else stop.max_passes):
        return truncated(problem, theta, stop, seed)

    def within_budget(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
        return truncated(problem, theta, replace(stop, max_passes=most), seed)

    relay = Relay(problem, stop, seed)
    if relay.run(within_budget, theta) is Status.PASS_LIMIT:
        relay.run(newton_cholesky, relay.point)
    return relay.solution


def _passes_worth_factorising(problem: Problem, stop: Stop) -> float:
    """Return the number of passes that cost as much as Newton's method with a Cholesky factor is predicted to."""
    if problem.lam == 0.0 or problem.data.location is not Location.MEMORY:
        return math.inf
    costs = predict(problem, stop.tol)
    return costs.seconds("newton") / costs.iteration("newton-cg")


def newton_in_few_rounds(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Newton's method on a cluster; if that takes too many rounds, on a copy of the rows at the client."""
    relay = Relay(problem, stop, seed)
    if relay.run(_with_interior_fallback(newton_cluster.solve), theta) is Status.GIVEN_UP:
        relay.run_in_memory(_with_interior_fallback(_cholesky), relay.point)
    return relay.solution


def _cholesky(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    return newton.solve(problem, theta, stop, Cholesky(problem.centre()))


def _solve_truncated(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    longest = LONGEST_FEW if problem.data.location is Location.CLUSTER else LONGEST
    return newton.solve(problem, theta, stop, QuasiNewton(ConjugateGradients(), seed, longest))


def _with_interior_fallback(method: Method) -> Method:
    """Wrap a Newton method: if its steps stay short on a quadratic hinge, run interior point, then Newton again.

    Conjugate gradients also stall if the Newton systems are too ill-conditioned for them. Without a penalty, an exact
    fit of more features than rows needs no iteration.
    """

    def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
        if not quadratic_hinge.applies(problem):
            return exact_fit.solve(problem) or method(problem, theta, stop, seed)
        relay = Relay(problem, _short_steps(problem, stop, method), seed)
        stalled = [Status.GIVEN_UP]
        if method is _solve_truncated:
            stalled.append(Status.WORKING_PRECISION)
        if relay.run(method, theta) not in stalled:
            return relay.solution
        at = relay.point
        if relay.run(quadratic_hinge.solve, at) is Status.WORKING_PRECISION:
            relay.stop = stop
            relay.run(method, at)
        return relay.solution

    return solve


def _short_steps(problem: Problem, stop: Stop, method: Method) -> Stop:
    """Return the limits, with those on short steps after which an interior point method takes over."""
    passes = 0.0
    if method is _solve_truncated:
        costs = predict(problem, stop.tol)
        passes = FACTORISATIONS * costs.iteration("newton") / costs.iteration("newton-cg")
    return replace(stop, max_short_steps=MAX_SHORT_STEPS, short_step_passes=passes)


def ascent_then_primal(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Dual coordinate ascent; the next best method takes over if the predicted epochs exceed a budget.

    The budget is the predicted cost of that method. For a smooth loss it is Newton's method: with the Gram matrix of
    the rows if these are few. For a loss with a kink it is the interior point method or sifting, provided that a matrix
    of the order of the rows or of the features can be factorised. The next method starts where ascent stopped if the
    gap is at most GOOD_START.
    """
    smooth = problem.loss.smooth
    able = smooth or (kinked.applies(problem) and kinked.factorisable(problem))
    costs = predict(problem, stop.tol)
    by_products = smooth and gram_reduction.finishes(problem)
    name = costs.cheapest(_after_ascent(problem, stop))
    after = costs.seconds(name)
    if by_products:
        after = min(after, costs.prices.iteration(gram_reduction.work, costs.shape))
    budget = after / costs.iteration("dual-cd") if able else math.inf

    def ascend(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
        return dual_ascent.solve(problem, theta, stop, seed=seed, budget=budget)

    relay = Relay(problem, stop, seed)
    if relay.run(ascend, theta) is not Status.WORKING_PRECISION or not able:
        return relay.solution
    if by_products:
        if relay.run(gram_reduction.solve_smooth, theta) is not Status.WORKING_PRECISION:
            return relay.solution
    near = relay.gap <= (GOOD_START_SIFTING if name == "sifting" else GOOD_START)
    relay.run(_AFTER_ASCENT[name], relay.point if near else theta)
    return relay.solution


def _after_ascent(problem: Problem, stop: Stop) -> list[str]:
    """Return the methods that can continue after dual ascent."""
    if not problem.loss.smooth:
        return ["sifting"] if sifting.worthwhile(problem) else ["interior"]
    if native_newton.fits(problem) and native_newton.ends_before(stop):
        return ["small", "newton-cg"]
    return (
        ["newton", "newton-cg"] if problem.data.sparse else ["newton", "newton-pilot", "newton-cg"]
    )


def interior(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Interior point method on all rows; without a penalty followed by a move to a vertex."""
    return vertex.move_to_vertex(problem, kinked.solve(problem, theta, stop, seed))


def sift(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """Sifting; if it stalls on a cluster, the interior point method on a copy of the rows at the client."""
    relay = Relay(problem, stop, seed)
    if relay.run(sifting.solve, theta) is Status.GIVEN_UP:
        relay.run_in_memory(kinked.solve, relay.point)
    return vertex.move_to_vertex(problem, relay.solution)


def straight_lines(first: Method, then: Method, able: Callable[[Problem], bool]) -> Method:
    """A method for losses made of straight lines; if it falls short, the better result of it and another able one."""

    def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
        relay = Relay(problem, stop, seed)
        if relay.run(first, theta) is not Status.WORKING_PRECISION or not able(problem):
            return relay.solution
        earlier = relay.solution
        status, found = relay.run(then, theta), relay.solution
        if status is not Status.CERTIFIED and _gap(problem, earlier) < _gap(problem, found):
            found = replace(found, W=earlier.W, dual=earlier.dual, sums=earlier.sums)
        return found

    return solve


def _gap(problem: Problem, found: Solution) -> float:
    """Gap at the end of a method; inf if it made no closing pass."""
    if found.sums is None:
        return math.inf
    primal, dual = problem.values(np.ascontiguousarray(found.W[:, 0]), found.sums)
    return primal - dual


def _hinges(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    return hinge_rows.solve(problem, theta, stop, seed, ascent_then_primal)


by_absolute_rows = straight_lines(absolute_rows.solve, _hinges, hinge_rows.applies)
by_hinge_rows = straight_lines(_hinges, absolute_rows.solve, absolute_rows.applies)

_AFTER_ASCENT: dict[str, Method] = {
    "small": small,
    "newton": newton_cholesky,
    "newton-pilot": newton_preconditioned,
    "newton-cg": newton_truncated,
    "interior": kinked.solve,
    "sifting": sift,
}
