"""Ordinary problems of ordinary sizes: tables that people fit, for which every solver should end certified and soon.

The hostile problems of ``hostile.py`` are small, so that they are fitted by few solvers. These have 300 to 60,000 rows
and 5 to 400 columns: independent, dependent, correlated, scaled, skewed, shifted, with heavy tails, of whole numbers,
dense or sparse.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression

DESIGNS = (
    *("independent", "dependent", "factors", "scaled", "skewed", "indicators"),
    *("sparse", "decaying", "shifted", "heavy", "whole"),
)
MODES = ("classes", "numbers", "softmax", "l1", "elastic net", "hinge of classes", "lasso")
ENTRIES = 6_000_000


@dataclass(frozen=True, eq=False)
class Ordinary:
    """A table, its target and an estimator that has not been fitted."""

    seed: int
    design: str
    mode: str
    X: Any
    y: np.ndarray
    model: Any

    def describe(self) -> str:
        """One line about it."""
        n, d = self.X.shape
        loss = getattr(self.model, "loss", "logistic")
        return f"{self.seed} {self.design} {n} x {d} {self.mode} {loss} C={self.model.C:.2g}"


def _table(rng: np.random.Generator, design: str) -> Any:
    n, d = int(10 ** rng.uniform(2.5, 4.8)), int(10 ** rng.uniform(0.7, 2.6))
    n = min(n, ENTRIES // d)
    X = rng.standard_normal((n, d))
    if design == "dependent":
        spare, some = max(1, d // 8), min(d, 10)
        X[:, :spare] = X[:, -some:] @ rng.standard_normal((some, spare))
        return (X - X.mean(axis=0)) / X.std(axis=0)
    if design == "factors":
        return 0.3 * X + rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    if design == "sparse":
        return sp.csr_matrix(np.where(rng.random((n, d)) < 0.08, np.abs(X), 0.0))
    if design == "heavy":
        return rng.standard_t(2, (n, d))
    change = {
        "scaled": lambda: X * 10.0 ** rng.uniform(-3, 3, d),
        "skewed": lambda: np.exp(1.2 * X),
        "indicators": lambda: (X > 1.0).astype(np.float64),
        "decaying": lambda: X / np.arange(1.0, d + 1.0),
        "shifted": lambda: X + rng.uniform(-50, 50, d),
        "whole": lambda: np.round(20.0 * X),
    }
    return change[design]() if design in change else X


def draw(seed: int) -> Ordinary:
    """The problem of a seed."""
    rng = np.random.default_rng(seed)
    design, mode = str(rng.choice(DESIGNS)), str(rng.choice(MODES))
    X = _table(rng, design)
    sizes = np.asarray(abs(X).mean(axis=0)).ravel() + 1e-9
    z = X @ (rng.standard_normal(X.shape[1]) / sizes)
    z = (z - z.mean()) / (z.std() + 1e-12)
    z = z + float(rng.choice([0.0, 0.1, 0.5, 2.0])) * rng.standard_normal(len(z))
    C = float(10 ** rng.uniform(-4, 4))
    if mode in ("numbers", "lasso"):
        loss = "squared" if mode == "lasso" else str(rng.choice(["squared", "huber", "absolute"]))
        y = z * 10 ** rng.uniform(-2, 3)
        return Ordinary(
            seed, design, mode, X, y, LinearRegressor(loss, C=C, l1_ratio=float(mode == "lasso"))
        )
    if mode in ("softmax", "hinge of classes"):
        k = int(rng.choice([3, 5, 10])) if mode == "softmax" else 3
        y = np.digitize(z, np.quantile(z, np.arange(1, k) / k))
        return Ordinary(
            seed, design, mode, X, y, (LogisticRegression if mode == "softmax" else LinearSVC)(C=C)
        )
    y = np.where(z > np.quantile(z, float(rng.choice([0.1, 0.5, 0.9]))), 1, -1)
    smooth = ["logistic", "squared_hinge", "huberised_hinge"]
    every = [*smooth, "hinge", "exponential", "squared", "absolute"]
    ratio = {"classes": 0.0, "l1": 1.0, "elastic net": 0.5}[mode]
    loss = str(rng.choice(smooth if ratio else every))
    return Ordinary(seed, design, mode, X, y, LinearClassifier(loss, C=C, l1_ratio=ratio))
