"""Without a penalty: is there a minimiser at all, and which one is meant if there are many?

P has no minimiser iff along some direction V no margin z_y - z_c of any row falls and some rise. All rise:
the classes are separable. Otherwise only in part, one class from the others, say, or by a feature that only
some rows of one class have.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep.errors import SeparableData
from linsep.solvers.linalg.minimum_norm import null_space

if TYPE_CHECKING:
    from linsep.problem.coupled import CoupledProblem
    from linsep.solution import FloatArray

MAX_FEATURES = 4000  # features up to which the null space of the rows is computed


def refuse_separable(
    problem: CoupledProblem, W: FloatArray, moved: FloatArray, thorough: bool
) -> None:
    """Raise if W, where the last sweep was, proves that there is no minimiser.

    ``thorough``: or if the last move does, up to three passes.
    """
    if problem.misfits == 0:
        raise _refuse(W, complete=True)
    if thorough:
        V = _recession(problem, moved)
        if V is not None:
            raise _refuse(V, complete=False)
        problem.value_gradient(W)  # whose probabilities the next step needs


def _recession(problem: CoupledProblem, moved: FloatArray) -> FloatArray | None:
    """The direction of a step, cleaned, if no loss rises and some fall along it for ever: no minimiser exists.

    A run towards infinity ends in steps that change scores by about 1 each, along the recession direction and
    hardly else. Entries that are nothing beside the largest become 0, and classes whose columns nearly
    agree get the same column, so that margins which ought to be 0 are 0. Every row is then checked.
    """
    moments = problem.moments()
    size = np.sqrt(moments[: problem.data.d] / problem.data.n)
    V = moved * np.append(size, 1.0)[:, None]
    largest = float(np.abs(V).max())
    if not largest > 0.1:
        return None
    V = np.where(np.abs(V) > 1e-3 * largest, moved / largest, 0.0)
    for c in range(problem.k):
        apart = np.abs(V - V[:, [c]]) * np.append(size, 1.0)[:, None]
        group = np.flatnonzero(apart.max(axis=0) <= 1e-3)
        V[:, group] = V[:, group].mean(axis=1, keepdims=True)
    value, _ = problem.value_gradient(V)
    flat = np.log(problem.k) * problem.data.total_weight()
    return V if problem.crossed == 0 and value < (1 - 1e-9) * flat else None


def _refuse(V: FloatArray, complete: bool) -> SeparableData:
    """The error that shows the direction."""
    length = float(np.sqrt(np.vdot(V[:-1], V[:-1]))) or 1.0
    what = (
        "which classifies every row strictly correctly"
        if complete
        else "along which no row's loss rises (some classes are separable from the others)"
    )
    return SeparableData(
        "The classes are linearly separable, at least in part, so with C=inf no minimiser exists: the loss falls "
        f"for ever along the direction (W, b) in this error's .direction, {what}. Use a finite C (a penalty).",
        direction=(V[:-1] / length, V[-1] / length),
    )


def shortest(problem: CoupledProblem, W: FloatArray) -> FloatArray:
    """Without a penalty: of all minimisers the one of least norm, from the kept probabilities (one pass).

    W has zero sums over the classes; what is left is the null space of the centred rows in each column.
    """
    mu = problem.centre()
    if not 0 < problem.data.d <= MAX_FEATURES:
        return W
    W = W.copy()
    H = problem.own_blocks(problem.curvatures().sum(axis=0, keepdims=True), mu)[0]
    S = H[:-1, :-1]
    if problem.fit_intercept and H[-1, -1] > 0:
        shift = H[:-1, -1] / H[-1, -1]
        S = S - np.outer(shift, H[:-1, -1])
        mu = mu + shift
    # A column that is constant up to rounding is absent: its variance is noise beside its square.
    varies = np.diag(S) > 1e-14 * np.diag(H)[:-1] + 1e-28 * H[-1, -1] * mu**2
    away = np.where(varies[:, None], 0.0, W[:-1])
    if varies.any():
        N = null_space(S[np.ix_(varies, varies)])
        away[varies] = N @ (N.T @ W[:-1][varies])
    W[:-1] -= away
    if problem.fit_intercept:
        W[-1] += mu @ away
    return W
