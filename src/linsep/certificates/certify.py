"""The certificate of a fit: from (problem, W, dual), by the closing pass over the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep.certificates.closing import ClosingSums, from_sums
from linsep.certificates.local import LARGEST, local_certificate
from linsep.solution import Status

if TYPE_CHECKING:
    from linsep.certificates.optimality import Optimality
    from linsep.problem import Problem
    from linsep.solution import Solution


def certify(problem: Problem, solution: Solution, tol: float) -> Optimality:
    """Certify what a solver proposes.

    With a penalty: duality, from the sums of the closing pass at exactly this W and dual point; the pass is
    made here unless the solver ended with it. Without one, or where rounding of the dual point is magnified
    by a huge C: curvature around the answer.
    """
    if problem.lam == 0.0:
        return _local(problem, solution, tol)
    theta = np.ascontiguousarray(solution.W[:, 0])
    sums = solution.sums
    if sums is None:
        sums = problem.closing(theta, solution.dual)
    found = from_sums(
        ClosingSums.from_flat(sums, problem.data.d),
        theta[:-1],
        lam=problem.lam,
        fit_intercept=problem.fit_intercept,
        scale=problem.penalty.scale,
        tol=tol,
        rows_per_sum=problem.data.longest_sum(len(sums)),
    )
    precise = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    if found.certified or not precise or not problem.loss.smooth or problem.data.d >= LARGEST:
        return found
    return min(found, _local(problem, solution, tol), key=lambda c: c.gap)


def _local(problem: Problem, solution: Solution, tol: float) -> Optimality:
    data = problem.data
    return local_certificate(
        problem.loss,
        data.X,
        data.sign,
        data.offset,
        data.weight,
        solution.W,
        lam=problem.lam,
        fit_intercept=problem.fit_intercept,
        scale=problem.penalty.scale,
        tol=tol,
    )
