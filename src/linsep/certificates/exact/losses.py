"""Exact losses and conjugates: rational numbers for piecewise quadratic losses, balls for the others.

A piecewise linear or quadratic loss declares its conjugate, l*(-u) = q u^2 + epsilon |u| - centre u on an interval,
which defines it; sums of losses and of conjugates at dyadic numbers are then rational. The logistic, exponential and
softmax losses are enclosed by python-flint's ball arithmetic, in which every number carries a bound on its own error.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import Any, Protocol

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import Refused
from linsep.exact.decimals import ZERO, Decimals, only
from linsep.exact.dyadic import Dyadic
from linsep.exact.rational import HAS_FLINT
from linsep.losses import (
    NAMES,
    CoupledLoss,
    CrammerSinger,
    Exponential,
    Logistic,
    Loss,
    Multinomial,
    get,
    zero_margin,
)

#: Precision of a ball's centre in bits: far more than a relative gap of 1e-15 requires.
_BITS = 256
#: Largest binary exponent; rational numbers beyond it would not fit in memory.
_MOST_BITS = 1 << 14
_ZERO, _ONE = Dyadic.of(0.0), Dyadic.of(1.0)
_FARTHEST, _NEXT_TO = Decimal(10) ** 4, Decimal(10) ** -8


@dataclass(frozen=True)
class Interval:
    """Interval with rational ends that encloses a real number."""

    low: Fraction
    high: Fraction

    @classmethod
    def of(cls, value: Fraction) -> Interval:
        """Interval of one rational number."""
        return cls(value, value)

    def __add__(self, other: Interval) -> Interval:
        return Interval(self.low + other.low, self.high + other.high)

    def times(self, factor: Fraction) -> Interval:
        """Return the product with a nonnegative number."""
        return Interval(factor * self.low, factor * self.high)


ZERO_INTERVAL = Interval.of(Fraction(0))


class Formula(Protocol):
    """Exact pointwise loss. Sums run over vectors of equal length, one entry per row."""

    @property
    def low(self) -> float:
        """Smallest u with a finite l*(-u)."""
        ...

    @property
    def high(self) -> float:
        """Largest u with a finite l*(-u)."""
        ...

    def value(self, m: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l(m)."""
        ...

    def conjugate(self, u: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l*(-u)."""
        ...

    def conjugate_at(self, u: Fraction) -> Interval:
        """l*(-u)."""
        ...

    def freedom(self, u: FloatArray) -> FloatArray:
        """Inverse curvature 1/l*'' in float64; where l* is linear, the squared distance to the ends of its domain."""
        ...

    @property
    def curved(self) -> bool:
        """Whether the loss is differentiable everywhere and curved somewhere."""
        ...

    def slopes(self, m: Decimals) -> tuple[Decimals, Decimals]:
        """u = -l'(m), extended from the adjacent piece near its end, and the curvature l''(m); curved losses only."""
        ...


@dataclass(frozen=True)
class Parabola:
    """Loss with conjugate l*(-u) = q u^2 + epsilon |u| - centre u on [low, high].

    It is the maximum of u r - q u^2 there, with r the residual centre - m, soft-thresholded by epsilon.
    """

    centre: float
    quadratic: float  #: q
    low: float
    high: float
    epsilon: float = 0.0

    def value(self, m: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l(m)."""
        r = Dyadic.of(self.centre) - m
        if self.epsilon:
            zone = Dyadic.of(self.epsilon)
            r = (r - zone).positive() - (_ZERO - r - zone).positive()
        if self.quadratic == 0.0:
            worst = Dyadic.of(self.high) * r.positive()
            if self.low:
                worst = worst + Dyadic.of(-self.low) * (_ZERO - r).positive()
            return Interval.of((s * worst).sum())
        t = self._cut(r)  # 2 q times the maximising u
        return Interval.of((s * t * (r - t.halve())).sum() / (2 * Fraction(self.quadratic)))

    def _cut(self, r: Dyadic) -> Dyadic:
        """r clipped to 2 q [low, high]."""
        double = Dyadic.of(2.0 * self.quadratic)
        if math.isfinite(self.low):
            least = double * Dyadic.of(self.low)
            r = (r - least).positive() + least
        return r.at_most(double * Dyadic.of(self.high)) if math.isfinite(self.high) else r

    def conjugate(self, u: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l*(-u)."""
        square = Fraction(self.quadratic) * (s * u * u).sum() if self.quadratic else Fraction(0)
        zone = Fraction(self.epsilon) * (s * abs(u)).sum() if self.epsilon else Fraction(0)
        return Interval.of(square + zone - Fraction(self.centre) * (s * u).sum())

    def conjugate_at(self, u: Fraction) -> Interval:
        """l*(-u)."""
        zone = Fraction(self.epsilon) * abs(u)
        return Interval.of(Fraction(self.quadratic) * u * u + zone - Fraction(self.centre) * u)

    def freedom(self, u: FloatArray) -> FloatArray:
        """Inverse curvature of l*, or the squared distance to the ends of its domain."""
        kink = np.abs(u) if self.epsilon else np.full(u.shape, np.inf)
        if self.quadratic:
            return np.where(kink > 0.0, 0.5 / self.quadratic, 0.0)
        return np.asarray(np.minimum(kink, np.minimum(u - self.low, self.high - u)) ** 2)

    @property
    def curved(self) -> bool:
        """Whether the loss is piecewise quadratic without a kink."""
        return self.quadratic > 0.0

    def slopes(self, m: Decimals) -> tuple[Decimals, Decimals]:
        """u = -l'(m) and l''(m)."""
        r = Decimal(self.centre) - m
        zone, double = Decimal(self.epsilon), 2 * Decimal(self.quadratic)
        free = np.array([(max(x - zone, ZERO) + min(x + zone, ZERO)) / double for x in r])
        low, high = Decimal(self.low), Decimal(self.high)
        cut = np.array([min(max(x, low), high) for x in free], dtype=object)
        # Near the end of a piece, float64 margins do not determine the side of a row: the piece is extended.
        free_piece = (np.abs(free - cut) <= _NEXT_TO) & (np.abs(r) >= zone - _NEXT_TO)
        return np.where(free_piece, free, cut), only(free_piece, np.full(r.shape, 1 / double))


class _Balls(ABC):
    """Losses evaluated in ball arithmetic, summed to intervals."""

    low: float
    high: float

    def value(self, m: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l(m)."""
        with _precision():
            return _enclose(b * self._value(a) for a, b in zip(_balls(m), _balls(s), strict=True))

    def conjugate(self, u: Dyadic, s: Dyadic) -> Interval:
        """Sum of s l*(-u)."""
        with _precision():
            rows = zip(_balls(u), _balls(_ONE - u), _balls(s), strict=True)
            return _enclose(weight * self._conjugate(a, rest) for a, rest, weight in rows)

    def conjugate_at(self, u: Fraction) -> Interval:
        """l*(-u)."""
        with _precision():
            return _enclose([self._conjugate(_ball(u), _ball(1 - u))])

    @abstractmethod
    def freedom(self, u: FloatArray) -> FloatArray:
        """Inverse curvature of l*."""

    #: The losses are smooth and strictly convex.
    curved = True

    @abstractmethod
    def slopes(self, m: Decimals) -> tuple[Decimals, Decimals]:
        """u = -l'(m) and l''(m)."""

    @abstractmethod
    def _value(self, m: Any) -> Any:
        """Ball around l(m)."""

    @abstractmethod
    def _conjugate(self, u: Any, rest: Any) -> Any:
        """Ball around l*(-u), with rest = 1 - u."""


class _LogisticBalls(_Balls):
    low, high = 0.0, 1.0

    def freedom(self, u: FloatArray) -> FloatArray:
        return np.asarray(u * (1.0 - u))

    def slopes(self, m: Decimals) -> tuple[Decimals, Decimals]:
        u = 1 / (1 + _exponentials(m))
        return u, u * (1 - u)

    def _value(self, m: Any) -> Any:
        return (-m).exp().log1p() if m > 0 else m.exp().log1p() - m

    def _conjugate(self, u: Any, rest: Any) -> Any:
        return _times_log(u) + _times_log(rest)


class _ExponentialBalls(_Balls):
    low, high = 0.0, math.inf

    def freedom(self, u: FloatArray) -> FloatArray:
        return u

    def slopes(self, m: Decimals) -> tuple[Decimals, Decimals]:
        u = _exponentials(-m)
        return u, u

    def _value(self, m: Any) -> Any:
        return (-m).exp()

    def _conjugate(self, u: Any, rest: Any) -> Any:
        return _times_log(u) - u


def _exponentials(x: Decimals) -> Decimals:
    """e^x, with x clipped to 10^4 in absolute value, beyond the range of float64."""
    return np.array([min(max(v, -_FARTHEST), _FARTHEST).exp() for v in x], dtype=object)


class CoupledFormula(Protocol):
    """Exact loss as a function of the leads z_c - z_y of all classes over the label."""

    def value(self, leads: list[list[Fraction]], s: list[Fraction]) -> Interval:
        """Sum of s l; each row of leads omits the label."""
        ...

    def entropy(self, p: Iterable[list[Fraction]], s: list[Fraction]) -> Interval:
        """Sum of s times minus the conjugate at p; each row of p omits the label."""
        ...


class _SoftmaxBalls:
    def value(self, leads: list[list[Fraction]], s: list[Fraction]) -> Interval:
        with _precision():
            terms = (
                _ball(b) * (1 + _sum(_ball(x).exp() for x in row)).log()
                if max(row) > 0
                else _ball(b) * _sum(_ball(x).exp() for x in row).log1p()
                for row, b in zip(leads, s, strict=True)
            )
            return _enclose(terms)

    def entropy(self, p: Iterable[list[Fraction]], s: list[Fraction]) -> Interval:
        with _precision():
            terms = (
                -_ball(b) * _sum(_times_log(_ball(x)) for x in [*row, 1 - sum(row, Fraction(0))])
                for row, b in zip(p, s, strict=True)
            )
            return _enclose(terms)


class _LargestLead:
    """Crammer and Singer's multiclass hinge loss."""

    def value(self, leads: list[list[Fraction]], s: list[Fraction]) -> Interval:
        return Interval.of(
            sum(
                (b * max(1 + max(row), Fraction(0)) for row, b in zip(leads, s, strict=True)),
                Fraction(0),
            )
        )

    def entropy(self, p: Iterable[list[Fraction]], s: list[Fraction]) -> Interval:
        rows = zip(p, s, strict=True)
        return Interval.of(sum((b * sum(row, Fraction(0)) for row, b in rows), Fraction(0)))


#: Losses with irrational values, and their enclosures.
_ENCLOSURES: dict[type[Loss], type[_Balls]] = {
    Logistic: _LogisticBalls,
    Exponential: _ExponentialBalls,
}


def exact_loss(loss: Loss) -> Formula:
    """Return the exact implementation of a pointwise loss; raise ``Refused`` if there is none."""
    q = loss.conjugate_quadratic
    if q is not None:
        return Parabola(zero_margin(loss), q, *loss.domain)
    if loss.dead_zone is not None:
        q, epsilon = loss.dead_zone
        return Parabola(zero_margin(loss), q, *loss.domain, epsilon)
    if type(loss) not in _ENCLOSURES:
        known = [
            loss.name
            for loss in map(get, NAMES)
            if loss.conjugate_quadratic is not None or loss.dead_zone is not None
        ]
        known += [kind.name for kind in _ENCLOSURES]
        raise Refused(
            f"exact=True knows the losses {', '.join(known)}, multinomial and crammer_singer, and others that declare "
            f"a conjugate_quadratic or a dead_zone, not {loss.name!r}. "
            "Use verify(model, X, y): its gap includes a guaranteed allowance for rounding."
        )
    _need_flint(loss.name)
    return _ENCLOSURES[type(loss)]()


def exact_coupled_loss(loss: CoupledLoss) -> CoupledFormula:
    """Return the exact implementation of a loss that couples the classes."""
    if isinstance(loss, CrammerSinger):
        return _LargestLead()
    assert isinstance(loss, Multinomial)
    _need_flint(loss.name)
    return _SoftmaxBalls()


def _need_flint(name: str) -> None:
    if not HAS_FLINT:
        raise Refused(
            f"exact=True: the {name} loss takes values that are not fractions, and enclosing them needs "
            "python-flint: pip install python-flint. Without it, use verify(model, X, y), whose gap includes a "
            "guaranteed allowance for rounding, or checker/linsep_check.py."
        )


@contextmanager
def _precision() -> Iterator[None]:
    import flint  # noqa: PLC0415

    before, flint.ctx.prec = flint.ctx.prec, _BITS
    try:
        yield
    finally:
        flint.ctx.prec = before


def _ball(x: Fraction) -> Any:
    import flint  # noqa: PLC0415

    return flint.arb(flint.fmpq(x.numerator, x.denominator))


def _balls(x: Dyadic) -> list[Any]:
    import flint  # noqa: PLC0415

    return [flint.arb((int(num), x.exp)) for num in np.atleast_1d(x.num).tolist()]


def _times_log(p: Any) -> Any:
    """p log p, 0 at 0."""
    return p if p == 0 else p * p.log()


def _sum(terms: Iterable[Any]) -> Any:
    import flint  # noqa: PLC0415

    return sum(terms, flint.arb(0))


def _enclose(terms: Iterable[Any]) -> Interval:
    total = _sum(terms)
    if not (total.is_finite() and abs(total) < _power(_MOST_BITS)):
        raise Refused(
            "exact=True: the objective has values beyond what ball arithmetic can enclose."
        )
    return Interval(-_above(-total), _above(total))


def _above(ball: Any) -> Fraction:
    """Rational upper bound on the ball, rounded up to 2^-_MOST_BITS if it is close to 0."""
    if ball == 0:
        return Fraction(0)
    if abs(ball) < _power(-_MOST_BITS):
        return Fraction(1, 1 << _MOST_BITS)
    man, exp = (int(part) for part in ball.upper().man_exp())
    return Fraction(man << exp) if exp >= 0 else Fraction(man, 1 << -exp)


def _power(exponent: int) -> Any:
    """2^exponent."""
    import flint  # noqa: PLC0415

    return flint.arb((1, exponent))
