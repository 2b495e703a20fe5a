"""Audit scikit-learn's models on real tables, as they are and scaled, with an independent solver as the judge.

    OPENBLAS_NUM_THREADS=1 python benchmarks/audit.py > benchmarks/results/audit.txt

Each model has scikit-learn's defaults. ``linsep.audit`` proves bounds on the minimum of its objective. Clarabel, an
interior point method for cones that shares no code with linsep, minimises the same objective, written here once more.
"above" is the excess of the model over the minimum that linsep proves, relative to the minimum; "Clarabel" is how far
Clarabel's minimum lies outside of linsep's bounds. It must be at most 1e-8, the accuracy of Clarabel. On parts of the
same tables the tests confirm the bounds to 1e-9, with 50 digits (tests/auditing/test_twelve_models.py).
"""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import clarabel
import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import linear_model, svm
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.preprocessing import StandardScaler

import linsep

AGREED = 1e-8


def minimise(P: Any, q: Any, blocks: list[tuple[Any, Any, Any]]) -> float:
    """Minimum of z.Pz/2 + q.z with b - Az in the cone for all (A, b, cone), by Clarabel."""
    settings = clarabel.DefaultSettings()
    settings.verbose, settings.max_iter = False, 500
    settings.tol_gap_abs = settings.tol_gap_rel = settings.tol_feas = 1e-11
    A = sp.vstack([block[0] for block in blocks], format="csc")
    b = np.concatenate([block[1] for block in blocks])
    cones = [cone for block in blocks for cone in block[2]]
    solver = clarabel.DefaultSolver(sp.csc_matrix(P), q, A, b, cones, settings)
    return float(solver.solve().obj_val)


def problem(n: int, d: int, *, ridge: Any, extra: int) -> tuple[Any, Any]:
    """Quadratic and linear part over (w, b, extra variables); ``ridge`` are the penalties of w and b."""
    size = d + 1 + extra
    return sp.diags(np.concatenate([ridge, np.zeros(extra)])).tocsc(), np.zeros(size)


def nonnegative(A: Any, b: Any) -> tuple[Any, Any, Any]:
    """The constraint Az <= b."""
    return sp.csc_matrix(A), b, [clarabel.NonnegativeConeT(len(b))]


def logistic(X: Any, sign: Any, C: float, ridge: Any) -> float:
    """|w|^2/2 + C sum log(1 + exp(-m)): exp(-s) + exp(-m - s) <= 1 for each row, in exponential cones."""
    n, d = X.shape
    P, q = problem(n, d, ridge=ridge, extra=3 * n)  # s, u, v
    q[d + 1 : d + 1 + n] = C
    M = sp.csr_matrix(sign[:, None] * np.column_stack([X, np.ones(n)]))
    one, zero = sp.identity(n, format="csr"), sp.csr_matrix((n, n))
    none = sp.csr_matrix((n, d + 1))
    sums = nonnegative(sp.hstack([none, zero, one, one]), np.ones(n))

    def cones(exponent: Any, at: Any) -> tuple[Any, Any, Any]:
        # rows (exponent, 1, value) of each cone: exp(exponent) <= value
        parts = [-exponent, sp.csr_matrix(exponent.shape), -at]
        order = np.arange(3 * n).reshape(3, n).T.ravel()
        b = np.concatenate([np.zeros(n), np.ones(n), np.zeros(n)])[order]
        return sp.vstack(parts, format="csr")[order], b, [clarabel.ExponentialConeT()] * n

    first = cones(
        sp.hstack([none, -one, zero, zero]).tocsr(), sp.hstack([none, zero, one, zero]).tocsr()
    )
    second = cones(
        sp.hstack([-M, -one, zero, zero]).tocsr(), sp.hstack([none, zero, zero, one]).tocsr()
    )
    return minimise(P, q, [sums, first, second])


def hinge(X: Any, sign: Any, C: float, ridge: Any, *, squared: bool) -> float:
    """|w|^2/2 + C sum max(0, 1 - m), or its square."""
    n, d = X.shape
    P, q = problem(n, d, ridge=ridge, extra=n)
    if squared:
        P = P + sp.diags(np.concatenate([np.zeros(d + 1), np.full(n, 2.0 * C)]))
    else:
        q[d + 1 :] = C
    M = sp.csr_matrix(sign[:, None] * np.column_stack([X, np.ones(n)]))
    one = sp.identity(n)
    below = nonnegative(sp.hstack([-M, -one]), -np.ones(n))
    return minimise(
        P, q, [below, nonnegative(sp.hstack([sp.csr_matrix(M.shape), -one]), np.zeros(n))]
    )


def residuals(X: Any, t: Any, extra: int) -> tuple[Any, Any, Any]:
    """The equations x.w + b + r = t, with ``extra`` further variables after r."""
    n = len(X)
    A = sp.hstack([np.column_stack([X, np.ones(n)]), sp.identity(n), sp.csr_matrix((n, extra))])
    return sp.csc_matrix(A), t, [clarabel.ZeroConeT(n)]


def squares(X: Any, t: Any, ridge: Any, *, weight: float, l1: float = 0.0) -> float:
    """Weight sum r^2 + ridge w^2/2 + l1 |w|_1."""
    n, d = X.shape
    P, q = problem(n, d, ridge=ridge, extra=n + d)
    P = P + sp.diags(np.concatenate([np.zeros(d + 1), np.full(n, 2.0 * weight), np.zeros(d)]))
    q[d + 1 + n :] = l1
    w = sp.hstack([sp.identity(d), sp.csr_matrix((d, 1 + n))])
    sides = [nonnegative(sp.hstack([side * w, -sp.identity(d)]), np.zeros(d)) for side in (1, -1)]
    return minimise(P, q, [residuals(X, t, d), *sides])


def huber(X: Any, t: Any, ridge: Any, width: float, weight: float) -> float:
    """Weight sum of r^2 up to ``width``, 2 width |r| - width^2 beyond: min over r = a + b of a^2 + 2 width |b|."""
    n, d = X.shape
    P, q = problem(n, d, ridge=ridge, extra=3 * n)  # r = a + b, |b| <= c
    P = P + sp.diags(np.concatenate([np.zeros(d + 1), np.full(n, 2.0 * weight), np.zeros(2 * n)]))
    q[d + 1 + 2 * n :] = 2.0 * width * weight
    one, none = sp.identity(n), sp.csr_matrix((n, d + 1))
    A = sp.hstack([np.column_stack([X, np.ones(n)]), one, one, sp.csr_matrix((n, n))])
    equations = sp.csc_matrix(A), t, [clarabel.ZeroConeT(n)]
    sides = [
        nonnegative(sp.hstack([none, sp.csr_matrix((n, n)), side * one, -one]), np.zeros(n))
        for side in (1, -1)
    ]
    return minimise(P, q, [equations, *sides])


def absolute(X: Any, t: Any, ridge: Any, *, weight: float, tube: float, l1: float) -> float:
    """Weight sum max(0, |r| - tube) + ridge w^2/2 + l1 |w|_1."""
    n, d = X.shape
    P, q = problem(n, d, ridge=ridge, extra=2 * n + d)  # r, c, |w|
    q[d + 1 + n : d + 1 + 2 * n], q[d + 1 + 2 * n :] = weight, l1
    one, square, rest = sp.identity(n), sp.csr_matrix((n, d + 1)), sp.csr_matrix((n, d))
    sides = [
        nonnegative(sp.hstack([square, side * one, -one, rest]), np.full(n, tube))
        for side in (1, -1)
    ]
    zero = sp.csr_matrix((n, n))
    sides.append(nonnegative(sp.hstack([square, zero, -one, rest]), np.zeros(n)))
    w = sp.hstack([sp.identity(d), sp.csr_matrix((d, 1 + 2 * n))])
    sides += [nonnegative(sp.hstack([side * w, -sp.identity(d)]), np.zeros(d)) for side in (1, -1)]
    return minimise(P, q, [residuals(X, t, n + d), *sides])


def free(d: int, alpha: float) -> Any:
    """Penalties of the coefficients, none of the intercept."""
    return np.append(np.full(d, alpha), 0.0)


Judge = Callable[[Any, Any, Any], float]
CLASSIFIERS: dict[str, tuple[Any, Judge]] = {
    "LogisticRegression": (
        linear_model.LogisticRegression(),
        lambda X, s, m: logistic(X, s, 1.0, free(X.shape[1], 1.0)),
    ),
    "LogisticRegression liblinear": (
        linear_model.LogisticRegression(solver="liblinear"),
        lambda X, s, m: logistic(X, s, 1.0, np.ones(X.shape[1] + 1)),
    ),
    "LinearSVC": (
        svm.LinearSVC(),
        lambda X, s, m: hinge(X, s, 1.0, np.ones(X.shape[1] + 1), squared=True),
    ),
    "SVC(kernel='linear')": (
        svm.SVC(kernel="linear"),
        lambda X, s, m: hinge(X, s, 1.0, free(X.shape[1], 1.0), squared=False),
    ),
    "RidgeClassifier": (
        linear_model.RidgeClassifier(),
        lambda X, s, m: squares(X, s, free(X.shape[1], 2.0), weight=1.0),
    ),
    "SGDClassifier": (
        linear_model.SGDClassifier(random_state=0),
        lambda X, s, m: hinge(X, s, 1.0 / len(X), free(X.shape[1], 1e-4), squared=False),
    ),
}
REGRESSORS: dict[str, tuple[Any, Judge]] = {
    "LinearRegression": (
        linear_model.LinearRegression(),
        lambda X, t, m: squares(X, t, free(X.shape[1], 0.0), weight=1.0),
    ),
    "Ridge": (
        linear_model.Ridge(),
        lambda X, t, m: squares(X, t, free(X.shape[1], 2.0), weight=1.0),
    ),
    "Lasso": (
        linear_model.Lasso(),
        lambda X, t, m: squares(X, t, free(X.shape[1], 0.0), weight=0.5 / len(X), l1=1.0),
    ),
    "ElasticNet": (
        linear_model.ElasticNet(),
        lambda X, t, m: squares(X, t, free(X.shape[1], 0.5), weight=0.5 / len(X), l1=0.5),
    ),
    "HuberRegressor": (
        linear_model.HuberRegressor(),
        lambda X, t, m: huber(X, t, free(X.shape[1], 2e-4), 1.35 * m.scale_, 1.0 / m.scale_),
    ),
    "QuantileRegressor": (
        linear_model.QuantileRegressor(),
        lambda X, t, m: absolute(
            X, t, free(X.shape[1], 0.0), weight=0.5 / len(X), tube=0.0, l1=1.0
        ),
    ),
    "LinearSVR": (
        svm.LinearSVR(random_state=0),
        lambda X, t, m: absolute(X, t, np.ones(X.shape[1] + 1), weight=1.0, tube=0.0, l1=0.0),
    ),
}


def main() -> None:
    """Write one line for each model and table."""
    print(
        f"scikit-learn {sklearn.__version__}, linsep {linsep.__version__}, Clarabel {clarabel.__version__}\n"
    )
    print(f"{'model':<30}{'table':<24}{'minimum':>14}{'above':>10}{'Clarabel':>10}")
    worst = 0.0
    for models, load in ((CLASSIFIERS, load_breast_cancer), (REGRESSORS, load_diabetes)):
        table = load(scaled=False) if load is load_diabetes else load()
        name = load.__name__.removeprefix("load_").replace("_", " ")
        for scaled in (False, True):
            X = StandardScaler().fit_transform(table.data) if scaled else table.data
            for kind, (model, judge) in models.items():
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore")
                    fitted = model.fit(X, table.target)
                found = linsep.audit(fitted, X, table.target)
                y = table.target.astype(float)
                least = judge(X, 2.0 * y - 1.0 if models is CLASSIFIERS else y, fitted)
                low, high = found.minimum
                apart = max(low - least, least - high, 0.0) / high
                worst = max(worst, apart)
                where = f"{name}{', scaled' if scaled else ''}"
                above = found.relative_excess[0]
                print(f"{kind:<30}{where:<24}{high:>14.8g}{above:>10.1e}{apart:>10.1e}")
    print(
        f"\nClarabel's minima lie within linsep's bounds, or outside by at most a relative {worst:.1e}."
    )
    if worst > AGREED:
        raise SystemExit(f"a minimum is not confirmed to {AGREED:g}")


if __name__ == "__main__":
    main()
