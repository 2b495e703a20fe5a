"""Upper bounds on binomial tails, rounding included, for any number of rows.

P(X <= k) of X ~ Binomial(n, p) is P(X = k) times the sum of the products of the ratios

    P(X = i - 1)/P(X = i) = 1 - g_i,    g_i = ((n + 1) p - i)/((n - i + 1) p).

The first factor is computed in decimal arithmetic, because logarithms of factorials cancel: in float64, log(10^18!) has
no digits after the decimal point. The ratios decrease as i falls, so dividing k, k - 1, ... into blocks of equal length
and using the first ratio of each throughout bounds the sum from above; a geometric series bounds the remainder.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction

import numpy as np
from scipy.special import betainccinv, betaincinv

from linsep.arrays import FloatArray
from linsep.exact.decimals import many_digits

#: Maximum number of blocks of a sum, and blocks within one standard deviation if a block has several terms.
_BLOCKS = 20_000
_FINENESS = 1_000
_ROUNDOFF = 2.0**-53
#: Larger factorials use ten terms of Stirling's series; the first omitted term is below 1e-35.
_SMALL = 60
_STIRLING = (
    *(Fraction(1, 12), Fraction(-1, 360), Fraction(1, 1260), Fraction(-1, 1680), Fraction(1, 1188)),
    *(Fraction(-691, 360360), Fraction(1, 156), Fraction(-3617, 122400), Fraction(43867, 244188)),
    Fraction(-174611, 125400),
)
_HALF_LOG_TWO_PI = Decimal(
    "0.91893853320467274178032973640561763986139747363778341281715154048276569592726039769474"
)
#: Relative width at which the bisection for a limit stops.
_PRECISION = 2.0**-50


def log(x: float) -> Decimal:
    """Return the logarithm of a positive number."""
    with many_digits():
        return Decimal(x).ln()


def log_choices(n: int, k: int) -> Decimal:
    """Upper bound on log binom(n, k)."""
    with many_digits(_digits(n)):
        return _log_choose(n, k) + Decimal(10) ** -30


def log_growth(n: int, D: int) -> float:
    """Upper bound on log sum_{k <= D} binom(n, k), the largest number of labellings of n points (Sauer 1972)."""
    every = n * math.log(2) * (1 + 4 * _ROUNDOFF)
    if D >= n:
        return every
    with many_digits(_digits(n)):
        return min(_upwards(_log_choose(n, D) + _log_sum(D, n, Fraction(1, 2))), every)


def upper_limit(k: int, n: int, log_delta: Decimal) -> float:
    """The largest p with P(Binomial(n, p) <= k) >= delta, rounded upwards."""
    if k >= n:
        return 1.0

    def holds(p: float) -> bool:
        return p >= 1.0 or _log_tail(k, n, Fraction(p)) <= log_delta

    near = _proposal(betainccinv, log_delta, k + 1, n - k)
    return _least(holds, near or (k + 1) / (n + 1))


def lower_limit(k: int, n: int, log_delta: Decimal) -> float:
    """The smallest p with P(Binomial(n, p) >= k) >= delta, rounded downwards."""
    if k <= 0:
        return 0.0

    def holds(p: float) -> bool:
        return p <= 0.0 or (p < 1.0 and _log_tail(n - k, n, 1 - Fraction(p)) <= log_delta)

    near = _proposal(betaincinv, log_delta, k, n - k + 1)
    return _greatest(holds, near or k / (n + 1))


def _proposal(quantile: Callable[..., float], log_delta: Decimal, a: int, b: int) -> float:
    """Quantile of the beta distribution by scipy; 0 where scipy returns none."""
    found = float(quantile(float(a), float(b), math.exp(max(float(log_delta), -690.0))))
    return found if 0.0 < found < 1.0 else 0.0


def _least(holds: Callable[[float], bool], near: float) -> float:
    """Return nearly the smallest float for which ``holds`` is true, if it is monotone in p and true at 1."""
    low, high, step = -1.0, near, 8 * _ROUNDOFF
    while not holds(high):
        low, high, step = high, min(high * (1 + step), 1.0), 2 * step
    if low < 0.0:
        step = 8 * _ROUNDOFF
        while step < 0.5 and holds(low := near * (1 - step)):
            high, step = low, 2 * step
    return _between(holds, low, high)


def _greatest(holds: Callable[[float], bool], near: float) -> float:
    """Return nearly the largest float for which ``holds`` is true, if it is monotone in p and true at 0."""
    high, low, step = -1.0, near, 8 * _ROUNDOFF
    while not holds(low):
        high, low, step = low, low * max(1 - step, 0.0), 2 * step
    if high < 0.0:
        step = 8 * _ROUNDOFF
        while step < 0.5 and holds(high := min(near * (1 + step), 1.0)):
            low, step = high, 2 * step
    return _between(holds, high, low)


def _between(holds: Callable[[float], bool], fails: float, holding: float) -> float:
    """Bisect between a float for which ``holds`` is false and one for which it is true, to a relative precision."""
    while abs(holding - fails) > _PRECISION * max(holding, fails):
        middle = (holding + fails) / 2
        if middle in (holding, fails):
            break
        holding, fails = (middle, fails) if holds(middle) else (holding, middle)
    return holding


def _log_tail(k: int, n: int, p: Fraction) -> Decimal:
    """Upper bound on log P(Binomial(n, p) <= k), 0 < p < 1."""
    with many_digits(_digits(n)):
        at = _log_choose(n, k) + k * _log(p) + (n - k) * _log(1 - p)
        return at + Decimal(10) ** -30 + _log_sum(k, n, p)


def _log_sum(k: int, n: int, p: Fraction) -> Decimal:
    """Upper bound on log(P(X <= k)/P(X = k)); infinite if there are many terms and the mean is below k."""
    if k < _BLOCKS:  # all terms
        i = np.arange(k, 0, -1, dtype=np.float64)
        each = _log_of(1 - p) - _log_of(p)
        logs = np.log(i) + each - np.log(float(n - k) + 1.0 + (k - i))
        start = np.concatenate([[0.0], np.cumsum(logs)])
        peak = float(start.max())
        total = float(np.exp(start - peak).sum())
        return _sum_of(total, peak, start, 4.0 * (abs(each) + math.log(n + 2.0)))
    above = (n + 1) * p - k
    if not above > 0:
        return Decimal("inf")
    length = max(1, int(math.sqrt(n * float(p) * float(1 - p)) / _FINENESS))
    j = length * np.arange(min(_BLOCKS, k // length + 1), dtype=np.float64)
    g = (float(above) + j) / (float((n - k + 1) * p) + j * float(p))
    g = np.minimum(g, 1.0) * (1 - 16 * _ROUNDOFF)  # lower bound, rounding included
    logs = length * np.log1p(-g)
    start = np.concatenate([[0.0], np.cumsum(logs)])
    terms = -np.expm1(logs) / g
    total = float((np.exp(start[:-1]) * terms).sum() + math.exp(start[-1]) / g[-1])
    return _sum_of(total, 0.0, start[:-1], 1.0)


def _sum_of(total: float, peak: float, start: FloatArray, size: float) -> Decimal:
    """log(total) + peak plus the rounding error of ``start``, a running sum of logarithms of numbers of that size."""
    last = int(np.flatnonzero(start > peak - 100.0)[-1])  # smaller terms are negligible
    if len(start) == 1 or (last == 0 and total == 1.0):
        return Decimal(len(start)) * Decimal(2) ** -140
    reach = float(np.abs(np.diff(start[: last + 1])).sum()) + abs(peak)
    slack = _ROUNDOFF * (2.0 * len(start) * (reach + size) + 64.0)
    return Decimal(math.log(total)) + Decimal(peak) + Decimal(slack)


def _log_of(p: Fraction) -> float:
    """Return log p as a float, also for fractions below the smallest float."""
    return math.log(p.numerator) - math.log(p.denominator)


def _log_choose(n: int, k: int) -> Decimal:
    """Return log binom(n, k), with an error of 1e-34 relative to the terms of the largest factorial."""
    return _log_factorial(n) - _log_factorial(k) - _log_factorial(n - k)


def _log_factorial(n: int) -> Decimal:
    """Return log n! with an error of 1e-34, or of the precision of the decimal context."""
    if n <= _SMALL:
        return Decimal(math.factorial(n)).ln()
    x = Decimal(n)
    series = Decimal(0)
    for i, c in enumerate(_STIRLING):
        series += Decimal(c.numerator) / Decimal(c.denominator) / x ** (2 * i + 1)
    return (x + Decimal("0.5")) * x.ln() - x + _HALF_LOG_TWO_PI + series


def _log(x: Fraction) -> Decimal:
    return Decimal(x.numerator).ln() - Decimal(x.denominator).ln()


def _digits(n: int) -> int:
    """Number of digits for which log n! has about forty digits after the decimal point."""
    return 50 + 2 * len(str(n))


def _upwards(x: Decimal) -> float:
    """Return a float that is at least x."""
    return math.nextafter(math.nextafter(float(x), math.inf), math.inf)
