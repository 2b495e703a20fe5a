"""Exact primal and dual values for penalties with factors and groups of features.

In reported units, with r = l1_ratio, and the factors p_j and weights q_g = p_g sqrt(d_g) taken as float64 numbers,

    P = sum_j (1 - r)/2 p_j w_j^2 + r sum_g q_g |w_g| + C sum s l(m)
    D = -C sum s (l*(-u) + u offset) - sum_g max(C |v_g| - r q_g, 0)^2/(2 (1 - r) p_g).

v_j = 0 is required where p_j = 0, and achieved exactly by changing u in a few rows (``dual``); with r = 1, all
C |v_g| <= q_g is achieved by shrinking u. Norms of several numbers are enclosed by rational numbers.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from linsep.certificates.exact.dual import Rows, Target, candidates, without_residual
from linsep.certificates.exact.losses import Interval
from linsep.certificates.recheck import Dual
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


class GroupTerms:
    """Terms of a penalty with factors and groups in P and D."""

    def __init__(self, penalty: ElasticNet) -> None:
        assert isinstance(penalty, GroupElasticNet)
        self.C, self.r = Fraction(penalty.C), Fraction(penalty.l1_ratio)
        self.factor = [Fraction(p) for p in penalty.factor.tolist()]
        flat = self.r * Fraction(penalty.l1_scale)
        self.weight = [flat * Fraction(q) for q in penalty.group_weights.tolist()]
        self.members = [
            np.flatnonzero(penalty.group == g).tolist() for g in range(len(self.weight))
        ]
        self.free = [j for j, p in enumerate(self.factor) if p == 0]

    @property
    def strength(self) -> Fraction:
        """Modulus of strong convexity of P, in reported units."""
        return (1 - self.r) * min(self.factor)

    def primal(self, rows: Rows) -> Interval:
        """Enclosure of P."""
        w = [Fraction(x) for x in rows.W[:-1, 0].tolist()]
        ridge = sum((p * x * x for p, x in zip(self.factor, w, strict=True)), Fraction(0))
        total = rows.primal().times(self.C) + Interval.of((1 - self.r) / 2 * ridge)
        for weight, members in zip(self.weight, self.members, strict=True):
            if weight:
                total += enclose_norm([w[j] for j in members]).times(weight)
        return total

    def bounds(self, rows: Rows, dual: Dual, fit_intercept: bool) -> Iterator[Fraction]:
        """Yield lower bounds on the objective, the cheapest first."""
        for point, sums in candidates(rows, dual, self._target(rows, fit_intercept)):
            if self.free:
                cleared = without_residual(rows, point, sums, fit_intercept, self.free)
                if cleared is None:
                    continue
                entropy, v = cleared.plain()
            else:
                entropy, v = sums.balance() if fit_intercept else sums.plain()
            yield self._dual_value(self.C * entropy.low, [self.C * x for x in v])

    def _target(self, rows: Rows, fit_intercept: bool) -> Target:
        """Value of v at an optimum with these coefficients."""
        w = [Fraction(x) for x in rows.W[:-1, 0].tolist()]
        v = [(1 - self.r) / self.C * p * x for p, x in zip(self.factor, w, strict=True)]
        active = np.ones(len(w) + 1, dtype=bool)
        active[-1] = fit_intercept
        for weight, members in zip(self.weight, self.members, strict=True):
            norm = enclose_norm([w[j] for j in members]).low if weight else Fraction(0)
            for j in members:
                v[j] += weight / self.C * w[j] / norm if norm else Fraction(0)
                active[j] = not weight or bool(norm)
        ridge = [float((1 - self.r) / self.C * p) for p in self.factor]
        return Target.from_v(active, [*v, Fraction(0)], np.array([*ridge, 0.0]))

    def _dual_value(self, gain: Fraction, v: list[Fraction]) -> Fraction:
        """D from minus the sum of conjugates and v, both multiplied by C; v_j = 0 in unpenalised features."""
        pairs = [
            (enclose_norm([v[j] for j in members]).high, weight, self.factor[members[0]])
            for weight, members in zip(self.weight, self.members, strict=True)
            if self.factor[members[0]]
        ]
        if self.r == 1:
            return gain / max([Fraction(1), *(norm / weight for norm, weight, _ in pairs)])
        parts = [max(norm - weight, Fraction(0)) ** 2 / p for norm, weight, p in pairs]
        cost = sum(parts, Fraction(0)) / (1 - self.r)
        shorter = self.r == 0 and 0 < gain < cost
        return gain * gain / (2 * cost) if shorter else gain - cost / 2
