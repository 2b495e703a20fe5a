"""Race the classes of ``linsep.sklearn`` against scikit-learn's own, on scikit-learn's objectives.

    OPENBLAS_NUM_THREADS=1 python benchmarks/drop_in.py [WORD ...] > benchmarks/results/drop_in.txt

Both classes have scikit-learn's defaults. linsep proves the relative gap that its ``tol`` asks for, 1e-6 by default.
scikit-learn is timed at its default ``tol``; how far it then lies above the minimum, at least, is proven as
``linsep.audit`` does it. If that is more than 1e-6, ``tol`` is divided by 10 until it is not: "equal" is the least
time of scikit-learn to reach 1e-6, with which linsep's is compared. The search ends after ``LIMIT`` seconds: ">= x"
then means that x did not suffice. Times are least processor times of one thread. All cells take about 4 minutes.

The first lines compare ``linsep.sklearn`` with linsep's own class on small data: what scikit-learn's interface costs.
WORD keeps the rows that contain one of the words.
"""

from __future__ import annotations

import math
import os
import platform
import sys
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp
import sklearn
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_digits, load_iris
from sklearn.preprocessing import StandardScaler

import linsep
import linsep.sklearn as ours
from linsep import sklearn_objectives
from linsep.auditing import objectives

TARGET = 1e-6
#: Seconds of one fit of scikit-learn, by its iterations so far, and of its search for 1e-6 in all.
LIMIT = 4.0
CLASSIFIERS: list[tuple[str, dict[str, Any]]] = [
    ("LogisticRegression", {}),
    ("LogisticRegression", {"solver": "liblinear"}),
    ("LinearSVC", {}),
    ("RidgeClassifier", {}),
    ("SGDClassifier", {"loss": "log_loss"}),
]
REGRESSORS: list[tuple[str, dict[str, Any]]] = [
    ("LinearRegression", {}),
    ("Ridge", {}),
    ("Lasso", {"alpha": 0.1}),
    ("ElasticNet", {"alpha": 0.1}),
    ("HuberRegressor", {}),
    ("LinearSVR", {}),
    ("QuantileRegressor", {"alpha": 0.01}),
]


class Table(NamedTuple):
    """Rows, labels and targets; None where there are none."""

    name: str
    X: Any
    y: Any
    t: Any


class Result(NamedTuple):
    """Seconds of linsep, of scikit-learn at its default and at 1e-6; if that is not ``reached``, those of its last try.

    ``equal`` is inf if scikit-learn converges to another point at every ``tol``.
    """

    linsep: float
    default: float
    equal: float
    reached: bool


def synthetic(n: int, d: int, density: float | None = None) -> Table:
    """Rows of a noisy linear model with a tenth of the features."""
    rng = np.random.default_rng(n + d)
    if density is None:
        X: Any = rng.normal(size=(n, d))
    else:
        X = sp.random_array((n, d), density=density, rng=rng, format="csr")
    w = np.where(np.arange(d) < max(2, d // 10), rng.normal(size=d), 0.0)
    t = X @ w + rng.normal(size=n)
    shape = f"{n:,} x {d:,}" + ("" if density is None else " sparse")
    return Table(shape, X, (t + rng.logistic(size=n) > 0).astype(int), t)


def tables() -> list[Table]:
    """The data of the race."""
    X, y = load_breast_cancer(return_X_y=True)
    Z, digit = load_digits(return_X_y=True)
    A, t = load_diabetes(return_X_y=True)
    return [
        *(synthetic(*shape) for shape in ((150, 4), (1_000, 20), (1_000, 500), (20_000, 100))),
        synthetic(5_000, 2_000, 0.01),
        Table("breast cancer", StandardScaler().fit_transform(X), y, None),
        Table("digits", Z / 16.0, digit, None),
        Table("diabetes", A, None, t),
    ]


def least_time(work: Callable[[], object], seconds: float = 0.4, most: int = 50) -> float:
    """Least processor time of a call, of at least two."""
    found, began, calls = math.inf, time.perf_counter(), 0
    while calls < 2 or (calls < most and time.perf_counter() - began < seconds):
        at = time.process_time()
        work()
        found, calls = min(found, time.process_time() - at), calls + 1
    return found


def reference(name: str, options: dict[str, Any], X: Any, y: Any) -> float:
    """An upper bound on the minimum, within 1e-10 of it where rounding allows: the objective of a tighter fit."""
    model = getattr(ours, name)(**options)
    if "tol" in model.get_params():
        model.set_params(tol=1e-6)
    return float(model.fit(X, y).certificate_.primal)


def excess(model: Any, minimum: float, X: Any, y: Any) -> float:
    """How far the objective of a model is above the minimum, relatively: at least, as ``linsep.audit`` computes it."""
    if isinstance(model, linear_model.HuberRegressor):  # the scale belongs to the variables
        r = np.abs(y - model.predict(X)) / model.scale_
        width = model.epsilon
        values = np.where(r <= width, r * r, 2.0 * width * r - width * width)
        value = model.scale_ * (len(y) + values.sum()) + model.alpha * model.coef_ @ model.coef_
        return max(0.0, float(value) / minimum - 1.0)
    problem = sklearn_objectives.objective_of(model, sklearn_objectives.Given(X.shape[0], y, None))
    pairs = zip(
        problem.parts, objectives.split(problem, model.coef_, model.intercept_), strict=True
    )
    parts = [objectives.objective_at(problem, part, X, W, TARGET) for part, W in pairs]
    value = problem.unit * sum(primal - rounding for primal, rounding in parts)
    return max(0.0, value / minimum - 1.0)


def equal_time(
    model: Any, minimum: float, table: Table, y: Any, default: float
) -> tuple[float, bool]:
    """Least processor time of scikit-learn to come within 1e-6 of the minimum, and whether it does."""
    if excess(model, minimum, table.X, y) <= TARGET:
        return default, True
    if getattr(model, "tol", None) is None or isinstance(model, linear_model.LinearRegression):
        return math.inf, False
    spent, total, tighter = default, default, clone(model)
    most = affordable(model, default)
    if most is not None:
        tighter.set_params(max_iter=most)
    while total < LIMIT and tighter.tol > 1e-14:
        tighter.set_params(tol=tighter.tol / 10.0)
        began = time.process_time()
        tighter.fit(table.X, y)
        spent = time.process_time() - began
        total += spent
        if excess(tighter, minimum, table.X, y) <= TARGET:
            quick = total < LIMIT / 4.0
            return (least_time(lambda: tighter.fit(table.X, y)) if quick else spent), True
        if most is not None and np.max(tighter.n_iter_) >= most:
            return spent, False
    return (spent if total >= LIMIT else math.inf), False


def affordable(model: Any, seconds: float) -> int | None:
    """Iterations that take about ``LIMIT`` seconds; None if the class has no such parameter."""
    if "max_iter" not in model.get_params() or getattr(model, "n_iter_", None) is None:
        return None
    made = max(1, int(np.max(model.n_iter_)))
    return max(int(LIMIT * made / seconds), 10 * made)


def cell(name: str, options: dict[str, Any], table: Table, y: Any) -> Result:
    """Time one class on one table, and print the line."""
    mine, theirs = getattr(ours, name)(**options), original(name)(**options)
    a = least_time(lambda: mine.fit(table.X, y))
    b = least_time(lambda: theirs.fit(table.X, y))
    minimum = reference(name, options, table.X, y)
    above = excess(theirs, minimum, table.X, y)
    result = Result(a, b, *equal_time(theirs, minimum, table, y, b))
    proven = getattr(mine, "certificate_", None)
    gap = f"{proven.relative_gap:8.1e}" if proven is not None else "    none"
    equal, ratio = f"{'never':>11}", f"{'-':>8}"
    if math.isfinite(result.equal):
        sign = "" if result.reached else ">="
        equal = f"{f'{sign}{1e3 * result.equal:.3f}':>11}"
        ratio = f"{f'{sign}{result.equal / a:.2f}':>8}"
    print(
        f"{title(name, options):30} {table.name:20} {1e3 * a:10.3f} {gap} {1e3 * b:11.3f} {above:8.1e} {equal} "
        f"{b / a:8.2f} {ratio}",
        flush=True,
    )
    return result


def original(name: str) -> Any:
    """scikit-learn's class."""
    return getattr(linear_model, name, None) or getattr(svm, name)


def title(name: str, options: dict[str, Any]) -> str:
    """The class with the parameters that are not its defaults."""
    return name + "".join(f" {value}" for value in options.values())


def cells() -> Iterator[tuple[str, dict[str, Any], Table, Any]]:
    """All pairs of a class and a table."""
    known = tables()
    for name, options in CLASSIFIERS:
        for table in known:
            several = table.name == "digits" and "liblinear" in options.values()
            if table.y is not None and not several:  # which scikit-learn refuses
                yield name, options, table, table.y
    for name, options in REGRESSORS:
        for table in known:
            slow = name == "QuantileRegressor" and (sp.issparse(table.X) or len(table.X) > 1_000)
            if table.t is not None and not slow:  # scipy's linear programmes take minutes there
                yield name, options, table, table.t


def overhead() -> None:
    """What the classes of ``linsep.sklearn`` cost beyond linsep's own on 100 rows of 4 features."""
    X, y = load_iris(return_X_y=True)
    X, y, t = X[:100], y[:100], X[:100] @ [0.2, -0.1, 0.4, 0.3] + np.sin(np.arange(100))
    n = len(t)
    for name, own, other, target in (
        ("LogisticRegression", linsep.LogisticRegression(), ours.LogisticRegression(), y),
        ("LinearSVC", linsep.LinearSVC(loss="squared_hinge"), ours.LinearSVC(), y),
        ("LinearSVC hinge", linsep.LinearSVC(), ours.LinearSVC(loss="hinge"), y),
        (
            "RidgeClassifier",
            linsep.LinearClassifier("squared", C=0.5),
            ours.RidgeClassifier(),
            y,
        ),
        ("Ridge", linsep.LinearRegressor(C=0.5), ours.Ridge(), t),
        ("LinearRegression", linsep.LinearRegressor(), ours.LinearRegression(), t),
        (
            "Lasso",
            linsep.LinearRegressor(l1_ratio=1.0, C=1 / (2 * n * 0.1)),
            ours.Lasso(alpha=0.1),
            t,
        ),
        (
            "ElasticNet",
            linsep.LinearRegressor(l1_ratio=0.5, C=1 / (2 * n * 0.1)),
            ours.ElasticNet(alpha=0.1),
            t,
        ),
        ("LinearSVR", linsep.LinearRegressor("epsilon_insensitive"), ours.LinearSVR(), t),
        (
            "QuantileRegressor",
            linsep.LinearRegressor("absolute", l1_ratio=1.0, C=0.5 / (n * 0.01), tol=1e-10),
            ours.QuantileRegressor(alpha=0.01),
            t,
        ),
        ("SGDClassifier", linsep.SGDClassifier(), ours.SGDClassifier(), y),
    ):
        plain, drop_in = math.inf, math.inf
        for _ in range(5):
            plain = min(plain, least_time(lambda m=own, y=target: m.fit(X, y), 0.1, 500))
            drop_in = min(drop_in, least_time(lambda m=other, y=target: m.fit(X, y), 0.1, 500))
        print(
            f"{name:20} linsep {1e6 * plain:5.0f} us, linsep.sklearn {1e6 * drop_in:5.0f} us, "
            f"difference {1e6 * (drop_in - plain):+5.0f} us"
        )


def main(words: list[str]) -> None:
    """Write the table."""
    warnings.simplefilter("ignore")
    if hasattr(os, "sched_setaffinity"):
        os.sched_setaffinity(0, {max(os.sched_getaffinity(0))})
    print(
        f"scikit-learn {sklearn.__version__}, linsep {linsep.__version__}, {platform.machine()}, one thread"
    )
    if not words or "overhead" in words:
        overhead()
    print(
        f"\n{'class':30} {'data':20} {'linsep ms':>10} {'gap':>8} {'sklearn ms':>11} {'excess':>8} {'equal ms':>11} "
        f"{'default':>8} {'equal':>8}"
    )
    found = [
        cell(*one)
        for one in cells()
        if not words or any(word in f"{title(*one[:2])} {one[2].name}" for word in words)
    ]
    ratios = [r.equal / r.linsep for r in found]
    never = sum(not r.reached for r in found)
    if found:
        print(
            f"\nlinsep is faster in {sum(r.default > r.linsep for r in found)} of {len(found)} cells at scikit-learn's "
            f"defaults,\nand in {sum(ratio > 1.0 for ratio in ratios)} of {len(found)} at equal suboptimality "
            f"{TARGET:g} ({never} of them not reached by scikit-learn)."
        )
        known = [ratio for ratio in ratios if math.isfinite(ratio)]
        mean = float(np.exp(np.mean(np.log(known)))) if known else math.nan
        print(f"Geometric mean of the ratios at equal suboptimality, at least: {mean:.1f}.")


if __name__ == "__main__":
    main(sys.argv[1:])
