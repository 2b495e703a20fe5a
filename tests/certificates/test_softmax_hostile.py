"""Certificates of losses that couple the classes on hostile points, against exact and 1500-bit arithmetic."""

from __future__ import annotations

import math
from dataclasses import replace
from fractions import Fraction

import mpmath
import numpy as np
import pytest

from linsep import _kernels
from linsep.certificates import CoupledSums, from_softmax_sums, softmax_sums_numpy
from linsep.certificates.softmax import bounds
from linsep.data import Memory
from linsep.losses import CrammerSinger, Multinomial
from linsep.penalties import ElasticNet
from linsep.problem import CoupledProblem, MaxMarginProblem
from linsep.solution import Explicit

BITS = 1500
LOSSES = [Multinomial, CrammerSinger]


def number(value):
    """A float as an exact number of many bits."""
    return mpmath.mpf(float(value))


def loss_of(kind, z, label):
    """The loss of the exact scores z."""
    if kind is CrammerSinger:
        return max([mpmath.mpf(0)] + [1 + v - z[label] for c, v in enumerate(z) if c != label])
    top = max(z)
    return top + mpmath.log(mpmath.fsum(mpmath.exp(v - top) for v in z)) - z[label]


def entropy_of(kind, p, label):
    """Minus the conjugate at the exact p."""
    if kind is CrammerSinger:
        return 1 - p[label]
    return -mpmath.fsum(v * mpmath.log(v) for v in p if v > 0)


def primal_exactly(kind, X, y, s, W, lam):
    """P(W)."""
    rows = []
    for x, label, weight in zip(X, y, s, strict=True):
        z = [mpmath.fdot(map(number, [*x, 1.0]), map(number, w)) for w in W.T]
        rows.append(number(weight) * loss_of(kind, z, label))
    squares = mpmath.fsum(number(v) ** 2 for v in W[:-1].ravel())
    return mpmath.fsum(rows) + number(lam) * squares / 2


def feasible_point(U, y, s, fit_intercept):
    """p of all rows: the entries of U off the label, shrunk into the simplex, and mixed to balance the classes."""
    k = U.shape[1]
    off = [
        [Fraction(0) if c == y[i] else -Fraction(float(U[i, c])) for c in range(k)]
        for i in range(len(y))
    ]
    shrink = max(Fraction(1), *(sum(row) for row in off))
    P = [[v / shrink for v in row] for row in off]
    for row, label in zip(P, y, strict=True):
        assert min(row) >= 0
        row[label] = 1 - sum(row)
    if not fit_intercept:
        return P
    weight = [Fraction(float(v)) for v in s]
    mass = [sum(w for w, label in zip(weight, y, strict=True) if label == c) for c in range(k)]
    have = [sum(w * row[c] for w, row in zip(weight, P, strict=True)) for c in range(k)]
    t = max([Fraction(0)] + [1 - m / h for m, h in zip(mass, have, strict=True) if h > m])
    if t == 0:
        return P
    r = [(m - (1 - t) * h) / (t * sum(weight)) for m, h in zip(mass, have, strict=True)]
    return [[(1 - t) * v + t * q for v, q in zip(row, r, strict=True)] for row in P]


def dual_exactly(kind, X, y, s, U, lam, fit_intercept):
    """D at the feasible point next to U: a lower bound on every P."""

    def exact(v):
        return mpmath.mpf(v.numerator) / v.denominator

    P = feasible_point(U, y, s, fit_intercept)
    gain = mpmath.fsum(
        number(w) * entropy_of(kind, [exact(v) for v in row], label)
        for w, row, label in zip(s, P, y, strict=True)
    )
    squares = mpmath.mpf(0)
    for c in range(U.shape[1]):
        side = [
            number(w) * exact((label == c) - row[c]) for w, row, label in zip(s, P, y, strict=True)
        ]
        for x in X.T:
            squares += mpmath.fdot(side, map(number, x)) ** 2
    return gain - squares / (2 * number(lam))


def sums_of(kind, X, y, s, W, U, lam, by):
    """The closing sums, by the kernels or by numpy."""
    k = W.shape[1]
    if by == "numpy":
        return softmax_sums_numpy(kind(k), X, y, s, W, Explicit(U))
    data = Memory(X, weight=s, labels=np.asarray(y, np.int64))
    problem = (MaxMarginProblem if kind is CrammerSinger else CoupledProblem)(
        kind(k), ElasticNet(1.0 / lam), data
    )
    return CoupledSums.from_flat(problem.closing(W, Explicit(U)), X.shape[1], k)


def covers(kind, X, y, s, W, U, lam, sums, *, fit_intercept=False):
    """Whether the claimed interval contains the exact values."""
    n = len(y)
    found = bounds(
        sums,
        W[:-1],
        loss=kind(W.shape[1]),
        lam=lam,
        fit_intercept=fit_intercept,
        rows_per_sum=n + 1,
        rows=n,
    )
    assert math.isfinite(found.rounding)
    with mpmath.workprec(BITS):
        primal = primal_exactly(kind, X, y, s, W, lam)
        dual = dual_exactly(kind, X, y, s, U, lam, fit_intercept)
        slack = number(found.rounding)
        fine = abs(primal - number(found.primal)) <= slack
        fine &= dual >= number(found.dual) - slack
        return fine and primal - dual <= number(found.primal) - number(found.dual) + slack


def hostile(seed):
    """Rows of uneven size that cancel, weights over many decades, p at the ends of the simplex, rows on the kink."""
    rng = np.random.default_rng(seed)
    n, d, k = 9, int(rng.integers(1, 4)), int(rng.integers(2, 6))
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-6, 6, size=(n, 1))
    X[0], X[1] = 2.0**40, -(2.0**40)
    y = np.append(np.arange(k), rng.integers(k, size=n - k))
    s = 10.0 ** (rng.uniform(-8, 8, size=n) if seed % 2 else rng.uniform(-250, 100) * np.ones(n))
    W = rng.standard_normal((d + 1, k)) * 10.0 ** rng.uniform(-6, 1)
    if seed % 3 == 0:  # the last rows on the kink, up to rounding
        for i in range(k, n):
            rival = (y[i] + 1) % k
            gap = X[i] @ (W[:-1, y[i]] - W[:-1, rival])
            X[i] *= (1.0 - W[-1, y[i]] + W[-1, rival]) / gap
    P = rng.dirichlet(np.ones(k), size=n) ** rng.choice([1.0, 8.0, 40.0], size=(n, 1))
    P /= P.sum(axis=1, keepdims=True)
    P[::4] = np.eye(k)[y[::4]] * (1.0 - 2.0**-50) + 2.0**-50 / k
    U = np.eye(k)[y] - P
    U[np.arange(n), y] = 0.0
    U[np.arange(n), y] = -U.sum(axis=1)
    lam = float(s.mean() * 10.0 ** rng.uniform(-4, 4))
    return X, y, s, W, U, lam


@pytest.mark.sampled(24)
@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("seed", range(24))
def test_the_interval_contains_the_exact_values(kind, seed, by):
    X, y, s, W, U, lam = hostile(seed)
    sums = sums_of(kind, X, y, s, W, U, lam, by)
    assert covers(kind, X, y, s, W, U, lam, sums)
    assert covers(kind, X, y, s, W, U, lam, sums, fit_intercept=True)


# --- every term is needed


def plain_rows(k=3, n=6, d=2):
    rng = np.random.default_rng(3)
    X, y = rng.standard_normal((n, d)), np.arange(n) % k
    W = rng.standard_normal((d + 1, k))
    P = rng.dirichlet(np.ones(k), size=n)
    U = np.eye(k)[y] - P
    U[np.arange(n), y] = 0.0
    U[np.arange(n), y] = -U.sum(axis=1)
    return X, y, np.ones(n), W, U, 1.0


@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
def test_scores_that_cancel(kind, by):
    """magnitude: x.w loses its small part, and the loss with it."""
    X, y, s, W, U, lam = plain_rows()
    large = np.full((6, 8), 2.0**60)
    X = np.hstack([large, X[:, :1].repeat(8, axis=1), -large])
    W = np.repeat([[1.0] * 3, [-2.0, 5.0, 1.0], [1.0] * 3, [0.0] * 3], [8, 8, 8, 1], axis=0)
    U = np.zeros_like(U)
    sums = sums_of(kind, X, y, s, W, U, lam, by)
    assert covers(kind, X, y, s, W, U, lam, sums)
    assert not covers(kind, X, y, s, W, U, lam, replace(sums, magnitude=0.0))


@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
def test_sums_of_rows_that_cancel(kind, by):
    """spread: V = 0 because large rows swallowed the small ones; at W = 0 no score is in doubt."""
    n, k = 64, 2
    y = np.arange(n) % 2
    X = np.where(y == 0, 1.0, -1.0)[:, None].repeat(2, axis=1) * [1.0, -1.0]
    for c in range(k):
        own = np.flatnonzero(y == c)
        X[own[:8]], X[own[-8:]] = (1 - 2 * c) * 2.0**56, (2 * c - 1) * 2.0**56
    s, W = np.ones(n), np.zeros((3, k))
    U = 0.5 * (2.0 * np.eye(k)[y] - 1.0)
    sums = sums_of(kind, X, y, s, W, U, 1.0, by)
    assert covers(kind, X, y, s, W, U, 1.0, sums)
    assert not covers(kind, X, y, s, W, U, 1.0, replace(sums, spread=0.0))


@pytest.mark.parametrize("kind", LOSSES)
def test_losses_that_are_lost_in_their_sum(kind):
    """absolute: each chunk of small losses is below half a unit in the last place of what is there already."""
    X, y = np.zeros((1, 1)), np.zeros(1, np.int64)
    chunk = _kernels.softmax_chunk(Memory(X, labels=y).example_row(), 2)
    n = 400 * chunk
    X, y, W = np.zeros((n, 1)), np.arange(n) % 2, np.zeros((2, 2))
    s = np.full(n, 0.9 * 2.0**-54 / chunk)
    s[0] = 1.0
    U = np.zeros((n, 2))
    sums = sums_of(kind, X, y, s, W, U, 1.0, "kernels")
    value = math.log(2.0) if kind is Multinomial else 1.0
    exact = Fraction(value) * sum(map(Fraction, s[:2])) + (n - 2) * Fraction(s[1]) * Fraction(value)

    def within(sums):
        found = bounds(sums, W[:-1], loss=kind(2), lam=1.0, fit_intercept=False, rows_per_sum=n)
        return abs(Fraction(found.primal) - exact) <= Fraction(found.rounding)

    assert within(sums)
    assert not within(replace(sums, absolute=0.0))


@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
def test_products_that_underflow(kind, by, tuned):
    """s l is a multiple of 2^-1074."""
    X, y, _, W, U, _ = plain_rows()
    s, lam = np.full(6, 5e-324), 1e-300
    W[:-1], U = 0.0, np.zeros_like(U)
    sums = sums_of(kind, X, y, s, W, U, lam, by)
    assert covers(kind, X, y, s, W, U, lam, sums)
    tuned(softmax_underflow=0.0)
    assert not covers(kind, X, y, s, W, U, lam, sums)


@pytest.mark.parametrize("kind", LOSSES)
def test_squares_that_underflow(kind):
    """Rows shorter than 1e-162 have no square in float64, and a length all the same."""
    X, y, s, W, U, _ = plain_rows()
    X = X * 1e-170
    sums = sums_of(kind, X, y, s, W, U, 1.0, "kernels")
    assert sums.spread >= 1e-170 and sums.bulk >= 1e-170
    want = softmax_sums_numpy(kind(3), X, y, s, W, Explicit(U))
    assert sums.spread == pytest.approx(want.spread, rel=1e-12)


def test_the_value_of_a_large_dual_point_errs_by_its_own_size():
    """lam/2 |at|^2 and the entropy cancel: their roundings are those of the terms, not of the difference."""
    X, y, s, W, U, lam = plain_rows()
    W[:] = 0.0
    sums = sums_of(CrammerSinger, X, y, s, W, U, lam, "kernels")
    big = replace(
        sums,
        v=1e8 * sums.v,
        entropy=0.5e16 * float(np.vdot(sums.v, sums.v)),
        loss=1e-9,
        absolute=0.0,
    )
    big = replace(big, spread=0.0, magnitude=0.0)
    found = bounds(big, W[:-1], loss=CrammerSinger(3), lam=lam, fit_intercept=False, rows_per_sum=7)
    assert found.rounding >= 2.0**-53 * big.entropy


# --- what is not in the simplex, or not finite, proves nothing


@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
@pytest.mark.parametrize("bad", [np.nan, np.inf, -np.inf, 2.0, -0.5])
def test_points_outside_the_simplex_are_replaced(kind, bad, by):
    X, y, s, W, U, lam = plain_rows()
    U[2] = bad
    sums = sums_of(kind, X, y, s, W, U, lam, by)
    found = bounds(sums, W[:-1], loss=kind(3), lam=lam, fit_intercept=True, rows_per_sum=7)
    with mpmath.workprec(BITS):
        best = min(primal_exactly(kind, X, y, s, scale * W, lam) for scale in (0.0, 0.5, 1.0))
        assert number(found.dual) - number(found.rounding) <= best
    assert math.isfinite(found.rounding)


@pytest.mark.parametrize("by", ["kernels", "numpy"])
@pytest.mark.parametrize("kind", LOSSES)
def test_scores_that_overflow_are_not_certified(kind, by):
    """Neither the loss nor the fallback of a row with scores inf - inf is a number."""
    X, y, s, W, U, lam = plain_rows()
    X = X * 1e200
    W = np.array([[1e200, -1e200, 1e200], [-1e200, 1e200, 1e200], [0.0, 0.0, 0.0]])
    U[:] = np.nan
    with np.errstate(all="ignore"):
        sums = sums_of(kind, X, y, s, W, U, lam, by)
        found = from_softmax_sums(
            *(sums, W[:-1], kind(3), ElasticNet(1.0 / lam)),
            fit_intercept=True,
            tol=1e-6,
            rows_per_sum=7,
        )
    assert not found.certified
    assert not found.dual > 0.0
