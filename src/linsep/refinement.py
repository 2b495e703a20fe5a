"""Refine solutions whose relative gap stays above tol because of rounding in float64.

Small problems are solved again in decimal arithmetic (``multiprecision``), for any loss and penalty. The solution is
the optimum rounded to float64, and its dual point has twice the digits of float64. Larger problems without a penalty
get Newton steps in doubled precision: Newton's method with the normal equations loses twice the digits of the condition
number, and stalls far above the minimum on polynomials or columns with large offsets. Margins and gradients are
therefore computed in doubled precision, and the factor T of the proof of positive definiteness gives the step
theta - T T'g.

Coefficients and predictions remain float64. Without a penalty a refined solution is accepted only if its predictions
are accurate: the objective of scores computed in float64 must agree with the certificate to 1 %. If columns differ only
in their last bits, the previous solution with moderate coefficients is kept, uncertified.
"""

from __future__ import annotations

import math
from contextlib import suppress
from dataclasses import replace
from decimal import Decimal

import numpy as np

from linsep import dual_correction
from linsep.arrays import FloatArray, IntArray
from linsep.certificates import Optimality, prove
from linsep.certificates.curvature.certificate import LARGEST, constant_loss, visit
from linsep.certificates.curvature.dependence import proven_metric
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.rows import DoubledRows, Evaluation, row_curvatures
from linsep.certificates.optimality import SMALLEST, preference
from linsep.certificates.parts import vector_or_default
from linsep.data import Location
from linsep.errors import NonFinite
from linsep.exact.budget import OF_A_FIT, OverBudget, at_most
from linsep.exact.decimals import (
    DIGITS,
    Decimals,
    decimals,
    floats,
    many_digits,
    powers_of_two,
    two_floats,
    worthwhile,
    zeros,
)
from linsep.losses import Exponential, Logistic, Loss, Scaled, zero_margin
from linsep.multiprecision.class_terms import CrammerSinger, Multinomial
from linsep.multiprecision.interior import Found, NoProgress, solve
from linsep.multiprecision.row_terms import (
    EXPONENTIAL,
    LOGISTIC,
    AbsolutePenalty,
    HardMargin,
    PiecewiseQuadratic,
    Slopes,
    Smooth,
)
from linsep.multiprecision.terms import Matrix, scaled_rows
from linsep.problem import CoupledProblem, GroupProblem, Problem, hard_margin
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.run import linearised

#: Largest relative error of the objective computed in float64.
_ACCURATE = 0.01
_STEPS = 8
_HALVINGS = 6
#: Stop when the predicted decrease of a step, relative to the objective, is below this.
_CONVERGED = 1e-13
#: A coefficient whose dual variable of |w_j| is below this in absolute value is 0 at the optimum.
_INSIDE = Decimal("0.999999999")
#: A coefficient, in units of its column, below this fraction of the largest one is treated as 0.
_NEGLIGIBLE = 1e-12
_MOST_DIGITS = 400
#: If the excess over the minimum exceeds this times tol, no other dual point is tried; it is known to second order.
_MAX_EXCESS = 2.0
#: The hard-margin solution is multiplied by 1 plus this fraction of tol before rounding.
_STRETCH = Decimal("0.05")
_SLOPES: dict[type[Loss], Slopes] = {Logistic: LOGISTIC, Exponential: EXPONENTIAL}


def refine(
    problem: Problem | CoupledProblem | GroupProblem,
    solution: Solution,
    found: Optimality,
    stop: Stop,
    smallest: float = SMALLEST,
) -> tuple[Solution, Optimality]:
    """Refine an uncertified solution; return the given one and its certificate if there is no improvement.

    An objective below ``smallest`` cannot be certified, unless it is 0.
    """
    short = solution.status in (Status.CERTIFIED, Status.WORKING_PRECISION, Status.GIVEN_UP)
    near = problem.data.fits_memory() and problem.data.location is not Location.CLUSTER
    if found.certified or not (short and near):
        return solution, found
    if not isinstance(problem, CoupledProblem) and dual_correction.applies(problem):
        solution, found = _corrected(problem, solution, found)
    if found.certified or isinstance(problem, GroupProblem):
        return solution, found
    stated = problem.penalty.absent or not found.primal < smallest
    with at_most(OF_A_FIT):
        trial, excess = _in_decimals(problem, solution, stop, _MOST_DIGITS if stated else DIGITS)
        if trial is None and isinstance(problem, Problem) and _smooth_and_free(problem):
            trial = _by_doubled_newton(problem, solution)
        if trial is None:
            return solution, found
        # No dual point can certify a point that is not optimal: use only the given one then.
        with at_most(OF_A_FIT if excess <= _MAX_EXCESS * stop.tol else 0.0):
            trial, better = prove(problem, trial, stop.tol)
    improved = preference(better) < preference(found) and _accurate(problem, trial, better)
    return (trial, better) if improved else (solution, found)


def _corrected(
    problem: Problem | GroupProblem, solution: Solution, found: Optimality
) -> tuple[Solution, Optimality]:
    """Return the best solution among Newton steps with gradients and dual variables in doubled precision."""
    with suppress(NonFinite), np.errstate(over="ignore", invalid="ignore"):
        for trial in dual_correction.corrected(problem, solution):
            with at_most(0.0):  # no other dual point is sought in exact arithmetic
                _, better = prove(problem, trial, found.tol)
            if preference(better) < preference(found):
                solution, found = trial, better
            if found.certified:
                break
    return solution, found


def _accurate(problem: Problem | CoupledProblem, trial: Solution, found: Optimality) -> bool:
    """Return whether the objective of float64 predictions agrees with the certificate.

    Always true with a penalty, which bounds the coefficients.
    """
    if not problem.penalty.absent or not isinstance(problem, Problem):
        return True
    if hard_margin(problem.loss, problem.penalty):  # the certificate checks every margin exactly
        return found.certified
    rows = KernelRows.of(problem.data, problem.fit_intercept)
    plain = rows.visit(problem.loss, np.ascontiguousarray(trial.W[: rows.size, 0]))
    vectors = rows.sigma, rows.offset, rows.weight
    constant = constant_loss(problem.loss, *vectors, problem.fit_intercept)
    # Errors below tol times the objective of the constant model do not matter.
    scale = max(found.primal, found.tol * constant)
    return bool(abs(plain.primal - found.primal) <= _ACCURATE * scale)


def _in_decimals(
    problem: Problem | CoupledProblem, solution: Solution, stop: Stop, most_digits: int
) -> tuple[Solution | None, float]:
    """Solve in decimal arithmetic; return the rounded optimum and its relative excess over the minimum.

    The solution is None if the work exceeds the budget or no optimum is found.
    """
    weight = np.ones(problem.data.n) if problem.data.weight is None else problem.data.weight
    there = np.flatnonzero(weight > 0.0)
    rows = KernelRows.of(problem.data, problem.fit_intercept)
    k = solution.W.shape[1]
    if not worthwhile(len(there), rows.size * k):
        return None, 0.0
    A = np.vstack([A for _, A in rows.chunks()])[there]
    digits = _digits(problem, A, weight[there])
    if digits > most_digits:
        return None, 0.0
    try:
        with many_digits(digits):
            if isinstance(problem, Problem):
                hard = hard_margin(problem.loss, problem.penalty)
                way = _refine_hard_margin if hard else _pointwise
                trial = way(problem, solution, A, there, stop)
            else:
                trial = _refine_coupled(problem, solution, A, there, stop)
            return (None, 0.0) if trial is None else (trial[0], float(trial[1].excess))
    except (NoProgress, OverBudget, ArithmeticError):
        return None, 0.0


def _digits(problem: Problem | CoupledProblem, A: FloatArray, weight: FloatArray) -> int:
    """Return the number of decimal digits: those that resolve the penalty relative to the losses, plus 40."""
    with np.errstate(over="ignore"):
        sizes = np.log10(np.maximum(np.abs(A).max(axis=0, initial=0.0), 1e-300))
    ratio = math.log10(float(weight.max(initial=1e-300))) + 2.0 * max(float(sizes.max()), 0.0)
    if problem.lam > 0.0:
        ratio -= math.log10(problem.lam) + 2.0 * min(float(sizes.min()), 0.0)
    return int(min(max(DIGITS, 40 + ratio), _MOST_DIGITS))


def _scales(
    problem: Problem | CoupledProblem, A: FloatArray, k: int
) -> tuple[Decimals, Decimals, list[AbsolutePenalty]]:
    """Return the units of the columns (powers of two, for all classes), the ridge in these units and the L1 term."""
    units, d = np.tile(powers_of_two(np.abs(A).max(axis=0, initial=0.0)), k), problem.data.d
    order = A.shape[1]
    weights = np.flatnonzero(np.arange(k * order) % order < d)
    ridge = zeros(k * order)
    ridge[weights] = Decimal(problem.lam) * units[weights] * units[weights]
    l1 = problem.penalty.l1
    terms = [AbsolutePenalty(weights, units[weights], k * order, l1)] if l1 > 0.0 else []
    return units, ridge, terms


def _pointwise(
    problem: Problem, solution: Solution, A: FloatArray, there: IntArray, stop: Stop
) -> tuple[Solution, Found] | None:
    data, loss, factor = problem.data, problem.loss, 1.0
    q = loss.conjugate_quadratic
    while q is None and isinstance(loss, Scaled):
        factor *= loss.factor
        loss = loss.loss
    units, ridge, terms = _scales(problem, A, 1)
    s = Decimal(factor) * decimals(vector_or_default(data.weight, slice(0, data.n), 1.0)[there])
    offset = decimals(vector_or_default(data.offset, slice(0, data.n), 0.0)[there])
    rows = Matrix(scaled_rows(A, units, data.sign[there]))
    row_term: PiecewiseQuadratic | Smooth
    if q is not None and loss.dead_zone is None:
        row_term = PiecewiseQuadratic(rows, Decimal(zero_margin(loss)) - offset, s, q, *loss.domain)
    elif type(loss) in _SLOPES:
        row_term = Smooth(rows, -offset, s, _SLOPES[type(loss)])
    else:
        return None
    found = solve([row_term, *terms], ridge, units, stop.tol, stop.time_limit)
    theta, u, rest = np.zeros(len(solution.W)), np.zeros(data.n), np.zeros(data.n)
    theta[: A.shape[1]] = _sparse(found, terms)
    u[there], rest[there] = two_floats(row_term.u * Decimal(factor))
    return _proposal(solution, theta[:, None], Explicit(u, rest)), found


def _refine_hard_margin(
    problem: Problem, solution: Solution, A: FloatArray, there: IntArray, stop: Stop
) -> tuple[Solution, Found]:
    data = problem.data
    units = powers_of_two(np.abs(A).max(axis=0, initial=0.0))
    ridge = units * units
    ridge[data.d :] = Decimal(0)
    row_term = HardMargin(Matrix(scaled_rows(A, units, data.sign[there])))
    # Margins slightly above 1 are still at least 1 after rounding.
    longer = 1 + Decimal(stop.tol) * _STRETCH
    found = solve([row_term], ridge, units, stop.tol, stop.time_limit, longer=longer)
    theta, u, rest = np.zeros(len(solution.W)), np.zeros(data.n), np.zeros(data.n)
    theta[: A.shape[1]] = found.rounded
    u[there], rest[there] = two_floats(row_term.u)
    return _proposal(solution, theta[:, None], Explicit(u, rest)), found


def _refine_coupled(
    problem: CoupledProblem, solution: Solution, A: FloatArray, there: IntArray, stop: Stop
) -> tuple[Solution, Found]:
    data, k = problem.data, problem.k
    assert data.labels is not None
    units, ridge, terms = _scales(problem, A, k)
    s = decimals(vector_or_default(data.weight, slice(0, data.n), 1.0)[there])
    labels = data.labels[there]
    kind = Multinomial if problem.loss.smooth else CrammerSinger
    row_term = kind(scaled_rows(A, units[: A.shape[1]]), labels, s, k)
    found = solve([row_term, *terms], ridge, units, stop.tol, stop.time_limit, k)
    W = np.zeros_like(solution.W)
    W[: A.shape[1]] = _sparse(found, terms).reshape(k, A.shape[1]).T
    U, rest = np.zeros((data.n, k)), np.zeros((data.n, k))
    U[there], rest[there] = two_floats(row_term.own - row_term.P)
    return _proposal(solution, W, Explicit(U, rest)), found


def _sparse(found: Found, terms: list[AbsolutePenalty]) -> FloatArray:
    """Set negligible coefficients to exactly 0 where the dual variable of |w_j| is strictly inside [-1, 1]."""
    theta = found.rounded
    for term in terms:
        sizes = np.abs(floats(found.theta))
        inside = np.array([abs(u) < _INSIDE for u in term.u])
        inside &= sizes[term.penalised] <= _NEGLIGIBLE * sizes.max(initial=0.0)
        theta[term.penalised[inside]] = 0.0
    return theta


def _proposal(solution: Solution, W: FloatArray, dual: Explicit) -> Solution:
    return replace(solution, W=W, dual=dual, status=Status.WORKING_PRECISION, sums=None)


def _smooth_and_free(problem: Problem) -> bool:
    return problem.penalty.absent and problem.loss.smooth and problem.data.d < LARGEST


def _by_doubled_newton(problem: Problem, solution: Solution) -> Solution | None:
    """Return the solution after Newton steps in doubled precision; None if there are too many rows."""
    rows = KernelRows.of(problem.data, problem.fit_intercept)
    part = DoubledRows.of(rows)
    if part is None:
        return None
    theta = np.zeros(len(solution.W))
    start = np.ascontiguousarray(solution.W[: rows.size, 0])
    theta[: rows.size] = _newton(problem.loss, part, start)
    dual = linearised(theta, np.zeros_like(theta))
    return replace(solution, W=theta[:, None], dual=dual, sums=None)


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


def _step(loss: Loss, part: DoubledRows, at: Evaluation) -> FloatArray | None:
    """Return the Newton step; None if its predicted decrease is negligible or the Hessian is not proven definite."""
    h = row_curvatures(part.weight, loss.curvature(at.m))
    if not (np.isfinite(h).all() and np.isfinite(at.g).all()):
        return None
    metric = proven_metric(part, h, at.sloped & (part.weight > 0.0))
    if metric is None:
        return None
    y = metric.T.T @ at.g
    return -(metric.T @ y) if float(y @ y) > _CONVERGED * at.primal else None
