"""Small random problems, their objective written out once more, and their optimum by other means."""

import dataclasses

import numpy as np
import pytest
import scipy.optimize

from linsep import losses
from linsep.certificates import Part, closing_sums_numpy, from_sums, parts
from linsep.losses import Loss, Multinomial
from linsep.penalties import ElasticNet
from linsep.solution import Explicit, Linearised

CONVEX = [losses.get(name) for name in losses.NAMES if losses.get(name).convex]
SMOOTH = [loss for loss in CONVEX if loss.smooth]


def naming(value):
    return value.name if isinstance(value, (Loss, Multinomial)) else None


def problem(loss, seed=0, n=40, d=3, *, weighted=True, fit_intercept=True, C=1.0):
    """Random rows that overlap, so that a minimiser exists for every loss and C."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    z = X @ np.linspace(1.0, -1.0, d) + 0.3
    if loss.regression:
        sigma, offset = np.ones(n), 1 - (z + rng.normal(size=n))
    else:
        sigma, offset = np.where(z + 1.5 * rng.normal(size=n) > 0, 1.0, -1.0), None
    weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=n) if weighted else None
    W = np.zeros((d + 1, 1))
    dual = Explicit(np.zeros(n))
    return Part(loss, ElasticNet(C), fit_intercept, X, sigma, offset, weight, None, W, dual, 1e-6)


def part_of(loss, X, sigma, offset, weight, W, dual, *, penalty, fit_intercept, tol, labels=None):
    """A subproblem with what claims to solve it, its rows first."""
    return Part(loss, penalty, fit_intercept, X, sigma, offset, weight, labels, W, dual, tol)


def objective(part, theta):
    """P, its gradient and Hessian in internal units: a text of its own."""
    n, d = part.X.shape
    A = np.hstack([part.X, np.full((n, 1), float(part.fit_intercept))])
    s = np.ones(n) if part.weight is None else part.weight
    o = np.zeros(n) if part.offset is None else part.offset
    m = part.sigma * (A @ theta) + o
    ridge = part.penalty.l2 * np.append(np.ones(d), 0.0)
    value = s @ part.loss.value(m) + 0.5 * ridge @ theta**2
    g = A.T @ (s * part.sigma * part.loss.slope(m)) + ridge * theta
    H = A.T @ ((s * part.loss.curvature(m))[:, None] * A) + np.diag(ridge)
    return value, g, H


def newton_step(part, theta):
    _, g, H = objective(part, theta)
    return -np.linalg.lstsq(H, g, rcond=1e-12)[0]


def optimum(part):
    """The minimiser to working precision: a quasi-Newton start, then damped Newton steps."""
    d = part.X.shape[1]
    start = scipy.optimize.minimize(
        lambda t: objective(part, t)[:2],
        np.zeros(d + 1),
        jac=True,
        method="BFGS",
        options={"gtol": 1e-6},
    ).x
    theta = start
    for _ in range(50):
        step, t = newton_step(part, theta), 1.0
        while objective(part, theta + t * step)[0] > objective(part, theta)[0] and t > 1e-10:
            t /= 2
        if t <= 1e-10 or np.abs(step).max() < 1e-14:
            break
        theta = theta + t * step
    if not part.fit_intercept:
        theta[-1] = 0.0
    return theta


def duals_for(part, theta, seed=0):
    """Good, plain, random and absurd dual points."""
    rng = np.random.default_rng(seed)
    n = len(part.X)
    step = newton_step(part, theta)
    low, high = np.clip(part.loss.domain, -3.0, 3.0)
    return {
        "newton": Linearised(theta[:, None], step[:, None]),
        "slopes": Linearised(theta[:, None], np.zeros((len(theta), 1))),
        "random": Explicit(rng.uniform(low, high, n)),
        "one sided": Explicit(np.full(n, high)),
        "outside": Explicit(rng.normal(scale=50.0, size=n)),
        "not finite": Explicit(rng.choice([np.nan, np.inf, -np.inf, 0.1], n)),
        "zero": Explicit(np.zeros(n)),
    }


def certificate(part):
    sums = closing_sums_numpy(
        part.loss, part.X, part.sigma, part.offset, part.weight, part.W, part.dual
    )
    return from_sums(
        sums,
        part.W[:-1, 0],
        part.penalty,
        fit_intercept=part.fit_intercept,
        tol=part.tol,
        rows_per_sum=parts.longest_sum(part.X),
    )


def assert_same_sums(a, b, rel=1e-12):
    for field in dataclasses.fields(a):
        left, right = getattr(a, field.name), getattr(b, field.name)
        size = np.abs(right).max(initial=1e-300) if np.ndim(right) else abs(right)
        assert left == pytest.approx(right, rel=rel, abs=rel * size), field.name


def softmax_problem(seed=0, n=60, d=2, k=3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    labels = np.argmax(X @ rng.normal(size=(d, k)) + rng.gumbel(size=(n, k)) * 2, axis=1)
    labels[:k] = np.arange(k)
    return X, labels.astype(np.int64), rng.choice([0.5, 1.0, 2.0], n)


def softmax_objective(flat, X, labels, s, lam, fit_intercept, k):
    n, d = X.shape
    W = flat.reshape(d + 1, k)
    A = np.column_stack([X, np.full(n, float(fit_intercept))])
    loss = Multinomial(k)
    Z = A @ W
    G = A.T @ (s[:, None] * loss.slope(Z, labels))
    G[:-1] += lam * W[:-1]
    return s @ loss.value(Z, labels) + lam / 2 * (W[:-1] ** 2).sum(), G.ravel()


def softmax_optimum(X, labels, s, lam, fit_intercept=True, k=3):
    size = (X.shape[1] + 1) * k
    args = (X, labels, s, lam, fit_intercept, k)
    return scipy.optimize.minimize(
        softmax_objective, np.zeros(size), args, jac=True, method="BFGS", options={"gtol": 1e-10}
    )
