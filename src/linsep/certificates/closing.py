"""The certificate by duality: primal value, lower bound and rounding bound from the sums of one pass.

``problem.duality`` states the problem, its dual, and how a feasible point follows from the sums per side. This module
bounds the rounding errors of the two values.

Rounding. The dual point is by definition the computed u, so u carries no error; u below 2^-960 are set to 0.
With the unit roundoff eps = 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1):

* **Margins.** A score is a sum of d + 1 products, or at the end of a step the sum of two such. Its error is at most
  e_i = (d + 16) eps q_i with q_i = |x_i|.|w| + |b| + |offset_i|. The loss of the row then errs by at most e_i times the
  steepest slope within e_i of the margin, *not* by e_i |u_i|: a row on a kink may have any u. In all (d + 16) eps Q,
  Q = ``magnitude`` = sum s max(|u|, steepest slope) q.
* **Adding up.** (rows + 40) eps times the sum of the absolute values of the terms, ``absolute``, for the longest chain
  of ``rows`` additions; the 40 covers the operations that compute a term, among them exp and log to 6 ulp.
* **v** errs by a vector e_v with |e_v| <= (rows + 40) eps ``spread``, spread = sum s |u_i| |x_i|, and with
  |w|.|e_v| <= (rows + 40) eps Q. D changes by at most |at|.|e_v| + |e_v|^2/(2 lam), where ``at`` = v/lam is the
  minimiser implied by the dual point. As at = w + (at - w), the first part is at most the smaller of |at| |e_v|
  and (rows + 40) eps Q + |at - w| |e_v|.
* **Balance.** The masses have relative error (rows + 40) eps, so after balancing they differ by a relative amount of at
  most 2 (rows + 41) eps. Shrinking one side by that amount restores the balance, and changes D by it times
  |A| + |v_side.at|; v changes by the same fraction of v_side, which adds to e_v in the square. As the side is unknown,
  the larger of the two costs is used.
* **Penalties.** (d + 16) eps of lam/2 |w|^2, l1 |w|_1 and their conjugates; lam itself is the rounded 1/C.
* **Underflow** changes a product by at most 2^-1074. Every row adds 2^-960 (and as much times its weight) to the sums
  that bound rounding, which times eps exceeds what it can lose; the squares of w and v lose at most
  2^-1070 d (lam + 1/lam).
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.certificates.optimality import Optimality, enclose
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import ROUNDOFF, score_share
from linsep.problem.duality import ClosingSums, DualValue, dot, dual_value, penalty_value

#: Bound on the underflow error of the squares of one weight, for a ridge of 1.
SQUARE_UNDERFLOW = 2.0**-1070


@dataclass(frozen=True, eq=False)
class BoundedSums:
    """Sums of the closing pass per side, with bounds on their errors.

    ``terms_error`` bounds the errors of loss and conj together, ``v_error`` the Euclidean norm of the error of
    v = v+ + v-, ``v_error_entry`` its largest entry, ``v_error_along`` its product with |w|; ``mass_share`` is the
    relative error of a mass.
    """

    loss: float
    conj: tuple[float, float]
    mass: tuple[float, float]
    v: tuple[FloatArray, FloatArray]
    terms_error: float
    v_error: float
    v_error_along: float
    v_error_entry: float
    mass_share: float

    @classmethod
    def of(cls, sums: ClosingSums, rows_per_sum: float) -> BoundedSums:
        """Sums with bounds on their errors, for chains of ``rows_per_sum`` additions."""
        chain = (rows_per_sum + 40) * ROUNDOFF
        terms = score_share(len(sums.v_plus)) * sums.magnitude + chain * sums.absolute
        return cls(
            loss=sums.loss,
            conj=sums.conj,
            mass=sums.mass,
            v=sums.v,
            terms_error=terms,
            v_error=chain * sums.spread,
            v_error_along=chain * sums.magnitude,
            v_error_entry=chain * min(sums.spread, sums.entry),
            mass_share=chain,
        )


def from_sums(
    sums: ClosingSums | BoundedSums,
    w: FloatArray,
    penalty: ElasticNet,
    *,
    fit_intercept: bool,
    tol: float,
    rows_per_sum: float = 0.0,
) -> Optimality:
    """Assemble the certificate of the coefficients ``w`` (d,), without the intercept.

    ``rows_per_sum`` is the length of the longest chain of additions in the pass, if the errors of the sums are not
    known. Without a penalty a dual point is feasible only if v is exactly 0, which rounded sums cannot establish: the
    bound is then 0, and the local certificate should be used instead.
    """
    if isinstance(sums, ClosingSums):
        sums = BoundedSums.of(sums, rows_per_sum)
    lam, l1 = penalty.l2, penalty.l1
    with np.errstate(over="ignore", invalid="ignore"):  # ``enclose`` rejects what overflows
        found = _values(sums, w, lam=lam, l1=l1, fit_intercept=fit_intercept)
    distance = math.sqrt(2.0 / lam) if lam > 0.0 else math.inf
    return enclose(*found, scale=penalty.scale, tol=tol, distance=distance, kind="dual")


def ridge_certificate(
    sums: FloatArray,
    theta: FloatArray,
    penalty: ElasticNet,
    fit_intercept: bool,
    tol: float,
    rows_per_sum: float,
) -> Optimality:
    """Certificate for a pure ridge penalty from flat sums, by native code (kernels/sums/enclosure.hpp)."""
    lam = penalty.l2
    return enclose(
        *_kernels.enclose(sums, theta, lam, fit_intercept, rows_per_sum),
        scale=penalty.scale,
        tol=tol,
        distance=math.sqrt(2.0 / lam),
        kind="dual",
    )


def _values(
    sums: BoundedSums, w: FloatArray, *, lam: float, l1: float, fit_intercept: bool
) -> tuple[float, float, float]:
    """P, its lower bound, and a bound on the rounding errors of both."""
    d, penalty = len(w), penalty_value(w, lam, l1)
    dual = dual_value(sums.conj, sums.mass, sums.v, lam=lam, l1=l1, fit_intercept=fit_intercept)
    rounding = sums.terms_error + score_share(d) * penalty + SQUARE_UNDERFLOW * (d * lam + 1.0)
    if dual.minimiser is not None:
        rounding += _error_with_ridge(sums, w, dual, dual.minimiser, lam, l1, fit_intercept)
    elif l1 > 0.0:
        rounding += _error_without_ridge(sums, dual, l1, fit_intercept)
    return sums.loss + penalty, dual.value, rounding * (1.0 + 2.0**-10)


def _error_with_ridge(
    sums: BoundedSums,
    w: FloatArray,
    dual: DualValue,
    at: FloatArray,
    lam: float,
    l1: float,
    fit_intercept: bool,
) -> float:
    """Rounding error of the dual value for lam > 0, beyond that of its terms."""
    d, off = len(w), at - w
    along = sums.v_error_along + sums.v_error * math.sqrt(dot(off, off))
    del off  # free the memory early
    conjugate = 0.5 * lam * dot(at, at) + (l1 * float(np.abs(at).sum()) if l1 else 0.0)
    error = min(sums.v_error * math.sqrt(dot(at, at)), along)
    error += score_share(d) * conjugate + SQUARE_UNDERFLOW * d / lam
    moved = sums.v_error
    if fit_intercept:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        costs = [
            share * (abs(a) + abs(dot(side, at))) for a, side in zip(dual.conj, dual.v, strict=True)
        ]
        error += math.nan if any(map(math.isnan, costs)) else max(costs)
        moved += share * math.sqrt(max(dot(side, side) for side in dual.v))
    return error + 0.5 * moved * moved / lam


def _error_without_ridge(
    sums: BoundedSums, dual: DualValue, l1: float, fit_intercept: bool
) -> float:
    """Rounding error of the dual value for lam = 0, beyond that of its terms.

    |v_j| <= l1 must hold for all j, but v is rounded, and changes again when the balance is restored.
    """
    conj = dual.conj[0] + dual.conj[1]
    largest = float(np.abs(dual.v[0] + dual.v[1]).max(initial=0.0))
    v_error, error = sums.v_error_entry + 4.0 * ROUNDOFF * largest, 0.0
    if fit_intercept:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        longest = max(float(np.abs(side).max(initial=0.0)) for side in dual.v)
        v_error += share * (longest + v_error)
        error = share * max(abs(a) for a in dual.conj)
    surely = l1 / max(largest + v_error, l1)
    return error + (dual.shrink - surely) * abs(conj) + 8.0 * ROUNDOFF * abs(conj)
