"""Problems that are made to break certificates, each from one seed.

``draw(seed)`` makes a case: rows of a hostile design in some storage, labels or targets, weights, an estimator with
its settings, and the way it is called (fit, path, tune, cross-validation). ``answers(case)`` runs it and lists every
claim that comes out together with the task that the claim is about.
"""

from __future__ import annotations

import math
import warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
from judge import Task

import linsep
from linsep.losses import Huber, HuberisedHinge
from linsep.solvers import SOLVERS

Rng = np.random.Generator

CLASSIFICATION = (
    *("logistic", "hinge", "squared_hinge", "squared"),
    *("huberised_hinge", "exponential", "absolute", "perceptron"),
)
REGRESSION = ("squared", "absolute", "huber")
SMOOTH = ("logistic", "exponential", "squared", "squared_hinge", "huberised_hinge", "huber")
MODES = ("two", "regression", "ovr", "multinomial", "crammer_singer", "hard_margin", "sgd")


# --- rows ---------------------------------------------------------------------------------------------------


def _size(rng: Rng) -> tuple[int, int]:
    shape = rng.random()
    if shape < 0.70:
        n = int(rng.integers(4, 61))
        return n, int(rng.integers(1, max(2, min(31, n // 2))))
    if shape < 0.90:
        n = int(rng.integers(3, 21))
        return n, int(rng.integers(n, min(31, 2 * n + 4)))
    return 400, int(rng.integers(1, 9))


def gaussian(rng: Rng, n: int, d: int) -> Any:
    return rng.normal(size=(n, d))


def scaled(rng: Rng, n: int, d: int) -> Any:
    reach = rng.choice([3, 6, 12])
    return rng.normal(size=(n, d)) * 10.0 ** rng.uniform(-reach, reach, d)


def shifted(rng: Rng, n: int, d: int) -> Any:
    reach = rng.choice([3, 6, 12])
    return rng.normal(size=(n, d)) + 10.0 ** rng.uniform(0, reach, d) * rng.choice([-1, 1], d)


def huge_entry(rng: Rng, n: int, d: int) -> Any:
    X = rng.normal(size=(n, d))
    X[rng.integers(n), rng.integers(d)] = 10.0 ** rng.uniform(4, 18)
    return X


def cauchy(rng: Rng, n: int, d: int) -> Any:
    return rng.standard_cauchy(size=(n, d))


def grid(rng: Rng, n: int, d: int) -> Any:
    """Small integers: rows lie exactly on kinks, and many are equal."""
    return rng.integers(-2, 3, size=(n, d)).astype(float)


def duplicated(rng: Rng, n: int, d: int) -> Any:
    X = rng.normal(size=(max(2, n // 3), d))
    X = X[rng.integers(len(X), size=n)]
    return np.hstack([X, X[:, : max(1, d // 2)], np.full((n, 1), 3.7), np.zeros((n, 1))])


def rank_deficient(rng: Rng, n: int, d: int) -> Any:
    rank = max(1, d // 2)
    return rng.normal(size=(n, rank)) @ rng.normal(size=(rank, d))


def sum_of_columns(rng: Rng, n: int, d: int) -> Any:
    X = rng.normal(size=(n, max(2, d))) * 10.0 ** rng.uniform(-1, 4)
    return np.column_stack([X, X[:, 0] + X[:, 1]])


def timestamps(rng: Rng, n: int, d: int) -> Any:
    """Start and end in milliseconds, microseconds or nanoseconds, within a minute or a day."""
    unit = 10.0 ** rng.choice([12, 15, 18])
    span = 10.0 ** rng.uniform(-7, -4)
    start = np.floor(1.7 * unit * (1 + span * rng.random(n)))
    end = start + np.round(10.0 ** rng.uniform(1, 4) * rng.gamma(2.0, 1.0, n))
    return np.column_stack([start, end, rng.normal(size=(n, max(0, min(d, 4) - 2)))])


def identifiers(rng: Rng, n: int, d: int) -> Any:
    digits = rng.choice([9, 12, 16, 19])
    ids = np.floor(rng.random(n) * 10.0**digits)
    return np.column_stack([rng.normal(size=(n, d)), ids])


def polynomial(rng: Rng, n: int, d: int) -> Any:
    low, high = [(0.0, 1.0), (-1.0, 1.0), (1.0, 10.0), (2000.0, 2024.0)][rng.integers(4)]
    x = rng.uniform(low, high, n)
    return x[:, None] ** np.arange(1, min(d, 12) + 1)


def last_bits(rng: Rng, n: int, d: int) -> Any:
    """Two columns that differ in their last bits; :func:`draw` lets these carry the label."""
    return rng.normal(size=(n, max(2, d)))


def cancelling(rng: Rng, n: int, d: int) -> Any:
    """Rows of size M in both classes and directions, whose sums lose the small rows; see :func:`draw`."""
    return np.zeros((max(n, 40) // 4 * 4, 2))


def huge_opposites(rng: Rng, n: int, d: int) -> Any:
    """Columns M and -M that cancel in every score: its rounding error is all that is left of them."""
    n = max(n, 8)
    X = np.column_stack([np.full(n, 0.5), np.full(n, 0.5), rng.normal(size=(n, max(1, d - 2)))])
    rows = rng.choice(n, size=max(2, n // 5), replace=False)
    size = 10.0 ** rng.uniform(8, 18)
    X[rows, 0], X[rows, 1] = size, -size
    return X


def tiny(rng: Rng, n: int, d: int) -> Any:
    """Features whose squares underflow, or that are subnormal themselves."""
    return rng.normal(size=(n, d)) * 10.0 ** rng.choice([-12, -100, -160, -200, -310])


DESIGNS: dict[str, Callable[[Rng, int, int], Any]] = {
    make.__name__: make
    for make in (
        *(gaussian, scaled, shifted, huge_entry, cauchy, grid, duplicated, rank_deficient),
        *(sum_of_columns, timestamps, identifiers, polynomial, last_bits, cancelling),
        *(huge_opposites, tiny),
    )
}


# --- labels, targets, weights, storage ------------------------------------------------------------------------


def _score(rng: Rng, X: Any) -> Any:
    """A linear score of moderate size whatever the columns."""
    spread = X.std(axis=0)
    Z = (X - X.mean(axis=0)) / np.where(spread > 0, spread, 1.0)
    z = np.nan_to_num(Z) @ rng.normal(size=X.shape[1])
    return z / max(float(np.abs(z).std()), 1e-300)


def _signs(rng: Rng, X: Any, shape: str) -> Any:
    z = _score(rng, X)
    if shape == "inseparable":
        z = z + rng.normal(size=len(z)) * 10.0 ** rng.uniform(-1, 0.5)
    sign = np.where(z > np.median(z) if rng.random() < 0.5 else z > 0, 1, -1)
    if shape == "quasi":  # rows of both classes in the same places
        pair = rng.choice(len(z), size=2, replace=False)
        X[pair[0]] = X[pair[1]]
        sign[pair] = 1, -1
    sign[:2] = 1, -1
    return sign


def _weights(rng: Rng, n: int) -> tuple[str, Any]:
    kind = str(rng.choice(["none", "wide", "zeros", "uniform", "subnormal", "integers"],
                          p=[0.55, 0.15, 0.1, 0.1, 0.03, 0.07]))  # fmt: skip
    if kind == "none":
        return kind, None
    if kind == "wide":
        reach = rng.choice([3, 8, 12])
        return kind, 10.0 ** rng.uniform(-reach, reach, n)
    if kind == "uniform":
        return kind, np.full(n, 10.0 ** rng.uniform(-12, 12))
    if kind == "subnormal":
        return kind, np.full(n, 5e-324 * rng.integers(1, 1000))
    s = rng.integers(1, 5, size=n).astype(float)
    if kind == "zeros":
        s[2:] *= rng.random(n - 2) < 0.7
    return kind, s


def _store(rng: Rng, X: Any) -> tuple[str, Any]:
    kind = str(rng.choice(["C", "F", "float32", "int", "csr"], p=[0.5, 0.1, 0.15, 0.1, 0.15]))
    if kind == "F":
        return kind, np.asfortranarray(X)
    if kind == "float32" and np.abs(X).max(initial=0.0) < 1e38:
        return kind, X.astype(np.float32)
    if kind == "int" and np.abs(X).max(initial=0.0) < 9e18:
        return kind, np.round(X).astype(np.int64)
    if kind == "csr":
        return kind, sp.csr_matrix(np.where(rng.random(X.shape) < 0.7, X, 0.0))
    return "C", np.ascontiguousarray(X)


def dense(X: Any) -> Any:
    """The rows as the objective reads them; int64 beyond 2^53 is rounded to float64 as the library documents."""
    return np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)


# --- cases ----------------------------------------------------------------------------------------------------


@dataclass(eq=False)
class Case:
    """One problem with everything that is needed to run it."""

    seed: int
    design: str
    mode: str
    entry: str
    loss: str
    C: float
    l1_ratio: float
    fit_intercept: bool
    tol: float
    storage: str
    weights: str
    shape: str
    plain: bool
    solver: str
    width: float
    X: Any = field(repr=False)
    y: Any = field(repr=False)
    weight: Any = field(repr=False)

    def describe(self) -> dict[str, Any]:
        n, d = self.X.shape
        keys = ("seed", "design", "mode", "entry", "loss", "C", "l1_ratio", "fit_intercept", "tol")
        told = {key: getattr(self, key) for key in keys}
        rest = {
            key: getattr(self, key) for key in ("storage", "weights", "shape", "plain", "solver")
        }
        return {**told, "n": n, "d": d, **rest, "width": self.width}

    def estimator(self) -> Any:
        if self.mode == "zero_one":
            return linsep.ZeroOneClassifier(time_limit=5.0)
        common = {"C": self.C, "fit_intercept": self.fit_intercept, "tol": self.tol}
        loss = {"huber": Huber, "huberised_hinge": HuberisedHinge}.get(self.loss)
        loss = self.loss if loss is None else loss(self.width)
        if self.mode == "sgd":
            return linsep.SGDClassifier(loss, epochs=5, **common)
        if self.mode == "regression":
            common["solver"] = self.solver
            return linsep.LinearRegressor(loss, l1_ratio=self.l1_ratio, **common)
        if self.mode == "multinomial":
            return linsep.LogisticRegression(l1_ratio=self.l1_ratio, **common)
        if self.mode == "crammer_singer":
            return linsep.LinearSVC(multiclass="crammer_singer", **common)
        if self.mode == "hard_margin":
            return linsep.LinearSVC(**common)
        if self.entry == "cv":
            kind = linsep.LinearSVCCV if self.loss == "hinge" else linsep.LogisticRegressionCV
            del common["C"]
            return kind(Cs=self.grid(), cv=3, **common)
        common["solver"] = self.solver
        return linsep.LinearClassifier(loss, l1_ratio=self.l1_ratio, **common)

    def grid(self) -> Any:
        return self.C * np.array([0.01, 1.0, 100.0])

    def task(self, y: Any = None, rows: Any = None, C: float | None = None) -> Task:
        """The objective of one subproblem, on some rows."""
        every = np.arange(self.X.shape[0]) if rows is None else rows
        y = self.y if y is None else y
        loss = (
            self.mode
            if self.mode in ("multinomial", "crammer_singer", "hard_margin")
            else self.loss
        )
        coupled = self.mode in ("multinomial", "crammer_singer")
        if coupled:
            classes, y = np.unique(y, return_inverse=True)
            if len(classes) == 2:
                loss, y = ("logistic" if loss == "multinomial" else "hinge"), 2 * y - 1
        return Task(
            loss,
            dense(self.X)[every],
            np.asarray(y)[every],
            self.C if C is None else C,
            0.0 if self.mode in ("crammer_singer", "hard_margin", "sgd") else self.l1_ratio,
            None if self.weight is None else self.weight[every],
            self.fit_intercept,
            regression=self.mode == "regression",
            width=self.width,
            classes=len(np.unique(y)) if coupled and len(np.unique(y)) > 2 else 1,
        )


def draw(seed: int, designs: tuple[str, ...] = (), modes: tuple[str, ...] = ()) -> Case:
    """A case from its seed; the same seed is the same case as long as the lists are the same."""
    rng = np.random.default_rng(seed)
    plain = bool(rng.random() < 0.2)
    design = "gaussian" if plain else str(rng.choice(designs or tuple(DESIGNS)))
    mode = str(
        rng.choice(modes)
        if modes
        else rng.choice([*MODES, "zero_one"], p=[0.42, 0.24, 0.06, 0.07, 0.05, 0.06, 0.05, 0.05])
    )
    n, d = _size(rng)
    if mode == "zero_one":
        n, d = int(rng.integers(4, 13)), int(rng.integers(1, 4))
    elif mode in ("multinomial", "crammer_singer", "ovr"):
        d = min(d, 8)
    X = DESIGNS[design](rng, n, d)
    shape = str(rng.choice(["separable", "quasi", "inseparable"], p=[0.3, 0.1, 0.6]))
    if mode == "hard_margin":
        shape = "separable"
    y = _labels(rng, X, mode, shape, plain)
    if not plain:
        y = _apply_design(rng, design, X, y, mode)
    storage, X = _store(rng, X) if not plain else ("C", X)
    weights, weight = _weights(rng, len(y)) if not plain else ("none", None)
    if mode == "regression":
        loss = str(rng.choice(REGRESSION))
    elif mode in ("multinomial", "crammer_singer", "hard_margin", "zero_one"):
        loss = {"multinomial": "logistic", "zero_one": "zero_one"}.get(mode, "hinge")
    else:
        loss = str(rng.choice(CLASSIFICATION, p=[0.25, 0.25, 0.15, 0.1, 0.1, 0.07, 0.05, 0.03]))
    C, l1_ratio = _penalty(rng, mode, loss, plain)
    entry = "fit"
    if mode in ("two", "regression") and math.isfinite(C):
        entry = str(rng.choice(["fit", "path", "tune", "cv"], p=[0.82, 0.08, 0.06, 0.04]))
    if entry == "cv" and (loss not in ("hinge", "logistic") or l1_ratio or mode == "regression"):
        entry = "tune"
    tol = 1e-6 if plain else float(rng.choice([1e-6, 1e-3, 1e-9], p=[0.8, 0.1, 0.1]))
    # Drawn apart, so that the rest of a case stays what it was.
    more = np.random.default_rng([seed, 1])
    width = Huber().width if loss == "huber" else HuberisedHinge().width
    solver = "auto"
    if not plain:
        width = width if more.random() < 0.7 else 10.0 ** more.uniform(-9, 6)
        if mode in ("two", "regression") and entry == "fit" and more.random() < 0.15:
            solver = str(more.choice(sorted(SOLVERS)))
    return Case(
        *(seed, design, mode, entry, loss, C, l1_ratio),
        *(plain or bool(rng.random() < 0.8), tol, storage, weights, shape, plain),
        *(solver, width, X, y, weight),
    )


def _labels(rng: Rng, X: Any, mode: str, shape: str, plain: bool) -> Any:
    if mode == "regression":
        t = _score(rng, X) + (rng.normal(size=len(X)) if shape == "inseparable" else 0.0)
        if plain:
            return t
        kind = rng.random()
        if kind < 0.35:
            return t
        if kind < 0.8:
            return t * 10.0 ** rng.choice(
                [-300, -160, -30, -19, -12, -9, -6, 3, 6, 12, 30, 160, 300]
            )
        return np.round(t * 3)
    if mode in ("ovr", "multinomial", "crammer_singer"):
        k = int(rng.integers(3, 6))
        z = _score(rng, X) + (0.5 * rng.normal(size=len(X)) if shape != "separable" else 0.0)
        y = np.digitize(z, np.quantile(z, np.linspace(0, 1, k + 1)[1:-1]))
        y[: min(k, len(y))] = np.arange(min(k, len(y)))
        return y
    return _signs(rng, X, shape)


def _apply_design(rng: Rng, design: str, X: Any, y: Any, mode: str) -> Any:
    """Designs in which rows and labels depend on each other; X is changed in place."""
    if mode in ("ovr", "multinomial", "crammer_singer"):
        return y
    sign = np.where(y > np.median(y), 1, -1) if mode == "regression" else y
    if design == "last_bits":
        X[:, 1] = X[:, 0] * (1 + sign * 2.0 ** -rng.integers(44, 53))
    if design == "cancelling":
        sign = np.where(np.arange(len(X)) % 2 == 0, 1, -1)
        X[:] = np.column_stack([sign, -sign])
        size = 2.0 ** rng.integers(40, 64)
        for c in (1, -1):
            rows = np.flatnonzero(sign == c)
            many = max(1, len(rows) // 4)
            X[rows[:many]], X[rows[-many:]] = size, -size
        return sign.astype(float) if mode == "regression" else sign
    return y


def _penalty(rng: Rng, mode: str, loss: str, plain: bool) -> tuple[float, float]:
    if mode == "hard_margin":
        return math.inf, 0.0
    C = 10.0 ** rng.uniform(-4, 4) if plain else 10.0 ** rng.uniform(-12, 12)
    if not plain and rng.random() < 0.2 and loss not in ("hinge", "perceptron"):
        C = math.inf
    l1_ratio = 0.0
    if loss in SMOOTH and mode != "sgd" and math.isfinite(C):
        l1_ratio = float(rng.choice([0.0, 1.0, 0.5, 0.01], p=[0.7, 0.15, 0.1, 0.05]))
    return C, l1_ratio


# --- answers --------------------------------------------------------------------------------------------------


class Answer(NamedTuple):
    """A claim, the coefficients (d + 1, k) it is about, and the objective."""

    task: Task
    W: Any
    claim: Any
    title: str


def coefficients(model: Any) -> Any:
    """Coefficients of a fitted model as (d + 1, k), the intercepts last."""
    return np.vstack([np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)])


def answers(case: Case) -> tuple[Any, list[Answer]]:
    """The fitted model (None if there is none to verify) and every claim that was made."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        if case.entry == "path":
            return None, list(_of_path(case))
        if case.entry in ("tune", "cv"):
            return _of_tuning(case)
        model = case.estimator().fit(case.X, case.y, case.weight)
    return model, list(of_model(case, model))


def of_model(case: Case, model: Any, C: float | None = None) -> Iterator[Answer]:
    """The claim of a fitted model, part by part if it has several."""
    W, claim = coefficients(model), model.certificate_
    if case.mode == "zero_one":
        return
    if not claim.parts:
        task = case.task(C=C)
        if W.shape[1] > 1:  # the classes are those of the model, also where altered rows lack one
            y, name = np.searchsorted(model.classes_, case.y), model._fits[0].recipe.loss.name
            task = replace(task, y=y, loss=name, classes=W.shape[1])
        yield Answer(task, W, claim, "fit")
        return
    for c, (label, part) in enumerate(zip(model.classes_.tolist(), claim.parts, strict=True)):
        y = np.where(np.asarray(case.y) == label, 1, -1)
        yield Answer(case.task(y, C=C), W[:, c : c + 1], part, f"class {label}")


def _of_path(case: Case) -> Iterator[Answer]:
    found = linsep.path(case.estimator(), case.X, case.y, case.grid(), sample_weight=case.weight)
    for C, w, b, claim in zip(
        found.Cs.tolist(), found.coefs, found.intercepts, found.certificates, strict=True
    ):
        yield Answer(case.task(C=C), np.vstack([w.T, b]), claim, f"path, C={C:.3g}")


def _of_tuning(case: Case) -> tuple[Any, list[Answer]]:
    n = case.X.shape[0]
    if case.entry == "cv":
        model = case.estimator().fit(case.X, case.y, case.weight)
        return model, list(of_model(case, model, model.C_))
    every = np.arange(n)
    folds = [(every[every % 2 != f], every[every % 2 == f]) for f in range(2)]
    found = linsep.tune(
        *(case.estimator(), case.X, case.y, case.grid()),
        cv=folds,
        sample_weight=case.weight,
        keep=True,
    )
    listed = []
    for c, C in enumerate(found.curve.Cs.tolist()):
        for f, (rows, _) in enumerate(folds):
            W = np.vstack([found.coefs[c, f].T, found.intercepts[c, f]])
            listed.append(
                Answer(
                    case.task(rows=rows, C=C), W, found.certificates[c, f], f"C={C:.3g}, fold {f}"
                )
            )
    best = found.best_estimator_
    return best, [*listed, *of_model(case, best, found.best_C)]
