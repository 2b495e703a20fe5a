"""What the cost of a fit depends on: sizes, storage, the loss, and how hard the problem is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Dataset, Location
from linsep.losses import Loss
from linsep.problem import Problem


@dataclass(frozen=True)
class Shape:
    """Sizes of a problem [numbers], and how hard it is."""

    n: int
    d: int
    entries: int  #: stored numbers of X
    sparse: bool = False
    kept: float = 1.0  #: share of the numbers of dense rows that coordinate ascent visits: it skips zeros where many
    hardness: float = math.nan  #: C mean s |x|^2, times four times the curvature of the loss
    location: Location = Location.MEMORY

    @property
    def per_row(self) -> float:
        """Stored numbers of a row."""
        return self.entries / max(1, self.n)

    @property
    def pairs(self) -> float:
        """Multiply-adds of a Gram matrix of the features."""
        return 0.5 * self.entries * self.per_row

    @property
    def storage(self) -> str:
        """Prefix of the counts that depend on storage."""
        return "sparse " if self.sparse else ""


def row_norms(problem: Problem) -> FloatArray:
    """|x|^2 of every row (one pass)."""
    problem.passes += 1
    norms = np.zeros(problem.data.n)

    def fill(block: Any, out: FloatArray) -> None:
        _kernels.row_norms(
            block.rows, block.lo, block.hi, norms[block.first : block.first + block.rows.n]
        )

    problem.data.sum(fill, 1)
    return norms


def sampled_mean(problem: Problem) -> float:
    """Mean of s |x|^2 over some rows from everywhere."""
    block = problem.data.whole
    assert block is not None
    return _kernels.sampled_mean(block.rows, block.targets)


def hardness(problem: Problem, mean: float) -> float:
    """C mean s |x|^2 times the curvature of the loss, for this mean of s |x|^2."""
    return hardness_of(problem.loss, problem.lam, mean)


def hardness_of(loss: Loss, lam: float, mean: float) -> float:
    """Hardness for the weight lam of |w|^2/2 and the mean of s |x|^2.

    The logistic loss counts 1. A loss with a kink counts like the huberised hinge of width 1.
    """
    return 4.0 * (loss.curvature_bound if loss.smooth else 1.0) * mean / lam


def shape_of(problem: Problem) -> Shape:
    """Shape of a problem. Reads about a thousand rows, wherever they are: on a cluster in one round."""
    data = problem.data
    whole, kept, hard = data.whole, 1.0, math.inf
    if problem.lam > 0.0:
        if whole is None:
            mean, kept = _sampled(data)
        else:
            mean = _kernels.sampled_mean(whole.rows, whole.targets)
            kept = 1.0 if data.sparse else _kernels.kept_share(whole.rows)
        hard = hardness(problem, mean)
    return Shape(data.n, data.d, data.n_entries, data.sparse, kept, hard, data.location)


# Sampling of kernels/dual/dual_start.cpp and compressed.cpp, for rows that are not in memory.
_RUNS, _RUN = 16, 64  # of consecutive rows, whose mean is taken
_PROBED, _LONG, _MANY, _SPARSE = 64, 64, 100_000, 0.25


def _sampled(data: Dataset) -> tuple[float, float]:
    """Mean of s |x|^2, and the share of nonzero numbers where it is low; bit-identical to the same rows in memory."""
    n, d = data.n, data.d
    some = n >= _RUNS * _RUN
    norms = (np.arange(_RUNS)[:, None] * (n // _RUNS) + np.arange(_RUN)).ravel()
    norms = norms if some else np.arange(n)
    counted = np.zeros(0, np.int64)
    if not data.sparse and d >= _LONG and n >= _MANY // d:
        count = min(n, _PROBED)
        counted = n // count * np.arange(count)
    rows = np.union1d(norms, counted)
    part = data.sample(rows)
    block = part.sample(np.searchsorted(rows, norms)).whole
    assert block is not None
    share = 1.0
    if len(counted):
        share = np.count_nonzero(part.X[np.searchsorted(rows, counted)]) / (len(counted) * d)
    return _kernels.sampled_mean(block.rows, block.targets), share if share <= _SPARSE else 1.0
