"""The norm of the local certificate, in which the Hessian is close to the identity.

A norm |.|_M is given by a square matrix T with |T y|_M = |y|, so that M^-1 = T T'. Any T is valid: it is computed by
Cholesky or QR, and its quality is established afterwards, as a lower bound on the smallest eigenvalue of T'HT for the
true matrix H. Nothing is assumed about the accuracy of the factorisations.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import scipy.linalg

from linsep.arrays import FloatArray, IntArray
from linsep.interrupts import dense_product, lapack
from linsep.problem.closing_rows import ROUNDOFF

#: Radii to try, in units of mu.
_RADII = (4.0, 16.0, 64.0)
#: If T'HT is this close to the identity, the distance alone bounds its smallest eigenvalue.
_CLOSE = 0.25
#: Smallest curvature of a row, and of a column, for which sums of products do not underflow: for all larger h and H_jj,
#: the smallest subnormal number times |x| <= sqrt(H_jj / h) is below the rounding error of H_jj.
TINY = 1e-200
#: Factor that covers the few roundings of sums and square roots of quantities that are themselves bounds.
ROUNDING_FACTOR = 1.0 + 1e-9


@dataclass(frozen=True, eq=False)
class Metric:
    """A norm on the unknowns ``columns``; the others are held fixed.

    ``T`` has a row for each unknown (0 for fixed ones). ``floor`` is a proven lower bound on the smallest eigenvalue of
    T'HT. ``by_gram`` says whether the inner products of the columns were accurate enough to prove it.
    """

    T: FloatArray
    columns: IntArray
    floor: float
    by_gram: bool

    @property
    def full(self) -> bool:
        """Whether no unknown is held fixed."""
        return len(self.columns) == len(self.T)

    def dual_norm(self, g: FloatArray, slack: FloatArray) -> float:
        """|g|_{M^-1} on ``columns``, including errors of g up to ``slack`` and the rounding of T'g."""
        if not (np.isfinite(g).all() and np.isfinite(slack).all()):
            return math.inf
        exact = self.T.T @ g
        error = np.abs(self.T).T @ (slack + (len(g) + 4) * ROUNDOFF * np.abs(g))
        return (math.sqrt(float(exact @ exact)) + math.sqrt(float(error @ error))) * ROUNDING_FACTOR

    @property
    def row_norms(self) -> FloatArray:
        """Euclidean norms t_j of the rows of T: T'x has length at most sum_j |x_j| t_j."""
        return np.asarray(np.sqrt(np.einsum("ij,ij->i", self.T, self.T)))


def solve_scaled(H: FloatArray, g: FloatArray) -> FloatArray:
    """H^-1 g of least norm, after the diagonal of H is made 1."""
    units = np.sqrt(np.diagonal(H))
    units = np.where(units > 0.0, units, 1.0)
    if not (np.isfinite(H).all() and np.isfinite(g).all()):
        return np.full(len(g), math.nan)
    found = lapack(np.linalg.lstsq, H / units / units[:, None], g / units, rcond=None)[0]
    return np.asarray(found / units)


def inverse_root(H: FloatArray) -> FloatArray | None:
    """T with T'HT close to the identity, by Cholesky of H scaled to unit diagonal; None if H is not definite."""
    diagonal = np.diagonal(H)
    if not (np.isfinite(H).all() and (diagonal > 0.0).all()):
        return None
    scale = np.sqrt(diagonal)
    try:
        L = lapack(np.linalg.cholesky, H / np.outer(scale, scale))
    except np.linalg.LinAlgError:
        return None
    return _inverse_triangle(np.ascontiguousarray(L.T), scale)


def inverse_factor(R: FloatArray) -> FloatArray | None:
    """T = R^-1 of a triangular R with columns scaled to length 1; None if R is singular to working precision."""
    if len(R) < R.shape[1] or not np.isfinite(R).all():
        return None
    if len(R) > R.shape[1]:
        R = np.asarray(lapack(np.linalg.qr, R, mode="r"))
    scale = np.sqrt((R * R).sum(axis=0))
    if not (scale > 0.0).all():
        return None
    return _inverse_triangle(R / scale, scale)


def _inverse_triangle(R: FloatArray, scale: FloatArray) -> FloatArray | None:
    if np.abs(np.diagonal(R)).min(initial=1.0) < ROUNDOFF:
        return None
    T = lapack(scipy.linalg.solve_triangular, R, np.eye(len(R)), check_finite=False)
    return np.asarray(T / scale[:, None]) if np.isfinite(T).all() else None


def gram_loss(T: FloatArray, H: FloatArray, chain: float) -> float:
    """Bound on |fl(T' H^ T) - T'HT| in the spectral norm, where H^ is H summed with relative error ``chain``.

    By the Cauchy-Schwarz inequality an entry of H^ errs by at most chain s_j s_k, s_j^2 = H_jj, and each of the two
    products by at most p u |T|' |H^| |T|. With |H^_jk| <= s_j s_k all of these are multiples of vv', v = |T|'s, whose
    norm is |v|^2. The factor 1.01 covers the rounding of s and second-order terms, as long as chain < 1e-3.
    """
    if not chain < 1e-3:
        return math.inf
    v = np.abs(T).T @ np.sqrt(np.diagonal(H))
    return 1.01 * (chain + (2 * len(T) + 8) * ROUNDOFF) * float(v @ v)


def smallest_eigenvalue(G: FloatArray, lost: float) -> float:
    """Lower bound >= 0 on the smallest eigenvalue of a matrix within ``lost`` of G in the spectral norm.

    Close to the identity it is 1 minus the Frobenius distance. Otherwise the eigenvalue computed by LAPACK is verified:
    if the Cholesky factorisation of G - c I completes, then G - c I >= -gamma trace(G), gamma = (p + 2) u plus
    second-order terms (Rump, Verification of positive definiteness, BIT 46, 2006).
    """
    if not (np.isfinite(G).all() and math.isfinite(lost)):
        return 0.0
    size = len(G)
    G = 0.5 * (G + G.T)
    identity = np.eye(size)
    away = float(np.linalg.norm(G - identity)) * ROUNDING_FACTOR + 4 * ROUNDOFF * size
    if away + lost <= _CLOSE:
        return 1.0 - away - lost
    margin = 4.0 * (size + 2) * ROUNDOFF * float(np.abs(np.diagonal(G)).sum())
    candidate = 0.95 * float(lapack(np.linalg.eigvalsh, G).min(initial=1.0)) - 2.0 * margin
    if not candidate > lost:
        return 0.0
    try:
        lapack(np.linalg.cholesky, G - (candidate + margin) * identity)
    except np.linalg.LinAlgError:
        return 0.0
    return candidate - lost


def proven_root(H: FloatArray, chain: float) -> tuple[FloatArray, float] | None:
    """T with T'HT close to the identity, and a lower bound > 0 on the smallest eigenvalue of T'HT; None if not proven.

    The entries of H are sums with relative error ``chain``, as in ``gram_loss``.
    """
    T = inverse_root(H) if np.diagonal(H).min(initial=1.0) > TINY else None
    if T is None:
        return None
    floor = smallest_eigenvalue(dense_product(T.T, dense_product(H, T)), gram_loss(T, H, chain))
    return (T, floor) if floor > 0.0 else None


def bound(mu: float, kappa_at: Callable[[float], float]) -> tuple[float, float] | None:
    """(mu^2 / (2 kappa), kappa) for the first radius rho at which 2 mu / kappa(rho) <= rho."""
    for multiple in _RADII:
        kappa = kappa_at(multiple * mu)
        if kappa * multiple >= 2.0:
            return 0.5 * mu * mu / kappa, kappa
    return None
