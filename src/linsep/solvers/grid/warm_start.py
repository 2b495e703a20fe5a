"""Grids of sparse rows: the models of a fold one after another, on one data set and without an estimator between them.

Where a model begins follows from k = C mean |x|^2 (``solvers/cost/model.py``). Strong penalties begin at the model of
the first fold for the same C, weak ones at that of the C before; in between, and for losses with a kink, dual ascent
finds a better beginning in the sums of the two classes. Passes to 1e-6, C from 1e-4 to 1e4, by where a model begins::

    sms, logistic       C before     10  4  7  9  10  10  16  23  25  26
                        first fold    5  4  6  7   8   9  16  24  29  32
                        nowhere      10 10  4  6   8   8  15  22  28  32
    sms, hinge          C before      6  8  8  9  15  39  43  48  54  61
                        nowhere       6  6  7  7  15  37  40  45  51  57
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np
import scipy.sparse as sp

from linsep.losses import CoupledLoss
from linsep.problem import Problem
from linsep.solvers.cost.model import hardness
from linsep.solvers.grid.problem import GridProblem

if TYPE_CHECKING:
    from linsep.solution import FloatArray

# k below which a model begins at another fold's; above which at the C before; above which, for losses that recede,
# half a step beyond that, as the weights go on growing.
_STRONG, _WEAK, _WEAKER = 0.002, 5.0, 50.0


def applies(problem: GridProblem) -> bool:
    """Whether the rows are sparse and in memory, with a ridge penalty and both classes in every model."""
    recipe, rows, loss = problem.recipe, problem.rows, problem.recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None:
        return False
    if recipe.penalty.l1_ratio or not np.isfinite(problem.Cs).all() or recipe.limited:
        return False
    if not sp.issparse(rows) or rows.format != "csr" or not rows.nnz:
        return False
    return problem.both_classes


def start(
    problem: Problem, mean: float, before: Sequence[FloatArray], other: FloatArray | None
) -> FloatArray | None:
    """Where the model of ``problem`` begins: None for nowhere.

    ``mean`` is the mean |x|^2 of a sample of its rows, ``before`` the weights for smaller C, ``other`` those of another
    fold for the same C.
    """
    hard = hardness(problem, mean)
    if not problem.loss.smooth or _STRONG <= hard < _WEAK:
        return None
    if hard > _WEAKER and len(before) > 1 and problem.loss.recedes:
        return before[-1] + 0.5 * (before[-1] - before[-2])
    if other is None or hard >= _WEAK:
        return before[-1] if before else None
    return other
