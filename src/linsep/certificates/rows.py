"""Rows as the local certificate reads them: dense chunks of x~ = (x, 1), and their weighted Grams."""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.certificates.metric import Metric
from linsep.problem.closing_rows import ROUNDOFF

FloatArray = npt.NDArray[np.float64]

#: Dense numbers in a chunk.
_CHUNK = 1 << 20
#: Rows per orthogonal transformation, so that they stay in cache.
_QR_ROWS = 1024
#: X'X is good enough if it loses no more than this share of the curvature.
_GRAM_ERROR = 0.01


def _height(X: Any) -> int:
    n, d = X.shape
    return int(max(1, min(n, max(d + 1, _CHUNK // (d + 1)))))


def dense_chunks(X: Any, fit_intercept: bool) -> Iterator[tuple[slice, FloatArray]]:
    """Yield (rows, x~ in float64): dense, with the constant 1 last if there is an intercept."""
    n, height = X.shape[0], _height(X)
    for start in range(0, n, height):
        rows = slice(start, min(start + height, n))
        block = X[rows].astype(np.float64)
        block = block.toarray() if sp.issparse(block) else block
        yield rows, np.column_stack([block, np.ones(len(block))]) if fit_intercept else block


def longest_dense_sum(X: Any) -> float:
    """Longest chain of additions in a sum over these chunks."""
    return float(_height(X) + math.ceil(X.shape[0] / _height(X)))


@dataclass(frozen=True, eq=False)
class Rows:
    """The rows with all that turns scores into margins; lam is the penalty on w."""

    X: Any
    sigma: FloatArray
    offset: FloatArray
    weight: FloatArray
    fit_intercept: bool
    lam: float

    @property
    def size(self) -> int:
        """Number of unknowns: d, and 1 for the intercept."""
        return int(self.X.shape[1]) + int(self.fit_intercept)

    def some(self, rows: npt.NDArray[np.intp]) -> Rows:
        """The rows of these numbers."""
        vectors = self.sigma[rows], self.offset[rows], self.weight[rows]
        return Rows(self.X[rows], *vectors, self.fit_intercept, self.lam)

    @property
    def chain(self) -> float:
        """Relative error of a sum over the rows of terms of one sign."""
        return (longest_dense_sum(self.X) + 8) * ROUNDOFF

    def chunks(self) -> Iterator[tuple[slice, FloatArray]]:
        """Yield (rows, x~)."""
        return dense_chunks(self.X, self.fit_intercept)

    def gram(self, h: FloatArray) -> FloatArray:
        """lam I_w + sum h x~ x~'."""
        H = np.zeros((self.size, self.size))
        np.fill_diagonal(H[: self.X.shape[1]], self.lam)
        for rows, A in self.chunks():
            H += A.T @ (h[rows][:, None] * A)
        return H

    def factor(self, h: FloatArray) -> tuple[FloatArray, int]:
        """R with R'R = lam I_w + sum h x~ x~', and the number of orthogonal transformations."""
        R, steps = math.sqrt(self.lam) * np.eye(self.size)[: self.X.shape[1]], 1
        height = max(_QR_ROWS, 4 * self.size)
        for rows, A in self.chunks():
            scaled = np.sqrt(h[rows])[:, None] * A
            for start in range(0, len(A), height):
                stack = np.vstack([R, scaled[start : start + height]])
                R, steps = np.asarray(np.linalg.qr(stack, mode="r")), steps + 1
        return R, steps

    def metric(self, h: FloatArray) -> tuple[Metric, bool]:
        """The norm of lam I_w + sum h x~ x~', and whether the Gram matrix was accurate enough."""
        metric = Metric.from_gram(self.gram(h), self.chain)
        if metric.full and metric.error <= _GRAM_ERROR:
            return metric, True
        return Metric.from_factor(*self.factor(h)), False

    def overlooked_by(self, metric: Metric) -> bool:
        """Whether rows move in directions that the metric does not see (to working precision)."""
        if metric.full:
            return False
        everything, _ = self.metric(self.weight)
        return bool(everything.T.shape[1] > metric.T.shape[1])

    def reach(self, metric: Metric) -> FloatArray:
        """sqrt(x~' M^-1 x~) for every row, not rounded below it."""
        reach = np.empty(self.X.shape[0])
        for rows, A in self.chunks():
            reach[rows] = np.sqrt(((A @ metric.T) ** 2).sum(axis=1))
        return reach * 1.001
