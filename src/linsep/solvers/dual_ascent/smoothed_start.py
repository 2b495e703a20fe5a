"""A start for losses with a kink from their smooth neighbours.

Where more rows are free than there are features, the quadratic on the free rows has far more unknowns than the
primal problem, and is singular. There the hinge (absolute) loss is first replaced by the huberised hinge (Huber)
of width 1, and Newton's method solves that roughly. Its slopes are feasible dual variables of the loss with
the kink, and in them the rows that will end at the ends of their intervals are mostly there already.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.losses import Huber, HuberisedHinge, zero_margin
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import ConjugateGradients
from linsep.solvers.run import LimitReached, Run

if TYPE_CHECKING:
    from linsep.solvers.dual_ascent.native import Ascent

ROUGH = 0.03  # relative gap at which Newton's method ends


def start(ascent: Ascent, run: Run[Problem]) -> None:
    """Restart the ascent from the slopes at the solution of the smooth problem."""
    problem = ascent.problem
    loss = problem.loss
    smooth = Huber(1.0, centre=zero_margin(loss)) if loss.regression else HuberisedHinge(1.0)
    near = Problem(smooth, problem.penalty, problem.data, problem.fit_intercept)
    near.passes = problem.passes
    stop = Stop(ROUGH, max_passes=run.stop.max_passes)
    if run.stop.time_limit is not None:
        stop = replace(stop, time_limit=max(1e-3, run.stop.time_limit - run.seconds))
    found = newton.solve(near, np.zeros(near.order), stop, ConjugateGradients())
    problem.passes = near.passes
    if found.status in (Status.TIME_LIMIT, Status.PASS_LIMIT):
        raise LimitReached(found.status)
    theta = np.ascontiguousarray(found.W[:, 0])
    z = ascent.block.scores(theta)
    problem.passes += 0.5
    ascent.restart(-smooth.slope(ascent.block.margins(z)), float(theta[-1]))
