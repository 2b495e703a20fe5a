"""Solve the hard margin by soft margins with C so large that no multiplier reaches it.

The dual of the soft margin differs from that of the hard margin only by the bound C on the multipliers. Its multipliers
are therefore feasible for the hard margin, and optimal if none of them is at the bound. They are found by dual
coordinate ascent, whose cost hardly grows with C once C exceeds all of them.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linsep.arrays import FloatArray
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Status
from linsep.solvers.cost.shape import sampled_mean
from linsep.solvers.dual_ascent import solve as dual_ascent
from linsep.solvers.run import Run

_BOUND = 1000.0  # C mean |x|^2: a hundred times the largest multiplier of the text data sets tried
_TRIALS = 3
_FURTHER = 30.0  # factor on C from trial to trial; the tolerance is divided by a third of it
_PASSES = 500.0  # largest number of passes of a trial; if more are needed, ascent is unsuitable


def points(run: Run[Problem], seed: int) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield multipliers alpha of soft margins with increasing C, and v = sum alpha sigma x."""
    problem = run.problem
    data, stop = problem.data, run.stop
    mean = sampled_mean(problem)
    if not 0.0 < mean < np.inf:
        return
    C, tol = _BOUND / mean, 0.3 * stop.tol
    for _ in range(_TRIALS):
        soft = Problem(problem.loss, ElasticNet(C), data, problem.fit_intercept)
        most = math.inf if stop.max_passes is None else stop.max_passes - problem.passes
        limits = run.rest(tol, min(_PASSES, max(1.0, most)))
        found = dual_ascent.solve(soft, np.zeros(soft.order), limits, seed=seed)
        problem.passes += soft.passes + 1.0
        assert isinstance(found.dual, Explicit)
        alpha = C * found.dual.u if data.weight is None else C * data.weight * found.dual.u
        yield alpha, data.combine(data.sign * alpha)[:-1]
        run.check_limits()
        if found.status is not Status.CERTIFIED:
            return
        C, tol = _FURTHER * C, 3.0 * tol / _FURTHER
