"""Many features: coordinate ascent in the dual, and what finishes where it is slow.

Ascent is quick while C |x|^2 is moderate. Where it foretells too many epochs it hands over. A smooth loss goes to
Newton's method: in the span of the rows if these are dense and few, else by conjugate gradients (and a factorisation
where these are many), from what was reached, or from zero if that is no gain. A loss with a kink goes to the interior
point method, if a matrix of the order of the rows or of the features can be factorised.
"""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.solution import Status
from linsep.solvers.cost.model import interior_epochs
from linsep.solvers.dual_ascent import solve as dual_cd
from linsep.solvers.interior import kinked as interior
from linsep.solvers.newton import gram_reduction as wide
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import ConjugateGradients
from linsep.solvers.newton.subsampled import Adaptive

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray, Solution, Stop


FACTORISE = 4000  # dense features up to which a Hessian beats conjugate gradients that do not end
WORTH = 0.3  # relative gap below which Newton's method gains by the start, above which it loses
HOPE = 2.0  # times as long as the other method would take, as predicted: an ascent that has begun may go on


def solve_dual(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Ascent, then the other method if the gap is still open."""
    smooth = problem.loss.smooth
    able = smooth or (interior.applies(problem) and interior.factorisable(problem))
    patience = HOPE * interior_epochs(problem, stop.tol) if able and not smooth else math.inf
    first = dual_cd.solve(problem, theta, stop, seed=seed, patience=patience)
    if first.status is not Status.WORKING_PRECISION or not able:
        return first
    if not smooth:
        return _after(first, interior.solve(problem, theta, _rest(stop, first), seed))
    if wide.finishes(problem):
        second = wide.solve_smooth(problem, _rest(stop, first))
        first = _after(first, second)
        if first.status is not Status.WORKING_PRECISION:
            return first
    last = first.trace[-1] if first.trace else None
    near = last is not None and last.primal - last.dual <= WORTH * abs(last.primal)
    start = np.ascontiguousarray(first.W[:, 0]) if near else theta
    few = not problem.data.sparse and problem.data.d <= FACTORISE
    direction = Adaptive(problem, None) if few else ConjugateGradients()
    return _after(first, newton.solve(problem, start, _rest(stop, first), direction))


def _rest(stop: Stop, first: Solution) -> Stop:
    """The limits that are left; passes are counted by the problem."""
    if stop.time_limit is None:
        return stop
    return replace(stop, time_limit=max(1e-3, stop.time_limit - first.seconds))


def _after(first: Solution, second: Solution) -> Solution:
    """The second, with the cost and the bounds of the first."""
    lower = first.trace[-1].dual if first.trace else 0.0
    later = tuple(
        replace(t, seconds=t.seconds + first.seconds, dual=max(t.dual, lower)) for t in second.trace
    )
    seconds = first.seconds + second.seconds
    return replace(second, seconds=seconds, trace=first.trace + later)
