"""Time per row of the perceptron and of stochastic descent: linsep, scikit-learn, and memory itself.

Everything runs in one thread, and processor time is counted, so that other work on the machine disturbs little.
"""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from typing import Any

import generators
import numpy as np
import scipy.sparse as sp
import tables
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "what", "linsep ns/row", "scikit-learn ns/row", "read X ns/row", "ratio")
EPOCHS = 5


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
    """What is timed: a name, ours, theirs, and how many epochs one call makes."""
    from sklearn.linear_model import Perceptron as TheirPerceptron
    from sklearn.linear_model import SGDClassifier as TheirSGD

    from linsep import Perceptron, SGDClassifier

    short = {"max_iter": EPOCHS, "tol": None}
    for name, labels in (("overlapping", y), ("separable", separable(X))):
        yield (
            f"perceptron, {name} classes",
            lambda labels=labels: Perceptron(max_passes=EPOCHS, max_updates=10**9).fit(X, labels),
            lambda labels=labels: TheirPerceptron(shuffle=False, **short).fit(X, labels),
            EPOCHS,
        )
    alpha = 1.0 / len(y)
    for ours, theirs in (("hinge", "hinge"), ("logistic", "log_loss")):
        yield (
            f"SGD {ours}, fit and certificate",
            lambda ours=ours: SGDClassifier(ours, epochs=EPOCHS, tol=1e-9, n_threads=1).fit(X, y),
            lambda theirs=theirs: TheirSGD(loss=theirs, alpha=alpha, **short).fit(X, y),
            EPOCHS,
        )
        yield (
            f"SGD {ours}, partial_fit",
            lambda ours=ours: SGDClassifier(ours, eta0=0.01).partial_fit(
                X, y, classes=[False, True]
            ),
            lambda theirs=theirs: TheirSGD(loss=theirs, alpha=alpha).partial_fit(
                X, y, classes=[False, True]
            ),
            1,
        )


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
        for what, ours, theirs, epochs in contests(X, y):
            times = [(seconds(ours), seconds(theirs)) for _ in range(5)]  # in alternation
            mine, other = (1e9 * min(one) / (rows * epochs) for one in zip(*times, strict=True))
            table.add(name, what, mine, other, reading, other / mine)
    table.write()


if __name__ == "__main__":
    main()
