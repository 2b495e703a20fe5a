"""Coordinate descent for L1 penalties on many features, reading X by columns (kernels/l1/column_fit.hpp).

Problem: min l2/2 |w|^2 + l1 |w|_1 + sum s l(m). Coordinate descent reads one column at a time, so columns are stored
contiguously: sparse data are transposed once, and of dense data the chosen columns are copied. For k features it needs
neither a Hessian (k^2) nor its factor (k^3), unlike ``prox_newton.py``.

The penalty decreases from the value at which all weights are 0, by a factor of about three at a time, with one or two
steps on the features that violate their condition: warm starts from a stronger penalty keep the weights small and the
working sets about as large as the support. At the target penalty working sets are solved accurately, and all features
are tested, until none violates its condition; only then is a closing pass over all of X made. If Newton's method
stalls, on piecewise quadratic losses where hardly any row has curvature, ``solvers/interior/l1.py`` takes over. If
correlated features need so many sweeps that Hessians of the working set cost less, ``prox_newton.py`` takes over.

References: Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via coordinate descent,
2010; Johnson and Guestrin, Blitz, 2015; Massias, Gramfort and Salmon, Celer, 2018.
"""

from __future__ import annotations

import math

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, embed
from linsep.data import Block, Dataset
from linsep.data.memory import kernel_rows, readable
from linsep.interrupts import slices
from linsep.problem import Problem
from linsep.problem.duality import balanced_v
from linsep.solution import Status
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, prices, sweeps
from linsep.solvers.interior import l1 as interior_l1
from linsep.solvers.linalg.schur_cg import Part
from linsep.solvers.run import SAFETY, LimitReached, Run, linearised

# Up to this ratio of the first to the target penalty (the second for the squared hinge), one step is made at each
# intermediate penalty; above it two, or with the squared hinge as many as ROUGH requires.
MILD_PENALTY_RATIO, WEAK_PENALTY_RATIO = 200.0, 5000.0
STRIDE_TOL, SLIGHTLY = 0.1, 0.3  # tolerance at a stride; fraction of a stride that adds no stride
STEPS_PER_CALL = 6  # Newton steps between two checks of the limits
MAX_ROUNDS = 300
FIRST = 40  # smallest working set
NEARLY = 0.9  # |correlation|, relative to the penalty, from which a feature joins the working set
ROUGH = 1e-2  # relative gap of the first working set at the target penalty
# Unfinished calls of ``solve`` that count as stalled; a single one if it took so many passes and the support is small.
UNFINISHED, COSTLY, FEW = 2, 150.0, 1500
_UNFINISHED, _CLOSED = 0, 1
HESSIANS = 6.0  # budget of descent [prox-Newton steps]


def _hessian_work(shape: Shape) -> Work:
    """Return the work of one prox-Newton step: two sweeps, a Hessian and its factor."""
    gram = shape.storage + "gram"
    return {"calls": 3.0, **sweeps(shape, 2.0), gram: shape.pairs, "factors": shape.d**3 / 3.0}


def _pass_work(shape: Shape) -> Work:
    """Return the work of one pass."""
    return sweeps(shape, 1.0)


class Stored:
    """Columns of the data, for kernels that read one column at a time."""

    def __init__(self, data: Dataset) -> None:
        self.data = data
        self._all = np.arange(data.d)
        self._sparse: _kernels.Rows | None = None
        if data.sparse:
            by_column = sp.csc_matrix(data.X)
            self._counts = np.diff(by_column.indptr)
            self._sparse = kernel_rows(readable(by_column.T))
        self.X = by_column if data.sparse else data.X

    def read(self, chosen: IntArray) -> tuple[_kernels.Rows, IntArray, float]:
        """Return the stored columns, the indices of the chosen ones there, and their share of the entries of X."""
        data = self.data
        if self._sparse is not None:
            return self._sparse, chosen, float(self._counts[chosen].sum()) / max(1, data.n_entries)
        kind = data.X.dtype if data.X.dtype in (np.float32, np.float64) else np.float64
        part = np.empty((len(chosen), data.n), kind)
        for rows in slices(data.n, len(chosen)):
            part[:, rows] = data.X[rows, chosen].T
        share = len(chosen) / max(1, data.d)
        return _kernels.Rows(part), np.arange(len(chosen)), share

    def shape(self, chosen: IntArray | None) -> Shape:
        """Return the shape of the chosen columns, or of all of them."""
        data = self.data
        if chosen is None:
            return Shape(data.n, data.d, data.n_entries, data.sparse)
        k = len(chosen)
        entries = data.n * k if self._sparse is None else int(self._counts[chosen].sum())
        return Shape(data.n, k, entries, data.sparse)

    def sums(self, a: FloatArray) -> FloatArray:
        """Return X'a. One pass."""
        if self._sparse is not None:
            v = np.empty(self.data.d)
            _kernels.list_dots(self._sparse, self._all, a, v)
            return v
        return self.data.combine(a)[:-1]


class Columns:
    """A point theta with few nonzero features, its scores, and the objective there."""

    def __init__(self, problem: Problem, theta: FloatArray, budget: float = math.inf) -> None:
        data = problem.data
        self.problem, self.theta, self._budget = problem, theta.copy(), budget
        self.base, self.step = theta.copy(), np.zeros_like(theta)  # the last Newton step
        self.targets = _kernels.Targets(data.sign, data.offset, data.weight)
        self.scores, self.value = np.zeros(data.n), np.inf
        self.unfinished = 0  # calls of ``solve`` that did not converge
        self.l1 = problem.penalty.l1  # penalty of the last call
        self._began = problem.passes
        self._stored = Stored(data)
        self._read_scores()

    def _read_scores(self) -> None:
        """Compute the scores x.w + b of all rows. One pass, unless w = 0."""
        if not self.theta[:-1].any():
            self.scores[:] = self.theta[-1]
            return
        data, z, theta = self.problem.data, self.scores, self.theta

        def add(block: Block, out: FloatArray) -> None:
            z[block.first + block.lo : block.first + block.hi] = block.scores(theta)

        data.sum(add, 1)
        self.problem.passes += 1

    def move(self, theta: FloatArray) -> None:
        """Set theta and recompute the scores. One pass."""
        self.theta[:] = theta
        self._read_scores()

    def part(self, chosen: IntArray) -> Part:
        """Return the chosen columns."""
        return Part(self._stored.X[:, chosen])

    def sums(self, a: FloatArray) -> FloatArray:
        """Return X'a. One pass."""
        self.problem.passes += 1
        return self._stored.sums(a)

    @property
    def stalled(self) -> bool:
        """Return whether Newton's method has stalled and the central path can take over."""
        costly = self.problem.passes >= COSTLY and np.count_nonzero(self.theta) <= FEW
        many = self.unfinished >= (1 if costly else UNFINISHED)
        return many and interior_l1.applies(self.problem)

    def overspent(self, chosen: IntArray) -> bool:
        """Return whether descent has used up its budget [prox-Newton steps on these features]."""
        shape = self._stored.shape(chosen)
        passes = prices().iteration(_hessian_work, shape) / prices().iteration(
            _pass_work, self._stored.shape(None)
        )
        return self.problem.passes - self._began > self._budget * passes

    def solve(self, chosen: IntArray, l1: float, tol: float, steps: int) -> tuple[int, float]:
        """Make Newton steps on the chosen features, which include the support; return status and gap on them."""
        problem = self.problem
        columns, numbers, share = self._stored.read(chosen)
        at = np.append(self.theta[chosen], self.theta[-1])
        base, step = at.copy(), np.zeros_like(at)
        many_steps, self.l1 = steps == STEPS_PER_CALL, l1
        status, steps, sweeps, gradients, self.value, gap = _kernels.column_newton(
            columns,
            self.targets,
            problem.native_loss,
            numbers,
            l1,
            problem.lam,
            tol,
            steps,
            problem.fit_intercept,
            at,
            self.scores,
            base,
            step,
        )
        problem.passes += share * (2 * steps + sweeps + gradients)
        self.unfinished += many_steps and status == _UNFINISHED
        self.theta, self.base, self.step = (
            embed(part, chosen, problem.data.d) for part in (at, base, step)
        )
        if status == _CLOSED:
            return status, max(gap, 0.0)  # rounding may put the lower bound above P
        return status, gap if gap > 0.0 else np.inf  # 0: no bound was found

    def abs_correlations(self) -> FloatArray:
        """Absolute correlations |sum s sigma l' x| of all features at theta. One pass."""
        data = self.problem.data
        sign = data.sign
        m = sign * self.scores if data.offset is None else sign * self.scores + data.offset
        slope = sign * self.problem.loss.slope(m)
        slope = slope if data.weight is None else slope * data.weight
        return np.abs(self.sums(slope))


def solve(run: Run[Problem], theta: FloatArray, budget: float = math.inf) -> bool:
    """Solve from theta, the point of the last closing pass; return whether the gap of all features closed.

    ``budget`` limits the cost of descent [prox-Newton steps on the same features].
    """
    problem = run.problem
    columns = Columns(problem, theta, budget)
    correlation = np.abs(balanced_v(run.last_sums, problem.data.d, problem.fit_intercept))
    try:
        if not theta[:-1].any():
            correlation = _continue_penalty(run, columns, correlation)
        closed = _solve_at_target(run, columns, correlation)
        return closed or run.close_final(columns.theta, linearised(columns.base, columns.step))
    except LimitReached:  # return the best point at the user's limit
        run.close_final(columns.theta, linearised(columns.base, columns.step))
        raise


def _continue_penalty(run: Run[Problem], columns: Columns, correlation: FloatArray) -> FloatArray:
    """Make a few steps at each of several decreasing penalties; return the absolute correlations at the end."""
    asked, largest = run.problem.penalty.l1, float(correlation.max(initial=0.0))
    # With the squared hinge the rows with curvature change in every step; they are found faster with few features.
    loss = run.problem.loss
    one_sided = loss.flat_beyond_margin and not loss.straight_tails
    mild = largest <= (WEAK_PENALTY_RATIO if one_sided else MILD_PENALTY_RATIO) * asked
    steps, tol = (
        (1, STRIDE_TOL) if mild else (STEPS_PER_CALL, ROUGH) if one_sided else (2, STRIDE_TOL)
    )
    for l1 in _falling(largest, asked, mild):
        run.check_limits()
        columns.solve(_choose(columns.theta, correlation, l1), l1, tol, steps)
        correlation = columns.abs_correlations()
        if columns.stalled or columns.overspent(_choose(columns.theta, correlation, asked)):
            break
    return correlation


def _falling(largest: float, asked: float, mild: bool) -> list[float]:
    """Return decreasing penalties between ``largest`` and ``asked``: equal ratios near 1/3 if mild, else 1/3."""
    if mild:
        strides = max(1, math.ceil(math.log(max(1.0, largest / asked), 3.0) - SLIGHTLY))
        return [largest * (asked / largest) ** (k / strides) for k in range(1, strides)]
    strides = math.ceil(math.log(largest / (1.5 * asked)) / math.log(3.0))
    return [largest / 3.0**k for k in range(1, strides)]


def _choose(theta: FloatArray, correlation: FloatArray, l1: float) -> IntArray:
    """Return the support and the features with |correlation| > l1; at least FIRST, by largest |correlation|."""
    support = theta[:-1] != 0.0
    inside = support | (correlation > l1)
    if np.count_nonzero(inside) < FIRST < len(correlation):
        rank = np.where(support, np.inf, correlation)
        inside[np.argpartition(-rank, FIRST - 1)[:FIRST]] = True
    return np.flatnonzero(inside)


def _solve_at_target(run: Run[Problem], columns: Columns, correlation: FloatArray) -> bool:
    """Solve on working sets at the target penalty; return whether the gap closed."""
    problem, tol = run.problem, run.stop.tol
    l1, inner, left, before = problem.penalty.l1, 0.3, np.inf, np.inf
    followed = False
    for _ in range(MAX_ROUNDS):
        run.check_limits()
        if columns.stalled and not followed:
            # the time limit may end the central path before it has a better point
            if run.close(columns.theta, linearised(columns.base, columns.step)):
                return True
            if interior_l1.finish(run, columns):
                return True
            if run.status_above_tol(tol) is Status.WORKING_PRECISION:
                return False
            correlation, followed = columns.abs_correlations(), True
        chosen = _choose(columns.theta, correlation, NEARLY * l1)
        if columns.overspent(chosen):
            return False
        # small sets are solved accurately at once: that costs less than another test of all features
        goal = inner * tol if len(chosen) <= 2 * FIRST else max(inner * tol, min(ROUGH, 0.1 * left))
        status, gap = columns.solve(chosen, l1, goal, STEPS_PER_CALL)
        correlation = columns.abs_correlations()
        outside = correlation.copy()
        outside[chosen] = 0.0
        left = _loss_of_bound(problem, outside, l1, columns)
        if status == _UNFINISHED or gap + left > SAFETY * tol:
            if status not in (_UNFINISHED, _CLOSED) and not left > inner * tol:
                return run.close(columns.theta, linearised(columns.base, columns.step))
            continue
        if run.close(columns.theta, linearised(columns.base, columns.step)):
            return True
        gap = run.trace[-1].primal - run.trace[-1].dual
        if not gap < 0.7 * before and inner < 1e-4:
            break
        before, inner = gap, 0.1 * inner
    return False


def _loss_of_bound(problem: Problem, outside: FloatArray, l1: float, columns: Columns) -> float:
    """Decrease of the lower bound, relative to P, due to features outside the set with |correlation| > l1."""
    if problem.lam == 0.0:
        return 1.0 - l1 / max(l1, float(outside.max(initial=0.0)))
    over = np.maximum(outside - l1, 0.0)
    return float(over @ over) / (2.0 * problem.lam * max(columns.value, 1e-300))
