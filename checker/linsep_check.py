#!/usr/bin/env python3
"""Prove or reject a model of linsep from its file and its rows, in exact arithmetic.

    python linsep_check.py model.linsep rows.npz        arrays X (or a CSR matrix), y and perhaps sample_weight
    python linsep_check.py model.linsep rows.csv        a header, numbers, the target in the last column

One line is printed. Exit code 0: the coefficients minimise the objective to the tolerance the model states, and every
claim of its certificate is true. 1: something is not, or could not be proven. 2: a file cannot be used.

This file needs Python 3.10 and nothing else: it imports neither linsep nor numpy, so that an error there cannot hide
here. Floats are fractions with a power of two below, and Python's integers do not round; exp and log are enclosed
between fractions. The mathematics, for a pointwise loss l of margins m = sigma (x.w + b) + offset:

    P(w, b) = (1 - r)/2 |w|^2 + r |w|_1 + C sum s l(m)                                 the objective, r = l1_ratio
    D(u)    = -C sum s (l*(-u) + u offset) - sum_j max(C |v_j| - r, 0)^2 / (2 (1 - r)),   v = sum s sigma u x

D(u) is at most the minimum of P for every u in the domain of the conjugate l* with sum s sigma u = 0 (if there is an
intercept). If r = 1, all C |v_j| <= 1 is needed; if C = inf, where P is the sum of s l(m) alone, v = 0. With factors
p_j and groups of features, w_j^2 counts p_j times and norms |w_g| take the place of |w_j|: see ``Penalty``. Where u
comes from does not matter. Three are tried: the one in the file, and Newton's step on the dual from there and from the
slopes of the losses, whose equations are solved exactly where v = 0 is needed. docs/model-format.md describes the
files.
"""

import ast
import csv
import hashlib
import json
import math
import re
import struct
import sys
import zipfile
from dataclasses import dataclass, field
from decimal import Decimal, localcontext
from fractions import Fraction
from pathlib import Path

ZERO, ONE, HALF = Fraction(0), Fraction(1), Fraction(1, 2)
#: Unit roundoff of float64: what a claim may differ from the truth by is measured in it.
ROUNDOFF = Fraction(1, 2**53)
#: Without a penalty, an objective of at most tol times this share of the zero model\'s is an exact fit.
EXACT_FIT = Fraction(1, 10**6)
UNDERFLOW = Fraction(1, 2**1068)  # a few times what is lost where an objective underflows
#: Newton steps on the dual of a smooth loss, as long as each improves the bound.
STEPS = 30
#: Shares by which all dual variables are moved towards 0; the bound loses no more than that.
SHRINK = (Fraction(1, 1 << 34), Fraction(1, 1 << 25))
#: Distance of a u from the end of its domain that lets it move.
NEXT = Fraction(1, 1 << 200)
#: Ways to solve a system of scaled columns that may depend on each other up to their last digits: the power of 10 up to
#: which a pivot means that its column depends on those before it, and the number that is added to the diagonal.
WAYS = ((-190, 0), (-24, 0), (-190, Decimal("1e-16")))


class Unusable(Exception):
    """A file cannot be used: exit code 2."""


class Rejected(Exception):
    """A claim is not true, or not proven: exit code 1."""


# ---------------------------------------------------------------------------------------------------------------
# exp and log between fractions


def _atanh(t, bits):
    """atanh(t / 2^bits) 2^bits for |t| <= 2^bits / 3, short of the truth by less than bits units."""
    square, power, total, j = t * t >> bits, t, 0, 1
    while power not in (0, -1):
        total += power // j
        power = power * square >> bits
        j += 2
    return total


class Precision:
    """Bits that are computed with; ``extra`` more where a loss is multiplied with 2^extra.

    ``bits`` are behind the point in exp and log, ``grid`` in their sums; ``digits`` are the significant bits of dual
    variables, ``kinked`` those of kinked losses, where tiny targets need more; ``decimals`` are the significant digits
    of linear equations.
    """

    def set(self, extra, wide=0):
        """Prepare for weights of up to 2^extra, at most 2^14, and for features times targets of up to 2^wide."""
        self.bits, self.grid = 322 + extra, 264 + extra
        self.digits, self.kinked = 220 + extra + wide, 500 + extra + wide
        self.decimals = 220 + (extra + wide) * 302 // 1000
        self.ln2 = 2 * _atanh((1 << self.bits) // 3, self.bits)  # errs by less than 2^15 units


precision = Precision()
precision.set(0)


def exp_bounds(x):
    """Two fractions around e^x.

    x = k ln 2 + 1024 t with |t| < 2^-11: Taylor's series of t and ten squarings. In units of 2^-bits, k ln 2 errs by
    less than 2^15 |k| + 1 <= 2^31 + 1, t by less than 2^21 + 1, the series by less than 2^22, and ten squarings of
    numbers below 1.5 make 2^16 times that: 2^39 units bound all of it, and the relative error is below 2^-280.
    """
    bits = precision.bits
    k = round(x / Fraction(precision.ln2, 1 << bits))
    if abs(k) > 1 << 16:
        if k < 0:
            return ZERO, Fraction(1, 1 << (1 << 16))
        raise Rejected("a loss exceeds 2^65536")
    t = (math.floor(x * (1 << bits)) - k * precision.ln2) >> 10
    term = total = 1 << bits
    j = 1
    while term not in (0, -1):
        term = (term * t >> bits) // j
        total += term
        j += 1
    for _ in range(10):
        total = total * total >> bits
    scale = Fraction(2) ** (k - bits)
    return (total - (1 << 39)) * scale, (total + (1 << 39)) * scale


def log_bounds(y):
    """Two fractions around log y: y = 2^k z with z in [2/3, 4/3], log z = 2 atanh((z - 1)/(z + 1))."""
    k = y.numerator.bit_length() - y.denominator.bit_length()
    z = y / Fraction(2) ** k
    while z > Fraction(4, 3):
        z, k = z / 2, k + 1
    while z < Fraction(2, 3):
        z, k = z * 2, k - 1
    unit = 1 << precision.bits
    found = 2 * _atanh(math.floor((z - 1) / (z + 1) * unit), precision.bits) + k * precision.ln2
    error = (abs(k) + 1) << 16
    return Fraction(found - error, unit), Fraction(found + error, unit)


def on_grid(x, down=True):
    """A multiple of 2^-grid not above (or not below) x, so that sums of logarithms stay short."""
    unit = 1 << precision.grid
    return Fraction(math.floor(x * unit) if down else math.ceil(x * unit), unit)


def p_log_p(p):
    """Bounds of p log p for 0 <= p, 0 at 0."""
    if p == 0:
        return ZERO, ZERO
    if p.denominator.bit_length() <= precision.bits:
        low, high = log_bounds(p)
        return p * low, p * high
    # the logarithm of a long fraction lies between those of its neighbours on the grid
    below, above = on_grid(p), on_grid(p, down=False)
    high = log_bounds(above)[1]
    low = log_bounds(below)[0] if below > 0 else None
    if low is None:  # 0 < p < 2^-grid: p log p > -2^(14 - grid), as grid < 2^14
        return Fraction(-1, 1 << (precision.grid - 14)), ZERO
    return (above if low < 0 else below) * low, (below if high < 0 else above) * high


# ---------------------------------------------------------------------------------------------------------------
# losses


#: Losses made of lines.
_STRAIGHT = ("Hinge", "Absolute", "Perceptron", "Pinball", "EpsilonInsensitive")


@dataclass
class Pointwise:
    """A loss of one margin. Its text in the file is a record ``loss:Name``."""

    kind: str
    width: Fraction = ONE
    centre: Fraction = ONE
    quantile: Fraction = HALF
    epsilon: Fraction = ZERO  # residuals up to this size cost nothing

    @property
    def curved(self):
        """Whether the slope is continuous."""
        return self.kind not in _STRAIGHT

    @property
    def transcendental(self):
        """Whether its values are no fractions."""
        return self.kind in ("Logistic", "Exponential")

    @property
    def domain(self):
        """The interval of u with a finite l*(-u); None is infinity."""
        return {
            "Logistic": (ZERO, ONE),
            "Exponential": (ZERO, None),
            "Squared": (None, None),
            "SquaredHinge": (ZERO, None),
            "HuberisedHinge": (ZERO, ONE),
            "Huber": (-self.width, self.width),
            "Hinge": (ZERO, ONE),
            "Perceptron": (ZERO, ONE),
            "Absolute": (-ONE, ONE),
            "Pinball": (self.quantile - 1, self.quantile),
            "EpsilonInsensitive": (-ONE, ONE),
            "SquaredEpsilonInsensitive": (None, None),
        }[self.kind]

    @property
    def square(self):
        """q of l*(-u) = q u^2 + epsilon |u| - centre u."""
        quarter = dict.fromkeys(
            ("Squared", "SquaredHinge", "SquaredEpsilonInsensitive"), Fraction(1, 4)
        )
        bent = {"HuberisedHinge": self.width / 2, "Huber": HALF}
        return {**quarter, **bent}.get(self.kind, ZERO)

    def freedom(self, u):
        """One over the curvature of l*, where it has one; else the squared distance to the ends of the domain."""
        if self.kind == "Logistic":
            return u * (1 - u)
        if self.kind == "Exponential":
            return u
        low, high = self.domain
        return 1 / (2 * self.square) if self.square else min(u - low, high - u) ** 2

    def value(self, m):
        """Bounds of l(m)."""
        if self.kind == "Exponential":
            return exp_bounds(-m)
        if self.kind == "Logistic":  # log(1 + e^-|m|), and |m| more on the wrong side
            low, high = exp_bounds(-abs(m))
            more = max(-m, ZERO)
            return more + log_bounds(1 + on_grid(low))[0], more + log_bounds(
                1 + on_grid(high, down=False)
            )[1]
        r = self.centre - m
        if self.kind in ("SquaredHinge", "HuberisedHinge", "Hinge", "Perceptron"):
            r = max(r, ZERO)
        if self.kind == "Pinball":
            r = max(self.quantile * r, (self.quantile - 1) * r)
        r = max(abs(r) - self.epsilon, ZERO)
        if self.kind in ("Squared", "SquaredHinge", "SquaredEpsilonInsensitive"):
            r = r * r
        elif self.kind in ("Huber", "HuberisedHinge"):
            bent = min(r, self.width)
            r = bent * (r - bent / 2)
            if self.kind == "HuberisedHinge":
                r /= self.width
        return r, r

    def conjugate(self, u):
        """Bounds of l*(-u), u inside the domain."""
        if self.kind == "Logistic":
            a, b = p_log_p(u), p_log_p(1 - u)
            return a[0] + b[0], a[1] + b[1]
        if self.kind == "Exponential":
            a = p_log_p(u)
            return a[0] - u, a[1] - u
        value = self.square * u * u + self.epsilon * abs(u) - self.centre * u
        return value, value

    def slope(self, m):
        """A number near -l'(m), inside the domain."""
        r = self.centre - m
        r -= clip(r, -self.epsilon, self.epsilon)
        low, high = self.domain
        if self.kind == "Exponential":
            u = exp_bounds(-m)[0]
        elif self.kind == "Logistic":
            e = exp_bounds(-abs(m))[0]
            u = (ONE if m < 0 else e) / (1 + e)
        elif self.kind in ("Squared", "SquaredHinge", "SquaredEpsilonInsensitive"):
            u = 2 * r
        elif self.kind == "HuberisedHinge":
            u = r / self.width
        elif self.kind == "Huber":
            u = r
        else:
            u = Fraction((r > 0) - (r < 0))
        return clip(rounded(u), low, high)

    def curvature_bounds(self, m, t):
        """Bounds of l'' over the margins [m - t, m + t]."""
        if self.transcendental:  # moving the margin by t changes l'' by a factor of at most e^t
            e = exp_bounds(-abs(m)) if self.kind == "Logistic" else exp_bounds(-m)
            low, high = (x / (1 + x) ** 2 if self.kind == "Logistic" else x for x in e)
            return low * exp_bounds(-t)[0], high * exp_bounds(t)[1]
        r, size = self.centre - m, 2 * self.square
        first, last = {
            "Squared": (None, None),
            "SquaredHinge": (ZERO, None),
            "HuberisedHinge": (ZERO, self.width),
            "Huber": (-self.width, self.width),
            "SquaredEpsilonInsensitive": (-self.epsilon, self.epsilon),
        }[self.kind]
        inside = (first is None or r - t > first) and (last is None or r + t < last)
        outside = (first is not None and r + t < first) or (last is not None and r - t > last)
        if self.kind == "SquaredEpsilonInsensitive":  # flat inside, curved outside
            inside, outside = outside, inside
        return ZERO if not inside else 1 / size, ZERO if outside else 1 / size

    def curvature(self, m):
        """A number near l''(m)."""
        u, r = self.slope(m), self.centre - m
        low, high = self.domain
        if self.kind == "Logistic":
            return u * (1 - u)
        if self.kind == "Exponential":
            return u
        if self.kind == "Squared" or (self.kind == "SquaredHinge" and r > 0):
            return Fraction(2)
        if self.kind == "SquaredEpsilonInsensitive":
            return Fraction(2) if u else ZERO
        inside = (low is None or u > low) and (high is None or u < high)
        if self.kind == "HuberisedHinge" and inside:
            return 1 / self.width
        return ONE if self.kind == "Huber" and inside else ZERO


def clip(x, low, high):
    """x, or the end of the interval next to it."""
    x = x if low is None else max(x, low)
    return x if high is None else min(x, high)


def rounded(x, digits=None):
    """x to so many significant bits."""
    if x == 0:
        return ZERO
    digits = digits or precision.digits
    scale = Fraction(2) ** (digits - (x.numerator.bit_length() - x.denominator.bit_length()))
    return Fraction(round(x * scale)) / scale


def short(x):
    """x to 24 bits, so that matrices made of it stay small."""
    return rounded(x, 24)


def root_bounds(x):
    """Two fractions around the square root of x >= 0, relatively 2^-digits apart at most."""
    if x == 0:
        return ZERO, ZERO
    size = x.numerator.bit_length() - x.denominator.bit_length()
    bits = precision.digits - size // 2
    unit = Fraction(2) ** bits
    whole = math.isqrt(math.floor(x * unit * unit))
    return whole / unit, (whole + 1) / unit


def length_bounds(x):
    """Bounds of the length of a vector; no rounding for one number."""
    return (abs(x[0]),) * 2 if len(x) == 1 else root_bounds(sum(a * a for a in x))


# ---------------------------------------------------------------------------------------------------------------
# one problem: the rows, the coefficients, and bounds of the minimum


@dataclass
class Sums:
    """What a dual point adds up to: minus the conjugates (a lower bound), v, and the sums for the intercepts."""

    gain: Fraction
    v: list
    free: list


@dataclass
class Penalty:
    """sum_j p_j (1 - r)/2 w_j^2 + r sum_g h_g |w_g|_2, to which C times the losses are added.

    The elastic net has p = h = 1 and groups of one feature. A group with p = 0 has h = 0: it is not penalised at all.
    """

    C: Fraction  # None: infinity, and no penalty
    r: Fraction
    p: list  # one factor for each feature
    groups: list  # lists of features
    h: list  # one number for each group

    def value(self, W):
        """Bounds of the penalty."""
        low = high = ZERO
        for w in W:
            ridge = (1 - self.r) / 2 * sum(p * x * x for p, x in zip(self.p, w))
            low, high = low + ridge, high + ridge
            for features, h in zip(self.groups, self.h) if self.r else ():
                a, b = length_bounds([w[j] for j in features])
                low, high = low + self.r * h * a, high + self.r * h * b
        return low, high

    def dual(self, gain, V):
        """The lower bound from a gain and v of each class, or None if a feature without penalty has v != 0."""
        cost, largest = ZERO, ONE
        for v in V:
            for features, h in zip(self.groups, self.h):
                length, p = self.C * length_bounds([v[j] for j in features])[1], self.p[features[0]]
                if length and not p:
                    return None
                if self.r == 1:
                    largest = max(largest, length / h if p else ONE)
                elif length > self.r * h:
                    cost += (length - self.r * h) ** 2 / (p * (1 - self.r))
        if self.r == 0 and 0 < gain < cost:  # the best multiple t u, 0 <= t <= 1
            return gain * gain / (2 * cost)
        return gain / largest - cost / 2

    def gradient(self, w):
        """Yield j, the derivative in w_j over C, and that of its quadratic part in w_j, where w decides them."""
        for features, h in zip(self.groups, self.h):
            length = length_bounds([w[j] for j in features])[0]
            if not length and self.r * h:
                continue
            for j in features:
                lam = (1 - self.r) * self.p[j] / self.C
                norm = rounded(self.r * h / self.C * w[j] / length) if self.r * h else ZERO
                yield j, lam * w[j] + norm, lam

    @property
    def unpenalised(self):
        """The features whose v must be 0."""
        return [j for j, p in enumerate(self.p) if not p]

    @property
    def strength(self):
        """The largest number with value(w) - strength/2 |w|^2 convex."""
        return ZERO if self.C is None else (1 - self.r) * min(self.p, default=ONE)


@dataclass
class Problem:
    """Rows as lists of (column, integer) in units of 2^-unit, weights, coefficients W of k columns, the recipe."""

    rows: list
    unit: int
    d: int
    s: list
    W: list  # k lists of d + 1 fractions, the intercept last
    penalty: Penalty
    fit_intercept: bool
    scores: list = field(default_factory=list)

    def __post_init__(self):
        self.C = self.penalty.C
        self.scale = Fraction(1, 1 << self.unit)
        for row in self.rows:
            self.scores.append([self.scale * sum(x * w[j] for j, x in row) + w[-1] for w in self.W])

    def primal(self):
        """Bounds of the objective at the coefficients."""
        low, high = ZERO, ZERO
        for i, s in enumerate(self.s):
            if s:
                a, b = self.loss_at(i)
                if a != b:
                    a, b = on_grid(a), on_grid(b, down=False)
                low, high = low + s * a, high + s * b
        if self.C is None:
            return low, high
        least, most = self.penalty.value(self.W)
        return self.C * low + least, self.C * high + most

    def dual(self, sums):
        """D of a dual point, or None where it proves nothing."""
        if self.C is None:
            return None if any(sums.v) or (self.fit_intercept and any(sums.free)) else sums.gain
        V = [sums.v[c * self.d : (c + 1) * self.d] for c in range(len(self.W))]
        return self.penalty.dual(self.C * sums.gain, V)

    def active(self, free=False):
        """The coefficients (c, j) whose v is known at an optimum, with that v; j = d is the intercept."""
        found = []
        for c, w in enumerate(self.W):
            if free:
                found += [(c, j, ZERO, ZERO) for j in range(self.d)]
            else:
                found += [(c, *each) for each in self.penalty.gradient(w)]
            if self.fit_intercept:
                found.append((c, self.d, ZERO, ZERO))
        return found

    def feasible(self, point):
        """The sums of the dual point, or of one next to it, that meets every equation; None if none is found."""
        if self.C is not None and self.penalty.unpenalised:
            free = [*self.penalty.unpenalised, *([self.d] if self.fit_intercept else [])]
            point = self.step(
                point, [(c, j, ZERO, ZERO) for c in range(len(self.W)) for j in free], True
            )
        return None if point is None else self.balanced(self.sums(point))

    def bound(self, point):
        """The lower bound of the minimum from a dual point; None if there is none."""
        sums = None if point is None else self.feasible(point)
        return None if sums is None else self.dual(sums)

    def bounds(self, stored):
        """Yield lower bounds of the minimum, from the dual point of the file and from better ones."""
        if self.C is not None:
            yield self.bound(stored)
        starts = [stored, *self.slopes()] if self.curved else [self.snapped(stored)]
        # columns that depend on others up to their last digits may demand too much of the dual point
        for way in WAYS if self.curved and self.C is not None else WAYS[:1]:
            for start in starts:
                best, point = None, self.newton(start, way=way)
                for _ in range(STEPS if self.curved and self.C is not None else 1):
                    bound = self.bound(point)
                    if bound is None or (best is not None and bound <= best):
                        break
                    yield bound
                    best, point = bound, self.newton(point, way=way)
        for start in self.loosened(stored):
            for free in {self.C is None, True}:  # v = 0 proves something at every C
                yield self.bound(self.newton(start, free))

    def newton(self, point, free=False, way=WAYS[0]):
        """The dual point after Newton's step: v meets its value at an optimum as nearly as the losses allow.

        If ``free``, or without a penalty, v = 0 without any error; None if that leaves the domain.
        """
        free = free or self.C is None
        return self.step(point, self.active(free), free, way)

    def step(self, point, columns, exactly, way=WAYS[0]):
        """The dual point moved so that v, in these columns, meets its targets less what the ridge gives way."""
        if not columns:
            return None
        sums = self.sums(point)
        flat = [[*sums.v[c * self.d : (c + 1) * self.d], sums.free[c]] for c in range(len(self.W))]
        miss = [target - flat[c][j] for c, j, target, _ in columns]
        ridge = [lam for _, _, _, lam in columns]
        room = self.room(point)
        matrix = self.matrix(room, [(c, j) for c, j, _, _ in columns])
        factor = ONE
        if not self.curved and not exactly:
            # a kink has no curvature of its own: let it move freely, and v miss its target by next to nothing
            largest = max(matrix[a][a] for a in range(len(columns)))
            least = min((x for x in ridge if x), default=largest)
            factor = short(least * (1 << (precision.kinked - 100)) / largest) if largest else ONE
            matrix = [[factor * x for x in row] for row in matrix]
        for a, lam in enumerate(ridge):
            matrix[a][a] += lam
        step = solve_exactly(matrix, miss) if exactly else solve_nearly(matrix, miss, way)
        if step is None:
            return None
        along = [{} for _ in self.W]
        for (c, j, _, _), x in zip(columns, step):
            along[c][j] = factor * x
        return self.moved(point, room, along, exactly)

    def ridge(self):
        """j, lam_j w_j and lam_j of each feature, where the penalty has no kink and is not absent."""
        return [] if self.C is None else list(self.penalty.gradient(self.W[0]))

    def row_dot(self, i, along):
        """x~_i . a for a sparse vector a."""
        total = self.scale * sum(x * along[j] for j, x in self.rows[i] if j in along)
        return total + along.get(self.d, ZERO)


def solve_exactly(matrix, rhs):
    """A solution of a symmetric positive semidefinite system by Bareiss's elimination; None if there is none."""
    k = len(rhs)
    common = math.lcm(
        *(x.denominator for row in matrix for x in row), *(x.denominator for x in rhs)
    )
    rows = [[int(x * common) for x in [*row, b]] for row, b in zip(matrix, rhs)]
    kept, before = [], 1
    for at in range(k):
        top = rows[at]
        if (
            top[at] == 0
        ):  # positive semidefinite: the whole row is zero, the column depends on those before
            if any(top):
                return None
            continue
        kept.append(at)
        for i in range(at + 1, k):
            lead = rows[i][at]
            rows[i] = [(top[at] * x - lead * t) // before for x, t in zip(rows[i], top)]
        before = top[at]
    solution = [ZERO] * k
    for at in reversed(kept):
        known = sum((rows[at][j] * solution[j] for j in kept if j > at), ZERO)
        solution[at] = (rows[at][k] - known) / rows[at][at]
    return solution


def invert(matrix):
    """The inverse of a symmetric positive definite matrix by Bareiss's elimination; None if it is not definite."""
    k = len(matrix)
    common = math.lcm(*(x.denominator for row in matrix for x in row))
    rows = [
        [*(int(x * common) for x in row), *(int(i == j) for j in range(k))]
        for i, row in enumerate(matrix)
    ]
    before = 1
    for at in range(k):
        top = rows[at]
        if top[at] <= 0:
            return None
        for i in range(k):
            if i != at:
                lead = rows[i][at]
                rows[i] = [(top[at] * x - lead * t) // before for x, t in zip(rows[i], top)]
        before = top[at]
    return [[Fraction(common * x, before) for x in row[k:]] for row in rows]


def solve_nearly(matrix, rhs, way=WAYS[0]):
    """The same to half of the digits of ``precision``, after columns are scaled to length 1; see ``WAYS``.

    What depends on others stays 0.
    """
    pivot, damping = way
    with localcontext() as context:
        context.prec, context.Emax, context.Emin = precision.decimals, 10**15, -(10**15)
        k = len(rhs)
        scale = [decimal(matrix[i][i]).sqrt() or Decimal(1) for i in range(k)]
        a = [
            [decimal(x) / scale[i] / scale[j] for j, x in enumerate(row)]
            for i, row in enumerate(matrix)
        ]
        b = [decimal(x) / scale[i] for i, x in enumerate(rhs)]
        for i in range(k):
            a[i][i] += damping
        kept = []
        for at in range(k):
            if a[at][at] <= Decimal(10) ** pivot:
                continue
            kept.append(at)
            for i in range(at + 1, k):
                factor = a[i][at] / a[at][at]
                if factor:
                    a[i] = [x - factor * t for x, t in zip(a[i], a[at])]
                    b[i] -= factor * b[at]
        solution = [Decimal(0)] * k
        for at in reversed(kept):
            known = sum((a[at][j] * solution[j] for j in kept if j > at), Decimal(0))
            solution[at] = (b[at] - known) / a[at][at]
        return [Fraction(*(x / scale[i]).as_integer_ratio()) for i, x in enumerate(solution)]


def decimal(x):
    """A fraction to the digits of the context."""
    return Decimal(x.numerator) / Decimal(x.denominator)


@dataclass
class Margins(Problem):
    """A pointwise loss of sigma (x.w + b) + offset. A dual point is a list of u."""

    loss: Pointwise = None
    sigma: list = None
    offset: list = None
    factor: Fraction = (
        ONE  # of a scaled loss: it is part of s, and u of the file is that many times ours
    )

    def __post_init__(self):
        super().__post_init__()
        self.m = [g * z[0] + o for g, z, o in zip(self.sigma, self.scores, self.offset)]
        self.curved = self.loss.curved

    def loss_at(self, i):
        """Bounds of the loss of a row."""
        return self.loss.value(self.m[i])

    def slopes(self):
        """Minus the slopes of the losses; and again, with rows whose score may err across an end just inside it."""
        found = [self.loss.slope(m) for m in self.m]
        if not self.loss.square:
            return [found]
        low, high = self.loss.domain
        first = None if low is None else low + NEXT
        last = None if high is None else high - NEXT
        inside = []
        for i, u in enumerate(found):
            free = (self.loss.centre - self.m[i]) / (2 * self.loss.square)
            near = abs(free - u) <= self.score_error(i) / (2 * self.loss.square)
            inside.append(clip(u, first, last) if near else u)
        return [found] if inside == found else [found, inside]

    def score_error(self, i):
        """How far rounding may have moved the score of a row, and more."""
        w = self.W[0]
        reach = self.scale * sum(abs(a * w[j]) for j, a in self.rows[i])
        return 64 * (self.d + 8) * ROUNDOFF * (reach + abs(w[-1]) + abs(self.offset[i]))

    def unfolded(self, dual):
        """The dual point of the file."""
        if dual["record"] == "Explicit":
            return [clip(rounded(x / self.factor), *self.loss.domain) for x in self.explicit(dual)]
        base, step = ([Fraction(x[0]) for x in dual[name]] for name in ("base", "step"))
        found = []
        for i, sigma in enumerate(self.sigma):
            z, dz = (self.row_dot(i, dict(enumerate(a))) for a in (base, step))
            m = sigma * z + self.offset[i]
            u = self.loss.slope(m) - self.loss.curvature(m) * sigma * dz
            inside = u == clip(u, *self.loss.domain)  # the slope at the solution takes its place
            found.append(
                clip(rounded(u if inside else self.loss.slope(self.m[i])), *self.loss.domain)
            )
        return found

    def explicit(self, dual):
        """The numbers of a dual point with one for each row: u, or u + rest."""
        total = [ZERO] * len(self.rows)
        for name in ("u", "rest"):
            if dual.get(name) is None:
                continue
            u = [x for row in dual[name] for x in (row if isinstance(row, list) else [row])]
            if len(u) != len(self.rows):
                raise Rejected(
                    f"the dual point has {len(u)} numbers, there are {len(self.rows)} rows"
                )
            total = [a + (Fraction(x) if math.isfinite(x) else ZERO) for a, x in zip(total, u)]
        return total

    def sums(self, u):
        """Sums per side, the sign of sigma u, so that one can be shrunk; see ``balanced``."""
        gain, mass, v = [ZERO, ZERO], [ZERO, ZERO], [[0] * self.d, [0] * self.d]
        push = [s * g * x for s, g, x in zip(self.s, self.sigma, u)]
        whole, bits = integers(push)
        for i, a in enumerate(whole):
            side = int(a < 0)
            if a:
                low, conj = self.loss.conjugate(u[i])
                conj = conj if low == conj else on_grid(conj, down=False)
                gain[side] -= self.s[i] * (conj + u[i] * self.offset[i])
                mass[side] += abs(push[i])
                for j, x in self.rows[i]:
                    v[side][j] += a * x
        scale = self.scale / bits
        v = [[x * scale for x in side] for side in v]
        total = [a + b for a, b in zip(*v)]
        found = Sums(gain[0] + gain[1], total, [mass[0] - mass[1]])
        found.sides = gain, mass, v
        return found

    def balanced(self, sums):
        """Shrink the u of one side so that sum s sigma u = 0: l* is convex with l*(0) = 0, so gains shrink alike."""
        if not self.fit_intercept or not sums.free[0]:
            return sums
        gain, mass, v = sums.sides
        heavy = int(mass[1] > mass[0])
        shrink = [ONE, ONE]
        shrink[heavy] = mass[1 - heavy] / mass[heavy]
        total = [shrink[0] * a + shrink[1] * b for a, b in zip(*v)]
        return Sums(shrink[0] * gain[0] + shrink[1] * gain[1], total, [ZERO])

    def snapped(self, u):
        """u with values next to an end of the domain, or to a kink of l*, put on it."""
        ends = [end for end in self.loss.domain if end is not None]
        ends += [ZERO] if self.loss.epsilon else []
        near = Fraction(1, 10**10)
        return [next((end for end in ends if abs(x - end) <= near), x) for x in u]

    def loosened(self, u):
        """Yield u at the slopes of the losses with rows on a kink inside the domain, then with all rows, then shrunk.

        A row whose score may err across a kink, or across the short parabola in its place, may have any u there.
        """
        low, high = self.loss.domain
        if low is None or high is None or self.loss.transcendental:
            return
        ends = {
            "HuberisedHinge": (ZERO, self.loss.width),
            "Huber": (-self.loss.width, self.loss.width),
        }
        first, last = ends.get(self.loss.kind, (ZERO, ZERO))
        tight, loose = [], []
        for i, (x, m) in enumerate(zip(u, self.m)):
            error = self.score_error(i)
            r = self.loss.centre - m
            r = abs(r) - self.loss.epsilon if self.loss.epsilon else r
            bent = first - error <= r <= last + error and error > last - first
            inner = (high - low) / (1 << (30 if bent else 52))
            start = x if bent else self.loss.slope(m)
            loose.append(clip(start, low + inner, high - inner))
            tight.append(loose[-1] if bent else start)
        yield tight
        if not self.loss.square and not self.loss.epsilon:
            yield loose  # a parabola lets its rows move as if they were all in the middle of it
        if low < 0 < high:  # at a degenerate vertex too few u are inside the domain to be moved
            yield from ([x * (1 - share) for x in u] for share in SHRINK)

    def room(self, u):
        """How freely each u may move; not at all at an end of the domain or a kink of l*."""
        low, high = self.loss.domain
        found = []
        for x, s in zip(u, self.s):
            inside = s > 0 and (low is None or x > low) and (high is None or x < high)
            inside = inside and (x or not self.loss.epsilon)
            found.append((short(self.loss.freedom(x)) if inside else ZERO,))
        return found

    def matrix(self, room, columns):
        """Sum of s h x~ x~' over the rows."""
        return gram(
            self,
            [(i, s * h[0]) for i, (s, h) in enumerate(zip(self.s, room)) if s and h[0]],
            columns,
        )

    def moved(self, u, room, along, exactly):
        """u + h sigma x~.a; rounded and cut to the domain, or exact (None if that leaves the domain)."""
        found = []
        for i, x in enumerate(u):
            new = x
            if room[i][0]:
                new = x + room[i][0] * self.sigma[i] * self.row_dot(i, along[0])
            digits = precision.digits if self.curved else precision.kinked
            inside = clip(new if exactly else rounded(new, digits), *self.loss.domain)
            if exactly and inside != new:
                return None
            found.append(inside)
        return found


@dataclass
class Classes(Problem):
    """A loss of k scores and a label y. A dual point is a list of p, one number for each class, 0 at the label.

    U = onehot(y) - p with p_y = 1 - sum p takes the part of sigma u; -l* is the entropy of p for the softmax, the sum
    of p off the label for Crammer and Singer's hinge.
    """

    kind: str = ""
    labels: list = None

    def __post_init__(self):
        super().__post_init__()
        self.k = len(self.W)
        self.curved = self.kind == "Multinomial"

    def loss_at(self, i):
        """Bounds of the loss of a row."""
        y, z = self.labels[i], self.scores[i]
        leads = [z[c] - z[y] for c in range(self.k) if c != y]
        if not self.curved:
            value = max(1 + max(leads), ZERO)
            return value, value
        top = max([*leads, ZERO])
        terms = [exp_bounds(x - top) for x in [*leads, ZERO]]
        low, high = (on_grid(sum(t[side] for t in terms), down=side == 0) for side in (0, 1))
        return top + log_bounds(low)[0], top + log_bounds(high)[1]

    def gain_of(self, p, y):
        """A lower bound of minus the conjugate at p."""
        rest = sum(p, ZERO)
        if not self.curved:
            return rest
        return -sum(on_grid(p_log_p(x)[1], down=False) for x in [*p[:y], *p[y + 1 :], 1 - rest])

    def inside(self, p):
        """p with no entry below 0 and a sum of 1 at most: the largest entry gives up what is too much."""
        p = [max(x, ZERO) for x in p]
        largest, excess = max(range(self.k), key=p.__getitem__), max(sum(p, ZERO) - 1, ZERO)
        p[largest] -= excess
        return p if p[largest] >= 0 else [ZERO] * self.k

    def softmax(self, z):
        """Nearly the probabilities of scores."""
        top = max(z)
        e = [exp_bounds(x - top)[0] for x in z]
        total = sum(e)
        return [rounded(x / total) for x in e]

    def slopes(self):
        """The probabilities of the model, the only start next to the stored point."""
        return [self.probabilities()]

    def probabilities(self):
        """The probabilities of the model off the labels."""
        if not self.curved:
            return [[ZERO] * self.k for _ in self.rows]
        return [
            self.inside([ZERO if c == y else x for c, x in enumerate(self.softmax(z))])
            for z, y in zip(self.scores, self.labels)
        ]

    def unfolded(self, dual):
        """The dual point of the file."""
        if dual["record"] == "Explicit":
            parts = [dual[name] for name in ("u", "rest") if dual.get(name) is not None]
            for part in parts:
                if len(part) != len(self.rows) or any(len(row) != self.k for row in part):
                    raise Rejected("the dual point does not have one number for each row and class")
            given = (
                [
                    -sum((Fraction(x) for x in entry if math.isfinite(x)), ZERO)
                    for entry in zip(*rows)
                ]
                for rows in zip(*parts)
            )
        elif self.curved:
            given = self._linearised(*(list(zip(*dual[name])) for name in ("base", "step")))
        else:
            return self.probabilities()
        return [
            self.inside([ZERO if c == y else x for c, x in enumerate(row)])
            for row, y in zip(given, self.labels)
        ]

    def _linearised(self, base, step):
        """p (1 + dz - sum p dz) of each row, with p at the base."""
        base, step = (
            [dict(enumerate(map(Fraction, column))) for column in a] for a in (base, step)
        )
        for i in range(len(self.rows)):
            p = self.softmax([self.row_dot(i, column) for column in base])
            dz = [self.row_dot(i, column) for column in step]
            mean = sum(a * b for a, b in zip(p, dz))
            yield [rounded(a * (1 + b - mean)) for a, b in zip(p, dz)]

    def dual_of(self, i, p):
        """U of a row."""
        U = [-x for x in p]
        U[self.labels[i]] = sum(p, ZERO)
        return U

    def sums(self, point):
        """Entropy, V and the class sums."""
        gain, free, v = ZERO, [ZERO] * self.k, []
        U = [self.dual_of(i, p) for i, p in enumerate(point)]
        for i, s in enumerate(self.s):
            if s:
                gain += s * self.gain_of(point[i], self.labels[i])
        for c in range(self.k):
            push = [s * row[c] for s, row in zip(self.s, U)]
            free[c] = sum(push, ZERO)
            v += self.column_sums(push)
        return Sums(gain, v, free)

    def column_sums(self, push):
        """Sum of push x over the rows."""
        whole, bits = integers(push)
        total = [0] * self.d
        for row, a in zip(self.rows, whole):
            if a:
                for j, x in row:
                    total[j] += a * x
        return [x * self.scale / bits for x in total]

    def balanced(self, sums):
        """Mix all p with one distribution q, p' = (1 - t) p + t q, so that the class sums vanish; -l* is concave."""
        e = sums.free
        if not self.fit_intercept or not any(e):
            return sums
        n = [sum((s for s, y in zip(self.s, self.labels) if y == c), ZERO) for c in range(self.k)]
        t = max(-b / (a - b) for a, b in zip(n, e) if b < 0)
        total = sum(n)
        q = [(t * a + (1 - t) * b) / (t * total) for a, b in zip(n, e)]
        spread = ZERO
        for y in range(self.k):
            spread += n[y] * self.gain_of([ZERO if c == y else x for c, x in enumerate(q)], y)
        own = [
            self.column_sums([s if y == c else ZERO for s, y in zip(self.s, self.labels)])
            for c in range(self.k)
        ]
        every = [sum(column) for column in zip(*own)] if self.d else []
        v = [
            (1 - t) * sums.v[c * self.d + j] + t * (own[c][j] - every[j] * q[c])
            for c in range(self.k)
            for j in range(self.d)
        ]
        return Sums((1 - t) * sums.gain + t * spread, v, [ZERO] * self.k)

    def loosened(self, point):
        """No other start is known for several classes."""
        return []

    def snapped(self, point):
        """p with entries next to 0 put on it."""
        near = Fraction(1, 10**10)
        return [[ZERO if x <= near else x for x in p] for p in point]

    def room(self, point):
        """q near p for all classes, to a few bits: U may move by (diag(q) sum(q) - q q') a, whose rows add up to 0."""
        found = []
        for p, y, s in zip(point, self.labels, self.s):
            q = [*p[:y], 1 - sum(p, ZERO), *p[y + 1 :]]
            found.append(tuple(short(x) if s and x > Fraction(1, 1 << 80) else ZERO for x in q))
        return found

    def matrix(self, room, columns):
        """Sum of s x~ x~' H over the rows, H = diag(q) sum(q) - q q' of each."""
        blocks = {}
        for c, e in {(a[0], b[0]) for a in columns for b in columns}:
            if (e, c) in blocks:
                blocks[c, e] = blocks[e, c]
                continue
            weights = [
                (i, s * ((p[c] if c == e else ZERO) * sum(p) - p[c] * p[e]))
                for i, (s, p) in enumerate(zip(self.s, room))
            ]
            places = [(0, j) for j in range(self.d + 1)]
            blocks[c, e] = gram(self, [(i, a) for i, a in weights if a], places)
        return [[blocks[a[0], b[0]][a[1]][b[1]] for b in columns] for a in columns]

    def moved(self, point, room, along, exactly):
        """U + H (x~.a), as p; rounded and cut to the simplex, or exact (None if that leaves it)."""
        found = []
        for i, p in enumerate(point):
            h, y = room[i], self.labels[i]
            step = [self.row_dot(i, a) for a in along]
            total, mean = sum(h), sum(a * b for a, b in zip(h, step))
            # p is minus U; the entry of the label follows from the others
            new = [x - (total * a * b - a * mean) for x, a, b in zip(p, h, step)]
            new[y] = ZERO
            if exactly:
                if min(new) < 0 or sum(new) > 1:
                    return None
            else:
                digits = precision.digits if self.curved else precision.kinked
                new = self.inside([rounded(x, digits) for x in new])
            found.append(new)
        return found


def integers(values):
    """Fractions as integers over one denominator."""
    common = math.lcm(1, *(x.denominator for x in values))
    return [x.numerator * (common // x.denominator) for x in values], common


def gram(problem, weights, columns):
    """Sum of a_i x~_ij x~_il over the rows i, for all pairs of columns (c, j)."""
    whole, common = integers([a for _, a in weights])
    places = {j: at for at, (_, j) in enumerate(columns)}
    one = 1 << problem.unit
    total = [[0] * len(columns) for _ in columns]
    for (i, _), a in zip(weights, whole):
        entries = [(places[j], x) for j, x in problem.rows[i] if j in places]
        if problem.d in places:
            entries.append((places[problem.d], one))
        for at, x in entries:
            ax, line = a * x, total[at]
            for other, z in entries:
                line[other] += ax * z
    scale = problem.scale * problem.scale / common
    return [[x * scale for x in line] for line in total]


# ---------------------------------------------------------------------------------------------------------------
# the files


_ITEMS = {
    "<f8": "d",
    "<f4": "f",
    "<i8": "q",
    "<i4": "i",
    "<i2": "h",
    "|i1": "b",
    "<u8": "Q",
    "<u4": "I",
    "<u2": "H",
    "|u1": "B",
    "|b1": "?",
}


def items(dtype, raw, count):
    """The numbers (or texts) in raw bytes."""
    if dtype in _ITEMS:
        return list(struct.unpack_from(f"<{count}{_ITEMS[dtype]}", raw))
    text = re.fullmatch(r"<U(\d+)", dtype)
    if text:
        size = 4 * int(text[1])
        return [
            raw[i * size : (i + 1) * size].decode("utf-32-le").rstrip("\0") for i in range(count)
        ]
    bare = re.fullmatch(r"\|S(\d+)", dtype)
    if bare:
        size = int(bare[1])
        return [raw[i * size : (i + 1) * size].rstrip(b"\0").decode() for i in range(count)]
    raise Unusable(f"an array has dtype {dtype}, not one of {', '.join(_ITEMS)}, <U or |S")


def shaped(flat, shape):
    """A list, or a list of rows."""
    if len(shape) == 2:
        return [flat[i * shape[1] : (i + 1) * shape[1]] for i in range(shape[0])]
    return flat if shape else flat[0]


def read_npy(raw):
    """One array of the format that numpy.save writes."""
    if raw[:6] != b"\x93NUMPY":
        raise Unusable("an array does not begin as numpy's do")
    size, start = (
        (struct.unpack_from("<H", raw, 8)[0], 10)
        if raw[6] == 1
        else (struct.unpack_from("<I", raw, 8)[0], 12)
    )
    head = ast.literal_eval(raw[start : start + size].decode("latin1"))
    shape = head["shape"]
    flat = items(head["descr"], raw[start + size :], math.prod(shape))
    if head["fortran_order"] and len(shape) == 2:
        return [list(row) for row in zip(*shaped(flat, shape[::-1]))]
    return shaped(flat, shape)


@dataclass
class Table:
    """Rows of (column, number), the target, the weights; numbers are float64."""

    rows: list
    d: int
    y: list
    weight: list


def read_rows(path):
    """The rows of an .npz or .csv file."""
    if path.suffix == ".npz":
        with zipfile.ZipFile(path) as archive:
            arrays = {
                name.removesuffix(".npy"): read_npy(archive.read(name))
                for name in archive.namelist()
            }
        if "indptr" in arrays:
            data, indices, starts = arrays["data"], arrays["indices"], arrays["indptr"]
            d = int(arrays["shape"][1])
            rows = [list(zip(indices[a:b], data[a:b])) for a, b in zip(starts[:-1], starts[1:])]
        else:
            X = arrays["X"]
            d = len(X[0])
            rows = [list(enumerate(row)) for row in X]
        y, weight = arrays["y"], arrays.get("sample_weight")
    else:
        with path.open(newline="", encoding="utf-8") as file:
            names, *lines = csv.reader(file, delimiter="\t" if path.suffix == ".tsv" else ",")
        weight = None
        if "sample_weight" in names[:-1]:
            at = names.index("sample_weight")
            weight = [float(line.pop(at)) for line in lines]
        y = [line[-1] for line in lines]
        rows = [[(j, float(x)) for j, x in enumerate(line[:-1])] for line in lines]
        d = len(rows[0])
    if len(y) != len(rows) or (weight is not None and len(weight) != len(rows)):
        raise Unusable(f"{len(rows)} rows, {len(y)} targets, and weights that may not fit")
    rows = [[(int(j), float(x)) for j, x in row if x] for row in rows]
    weight = [1.0] * len(rows) if weight is None else [float(x) for x in weight]
    if any(not math.isfinite(x) for row in rows for _, x in row) or any(
        not 0 <= x < math.inf for x in weight
    ):
        raise Unusable("rows and weights must be finite, and no weight below 0")
    return Table(rows, d, y, weight)


def read_model(path):
    """The manifest of a model file, records and arrays in it made plain: {"record": name, field: value, ...}."""
    content = path.read_bytes()
    if len(content) < 48 or content[:8] != b"LINSEP\r\n":
        raise Unusable(f"{path} is not a linsep model")
    _, length, digest = struct.unpack_from("<8sQ32s", content)
    text = content[48 : 48 + length]
    if hashlib.sha256(text).digest() != digest:
        raise Unusable("the checksum of the manifest is wrong")
    manifest = json.loads(text)
    if manifest.get("format") not in (
        1,
        2,
    ):  # 2: with the steps of a pipeline, which have made the rows
        raise Unusable(f"the file has format {manifest.get('format')}, this checker reads 1 and 2")
    start = (48 + length + 63) // 64 * 64
    arrays = []
    for entry in manifest["arrays"]:
        count = math.prod(entry["shape"])
        size = count * struct.calcsize(_ITEMS[entry["dtype"]])
        raw = content[start + entry["offset"] : start + entry["offset"] + size]
        if hashlib.sha256(raw).hexdigest() != entry["sha256"]:
            raise Unusable("the checksum of an array is wrong")
        arrays.append(shaped(items(entry["dtype"], raw, count), entry["shape"]))

    return {
        "model": manifest["model"],
        "params": {key: plain(x, arrays) for key, x in manifest["params"].items()},
        "fitted": {key: plain(x, arrays) for key, x in manifest["fitted"].items()},
    }


def plain(node, arrays):
    """A value of the manifest; a record becomes {"record": name, field: value, ...}."""
    if isinstance(node, list):
        return [plain(item, arrays) for item in node]
    if not isinstance(node, dict):
        return node
    if "record" in node:
        fields = {key: plain(x, arrays) for key, x in node["fields"].items()}
        return {"record": node["record"], **fields}
    if "strings" in node:
        return node["strings"]
    ((key, inner),) = node.items()
    if key == "array" and inner >= 0:
        return arrays[inner]
    if key == "float":
        return float(inner)
    if key == "dict":
        return {plain(a, arrays): plain(b, arrays) for a, b in inner}
    return plain(inner, arrays)  # tuple, status


# ---------------------------------------------------------------------------------------------------------------
# from the files to problems


def codes(y, classes):
    """The place of each label among the classes."""
    place = {}
    for at, label in enumerate(classes):
        place[label] = at
        if isinstance(label, str):
            continue
        for text in {
            str(label),
            str(int(label)) if float(label).is_integer() else str(label),
            str(float(label)),
        }:
            place.setdefault(text, at)  # of a CSV file
    try:
        return [place[label] for label in y]
    except (KeyError, TypeError):
        odd = next(label for label in y if label not in place)
        raise Rejected(
            f"the rows have a label {odd!r}, the model has the classes {classes}"
        ) from None


def class_weights(kind, labels, weight, classes):
    """Sample weights times class weights, in float64 as the objective of the model has them."""
    if kind is None:
        return weight
    totals = [0.0] * len(classes)
    for c, s in zip(labels, weight):
        totals[c] += s
    if kind == "balanced":
        factors = [sum(totals) / (len(classes) * t) for t in totals]
    else:
        factors = [float(kind.get(label, 1.0)) for label in classes]
    return [factors[c] * s for c, s in zip(labels, weight)]


def loss_of(record):
    """The loss of a record, and the factor it is multiplied with."""
    if record["record"] == "loss:Scaled":
        inner, factor = loss_of(record["loss"])
        return inner, factor * Fraction(record["factor"])
    name = record["record"].removeprefix("loss:")
    if name in ("Multinomial", "CrammerSinger"):
        return name, ONE
    centre = ZERO if name == "Perceptron" else ONE
    insensitive = "Epsilon" in name
    loss = Pointwise(
        name,
        Fraction(record.get("width", 1.345 if name == "Huber" else 1.0)),
        centre,
        Fraction(record.get("quantile", 0.5)),
        Fraction(record.get("epsilon", 0.1)) if insensitive else ZERO,
    )
    try:
        loss.domain  # noqa: B018
    except KeyError:
        raise Unusable(f"the checker does not know the loss {name}") from None
    return loss, ONE


def columns_of(fitted):
    """One list of d + 1 fractions for each row of coefficients, the intercept last."""
    coef, intercept = fitted["coef_"], fitted["intercept_"]
    coef = coef if coef and isinstance(coef[0], list) else [coef]
    intercept = intercept if isinstance(intercept, list) else [intercept]
    if len(coef) != len(intercept) or any(
        not math.isfinite(x) for row in [*coef, intercept] for x in row
    ):
        raise Rejected("the coefficients are not finite, or do not fit the intercepts")
    return [[Fraction(x) for x in [*row, b]] for row, b in zip(coef, intercept)]


def problems(model, table):
    """Yield the problem of each subproblem with its recipe and dual point."""
    fitted = model["fitted"]
    columns, fits = columns_of(fitted), fitted["_fits"]
    unit = max(
        (Fraction(x).denominator.bit_length() - 1 for row in table.rows for _, x in row), default=0
    )
    rows = [[(j, int(Fraction(x) * (1 << unit))) for j, x in row] for row in table.rows]
    wide = max((math.frexp(x)[1] for row in table.rows for _, x in row), default=0)
    wide = max(wide, 0)  # sums of u x cancel to numbers near 1, and u may be as large as a target
    weight, labels = table.weight, None
    if "classes_" in fitted:
        classes = fitted["classes_"]
        labels = codes(table.y, classes)
        if "_class_weight" in fitted:
            if model["params"].get("class_weight") != fitted["_class_weight"]:
                raise Rejected("the class weights of the parameters are not those of the fit")
            weight = class_weights(fitted["_class_weight"], labels, weight, classes)
    else:
        targets = [Fraction(float(t)) for t in table.y]
        wide += max(0, *(math.frexp(float(t))[1] for t in table.y))
    at = 0
    for number, fit in enumerate(fits):
        recipe = fit["recipe"]
        compare_recipe(model["params"], recipe, fitted.get("C_"))
        penalty = penalty_of(recipe["penalty"], table.d)
        compare_penalty(model["params"], penalty, fitted.get("feature_names_in_"))
        loss, factor = loss_of(recipe["loss"])
        width = recipe["loss"]["k"] if isinstance(loss, str) else 1
        W = columns[at : at + width]
        if [list(map(Fraction, column)) for column in zip(*fit["W"])] != W:
            raise Rejected("the coefficients of the model are not those of its fit")
        at += width
        s = [factor * Fraction(x) for x in weight]
        largest = max(s, default=ONE) * (ONE if penalty.C is None else penalty.C)
        precision.set(bits_for(largest, fit["certificate"]["primal"]), wide)
        common = (rows, unit, table.d, s, W, penalty, recipe["fit_intercept"])
        if not recipe["fit_intercept"] and any(w[-1] for w in W):
            raise Rejected("the model has an intercept, and its recipe has none")
        if isinstance(loss, str):
            problem = Classes(*common, kind=loss, labels=labels)
        elif labels is None:
            loss.centre = ZERO  # m = x.w + b - t
            problem = Margins(
                *common,
                loss=loss,
                factor=factor,
                sigma=[ONE] * len(rows),
                offset=[-t for t in targets],
            )
        else:
            positive = 1 if len(fitted["classes_"]) == 2 else number
            sigma = [ONE if c == positive else -ONE for c in labels]
            problem = Margins(
                *common, loss=loss, factor=factor, sigma=sigma, offset=[ZERO] * len(rows)
            )
        yield problem, recipe, fit["dual"]
    if at != len(columns):
        raise Rejected(f"the fits have {at} columns of coefficients, the model {len(columns)}")


def bits_for(largest, objective):
    """Bits that sums of losses with such weights need beyond the usual ones, for an objective of that size."""
    objective = Fraction(objective) if 0.0 < objective < math.inf else ONE
    return max(0, math.ceil(largest).bit_length(), math.ceil(largest / objective).bit_length())


def penalty_of(record, d):
    """The penalty of a recipe."""
    if record["record"] not in ("ElasticNet", "GroupElasticNet") or record.get("l1_scale", 1) != 1:
        raise Unusable("the checker does not know this penalty")
    C, r = record["C"], Fraction(record["l1_ratio"])
    C = None if C == math.inf else Fraction(C)
    p, group = record.get("factor", [1.0] * d), record.get("group", list(range(d)))
    groups = [[j for j in range(d) if group[j] == g] for g in sorted(set(group))]
    even = all(len({p[j] for j in features}) == 1 for features in groups)
    if len(p) != d or len(group) != d or not even or not all(0 <= x < math.inf for x in p):
        raise Rejected("the penalty factors of the recipe do not fit its groups and the columns")
    if C is None and record["record"] != "ElasticNet":
        raise Rejected("penalty factors and groups need a finite C")
    h = [Fraction(p[features[0]] * math.sqrt(len(features))) for features in groups]
    return Penalty(C, r, [Fraction(x) for x in p], groups, h)


def compare_penalty(params, penalty, names):
    """What users read in penalty_factor and feature_groups is what was solved."""
    d = len(penalty.p)
    factor, groups = params.get("penalty_factor"), params.get("feature_groups")
    if isinstance(factor, dict):
        factor = by_name(factor, d, names, 1.0)
    if [Fraction(x) for x in factor or [1.0] * d] != penalty.p:
        raise Rejected("the parameter penalty_factor is not what the fit was made with")
    alone = [("alone", j) for j in range(d)]
    if isinstance(groups, dict):
        labels = [a if x is None else x for a, x in zip(alone, by_name(groups, d, names, None))]
    elif any(isinstance(x, list) for x in groups or ()):
        labels = alone
        for features in groups:
            for j in features:
                labels[j] = ("listed", min(features))
    else:
        labels = groups or alone
    found = {}
    for j, label in enumerate(labels):
        found.setdefault(label, []).append(j)
    if len(labels) != d or sorted(found.values()) != sorted(penalty.groups):
        raise Rejected("the parameter feature_groups is not what the fit was made with")


def by_name(given, d, names, missing):
    """The values of a dictionary from column names, in the order of the columns."""
    if names is None or len(names) != d or not set(given) <= set(names):
        raise Rejected("penalty_factor or feature_groups name columns that the model does not have")
    return [given.get(name, missing) for name in names]


#: Names that users may write for a loss: the record, its fields other than the defaults, and a factor.
NAMES = {
    "log_loss": ("Logistic", {}, ONE),
    "absolute_error": ("Absolute", {}, ONE),
    "huberized_hinge": ("HuberisedHinge", {}, ONE),
    "modified_huber": ("HuberisedHinge", {"width": 2.0}, Fraction(4)),
    "squared_error": ("Squared", {}, HALF),
    "quantile": ("Pinball", {}, ONE),
}


def named_loss(name):
    """The loss of a name, and its factor."""
    kind = "".join(word.capitalize() for word in name.split("_"))
    kind, fields, factor = NAMES.get(name, (kind, {}, ONE))
    return loss_of({"record": f"loss:{kind}", **fields})[0], factor


def compare_recipe(params, recipe, chosen):
    """What users read in the parameters, and in C_ where C was chosen by the fit, is what was solved."""
    told = {"C": recipe["penalty"]["C"], "l1_ratio": recipe["penalty"]["l1_ratio"]}
    told |= {"fit_intercept": recipe["fit_intercept"], "tol": recipe["tol"]}
    given = params if chosen is None else {"C": chosen, **params}
    for name, value in told.items():
        if name in given and given[name] != value:
            raise Rejected(f"the parameter {name} is {given[name]}, the fit was made with {value}")
    loss, factor = loss_of(recipe["loss"])
    if isinstance(loss, str):
        coupled = {"Multinomial": "multinomial", "CrammerSinger": "crammer_singer"}[loss]
        if params.get("multiclass") != coupled:
            raise Rejected(f"the parameter multiclass is {params.get('multiclass')}, not {coupled}")
        loss, _ = named_loss({"Multinomial": "logistic", "CrammerSinger": "hinge"}[loss])
    given = params.get("loss")
    if given is None or (loss.kind == "Hinge" and told["C"] == math.inf):
        return  # a hard margin is that of the squared hinge, too
    if (named_loss(given) if isinstance(given, str) else loss_of(given)) != (loss, factor):
        raise Rejected(f"the parameter loss is {given}, the fit was made with {recipe['loss']}")


# ---------------------------------------------------------------------------------------------------------------
# the proofs


@dataclass
class Proof:
    """Bounds of the objective at the coefficients, a lower bound of its minimum, and what a float may lose."""

    low: Fraction
    high: Fraction
    bound: Fraction
    strength: Fraction
    #: least losses of a constant model, where the objective is zero to working precision
    null: Fraction = ZERO

    @property
    def nothing_left(self):
        """Whether the objective is zero to working precision: nothing a gap could be relative to."""
        return self.null > 0 or self.high == 0

    @property
    def gap(self):
        """How far the objective is above its minimum at most."""
        return self.high - self.bound


def prove(problem, recipe, dual, claim):
    """Enclose the minimum, as tightly as the claim asks for."""
    tol = Fraction(recipe["tol"])
    if isinstance(problem, Margins) and problem.loss.kind == "Hinge" and problem.C is None:
        return prove_margin(problem, dual)
    low, high = problem.primal()
    strength = problem.penalty.strength
    proof = Proof(low, high, ZERO, strength)
    proof.null = exact_fit(problem, high, tol)
    if proof.nothing_left:
        return proof
    for bound in problem.bounds(problem.unfolded(dual)):
        proof.bound = max(proof.bound, bound or ZERO)
        wanted = min(tol * low, claim["gap"])
        if claim["kind"] != "local" or isinstance(problem, Classes):  # else by the curvature
            wanted = min(wanted, gap_for(claim, strength) if strength else math.inf)
        if proof.gap <= wanted and proof.bound >= claim["dual"]:
            break
    return proof


def prove_margin(problem, dual):
    """The hard margin: the shortest w with all margins 1 at least."""
    counted = [i for i, s in enumerate(problem.s) if s]
    least = min(problem.m[i] for i in counted)
    if least <= 0:
        raise Rejected("a row is on the wrong side of the hyperplane of a hard margin")
    low, _ = problem.penalty.value(problem.W)
    high = low / min(least, ONE) ** 2
    if dual["record"] != "Explicit":
        raise Rejected("a hard margin needs one dual number for each row")
    alpha = [max(x, ZERO) if s else ZERO for x, s in zip(problem.explicit(dual), problem.s)]
    sides = [sum((a for a, g in zip(alpha, problem.sigma) if g == sign), ZERO) for sign in (1, -1)]
    if problem.fit_intercept:
        if not all(sides):
            return Proof(low, high, ZERO, ONE)
        alpha = [a / sides[0 if g == 1 else 1] for a, g in zip(alpha, problem.sigma)]
    v = [ZERO] * problem.d
    for i, a in enumerate(alpha):
        if a:
            for j, x in problem.rows[i]:
                v[j] += a * problem.sigma[i] * x * problem.scale
    square = sum(x * x for x in v)
    bound = sum(alpha) ** 2 / (2 * square) if square else ZERO
    return Proof(low, high, bound, ONE)


def exact_fit(problem, high, tol):
    """At most twice the losses of any constant model, if those of this one are nothing beside it; else 0.

    They must be no more than what the rounding of scores makes of 0, and at most tol times EXACT_FIT of that bound.
    That asks for a loss that can be 0, and a fit by features without a penalty alone. The scores that linsep computes
    err by up to (d + 16) 2^-53 (|x|.|w| + |b| + |offset|), and four times that is taken for 0. Around the mean b of the
    targets the losses of some rows rise with b, and those of the others fall: no constant loses less than the smaller
    of the two sums. Without an intercept there is one constant model, 0.
    """
    if isinstance(problem, Classes) or problem.loss.transcendental:
        return ZERO
    if problem.C is not None:
        factors = problem.penalty.p
        if all(factors) or any(p and x for p, x in zip(factors, problem.W[0])):
            return ZERO
    C = ONE if problem.C is None else problem.C
    most, sides = ZERO, [ZERO, ZERO]
    w, loss, total = problem.W[0], problem.loss, sum(problem.s)
    b = ZERO
    if problem.fit_intercept and total:
        b = -sum(s * g * o for s, g, o in zip(problem.s, problem.sigma, problem.offset)) / total
    for i, s in enumerate(problem.s):
        reach = problem.scale * sum(abs(x * w[j]) for j, x in problem.rows[i])
        error = 4 * (problem.d + 17) * ROUNDOFF * (reach + abs(w[-1]) + abs(problem.offset[i]))
        error += loss.epsilon
        most += s * max(loss.value(loss.centre - error)[1], loss.value(loss.centre + error)[1])
        m = problem.sigma[i] * b + problem.offset[i]
        sides[(m > loss.centre) == (problem.sigma[i] > 0)] += s * loss.value(m)[1]
    null = 2 * min(sides) if problem.fit_intercept else sum(sides)
    return C * null if high <= C * min(most, tol * EXACT_FIT * null) else ZERO


def check_consistency(claim, tol):
    """Whether a certificate agrees with itself."""
    numbers = ["primal", "dual", "gap", "relative_gap", "rounding", "tol"]
    if not all(math.isfinite(claim[name]) for name in numbers) or math.isnan(claim["coef_error"]):
        raise Rejected("the certificate has numbers that are not finite")
    if not claim["certified"]:
        raise Rejected("the model itself does not claim to be optimal")
    if claim["tol"] != tol:
        raise Rejected(
            f"the certificate is for tol={claim['tol']:g}, the fit was made with {tol:g}"
        )
    primal, dual, gap, share, rounding = (Fraction(claim[name]) for name in numbers[:-1])
    if share > Fraction(tol) or min(primal, dual, gap, share, rounding, claim["coef_error"]) < 0:
        raise Rejected("the certificate claims more than its own tol, or numbers below 0")
    if gap < primal - dual - 4 * ROUNDOFF * primal or rounding > 2 * gap + 4 * ROUNDOFF * primal:
        raise Rejected(
            "the gap claimed is smaller than objective minus lower bound, or than its rounding"
        )


def check_claim(claim, problem, proof, tol):
    """Whether each number of a certificate that agrees with itself is true."""
    primal, dual, gap = (Fraction(claim[name]) for name in ("primal", "dual", "gap"))
    slack = Fraction(claim["rounding"]) + 64 * ROUNDOFF * proof.high
    stated = Fraction(claim["rounding"]) + 2 * ROUNDOFF * primal + UNDERFLOW
    if not proof.low - stated <= primal <= proof.high + stated:
        raise Rejected(f"the objective is {show(proof.high)}, the certificate says {show(primal)}")
    if dual > proof.high:
        raise Rejected(
            f"the lower bound claimed, {show(dual)}, is above an objective that is attained"
        )
    if min(proof.gap, gap) * (1 - Fraction(1, 10**9)) > gap_for(claim, proof.strength):
        error = coefficient_error(problem)
        if error is None or error > Fraction(claim["coef_error"]) * (1 + Fraction(1, 10**9)):
            raise Rejected("the bound claimed on the error of the coefficients is not proven")
    if proof.nothing_left:
        if gap > Fraction(tol) * EXACT_FIT * proof.null:
            raise Rejected("the gap claimed is not small beside the losses of a constant model")
        return
    if (Fraction(claim["relative_gap"]) + 8 * ROUNDOFF) * max(primal, dual) < gap:
        raise Rejected("the relative gap claimed is smaller than the gap over the objective")
    if proof.gap > Fraction(tol) * proof.low:
        raise Rejected(
            f"only a relative gap of {show(proof.gap / proof.high)} is proven, tol is {tol:g}"
        )
    if dual > proof.bound + 64 * ROUNDOFF * proof.high:
        raise Rejected(f"a lower bound of {show(dual)} is claimed, {show(proof.bound)} is proven")
    if proof.gap > gap + slack:
        raise Rejected(f"a gap of {show(gap)} is claimed, {show(proof.gap)} is proven")


def gap_for(claim, strength):
    """The gap from which |w - w*| <= coef_error follows by the penalty: P - P* >= strength/2 |w - w*|^2."""
    if claim["coef_error"] == math.inf:
        return math.inf
    return strength / 2 * Fraction(claim["coef_error"]) ** 2


def coefficient_error(problem):
    """An upper bound of |w - w*| from the curvature around w; None if none is found, or a penalty has a kink.

    Let theta = (w, b), g the gradient there of the objective over C, M = lam I_w + sum s h x~ x~' with h near the
    curvatures l'' of the losses, N its inverse, mu^2 = g'Ng, and q_i = x~_i'N x~_i. Where |delta|_M <= rho the margins
    move by at most rho sqrt(q_i). If l'' is between kappa h and K h there, kappa <= 1 <= K, then
    P(theta + delta) >= P - mu |delta|_M + kappa/2 |delta|_M^2, so that for rho > 2 mu/kappa a minimiser lies inside,
    and no other elsewhere. The mean Hessian H between theta and theta* has g = H (theta - theta*), so that
    |theta - theta*|_M <= mu/kappa, and

        |M (theta - theta*) - g| = |(M - H)(theta - theta*)| <= max(1 - kappa, K - 1) mu/kappa    in the norm of N.

    So theta - theta* is N g but for that much; and in w, lengths are at most sqrt(|N_ww|) times those in M.
    """
    kinked = problem.C is not None and problem.penalty.r
    if not isinstance(problem, Margins) or kinked or not problem.curved:
        return None
    loss, live = problem.loss, [i for i, s in enumerate(problem.s) if s]
    h = {i: short(loss.curvature_bounds(problem.m[i], ZERO)[0]) for i in live}
    while any(h.values()):
        norm = Norm.of(problem, h)
        if norm is None:
            return None
        mu, blurred = norm.gradient_length(live)
        for times in (3, 8, 64):
            reach = {i: times * mu * norm.reach[i] for i in live}
            if loss.transcendental and max(reach.values()) > 100:
                return None  # so far away the curvature is next to nothing
            bounds = {i: loss.curvature_bounds(problem.m[i], reach[i]) for i in live}
            kappa = min(1, *(bounds[i][0] / a for i, a in h.items() if a))
            if kappa * times > 2 or kappa > 0 == mu:
                away = norm.stretch * mu / kappa
                if all(high == 0 for i, (_, high) in bounds.items() if not h[i]):
                    most = max(1, *(high / h[i] for i, (_, high) in bounds.items() if h[i]))
                    blur = max(1 - kappa, most - 1) * mu / kappa + blurred
                    away = min(away, norm.step + norm.stretch * blur)
                return away
        # without the rows that may leave their piece of the loss, the others may have curvature enough
        lost = [i for i in live if h[i] and not bounds[i][0]]
        if not lost:
            return None
        h.update(dict.fromkeys(lost, ZERO))
    return None


@dataclass
class Norm:
    """N, rounded, and what follows from it: upper bounds of sqrt(q_i), of sqrt(|N_ww|) and of the length of (N g)_w."""

    problem: Problem
    inverse: list
    reach: dict
    stretch: Fraction
    step: Fraction = ZERO

    #: Relative error of the entries of N, of slopes and of sums of products, at the most.
    ERROR = Fraction(1, 1 << 200)

    @classmethod
    def of(cls, problem, h):
        """The norm of M, or None if M is singular."""
        columns = [(0, j) for j in range(problem.d)] + [(0, problem.d)] * problem.fit_intercept
        weights = [(i, problem.s[i] * a) for i, a in h.items() if a]
        matrix = gram(problem, weights, columns)
        for j, _, lam in problem.ridge():
            matrix[j][j] += lam
        exact = invert(matrix)
        if exact is None:
            return None
        inverse, d = [[rounded(x) for x in row] for row in exact], problem.d
        sums = [sum(abs(x) for x in row[:d]) for row in inverse[:d]]
        trace = sum((inverse[j][j] for j in range(d)), ZERO)
        widest = min(trace, max(sums, default=ZERO)) * (1 + cls.ERROR)
        norm = cls(problem, inverse, {}, root_bounds(widest)[1])
        for i in h:
            x = [ZERO] * d
            for j, a in problem.rows[i]:
                x[j] = a * problem.scale
            norm.reach[i] = norm.length(x + [ONE] * problem.fit_intercept)
        return norm

    def length(self, x):
        """An upper bound of sqrt(x'Nx)."""
        total, size = ZERO, ZERO
        for a, row in zip(x, self.inverse):
            if a:
                total += a * sum(b * c for b, c in zip(x, row))
                size += abs(a) * sum(abs(b * c) for b, c in zip(x, row))
        return root_bounds(max(total, ZERO) + self.ERROR * size)[1]

    def gradient_length(self, live):
        """Upper bounds of mu, and of what the rounding of slopes and of N may add to it; N g is kept as ``step``."""
        problem, d = self.problem, self.problem.d
        g, blurred = [ZERO] * len(self.inverse), ZERO
        for j, slope, _ in problem.ridge():
            g[j] = slope
        for i in live:
            u = problem.loss.slope(problem.m[i])
            push = -problem.s[i] * problem.sigma[i] * u
            blurred += problem.s[i] * self.reach[i] * (abs(u) * self.ERROR + self.ERROR**300)
            for j, a in problem.rows[i]:
                g[j] += push * a * problem.scale
            if problem.fit_intercept:
                g[d] += push
        square = ZERO
        for row in self.inverse[:d]:
            terms = [a * b for a, b in zip(row, g)]
            square += (abs(sum(terms)) + self.ERROR * sum(map(abs, terms))) ** 2
        self.step = root_bounds(square)[1]
        return self.length(g) + blurred, blurred


def check_sum(whole, parts):
    """Whether the certificate of several subproblems is the sum of theirs, to the last digit."""
    for name in ("primal", "dual", "gap", "rounding"):
        if whole[name] != math.fsum(part[name] for part in parts):
            raise Rejected(f"the {name} of the certificate is not the sum of those of its parts")
    if whole["tol"] != max(part["tol"] for part in parts) or not whole["certified"]:
        raise Rejected("the certificate does not agree with its parts")
    if any(part["relative_gap"] == 0.0 < part["gap"] for part in parts):
        share = max(part["relative_gap"] for part in parts)  # nothing to be relative to
    else:
        scale = max(whole["primal"], whole["dual"])
        share = 0.0 if whole["gap"] == 0.0 else whole["gap"] / scale if scale else math.inf
    error = math.hypot(*(part["coef_error"] for part in parts))
    kinds = {part["kind"] for part in parts}
    if whole["kind"] != (kinds.pop() if len(kinds) == 1 else "local"):
        raise Rejected("the certificate is of another kind than its parts")
    if whole["relative_gap"] != share or whole["coef_error"] != error:
        raise Rejected("the certificate claims more or less than its parts")


# ---------------------------------------------------------------------------------------------------------------
# the fewest errors


def check_zero_one(model, table):
    """Count the errors of a hyperplane, and prove that every other one makes as many."""
    fitted, claim = model["fitted"], model["fitted"]["certificate_"]
    classes = fitted["classes_"]
    labels = codes(table.y, classes)
    if model["params"].get("class_weight") != fitted["_class_weight"]:
        raise Rejected("the class weights of the parameters are not those of the fit")
    weight = class_weights(fitted["_class_weight"], labels, table.weight, classes)
    (theta,) = columns_of(fitted)
    if theta != [*map(Fraction, claim["w"]), Fraction(claim["b"])] or claim["classes"] != classes:
        raise Rejected("the certificate is about another hyperplane")
    points, wrong = {}, []  # equal rows of one class are one point of their total weight
    for i, row in enumerate(table.rows):
        if not weight[i]:
            continue
        exact = {j: Fraction(x) for j, x in row}
        above = sum((x * theta[j] for j, x in exact.items()), theta[-1]) >= 0
        if above != (labels[i] == 1):
            wrong.append(i)
        key = (tuple(sorted(exact.items())), labels[i])
        points.setdefault(key, []).append(i)
    errors = sum((Fraction(weight[i]) for i in wrong), ZERO)
    if not claim["proven"] or not fitted["proven_"]:
        raise Rejected("the model itself does not claim to be optimal")
    if sorted(claim["wrong"]) != wrong:
        raise Rejected("the rows that the hyperplane gets wrong are not those listed")
    for value in (claim["errors"], claim["lower_bound"], fitted["errors_"], fitted["lower_bound_"]):
        if not math.isfinite(value) or abs(Fraction(value) - errors) > Fraction(1, 10**8) * errors:
            raise Rejected(
                f"the hyperplane makes {show(errors)} errors, the certificate says {value:g}"
            )
    heaviness = [sum((Fraction(weight[i]) for i in rows), ZERO) for rows in points.values()]
    if errors and not _as_many_everywhere(claim, points, heaviness, errors, table):
        raise Rejected(
            f"that every hyperplane makes {show(errors)} errors is not proven by what the file holds"
        )
    return f"{show(errors)} errors, and no hyperplane makes fewer ({claim['method']})"


def _as_many_everywhere(claim, points, heaviness, errors, table):
    places = [(dict(key[0]), 1 if key[1] == 1 else -1) for key in points]
    signed = [(x, sign * s) for (x, sign), s in zip(places, heaviness)]
    if table.d == 1 and claim["method"] == "thresholds":
        return fewest_on_a_line([(x.get(0, ZERO), s) for x, s in signed]) >= errors
    if table.d == 2 and claim["method"] == "sweep" and len(signed) <= 400:
        return (
            fewest_in_a_plane([((x.get(0, ZERO), x.get(1, ZERO)), s) for x, s in signed]) >= errors
        )
    if claim["method"] != "cover":
        return False
    place = {i: at for at, rows in enumerate(points.values()) for i in rows}
    sets = []
    for rows, guess in claim["witnesses"]:
        if any(i not in place for i in rows) or not hulls_meet(
            [places[place[i]] for i in rows], guess, table.d
        ):
            return False
        sets.append(frozenset(place[i] for i in rows))
    return every_cover_weighs(sets, integers([*heaviness, errors])[0])


def fewest_on_a_line(points):
    """The least weight of errors of all thresholds; a point is (place, weight times sign)."""
    at = {}
    for x, s in points:
        at[x] = [a + b for a, b in zip(at.get(x, (ZERO, ZERO)), (max(s, ZERO), max(-s, ZERO)))]
    plus, minus = (sum(a[side] for a in at.values()) for side in (0, 1))
    left = [ZERO, ZERO]
    best = min(plus, minus)
    for x in sorted(at):
        left = [a + b for a, b in zip(left, at[x])]
        best = min(best, left[0] + minus - left[1], left[1] + plus - left[0])
    return best


def fewest_in_a_plane(points):
    """The least weight of errors of all lines.

    Every line can be moved until it meets two points, without a point changing sides before. So each line through two
    points is tried; those on it are divided anywhere along it, as turning the line about a place on it does.
    """
    unit = math.lcm(*(c.denominator for x, _ in points for c in x))
    at = [(int(x[0] * unit), int(x[1] * unit), s) for x, s in points]
    total = sum(abs(s) for _, _, s in at)
    gain = sum(s for _, _, s in at)
    best_gain = abs(gain)
    for i, (px, py, _) in enumerate(at):
        for qx, qy, _ in at[:i]:
            dx, dy = qx - px, qy - py
            if not (dx or dy):
                continue
            side, online = ZERO, []
            for x, y, s in at:
                cross = dx * (y - py) - dy * (x - px)
                if cross:
                    side += s if cross > 0 else -s
                else:
                    online.append((dx * (x - px) + dy * (y - py), s))
            best_gain = max(best_gain, *map(abs, _divided(online, side)))
    return (total - best_gain) / 2


def _divided(online, side):
    """What a line gains when the points on it are divided at each place along it, both ways."""
    steps = {}
    for where, s in online:
        steps[where] = steps.get(where, ZERO) + s
    every = sum(steps.values())
    before = ZERO
    found = [side + every, side - every]
    for where in sorted(steps):
        before += steps[where]
        found += [side + 2 * before - every, side - 2 * before + every]
    return found


def hulls_meet(points, guess, d):
    """Whether weights a >= 0 near the guess have sum a_i sign_i (x_i, 1) = 0: no hyperplane gets all points right."""
    a = [Fraction(x) if math.isfinite(x) and x > 0 else ZERO for x in guess]
    if len(a) != len(points) or not any(a):
        return False
    signed = [
        {**{j: sign * x for j, x in point.items()}, d: Fraction(sign)} for point, sign in points
    ]
    used = sorted({j for row in signed for j in row})
    h = [short(x * x) for x in a]
    miss = [-sum((x * row.get(j, ZERO) for x, row in zip(a, signed)), ZERO) for j in used]
    matrix = [
        [
            sum((b * row.get(j, ZERO) * row.get(other, ZERO) for b, row in zip(h, signed)), ZERO)
            for other in used
        ]
        for j in used
    ]
    step = solve_exactly(matrix, miss)
    if step is None:
        return False
    exact = [
        x + b * sum(row.get(j, ZERO) * t for j, t in zip(used, step))
        for x, b, row in zip(a, h, signed)
    ]
    sums = [sum((x * row.get(j, ZERO) for x, row in zip(exact, signed)), ZERO) for j in used]
    return min(exact) >= 0 and any(exact) and not any(sums)


def every_cover_weighs(sets, numbers, most=200_000):
    """Whether all covers, sets of points that meet every witness, weigh at least the last number; by branching."""
    *weight, goal = numbers
    left = [most]

    def lighter(open_sets, banned, cost):
        left[0] -= 1
        if left[0] < 0:
            raise Rejected("the least cover of the witnesses is too hard to be proven here")
        taken, bound = set(), cost
        for one in sorted(open_sets, key=len):  # disjoint sets each cost their lightest point
            free = one - banned
            if not free:
                return False
            if not free & taken:
                taken |= free
                bound += min(weight[i] for i in free)
        if bound >= goal:
            return False
        if not open_sets:
            return True
        branch = min((one - banned for one in open_sets), key=len)
        for i in sorted(branch, key=lambda i: -sum(i in one for one in open_sets)):
            rest = [one for one in open_sets if i not in one]
            if lighter(rest, banned, cost + weight[i]):
                return True
            banned = banned | {i}
        return False

    return not lighter(sets, frozenset(), 0)


def show(x):
    """A fraction for people."""
    return f"{float(x):.9g}"


def check_convex(model, table):
    """Prove every part of a model that minimises a convex loss."""
    claim = model["fitted"]["certificate_"]
    parts = claim["parts"] or [claim]
    proofs = []
    for number, (problem, recipe, dual) in enumerate(problems(model, table)):
        if number >= len(parts):
            raise Rejected("the certificate has fewer parts than the model")
        if parts[number] != model["fitted"]["_fits"][number]["certificate"]:
            raise Rejected("the certificate of the model is not the one of its fit")
        check_consistency(parts[number], recipe["tol"])
        proof = prove(problem, recipe, dual, parts[number])
        check_claim(parts[number], problem, proof, recipe["tol"])
        proofs.append(proof)
    if len(proofs) != len(parts):
        raise Rejected("the certificate has more parts than the model")
    if claim["parts"]:
        check_sum(claim, parts)
    high, low = sum(p.high for p in proofs), sum(p.bound for p in proofs)
    share = (
        "zero to working precision"
        if all(p.nothing_left for p in proofs)
        else (f"relative gap {float((high - low) / high) if high else 0.0:.1e}")
    )
    return f"objective {show(high)}, minimum at least {show(low)}, {share} (tol {claim['tol']:g})"


def check(model_path, rows_path):
    """The line to print for a model that is proven."""
    try:
        model, table = read_model(Path(model_path)), read_rows(Path(rows_path))
    except Unusable:
        raise
    except Exception as error:  # whatever is wrong with a file, it cannot be used
        raise Unusable(f"{type(error).__name__}: {error}") from error
    fitted = model["fitted"]
    if fitted.get("n_features_in_") != table.d:
        raise Unusable(
            f"the rows have {table.d} columns, the model has {fitted.get('n_features_in_')}"
        )
    certificate = fitted.get("certificate_")
    record = certificate.get("record") if isinstance(certificate, dict) else None
    if record == "Optimality":
        found = check_convex(model, table)
    elif record == "ZeroOne":
        found = check_zero_one(model, table)
    else:
        raise Unusable(f"a {model['model']} carries no certificate of optimality")
    return f"{model['model']}, {len(table.rows)} rows: {found}"


def main(arguments):
    """Check one model."""
    if len(arguments) != 2:
        print(__doc__.split("\n\n")[1])
        return 2
    try:
        print(f"proven: {check(*arguments)}")
    except Rejected as error:
        print(f"REJECTED: {error}")
        return 1
    except Unusable as error:
        print(f"unusable: {error}")
        return 2
    except (LookupError, TypeError, ValueError, ArithmeticError, AttributeError) as error:
        print(f"unusable: the model file is not as it must be ({type(error).__name__}: {error})")
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
