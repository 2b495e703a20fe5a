"""The duality gap without rounding, for every loss and penalty.

Floats are dyadic rationals, hence so are margins; for piecewise linear and quadratic losses, so are all sums. The
logistic, exponential and softmax losses are enclosed by balls (see ``losses``). ``penalty`` states P and D.

Any u inside the domain of the conjugate proves a bound, however it was found. It must be balanced for a free intercept
(``balance``). ``dual`` finds such points.
"""

from __future__ import annotations

import math
import sys
from contextlib import suppress
from fractions import Fraction
from typing import NamedTuple

from linsep.certificates.curvature.certificate import constant_loss, fits_without_penalty
from linsep.certificates.exact.coupled import CoupledRows
from linsep.certificates.exact.dual import Rows
from linsep.certificates.exact.losses import Interval
from linsep.certificates.exact.penalty import PenaltyTerms
from linsep.certificates.exact.pointwise import PointwiseRows
from linsep.certificates.optimality import EXACT_FIT, Optimality
from linsep.certificates.parts import Part
from linsep.exact.budget import OverBudget
from linsep.exact.dyadic import nearest
from linsep.losses import CoupledLoss


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
    rows, terms = _rows_of(part), _terms_of(part)
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
    return _terms_of(part).primal(_rows_of(part)).high


def _rows_of(part: Part) -> Rows:
    if isinstance(part.loss, CoupledLoss):
        return CoupledRows(part.loss, part.X, part.labels, part.weight, part.W)
    return PointwiseRows(part.loss, part.X, part.sigma, part.offset, part.weight, part.W)


def _terms_of(part: Part) -> PenaltyTerms:
    return PenaltyTerms(part.penalty, part.W[:-1].size)


def _exact_fit(rows: Rows, primal: Fraction, tol: float, fit_intercept: bool) -> bool:
    """Return whether the objective in internal units is zero to working precision, as in ``curvature``.

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
