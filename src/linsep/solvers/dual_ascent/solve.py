"""Dual coordinate ascent as a solver: requirements, cost of an epoch, and the loop of native calls.

The method itself is native (kernels/dual/ascent.hpp).
"""

from __future__ import annotations

import math

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.losses import Loss
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work
from linsep.solvers.dual_ascent.native import Ascent, Next
from linsep.solvers.run import LimitReached, Run


def covers(loss: Loss) -> bool:
    """Return whether the kernel has a coordinate step for the loss."""
    return loss.native is not None and loss.native_ascent


def applies(problem: Problem) -> bool:
    """Return whether there is an L2 penalty without L1, a kernel for the loss, and one block of rows in memory."""
    penalised = problem.lam > 0.0 and problem.penalty.l1 == 0.0
    return penalised and covers(problem.loss) and problem.data.whole is not None


def primal_is_smaller(ascent: Ascent) -> bool:
    """Return whether the loss is smooth and the free rows are more than twice as many as the features.

    The primal is then the smaller problem for Newton's method. With a smooth loss nearly all rows are free at first.
    """
    problem = ascent.problem
    return problem.loss.smooth and ascent.native.free() > 2 * problem.data.d


def work(shape: Shape) -> Work:
    """Return the work of one epoch; zeros of mostly-zero dense rows are skipped (kernels/dual/compressed.hpp)."""
    storage = "" if shape.kept == 1.0 and not shape.sparse else "sparse "
    rows, entries = float(shape.n), shape.kept * shape.entries
    return {"native calls": 1.0, storage + "visits": rows, storage + "visited": entries}


def _gap(problem: Problem, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
    """Return primal and dual value from the sums of a closing pass, as ``primal_dual`` in run.py does."""
    return _kernels.closed_values(sums, theta, problem.lam, problem.fit_intercept)


def solve(
    problem: Problem,
    theta: FloatArray,
    stop: Stop,
    epochs: int | None = None,
    seed: int = 0,
    budget: float = math.inf,
) -> Solution:
    """Run dual coordinate ascent until the gap closes.

    It also stops at a limit of the user (with its status), after ``epochs``, or if more than ``budget`` epochs are
    predicted (status WORKING_PRECISION). In the last case W is a good start for Newton's method if the gap, recorded in
    the last line of the trace, is below 0.3 of the objective.
    """
    run = Run(problem, stop, _gap)
    ascent = Ascent(problem, theta, seed, stop.tol)
    native, closed_at = ascent.native, 0
    native.budget = budget
    native.most = -1 if epochs is None else epochs
    status = Status.WORKING_PRECISION
    try:
        with run.in_time():
            run.check_limits()
            while (asked := ascent.advance(run)) is not Next.END:
                if asked is Next.BROKEN:
                    return run.solution(status, theta, Explicit(np.zeros(problem.data.n)))
                if asked is Next.CLOSE:
                    closed_at = native.epochs
                    if run.close(*ascent.point()):
                        status = Status.CERTIFIED
                        break
                    last = run.trace[-1]
                    ascent.report_gap((last.primal - last.dual) / problem.penalty.scale)
                elif asked is Next.SLOW and epochs is None and primal_is_smaller(ascent):
                    break
                run.check_limits()
    except LimitReached as limit:
        status = limit.status
        native.halt()
        if native.epochs > closed_at > 0:  # include the progress since the last closing pass
            run.close(*ascent.point())
    if run.best is None:
        return run.solution(status, *ascent.point())
    return run.solution(status, *run.best[1:3])
