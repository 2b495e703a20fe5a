"""Columns in which no row has a number other than 0: left out of a solve, and restored as zero weights.

Rows hashed to 2^18 columns have numbers in a few hundred of them. The penalty puts the weights of the others at 0
whatever the loss is, so the problem on the columns that occur has the same solution, and every vector of the solver
is as short as these are many. The certificate is made on the rows as they were given.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Dataset, Location
from linsep.solution import Explicit, Linearised, Solution

MANY = 4096  # columns from which vectors of that length take as long as the passes over few rows


def occurring_columns(data: Dataset) -> IntArray | None:
    """Numbers of the columns that occur, if these are less than half of many; else None.

    One pass over the rows, made only where there are more columns than stored numbers.
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
    """The solution on the chosen of d columns as one on all of them."""
    dual: Linearised | Explicit = solution.dual
    if isinstance(dual, Linearised):
        dual = Linearised(_spread(dual.base, chosen, d), _spread(dual.step, chosen, d))
    return replace(solution, W=_spread(solution.W, chosen, d), dual=dual, sums=None)


def _spread(W: FloatArray, chosen: IntArray, d: int) -> FloatArray:
    """Rows of W where the chosen columns and the intercept are, 0 elsewhere."""
    out = np.zeros((d + 1, *W.shape[1:]))
    out[np.append(chosen, d)] = W
    return out
