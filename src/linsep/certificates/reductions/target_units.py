"""Rescaling of the targets, so that regression works at any scale from 1e-300 to 1e300.

Squares of targets below 1e-154 underflow and those above 1e154 overflow, long before the targets themselves do. Such
targets are divided by a power of two, 2^k, which is exact, and the problem is solved for the coefficients w' = w/2^k.
With a loss of degree p, l(2^k r) = 2^(pk) l'(r), the objective in the user's units is

    l1_ratio < 1:  P = 4^k ((1 - l1_ratio)/2 |w'|^2 + 2^-k l1_ratio |w'|_1 + 2^((p-2)k) C sum s l')
    l1_ratio = 1:  P = 2^k (|w'|_1 + 2^((p-1)k) C sum s l')
    C = inf:       P = 2^(pk) sum s l'

l' is the loss itself, except that the width of the Huber loss and the epsilon of epsilon-insensitive losses are divided
by 2^k. Every factor is a power of two: the rescaled problem is equivalent, and its coefficients, dual point and
certificate are exact multiples of the original ones as long as these are float64 numbers of full precision.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.optimality import SMALLEST, Optimality
from linsep.certificates.parts import Part
from linsep.data.cluster import RowVector
from linsep.errors import NonFinite
from linsep.losses import CoupledLoss, Loss
from linsep.penalties import ElasticNet, GroupElasticNet, RescaledElasticNet
from linsep.solution import Explicit, Linearised, TraceRecord

#: Targets are not rescaled if the exponent of the largest is within these bounds: squares of residuals down to 1e-48 of
#: the targets, and sums of 1e90 squares, then have full precision.
_ORDINARY = 340
#: Bound on the exponents of C, of its multiples and of the Huber width, so that products with them do not overflow.
_MOST = 1000
#: Exponents of the smallest normal and of the largest float64 number.
_LEAST_NORMAL, _LARGEST = -1021, 1024


class TargetUnits(NamedTuple):
    """The problem for the targets t' = t / 2^exponent, whose objective is the user's divided by 2^objective."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    exponent: int = 0
    objective: int = 0

    @property
    def plain(self) -> bool:
        """Whether the targets are not rescaled."""
        return self.exponent == 0

    @property
    def smallest(self) -> float:
        """Smallest nonzero objective in these units that a certificate can report in the user's units."""
        return max(SMALLEST, _times(2.0 ** (_LEAST_NORMAL - 1), -self.objective))

    def offset(self, given: Any) -> Any:
        """Offsets -t in these units."""
        if self.plain:
            return given
        if isinstance(given, RowVector):
            return given.rows.offsets(0.0, given.target.exponent + self.exponent)
        return _ldexp(given, -self.exponent)

    def start(self, W: FloatArray | None) -> FloatArray | None:
        """Initial coefficients in these units."""
        return W if W is None or self.plain else _ldexp(W, -self.exponent)

    def part(self, given: Part) -> Part:
        """Subproblem in these units, with its coefficients and its dual point."""
        if self.plain:
            return given
        return given._replace(
            loss=self.loss,
            penalty=self.penalty,
            offset=self.offset(given.offset),
            W=_ldexp(given.W, -self.exponent),
            dual=_multiply(given.dual, -self.exponent, self._degree),
        )

    @property
    def _degree(self) -> int:
        assert isinstance(self.loss, Loss) and self.loss.degree is not None
        return self.loss.degree

    def user_coefficients(self, W: FloatArray) -> FloatArray:
        """Convert W from these units to the user's."""
        found: FloatArray = _ldexp(W, self.exponent)
        if not np.isfinite(found).all():
            raise NonFinite(
                "The coefficients are larger than 1.8e308, the largest float64 number: divide the targets by a power "
                "of two, or multiply the features by one."
            )
        return found

    def user_dual(self, dual: Linearised | Explicit) -> Linearised | Explicit:
        """Convert a dual point from these units to the user's."""
        return _multiply(dual, self.exponent, self._degree)

    def user_trace(self, lines: Sequence[TraceRecord]) -> tuple[TraceRecord, ...]:
        """Convert the records of a trace to the user's units."""
        e = self.objective
        return tuple(
            replace(line, primal=_times(line.primal, e), dual=_times(line.dual, e))
            for line in lines
        )

    def user_certificate(self, found: Optimality, W: FloatArray) -> Optimality:
        """Certificate of W, given in these units, for the coefficients in the user's units.

        Coefficients below 2.2e-308 have lost digits and are therefore different ones, for which only the lower bound
        is proven.
        """
        certificate = self.certificate(found)
        if (_ldexp(_ldexp(W, self.exponent), -self.exponent) == W).all():
            return certificate
        inf = math.inf
        return replace(
            certificate, gap=inf, relative_gap=inf, coef_error=inf, certified=False, rounding=inf
        )

    def certificate(self, found: Optimality) -> Optimality:
        """Convert a certificate to the user's units.

        Bounds that are not representable in full precision are rounded to the safe side. If the objective is not, or
        the gap overflows, no relative gap can be stated, and the result is not certified. The objective of an exact
        fit may underflow, because its certificate is not relative to the objective.
        """
        if self.plain:
            return found
        e, exponent = self.objective, math.frexp(found.primal)[1] + self.objective
        least = -math.inf if found.relative_gap == 0.0 < found.gap else _LEAST_NORMAL
        stated = found.primal == 0.0 or least <= exponent <= _LARGEST
        gap = _at_least(found.gap, e)
        stated = stated and math.isfinite(found.primal) and math.isfinite(gap)
        return replace(
            found,
            primal=_times(found.primal, e),
            dual=-_at_least(-found.dual, e),
            gap=gap if math.isfinite(_times(found.primal, e)) else math.inf,
            relative_gap=found.relative_gap if stated else math.inf,
            coef_error=_at_least(found.coef_error, self.exponent),
            certified=found.certified and stated,
            rounding=_at_least(found.rounding, e),
        )


def target_units(loss: Loss | CoupledLoss, penalty: ElasticNet, offset: Any) -> TargetUnits:
    """Units for the targets t, given the offsets -t; the user's units if there are no offsets."""
    plain = TargetUnits(loss, penalty)
    if offset is None or isinstance(loss, CoupledLoss):
        return plain
    degree, steepest = loss.degree, loss.domain[1]
    if degree is None:
        return plain
    exponent = math.frexp(_largest(offset))[1]
    if abs(exponent) <= _ORDINARY:
        return plain
    k = exponent
    if degree == 2 and math.isfinite(steepest):
        # Where the loss is about steepest |r|, neither factor should leave the range.
        k = (exponent + min(exponent, math.frexp(steepest)[1])) // 2
    k = _representable(loss, penalty, degree, k)
    if k == 0:
        return plain
    return TargetUnits(loss.in_units(k), *_in_units(penalty, degree, k))


def _largest(offset: Any) -> float:
    """Largest absolute target; 0 if it is not finite, which is reported elsewhere."""
    if isinstance(offset, RowVector):
        found = _times(offset.rows.largest_target, -offset.target.exponent)
    else:
        found = float(np.abs(offset).max(initial=0.0))
    return found if math.isfinite(found) else 0.0


def _in_units(penalty: ElasticNet, degree: int, k: int) -> tuple[ElasticNet, int, int]:
    """Penalty for targets divided by 2^k, k, and the exponent of the objective."""
    if math.isinf(penalty.C):
        return penalty, k, degree * k
    if penalty.l1_ratio == 1.0:
        return replace(penalty, C=math.ldexp(penalty.C, (degree - 1) * k)), k, k
    C = math.ldexp(penalty.C, (degree - 2) * k)
    if penalty.l1_ratio == 0.0:
        return replace(penalty, C=C), k, 2 * k
    unit = math.ldexp(1.0, -k)
    if isinstance(penalty, GroupElasticNet):
        return replace(penalty, C=C, l1_scale=unit), k, 2 * k
    return RescaledElasticNet(C, penalty.l1_ratio, unit), k, 2 * k


def _representable(loss: Loss, penalty: ElasticNet, degree: int, k: int) -> int:
    """k, or the nearest exponent for which all constants of the problem keep full precision."""
    low, high = -_MOST, _MOST

    def keep(value: float, power: int) -> None:
        """Restrict k so that |exponent of value * 2^(power k)| <= _MOST."""
        nonlocal low, high
        at = math.frexp(value)[1]
        if power:
            ends = sorted(((-_MOST - at) / power, (_MOST - at) / power))
            low, high = max(low, math.ceil(ends[0])), min(high, math.floor(ends[1]))

    if math.isfinite(penalty.C):
        keep(penalty.C, degree - (1 if penalty.l1_ratio == 1.0 else 2))
        if 0.0 < penalty.l1_ratio < 1.0:
            keep(penalty.l1_ratio / penalty.C, 1 - degree)
    if loss.residual_constant > 0.0:
        keep(loss.residual_constant, -1)
    return max(low, min(high, k)) if low <= high else 0


def _multiply(dual: Linearised | Explicit, exponent: int, degree: int) -> Linearised | Explicit:
    """Dual point for targets times 2^exponent: slopes of a loss have one degree less than its values."""
    if isinstance(dual, Linearised):
        return Linearised(_ldexp(dual.base, exponent), _ldexp(dual.step, exponent))
    shift = (degree - 1) * exponent
    return Explicit(_ldexp(dual.u, shift), None if dual.rest is None else _ldexp(dual.rest, shift))


def _ldexp(x: Any, exponent: int) -> Any:
    """x * 2^exponent: exact, unless digits fall below 2.2e-308 or numbers exceed 1.8e308."""
    with np.errstate(over="ignore", under="ignore"):
        return np.ldexp(x, exponent)


def _times(x: float, exponent: int) -> float:
    """x * 2^exponent, rounded to nearest; inf where it overflows."""
    return float(_ldexp(np.float64(x), exponent))


def _at_least(x: float, exponent: int) -> float:
    """Smallest float64 number >= x * 2^exponent."""
    nearest = _times(x, exponent)
    if not math.isfinite(x):
        return nearest
    if math.isinf(nearest):  # for a negative x, the largest finite number is still a valid bound
        return nearest if x > 0.0 else -float(np.finfo(np.float64).max)
    return nearest if _times(nearest, -exponent) >= x else math.nextafter(nearest, math.inf)
