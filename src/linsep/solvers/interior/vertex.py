"""Move from any minimiser of an unpenalised absolute loss to a vertex, where the zero residuals determine theta.

Least absolute deviations, min sum s |t_i - x~_i.theta|, is a linear programme. If its minimisers form a face, an
interior point method ends inside the face. A move along a direction that keeps all zero residuals at zero leaves the
objective unchanged until the next residual vanishes; after at most d + 1 such moves the rows with zero residual
determine theta (purification: Megiddo, "On finding primal- and dual-optimal bases", 1991).
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.interrupts import if_in_time, lapack
from linsep.losses import zero_margin
from linsep.problem import Problem
from linsep.solution import Solution

ORDER = 320  # largest number of unknowns for which the null space of the rows is computed
ENTRIES = 4_000_000  # largest number of entries copied as a dense matrix
ZERO = 2.0**-40  # a residual below this fraction of its terms is zero
DEPENDENT = 1e-10  # rows are dependent if a pivot is below this fraction of the largest
WORSE = 1e-13  # relative increase of the objective attributed to rounding


def move_to_vertex(problem: Problem, solution: Solution) -> Solution:
    """Replace a minimiser inside a face of minimisers by a vertex of that face; keep it if the objective increases."""
    data = problem.data
    if (
        problem.lam > 0.0
        or data.location is not Location.MEMORY
        or problem.order > ORDER
        or data.n * problem.order > ENTRIES
        or solution.sums is None
    ):
        return solution
    used = slice(None) if problem.fit_intercept else slice(0, -1)
    rows, target, weight = _residual_system(problem, used)
    theta = solution.W[:, 0].copy()
    found = if_in_time(lambda: _purify(rows, target, weight, theta[used]), lambda: None)
    if found is None:
        return solution
    theta[used] = found
    sums = problem.closing(theta, solution.dual)
    if not sums[0] <= solution.sums[0] * (1.0 + WORSE):
        return solution
    return replace(solution, W=theta.reshape(-1, 1), sums=sums, passes=problem.passes)


def _residual_system(problem: Problem, used: slice) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return A, t and weights s of the residuals t - A theta, for the rows of positive weight."""
    data = problem.data
    X = data.X.toarray() if sp.issparse(data.X) else np.asarray(data.X)
    A = data.sign[:, None] * np.column_stack([X, np.ones(data.n)])[:, used]
    target = np.full(data.n, zero_margin(problem.loss))
    if data.offset is not None:
        target = target - data.offset
    weight = np.ones(data.n) if data.weight is None else data.weight
    kept = weight > 0.0
    return A[kept], target[kept], weight[kept]


def _purify(
    A: FloatArray, target: FloatArray, weight: FloatArray, theta: FloatArray
) -> FloatArray | None:
    """Return the vertex reached from theta; None if theta is a vertex."""
    scale = np.abs(A).max(axis=0, initial=0.0)
    scale[scale == 0.0] = 1.0
    A, at = A / scale, theta * scale
    zero = _vanishing(A, target, at)
    moved = False
    for _ in range(A.shape[1]):
        direction = _null_direction(A[zero])
        if direction is None:
            break
        step = _first_zero(A, target, weight, at, direction, zero)
        if step is None:
            break
        length, row = step
        at, moved = at + length * direction, True
        zero |= _vanishing(A, target, at)
        zero[row] = True
    if not moved:
        return None
    return np.asarray(solve_through(A[zero], target[zero], at) / scale)


def _vanishing(A: FloatArray, target: FloatArray, at: FloatArray) -> np.ndarray:
    residual = target - A @ at
    return np.asarray(np.abs(residual) <= ZERO * (np.abs(A) @ np.abs(at) + np.abs(target)))


def _null_direction(rows: FloatArray) -> FloatArray | None:
    """Return a unit vector orthogonal to the rows; None if they span the space."""
    order = rows.shape[1]
    if not len(rows):
        return np.asarray(np.eye(order)[0])
    _, values, basis = lapack(scipy.linalg.svd, rows, full_matrices=True)
    rank = int(np.count_nonzero(values > DEPENDENT * values[0]))
    return None if rank == order else np.asarray(basis[-1])


def _first_zero(
    A: FloatArray,
    target: FloatArray,
    weight: FloatArray,
    at: FloatArray,
    direction: FloatArray,
    zero: np.ndarray,
) -> tuple[float, int] | None:
    """Return the signed step size along the descent direction at which the next residual vanishes, and its row."""
    residual, change = target - A @ at, A @ direction
    able = np.flatnonzero(~zero & (np.abs(change) > DEPENDENT * np.abs(A).sum(axis=1)))
    if not len(able):
        return None  # the columns are dependent: the direction changes no score
    slope = -float(np.sum((weight * np.sign(residual) * change)[~zero]))
    lengths = residual[able] / change[able]
    downhill = lengths[lengths > 0.0] if slope <= 0.0 else lengths[lengths < 0.0]
    if not len(downhill):
        downhill = lengths
    length = float(downhill[np.abs(downhill).argmin()])
    return length, int(able[np.flatnonzero(lengths == length)[0]])


def solve_through(rows: FloatArray, target: FloatArray, near: FloatArray) -> FloatArray:
    """Return the point nearest to ``near`` that fits a maximal independent set of the rows exactly, refined once."""
    _, upper, order = lapack(scipy.linalg.qr, rows.T, mode="economic", pivoting=True)
    diagonal = np.abs(np.diag(upper))
    chosen = order[: int(np.count_nonzero(diagonal > DEPENDENT * diagonal[0]))]
    for _ in range(2):
        correction = lapack(
            np.linalg.lstsq, rows[chosen], target[chosen] - rows[chosen] @ near, rcond=None
        )[0]
        near = near + correction
    return near
