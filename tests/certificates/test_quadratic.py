"""Least squares without a penalty: the bound of one Cholesky factorisation against exact arithmetic."""

import math
from fractions import Fraction

import numpy as np
import pytest
import scipy.sparse as sp

from linsep.certificates.curvature.certificate import visit
from linsep.certificates.curvature.kernel_rows import KernelRows
from linsep.certificates.curvature.quadratic import parabola_drop
from linsep.certificates.curvature.rows import Rows, row_curvatures
from linsep.data import Memory
from linsep.losses import Squared

LOSS = Squared(centre=0.0)


def solved(A, b):
    """Solution of A x = b in fractions, by elimination."""
    n = len(b)
    M = [[*row, value] for row, value in zip(A, b, strict=True)]
    for k in range(n):
        pivot = next(i for i in range(k, n) if M[i][k])
        M[k], M[pivot] = M[pivot], M[k]
        for i in range(n):
            if i != k and M[i][k]:
                factor = M[i][k] / M[k][k]
                M[i] = [a - factor * p for a, p in zip(M[i], M[k], strict=True)]
    return [M[k][n] / M[k][k] for k in range(n)]


def exact_drop(X, target, weight, theta):
    """P(theta) - P* and theta* - theta, in fractions."""
    rows = [[*map(Fraction, row), Fraction(1)] for row in X.tolist()]
    t, s = list(map(Fraction, target.tolist())), list(map(Fraction, weight.tolist()))
    at = list(map(Fraction, theta.tolist()))
    r = [
        v - sum(a * b for a, b in zip(row, at, strict=True)) for row, v in zip(rows, t, strict=True)
    ]
    p = len(at)
    H = [
        [sum(w * row[i] * row[j] for w, row in zip(s, rows, strict=True)) for j in range(p)]
        for i in range(p)
    ]
    g = [sum(w * e * row[i] for w, e, row in zip(s, r, rows, strict=True)) for i in range(p)]
    move = solved(H, g)
    return float(sum(a * b for a, b in zip(g, move, strict=True))), np.array(list(map(float, move)))


def given(seed, spread=0.0, n=12, d=3):
    """Rows, targets, weights (one of them 0) and a point near the minimum."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) * 2.0 ** rng.integers(-30, 30, size=d)
    X[:, -1] = X[:, 0] * (1.0 + spread * rng.normal(size=n)) if spread else X[:, -1]
    weight = rng.uniform(0.5, 2.0, size=n)
    weight[0] = 0.0
    target = rng.normal(size=n)
    root = np.sqrt(weight)
    A = np.column_stack([X, np.ones(n)]) * root[:, None]
    theta = np.linalg.lstsq(A / np.linalg.norm(A, axis=0), root * target, rcond=None)[0]
    return X, target, weight, theta / np.linalg.norm(A, axis=0)


@pytest.mark.parametrize("storage", ["numpy", "memory", "sparse"])
@pytest.mark.parametrize("spread", [0.0, 1e-2])
def test_bounds_the_exact_distance_from_the_minimum(storage, spread):
    for seed in range(4):
        X, target, weight, best = given(seed, spread)
        for distance in (0.0, 1e-9, 1e-3):
            theta = best * (1.0 + distance * np.random.default_rng(seed + 9).normal(size=len(best)))
            if storage == "numpy":
                part = Rows(X, np.ones(len(X)), -target, weight, True, 0.0)
                at = visit(LOSS, part, theta)
            else:
                rows = sp.csr_array(X) if storage == "sparse" else X
                part = KernelRows.of(Memory(rows, np.ones(len(X)), -target, weight), True)
                at = part.visit(LOSS, theta)
            found = parabola_drop(part, at, row_curvatures(part.weight, LOSS.curvature(at.m)))
            assert found is not None
            drop, factor = found
            true, move = exact_drop(X, target, weight, theta)
            assert drop >= true
            assert np.linalg.norm(move[:-1]) <= factor * math.sqrt(true) * (1 + 1e-12)
            if distance == 1e-3:  # close to the truth, not merely above it
                assert drop <= 1.01 * true


def test_dependent_columns_prove_nothing():
    X, target, weight, theta = given(0)
    X[:, -1] = X[:, 0]
    part = Rows(X, np.ones(len(X)), -target, weight, True, 0.0)
    at = visit(LOSS, part, theta)
    assert parabola_drop(part, at, row_curvatures(weight, LOSS.curvature(at.m))) is None


def test_a_curvature_below_the_smallest_proves_nothing():
    X, target, weight, theta = given(0)
    weight[1] = 1e-300
    part = Rows(X, np.ones(len(X)), -target, weight, True, 0.0)
    at = visit(LOSS, part, theta)
    assert parabola_drop(part, at, row_curvatures(weight, LOSS.curvature(at.m))) is None
