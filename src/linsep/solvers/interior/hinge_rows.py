"""Piecewise linear losses with a ridge penalty, written as hinges on additional rows.

Every such loss with minimum 0 is a sum of positive parts of the residual r:

    l(r) = sum_k a_k (r - c_k)_+ + sum_k b_k (c_k - r)_+,      a_k, b_k >= 0.

The quantile loss is q (r)_+ + (1 - q) (-r)_+, the epsilon-insensitive loss (r - epsilon)_+ + (-r - epsilon)_+. The
problem thus becomes a hinge problem with one row for each a_k and b_k of each row. Its solver is dual coordinate
ascent, which forms no matrix and suits many features. The dual point u = sum_k a_k u_k - sum_k b_k u_k of the original
problem has at most the gap of the hinge problem.

References: Ho and Lin, Large-scale linear support vector regression, 2012 (coordinate ascent for this problem).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Memory
from linsep.losses import Hinge, Loss, zero_margin
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.interior import absolute_rows
from linsep.solvers.interior.start import flat_answer
from linsep.solvers.run import LimitReached, Run

NAME = "hinge-rows"
MANY = 1000  # number of features above which the interior point method, which factorises a d x d matrix, is slower
SHARE = 0.5  # tolerance of the hinge problem, relative to tol

Method = Callable[[Problem, FloatArray, Stop, int], Solution]


def positive_parts(loss: Loss) -> list[tuple[float, float, float]]:
    """Return (side, weight, c) of each positive part weight (side (r - c))_+."""
    assert loss.absolute_terms is not None
    terms, line = loss.absolute_terms
    slope = line - sum(a for a, _ in terms)  # of the leftmost piece, which falls
    parts = []
    for a, c in sorted(terms, key=lambda term: term[1]):
        falls, rises = min(2.0 * a, max(0.0, -slope)), min(2.0 * a, max(0.0, slope + 2.0 * a))
        parts += [(-1.0, falls, c)] if falls > 0.0 else []
        parts += [(1.0, rises, c)] if rises > 0.0 else []
        slope += 2.0 * a
    return parts


def applies(problem: Problem) -> bool:
    """Return whether the loss is piecewise linear, the penalty a pure ridge, and the rows are in memory."""
    penalised = problem.lam > 0.0 and problem.penalty.l1 == 0.0
    return problem.loss.absolute_terms is not None and penalised and problem.data.whole is not None


def preferable(problem: Problem) -> bool:
    """Return whether there are more features than rows, or too many to factorise a d x d matrix."""
    return problem.data.d > min(problem.data.n, MANY)


def _hinges(given: Problem, parts: list[tuple[float, float, float]]) -> Problem:
    """Return the hinge problem with one row for each part of each row: 1 - m = side (r - c)."""
    sign, offset, weight = absolute_rows.vectors(given.data)
    need = zero_margin(given.loss) - offset  # r = need - sign z
    rows = Memory(
        absolute_rows.stack(given.data.X, len(parts)),
        np.concatenate([side * sign for side, _, _ in parts]),
        np.concatenate([1.0 - side * (need - c) for side, _, c in parts]),
        np.concatenate([a * weight for _, a, _ in parts]),
        None,
        given.data.n_threads,
    )
    return Problem(Hinge(), given.penalty, rows, given.fit_intercept)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int, method: Method) -> Solution:
    """Minimise with a solver for the hinge."""
    run, n = Run(problem, stop), problem.data.n
    flat, dual = flat_answer(problem), Explicit(np.zeros(n))
    if flat is not None and run.close(flat, dual):
        return run.solution(Status.CERTIFIED, flat, dual)
    try:
        run.check_limits()
        parts = positive_parts(problem.loss)
        hinges = _hinges(problem, parts)
        found = method(hinges, theta, run.rest(SHARE * stop.tol), seed)
        problem.passes += hinges.passes * len(parts)
        theta, dual = np.ascontiguousarray(found.W[:, 0]), _dual(found, parts, problem)
        closed = run.close(theta, dual)
    except LimitReached as limit:
        return run.solution(limit.status, theta, dual)
    reached = found.status in (Status.CERTIFIED, Status.GIVEN_UP)
    status = Status.WORKING_PRECISION if reached else found.status
    return run.solution(Status.CERTIFIED if closed else status, theta, dual)


def _dual(found: Solution, parts: list[tuple[float, float, float]], given: Problem) -> Explicit:
    """Return the dual variables of the original rows."""
    assert isinstance(found.dual, Explicit)
    n = given.data.n
    u = np.zeros(n)
    for k, (side, a, _) in enumerate(parts):
        u += side * a * np.ravel(found.dual.u)[k * n : (k + 1) * n]
    return Explicit(np.clip(u, *given.loss.domain))
