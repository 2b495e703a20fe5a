"""Certificates from inner products only, for coefficients in the span of the rows.

With K = X X' (rows relative to any centre), a model is w = X'a and b; a dual point is p = s sigma u with sum p = 0::

    P(a, b) = lam/2 a'K a + sum s l(sigma (K a + b) + offset)
    D(u)    = -sum s (l*(-u) + u offset) - p'K p / (2 lam)

No row is read: a grid of models that share the rows is certified by products with one matrix. The certificate holds for
the rows, not for the computed K: each entry of K has an error of at most a small multiple of |x_i| |x_j|, by the
Cauchy-Schwarz inequality in any order of summation, and the rounding bound covers it.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import BoolArray, FloatArray
from linsep.certificates.optimality import Optimality, enclose
from linsep.losses import Loss
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import ROUNDOFF
from linsep.problem.duality import balance, ridge_values
from linsep.problem.gram import GramRows


@dataclass(frozen=True, eq=False)
class Spanned:
    """A certified model w = X'a and its intercept b, relative to the centre of the rows."""

    a: FloatArray
    b: float
    certificate: Optimality


def from_gram(
    loss: Loss,
    rows: GramRows,
    u: FloatArray,
    b: float,
    *,
    penalty: ElasticNet,
    fit_intercept: bool,
    tol: float,
    longer: float = 0.0,
) -> Spanned:
    """Return the model implied by the dual point ``u``, a = s sigma u / lam, with its certificate.

    A u outside the domain of the conjugate is replaced by 0; the u of the heavier side are shrunk. A hinge-loss model
    is stretched by the fraction ``longer``, and by at least the rounding error of the margins, so that rows on the kink
    have exactly zero loss, however large C is.
    """
    lam = penalty.l2
    with np.errstate(over="ignore", invalid="ignore"):  # ``enclose`` rejects what overflows
        p, side, share = _feasible(loss, rows, u, fit_intercept)
        a, stretch = p / lam, 1.0
        Ka = rows.K @ a
        if not loss.smooth and loss.domain[0] == 0.0:
            stretch += max(longer, 2.0 * float(_errors(rows, a, b, Ka).max(initial=0.0)))
            a, b, Ka = stretch * a, stretch * b, stretch * Ka
        model = a, b, Ka
        primal, bound, rounding = _values(loss, rows, model, side, share, lam, stretch)
    distance = math.sqrt(2.0 / lam)
    proof = enclose(
        primal, bound, rounding, scale=penalty.scale, tol=tol, distance=distance, kind="dual"
    )
    return Spanned(a, b, proof)


def _errors(rows: GramRows, a: FloatArray, b: float, Ka: FloatArray) -> FloatArray:
    """Bounds on the rounding errors of the margins.

    With r_i = |x_i| and R = sum |a_i| r_i, a product with K has an error of at most e r_i R, e = (d + n + 32) u, from
    its entries and from the product. The same again covers rounding w = X'a to float64, together with an intercept that
    undoes the centring.
    """
    e, r = _share(rows), np.sqrt(np.maximum(np.diag(rows.K), 0.0))
    R = float(np.abs(a) @ r)
    length = math.sqrt(max(0.0, float(a @ Ka)) + e * R * R)
    offset = 0.0 if rows.offset is None else np.abs(rows.offset)
    return np.asarray(2.0 * e * (r * R + abs(b) + rows.centre_norm * length + offset))


def _share(rows: GramRows) -> float:
    return 1.01 * (rows.d + len(rows.K) + 32) * ROUNDOFF


def _feasible(
    loss: Loss, rows: GramRows, u: FloatArray, fit_intercept: bool
) -> tuple[FloatArray, BoolArray, FloatArray]:
    """Return balanced masses p = s sigma u, a mask of those on the plus side, and s (l*(-u) + u offset)."""
    s = np.ones(len(u)) if rows.weight is None else rows.weight
    u = np.where(np.isfinite(u) & np.isfinite(loss.conjugate(-u)), u, 0.0)
    plus = rows.sigma * u >= 0.0
    if fit_intercept:
        mass = s * np.abs(u)
        k_plus, k_minus = balance(float(mass[plus].sum()), float(mass[~plus].sum()))
        u = u * np.where(plus, k_plus, k_minus)
    share = s * loss.conjugate(-u)
    if rows.offset is not None:
        share = share + s * u * rows.offset
    return s * rows.sigma * u, plus, share


def _values(
    loss: Loss,
    rows: GramRows,
    model: tuple[FloatArray, float, FloatArray],
    plus: BoolArray,
    share: FloatArray,
    lam: float,
    stretch: float,
) -> tuple[float, float, float]:
    """P, its lower bound, and a bound on the rounding errors of both.

    The masses p = lam a / stretch are balanced up to a relative error; the cost of removing it is bounded as under
    "Balance" in ``closing``.
    """
    a, b, Ka = model
    n = len(a)
    e, chain = _share(rows), (n + 16) * ROUNDOFF
    R = float(np.abs(a) @ np.sqrt(np.maximum(np.diag(rows.K), 0.0)))
    square = max(0.0, float(a @ Ka))
    s = np.ones(n) if rows.weight is None else rows.weight
    m = rows.sigma * (Ka + b) + (0.0 if rows.offset is None else rows.offset)
    errs = _errors(rows, a, b, Ka)
    steep = np.maximum(np.abs(loss.slope(m - errs)), np.abs(loss.slope(m + errs)))
    live = s > 0.0
    value = np.where(live, s * loss.value(m), 0.0)
    primal, bound = ridge_values(
        float(value.sum()), float(share.sum()), square, square / stretch**2, lam
    )
    rounding = float(np.where(live, s * steep * errs, 0.0).sum())
    rounding += chain * float(value.sum() + np.abs(share).sum()) + 2.0 * lam * e * R * R
    off, far = 2.0 * chain, lam * np.abs(a * Ka)
    largest_cost = max(
        off * float(np.abs(share[side]).sum() + far[side].sum()) for side in (plus, ~plus)
    )
    return primal, bound, rounding + largest_cost + 0.5 * lam * off * off * R * R
