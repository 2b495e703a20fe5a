"""Absolute penalties on many features: solve on a few, ask the others, take in those that object.

Problem: min l2/2 |w|^2 + l1 |w|_1 + sum s l(m). At the optimum of the features in the working set one closing pass over
all of X gives ``v = sum s sigma u x``. A feature outside with ``|v_j| <= l1`` is rightly zero; the others join, the
largest violations first, and the set at most doubles. The same pass gives the duality gap of the whole problem (v is
scaled into the feasible box where l2 = 0), so the loop ends with a proof.

References: Johnson and Guestrin, Blitz, 2015; Massias, Gramfort and Salmon, Celer, 2018.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linsep.data import Memory
from linsep.problem import Problem
from linsep.solution import Solution, Status, Stop
from linsep.solvers import pilot, prox_newton
from linsep.solvers.column_sets import Columns
from linsep.solvers.run import LimitReached, Run, balanced, linearised

if TYPE_CHECKING:
    from linsep.solution import FloatArray

IntArray = npt.NDArray[np.int64]

ALL = 150  # features up to which all of them are the working set
ALL_SPARSE = 500  # the same if rows are short
CHEAP_ROW = 40  # entries
FIRST = 40  # of the working set to begin with, at least
ROUNDS = 60
CALLS = 20  # of the native solver on a set that is not to grow
WORTH_A_PILOT = 200  # rows per feature
_PILOT = 0.05


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Working sets, each solved by prox-Newton."""
    run = Run(problem, stop)
    status = Status.WORKING_PRECISION
    theta = theta.copy()
    dual = linearised(theta, np.zeros_like(theta))
    try:
        if not theta.any():
            theta[-1] = _null_intercept(problem)
        theta, value, g = problem.start(theta)
        run.record(prox_newton.total(problem, theta, value))
        score = np.abs(g[:-1] - problem.lam * theta[:-1])
        chosen = np.flatnonzero(theta[:-1])
        if not len(chosen) and score.max(initial=0.0) <= problem.penalty.l1:  # nobody wants in
            dual = linearised(theta, np.zeros_like(theta))
            if run.close(theta, dual):
                return run.solution(Status.CERTIFIED, theta, dual)
        inner, before, relative = 0.3, np.inf, 0.3
        growing, columns = True, None
        # Some losses want steps damped by a bound, and columns of rows on disk are not at hand.
        damped = not problem.native or problem.straight_tails
        by_rows = damped or not isinstance(problem.data, Memory)
        for _ in range(ROUNDS):
            chosen = _grown(problem, chosen, theta, score)
            whole = len(chosen) == problem.data.d
            goal = inner * stop.tol
            if growing and not whole:
                goal = max(goal, 0.25 * relative)
            if by_rows or whole:
                found = _on(problem, chosen, theta, goal, run, seed)
            else:
                columns = columns or Columns(problem)
                calls = 1 if growing else CALLS
                found = columns.solve(chosen, theta, goal, run.check_limits, calls)
            theta, base, step = (_full(problem, chosen, x) for x in found)
            dual = linearised(base, step)
            if run.close(theta, dual):
                status = Status.CERTIFIED
                break
            assert run.best is not None
            score = np.abs(balanced(problem, run.last_sums)[2])
            gap = run.trace[-1].primal - run.trace[-1].dual
            relative = min(0.3, gap / run.trace[-1].primal)
            wanting = (score > problem.penalty.l1 * (1 + 1e-12)) & (theta[:-1] == 0.0)
            wanting[chosen] = False
            growing = bool(wanting.any())
            if not growing and goal <= inner * stop.tol:
                if not gap < 0.7 * before and inner < 1e-4:
                    break
                inner *= 0.1  # the set is right: what is left of the gap is inside
            before = gap
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, dual)


def _null_intercept(problem: Problem) -> float:
    """The best intercept without features: Newton's method kept in a bracket, on the labels alone."""
    if not problem.fit_intercept:
        return 0.0
    data, loss = problem.data, problem.loss
    weight = np.ones(data.n) if data.weight is None else data.weight
    sign, offset = data.sign, data.offset
    if offset is None:  # all rows of a class are alike
        ours = sign > 0.0
        sign, offset = np.array([1.0, -1.0]), np.zeros(2)
        weight = np.array([weight[ours].sum(), weight[~ours].sum()])
    b, low, high = 0.0, -np.inf, np.inf
    for _ in range(100):
        m = sign * b + offset
        slope = float(weight @ (sign * loss.slope(m)))
        curve = float(weight @ loss.curvature(m))
        if slope == 0.0 or not np.isfinite(slope):
            break
        low, high = (low, b) if slope > 0 else (b, high)
        reach = 4.0 + 2.0 * abs(b)
        move = -slope / curve if curve > 0.0 else -np.copysign(reach, slope)
        to = b + float(np.clip(move, -reach, reach))
        if not low < to < high:
            to = 0.5 * (low + high)
        if abs(to - b) <= 1e-10 * (1.0 + abs(b)):
            b = to
            break
        b = to
    return b if np.isfinite(b) else 0.0


def _all(problem: Problem) -> bool:
    """Whether one Hessian of all features costs no more than a few passes."""
    data = problem.data
    if data.d <= ALL:
        return True
    row = data.n_entries / max(1, data.n)
    return data.sparse and data.d <= ALL_SPARSE and row <= CHEAP_ROW and data.n >= 10 * data.d


def _grown(problem: Problem, chosen: IntArray, theta: FloatArray, score: FloatArray) -> IntArray:
    """The support and the features with the largest |v_j|, at most as many again."""
    d = problem.data.d
    if _all(problem):
        return np.arange(d)
    support = np.flatnonzero(theta[:-1])
    room = max(FIRST, 2 * len(support), len(chosen))
    rank = score.copy()
    rank[support] = np.inf
    eager = int((rank > problem.penalty.l1).sum())
    # those below l1 that come close may want in next: a few of them spare a round
    size = min(d, max(room, min(eager, 2 * room)))
    return np.sort(np.argpartition(-rank, size - 1)[:size])


def _on(
    problem: Problem, chosen: IntArray, theta: FloatArray, tol: float, run: Run[Problem], seed: int
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Theta, base and step of the problem on the chosen features."""
    data = problem.data
    whole = len(chosen) == data.d
    sub = problem
    if not whole:
        sub = Problem(problem.loss, problem.penalty, data.columns(chosen), problem.fit_intercept)
    start = np.append(theta[chosen], theta[-1])
    if not start[:-1].any() and data.n >= WORTH_A_PILOT * max(1, len(chosen)):
        small = pilot.sub_problem(sub, int(max(_PILOT * data.n, 20 * len(chosen), 1000)), seed)
        start = prox_newton.solve(small, start, 1e-3, run.check_limits).theta
    before = sub.passes
    found = prox_newton.solve(sub, start, tol, run.check_limits)
    if not whole:
        share = sub.data.n_entries / max(1, data.n_entries)
        problem.passes += share * (sub.passes - before) + 1.0
        sub.data.close()
    return found.theta, found.base, found.step


def _full(problem: Problem, chosen: IntArray, part: FloatArray) -> FloatArray:
    out = np.zeros(problem.order)
    out[chosen] = part[:-1]
    out[-1] = part[-1]
    return out
