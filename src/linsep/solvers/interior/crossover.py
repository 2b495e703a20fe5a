"""Crossover from a point near the optimum of a loss with a kink to the optimum (kernels/interior/crossover.hpp)."""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.problem import dot
from linsep.solvers.interior.central_path import Path

ORDER = 320  # up to which the exact solution is looked for
MAX_ROUNDS = 40
NEGLIGIBLE = 1e-10  # relative gap that rounding may leave of it


def crossable(path: Path) -> bool:
    """Whether the exact solution is worth looking for."""
    return path.problem.data.whole is not None and path.problem.order <= ORDER


def cross_over(path: Path, theta: FloatArray, u: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
    """The exact solution near theta and u: whether it was found, and the point.

    With a penalty its gap must be negligible, or no more than that of the last iterate: where C |x|^2 is large the
    rounding of u alone can cost more.
    """
    problem = path.problem
    block = problem.data.whole
    assert block is not None
    theta, u, v = theta.copy(), u.copy(), np.zeros_like(u)
    _kernels.kink_margins(block.rows, block.targets, path.loss, 0, len(u), theta, v, np.zeros(1))
    right = _kernels.crossover(
        block.rows,
        block.targets,
        path.loss,
        problem.lam,
        problem.fit_intercept,
        path.linear,
        MAX_ROUNDS,
        theta,
        u,
        v,
    )
    path.count(4.0)
    right = right and bool(np.isfinite(theta).all())
    if right and problem.lam > 0.0:
        right = _gap(path, theta, u, v) <= max(path.gap, NEGLIGIBLE * abs(path.value))
    return right, theta, u


def _gap(path: Path, theta: FloatArray, u: FloatArray, v: FloatArray) -> float:
    """The gap of a point with these margins, as ``Path.measure`` has it for an iterate."""
    data, lam = path.problem.data, path.problem.lam
    weight = np.ones(data.n) if data.weight is None else data.weight
    mass = weight * data.sign * u
    sums = path.linear + data.sum(
        lambda b, out: _kernels.combine(
            b.rows, b.lo, b.hi, mass[b.first : b.first + b.rows.n], out
        ),
        path.problem.order,
    )
    r = sums[:-1] - lam * theta[:-1]
    room = (path.high - u) * np.maximum(-v, 0.0) + (u - path.low) * np.maximum(v, 0.0)
    gap = dot(weight, room) + 0.5 * dot(r, r) / lam
    return gap + abs(float(sums[-1] * theta[-1])) if path.problem.fit_intercept else gap
