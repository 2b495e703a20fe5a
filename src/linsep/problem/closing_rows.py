"""Numpy implementation of the closing pass for one block of rows, given their margins.

It computes the scalar sums of a certificate and the signed dual masses. ``certificates/closing.py`` defines the sums
and bounds their rounding errors; kernels/sums/closing.hpp is the compiled implementation.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import Loss

#: Unit roundoff of float64.
ROUNDOFF = 2.0**-53
#: Added per row to the sums that bound rounding errors, to cover underflow; smaller dual variables are set to 0.
TINY = 2.0**-960
#: Added to the norm of a row, to cover underflow of its squares.
TINY_NORM = 2.0**-500


def score_share(d: int) -> float:
    """Bound on the rounding error of a margin, relative to q = |x|.|w| + |b| + |offset|."""
    return (d + 16) * ROUNDOFF


def margin_error(d: int, reach: FloatArray, offset: FloatArray) -> FloatArray:
    """Bound on the rounding error of a margin, where reach = |x|.|w| + |b|; underflow is covered."""
    return np.asarray(score_share(d) * (reach + np.abs(offset) + TINY))


def steepest_slope(loss: Loss, m: FloatArray, e: FloatArray) -> FloatArray:
    """Largest |l'| on [m - e, m + e], attained at an end because l is convex; inf where e is not finite.

    The ends are rounded outwards: 1 - 1e-17 is on the steep side of a kink at 1, although m - e rounds to 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.nextafter(m - e, -np.inf), np.nextafter(m + e, np.inf)
        steep = np.maximum(np.abs(loss.slope(low)), np.abs(loss.slope(high)))
    return np.where(np.isnan(steep), np.inf, steep)


def feasible(loss: Loss, u: FloatArray, m: FloatArray, s: FloatArray) -> FloatArray:
    """Replace infeasible dual variables, so that all lie in the domain of the conjugate.

    A proposed value that is outside the domain or not finite is replaced by minus the slope at the margin ``m``, or
    by 0 where that has no finite conjugate either. Values where u or s u may underflow are set to 0.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        for substitute in (-loss.slope(m), np.zeros_like(m)):
            u = np.where(np.isfinite(u) & np.isfinite(loss.conjugate(-u)), u, substitute)
        return np.where((np.abs(u) < TINY) | (np.abs(u) * s < TINY), 0.0, u)


def close_rows(
    loss: Loss,
    vectors: tuple[FloatArray, FloatArray, FloatArray],
    m: FloatArray,
    u: FloatArray,
    sizes: tuple[FloatArray, FloatArray],
    d: int,
) -> tuple[FloatArray, FloatArray]:
    """Return [loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread] and the masses s sigma u of the rows.

    ``vectors`` = (weights, signs, offsets); ``sizes`` = (|x|.|w| + |b|, |x|) for each row; ``u`` must be feasible.
    """
    s, sign, offset = vectors
    live = s > 0.0  # rows of weight 0 contribute nothing, even if their loss overflows
    with np.errstate(over="ignore", invalid="ignore"):
        q = sizes[0] + np.abs(offset) + TINY
        steep = np.maximum(np.abs(u), steepest_slope(loss, m, score_share(d) * q))
        value = np.where(live, s * loss.value(m), 0.0)
        conj, shift, mass = s * loss.conjugate(-u), s * (u * offset), s * sign * u
        plus = mass >= 0.0
        terms = conj + shift
        header = [
            value.sum(),
            terms[plus].sum(),
            terms[~plus].sum(),
            mass[plus].sum(),
            -mass[~plus].sum(),
            np.where(live, s * steep * q, 0.0).sum(),
            (value + np.abs(conj) + np.abs(shift) + TINY * (s + 1.0)).sum(),
            (np.where(live, np.abs(mass) * (sizes[1] + TINY_NORM), 0.0) + TINY).sum(),
        ]
    return np.array(header), mass
