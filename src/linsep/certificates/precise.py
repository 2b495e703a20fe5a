"""The closing pass in about twice the working precision, for fits whose float64 certificate is lost in rounding.

Margins and v = sum s sigma u x come from ``exact.sliced``, so that cancellation between large numbers (columns with
large means, identifiers, timestamps, huge C) costs no accuracy. The remaining errors are those of evaluating losses
and conjugates, a few units roundoff of each term, and |m - m^|, where the margin m is rounded to a float64 number m^
to evaluate the loss.

The intercept's condition is met in the same precision: the masses of the two sides, the factor kappa between them and
kappa v are pairs of numbers, so the relative imbalance is 2^-98 and not 2^-53.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.closing import BoundedSums, from_sums
from linsep.certificates.optimality import Optimality
from linsep.certificates.parts import (
    Dual,
    Part,
    chunks,
    dual_point,
    partition_sums,
    vector_or_default,
)
from linsep.exact.sliced import PAIR_ERROR, Pair, scaled_product, transpose, two_product
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF, TINY, steepest_slope
from linsep.solution import Explicit

#: Relative error of a computed loss or conjugate: exp and log to 6 ulp, and a few operations.
_EVALUATION = 32 * ROUNDOFF
#: Relative error of the quotient of two masses, with u = 2^-53. Both are accurate to u^2. With q = fl(a.hi / b.hi), the
#: quotient is q + (a.hi - q b.hi + a.lo - q b.lo) / (b.hi + b.lo) exactly, and a.hi - q b.hi is computed without error
#: (the remainder of a division is a float64 number). The correction is at most 2 u; the roundings of the sum, of
#: q b.lo, of the difference and of the division, and b.lo in the divisor, cost 2, 1, 3, 3 and 3 u^2: 14 u^2 < 2^-102.
_PAIR_SHARE = 2.0**-98
#: Smaller masses are not represented as pairs, because their low parts may underflow.
_LEAST_MASS = 2.0**-900


class _Scalar(NamedTuple):
    """Unevaluated sum hi + lo of two numbers."""

    hi: float
    lo: float

    def over(self, other: _Scalar) -> _Scalar:
        """Quotient, accurate to about 2^-100."""
        hi = self.hi / other.hi
        p, e = (float(x[0]) for x in two_product(np.array([hi]), np.array([other.hi])))
        return _Scalar(hi, (((self.hi - p) - e) + self.lo - hi * other.lo) / other.hi)


def margins(X: Any, sign: FloatArray, offset: FloatArray, theta: FloatArray) -> Pair:
    """sigma (x.w + b) + offset of some rows, in about twice the working precision."""
    with np.errstate(over="ignore", invalid="ignore"):
        z = scaled_product(X, theta[:-1, None]).column(0)
        z = z.plus(Pair.of(np.full(len(sign), theta[-1])))
        return z.times_sign(sign).plus(Pair.of(offset))


def precise_certificate(part: Part) -> Optimality:
    """Dual certificate of a pointwise loss, from sums in about twice the working precision."""
    w = np.ascontiguousarray(part.W[:-1, 0])
    return from_sums(
        precise_sums(part), w, part.penalty, fit_intercept=part.fit_intercept, tol=part.tol
    )


class _Terms(NamedTuple):
    """Sums over some rows, whose exact or doubled-precision results can be added to those of other rows.

    Lists are unevaluated sums of their numbers; pairs belong to the rows with sigma u >= 0 and to the others.
    """

    values: list[float]
    conj: tuple[list[float], list[float]]
    mass: tuple[list[float], list[float]]
    v: tuple[Pair, Pair]
    error: float

    def plus(self, other: _Terms) -> _Terms:
        """Return the sums over the rows of both."""
        (a, b), (c, d) = self.conj, other.conj
        (e, f), (g, h) = self.mass, other.mass
        return _Terms(
            self.values + other.values,
            (a + c, b + d),
            (e + g, f + h),
            (self.v[0].plus(other.v[0]), self.v[1].plus(other.v[1])),
            self.error + other.error,
        )


def precise_sums(part: Part) -> BoundedSums:
    """Sums of the closing pass with bounds on their errors; the two sides are already balanced."""
    terms = reduce(_Terms.plus, partition_sums(part, _terms))
    return _assemble(terms, np.asarray(part.W, dtype=np.float64)[:-1, 0], part.fit_intercept)


def _terms(
    loss: Loss,
    X: Any,
    sigma: Any,
    offset: FloatArray | None,
    weight: FloatArray | None,
    W: FloatArray,
    dual: Dual,
) -> _Terms:
    """Sums over all rows of X."""
    d, theta = X.shape[1], np.asarray(W, dtype=np.float64)[:, 0]
    values: list[float] = []
    conj: tuple[list[float], list[float]] = [], []
    mass: tuple[list[float], list[float]] = [], []
    v = [Pair.of(np.zeros(d)), Pair.of(np.zeros(d))]
    error = 0.0
    for rows, block in chunks(X):
        s, o = vector_or_default(weight, rows, 1.0), vector_or_default(offset, rows, 0.0)
        sign = np.asarray(sigma[rows], dtype=np.float64)
        m = margins(block, sign, o, theta)
        u = dual_point(loss, dual, rows, block, sign, o, m.hi, s)
        low = _rest(loss, dual, rows, u, s)
        with np.errstate(over="ignore", invalid="ignore"):
            live = s > 0.0
            value = np.where(live, s * loss.value(m.hi), 0.0)
            e = np.abs(m.lo) + m.error + TINY
            error += float(np.where(live, s * steepest_slope(loss, m.hi, e) * e, 0.0).sum())
            base, plus = s * loss.conjugate(-u), sign * u >= 0.0
            shift, shift_lo = two_product(*np.broadcast_arrays(u, o))
            terms = [base, *_exact_products(s, shift), s * shift_lo]
            masses, columns = _exact_products(s, sign * u), transpose(block)
            error += _EVALUATION * float((value + np.abs(base)).sum())
            if low.any():
                terms.append(s * (low * o))
                masses += _exact_products(s, sign * low)
                error += float((s * _conjugate_error(loss, u)).sum())
                error += 4 * ROUNDOFF * float((s * np.abs(low * o)).sum())
            error += PAIR_ERROR * float((s * np.abs(shift)).sum()) + TINY * float((s + 1.0).sum())
            values += value.tolist()
            for side, mask in enumerate((plus, ~plus)):
                for term in terms:
                    conj[side].extend(term[mask].tolist())
                for p in (np.where(mask, p, 0.0) for p in masses):
                    mass[side].extend(p.tolist())
                    v[side] = v[side].plus(scaled_product(columns, p[:, None]).column(0))
    conj = _condensed(conj[0]), _condensed(conj[1])
    mass = _condensed(mass[0]), _condensed(mass[1])
    return _Terms(_condensed(values), conj, mass, (v[0], v[1]), error)


def _condensed(terms: list[float]) -> list[float]:
    """Return a few numbers with exactly the same sum: the rounded sum, the rounded remainder, and so on."""
    found: list[float] = []
    while (rounded := fsum([*terms, *(-part for part in found)])) != 0.0:
        found.append(rounded)
        if not math.isfinite(rounded):
            return [math.nan]
    return found


def _rest(loss: Loss, dual: Dual, rows: slice, u: FloatArray, s: FloatArray) -> FloatArray:
    """Low-order parts of a dual point that round away in u and keep the sum inside the domain."""
    if not isinstance(dual, Explicit) or dual.rest is None:
        return np.zeros_like(u)
    given_u = np.asarray(dual.u[rows], dtype=np.float64).reshape(u.shape)
    low = np.asarray(dual.rest[rows], dtype=np.float64).reshape(u.shape)
    least, most = loss.domain
    with np.errstate(invalid="ignore"):
        kept = (
            (u == given_u)
            & (np.abs(low) <= 0.5 * np.spacing(np.abs(u)))
            & (np.abs(low) * s >= TINY)
        )
        kept &= np.abs(low) >= TINY
        kept &= ((u > least) | (low > 0.0)) & ((u < most) | (low < 0.0))
    return np.where(kept, low, 0.0)


def _conjugate_error(loss: Loss, u: FloatArray) -> FloatArray:
    """Bound on l*(-u') - l*(-u) for all u' within one ulp of u; by convexity of l*, attained at a neighbour."""
    least, most = loss.domain
    here = loss.conjugate(-u)
    ends = [
        loss.conjugate(-np.clip(np.nextafter(u, way), least, most)) for way in (-np.inf, np.inf)
    ]
    size = np.maximum(*(np.abs(end) for end in ends)) + np.abs(here)
    return np.asarray(np.maximum(*ends) - here).clip(0.0) + _EVALUATION * size


def _exact_products(a: FloatArray, b: FloatArray) -> list[FloatArray]:
    """a b as one vector, or as a sum of two if the product is rounded."""
    p, e = two_product(a, b)
    return [p, e] if np.any(e != 0.0) else [p]


def _assemble(terms: _Terms, w: FloatArray, fit_intercept: bool) -> BoundedSums:
    """Balance the two sides; the result has all sums on one side."""
    values, conj, mass, v, error = terms
    sides = [_pair_sum(side) for side in mass]
    sides[1] = _Scalar(-sides[1].hi, -sides[1].lo)
    factors = [_Scalar(1.0, 0.0), _Scalar(1.0, 0.0)]
    if fit_intercept:
        heavy = int((sides[1].hi, sides[1].lo) > (sides[0].hi, sides[0].lo))
        light = sides[1 - heavy]
        if sides[heavy].hi > 0.0:
            factors[heavy] = light.over(sides[heavy])
        if 0.0 < sides[heavy].hi < _LEAST_MASS:
            error = math.inf
    with np.errstate(over="ignore", invalid="ignore"):
        balanced = v[0].times(factors[0]).plus(v[1].times(factors[1]))
        v_error = balanced.error + np.abs(balanced.lo) + ROUNDOFF * np.abs(balanced.hi)
        v_error += _PAIR_SHARE * (np.abs(v[0].hi) + np.abs(v[1].hi))
        sums = [_pair_sum(side) for side in conj]
        total = math.fsum(part for f, c in zip(factors, sums, strict=True) for part in _times(f, c))
        share = _PAIR_SHARE * sum(abs(c.hi) for c in sums)
        return BoundedSums(
            loss=fsum(values),
            conj=(total, 0.0),
            mass=(1.0, 1.0),
            v=(balanced.hi, np.zeros_like(balanced.hi)),
            terms_error=error + share + 4 * ROUNDOFF * abs(total),
            v_error=_length(v_error),
            v_error_along=float(np.abs(w) @ v_error),
            v_error_entry=float(v_error.max(initial=0.0)),
            mass_share=0.0,
        )


def _times(a: _Scalar, b: _Scalar) -> list[float]:
    p, e = (float(x[0]) for x in two_product(np.array([a.hi]), np.array([b.hi])))
    return [p, e, a.hi * b.lo, a.lo * b.hi]


def fsum(terms: Iterable[float]) -> float:
    """Correctly rounded sum; NaN if a term is not finite."""
    try:
        return math.fsum(terms)
    except (OverflowError, ValueError):
        return math.nan


def _pair_sum(terms: list[float]) -> _Scalar:
    """Sum to about 106 bits: the correctly rounded sum, and its rounding error."""
    hi = fsum(terms)
    return _Scalar(hi, fsum([*terms, -hi]) if math.isfinite(hi) else math.nan)


def _length(a: FloatArray) -> float:
    return math.sqrt(float(a @ a))
