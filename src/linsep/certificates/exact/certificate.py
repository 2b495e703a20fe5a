"""The duality gap without rounding, for every loss and penalty.

Floats are dyadic rationals, hence so are margins; for piecewise linear and quadratic losses, so are all sums. The
logistic, exponential and softmax losses are enclosed by balls (see ``losses``). In reported units, with
r = l1_ratio,

    P = (1 - r)/2 |w|^2 + r |w|_1 + C sum s l(m)
    D = -C sum s (l*(-u) + u offset) - sum_j max(C |v_j| - r, 0)^2 / (2 (1 - r)),

where v = sum s sigma u x. Any u inside the domain of the conjugate proves a bound, however it was found. It must be
balanced for a free intercept (``balance``); with r = 1, all C |v_j| <= 1 is achieved by shrinking u; with C = inf,
where P and D lose the penalty terms and the factor C, v must be zero. ``dual`` finds such points.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Iterator
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

from linsep.certificates.exact.coupled import CoupledRows
from linsep.certificates.exact.dual import Rows, Target, candidates, sums_with_zero_v
from linsep.certificates.exact.group import GroupTerms
from linsep.certificates.exact.losses import Interval
from linsep.certificates.exact.pointwise import PointwiseRows
from linsep.certificates.local import constant_loss, fits_without_penalty
from linsep.certificates.optimality import EXACT_FIT, Optimality
from linsep.certificates.recheck import Dual, Part
from linsep.exact.budget import OverBudget
from linsep.exact.dyadic import nearest
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet


class Goal(NamedTuple):
    """Numbers of a claim to be confirmed: the gap to reach, and the lower bound."""

    gap: Fraction | float
    bound: Fraction | float

    @classmethod
    def of(cls, claim: Optimality) -> Goal:
        """Gap and lower bound of a claim; ``ANY`` if its gap is not finite."""
        if not math.isfinite(claim.gap):
            return ANY
        return cls(Fraction(claim.gap), Fraction(claim.dual))

    def times_power_of_two(self, exponent: int) -> Goal:
        """Goal of a problem whose objective is 2**exponent times as large."""
        power = Fraction(2) ** exponent
        return Goal(*(x if x == math.inf else Fraction(x) * power for x in self))


#: Goal that every bound meets.
ANY = Goal(math.inf, 0.0)


def exact_certificate(part: Part, goal: Goal = ANY) -> Optimality:
    """Compute primal, dual and gap without rounding, and compare the gap with tol exactly.

    Dual points are improved until the relative gap is at most ``tol`` and the ``goal`` is reached, no better point is
    known, or the work budget is spent (``exact.budget``).
    """
    penalty, tol = part.penalty, part.tol
    rows, terms = _rows_of(part), _terms_of(penalty)
    primal = terms.primal(rows)
    bound = Fraction(0)  # every loss has minimum 0
    small = fits_without_penalty(penalty, part.W) and _exact_fit(
        rows, primal.high / terms.C, tol, part.fit_intercept
    )
    if primal.high > 0 and not (small and primal.high <= goal.gap):
        with suppress(OverBudget):
            for found in terms.bounds(rows, part.dual, part.fit_intercept):
                bound = max(bound, found)
                gap = primal.high - bound
                if gap <= Fraction(tol) * primal.low and gap <= goal.gap and bound >= goal.bound:
                    break
    return _conclude(primal, bound, tol, strength=terms.strength, exact_fit=small)


def exact_objective(part: Part) -> Fraction:
    """The objective at the coefficients: an upper bound without rounding."""
    return _terms_of(part.penalty).primal(_rows_of(part)).high


def _rows_of(part: Part) -> Rows:
    if isinstance(part.loss, CoupledLoss):
        return CoupledRows(part.loss, part.X, part.labels, part.weight, part.W)
    return PointwiseRows(part.loss, part.X, part.sigma, part.offset, part.weight, part.W)


def _terms_of(penalty: ElasticNet) -> _Terms | GroupTerms:
    return _Terms(penalty) if penalty.uniform else GroupTerms(penalty)


class _Terms:
    """Terms of the elastic net penalty in P and D."""

    def __init__(self, penalty: ElasticNet) -> None:
        self.infinite = math.isinf(penalty.C)
        self.C = Fraction(1) if self.infinite else Fraction(penalty.C)
        self.r = Fraction(0) if self.infinite else Fraction(penalty.l1_ratio)
        #: weight of |w|_1 in reported units, or in those of rescaled targets
        self.flat = self.r * Fraction(getattr(penalty, "l1_scale", 1.0))

    @property
    def strength(self) -> Fraction:
        """Modulus of strong convexity of P, in reported units."""
        return Fraction(0) if self.infinite else 1 - self.r

    def primal(self, rows: Rows) -> Interval:
        """Enclosure of P."""
        loss = rows.primal()
        if self.infinite:
            return loss
        w = [Fraction(x) for x in rows.W[:-1].ravel().tolist()]
        norms = (1 - self.r) / 2 * sum(x * x for x in w) + self.flat * sum(map(abs, w))
        return loss.times(self.C) + Interval.of(norms)

    def bounds(self, rows: Rows, dual: Dual, fit_intercept: bool) -> Iterator[Fraction]:
        """Yield lower bounds on the objective.

        First with v = sum s sigma u x near its value at the optimum; then with v exactly zero, which is feasible for
        every penalty, and the only choice without one or where C is so large that the penalty is lost in rounding.
        """
        C = self.C
        if not self.infinite:
            target = Target(rows.W, (1 - self.r) / C, self.flat / C, fit_intercept)
            for _, sums in candidates(rows, dual, target):
                entropy, v = sums.balance() if fit_intercept else sums.plain()
                yield self.dual_value(C * entropy.low, [C * abs(x) for x in v])
        for sums in sums_with_zero_v(rows, dual, fit_intercept):
            if sums is not None:
                yield C * sums.plain()[0].low

    def dual_value(self, gain: Fraction, v: list[Fraction]) -> Fraction:
        """D from minus the sum of conjugates and |v|, both multiplied by C."""
        r, flat = self.r, self.flat
        if r == 1:
            return gain * flat / max([*v, flat])
        cost = sum((max(x - flat, Fraction(0)) ** 2 for x in v), Fraction(0)) / (1 - r)
        # A dual point that is too long is replaced by the best multiple of itself, as in problem.duality.
        shorter = r == 0 and 0 < gain < cost
        return gain * gain / (2 * cost) if shorter else gain - cost / 2


def _exact_fit(rows: Rows, primal: Fraction, tol: float, fit_intercept: bool) -> bool:
    """Return whether the objective in internal units is zero to working precision, as in ``local.exact_fit``.

    It must be at most what the rounding of scores can produce from 0, and at most tol times a tiny fraction of the loss
    of the best constant model.
    """
    if isinstance(rows, CoupledRows) or rows.loss.recedes:
        return False
    vectors = rows.sigma, rows.offset, rows.s * rows.factor
    null = constant_loss(rows.loss, *vectors, fit_intercept)
    return nearest(primal) <= min(rows.rounded_zero(), tol * EXACT_FIT * null)


def _conclude(
    primal: Interval, bound: Fraction, tol: float, *, strength: Fraction, exact_fit: bool
) -> Optimality:
    gap, value = primal.high - bound, nearest(primal.high)
    if math.isinf(value):
        return Optimality(value, 0.0, value, value, value, tol, False, 0.0, "exact")
    if value == 0.0 < primal.high and not exact_fit:  # an objective that underflows is not zero
        return Optimality(value, 0.0, math.inf, math.inf, math.inf, tol, False, 0.0, "exact")
    certified = exact_fit or gap <= Fraction(tol) * primal.low
    coef_error = math.inf
    if strength > 0:
        coef_error = math.nextafter(math.sqrt(_above(2 * gap / strength)), math.inf)
    share = 0.0 if gap == 0 or exact_fit else math.inf
    if primal.low > 0 and share:
        share = _above(gap / primal.low)
    return Optimality(
        primal=value,
        dual=-_above(-bound) + 0.0,
        gap=_above(gap),
        relative_gap=share,
        coef_error=coef_error if gap else 0.0 if strength > 0 else math.inf,
        tol=tol,
        certified=certified,
        kind="exact",
    )


def _above(x: Fraction) -> float:
    """A float that is at least x: the smallest such float, or the next one."""
    found = nearest(x)
    if math.isinf(found):
        return found if found > 0.0 else -sys.float_info.max
    return found if Fraction(found) >= x else math.nextafter(found, math.inf)
