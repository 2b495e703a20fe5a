"""More features than rows: the rows in coordinates of their own span.

With mu a point amid the rows and K = (X - mu)(X - mu)' = V E V', the rows L = V E^(1/2) have the same inner
products: min lam/2 |w|^2 + sum s l(sigma (x.w + b) + o) has the same dual on L as on X, with at most n features.
Its answer y gives w = (X - mu)' V E^(-1/2) y.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.data import Memory
from linsep.problem import Problem, dot
from linsep.solution import Stop
from linsep.solvers.imbalance import begin
from linsep.solvers.run import Run

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.solution import FloatArray

LARGEST = 6000  # rows, or features, up to which a matrix of that order is factorised
DROP = 1e-14

Attempt = Callable[["Run[Problem]", "FloatArray"], bool]


def applies(problem: Problem) -> bool:
    """Whether there are more features than rows, and not too many rows."""
    return problem.data.n < problem.data.d and problem.data.n <= LARGEST


def _products(problem: Problem) -> FloatArray:
    """K, about a point amid the rows."""
    X = problem.data.X
    problem.passes += 1
    if sp.issparse(X):
        return np.asarray((X.astype(np.float64) @ X.astype(np.float64).T).toarray())
    X = np.asarray(X, np.float64) - problem.centre()
    return np.asarray(X @ X.T)


def solve(run: Run[Problem], attempt: Attempt) -> bool:
    """``attempt`` on the reduced problem, then the point in all coordinates. Whether the gap closed."""
    problem = run.problem
    data = problem.data
    values, vectors = np.linalg.eigh(_products(problem))
    keep = values > DROP * max(float(values[-1]), 1e-300)
    rows = np.ascontiguousarray(vectors[:, keep] * np.sqrt(values[keep]))
    reduced = Memory(rows, data.sign, data.offset, data.weight, n_threads=1)
    sub = Problem(problem.loss, problem.penalty, reduced, problem.fit_intercept)
    limits = Stop(run.stop.tol * 0.1, run.stop.time_limit, None)
    inner = begin(sub, limits)
    inner.began = run.began
    attempt(inner, np.zeros(sub.order))
    problem.passes += 1
    if inner.best is None:
        return False
    _, found, dual, _ = inner.best
    combination = vectors[:, keep] @ (found[:-1] / np.sqrt(values[keep]))

    def add(b: Block, out: FloatArray) -> None:
        part = combination[b.first : b.first + b.rows.n]
        _kernels.combine(b.rows, b.lo, b.hi, part, out)

    at = data.sum(add, problem.order)
    mu = problem.centre()
    at[:-1] -= at[-1] * mu
    at[-1] = found[-1] - dot(mu, at[:-1]) if problem.fit_intercept else 0.0
    return run.close(at, dual)
