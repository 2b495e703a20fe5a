"""Sparse rows with many features: coordinate ascent in the dual, truncated Newton to finish.

Ascent is quick while C |x|^2 is moderate. Where it foretells too many epochs it hands over to Newton's method,
which starts from what was reached, or from zero if that is no gain.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.solution import Status
from linsep.solvers import dual_cd, newton
from linsep.solvers.directions import ConjugateGradients

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray, Solution, Stop


WORTH = 0.3  # relative gap below which Newton's method gains by the start, above which it loses


def solve_dual(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Ascent, then Newton's method if the gap is still open and the loss is smooth."""
    first = dual_cd.solve(problem, theta, stop, seed=seed)
    if first.status is not Status.WORKING_PRECISION or not problem.loss.smooth:
        return first
    last = first.trace[-1] if first.trace else None
    near = last is not None and last.primal - last.dual <= WORTH * abs(last.primal)
    start = np.ascontiguousarray(first.W[:, 0]) if near else theta
    rest = stop
    if stop.time_limit is not None:
        rest = replace(stop, time_limit=max(1e-3, stop.time_limit - first.seconds))
    second = newton.solve(problem, start, rest, ConjugateGradients())
    lower = last.dual if last is not None else 0.0
    later = tuple(
        replace(t, seconds=t.seconds + first.seconds, dual=max(t.dual, lower)) for t in second.trace
    )
    seconds = first.seconds + second.seconds
    return replace(second, seconds=seconds, trace=first.trace + later)
