"""What a contestant is: a rival's solver, the objective it minimises, and the knob that buys accuracy."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import scipy.sparse as sp

Answer = tuple[np.ndarray, float]  # w, b
Fit = Callable[[float], Answer]  # the setting of the knob -> coefficients


@dataclass(frozen=True)
class Task:
    """One objective on one data set. y holds -1.0 and +1.0."""

    X: Any
    y: np.ndarray
    loss: str
    C: float
    threads: int
    cap: float = 10.0  # seconds a fit may take

    @property
    def n(self) -> int:
        return int(self.X.shape[0])

    @property
    def d(self) -> int:
        return int(self.X.shape[1])

    @property
    def sparse(self) -> bool:
        return bool(sp.issparse(self.X))

    def epochs(self) -> int:
        """More epochs than a coordinate method can make within the cap, at a nanosecond per entry."""
        entries = self.X.nnz if self.sparse else self.n * self.d
        return max(10, min(100_000, int(self.cap / (1e-9 * entries))))


TOLERANCES = (1e-1, 1e-2, 1e-3, 1e-4, 1e-5, 1e-6, 1e-7, 1e-8, 1e-10)
EPOCHS = (1, 2, 4, 8, 16, 32, 64, 128, 256, 512, 1024, 2048, 4096, 8192)


def anything(_: Task) -> bool:
    return True


def nothing(_: Task) -> float:
    return 0.0


@dataclass(frozen=True)
class Contestant:
    """``prepare`` returns what is timed; ``conversion`` the seconds that ``prepare`` saved it, to be added."""

    name: str
    losses: tuple[str, ...]
    intercept: str  # which of the objectives of objective.py it minimises
    knob: str
    sweep: tuple[float, ...]  # from loose to tight
    prepare: Callable[[Task], Fit]
    threads: str  # "all": as many as are given, and entered once more with one; "1": never more
    takes: Callable[[Task], bool] = field(default=anything)
    conversion: Callable[[Task], float] = field(default=nothing)
    single: bool = False  # this entry runs with one thread although it could use more


def linear(model: Any) -> Answer:
    """Coefficients of an estimator with scikit-learn's attributes."""
    b = np.ravel(model.intercept_)
    return np.ravel(model.coef_), float(b[0]) if b.size else 0.0
