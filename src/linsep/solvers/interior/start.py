"""Starting points of the interior point method, and solutions of problems that need no iteration.

Some problems with a kink are solved directly: an intercept alone makes every loss 0. For the others the minimiser of
the corresponding squared loss, moved to the central path, halves the number of iterations.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block, Location
from linsep.interrupts import lapack
from linsep.losses import Squared, SquaredHinge, zero_margin
from linsep.problem import Problem
from linsep.problem.pointwise import CURVATURE
from linsep.solution import Stop
from linsep.solvers.newton.subsampled import minimise

_PASSES = 24.0  # largest number of passes for the start; nearly separable rows would need many more


def squared_start(problem: Problem, theta: FloatArray) -> FloatArray:
    """Return the minimiser of the corresponding squared loss, to a relative gap of 1e-2 or after ``_PASSES`` passes."""
    given = problem.loss
    if theta.any() or given.zero_at_origin:
        return theta
    loss = Squared(centre=zero_margin(given)) if given.regression else SquaredHinge()
    easy = Problem(loss, problem.penalty, problem.data, problem.fit_intercept)
    start = minimise(easy, theta, Stop(1e-2, max_passes=_PASSES))
    problem.passes += easy.passes
    return start if np.isfinite(start).all() else theta


def null_directions(problem: Problem) -> FloatArray | None:
    """Orthonormal basis of the directions w along which x.w is equal for all rows, so only the penalty changes.

    They exist, for example, with one-hot columns. In the Gram matrix of an iterate the penalty on them is lost to
    rounding once the entries are 1e15 times the penalty; the optimal w is orthogonal to them.
    """
    data = problem.data

    def ones(b: Block, out: FloatArray) -> None:
        b.row_state(CURVATURE)[b.lo : b.hi] = b.weights() > 0.0

    data.sum(ones, 1)
    H = problem.hessian(problem.centre())
    H[np.arange(data.d), np.arange(data.d)] -= problem.lam
    diagonal = np.diag(H)
    unit = np.where(diagonal > 0.0, 1.0 / np.sqrt(np.where(diagonal > 0.0, diagonal, 1.0)), 0.0)
    values, vectors = lapack(
        np.linalg.eigh, H * unit * unit[:, None] + np.diag(1.0 * (unit == 0.0))
    )
    flat = (unit[:, None] * vectors[:, values < 1e-12 * max(1.0, float(values[-1]))])[:-1]
    flat = flat[:, np.linalg.norm(flat, axis=0) > 0.0]
    if not flat.shape[1]:
        return None
    basis, _ = lapack(np.linalg.qr, flat / np.linalg.norm(flat, axis=0))
    return np.ascontiguousarray(basis.T)


def flat_answer(problem: Problem) -> FloatArray | None:
    """Return the solution w = 0 if an intercept makes every loss 0 (one class or target); else None."""
    data = problem.data
    if data.location is Location.CLUSTER and problem.loss.domain[0] == 0.0 and data.counts().all():
        return None  # both classes have weight: avoids copying vectors of length n to the client
    live = slice(None) if data.weight is None else data.weight > 0.0
    sign, offset = data.sign[live], 0.0 if data.offset is None else data.offset[live]
    need = zero_margin(problem.loss) - offset + np.zeros(len(sign))
    one_sided = problem.loss.domain[0] == 0.0
    b = 0.0
    if problem.fit_intercept and len(sign):
        if not one_sided:
            least, most = float((sign * need).min()), float((sign * need).max())
            b = least + 0.5 * (most - least)
        elif (sign == sign[0]).all():
            b = float(sign[0] * max(0.0, need.max()))
    enough = sign * b >= need if one_sided else sign * b == need
    zero = enough | (problem.loss.value(sign * b + offset) == 0.0)
    return np.append(np.zeros(data.d), b) if zero.all() else None
