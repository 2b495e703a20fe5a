"""Remove all-zero columns before a solve, and restore them with zero coefficients afterwards.

Rows hashed to 2^18 columns may have nonzero entries in only a few hundred of them. With any loss the penalty makes the
other coefficients 0, so the problem on the nonzero columns has the same solution, with much shorter vectors. The
certificate is computed on all columns.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, embed
from linsep.data import Block, Dataset, Location
from linsep.solution import Explicit, Linearised, Solution

MANY = 4096  # columns from which vector operations take as long as passes over a few rows


def occurring_columns(data: Dataset) -> IntArray | None:
    """Return the indices of the nonzero columns if they are at most half of at least MANY columns; else None.

    One pass, made only if there are at least as many columns as stored entries.
    """
    local = data.location is not Location.CLUSTER
    if not (local and data.sparse and data.d >= max(MANY, data.n_entries)):
        return None

    def add(block: Block, out: FloatArray) -> None:
        _kernels.moments(block.rows, block.lo, block.hi, None, out)

    squares = data.sum(add, 2 * data.d + 1, reads=())[: data.d]
    found: IntArray = np.flatnonzero(squares != 0.0)
    return found if 0 < 2 * len(found) <= data.d else None


def restore(solution: Solution, chosen: IntArray, d: int) -> Solution:
    """Extend a solution on the chosen columns to all d columns."""
    dual: Linearised | Explicit = solution.dual
    if isinstance(dual, Linearised):
        dual = Linearised(embed(dual.base, chosen, d), embed(dual.step, chosen, d))
    return replace(solution, W=embed(solution.W, chosen, d), dual=dual, sums=None)
