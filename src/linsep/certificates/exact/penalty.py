"""Exact primal and dual values of every penalty: elastic nets, penalty factors and groups of features.

In reported units, with r = l1_ratio, and the factors p_j and weights q_g = p_g sqrt(d_g) taken as float64 numbers,

    P = sum_j (1 - r)/2 p_j w_j^2 + r sum_g q_g |w_g| + C sum s l(m)
    D = -C sum s (l*(-u) + u offset) - sum_g max(C |v_g| - r q_g, 0)^2/(2 (1 - r) p_g).

The plain elastic net has p_j = 1 and one group for each coefficient; C = inf has p_j = 0 and the factor 1 instead of C.
v_j = 0 is required where p_j = 0, and achieved exactly by changing u in a few rows (``dual``); with r = 1, all
C |v_g| <= q_g is achieved by shrinking u. Norms of several numbers are enclosed by rational numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from linsep.certificates.exact.dual import (
    Rows,
    Target,
    candidates,
    sums_with_zero_v,
    without_residual,
)
from linsep.certificates.exact.losses import Interval
from linsep.certificates.parts import Dual
from linsep.penalties import ElasticNet, GroupElasticNet

#: Relative accuracy of an enclosed norm, in bits.
_BITS = 200


def enclose_norm(x: list[Fraction]) -> Interval:
    """Enclose the Euclidean norm: exactly for one number, otherwise to about 200 bits."""
    if len(x) == 1:
        return Interval.of(abs(x[0]))
    square = sum((y * y for y in x), Fraction(0))
    if square == 0:
        return Interval.of(Fraction(0))
    size = square.numerator.bit_length() - square.denominator.bit_length()
    shift = 2 * max(0, _BITS - size // 2)
    scaled = (square.numerator << shift) // square.denominator
    root, unit = math.isqrt(scaled), Fraction(1, 1 << (shift // 2))
    return Interval(root * unit, (root + 1) * unit)


class PenaltyTerms:
    """Terms of a penalty on ``count`` coefficients in P and D."""

    def __init__(self, penalty: ElasticNet, count: int) -> None:
        infinite = math.isinf(penalty.C)
        self.C = Fraction(1) if infinite else Fraction(penalty.C)
        self.r = Fraction(0) if infinite else Fraction(penalty.l1_ratio)
        if isinstance(penalty, GroupElasticNet):
            factor, weight, group = penalty.factor, penalty.group_weights, penalty.group
        else:
            factor = np.full(count, 0.0 if infinite else 1.0)
            weight, group = factor, np.arange(count)
        self.factor = [Fraction(p) for p in factor.tolist()]
        flat = self.r * Fraction(getattr(penalty, "l1_scale", 1.0))
        self.weight = [flat * Fraction(q) for q in weight.tolist()]
        self.members: list[list[int]] = [[] for _ in self.weight]
        for j, g in enumerate(group.tolist()):
            self.members[g].append(j)
        self.free = [j for j, p in enumerate(self.factor) if p == 0]

    @property
    def strength(self) -> Fraction:
        """Modulus of strong convexity of P, in reported units."""
        return (1 - self.r) * min(self.factor)

    def primal(self, rows: Rows) -> Interval:
        """Enclosure of P."""
        w = _coefficients(rows)
        ridge = sum((p * x * x for p, x in zip(self.factor, w, strict=True) if x), Fraction(0))
        norms = Interval.of((1 - self.r) / 2 * ridge)
        for weight, members in zip(self.weight, self.members, strict=True):
            if weight:
                norms += enclose_norm([w[j] for j in members]).times(weight)
        return rows.primal().times(self.C) + norms

    def bounds(self, rows: Rows, dual: Dual, fit_intercept: bool) -> Iterator[Fraction]:
        """Yield lower bounds on the objective, the cheapest first.

        First with v = sum s sigma u x near its value at the optimum; then with v exactly zero, which is feasible for
        every penalty, and the only choice without one or where C is so large that the penalty is lost in rounding.
        """
        if len(self.free) < len(self.factor):
            for point, sums in candidates(rows, dual, self._target(rows, fit_intercept)):
                if self.free:
                    cleared = without_residual(rows, point, sums, fit_intercept, self.free)
                    if cleared is None:
                        continue
                    entropy, v = cleared.plain()
                else:
                    entropy, v = sums.balance() if fit_intercept else sums.plain()
                yield self._dual_value(self.C * entropy.low, [self.C * x for x in v])
        for sums in sums_with_zero_v(rows, dual, fit_intercept):
            if sums is not None:
                yield self.C * sums.plain()[0].low

    def _target(self, rows: Rows, fit_intercept: bool) -> Target:
        """Value of v at an optimum with these coefficients."""
        w, k = _coefficients(rows), rows.k
        v = [(1 - self.r) / self.C * p * x for p, x in zip(self.factor, w, strict=True)]
        active = np.ones(len(w), dtype=bool)
        for weight, members in zip(self.weight, self.members, strict=True):
            norm = enclose_norm([w[j] for j in members]).low if weight else Fraction(0)
            for j in members:
                v[j] += weight / self.C * w[j] / norm if norm else Fraction(0)
                active[j] = not weight or bool(norm)
        ridge = np.array([float((1 - self.r) / self.C * p) for p in self.factor])
        return Target(
            np.append(active, np.full(k, fit_intercept)).reshape(-1, k),
            v + [Fraction(0)] * k,
            np.append(ridge, np.zeros(k)).reshape(-1, k),
        )

    def _dual_value(self, gain: Fraction, v: list[Fraction]) -> Fraction:
        """D from minus the sum of conjugates and v, both multiplied by C; v_j = 0 in unpenalised features."""
        pairs = [
            (enclose_norm([v[j] for j in members]).high, weight, self.factor[members[0]])
            for weight, members in zip(self.weight, self.members, strict=True)
            if self.factor[members[0]]
        ]
        if self.r == 1:
            return gain / max([Fraction(1), *(norm / weight for norm, weight, _ in pairs)])
        parts = [(norm - weight) ** 2 / p for norm, weight, p in pairs if norm > weight]
        cost = sum(parts, Fraction(0)) / (1 - self.r)
        # A dual point that is too long is replaced by the best multiple of itself, as in problem.duality.
        shorter = self.r == 0 and 0 < gain < cost
        return gain * gain / (2 * cost) if shorter else gain - cost / 2


def _coefficients(rows: Rows) -> list[Fraction]:
    """Coefficients without the intercepts, class by class within each feature."""
    return [Fraction(x) for x in rows.W[:-1].ravel().tolist()]
