"""Objective terms of losses with one score per row, and of the L1 penalty.

A piecewise linear or quadratic loss has, in the residual r = centre - m, the conjugate l*(-u) = q u^2 - centre u on an
interval [low, high]. At an optimum

    r = 2 q u + a - c,    a (high - u) = 0,    c (u - low) = 0,    a, c >= 0,

and the interior point method sets s times the two products to mu > 0 (``PiecewiseQuadratic``). An L1 penalty l1 |w_j|
is such a term with r = -w_j, q = 0 and [low, high] = [-1, 1]. The logistic and exponential losses (``Smooth``) need no
a and c: u = -l'(m).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.exact.decimals import ONE, ZERO, Decimals, floats, only, zeros
from linsep.multiprecision.terms import (
    Change,
    Coordinates,
    Map,
    Matrix,
    Targets,
    Term,
    damping,
    longest_step,
)

#: Two functions: u and 1/l'' of a loss in decimals, and u and l'' divided by e^top in float64.
Slopes = tuple[
    Callable[[Decimals], tuple[Decimals, Decimals]],
    Callable[[FloatArray, float], tuple[FloatArray, FloatArray]],
]


def logistic_slopes(r: Decimals) -> tuple[Decimals, Decimals]:
    """u = -l'(-r) = 1/(1 + e^-r) of the logistic loss, and 1/l''."""
    e = np.array([(-x).exp() for x in r], dtype=object)
    return ONE / (ONE + e), (ONE + e) * (ONE + e) / e


def exponential_slopes(r: Decimals) -> tuple[Decimals, Decimals]:
    """u = -l'(-r) = e^r of the exponential loss, and 1/l''."""
    e = np.array([x.exp() for x in r], dtype=object)
    return e, ONE / e


def logistic_float_slopes(r: FloatArray, top: float) -> tuple[FloatArray, FloatArray]:
    """u and l'' of the logistic loss divided by e^top, top <= 0, in float64."""
    u = np.exp(np.minimum(r, 0.0) - top) / (1.0 + np.exp(-np.abs(r)))
    return u, u / (1.0 + np.exp(r))


def exponential_float_slopes(r: FloatArray, top: float) -> tuple[FloatArray, FloatArray]:
    """u and l'' of the exponential loss divided by e^top, in float64."""
    e = np.exp(r - top)
    return e, e


LOGISTIC: Slopes = (logistic_slopes, logistic_float_slopes)
EXPONENTIAL: Slopes = (exponential_slopes, exponential_float_slopes)


class PiecewiseQuadratic(Term):
    """Piecewise linear or quadratic losses with dual variables u, a and c."""

    def __init__(
        self,
        rows: Map,
        shift: Decimals,
        s: Decimals,
        quadratic: float,
        low: float,
        high: float,
    ) -> None:
        self.map, self.s, self.r = rows, s, shift.copy()
        n = len(shift)
        self.q = Decimal(quadratic)
        self.above, self.below = np.full(n, math.isfinite(high)), np.full(n, math.isfinite(low))
        self.high, self.low = (Decimal(x if math.isfinite(x) else 0.0) for x in (high, low))
        self.count = int(self.above.sum() + self.below.sum())
        self._start()

    def _start(self) -> None:
        """Start with u in the middle of its interval and with a and c that satisfy the residual equation."""
        n = len(self.r)
        size = max(sum((abs(x) for x in self.r), ZERO) / max(n, 1), Decimal("1e-300"))
        size = self.scale = size if any(self.r) else ONE
        if self.above.all() and self.below.all():
            self.u = np.full(n, (self.high + self.low) / 2, dtype=object)
        elif self.q > 0:
            u = self.r / (2 * self.q)
            if self.below.all():
                u = np.array([self.low + max(abs(x), size / (2 * self.q)) for x in u], dtype=object)
            self.u = u
        else:
            self.u = np.full(n, self.low + 1, dtype=object)
        rest = self.r - 2 * self.q * self.u
        root = np.array([(x * x + 4 * size * size).sqrt() for x in rest], dtype=object)
        self.a, self.c = only(self.above, (root + rest) / 2), only(self.below, (root - rest) / 2)

    def _distances(self) -> tuple[Decimals, Decimals]:
        up = np.where(self.above, self.high - self.u, np.full(len(self.u), ONE, dtype=object))
        down = np.where(self.below, self.u - self.low, np.full(len(self.u), ONE, dtype=object))
        return up, down

    def hessian(self) -> Decimals:
        """B' diag(s h) B with 1/h = 2 q + a/(high - u) + c/(u - low)."""
        self.up, self.down = self._distances()
        self.h = ONE / (2 * self.q + self.a / self.up + self.c / self.down)
        return self.map.gram(self.s * self.h)

    def gradient(self) -> Decimals:
        """-B'(s u)."""
        return -self.map.adjoint(self.s * self.u)

    @property
    def affine(self) -> Targets:
        """Targets of the predictor: products of 0."""
        return zeros(len(self.u)), zeros(len(self.u))

    def corrector_targets(self, change: Change, mu: Decimal) -> Targets:
        """Targets of the corrector: products of mu/s, with the second-order term."""
        _, du, da, dc = change
        return only(self.above, mu / self.s + da * du), only(self.below, mu / self.s - dc * du)

    def centring_targets(self, mu: Decimal) -> Targets:
        """Targets for centring: products of mu/s."""
        return only(self.above, mu / self.s), only(self.below, mu / self.s)

    def _errors(self, targets: Targets) -> tuple[Decimals, Decimals, Decimals]:
        first, second = targets[0] - self.a * self.up, targets[1] - self.c * self.down
        first, second = only(self.above, first), only(self.below, second)
        rho = self.r - 2 * self.q * self.u - self.a + self.c
        return first, second, rho - first / self.up + second / self.down

    def right_hand_side(self, targets: Targets) -> Decimals:
        """B'(s h push)."""
        return self.map.adjoint(self.s * self.h * self._errors(targets)[2])

    def change(self, step: Decimals, targets: Targets) -> Change:
        """Changes of r, u, a and c."""
        first, second, push = self._errors(targets)
        dr = -self.map.apply(step)
        du = (dr + push) * self.h
        da = only(self.above, (first + self.a * du) / self.up)
        dc = only(self.below, (second - self.c * du) / self.down)
        return dr, du, da, dc

    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest step that keeps u in its interval and a, c nonnegative."""
        _, du, da, dc = change
        up, down = self._distances()
        t = ONE
        pairs = ((self.a, da, self.above), (up, -du, self.above))
        for value, slope, mask in (*pairs, (self.c, dc, self.below), (down, du, self.below)):
            for x, y in zip(value[mask], slope[mask], strict=True):
                if y < 0:
                    t = min(t, -x / y * fraction)
        return t

    def advance(self, change: Change, t: Decimal) -> None:
        """Take a step of length t."""
        dr, du, da, dc = change
        self.r, self.u = self.r + t * dr, self.u + t * du
        self.a, self.c = self.a + t * da, self.c + t * dc

    def gap(self, change: Change | None = None, t: Decimal = ZERO) -> Decimal:
        """Sum of s times the complementarity products."""
        a, c, (up, down) = self.a, self.c, self._distances()
        if change is not None:
            _, du, da, dc = change
            a, c, up, down = a + t * da, c + t * dc, up - t * du, down + t * du
        total: Decimal = (self.s * (only(self.above, a * up) + only(self.below, c * down))).sum()
        return total

    def infeasibility(self) -> Decimal:
        """Sum of s |u rho|, with rho the error of the residual equation."""
        rho = self.r - 2 * self.q * self.u - self.a + self.c
        return sum((abs(x) for x in self.s * self.u * rho), ZERO)

    def _losses(self, r: Decimals) -> Decimal:
        """Sum of s max (u r - q u^2) over u in the interval."""
        total = ZERO
        for x, s, above, below in zip(r, self.s, self.above, self.below, strict=True):
            if self.q > 0:
                u = x / (2 * self.q)
            else:
                u = self.high if x > 0 and above else self.low
            u = min(u, self.high) if above else u
            u = max(u, self.low) if below else u
            total += s * u * (x - self.q * u)
        return total

    def value(self) -> Decimal:
        """Sum of the losses."""
        return self._losses(self.r)

    def excess(self, step: Decimals) -> Decimal:
        """Losses after a step of theta minus current losses."""
        return self._losses(self.r - self.map.apply(step)) - self._losses(self.r)


class HardMargin(PiecewiseQuadratic):
    """Constraint that all margins are at least 1: loss 0 there and infinite below, u >= 0."""

    def __init__(self, rows: Matrix) -> None:
        ones = np.full(len(rows.B), ONE, dtype=object)
        super().__init__(rows, ones, ones, 0.0, 0.0, math.inf)

    def excess(self, step: Decimals) -> Decimal:
        """First-order increase of 1/2 |w|^2 when w is scaled until the smallest margin is 1 again."""
        largest: Decimal = max(self.r - self.map.apply(step))
        price: Decimal = self.u.sum()
        return max(largest, ZERO) * price


class AbsolutePenalty(PiecewiseQuadratic):
    """L1 penalty: l1 times the absolute values of some coefficients."""

    def __init__(self, places: Any, units: Decimals, order: int, l1: float) -> None:
        self.penalised = places
        none, strength = zeros(len(places)), np.full(len(places), Decimal(l1), dtype=object)
        super().__init__(Coordinates(places, units, order), none, strength, 0.0, -1.0, 1.0)

    def thresholds(self, order: int) -> Decimals:
        """l1 of each coefficient, in column units."""
        return self.map.adjoint(self.s)


class Smooth(Term):
    """Losses that are curved everywhere, whose dual variables are functions of the margins."""

    def __init__(self, rows: Map, shift: Decimals, s: Decimals, slopes: Slopes) -> None:
        self.map, self.s, self.r = rows, s, shift.copy()
        self.slopes, self.float_slopes = slopes
        self.u, self.inverse = self.slopes(self.r)

    def hessian(self) -> Decimals:
        """B' diag(s l'') B."""
        return self.map.gram(self.s / self.inverse)

    def gradient(self) -> Decimals:
        """-B'(s u)."""
        return -self.map.adjoint(self.s * self.u)

    def right_hand_side(self, targets: Targets) -> Decimals:
        """Return 0: there are no complementarity products."""
        return ZERO

    def change(self, step: Decimals, targets: Targets) -> Change:
        """Change of r."""
        return (-self.map.apply(step),)

    def max_step(self, change: Change, fraction: Decimal) -> Decimal:
        """Largest tried step on which the slope grows little faster than the curvature predicts."""
        dr = change[0]
        least = damping(max((abs(x) for x in dr), default=ZERO))
        r, along, s = floats(self.r), floats(dr), floats(self.s / max(self.s))
        top = min(float(r.max(initial=-math.inf)), 0.0)  # all slopes are divided by e^top
        u, h = self.float_slopes(r, top)

        def increase(t: float) -> float:
            return float((s * along * (self.float_slopes(r + t * along, top)[0] - u)).sum())

        return longest_step(least, float((s * along * along * h).sum()), increase)

    def advance(self, change: Change, t: Decimal) -> None:
        """Take a step of length t."""
        self.r = self.r + t * change[0]
        self.u, self.inverse = self.slopes(self.r)

    def value(self) -> Decimal:
        """Sum of s u, a lower bound on the losses: -l' <= l for the logistic and the exponential loss."""
        total: Decimal = (self.s * self.u).sum()
        return total

    def excess(self, step: Decimals) -> Decimal:
        """Increase of the losses after a step of theta, to second order."""
        dr = -self.map.apply(step)
        total: Decimal = (self.s * dr * (self.u + dr / self.inverse / 2)).sum()
        return total
