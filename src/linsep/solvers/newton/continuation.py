"""Continuation in the penalty for unpenalised losses that are flat beyond the margin.

Such losses, for example the squared and the Huberised hinge, have no curvature on rows beyond the margin, so without a
penalty the Hessian may become singular. The penalty is therefore lowered in stages, each with a warm start from the
last. If a stage separates the classes, theta is scaled until the smallest margin is the zero margin of the loss; then
every loss is zero, which is a minimum. Otherwise Newton's method from the last stage needs only a few steps.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.losses import zero_margin
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Solution, Status, Stop
from linsep.solvers.run import LimitReached, Run, linearised

STAGES = (1e2, 1e5, 1e8, 1e11)

Solve = Callable[[Problem, FloatArray, Stop, int], Solution]


def applies(problem: Problem) -> bool:
    """Return whether the loss is flat beyond the margin and there is no penalty."""
    return problem.lam == 0.0 and problem.loss.flat_beyond_margin


def _stretch(problem: Problem, theta: FloatArray) -> FloatArray | None:
    """Scale theta until the smallest margin is the zero margin; None if it does not separate the classes. One pass."""
    problem.passes += 1

    def add(block: Block, out: FloatArray) -> float:
        m = block.margins(block.scores(theta))[block.weights() > 0]
        return float(m.min(initial=np.inf))

    least = min(problem.data.visit(add, 1)[1])
    return theta * (zero_margin(problem.loss) * (1 + 1e-9) / least) if least > 0 else None


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int, inner: Solve) -> Solution:
    """Lower the penalty in stages; ``inner`` solves each stage, and finally the problem itself."""
    run = Run(problem, stop)
    try:
        with run.in_time():
            for C in STAGES:
                run.check_limits()
                stage = Problem(problem.loss, ElasticNet(C), problem.data, problem.fit_intercept)
                found = inner(stage, theta, run.rest(1e-6), seed)
                theta = np.ascontiguousarray(found.W[:, 0])
                problem.passes += stage.passes
                run.record(found.trace[-1].primal / C if found.trace else np.nan)
                exact = _stretch(problem, theta)
                if exact is not None:
                    dual = linearised(exact, np.zeros_like(exact))
                    return run.solution(Status.WORKING_PRECISION, exact, dual)
    except LimitReached as limit:
        return run.solution(limit.status, theta, linearised(theta, np.zeros_like(theta)))
    return inner(problem, theta, replace(stop, time_limit=run.rest(stop.tol).time_limit), seed)
