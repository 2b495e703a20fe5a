"""The closing pass of some rows in numpy, given their margins: the header of a certificate's sums, and the masses.

``certificates/closing.py`` says what the sums are for and derives the bounds on their rounding errors;
kernels/sums/closing.hpp is the compiled text.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import Loss

#: Unit roundoff of float64.
ROUNDOFF = 2.0**-53
#: What every row adds to the sums that bound rounding, against underflow; smaller dual variables are set to 0.
TINY = 2.0**-960
#: What is added to the norm of a row, whose squares may underflow.
TINY_NORM = 2.0**-500


def score_share(d: int) -> float:
    """Rounding error of a margin as a share of q = |x|.|w| + |b| + |offset|."""
    return (d + 16) * ROUNDOFF


def margin_error(d: int, reach: FloatArray, offset: FloatArray) -> FloatArray:
    """Bound on the rounding error of a margin, with reach = |x|.|w| + |b|; underflow included."""
    return np.asarray(score_share(d) * (reach + np.abs(offset) + TINY))


def steepest_slope(loss: Loss, m: FloatArray, e: FloatArray) -> FloatArray:
    """Largest |l'| on [m - e, m + e]: at one of the ends, as the loss is convex; inf where e is not finite.

    The ends are rounded outwards: 1 - 1e-17 is on the steep side of a kink at 1, though m - e is rounded to 1.
    """
    with np.errstate(over="ignore", invalid="ignore"):
        low, high = np.nextafter(m - e, -np.inf), np.nextafter(m + e, np.inf)
        steep = np.maximum(np.abs(loss.slope(low)), np.abs(loss.slope(high)))
    return np.where(np.isnan(steep), np.inf, steep)


def feasible(loss: Loss, u: FloatArray, m: FloatArray, s: FloatArray) -> FloatArray:
    """Dual variables inside the domain of the conjugate.

    Where the proposed one is outside or not finite, the slope at the margin ``m`` takes its place, and 0 where even
    that has no finite conjugate, or where u or s u may underflow.
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
    """[loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread], and the masses s sigma u of the rows.

    ``vectors`` are weights, signs and offsets, ``sizes`` |x|.|w| + |b| and the norms |x| of the rows; u is feasible.
    """
    s, sign, offset = vectors
    live = s > 0.0  # a row of weight 0 is not there, however large its loss
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
