"""Prediction: rows per second of many, and the latency of one; linsep, scikit-learn, bare numpy, and memory itself."""

from __future__ import annotations

import warnings
from typing import Any

import datasets
import generators
import machine
import numpy as np
import tables
from threadpoolctl import threadpool_limits

COLUMNS = ("data", "rows", "what", "linsep s", "scikit-learn s", "X @ w + b s", "read X s", "ratio")
CALLS = ("predict", "decision_function", "predict_proba")


def scores(X: Any, w: np.ndarray, b: float) -> Any:
    return X @ w + b


def main() -> None:
    asked = tables.options(__doc__, quick="smaller data")
    from sklearn.linear_model import LogisticRegression as Theirs

    from linsep import LogisticRegression as Ours

    threadpool_limits(asked.threads)
    table = tables.Table("predict", COLUMNS, asked)
    n = 200_000 if asked.quick else 1_000_000
    sets = {
        "cancer": datasets.load("cancer"),
        f"{n:,} x 28": generators.tall(n, 28),
        f"{n // 10:,} x 500": generators.tall(n // 10, 500),
        f"{n // 10:,} x 20,000 sparse": generators.text(n // 10, 20_000),
    }
    for name, (X, y) in sets.items():
        fit = slice(0, 5_000)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            ours = Ours(tol=1e-2, n_threads=asked.threads).fit(X[fit], y[fit])
            theirs = Theirs(max_iter=20).fit(X[fit], y[fit])
        w, b = ours.coef_[0], float(ours.intercept_[0])
        for rows, Z in (("all", X), ("1", X[:1])):
            bare = tables.best(scores, Z, w, b)
            reading = machine.read_seconds(Z, asked.threads) if rows == "all" else np.nan
            for call in CALLS:
                mine = tables.best(getattr(ours, call), Z)
                other = tables.best(getattr(theirs, call), Z)
                table.add(name, rows, call, mine, other, bare, reading, other / mine)
    table.write()


if __name__ == "__main__":
    main()
