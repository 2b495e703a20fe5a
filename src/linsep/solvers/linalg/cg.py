"""Preconditioned conjugate gradients for A x = b, A symmetric positive definite, for all solvers.

Products with A, the preconditioner, the stopping rule and a projection are callbacks. Vectors may also be matrices,
with the Frobenius inner product.

Reference: Hestenes and Stiefel, Methods of conjugate gradients for solving linear systems, 1952.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.problem import dot

Operator = Callable[[FloatArray], FloatArray]


class Iterate:
    """Iterate x, its residual r = b - A x, and rho = r.M^-1 r: current, before the last product, and at x = 0."""

    def __init__(self, b: FloatArray) -> None:
        self.x, self.r = np.zeros_like(b), b.copy()
        self.rho = self.rho_before = self.rho_first = np.inf
        self.products = 0
        self.ended = False  # whether the stopping rule was met


def inner(a: FloatArray, b: FloatArray) -> float:
    """Return the (Frobenius) inner product, computed by one thread."""
    return dot(a, b) if a.ndim == 1 else dot(a.ravel(), b.ravel())


def solve(
    times: Operator,
    precondition: Operator,
    b: FloatArray,
    ends: Callable[[Iterate], bool],
    limit: int,
    project: Operator = lambda v: v,
    renew: Callable[[], bool] = lambda: False,
) -> Iterate:
    """Iterate from x = 0 until ``ends``, ``limit`` products, zero residual, or a direction without positive curvature.

    ``project`` removes rounding errors outside a subspace from residuals and directions. ``renew`` is called after
    every product and returns whether the preconditioner was replaced; the iteration then restarts from the current x.
    """
    at = Iterate(project(b))
    z = project(precondition(at.r))
    p, at.rho = z, inner(at.r, z)
    at.rho_first = at.rho_before = at.rho
    while at.products < limit:
        at.ended = ends(at)
        if at.ended or at.rho == 0.0:
            break
        if at.products and renew():
            p = project(precondition(at.r))
            at.rho = inner(at.r, p)
        elif at.products:
            p *= at.rho / at.rho_before
            p += z
        del z  # reduces peak memory during the product
        Ap = times(p)
        at.products += 1
        curvature = inner(p, Ap)
        if not curvature > 0.0:
            break
        step = at.rho / curvature
        at.x += step * p
        at.r = project(at.r - step * Ap)
        del Ap
        z = project(precondition(at.r))
        at.rho_before, at.rho = at.rho, inner(at.r, z)
    return at
