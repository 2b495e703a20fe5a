"""Decide whether an unpenalised problem with a receding loss has a minimiser; raise SeparableData if not.

A receding loss, such as the logistic or the exponential one, decreases for ever as the margin grows. P has no minimiser
iff a direction v decreases no margin and increases at least one: ``sigma_i x~_i.v >= 0`` for all i, not all zero. If
all are strictly positive, the classes are separable, otherwise quasi-separable: margins with ``x~_i.v = 0`` are
constant.

If a run ends with rows of negligible curvature, or without a proof, ``separability`` decides with a proof. Beyond the
number of features that it supports, the final iterate gives a candidate: rows whose margin v increases have lost their
curvature, so v is the part of theta in the null space of the Hessian of the other rows. The candidate is then checked
on every row.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block, Location
from linsep.errors import SeparableData
from linsep.interrupts import lapack
from linsep.penalties import ElasticNet
from linsep.problem import GroupProblem, Problem
from linsep.problem.closing_rows import margin_error
from linsep.problem.gram import symmetric
from linsep.separability import WIDE, Inseparable, Separable, decide
from linsep.solvers.linalg.factor import NULL_EIGENVALUE

NEARLY_SEPARATED = 0.1  # objective relative to that at 0 below which the classes may be separable
FAR = 1e-6  # curvature, relative to the largest, of a row whose margin may tend to infinity
GONE = 1e-12  # curvature of a row whose margin tends to infinity
MAX_FEATURES = 4000
SLACK = 1e-9  # relative change of a score that counts as zero


def falls_for_ever(problem: Problem) -> bool:
    """Return whether a minimiser may fail to exist: no penalty and a receding loss."""
    unpenalised = problem.lam == 0.0 and problem.penalty.l1 == 0.0
    return unpenalised and problem.loss.recedes


def separates(problem: Problem, theta: FloatArray) -> bool:
    """Return whether every row of positive weight has margin > 0 beyond rounding errors. One pass."""
    problem.passes += 1
    d = problem.data.d

    def add(block: Block, out: FloatArray) -> None:
        z, reach = block.scores(theta), np.empty(block.hi - block.lo)
        _kernels.reaches(block.rows, block.lo, block.hi, theta, reach)
        none = margin_error(d, reach, np.zeros_like(reach))
        m = block.sign[block.lo : block.hi] * z
        out[0] += np.count_nonzero(~(m > none) & (block.weights() > 0))

    return bool(problem.data.sum(add, 1, reads=())[0] == 0)


def refuse_separated(problem: Problem, theta: FloatArray, value: float = 0.0) -> None:
    """Raise if theta, with objective ``value``, separates the classes of an unpenalised problem.

    On a cluster, where the check takes a round, only if the objective is at most NEARLY_SEPARATED of that at 0.
    """
    if not falls_for_ever(problem):
        return
    dear = problem.data.location is Location.CLUSTER
    if dear and value > NEARLY_SEPARATED * problem.null_value():
        return
    if separates(problem, theta):
        raise separable(theta)


def refuse_receding(problem: Problem, theta: FloatArray) -> None:
    """Raise if the final iterate theta of a run diverges along a direction in which the objective decreases."""
    if not falls_for_ever(problem):
        return
    problem.value_gradient(theta)
    if problem.data.d <= WIDE:
        if _any_far(problem):
            refuse_without_minimiser(problem)
        return
    if problem.data.d >= MAX_FEATURES:
        return
    v = _candidate(problem, theta)
    if v is None:
        return
    wrong, right = _moved(problem, v)
    if wrong == 0 and right > 0:
        raise separable(v, None if right == problem.data.n else right)


def refuse_without_minimiser(problem: Problem) -> None:
    """Raise if the classes are separable or quasi-separable and the loss recedes, decided with a proof."""
    if not falls_for_ever(problem) or problem.data.d > WIDE or not _two_sided(problem):
        return
    answer = decide(problem.data, fit_intercept=problem.fit_intercept)
    problem.passes += answer.passes
    if isinstance(answer, Separable):
        raise separable(answer.hyperplane.homogeneous())
    if isinstance(answer, Inseparable) and answer.direction is not None:
        assert answer.rows_on is not None
        w, b = answer.direction
        weight = problem.data.weight
        counted = np.arange(problem.data.n) if weight is None else np.flatnonzero(weight > 0)
        moved = np.setdiff1d(counted, answer.rows_on)
        raise separable(np.append(w, b), len(moved), moved)


def refuse_unpenalised_separation(problem: GroupProblem) -> None:
    """Raise if the features with penalty factor 0 alone separate the classes: then no minimiser exists."""
    free = np.flatnonzero(problem.penalty.factor == 0.0)
    data = problem.data
    if not len(free):
        return
    rows = data.columns(free)
    try:
        refuse_without_minimiser(
            Problem(problem.loss, ElasticNet(math.inf), rows, problem.fit_intercept)
        )
    except SeparableData as error:
        raise separable_by_unpenalised(problem, free, error) from None
    finally:
        rows.close()


def refuse_unpenalised_column(problem: GroupProblem) -> None:
    """Raise if a single feature with penalty factor 0 changes no margin the wrong way; no other proof is needed.

    Rare words, each in texts of one class, are the usual case.
    """
    data, free = problem.data, np.flatnonzero(problem.penalty.unpenalised(problem.data.d))
    if not problem.loss.recedes or not len(free):
        return
    live = np.arange(data.n) if data.weight is None else np.flatnonzero(data.weight > 0.0)
    columns, sign = data.X[:, free][live], np.asarray(data.sign)[live]
    signed = columns.multiply(sign[:, None]).tocsc() if sp.issparse(columns) else columns.T * sign
    least, most = (
        (signed.min(axis=0).toarray().ravel(), signed.max(axis=0).toarray().ravel())
        if sp.issparse(signed)
        else (signed.min(axis=1), signed.max(axis=1))
    )
    found = np.flatnonzero((least >= 0.0) & (most > 0.0) | (most <= 0.0) & (least < 0.0))
    if len(found):
        v = np.zeros(len(free) + 1)
        v[found[0]] = 1.0 if most[found[0]] > 0.0 else -1.0
        raise separable_by_unpenalised(problem, free, separable(v))


def separable_by_unpenalised(
    problem: GroupProblem, free: IntArray, error: SeparableData
) -> SeparableData:
    """Return the error about the features ``free``, with penalty factor 0, from that about these features alone."""
    w = np.zeros(problem.data.d)
    w[free] = error.direction[0]
    return SeparableData(
        "The features with penalty_factor=0 separate the classes, or some rows of them, so no minimiser exists: "
        "the loss decreases forever along the direction (w, b) in the attribute direction of this error. Give "
        "those features a positive penalty_factor, or remove those with large entries in the direction.",
        direction=(w, error.direction[1]),
        rows=error.rows,
    )


def _two_sided(problem: Problem) -> bool:
    """Return whether both classes have rows, or there is no intercept (which alone separates a single class)."""
    return not problem.fit_intercept or bool(problem.data.counts().all())


def _any_far(problem: Problem) -> bool:
    """Return whether some row of the last sweep has negligible curvature. No pass over X."""

    def add(block: Block, out: FloatArray) -> tuple[float, float]:
        s = block.weights()
        h = block.row_state("curvature")[block.lo : block.hi][s > 0] / s[s > 0]
        return float(h.min(initial=np.inf)), float(h.max(initial=0.0))

    _, extremes = problem.data.visit(add, 1, reads=("curvature",), features=False)
    return bool(min(low for low, _ in extremes) <= FAR * max(high for _, high in extremes))


def _candidate(problem: Problem, theta: FloatArray) -> FloatArray | None:
    """Return the part of theta that changes no score of the rows with curvature; None if it is zero. One pass."""
    mu, order = problem.centre(), problem.order
    problem.passes += 1

    def add(block: Block, out: FloatArray) -> None:
        h = block.row_state("curvature")
        stayed = np.where(h > GONE, h, 0.0)
        _kernels.gram(block.rows, block.lo, block.hi, stayed, mu, out)

    H = problem.data.sum(add, order * order, reads=("curvature",)).reshape(order, order)
    H = symmetric(H, problem.data.sparse)
    free = np.ones(order, dtype=bool)
    free[-1] = problem.fit_intercept
    diagonal = np.where(free, np.diag(H), 0.0)
    scale = 1 / np.sqrt(np.where(diagonal > 0, diagonal, 1.0))
    values, vectors = lapack(np.linalg.eigh, (H * scale * scale[:, None])[np.ix_(free, free)])
    N = scale[free, None] * vectors[:, values <= NULL_EIGENVALUE * max(values[-1], 1.0)]
    if N.shape[1] == 0:
        return None
    here = theta.copy()
    here[-1] += mu @ theta[:-1]
    v = np.zeros(order)
    v[free] = (
        N @ lapack(np.linalg.lstsq, N / scale[free, None], here[free] / scale[free], rcond=None)[0]
    )
    v[-1] -= mu @ v[:-1]
    return v if v.any() else None


def _moved(problem: Problem, v: FloatArray) -> tuple[int, int]:
    """Count the rows whose margin decreases along v, and those whose margin increases. One pass."""
    problem.passes += 1
    size = float(np.sqrt(v[:-1] @ v[:-1]))

    def add(block: Block, out: FloatArray) -> None:
        norms = np.zeros(block.rows.n)
        _kernels.row_norms(block.rows, block.lo, block.hi, norms)
        none = SLACK * (np.sqrt(norms[block.lo : block.hi]) * size + abs(v[-1]))
        m = block.sign[block.lo : block.hi] * block.scores(v)
        counted = block.weights() > 0
        out[0] += np.count_nonzero((m < -none) & counted)
        out[1] += np.count_nonzero((m > none) & counted)

    wrong, right = problem.data.sum(add, 2, reads=())
    return int(wrong), int(right)


def separable(
    theta: FloatArray, right: int | None = None, moved: IntArray | None = None
) -> SeparableData:
    """Return the error with the direction theta; for quasi-separation ``right`` counts the rows that it classifies."""
    length = float(np.sqrt(theta[:-1] @ theta[:-1])) or 1.0
    direction = (theta[:-1] / length, float(theta[-1] / length))
    if right is None:
        fact = "The classes are linearly separable"
        what = "classifies every row strictly correctly"
    else:
        fact = "The classes are quasi-separable (complete separation of some rows)"
        what = f"moves {right} rows the right way, to working precision, and none the wrong way"
    return SeparableData(
        f"{fact}, so with C=inf no minimiser exists: the loss decreases forever along the direction "
        f"(w, b) in the attribute direction of this error, which {what}. Use a finite C (a penalty), or remove the "
        "features with large entries in the direction.",
        direction=direction,
        rows=moved,
    )
