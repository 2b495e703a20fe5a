"""Twelve models of scikit-learn on raw and on scaled real data: the minimum is confirmed by independent solvers.

Smooth objectives are minimised by Newton's method in 50 digits (mpmath), those with kinks by HiGHS or LIBSVM.
"""

import warnings

import mpmath
import numpy as np
import pytest
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC

from linsep import audit


def data(load, scaled):
    X, y = load(return_X_y=True)
    X = X[:, :4] if load is load_breast_cancer else 20.0 * X[:, :4]
    return (StandardScaler().fit_transform(X) if scaled else X), y


def newton(X, derivatives, ridge, start):
    """Minimum of sum_i f_i(x_i.w) + sum_j ridge_j w_j^2/2 by damped Newton steps in 50 digits."""
    rows, d = [[mpmath.mpf(float(v)) for v in row] for row in X], X.shape[1]
    w = mpmath.matrix([mpmath.mpf(float(v)) for v in start])

    def value(w):
        scores = [mpmath.fsum(a * b for a, b in zip(row, w, strict=True)) for row in rows]
        found = [derivatives(i, z) for i, z in enumerate(scores)]
        total = mpmath.fsum(f[0] for f in found)
        return total + mpmath.fsum(r * v * v / 2 for r, v in zip(ridge, w, strict=True)), found

    best, found = value(w)
    for _ in range(60):
        g = [
            mpmath.fsum(f[1] * row[j] for f, row in zip(found, rows, strict=True)) + ridge[j] * w[j]
            for j in range(d)
        ]
        H = mpmath.matrix(d, d)
        for j in range(d):
            for k in range(d):
                H[j, k] = mpmath.fsum(
                    f[2] * row[j] * row[k] for f, row in zip(found, rows, strict=True)
                )
            H[j, j] += ridge[j]
        step = mpmath.lu_solve(H, mpmath.matrix(g))
        size = mpmath.mpf(1)
        while True:
            trial, there = value(w - size * step)
            if trial <= best or size < 1e-12:
                break
            size /= 2
        gain, w, best, found = best - trial, w - size * step, trial, there
        if gain <= mpmath.mpf(10) ** -30 * abs(best):
            break
    return float(best)


def with_ones(X, value=1.0):
    return np.column_stack([X, np.full(len(X), value)])


def logistic(sign):
    def at(i, z):
        e = mpmath.exp(-sign[i] * z)
        p = 1 / (1 + 1 / e)
        return mpmath.log(1 + e), -sign[i] * p, p * (1 - p)

    return at


def squared_hinge(sign, factor):
    def at(i, z):
        r = 1 - sign[i] * z
        return (factor * r * r, -2 * factor * sign[i] * r, 2 * factor) if r > 0 else (0, 0, 0)

    return at


def squares(t, factor):
    return lambda i, z: (factor * (t[i] - z) ** 2, -2 * factor * (t[i] - z), 2 * factor)


def huber(t, width, factor):
    def at(i, z):
        r = t[i] - z
        if abs(r) <= width:
            return factor * r * r, -2 * factor * r, 2 * factor
        side = 1 if r > 0 else -1
        return factor * (2 * width * abs(r) - width**2), -2 * factor * width * side, 0

    return at


def sparse_least_squares(X, t, alpha, ratio):
    """mean (t - x.w - b)^2 / 2 + alpha (ratio |w|_1 + (1 - ratio)/2 |w|^2) by L-BFGS-B on w = p - q."""
    Z, r = X - X.mean(axis=0), t - t.mean()
    n, d = Z.shape

    def objective(theta):
        w = theta[:d] - theta[d:]
        e = Z @ w - r
        g = Z.T @ e / n + alpha * (1 - ratio) * w
        value = 0.5 * (e @ e) / n + alpha * (ratio * theta.sum() + 0.5 * (1 - ratio) * (w @ w))
        return value, np.concatenate([g + alpha * ratio, -g + alpha * ratio])

    bounds, options = [(0.0, None)] * (2 * d), {"ftol": 1e-16, "gtol": 1e-12, "maxiter": 10**5}
    return minimize(objective, np.zeros(2 * d), jac=True, bounds=bounds, options=options).fun


def median(X, t):
    n, d = X.shape
    A = np.hstack([X, -X, np.ones((n, 1)), -np.ones((n, 1)), np.eye(n), -np.eye(n)])
    cost = np.concatenate([np.zeros(2 * d + 2), np.full(2 * n, 0.5 / n)])
    return linprog(cost, A_eq=A, b_eq=t).fun


def ridge_of(d, alpha):
    return [alpha] * d + [0]


CLASSIFIERS = {
    "logistic": (
        LogisticRegression(),
        lambda X, s, m: newton(with_ones(X), logistic(s), ridge_of(4, 1), np.zeros(5)),
    ),
    "liblinear": (
        LogisticRegression(solver="liblinear"),
        lambda X, s, m: newton(with_ones(X), logistic(s), [1] * 5, np.zeros(5)),
    ),
    "linear svc": (
        LinearSVC(C=0.5),
        lambda X, s, m: newton(with_ones(X), squared_hinge(s, 0.5), [1] * 5, np.zeros(5)),
    ),
    "ridge classifier": (
        RidgeClassifier(),
        lambda X, s, m: newton(with_ones(X), squares(s, 1), ridge_of(4, 2), np.zeros(5)),
    ),
    "sgd": (
        SGDClassifier(loss="squared_hinge", alpha=1e-2, random_state=0),
        lambda X, s, m: newton(
            with_ones(X),
            squared_hinge(s, mpmath.mpf(1) / len(X)),
            ridge_of(4, mpmath.mpf(0.01)),
            np.zeros(5),
        ),
    ),
}
REGRESSORS = {
    "ridge": (
        Ridge(alpha=2.0, solver="sag", max_iter=5, random_state=0),
        lambda X, t, m: newton(with_ones(X), squares(t, 1), ridge_of(4, 4), np.zeros(5)),
    ),
    "least squares": (
        LinearRegression(),
        lambda X, t, m: newton(with_ones(X), squares(t, 1), ridge_of(4, 0), np.zeros(5)),
    ),
    "huber": (
        HuberRegressor(max_iter=20),
        lambda X, t, m: newton(
            with_ones(X),
            huber(t, 1.35 * m.scale_, 1 / mpmath.mpf(m.scale_)),
            ridge_of(4, 2 * mpmath.mpf(1e-4)),
            np.append(m.coef_, m.intercept_),
        ),
    ),
    "sgd": (
        SGDRegressor(alpha=0.1, random_state=0),
        lambda X, t, m: newton(
            with_ones(X),
            squares(t, mpmath.mpf(0.5) / len(X)),
            ridge_of(4, mpmath.mpf(0.1)),
            np.zeros(5),
        ),
    ),
    "lasso": (Lasso(max_iter=3), lambda X, t, m: sparse_least_squares(X, t, 1.0, 1.0)),
    "elastic net": (
        ElasticNet(alpha=0.3, max_iter=3),
        lambda X, t, m: sparse_least_squares(X, t, 0.3, 0.5),
    ),
    "median": (QuantileRegressor(alpha=0.0), lambda X, t, m: median(X, t)),
}


def confirm(found, least):
    low, high = found.minimum
    assert low <= least * (1 + 1e-9) and least * (1 - 1e-9) <= high
    assert high <= low * (1 + 1e-7)
    assert found.excess[0] <= found.objective - least * (1 - 1e-9)
    assert found.excess[1] >= found.objective - least * (1 + 1e-9)


def fitted(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y)


@pytest.mark.sampled(4)
@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
@pytest.mark.parametrize("name", CLASSIFIERS)
def test_classifiers(name, scaled):
    model, minimum = CLASSIFIERS[name]
    X, y = data(load_breast_cancer, scaled)
    X, y = X[::3], y[::3]
    model = fitted(model, X, y)
    with mpmath.workdps(50):
        least = minimum(X, np.where(y == 1, 1, -1).tolist(), model)
    confirm(audit(model, X, y), least)


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
@pytest.mark.parametrize("name", REGRESSORS)
def test_regressors(name, scaled):
    model, minimum = REGRESSORS[name]
    X, t = data(load_diabetes, scaled)
    X, t = X[::3], t[::3]
    model = fitted(model, X, t)
    with mpmath.workdps(50):
        least = minimum(X, t if name in ("lasso", "elastic net", "median") else t.tolist(), model)
    confirm(audit(model, X, t), least)


@pytest.mark.parametrize("scaled", [False, True], ids=["raw", "scaled"])
def test_the_hinge_against_libsvm(scaled):
    X, y = data(load_breast_cancer, scaled)
    model = fitted(SVC(kernel="linear", C=0.05, tol=1e-10), X, y)
    loose = fitted(SVC(kernel="linear", C=0.05, tol=0.1), X, y)
    w, sign = model.coef_.ravel(), np.where(y == 1, 1.0, -1.0)
    scores = X @ w
    intercepts = sign - scores  # the sum of hinges is least at one of its kinks
    sums = np.maximum(0.0, 1.0 - sign * (scores + intercepts[:, np.newaxis])).sum(axis=1)
    least = 0.5 * w @ w + 0.05 * sums.min()
    dual = np.abs(model.dual_coef_).sum() - 0.5 * w @ w
    found = audit(loose, X, y)
    low, high = found.minimum
    assert low <= least * (1 + 1e-12) and dual <= high * (1 + 1e-12)
    assert dual >= least * (1 - 3e-4)  # LIBSVM encloses the minimum as well, less tightly
