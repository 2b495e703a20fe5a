"""Newton steps in doubled precision, for ill-conditioned columns without a penalty.

Newton's method by inner products of columns loses twice the digits of the condition number, and stalls far above the
minimum on polynomials or columns with large offsets. Here margins and gradients are made in doubled precision, and the
norm that proves positive definiteness gives the step: theta - T T'g.

The answer is still float64, and so are predictions from it. It is kept only if they are accurate enough: the rounding
allowance of the objective in plain float64, a bound for the worst case, must be at most 1 % of the objective. Columns
that differ in their last bits only therefore keep an answer with moderate coefficients, which is not certified.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.certificates import certify
from linsep.certificates.dependence import proven_metric
from linsep.certificates.kernel_rows import KernelRows
from linsep.certificates.local import LARGEST, visit
from linsep.certificates.optimality import preference
from linsep.certificates.rows import DoubledRows, curved
from linsep.data import Location
from linsep.problem import Problem
from linsep.solvers.run import linearised

if TYPE_CHECKING:
    from linsep.certificates import Optimality
    from linsep.certificates.rows import Answer
    from linsep.losses import Loss
    from linsep.problem import CoupledProblem
    from linsep.solution import FloatArray, Solution

#: Largest rounding allowance of the objective in plain float64, relative to it.
_ACCURATE = 0.01
_STEPS = 8
_HALVINGS = 6
#: Decrease that a step predicts, relative to the objective, below which there is nothing left to gain.
_CONVERGED = 1e-13


def refine(
    problem: Problem | CoupledProblem, solution: Solution, found: Optimality, tol: float
) -> tuple[Solution, Optimality]:
    """A better solution near one that is not certified, if there is one within reach; else what was given."""
    if found.certified or not isinstance(problem, Problem) or not _applies(problem):
        return solution, found
    rows = KernelRows.of(problem.data, problem.fit_intercept)
    part = DoubledRows.of(rows)
    if part is None:
        return solution, found
    start = np.ascontiguousarray(solution.W[: rows.size, 0])
    theta = _newton(problem.loss, part, start)
    plain = rows.visit(problem.loss, theta)
    if not plain.rounding <= _ACCURATE * plain.primal:
        return solution, found
    whole = np.zeros(len(solution.W))
    whole[: rows.size] = theta
    trial = replace(
        solution, W=whole[:, None], dual=linearised(whole, np.zeros_like(whole)), sums=None
    )
    better = certify(problem, trial, tol)
    improved = preference(better) < preference(found)
    return (trial, better) if improved else (solution, found)


def _applies(problem: Problem) -> bool:
    free = problem.lam == 0.0 and problem.penalty.l1 == 0.0
    near = problem.data.fits_memory() and problem.data.location is not Location.CLUSTER
    return free and near and problem.loss.smooth and problem.data.d < LARGEST


def _newton(loss: Loss, part: DoubledRows, theta: FloatArray) -> FloatArray:
    at = visit(loss, part, theta)
    for _ in range(_STEPS):
        step = _step(loss, part, at)
        if step is None:
            break
        trial = at
        for halving in range(_HALVINGS):
            trial = visit(loss, part, at.theta + 0.5**halving * step)
            if trial.primal < at.primal:
                break
        if not trial.primal < at.primal:
            break
        at = trial
    return at.theta


def _step(loss: Loss, part: DoubledRows, at: Answer) -> FloatArray | None:
    """Newton's step; None if it is too short to matter or there is none."""
    h = curved(part.weight, loss.curvature(at.m))
    if not (np.isfinite(h).all() and np.isfinite(at.g).all()):
        return None
    metric = proven_metric(part, h, at.sloped & (part.weight > 0.0))
    if metric is None:
        return None
    y = metric.T.T @ at.g
    return -(metric.T @ y) if float(y @ y) > _CONVERGED * at.primal else None
