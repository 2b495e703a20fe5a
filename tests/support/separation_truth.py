"""What is true about the separation of small data, by linear programmes that share nothing with linsep."""

import numpy as np
from scipy.optimize import linprog


def signed_rows(X, sign, fit_intercept=True):
    A = np.column_stack([X, np.ones(len(X))]) if fit_intercept else X
    return sign[:, None] * A


def truth(X, sign, fit_intercept=True):
    """ "separable", "quasi" or "overlap" (Albert and Anderson 1984), columns scaled to at most 1."""
    size = np.abs(X).max(axis=0)
    A = signed_rows(X / np.where(size > 0, size, 1.0), sign, fit_intercept)
    m, p = A.shape
    best = linprog(
        np.append(np.zeros(p), -1.0),
        A_ub=np.column_stack([-A, np.ones(m)]),
        b_ub=np.zeros(m),
        bounds=[(-1, 1)] * p + [(None, 1)],
    )
    if -best.fun > 1e-7:
        return "separable"
    moved = linprog(-A.sum(axis=0), A_ub=-A, b_ub=np.zeros(m), bounds=[(-1, 1)] * p)
    return "quasi" if -moved.fun > 1e-7 else "overlap"


def draw(rng, kind):
    """A random small problem: X, sign."""
    n, d = rng.integers(2, 60), rng.integers(1, 7)
    X = {
        "flags": lambda: rng.integers(0, 2, (n, d)).astype(float),
        "integers": lambda: rng.integers(-3, 4, (n, d)).astype(float),
        "gaussian": lambda: rng.normal(size=(n, d)),
        "scales": lambda: rng.integers(-2, 3, (n, d)) * 10.0 ** rng.integers(-6, 7, d),
    }[kind]()
    noise = rng.choice([0.0, 0.1, 1.0, 100.0])
    size = np.abs(X).max(axis=0)
    z = X / np.where(size > 0, size, 1.0) @ rng.normal(size=d) + noise * rng.normal(size=n)
    sign = np.where(z > 0, 1.0, -1.0)
    sign[:2] = 1.0, -1.0
    return X, sign


KINDS = ("flags", "integers", "gaussian", "scales")
