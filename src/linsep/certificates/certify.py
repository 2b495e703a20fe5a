"""The certificate of a fit: from (problem, W, dual), by the closing pass over the rows."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.certificates.closing import ClosingSums, from_sums, ridge_certificate
from linsep.certificates.kernel_rows import KernelRows
from linsep.certificates.local import LARGEST, judged, local_certificate
from linsep.certificates.margin import margin_certificate
from linsep.certificates.optimality import preference
from linsep.certificates.softmax import SoftmaxSums, from_softmax_sums
from linsep.certificates.softmax_local import softmax_local_certificate
from linsep.losses import Multinomial
from linsep.problem import CoupledProblem, hard_margin
from linsep.solution import Status

if TYPE_CHECKING:
    from linsep.certificates.optimality import Optimality
    from linsep.problem import Problem
    from linsep.solution import FloatArray, Solution


def certify(problem: Problem | CoupledProblem, solution: Solution, tol: float) -> Optimality:
    """Certify what a solver proposes.

    With a penalty: duality, from the sums of the closing pass at exactly this W and dual point; the pass is
    made here unless the solver ended with it. Without one, or where rounding of the dual point is magnified
    by a huge C: curvature around the answer.
    """
    if isinstance(problem, CoupledProblem):
        return _certify_coupled(problem, solution, tol)
    if hard_margin(problem.loss, problem.penalty):
        return margin_certificate(
            *(problem.data.X, problem.data.sign, problem.data.weight, solution.W, solution.dual),
            fit_intercept=problem.fit_intercept,
            tol=tol,
        )
    l1 = problem.penalty.l1
    if problem.lam == 0.0 and l1 == 0.0:
        return _local(problem, solution, tol)
    theta = np.ascontiguousarray(solution.W[:, 0])
    sums = solution.sums
    if sums is None:
        sums = problem.closing(theta, solution.dual)
    longest = problem.data.longest_sum(len(sums))
    entry = problem.largest_entry(sums) if l1 else math.inf
    found = _assemble(problem, theta, sums, longest, entry, tol)
    if l1 and not found.certified and found.rounding > 0.1 * tol * abs(found.primal):
        # max |v_j| is rounded like every sum of n terms, and with l1 = 1/C small that is what is left of the gap
        entry = min(entry, problem.finer_entry(sums))
        pieces = problem.closing_in_pieces(theta, solution.dual)
        found = _assemble(problem, theta, *pieces, entry, tol)
    precise = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    hopeless = l1 > 0.0 or not problem.loss.smooth or problem.data.d >= LARGEST
    hopeless = hopeless or not problem.data.at_hand
    if found.certified or not precise or hopeless:
        return found
    return min(found, _local(problem, solution, tol), key=preference)


def _assemble(
    problem: Problem,
    theta: FloatArray,
    sums: FloatArray,
    rows_per_sum: float,
    entry: float,
    tol: float,
) -> Optimality:
    if problem.penalty.l1 == 0.0:
        return ridge_certificate(
            sums, theta, problem.penalty, problem.fit_intercept, tol, rows_per_sum
        )
    flat = ClosingSums.from_flat(sums, problem.data.d)
    return from_sums(
        replace(flat, entry=entry),
        theta[:-1],
        lam=problem.lam,
        l1=problem.penalty.l1,
        fit_intercept=problem.fit_intercept,
        scale=problem.penalty.scale,
        tol=tol,
        rows_per_sum=rows_per_sum,
    )


def _certify_coupled(problem: CoupledProblem, solution: Solution, tol: float) -> Optimality:
    data, W, penalty = problem.data, solution.W, problem.penalty
    bounds = []
    if problem.lam > 0.0 or penalty.l1 > 0.0:
        sums = solution.sums
        if sums is None:
            sums = problem.closing(W, solution.dual)
        found = from_softmax_sums(
            SoftmaxSums.from_flat(sums, data.d, problem.k),
            W[:-1],
            loss=problem.loss,
            lam=problem.lam,
            l1=penalty.l1,
            fit_intercept=problem.fit_intercept,
            scale=penalty.scale,
            tol=tol,
            rows_per_sum=problem.longest_sum(len(sums)),
            rows=data.n,
        )
        precise = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
        hopeless = penalty.l1 > 0.0 or W.size > LARGEST or not problem.loss.smooth
        hopeless = hopeless or not data.at_hand
        if found.certified or not precise or hopeless:
            return found
        bounds.append(found)
    assert isinstance(problem.loss, Multinomial) and data.labels is not None
    bounds.append(
        softmax_local_certificate(
            problem.loss,
            data.X,
            data.labels,
            data.weight,
            W,
            lam=problem.lam,
            fit_intercept=problem.fit_intercept,
            scale=penalty.scale,
            tol=tol,
        )
    )
    return min(bounds, key=preference)


def _local(problem: Problem, solution: Solution, tol: float) -> Optimality:
    data, scale = problem.data, problem.penalty.scale
    if not data.remote:
        part = KernelRows.of(data, problem.fit_intercept, problem.lam)
        theta = np.ascontiguousarray(solution.W[: part.size, 0])
        at = part.visit(problem.loss, theta)
        return judged(problem.loss, part, at, scale=scale, tol=tol, dual=solution.dual)
    return local_certificate(
        problem.loss,
        data.X,
        data.sign,
        data.offset,
        data.weight,
        solution.W,
        lam=problem.lam,
        fit_intercept=problem.fit_intercept,
        scale=scale,
        tol=tol,
        dual=solution.dual,
    )
