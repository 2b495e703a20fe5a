"""Crossover from an interior point near the optimum to the exact solution (kernels/interior/crossover.hpp)."""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.problem import dot
from linsep.solvers.interior.central_path import Path

ORDER = 320  # largest number of unknowns for which crossover is tried
MAX_ROUNDS = 40
NEGLIGIBLE = 1e-10  # relative gap of the exact solution that is attributed to rounding


def crossable(path: Path) -> bool:
    """Return whether the problem is small enough for crossover."""
    return path.problem.data.whole is not None and path.problem.order <= ORDER


def cross_over(path: Path, theta: FloatArray, u: FloatArray) -> tuple[bool, FloatArray, FloatArray]:
    """Compute the exact solution near theta and u; return whether it was found, and theta and u. Four passes.

    With a penalty its gap must be negligible or at most that of the last iterate: if C |x|^2 is large, the rounding
    of u alone may contribute more.
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
    """Return the gap of a point with these margins, computed as in ``Path.measure``."""
    data, lam = path.problem.data, path.problem.lam
    weight = np.ones(data.n) if data.weight is None else data.weight
    mass = weight * data.sign * u
    sums = path.linear + data.combine(mass)
    r = sums[:-1] - lam * theta[:-1]
    room = (path.high - u) * np.maximum(-v, 0.0) + (u - path.low) * np.maximum(v, 0.0)
    gap = dot(weight, room) + 0.5 * dot(r, r) / lam
    return gap + abs(float(sums[-1] * theta[-1])) if path.problem.fit_intercept else gap
