"""The local certificate of a loss of constant curvature, by one Cholesky factorisation.

The objective is quadratic, P(theta + delta) = P(theta) + g.delta + delta'H delta/2 with H = lam I_w + sum h x~ x~',
and P(theta) - P* = |g|^2/2 in the norm of H^-1. Let E be a diagonal of powers of two that scales the diagonal of
K = E H E to [1/2, 2]. If the Cholesky factorisation of K - (kappa + c) I, computed with an error of at most c,
completes, then

    K >= LL' + kappa I      for the computed L (Rump, Verification of positive definiteness, BIT 46, 2006).

So with the solution z of L z = E g, and for g = g_0 + e_1 + e_2 with the errors e_1 = sum_i eta_i x~_i of the slopes
and e_2 of summation, in the norm of H^-1

    |g| <= |z| + |E g - L z|/sqrt(kappa) + |eta/sqrt(h)| + |E e_2|/sqrt(kappa).

The third term holds because sqrt(h) x~ H^-1 x~' sqrt(h) is bounded by a projection. The proof for general curvature
(``certificate``) needs the distances of all rows, n d^2 operations, and an eigenvalue. Here H is formed and factorised
once.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.linalg

from linsep.arrays import FloatArray
from linsep.certificates.curvature.metric import ROUNDING_FACTOR, TINY
from linsep.certificates.curvature.rows import Evaluation, Rows
from linsep.interrupts import lapack
from linsep.problem.closing_rows import ROUNDOFF

#: Lower bounds on the eigenvalues of K to try.
_FLOORS = (1e-3, 1e-6)


def parabola_drop(part: Rows, at: Evaluation, h: FloatArray) -> tuple[float, float] | None:
    """Bound on P - P*, and c in |w - w*| <= c sqrt(P - P*); None if H is not proven positive definite.

    ``h`` holds the curvatures s l'' of the rows, which do not depend on theta.
    """
    live = h > 0.0
    if not np.array_equal(live, part.weight > 0.0):  # some curvature would underflow in products
        return None
    K, d = part.gram(h), part.X.shape[1]
    diagonal = K.diagonal()
    if not (np.isfinite(diagonal).all() and diagonal.min(initial=1.0) > TINY):
        return None
    E = np.ldexp(1.0, -np.rint(0.5 * np.log2(diagonal)).astype(int))
    K *= E
    K *= E[:, None]
    trace = float(K.trace())
    lost = ROUNDING_FACTOR * 1.01 * (part.chain + 4.0 * (part.size + 4) * ROUNDOFF) * trace
    found = _definite(K, lost) if part.chain < 1e-3 else None
    if found is None:
        return None
    L, kappa = found
    y, root = E * at.g, math.sqrt(kappa)
    z = scipy.linalg.solve_triangular(L, y, lower=True, check_finite=False)
    length = math.sqrt(float(z @ z))
    left = 2.0 * (part.size + 4) * ROUNDOFF * math.sqrt(1.01 * trace) * length
    added = math.sqrt(float(np.square(E * at.sum_error).sum()))
    slopes = math.sqrt(float(np.square(at.slope_error[live] / np.sqrt(h[live])).sum()))
    mu = (length + (left + added) / root + slopes) * (ROUNDING_FACTOR + len(h) * ROUNDOFF)
    if not math.isfinite(mu):
        return None
    return 0.5 * mu * mu * ROUNDING_FACTOR, float(E[:d].max(initial=0.0)) * math.sqrt(
        2.0 / kappa
    ) * ROUNDING_FACTOR


def _definite(K: FloatArray, lost: float) -> tuple[FloatArray, float] | None:
    """L and kappa with K >= LL' + kappa I, where ``lost`` bounds the errors of K and its factor; K is overwritten."""
    diagonal = K.diagonal().copy()
    for lower, kappa in zip((1, 0), _FLOORS, strict=True):  # each overwrites one triangle of K
        if not lost <= kappa:
            return None
        np.fill_diagonal(K, diagonal - (kappa + lost))
        factor, failed = lapack(
            scipy.linalg.lapack.dpotrf, K.T, lower=lower, overwrite_a=1, clean=0
        )
        if not failed:
            return (factor if lower else factor.T), kappa
    return None
