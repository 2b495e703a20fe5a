"""Existence of a minimiser of the unpenalised multinomial loss, and the choice of the one of least norm.

P has no minimiser iff some direction V decreases no margin z_y - z_c of any row and increases at least one. If it
increases all of them, the classes are separable; otherwise they are partially separable, for example one class from
the others, or by a feature that only some rows of one class have.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location, Memory
from linsep.errors import SeparableData
from linsep.problem.coupled import CoupledProblem
from linsep.separability import Inseparable, Separable, decide
from linsep.solvers.linalg.minimum_norm import NullDirections

_APART = (1e-3, 1e-6)  # differences in scores, relative to the largest, that are rounded to 0
MAX_FEATURES = 4000  # largest number of features for which the null space of the rows is computed
MAX_ENTRIES = (
    3000  # largest matrix of the margins of all pairs of classes for which separability is decided
)


def refuse_separable(
    problem: CoupledProblem, W: FloatArray, moved: FloatArray, thorough: bool
) -> None:
    """Raise if W, the point of the last sweep, proves that there is no minimiser.

    ``thorough``: also raise if the direction of the last step proves it; up to three passes.
    """
    if problem.misfits == 0:
        raise _refuse(W, complete=True)
    if thorough:
        V = _recession(problem, moved)
        if V is not None:
            raise _refuse(V, complete=False)
        problem.value_gradient(W)  # restores the probabilities for the next step


def refuse_without_minimiser(problem: CoupledProblem) -> None:
    """Raise if there is no penalty and the classes are provably separable, at least partially; small problems only.

    The margins z_y - z_c of a row are linear in V, so this is a separability problem of two classes: does a V exist
    that decreases no margin and increases at least one? The scores of the first class may be fixed at 0.
    """
    data, k = problem.data, problem.k
    width = data.d + int(problem.fit_intercept)
    size = data.n * (k - 1) * (k - 1) * width
    if not problem.penalty.absent or size > MAX_ENTRIES or data.location is Location.CLUSTER:
        return
    assert data.labels is not None
    there = np.arange(data.n) if data.weight is None else np.flatnonzero(data.weight > 0.0)
    rows = data.X[there].astype(np.float64)
    X = np.ones((len(there), width))
    X[:, : data.d] = rows if isinstance(rows, np.ndarray) else rows.toarray()
    pairs = np.zeros((len(there), k, k, width))  # row, other class, class of V
    index, labels = np.arange(len(there)), np.asarray(data.labels)[there]
    for c in range(k):
        pairs[index, c, labels] += X
        pairs[index, c, c] -= X
    others = np.arange(k) != labels[:, None]
    A = pairs[others][:, 1:].reshape(-1, (k - 1) * width)
    answer = decide(Memory(A, np.ones(len(A))), fit_intercept=False)
    problem.passes += answer.passes
    if isinstance(answer, Separable):
        w = answer.hyperplane.w
    elif isinstance(answer, Inseparable) and answer.direction is not None:
        w = answer.direction[0]
    else:
        return
    V = np.zeros((data.d + 1, k))
    V[:width, 1:] = w.reshape(k - 1, width).T
    raise _refuse(V - V.mean(axis=1, keepdims=True), complete=isinstance(answer, Separable))


def _recession(problem: CoupledProblem, moved: FloatArray) -> FloatArray | None:
    """Return the rounded direction of a step if it proves that no minimiser exists: no loss increases along it.

    A diverging run ends in steps that change scores by about 1 each, almost along the recession direction. Entries that
    are negligible relative to the largest become 0, and the entries of one feature that nearly agree become equal, so
    that margins which should be 0 are exactly 0. The direction is then checked on every row.
    """
    moments = problem.moments()
    size = np.append(np.sqrt(moments[: problem.data.d] / problem.data.n), 1.0)[:, None]
    largest = float(np.abs(moved * size).max())
    if not largest > 0.1:
        return None
    V, size = moved / largest, np.where(size > 0.0, size, 1.0)
    for apart in _APART:
        rounded = _equalise(V, apart / size)
        value, _ = problem.value_gradient(rounded)
        flat = np.log(problem.k) * problem.data.total_weight()
        if problem.crossed == 0 and value < (1 - 1e-9) * flat:
            return rounded
    return None


def _equalise(V: FloatArray, apart: FloatArray) -> FloatArray:
    """Set entries up to ``apart`` (d+1, 1) to 0, and entries of a row whose neighbours are that near to their mean."""
    order = np.argsort(V, axis=1, kind="stable")
    ordered = np.take_along_axis(V, order, axis=1)
    groups = np.zeros(V.shape, dtype=np.int64)
    groups[:, 1:] = np.cumsum(np.diff(ordered, axis=1) > apart, axis=1)
    out = np.empty_like(V)
    for row, (values, group, at) in enumerate(zip(ordered, groups, order, strict=True)):
        means = np.bincount(group, values) / np.bincount(group)
        out[row, at] = np.where(np.abs(means) > apart[row], means, 0.0)[group]
    return out


def _refuse(V: FloatArray, complete: bool) -> SeparableData:
    """Return the error with the direction V."""
    length = float(np.sqrt(np.vdot(V[:-1], V[:-1]))) or 1.0
    what = (
        "which classifies every row strictly correctly"
        if complete
        else "along which no row's loss rises (some classes are separable from the others)"
    )
    return SeparableData(
        "The classes are linearly separable, at least in part, so with C=inf no minimiser exists: the loss "
        f"decreases forever along the direction (W, b) in the attribute direction of this error, {what}. Use a "
        "finite C (a penalty).",
        direction=(V[:-1] / length, V[-1] / length),
    )


def minimum_norm(problem: CoupledProblem, W: FloatArray) -> FloatArray:
    """Return the minimiser of least norm of an unpenalised problem, using the stored probabilities. One pass.

    W has zero sums over the classes; the component of each column in the null space of the centred rows is removed.
    """
    mu = problem.centre()
    if not 0 < problem.data.d <= MAX_FEATURES:
        return W
    H = problem.own_blocks(problem.curvatures().sum(axis=0, keepdims=True), mu)[0]
    return NullDirections(H, mu, problem.fit_intercept).remove(W)
