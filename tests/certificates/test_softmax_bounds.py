"""Bounds on the multinomial objective, against dual points made feasible in exact arithmetic."""

from fractions import Fraction

import numpy as np
import pytest
from scipy.special import softmax

from linsep.certificates.softmax import bounds
from linsep.data import Memory
from linsep.losses import Multinomial
from linsep.penalties import ElasticNet
from linsep.problem.coupled import CoupledProblem
from linsep.problem.duality import CoupledSums
from linsep.solution import Explicit


def make(n=40, d=3, k=3, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    return X, y, rng.random(n) + 0.5, rng


def found(X, y, s, W, P, lam, fit_intercept=True):
    """What the closing pass and ``bounds`` make of U = onehot(y) - P."""
    k = P.shape[1]
    problem = CoupledProblem(
        Multinomial(k), ElasticNet(1.0 / lam), Memory(X, weight=s, labels=y), fit_intercept
    )
    sums = problem.closing(W, Explicit(np.eye(k)[y] - P))
    named = CoupledSums.from_flat(sums, X.shape[1], k)
    return bounds(
        named,
        W[:-1],
        loss=Multinomial(k),
        lam=lam,
        fit_intercept=fit_intercept,
        rows_per_sum=len(y) + 1,
        rows=len(y),
    )


def mixed_exactly(y, s, P):
    """The mixture that balances the classes, row by row, in rational numbers."""
    k = P.shape[1]
    weight = [Fraction(v) for v in s]
    rows = []
    for p, label in zip(P, y, strict=True):
        q = [Fraction(v) for v in p]
        q[label] = 1 - sum(v for c, v in enumerate(q) if c != label)
        rows.append(q)
    mass = [sum(w for w, label in zip(weight, y, strict=True) if label == c) for c in range(k)]
    have = [sum(w * q[c] for w, q in zip(weight, rows, strict=True)) for c in range(k)]
    t = max([Fraction(0)] + [1 - m / h for m, h in zip(mass, have, strict=True) if h > m])
    total = sum(weight)
    if t == 0:
        return rows, t
    r = [(m - (1 - t) * h) / (t * total) for m, h in zip(mass, have, strict=True)]
    assert sum(r) == 1 and min(r) >= 0
    out = [[(1 - t) * v + t * e for v, e in zip(q, r, strict=True)] for q in rows]
    for c in range(k):
        assert sum(w * q[c] for w, q in zip(weight, out, strict=True)) == mass[c]
    return out, t


def dual_value(X, y, s, P, lam):
    U = np.eye(P.shape[1])[y] - P
    positive = np.where(P > 0, P, 1.0)
    V = X.T @ (s[:, None] * U)
    return -(s[:, None] * P * np.log(positive)).sum() - (V**2).sum() / (2 * lam)


@pytest.mark.parametrize("k", [3, 5])
@pytest.mark.parametrize("off", [0.0, 1e-9, 1e-3, 0.3, 3.0])
def test_bound_is_that_of_a_point_feasible_exactly(k, off):
    X, y, s, rng = make(k=k)
    lam = 3.0
    W = 0.3 * rng.normal(size=(4, k))
    mass = np.bincount(y, weights=s, minlength=k) / s.sum()
    P = softmax(np.log(mass) + off * rng.normal(size=(len(y), k)), axis=1)
    got = found(X, y, s, W, P, lam)
    exact, t = mixed_exactly(y, s, P)
    Q = np.array([[float(v) for v in row] for row in exact])
    feasible = dual_value(X, y, s, Q, lam)
    assert got.dual <= feasible + got.rounding
    # Concavity is all that is given away: of the order of the mixing weight.
    assert got.dual >= feasible - 2 * float(t) * s.sum() * np.log(k) - got.rounding
    assert got.rounding <= 1e-9


def test_every_bound_is_below_every_value():
    X, y, s, rng = make()
    lam = 0.7
    plain = {"lam": lam, "fit_intercept": True}
    values, lower = [], []
    for size in (0.0, 0.1, 1.0, 5.0):
        W = size * rng.normal(size=(4, 3))
        P = softmax(np.c_[X, np.ones(len(X))] @ W, axis=1)
        got = found(X, y, s, W, P, **plain)
        values.append(got.primal + got.rounding)
        lower.append(got.dual - got.rounding)
    assert max(lower) <= min(values)


def test_without_intercept_nothing_is_mixed():
    X, y, s, rng = make()
    P = rng.dirichlet(np.ones(3), len(y))
    W = np.zeros((4, 3))
    got = found(X, y, s, W, P, 2.0, fit_intercept=False)
    assert got.dual == pytest.approx(dual_value(X, y, s, P, 2.0), rel=1e-12)


def test_no_penalty_means_no_bound_but_zero():
    flat = np.ones(4 + 3 + 3 + 6 + 6 + 2)
    named = CoupledSums.from_flat(flat, 2, 3)
    got = bounds(
        named, np.zeros((2, 3)), loss=Multinomial(3), lam=0.0, fit_intercept=True, rows_per_sum=10
    )
    assert got.dual == 0.0
    assert got.primal == 1.0


def test_a_class_without_weight_cannot_be_certified():
    X, y, s, _ = make()
    s[y == 1] = 0.0
    P = np.full((len(y), 3), 1 / 3)
    got = found(X, y, s, np.zeros((4, 3)), P, 1.0)
    assert got.rounding == np.inf


def test_allowance_follows_the_size_of_the_scores():
    """Columns shifted by 1e6: rounding really is that much larger, and is allowed for."""
    X, y, s, rng = make()
    W = np.vstack([rng.normal(size=(3, 3)), np.zeros((1, 3))])
    shift = 1e6
    shifted = W.copy()
    shifted[-1] = -shift * W[:-1].sum(axis=0)
    P = np.full((len(y), 3), 1 / 3)
    near, far = found(X, y, s, W, P, 1.0), found(X + shift, y, s, shifted, P, 1.0)
    assert far.rounding > 1e4 * near.rounding
    assert abs(far.primal - near.primal) <= far.rounding + near.rounding


def test_class_sums_too_small_to_divide_by():
    """Residuals of 1e-320 are balanced as far as float64 can tell."""
    d, k = 1, 3
    tiny = np.array([-1e-320, 1e-320, 0.0])
    flat = np.concatenate([[1.0, 1.0, 1.0, 2.0], np.ones(k), tiny, np.zeros(2 * d * k), [0.0, 0.0]])
    named = CoupledSums.from_flat(flat, d, k)
    got = bounds(
        named, np.zeros((d, k)), loss=Multinomial(k), lam=1.0, fit_intercept=True, rows_per_sum=3
    )
    assert got.dual == 1.0
    assert 0 < got.rounding < 1e-13
