"""The enclosure: from the sums of one pass over the data to a primal value, a lower bound and their rounding errors.

Problem and dual, with lam = l2 and v = sum s sigma u x::

    P(w, b) = lam/2 |w|^2 + l1 |w|_1 + sum_i s_i l(m_i)
    D(u)    = -sum_i s_i (l*(-u_i) + u_i offset_i) - sum_j max(|v_j| - l1, 0)^2 / (2 lam)

D bounds every P from below if ``sum s sigma u = 0`` (free intercept) and every u lies in the domain of
the conjugate. The intercept's condition is met by shrinking: rows are split by the sign of sigma u
into sides of mass T+ and T-, and the u of the heavier side are multiplied by
kappa = lighter/heavier <= 1. As l* is convex with l*(0) = 0, l*(-kappa u) <= kappa l*(-u), so

    D >= -kappa+ A+ - kappa- A- - penalty*(kappa+ v+ + kappa- v-),    A = sum s (l*(-u) + u offset)

needs nothing but sums per side: one pass.

Rounding. The dual point is by definition the u that were computed, so u carries no error; u below 2^-960 are set to 0.
With the unit roundoff eps = 2^-53 (Higham, Accuracy and Stability of Numerical Algorithms, section 3.1):

* **Margins.** A score is a sum of d + 1 products, or at the end of a step the sum of two such. It errs by at most
  e_i = (d + 16) eps q_i with q_i = |x_i|.|w| + |b| + |offset_i|. The loss of the row then errs by at most e_i times the
  steepest slope within e_i of the margin, *not* by e_i |u_i|: a row on a kink may have any u. In all (d + 16) eps Q,
  Q = ``magnitude`` = sum s max(|u|, steepest slope) q.
* **Adding up.** (rows + 40) eps times the sum of the absolute values of the terms, ``absolute``, for the longest chain
  of ``rows`` additions; the 40 pays for the operations that make a term, among them exp and log to 6 ulp.
* **v** errs by a vector e_v with |e_v| <= (rows + 40) eps ``spread``, spread = sum s |u_i| |x_i|, and with
  |w|.|e_v| <= (rows + 40) eps Q. D changes by at most |at|.|e_v| + |e_v|^2/(2 lam), where ``at`` = v/lam is the
  minimiser that the dual point believes in. As at = w + (at - w), the first part is at most the smaller of |at| |e_v|
  and (rows + 40) eps Q + |at - w| |e_v|.
* **Balance.** The masses err by a share (rows + 40) eps, so after balancing they differ by a share of at most
  2 (rows + 41) eps. Shrinking one side by that share closes it, and changes D by the share times |A| + |v_side.at|; v
  moves by the share of v_side, which adds to e_v in the square. Which side is unknown, so the larger of the two costs
  counts.
* **Penalties.** (d + 16) eps of lam/2 |w|^2, l1 |w|_1 and their conjugates; lam itself is the rounded 1/C.
* **Underflow** takes at most 2^-1074 from a product. Every row adds 2^-960 (and as much times its weight) to the sums
  that bound rounding, which times eps is more than it can lose; the squares of w and v lose at most
  2^-1070 d (lam + 1/lam).
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
from linsep.problem.closing_rows import ROUNDOFF, score_share

FloatArray = npt.NDArray[np.float64]

#: Bound on what underflow takes from the squares of one weight, for lam = 1.
_UNDERFLOW = 2.0**-1070
#: Numbers before v+ in the flat layout.
HEADER = 8


@dataclass(frozen=True, eq=False)
class ClosingSums:
    """Sums of the closing pass over the rows; plus and minus are the sign of sigma_i u_i.

    ``magnitude``, ``absolute`` and ``spread`` only serve to bound rounding errors (see above). ``entry`` bounds
    sum s |u| |x_j| for every j, where something sharper than ``spread`` is known.
    """

    loss: float
    conj_plus: float
    conj_minus: float
    mass_plus: float
    mass_minus: float
    magnitude: float
    absolute: float
    spread: float
    v_plus: FloatArray
    v_minus: FloatArray
    entry: float = math.inf

    @classmethod
    def from_flat(cls, vec: FloatArray, d: int) -> ClosingSums:
        """Read [loss, conj+, conj-, mass+, mass-, magnitude, absolute, spread, v+ (d), v- (d)]."""
        head: tuple[float, float, float, float, float, float, float, float]
        head = tuple(vec[:HEADER].tolist())
        return cls(*head, vec[HEADER : HEADER + d], vec[HEADER + d : HEADER + 2 * d])

    def bounded(self, rows_per_sum: float) -> BoundedSums:
        """The sums with bounds on their errors, for chains of ``rows_per_sum`` additions."""
        chain = (rows_per_sum + 40) * ROUNDOFF
        terms = score_share(len(self.v_plus)) * self.magnitude + chain * self.absolute
        return BoundedSums(
            loss=self.loss,
            conj=(self.conj_plus, self.conj_minus),
            mass=(self.mass_plus, self.mass_minus),
            v=(self.v_plus, self.v_minus),
            terms_error=terms,
            v_error=chain * self.spread,
            v_error_along=chain * self.magnitude,
            v_error_entry=chain * min(self.spread, self.entry),
            mass_share=chain,
        )


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
    sums: ClosingSums | BoundedSums,
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
    if isinstance(sums, ClosingSums):
        sums = sums.bounded(rows_per_sum)
    with np.errstate(over="ignore", invalid="ignore"):  # what overflows is refused by ``enclose``
        primal, bound, rounding = _values(sums, w, lam=lam, l1=l1, fit_intercept=fit_intercept)
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
    sums: BoundedSums, w: FloatArray, *, lam: float, l1: float, fit_intercept: bool
) -> tuple[float, float, float]:
    """P, its lower bound, and what rounding may have done to both."""
    factors = balance(*sums.mass) if fit_intercept else (1.0, 1.0)
    norm_penalty = 0.5 * lam * dot(w, w) + (l1 * float(np.abs(w).sum()) if l1 else 0.0)
    primal = sums.loss + norm_penalty
    d = len(w)
    rounding = sums.terms_error + score_share(d) * norm_penalty + _UNDERFLOW * (d * lam + 1.0)
    if lam > 0.0:
        bound, error = _with_ridge(sums, w, factors, lam, l1, fit_intercept)
    else:
        bound, error = _without_ridge(sums, factors, l1, fit_intercept)
    return primal, bound, (rounding + error) * (1.0 + 2.0**-10)


def _with_ridge(
    sums: BoundedSums,
    w: FloatArray,
    factors: tuple[float, float],
    lam: float,
    l1: float,
    fit_intercept: bool,
) -> tuple[float, float]:
    """The lower bound for lam > 0, and its error beyond that of the terms."""
    d = len(w)
    if not l1:
        conj = factors[0] * sums.conj[0] + factors[1] * sums.conj[1]
        kappa = shrinkage(conj, factors[0] * sums.v[0] + factors[1] * sums.v[1], lam)
        factors = factors[0] * kappa, factors[1] * kappa
    sides = [f * v for f, v in zip(factors, sums.v, strict=True)]
    conj_sides = [f * c for f, c in zip(factors, sums.conj, strict=True)]
    v = sides[0] + sides[1]
    at = np.sign(v) * np.maximum(np.abs(v) - l1, 0.0) / lam if l1 else v / lam
    penalty = 0.5 * lam * dot(at, at)
    off = at - w
    error = min(
        sums.v_error * math.sqrt(dot(at, at)),
        sums.v_error_along + sums.v_error * math.sqrt(dot(off, off)),
    )
    error += score_share(d) * (penalty + l1 * float(np.abs(at).sum())) + _UNDERFLOW * d / lam
    moved = sums.v_error
    if fit_intercept:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        costs = [
            share * (abs(a) + abs(dot(side, at))) for a, side in zip(conj_sides, sides, strict=True)
        ]
        error += math.nan if any(map(math.isnan, costs)) else max(costs)
        moved += share * math.sqrt(max(dot(side, side) for side in sides))
    return -conj_sides[0] - conj_sides[1] - penalty, error + 0.5 * moved * moved / lam


def _without_ridge(
    sums: BoundedSums, factors: tuple[float, float], l1: float, fit_intercept: bool
) -> tuple[float, float]:
    """The lower bound for lam = 0, and its error beyond that of the terms.

    |v_j| <= l1 is needed for all j: shrink all u alike, which keeps the intercept's balance. v is rounded, and
    moves once more when the balance is repaired.
    """
    if not l1 > 0.0:
        return 0.0, 0.0
    sides = [f * v for f, v in zip(factors, sums.v, strict=True)]
    conj_sides = [f * c for f, c in zip(factors, sums.conj, strict=True)]
    conj = conj_sides[0] + conj_sides[1]
    largest, doubt, error = (
        float(np.abs(sides[0] + sides[1]).max(initial=0.0)),
        sums.v_error_entry,
        0.0,
    )
    doubt += 4.0 * ROUNDOFF * largest
    if fit_intercept:
        share = 2.0 * (sums.mass_share + ROUNDOFF)
        longest = max(float(np.abs(side).max(initial=0.0)) for side in sides)
        doubt += share * (longest + doubt)
        error = share * max(abs(a) for a in conj_sides)
    shrink, surely = l1 / max(largest, l1), l1 / max(largest + doubt, l1)
    return -shrink * conj, error + (shrink - surely) * abs(conj) + 8.0 * ROUNDOFF * abs(conj)
