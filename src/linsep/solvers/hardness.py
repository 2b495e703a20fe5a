"""How hard a problem is for coordinate ascent, and what the alternatives cost.

One number tells most: k = C mean s |x|^2, times the curvature of the loss as a multiple of the logistic one.
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray

MANY = 2_000_000  # entries from which Newton's passes are shared by threads; epochs never are


def row_norms(problem: Problem) -> FloatArray:
    """|x|^2 of every row (one pass)."""
    problem.passes += 1
    norms = np.zeros(problem.data.n)

    def fill(block: Block, out: FloatArray) -> None:
        _kernels.row_norms(
            block.rows, block.lo, block.hi, norms[block.first : block.first + block.rows.n]
        )

    problem.data.sum(fill, 1)
    return norms


def sampled_mean(problem: Problem) -> float:
    """Mean of s |x|^2 over some rows from everywhere."""
    block, n = problem.data.whole, problem.data.n
    assert block is not None
    norms = np.zeros(n)
    seen = 0
    for k in range(16 if n >= 1024 else 1):
        lo = k * (n // 16)
        hi = min(n, lo + 64) if n >= 1024 else n
        _kernels.row_norms(block.rows, lo, hi, norms)
        seen += hi - lo
    return dot(block.weights(), norms) / max(1, seen)


def hardness(problem: Problem, mean: float) -> float:
    """k for this mean of s |x|^2. A loss with a kink counts like the huberised hinge of width 1."""
    bend = problem.loss.curvature_bound if problem.loss.smooth else 1.0
    return 4.0 * bend * mean / problem.lam


def newton_passes(problem: Problem, hard: float, tol: float) -> float:
    """Passes of truncated Newton, as fitted by eye to the table at ``prefers``; inf where it does not apply."""
    if not problem.loss.smooth:
        return math.inf
    passes = 22.0 * hard**0.25 if problem.loss.native == "logistic" else 16.0 * hard**0.5
    shared = 1.8 if problem.data.n_entries >= MANY else 1.0  # by two threads; more is not assumed
    return float(max(8.0, passes) * (0.4 - 0.1 * math.log10(max(tol, 1e-15))) / shared)
