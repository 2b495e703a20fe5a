"""Compute the certificate of a fit from (problem, W, dual), by the closing pass over the rows."""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace

import numpy as np

from linsep.certificates.closing import from_sums, ridge_certificate
from linsep.certificates.curvature.certificate import LARGEST, certify_locally, local_certificate
from linsep.certificates.curvature.cluster import local_certificate_by_sums
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.softmax import softmax_local_certificate
from linsep.certificates.exact import exact_certificate
from linsep.certificates.group import group_certificate
from linsep.certificates.margin import margin_certificate
from linsep.certificates.optimality import (
    SMALLEST,
    Optimality,
    exact_zero,
    nothing_proven,
    preference,
    stronger,
)
from linsep.certificates.parts import Part, chunks, nothing_to_fit, score, vector_or_default
from linsep.certificates.precise import precise_certificate
from linsep.certificates.softmax import from_softmax_sums
from linsep.certificates.softmax_precise import precise_coupled_certificate
from linsep.data import Location
from linsep.errors import Refused
from linsep.interrupts import if_in_time
from linsep.problem import CoupledProblem, GroupProblem, Problem, hard_margin
from linsep.problem.closing_rows import score_share
from linsep.problem.duality import ClosingSums, CoupledSums
from linsep.solution import Explicit, Linearised, Solution, Status

#: Rows count as lying on the kink if they are within this many rounding errors of their margin.
_STRETCH = 64.0
#: Largest fraction of tol by which different bits of the dual point may change the gap.
_DRIFT = 1e-6
#: Largest relative factor by which the coefficients may be stretched.
_STRETCH_MOST = 1e-3


def prove(
    problem: Problem | CoupledProblem | GroupProblem, solution: Solution, tol: float
) -> tuple[Solution, Optimality]:
    """Certify the solution proposed by a solver; return it, possibly moved off a kink, with its certificate.

    At an optimum of the hinge loss, rows on the kink have margin 1 up to rounding. If C is large, the rounding bound
    on their losses can exceed tol. Stretching (w, b) by slightly more than the rounding error of those margins makes
    their losses exactly zero, and increases the objective by the same relative amount.
    """
    found = certify(problem, solution, tol)
    if isinstance(problem, CoupledProblem):
        return solution, found
    if found.certified:
        return _reproducible(problem, solution, found)
    if isinstance(problem, GroupProblem) or not (
        _stretchable(problem) and _is_limited_by_rounding(found)
    ):
        return solution, found

    def stretch() -> tuple[Solution, Optimality]:
        stretched = _stretch(problem, solution)
        if stretched is None:
            return solution, found
        other = certify(problem, stretched, tol)
        return (stretched, other) if other.certified else (solution, found)

    return if_in_time(stretch, lambda: (solution, found))


def depends_on_rounding(found: Optimality) -> bool:
    """Return whether rounding uses so much of tol that other bits in the unfolded dual point may prove less."""
    return found.rounding > 1e-3 * found.tol * abs(found.primal)


def _reproducible(
    problem: Problem | GroupProblem, solution: Solution, found: Optimality
) -> tuple[Solution, Optimality]:
    """Replace a linearised dual point by one number per row, if another machine might unfold it to a worse bound."""
    kept = solution.dual
    if isinstance(kept, Explicit) or found.kind != "dual":
        return solution, found
    if problem.data.location is Location.CLUSTER or problem.penalty.absent:
        return solution, found
    if not (depends_on_rounding(found) or _drifts(problem, kept, found)):
        return solution, found
    rows = problem.losses if isinstance(problem, GroupProblem) else problem
    u = rows.unfold(np.ascontiguousarray(solution.W[:, 0]), kept)
    explicit = replace(solution, dual=Explicit(u), sums=None)
    other = certify(problem, explicit, found.tol)
    return (explicit, other) if other.certified else (solution, found)


def _drifts(problem: Problem | GroupProblem, dual: Linearised, found: Optimality) -> bool:
    """Return whether rounding of the scores may change v = sum s sigma u x by more than an L1 certificate tolerates.

    The error of a score is relative to its terms and independent of other rows; the error of u is that times the
    curvature. If columns are so large that v changes by more than l1, a recomputed u proves nothing. With l1 = 0,
    ``verify`` computes a dual point of its own.
    """
    if not problem.penalty.kinked or not dual.base[:-1].any():
        # if w = 0, scores have no rounding error
        return False
    if isinstance(problem, GroupProblem):
        penalty, rows = problem.penalty, problem.losses
        lam, l1 = penalty.least_l2, float(penalty.thresholds[penalty.thresholds > 0.0].min())
    else:
        rows, lam, l1 = problem, problem.lam, problem.penalty.l1
    squares, data = rows.moments(weighted=False)[0], problem.data
    heaviest = 1.0 if data.weight is None else float(np.max(data.weight))
    with np.errstate(over="ignore", invalid="ignore"):
        total = heaviest * float(squares.sum())  # of s |x|^2
        size = heaviest * data.n
        w, b = np.linalg.norm(dual.base[:-1]), abs(float(dual.base[-1, 0]))
        reach = float(w) * total + b * math.sqrt(total * size)
        moved = score_share(data.d) * problem.loss.curvature_bound * reach / math.sqrt(data.n)
        if lam > 0.0:
            cost = 0.5 * moved * moved / lam * problem.penalty.scale
            return not cost <= _DRIFT * found.tol * abs(found.primal)
        return not moved <= 0.1 * found.tol * l1


def _nothing_to_fit(problem: Problem | GroupProblem, solution: Solution) -> bool:
    """Return whether the objective is exactly zero at w = 0; on a cluster, whether that needs no vector of its rows."""
    data = problem.data
    if data.location is not Location.CLUSTER:
        return nothing_to_fit(problem.loss, data.sign, data.offset, solution.W)
    return not data.targets.has_offset and nothing_to_fit(problem.loss, None, None, solution.W)


def certify(
    problem: Problem | CoupledProblem | GroupProblem, solution: Solution, tol: float
) -> Optimality:
    """Certify the solution proposed by a solver.

    With a penalty, the certificate follows from duality and the sums of the closing pass at exactly this W and dual
    point; the pass is run here unless the solver ended with it. Without a penalty, or if a huge C amplifies the
    rounding errors of the dual point, the certificate follows from the curvature around the solution. If neither
    succeeds and rounding keeps the gap above tol, the pass is repeated in about twice the working precision.
    """
    if isinstance(problem, CoupledProblem):
        return _certify_coupled(problem, solution, tol)
    if not isinstance(problem, GroupProblem) and hard_margin(problem.loss, problem.penalty):
        return _certify_margin(problem, solution, tol)
    if _nothing_to_fit(problem, solution):
        return exact_zero(tol)
    if isinstance(problem, GroupProblem):
        return group_certificate(_part(problem, solution, tol))
    found = _by_duality_or_curvature(problem, solution, tol)
    if not _is_doubled(solution) or (found.certified and not problem.penalty.absent):
        return found
    exact = _exactly(problem, solution, tol)
    if found.certified:  # without a penalty, claim only what exact arithmetic confirms
        return found if exact.certified or math.isinf(exact.gap) else exact
    return min(found, exact, key=preference)


def _certify_margin(problem: Problem, solution: Solution, tol: float) -> Optimality:
    """Certify a hard margin, in exact arithmetic if the dual point has more than float64 precision."""
    part = _part(problem, solution, tol)
    found = margin_certificate(part)
    if found.certified or not _is_doubled(solution):
        return found
    with suppress(OverflowError):
        return min(found, margin_certificate(part, exact=True), key=preference)
    return found


def _by_duality_or_curvature(problem: Problem, solution: Solution, tol: float) -> Optimality:
    """Return the better of the floating-point certificates by duality and by curvature."""
    if problem.penalty.absent:
        return _local(problem, solution, tol)
    found = _by_duality(problem, solution, tol)
    if found.certified:
        return found
    hidden = _is_doubled(solution) or _is_limited_by_rounding(found)
    precise = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    curved = problem.penalty.l1 == 0.0 and problem.loss.smooth and problem.data.d < LARGEST
    if precise and curved and problem.data.fits_memory():
        found = min(found, _local(problem, solution, tol), key=preference)
    if found.certified or not hidden:
        return found
    part = _part(problem, solution, tol)
    return stronger(found, lambda: precise_certificate(part))


def _by_duality(problem: Problem, solution: Solution, tol: float) -> Optimality:
    """Certify by duality, from the sums of the compiled closing pass."""
    theta, penalty = np.ascontiguousarray(solution.W[:, 0]), problem.penalty
    sums = solution.sums
    if sums is None:
        sums = problem.closing(theta, solution.dual)
    longest = problem.data.longest_sum(len(sums))
    if penalty.l1 == 0.0:
        return ridge_certificate(sums, theta, penalty, problem.fit_intercept, tol, longest)
    flat = ClosingSums.from_flat(sums, problem.data.d)
    if penalty.l2 == 0.0:  # with a ridge penalty, norms suffice
        flat = replace(flat, entry=problem.largest_entry(sums))
    return from_sums(
        *(flat, theta[:-1], penalty),
        fit_intercept=problem.fit_intercept,
        tol=tol,
        rows_per_sum=longest,
    )


def _part(problem: Problem | CoupledProblem | GroupProblem, solution: Solution, tol: float) -> Part:
    """Return the problem and its proposed solution in the form that an independent check reads."""
    data = problem.data
    sign, offset, weight, labels = data.targets.vectors()
    coupled = isinstance(problem, CoupledProblem)
    targets = (None, None, weight, labels) if coupled else (sign, offset, weight, None)
    return Part(
        *(problem.loss, problem.penalty, problem.fit_intercept, data.X),
        *(*targets, solution.W, solution.dual, tol),
    )


def _is_doubled(solution: Solution) -> bool:
    """Return whether the dual point is stored in more than float64 precision."""
    return isinstance(solution.dual, Explicit) and solution.dual.rest is not None


def _exactly(problem: Problem | CoupledProblem, solution: Solution, tol: float) -> Optimality:
    """Certify in exact arithmetic, for small data.

    Proves nothing if python-flint is required but missing, or if the objective is not a normal float64 number.
    """
    try:
        found = exact_certificate(_part(problem, solution, tol))
    except (Refused, OverflowError):
        return nothing_proven(tol)
    if (found.primal > 0.0 or found.gap > 0.0) and not SMALLEST <= found.primal < math.inf:
        return nothing_proven(tol)
    if not found.gap > 0.0 or found.relative_gap == 0.0:
        return found
    # primal and dual are rounded, so the reported gap must be at least their difference
    gap = max(found.gap, math.nextafter(found.primal - found.dual, math.inf))
    share, strength = gap / found.primal, problem.penalty.modulus * problem.penalty.scale
    distance = math.sqrt(2.0 * gap / strength) * (1.0 + 2.0**-50) if strength > 0.0 else math.inf
    return replace(found, gap=gap, relative_gap=share, coef_error=distance, certified=share <= tol)


def _is_limited_by_rounding(found: Optimality) -> bool:
    """Return whether the rounding bound is a substantial part of what keeps the gap above tol."""
    scale = max(abs(found.primal), abs(found.dual))
    return not found.certified and not found.rounding <= 0.05 * found.tol * scale


def _stretchable(problem: Problem) -> bool:
    """Return whether the loss is zero beyond a kink at margin 1 and margins are proportional to (w, b)."""
    loss = problem.loss
    kink = not loss.smooth and loss.slope(np.array([1.0]))[0] == 0.0 == loss.value(np.ones(1))[0]
    return bool(kink) and not problem.data.targets.has_offset and problem.penalty.C < math.inf


def _stretch(problem: Problem, solution: Solution) -> Solution | None:
    """Scale the solution so that rows on the kink lie just beyond it; None if there are no such rows."""
    data, theta = problem.data, np.ascontiguousarray(solution.W[:, 0])
    sizes, share, most = np.abs(theta), 4.0 * score_share(data.d), 0.0
    for rows, block in chunks(data.X):
        counted = vector_or_default(data.weight, rows, 1.0) > 0.0
        m = np.asarray(data.sign[rows]) * score(block, theta[:, None])[:, 0]
        e = share * score(abs(block), sizes[:, None])[:, 0]
        near = counted & (m - e < 1.0) & (m >= 1.0 - _STRETCH * e) & (m > 0.5)
        if near.any():
            most = max(most, float(((1.0 - m[near] + e[near]) / m[near]).max()))
    if not 0.0 < most < _STRETCH_MOST:
        return None
    return replace(solution, W=solution.W * (1.0 + most), sums=None)


def _certify_coupled(problem: CoupledProblem, solution: Solution, tol: float) -> Optimality:
    """Certify by duality if there is a penalty; if that falls short, in exact arithmetic or by curvature."""
    data, penalty, found = problem.data, problem.penalty, None
    ended = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
    if not penalty.absent:
        found = _by_coupled_duality(problem, solution, tol)
        if found.certified or not ended:
            return found
    if _is_doubled(solution):
        exact = _exactly(problem, solution, tol)
        found = exact if found is None else min(found, exact, key=preference)
        if exact.certified:
            return found
    curved = problem.loss.smooth and penalty.l1 == 0.0
    if not penalty.absent:
        curved = curved and solution.W.size <= LARGEST and data.fits_memory()
    if found is not None and not curved:
        return found
    local = softmax_local_certificate(_part(problem, solution, tol))
    return local if found is None else min(found, local, key=preference)


def _by_coupled_duality(problem: CoupledProblem, solution: Solution, tol: float) -> Optimality:
    """Certify by duality, in doubled precision if float64 does not suffice."""
    data, W, sums = problem.data, solution.W, solution.sums
    if sums is None:
        sums = problem.closing(W, solution.dual)
    found = from_softmax_sums(
        *(CoupledSums.from_flat(sums, data.d, problem.k), W[:-1], problem.loss, problem.penalty),
        fit_intercept=problem.fit_intercept,
        tol=tol,
        rows_per_sum=problem.longest_sum(len(sums)),
        rows=data.n,
    )
    if _is_doubled(solution) or not _is_limited_by_rounding(found):
        return found  # digits beyond float64 are for exact arithmetic
    part = _part(problem, solution, tol)
    return stronger(found, lambda: precise_coupled_certificate(part))


def _local(problem: Problem, solution: Solution, tol: float) -> Optimality:
    data, scale = problem.data, problem.penalty.scale
    if data.location is not Location.CLUSTER:
        part = KernelRows.of(data, problem.fit_intercept, problem.lam)
        theta = np.ascontiguousarray(solution.W[: part.size, 0])
        at = part.visit(problem.loss, theta)
        return certify_locally(problem.loss, part, at, scale=scale, tol=tol, dual=solution.dual)
    if problem.loss.smooth and data.d < LARGEST:
        theta = np.ascontiguousarray(solution.W[:, 0])
        found = local_certificate_by_sums(problem, theta, tol)
        if found.certified or not data.fits_memory():
            return found
    return local_certificate(_part(problem, solution, tol))
