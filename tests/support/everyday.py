"""Everyday problems: the tables, targets and settings that users bring, and what every fit of them must satisfy.

The tables of ``ordinary.py`` are clean and dense. These are word counts, one-hot columns, wide tables, unscaled times,
numbers and prices, duplicates and constants, rare classes, noisy labels and weights, under every estimator.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp
import sklearn.linear_model
import sklearn.svm
from sklearn.feature_extraction.text import TfidfTransformer
from sklearn.preprocessing import PolynomialFeatures

import linsep
import linsep.sklearn
from linsep import losses

ENTRIES = 3_000_000  # of a dense table
HIDDEN = (
    "feature_groups",
    "penalty_factor",
    "time_limit",
    "solver",
    "random_state",
    "multiclass",
    "cv",
)
CLASSIFIERS = (
    *("logistic", "logistic", "softmax", "ovr", "svc", "squared svc", "crammer-singer"),
    *("l1", "elastic net", "factors", "groups", "softmax l1", "other loss", "cv", "tune"),
    *("drop-in", "sgd", "perceptron", "zero-one"),
)
REGRESSORS = (
    *("squared", "absolute", "huber", "quantile", "epsilon", "lasso", "regression net"),
    *("regression groups", "regression factors", "drop-in regression"),
)


def _size(rng: np.random.Generator, low: float, high: float) -> int:
    return int(10 ** rng.uniform(np.log10(low), np.log10(high)))


def _words(rng: np.random.Generator) -> sp.csr_matrix:
    """Counts of words with Zipf's frequencies in texts of different lengths."""
    n, d = _size(rng, 1000, 20_000), _size(rng, 2000, 50_000)
    lengths = 1 + rng.poisson(rng.gamma(2.0, rng.uniform(3, 20), n))
    words = (d * rng.random(int(lengths.sum())) ** rng.uniform(2, 5)).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    return sp.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n, d))


def _tfidf(rng: np.random.Generator) -> sp.csr_matrix:
    return sp.csr_matrix(
        TfidfTransformer(sublinear_tf=bool(rng.integers(2))).fit_transform(_words(rng))
    )


def _rows(rng: np.random.Generator, columns: float = 300) -> tuple[int, int]:
    d = _size(rng, 4, columns)
    return min(_size(rng, 100, 60_000), ENTRIES // d), d


def _one_hot(rng: np.random.Generator) -> Any:
    """Categories of 2 to 500 levels, some rare, beside a few numbers."""
    n = _size(rng, 300, 30_000)
    blocks = [
        sp.csr_matrix(
            rng.standard_normal((n, int(rng.integers(1, 6)))) * 10.0 ** rng.integers(0, 4)
        )
    ]
    for _ in range(int(rng.integers(1, 6))):
        levels = _size(rng, 2, 500)
        level = (levels * rng.random(n) ** rng.uniform(1, 3)).astype(np.int64)
        blocks.append(sp.csr_matrix((np.ones(n), (np.arange(n), level)), shape=(n, levels)))
    X = sp.hstack(blocks, format="csr")
    return X.toarray() if X.shape[0] * X.shape[1] < ENTRIES and rng.integers(2) else X


def _wide(rng: np.random.Generator) -> np.ndarray:
    n, d = _size(rng, 30, 500), _size(rng, 500, 5000)
    X = rng.standard_normal((n, d))
    return X + rng.standard_normal((n, 5)) @ rng.standard_normal((5, d)) if rng.integers(2) else X


def _heavy(rng: np.random.Generator) -> np.ndarray:
    n, d = _rows(rng)
    X = rng.standard_t(1.5, (n, d))
    return np.exp(np.clip(X, -10, 10)) if rng.integers(3) == 0 else X


def _whole(rng: np.random.Generator) -> np.ndarray:
    n, d = _rows(rng)
    return rng.poisson(rng.gamma(1.0, 10 ** rng.uniform(-1, 2, d)), (n, d)).astype(
        rng.choice(["int64", "int32", "uint8" if d < 3 else "int16", "float64"])
    )


def _repeated(rng: np.random.Generator) -> np.ndarray:
    """Rows and columns that occur twice, or nearly so, and constant columns."""
    n, d = _rows(rng, 100)
    X = rng.standard_normal((n, d)) * 10.0 ** rng.uniform(-1, 1, d)
    X = X[rng.integers(0, max(2, n // 3), n)] + rng.choice([0.0, 1e-9, 1e-5]) * rng.standard_normal(
        (n, d)
    )
    copies = X[:, rng.integers(0, d, max(1, d // 3))]
    copies = copies * rng.choice([1.0, -2.0, 100.0]) + rng.choice(
        [0.0, 1e-10, 1e-6, 1e-3]
    ) * rng.standard_normal(copies.shape)
    return np.hstack([X, copies, np.full((n, 1), rng.choice([0.0, 1.0, 1e4]))])


def _unscaled(rng: np.random.Generator) -> np.ndarray:
    """Times, numbers, prices, ages and flags in their own units."""
    n, _ = _rows(rng)
    kinds = [
        lambda: 1.6e9 + 1e8 * rng.random(n),
        lambda: rng.integers(1, 10_000_000, n),
        lambda: np.round(np.exp(rng.normal(4, 1.5, n)), 2),
        lambda: rng.integers(18, 90, n),
        lambda: rng.random(n) < 0.1,
        lambda: rng.normal(0, 1e-4, n),
        lambda: 2000 + rng.integers(0, 25, n),
        lambda: rng.standard_normal(n),
    ]
    return np.column_stack(
        [kinds[k]() for k in rng.integers(0, len(kinds), int(rng.integers(3, 40)))]
    ).astype(float)


def _polynomial(rng: np.random.Generator) -> np.ndarray:
    degree = int(rng.integers(2, 4))
    X = rng.standard_normal(
        (_size(rng, 200, 20_000), int(rng.integers(3, 14 if degree == 2 else 9)))
    )
    X = X * rng.choice([1.0, 5.0]) + rng.choice([0.0, 3.0])
    return np.asarray(
        PolynomialFeatures(degree, include_bias=bool(rng.integers(2))).fit_transform(X)
    )


def _blobs(rng: np.random.Generator) -> np.ndarray:
    n, d = _rows(rng)
    centres = rng.standard_normal((int(rng.integers(2, 20)), d)) * rng.uniform(0.5, 5)
    return centres[rng.integers(0, len(centres), n)] + rng.standard_normal((n, d))


TABLES: dict[str, Callable[[np.random.Generator], Any]] = {
    "words": _words, "tfidf": _tfidf, "one-hot": _one_hot, "wide": _wide, "heavy": _heavy, "whole": _whole,
    "repeated": _repeated, "unscaled": _unscaled, "polynomial": _polynomial, "blobs": _blobs,
}  # fmt: skip


@dataclass(frozen=True, eq=False)
class Everyday:
    """A table, its target, an estimator that has not been fitted and the weights of its rows."""

    seed: int
    table: str
    task: str
    X: Any
    y: np.ndarray
    model: Any
    weight: np.ndarray | None = None
    peer: Any = None  # scikit-learn's class of the same objective

    def describe(self) -> str:
        """One line about it."""
        n, d = self.X.shape
        kind = "CSR " if sp.issparse(self.X) else ""
        k = f", {len(np.unique(self.y))} classes" if self.task in CLASSIFIERS else ""
        weighted = ", weights" if self.weight is not None else ""
        options = {
            k: v for k, v in self.model.get_params().items() if k not in HIDDEN and v is not None
        }
        settings = " ".join(
            [
                type(self.model).__name__,
                *(
                    f"{k}={v:.3g}" if isinstance(v, float) else f"{k}={v}"
                    for k, v in options.items()
                    if not isinstance(v, bool)
                ),
            ]
        )
        return f"{self.seed} {self.table} {kind}{self.X.dtype} {n} x {d}{k}{weighted} {self.task} {settings}"

    @property
    def entries(self) -> int:
        """Numbers that are stored."""
        return int(self.X.nnz if sp.issparse(self.X) else self.X.size)


def _scores(X: Any, rng: np.random.Generator, k: int) -> np.ndarray:
    """Standardised scores of k random models with coefficients that suit the columns' sizes."""
    sizes = np.sqrt(
        np.asarray(
            X.multiply(X).mean(axis=0) if sp.issparse(X) else (X.astype(float) ** 2).mean(axis=0)
        ).ravel()
    )
    W = (
        rng.standard_normal((X.shape[1], k))
        / np.maximum(sizes, 1e-3 * sizes.max() + 1e-300)[:, None]
    )
    W *= rng.random(X.shape[1])[:, None] < rng.choice([0.1, 0.5, 1.0])
    z = np.asarray(X @ W)
    return (z - z.mean(axis=0)) / (z.std(axis=0) + 1e-12)


def _labels(X: Any, rng: np.random.Generator, k: int) -> np.ndarray:
    z, noise = _scores(X, rng, k if k > 2 else 1), float(rng.choice([0.0, 0.0, 0.02, 0.1, 0.4]))
    if k > 2:
        y = np.argmax(z + rng.uniform(-1.5, 1.5, k), axis=1)
    else:
        y = (z[:, 0] > np.quantile(z[:, 0], rng.choice([0.5, 0.5, 0.8, 0.99, 0.999]))).astype(
            np.int64
        )
    wrong = rng.random(len(y)) < noise
    y[wrong] = rng.permutation(y)[wrong] if rng.integers(2) else rng.integers(0, k, wrong.sum())
    y[rng.choice(len(y), k, replace=False)] = np.arange(k)
    return y


def _weights(rng: np.random.Generator, n: int) -> np.ndarray | None:
    kind = int(rng.integers(8))
    if kind == 0:
        return rng.integers(1, 20, n).astype(float)
    if kind == 1:
        return rng.exponential(1.0, n)
    return rng.integers(0, 2, n).astype(float) if kind == 2 else None


def _strength(rng: np.random.Generator) -> float:
    return float("inf") if rng.integers(12) == 0 else float(10 ** rng.uniform(-4, 4))


def _classifier(task: str, rng: np.random.Generator, d: int) -> dict[str, Any]:
    C, smooth = _strength(rng), str(rng.choice(["logistic", "squared_hinge", "huberised_hinge"]))
    finite = min(C, 1e4)
    options = {
        "class_weight": str(rng.choice(["balanced"])) if rng.integers(4) == 0 else None,
        "fit_intercept": bool(rng.integers(6)),
    }
    every = [smooth, "hinge", "exponential", "squared", "absolute"]
    groups = np.sort(rng.integers(0, max(1, d // 4), d))
    _, groups = np.unique(groups, return_inverse=True)
    factors = rng.choice([0.0, 0.5, 1.0, 3.0], d)
    L, S, K = linsep.LogisticRegression, linsep.LinearSVC, linsep.LinearClassifier
    made: dict[str, Callable[[], Any]] = {
        "logistic": lambda: L(C, **options),
        "softmax": lambda: L(C, **options),
        "ovr": lambda: L(C, multiclass="ovr", **options),
        "svc": lambda: S(C, **options),
        "squared svc": lambda: S(C, loss="squared_hinge", **options),
        "crammer-singer": lambda: S(finite, multiclass="crammer_singer", **options),
        "l1": lambda: K(smooth, C=finite, l1_ratio=1.0, **options),
        "elastic net": lambda: K(
            smooth, C=finite, l1_ratio=float(rng.uniform(0.1, 0.9)), **options
        ),
        "factors": lambda: K(smooth, C=finite, penalty_factor=factors, **options),
        "groups": lambda: K(
            "logistic", C=finite, feature_groups=groups.tolist(), l1_ratio=1.0, **options
        ),
        "softmax l1": lambda: L(finite, l1_ratio=float(rng.choice([0.5, 1.0])), **options),
        "other loss": lambda: K(str(rng.choice(every)), C=C, **options),
        "cv": lambda: (linsep.LogisticRegressionCV if rng.integers(2) else linsep.LinearSVCCV)(
            Cs=4, cv=3, **options
        ),
        "tune": lambda: K(
            str(rng.choice(every[:2])),
            l1_ratio=float(rng.choice([0.0, 1.0])) if smooth == "logistic" else 0.0,
            **options,
        ),
        "sgd": lambda: linsep.SGDClassifier(
            str(rng.choice(every[:2])),
            C=min(finite, 10.0),
            standardise=bool(rng.integers(2)),
            epochs=5,
            random_state=0,
        ),
        "perceptron": lambda: linsep.Perceptron(
            average=bool(rng.integers(2)), max_passes=20, random_state=0
        ),
        "zero-one": lambda: linsep.ZeroOneClassifier(time_limit=0.5, random_state=0),
    }
    return {"model": made[task]()} if task in made else _drop_in_classifier(rng, finite, options)


def _drop_in_classifier(
    rng: np.random.Generator, C: float, options: dict[str, Any]
) -> dict[str, Any]:
    ours, theirs = linsep.sklearn, sklearn.linear_model
    kind = int(rng.integers(5))
    if kind < 2:
        more = dict(C=C, max_iter=500, tol=1e-6, **options)
        if kind == 1:
            more |= (
                dict(l1_ratio=float(rng.choice([0.5, 1.0])), solver="saga")
                if hasattr(theirs.LogisticRegression(), "l1_ratio")
                else {}
            )
        return {"model": ours.LogisticRegression(**more), "peer": theirs.LogisticRegression(**more)}
    if kind < 4:
        more = dict(C=C, tol=1e-6, loss="hinge" if kind == 2 else "squared_hinge", **options)
        return {"model": ours.LinearSVC(**more), "peer": sklearn.svm.LinearSVC(**more)}
    more = dict(alpha=1 / C, **options)
    return {"model": ours.RidgeClassifier(**more), "peer": theirs.RidgeClassifier(**more)}


def _regressor(task: str, rng: np.random.Generator, d: int, spread: float) -> dict[str, Any]:
    C, R = _strength(rng) / spread, linsep.LinearRegressor
    finite = min(C, 1e4 / spread)
    tau, eps = float(rng.choice([0.05, 0.5, 0.9])), float(rng.choice([0.01, 0.1, 1.0])) * spread
    groups = np.unique(np.sort(rng.integers(0, max(1, d // 4), d)), return_inverse=True)[1]
    intercept = bool(rng.integers(6))
    made: dict[str, Callable[[], Any]] = {
        "squared": lambda: R("squared", C=C, fit_intercept=intercept),
        "absolute": lambda: R("absolute", C=C, fit_intercept=intercept),
        "huber": lambda: R(losses.Huber(eps), C=C, fit_intercept=intercept),
        "quantile": lambda: R(losses.Pinball(tau), C=C, fit_intercept=intercept),
        "epsilon": lambda: R(losses.EpsilonInsensitive(eps), C=C, fit_intercept=intercept),
        "lasso": lambda: R("squared", C=finite, l1_ratio=1.0, fit_intercept=intercept),
        "regression net": lambda: R(
            str(rng.choice(["squared", "huber"])), C=finite, l1_ratio=float(rng.uniform(0.1, 0.9))
        ),
        "regression groups": lambda: R(
            "squared", C=finite, l1_ratio=1.0, feature_groups=groups.tolist()
        ),
        "regression factors": lambda: R(
            "squared", C=finite, penalty_factor=rng.choice([0.0, 0.5, 1.0, 3.0], d)
        ),
    }
    if task in made:
        return {"model": made[task]()}
    alpha = float(10 ** rng.uniform(-4, 2)) * spread
    ours, theirs = linsep.sklearn, sklearn.linear_model
    name, more = [
        ("Ridge", {"alpha": alpha}), ("Lasso", {"alpha": alpha}), ("ElasticNet", {"alpha": alpha, "l1_ratio": 0.5}),
        ("LinearRegression", {}), ("QuantileRegressor", {"alpha": alpha / spread, "quantile": tau}),
        ("HuberRegressor", {"max_iter": 1000}), ("LinearSVR", {"C": finite, "epsilon": eps}),
    ][int(rng.integers(7))]  # fmt: skip
    return {
        "model": getattr(ours, name)(**more),
        "peer": getattr(sklearn.svm if name == "LinearSVR" else theirs, name)(**more),
    }


def draw(seed: int) -> Everyday:
    """The problem of a seed."""
    rng = np.random.default_rng([seed, 1])
    table, task = str(rng.choice(list(TABLES))), str(rng.choice([*CLASSIFIERS, *REGRESSORS]))
    X = TABLES[table](rng)
    weight = _weights(rng, X.shape[0])
    if X.dtype == np.float64 and rng.integers(4) == 0:
        X = X.astype(np.float32)
    if task in REGRESSORS:
        z = _scores(X, rng, 1)[:, 0]
        spread = float(10 ** rng.uniform(-1, 5))
        noise = rng.standard_t(2, len(z)) if rng.integers(2) else rng.standard_normal(len(z))
        y = spread * (
            z + float(rng.choice([0.0, 0.1, 1.0])) * noise + float(rng.choice([0.0, 5.0]))
        )
        return Everyday(
            seed, table, task, X, y, weight=weight, **_regressor(task, rng, X.shape[1], spread)
        )
    many = task in ("softmax", "ovr", "crammer-singer", "softmax l1")
    k = int(rng.choice([3, 4, 10, 50] if X.shape[0] >= 300 else [3, 4])) if many else 2
    y = _labels(X, rng, k)
    if task in ("sgd", "perceptron", "zero-one", "cv"):
        weight = None
    return Everyday(seed, table, task, X, y, weight=weight, **_classifier(task, rng, X.shape[1]))
