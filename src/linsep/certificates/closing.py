"""From the sums of one closing pass over the data to a certificate, rounding included.

Problem and dual, with lam = l2 and v = sum s sigma u x::

    P(w, b) = lam/2 |w|^2 + l1 |w|_1 + sum_i s_i l(m_i)
    D(u)    = -sum_i s_i (l*(-u_i) + u_i offset_i) - sum_j max(|v_j| - l1, 0)^2 / (2 lam)

D bounds every P from below if ``sum s sigma u = 0`` (free intercept) and every u lies in the domain of
the conjugate. The intercept's condition is met by shrinking: rows are split by the sign of sigma u
into sides of mass T+ and T-, and the u of the heavier side are multiplied by
kappa = lighter/heavier <= 1. As l* is convex with l*(0) = 0, l*(-kappa u) <= kappa l*(-u), so

    D >= -kappa+ A+ - kappa- A- - penalty*(kappa+ v+ + kappa- v-),    A = sum s (l*(-u) + u offset)

needs nothing but sums per side: one pass.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.certificates.optimality import Optimality, enclose
from linsep.penalties import ElasticNet
from linsep.problem import dot

FloatArray = npt.NDArray[np.float64]

#: Unit roundoff of float64.
ROUNDOFF = 2.0**-53
#: Numbers before v+ in the flat layout.
HEADER = 8


@dataclass(frozen=True, eq=False)
class ClosingSums:
    """Sums of the closing pass over the rows; plus and minus are the sign of sigma_i u_i.

    ``magnitude`` is sum s |u| (|x|.|w| + |b|), at the end of a step dw from w0 with |w0| + |dw| in the place of |w|;
    ``absolute`` the sum of the absolute values of all loss and conjugate terms, ``spread`` a bound on sum s |u| |x_j|
    for every j (0 if it is not known, see :func:`allowance`). They only serve to bound rounding errors.
    """

    loss: float
    conj_plus: float
    conj_minus: float
    mass_plus: float
    mass_minus: float
    magnitude: float
    absolute: float
    v_plus: FloatArray
    v_minus: FloatArray
    spread: float = 0.0

    @classmethod
    def from_flat(cls, vec: FloatArray, d: int) -> ClosingSums:
        """Read [loss, conj+, conj-, mass+, mass-, magnitude, absolute, spare, v+ (d), v- (d)]."""
        head: tuple[float, float, float, float, float, float, float]
        head = tuple(vec[: HEADER - 1].tolist())
        return cls(*head, vec[HEADER : HEADER + d], vec[HEADER + d : HEADER + 2 * d])


def balance(mass_plus: float, mass_minus: float) -> tuple[float, float]:
    """The two factors <= 1 that give both sides the same mass."""
    if mass_plus > mass_minus:
        return mass_minus / mass_plus, 1.0
    if mass_minus > mass_plus:
        return 1.0, mass_plus / mass_minus
    return 1.0, 1.0


def shrinkage(conj: float, v: FloatArray, lam: float) -> float:
    """The factor kappa <= 1 on all u that gives the best bound -kappa conj - kappa^2 |v|^2/(2 lam).

    It is 1 near the optimum. Far from it, where the slopes of the losses make a dual point that is too
    long, it leaves a bound that says something.
    """
    square = dot(v, v)
    return min(1.0, max(0.0, -conj * lam / square)) if square > 0.0 and conj < 0.0 else 1.0


def from_sums(
    sums: ClosingSums,
    w: FloatArray,
    *,
    lam: float,
    l1: float = 0.0,
    fit_intercept: bool,
    scale: float,
    tol: float,
    rows_per_sum: float,
) -> Optimality:
    """Assemble the certificate of the coefficients ``w`` (d,), without the intercept.

    ``rows_per_sum`` is the length of the longest chain of additions in the pass; ``scale`` turns internal
    into reported units. With lam = l1 = 0 a dual point is feasible only if v is exactly 0, which
    rounding forbids to claim: the bound is then 0, and the local certificate is the one to use.
    """
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by ``enclose``
        primal, bound, rounding = _values(
            sums, w, lam=lam, l1=l1, fit_intercept=fit_intercept, rows_per_sum=rows_per_sum
        )
    distance = math.sqrt(2.0 / lam) if lam > 0.0 else math.inf
    return enclose(primal, bound, rounding, scale=scale, tol=tol, distance=distance, kind="dual")


def ridge_certificate(
    sums: FloatArray,
    theta: FloatArray,
    penalty: ElasticNet,
    fit_intercept: bool,
    tol: float,
    rows_per_sum: float,
) -> Optimality:
    """``from_sums`` of flat sums without an absolute penalty, by its native text (kernels/enclosing.hpp)."""
    lam = penalty.l2
    return enclose(
        *_kernels.enclosed(sums, theta, lam, fit_intercept, rows_per_sum),
        scale=penalty.scale,
        tol=tol,
        distance=math.sqrt(2.0 / lam),
        kind="dual",
    )


def _values(
    sums: ClosingSums,
    w: FloatArray,
    *,
    lam: float,
    l1: float,
    fit_intercept: bool,
    rows_per_sum: float,
) -> tuple[float, float, float]:
    """P, its lower bound, and what rounding may have done to both."""
    k_plus, k_minus = balance(sums.mass_plus, sums.mass_minus) if fit_intercept else (1.0, 1.0)
    conj = k_plus * sums.conj_plus, k_minus * sums.conj_minus
    v_plus = sums.v_plus if k_plus == 1.0 else k_plus * sums.v_plus
    v_minus = sums.v_minus if k_minus == 1.0 else k_minus * sums.v_minus
    v = v_plus + v_minus
    norm_penalty = 0.5 * lam * dot(w, w) + (l1 * float(np.abs(w).sum()) if l1 else 0.0)
    primal = sums.loss + norm_penalty
    unsure = 0.0  # of the bound, because v is rounded
    if lam > 0.0:
        kappa = 1.0 if l1 else shrinkage(conj[0] + conj[1], v, lam)
        if kappa < 1.0:
            conj = kappa * conj[0], kappa * conj[1]
            v_plus, v_minus, v = kappa * v_plus, kappa * v_minus, kappa * v
        at = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0) / lam if l1 else v / lam
        dual_penalty = 0.5 * lam * dot(at, at)
        bound = -conj[0] - conj[1] - dual_penalty
    else:
        # |v_j| <= l1 is needed for all j: shrink all u alike, which keeps the intercept's balance. v is rounded, and
        # moves once more when ``repair`` shrinks one of the sides.
        largest = float(np.abs(v).max(initial=0.0))
        doubt = (rows_per_sum + 8) * ROUNDOFF * sums.spread
        if fit_intercept:
            longest = max(float(np.abs(side).max(initial=0.0)) for side in (v_plus, v_minus))
            doubt += 2.0 * (rows_per_sum + 9) * ROUNDOFF * (longest + doubt)
        shrink = l1 / max(largest, l1) if l1 > 0.0 else 0.0
        surely = l1 / max(largest + doubt, l1) if l1 > 0.0 else 0.0
        at, dual_penalty = w, 0.0
        bound = -shrink * (conj[0] + conj[1])
        unsure = (shrink - surely) * abs(conj[0] + conj[1])
    rounding = unsure + allowance(sums, w, at, lam=lam, rows_per_sum=rows_per_sum)
    rounding += (len(w) + 8) * ROUNDOFF * (norm_penalty + dual_penalty)
    if fit_intercept:
        rounding += repair(conj, (v_plus, v_minus), at, lam=lam, rows_per_sum=rows_per_sum)
    return primal, bound, rounding


def allowance(
    sums: ClosingSums, w: FloatArray, at: FloatArray, *, lam: float, rows_per_sum: float
) -> float:
    """Bound on the rounding errors of the sums, as they enter P - D.

    The dual point is by definition the u that were computed: it carries no error. What remains:

    * a score is a sum of d + 1 products, or at the end of a step the sum of two such, so it errs by at most
      (d + 6) u q_i with q_i = |x|.|w| + |b|, and the losses change by at most |slope| times that: (d + 6) u Q in all,
      Q = ``magnitude``;
    * adding up the terms: (rows + 8) u times the sum of their absolute values, where the 8 pays
      for the few operations that make a term;
    * v_j errs by e_j <= (rows + 8) u a_j, a_j = sum s |u| |x_ij|. D changes by |at_j| e_j with
      ``at`` = v/lam, the minimiser that the dual point believes in. As at = w + (at - w), the first
      part sums to (rows + 8) u Q; the second is at most (rows + 8) u |at - w|_1 ``spread``, as that bounds
      every a_j; it is of second order, since lam/2 |at - w|^2 is itself part of the gap.
    """
    score = (len(w) + 6) * ROUNDOFF
    chain = (rows_per_sum + 8) * ROUNDOFF
    total = score * sums.magnitude + chain * (sums.absolute + sums.magnitude)
    if sums.spread and lam > 0.0:
        off = at - w
        error = chain * sums.spread
        total += error * float(np.abs(off).sum()) + 0.5 * len(w) * error * error / lam
    return total


def repair(
    conj: tuple[float, float],
    v: tuple[FloatArray, FloatArray],
    at: FloatArray,
    *,
    lam: float,
    rows_per_sum: float,
) -> float:
    """Cost of making the intercept's condition hold exactly.

    The masses err by (rows + 8) u of themselves, so after balancing they still differ by a share
    of at most 2 (rows + 9) u. Shrinking one side by that share closes it; it changes D by the share
    times (A + v_side . at), plus the square of its effect on v. Which side is unknown: the dearer one.
    """
    share = 2.0 * (rows_per_sum + 9) * ROUNDOFF
    dearest = 0.0
    for a, side in zip(conj, v, strict=True):
        cost = share * (abs(a) + abs(dot(side, at)))
        if lam > 0.0:
            cost += 0.5 * share * share / lam * dot(side, side)
        if not cost <= dearest:  # NaN is the dearest of all
            dearest = cost
    return dearest
