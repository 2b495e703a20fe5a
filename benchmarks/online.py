"""Time per row of the perceptron and of stochastic descent: linsep, scikit-learn, River, and memory itself.

Everything runs in one thread, and processor time is counted, so that other work on the machine disturbs little. An
epoch of a fit is the difference between a long and a short fit; a fit is a short one with all that belongs to it.
River learns from one dictionary at a time; making them is not counted, and a thousand rows are enough to time it.
"""

from __future__ import annotations

import math
import time
import warnings
from collections.abc import Callable
from typing import Any

import generators
import numpy as np
import scipy.sparse as sp
import tables
from threadpoolctl import threadpool_limits

COLUMNS = (
    *("data", "what", "linsep ns/row", "scikit-learn ns/row", "River ns/row", "read X ns/row"),
    *("ratio", "ratio to River", "times reading"),
)
EPOCHS = 5
RIVER_ROWS = 1_000


def separable(X: Any, seed: int = 0) -> np.ndarray:
    """Labels that a hyperplane separates."""
    w = np.random.default_rng(seed).standard_normal(X.shape[1])
    z = np.asarray(X @ w).ravel()
    return z > np.median(z)


def seconds(run: Callable[[], Any]) -> float:
    """Processor time of one call."""
    began = time.process_time()
    run()
    return time.process_time() - began


def read_seconds(X: Any) -> float:
    """Processor time in which one thread reads all of X once."""
    parts = [X.data, X.indices] if sp.issparse(X) else [X.reshape(-1)]
    return min(seconds(lambda: [part @ part for part in parts]) for _ in range(5))


def contests(X: Any, y: np.ndarray) -> Any:
    """What is timed: a name, ours and theirs by epochs (None: what one call does), and River's learner."""
    from sklearn.linear_model import Perceptron as TheirPerceptron
    from sklearn.linear_model import SGDClassifier as TheirSGD

    from linsep import Perceptron, SGDClassifier

    for name, labels in (("overlapping", y), ("separable", separable(X))):
        yield (
            f"perceptron, {name} classes",
            lambda e, labels=labels: Perceptron(max_passes=e, max_updates=10**9).fit(X, labels),
            lambda e, labels=labels: TheirPerceptron(shuffle=False, max_iter=e, tol=None).fit(
                X, labels
            ),
            "perceptron",
        )
    alpha = 1.0 / len(y)
    for ours, theirs in (("hinge", "hinge"), ("logistic", "log_loss")):
        yield (
            f"SGD {ours}",
            lambda e, ours=ours: SGDClassifier(ours, epochs=e, tol=1e-9, n_threads=1).fit(X, y),
            lambda e, theirs=theirs: TheirSGD(loss=theirs, alpha=alpha, max_iter=e, tol=None).fit(
                X, y
            ),
            ours,
        )
        yield (
            f"SGD {ours}, partial_fit",
            lambda _, ours=ours: SGDClassifier(ours, eta0=0.01).partial_fit(
                X, y, classes=[False, True]
            ),
            lambda _, theirs=theirs: TheirSGD(loss=theirs, alpha=alpha).partial_fit(
                X, y, classes=[False, True]
            ),
            ours,
        )


def river_seconds(X: Any, y: np.ndarray, learner: str) -> float:
    """Processor time per row of River's learn_one; nan if River is not installed."""
    try:
        from river import linear_model, optim
    except ImportError:
        return math.nan
    rows = X[:RIVER_ROWS]
    if sp.issparse(rows):
        parts = (rows[i] for i in range(rows.shape[0]))
        dicts = [dict(zip(x.indices.tolist(), x.data.tolist(), strict=True)) for x in parts]
    else:
        dicts = [dict(enumerate(row)) for row in rows.tolist()]
    pairs = list(zip(dicts, y[:RIVER_ROWS].tolist(), strict=True))

    def learn() -> None:
        if learner == "perceptron":
            model = linear_model.Perceptron()
        else:
            loss = optim.losses.Hinge() if learner == "hinge" else optim.losses.Log()
            model = linear_model.LogisticRegression(loss=loss, l2=1.0 / len(y))
        for x, label in pairs:
            model.learn_one(x, label)

    return min(seconds(learn) for _ in range(2)) / len(pairs)


def timings(run: Callable[[int], Any], portions: bool) -> tuple[float, float]:
    """Seconds of a short fit and of one more epoch; of one call and nothing more if it takes portions."""
    short = seconds(lambda: run(EPOCHS))
    return (short, short) if portions else (short, seconds(lambda: run(3 * EPOCHS)))


def main() -> None:
    asked = tables.options(__doc__, quick="smaller data")
    threadpool_limits(1)
    asked.threads = 1
    table = tables.Table("online", COLUMNS, asked)
    n = 50_000 if asked.quick else 400_000
    sets = {
        f"{n:,} x 28": generators.tall(n, 28),
        f"{n // 20:,} x 1,000": generators.tall(n // 20, 1_000),
        f"{n // 8:,} x 20,000 sparse": generators.text(n // 8, 20_000),
    }
    warnings.simplefilter("ignore")
    for name, (X, labels) in sets.items():
        if sp.issparse(X):
            X = X.astype(np.float64)  # noqa: PLW2901
            X.sum_duplicates()  # once, not in every fit
        rows, y = X.shape[0], np.asarray(labels) == np.max(labels)
        reading = 1e9 * read_seconds(X) / rows
        for what, ours, theirs, learner in contests(X, y):
            portions = what.endswith("partial_fit")
            both = [(timings(ours, portions), timings(theirs, portions)) for _ in range(5)]
            river = 1e9 * river_seconds(X, y, learner)
            best = np.array(both).min(axis=0)  # ours and theirs, a short fit and a long one
            if portions:
                lines = {what: 1e9 * best[:, 0] / rows}
            else:
                lines = {
                    f"{what}, an epoch": 1e9 * (best[:, 1] - best[:, 0]) / (2 * EPOCHS * rows),
                    f"{what}, fit of {EPOCHS} epochs": 1e9 * best[:, 0] / (EPOCHS * rows),
                }
            for line, (mine, other) in lines.items():
                table.add(
                    name,
                    line,
                    mine,
                    other,
                    river,
                    reading,
                    other / mine,
                    river / mine,
                    mine / reading,
                )
    table.write()


if __name__ == "__main__":
    main()
