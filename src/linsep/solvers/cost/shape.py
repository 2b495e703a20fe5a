"""What the cost of a fit depends on: sizes, storage, the loss, and how hard the problem is."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from linsep import _kernels
from linsep.data import Location

if TYPE_CHECKING:
    from linsep.losses import Loss
    from linsep.problem import Problem
    from linsep.solution import FloatArray


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
    """Shape of a problem. Reads a thousand rows at most, and only if they are in memory."""
    data = problem.data
    whole, kept, mean = data.whole, 1.0, math.nan
    if whole is not None and problem.lam > 0.0:
        mean = _kernels.sampled_mean(whole.rows, whole.targets)
        kept = 1.0 if data.sparse else _kernels.kept_share(whole.rows)
    hard = hardness(problem, mean) if problem.lam > 0.0 else math.inf
    return Shape(data.n, data.d, data.n_entries, data.sparse, kept, hard, data.location)
