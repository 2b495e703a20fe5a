"""Coordinate descent for L1 and group penalties on many features, reading X by columns (kernels/l1/column_fit.hpp).

Problem: min sum_g (ridge_g/2 |w_g|^2 + weight_g |w_g|) + sum s l(m), with groups of one for an L1 penalty. Descent
reads one group of columns at a time, so columns are stored contiguously: sparse data are transposed once, and of dense
data the chosen columns are copied. For k features it needs neither a Hessian (k^2) nor its factor (k^3), unlike
``prox_newton.py`` and ``group/block_newton.py``.

The penalty decreases from the value at which all weights are 0, by a factor of about three at a time, with one or two
steps on the features that violate their condition: warm starts from a stronger penalty keep the weights small and the
working sets about as large as the support. At the target penalty working sets are solved accurately, and all features
are tested, until none violates its condition; only then is a closing pass over all of X made. If Newton's method
stalls, on piecewise quadratic losses where hardly any row has curvature, ``solvers/interior/l1.py`` takes over (L1
only). If correlated features need so many sweeps that Hessians of the working set cost less, the methods with Hessians
take over.

References: Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via coordinate descent,
2010; Johnson and Guestrin, Blitz, 2015; Massias, Gramfort and Salmon, Celer, 2018.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import BoolArray, FloatArray, IntArray, embed
from linsep.data import Block, Dataset, Location
from linsep.data.memory import kernel_rows, readable
from linsep.interrupts import slices
from linsep.penalties import GroupElasticNet
from linsep.problem import GroupProblem, Problem
from linsep.problem.duality import balanced_v
from linsep.solution import Status
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, prices, sweeps
from linsep.solvers.interior import l1 as interior_l1
from linsep.solvers.linalg.schur_cg import Part
from linsep.solvers.null_model import null_model
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
# Up to this many features, and with at least as many rows, Hessians are an alternative.
FEATURES = 1000
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


class Weights:
    """Groups of features with the weights of |w_g| and |w_g|^2/2; groups of one if all features are penalised alike."""

    def __init__(self, problem: Problem | GroupProblem) -> None:
        penalty = problem.penalty
        self._grouped = penalty if isinstance(penalty, GroupElasticNet) else None
        if isinstance(penalty, GroupElasticNet):
            self.norms, self.ridges = penalty.thresholds, penalty.ridge[penalty.first]
        else:
            self.norms, self.ridges = uniform_weights(problem.data.d, penalty.l1, penalty.l2)

    def ratios(self, v: FloatArray) -> FloatArray:
        """|v_g| relative to the weight of |w_g|, for each group."""
        return np.asarray(
            (np.abs(v) if self._grouped is None else self._grouped.norms(v)) / self.norms
        )

    def support(self, w: FloatArray) -> BoolArray:
        """Mask of the groups that are not 0."""
        return np.asarray(w != 0.0 if self._grouped is None else self._grouped.norms(w) > 0.0)

    def features(self, groups: IntArray) -> tuple[IntArray, IntArray]:
        """Return the features of these groups, group by group, and the first position of each group among them."""
        if self._grouped is None:
            return groups, np.arange(len(groups) + 1)
        sizes = self._grouped.sizes[groups]
        first = np.append(0, np.cumsum(sizes))
        within = np.arange(first[-1]) - np.repeat(first[:-1], sizes)
        return self._grouped.by_group[
            np.repeat(self._grouped.starts[groups], sizes) + within
        ], first


def uniform_weights(d: int, l1: float, l2: float) -> tuple[FloatArray, FloatArray]:
    """Return the weights of |w_g| and |w_g|^2/2 of d groups of one feature."""
    return np.full(d, l1), np.full(d, l2)


class Columns:
    """A point theta with few nonzero groups of features, its scores, and the objective there."""

    def __init__(
        self, problem: Problem | GroupProblem, theta: FloatArray, budget: float = math.inf
    ) -> None:
        data = problem.data
        self.problem, self.theta, self._budget = problem, theta.copy(), budget
        self._losses = problem.losses if isinstance(problem, GroupProblem) else problem
        self.weights = Weights(problem)
        self.base, self.step = theta.copy(), np.zeros_like(theta)  # the last Newton step
        self.targets = _kernels.Targets(data.sign, data.offset, data.weight)
        self.scores, self.value = np.zeros(data.n), np.inf
        self.unfinished = 0  # calls of ``solve`` that did not converge
        self.times = 1.0  # penalty of the last call, in units of the target
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
        self._losses.passes += 1

    def move(self, theta: FloatArray) -> None:
        """Set theta and recompute the scores. One pass."""
        self.theta[:] = theta
        self._read_scores()

    def part(self, chosen: IntArray) -> Part:
        """Return the chosen columns."""
        return Part(self._stored.X[:, chosen])

    def sums(self, a: FloatArray) -> FloatArray:
        """Return X'a. One pass."""
        self._losses.passes += 1
        return self._stored.sums(a)

    @property
    def stalled(self) -> bool:
        """Return whether Newton's method has stalled and the central path can take over."""
        costly = self.problem.passes >= COSTLY and np.count_nonzero(self.theta) <= FEW
        many = self.unfinished >= (1 if costly else UNFINISHED)
        return many and isinstance(self.problem, Problem) and interior_l1.applies(self.problem)

    def overspent(self, groups: IntArray) -> bool:
        """Return whether descent has used up its budget [prox-Newton steps on these groups]."""
        if self._budget == math.inf:
            return False
        shape = self._stored.shape(self.weights.features(groups)[0])
        passes = prices().iteration(_hessian_work, shape) / prices().iteration(
            _pass_work, self._stored.shape(None)
        )
        return self.problem.passes - self._began > self._budget * passes

    def solve(self, groups: IntArray, times: float, tol: float, steps: int) -> tuple[int, float]:
        """Make Newton steps on these groups, which include the support; return status and gap on them.

        The penalty is ``times`` its target.
        """
        chosen, first = self.weights.features(groups)
        columns, numbers, share = self._stored.read(chosen)
        at = np.append(self.theta[chosen], self.theta[-1])
        base, step = at.copy(), np.zeros_like(at)
        many_steps, self.times = steps == STEPS_PER_CALL, times
        status, steps, sweeps, gradients, self.value, gap = _kernels.column_newton(
            columns,
            self.targets,
            self._losses.native_loss,
            numbers,
            first,
            times * self.weights.norms[groups],
            self.weights.ridges[groups],
            tol,
            steps,
            self.problem.fit_intercept,
            at,
            self.scores,
            base,
            step,
        )
        self._losses.passes += share * (2 * steps + sweeps + gradients)
        self.unfinished += many_steps and status == _UNFINISHED
        self.theta, self.base, self.step = (
            embed(part, chosen, self.problem.data.d) for part in (at, base, step)
        )
        if status == _CLOSED:
            return status, max(gap, 0.0)  # rounding may put the lower bound above P
        return status, gap if gap > 0.0 else np.inf  # 0: no bound was found

    def correlations(self) -> FloatArray:
        """|v_g| of all groups, v = sum s sigma l' x at theta, relative to their target weights. One pass."""
        data = self.problem.data
        sign = data.sign
        m = sign * self.scores if data.offset is None else sign * self.scores + data.offset
        slope = sign * self.problem.loss.slope(m)
        slope = slope if data.weight is None else slope * data.weight
        return self.weights.ratios(self.sums(slope))


def applies(problem: Problem | GroupProblem) -> bool:
    """Return whether the loss is compiled, the rows are in memory and every feature is penalised by a norm."""
    losses = problem.losses if isinstance(problem, GroupProblem) else problem
    norms = problem.penalty.l1_ratio > 0.0 and not problem.penalty.unpenalised(problem.data.d).any()
    return losses.native and problem.data.location is Location.MEMORY and norms


def close_start(run: Run[Any], theta: FloatArray) -> bool:
    """Make a closing pass at theta, or at the null model if that is better; return whether the gap closed."""
    problem = run.problem
    losses = problem.losses if isinstance(problem, GroupProblem) else problem
    null, least = null_model(losses)
    zero = np.zeros_like(null)
    if theta.any() and run.close(theta, linearised(theta, zero)):
        return True
    if run.best is None or not run.trace[-1].primal <= least * problem.penalty.scale:
        run.best = None
        if run.close(null, linearised(null, zero)):
            return True
    if run.best is None:
        losses.start(zero)  # raises an error that names what is not finite
        return run.close(zero, linearised(zero, zero))
    return False


def solve(run: Run[Any], theta: FloatArray, budget: float = math.inf) -> bool:
    """Solve from theta, the point of the last closing pass; return whether the gap of all features closed.

    ``budget`` limits the cost of descent [prox-Newton steps on the same features].
    """
    problem = run.problem
    columns = Columns(problem, theta, budget)
    v = balanced_v(run.last_sums, problem.data.d, problem.fit_intercept)
    correlation = columns.weights.ratios(v)
    try:
        if not theta[:-1].any():
            correlation = _continue_penalty(run, columns, correlation)
        closed = _solve_at_target(run, columns, correlation)
        return closed or run.close_final(columns.theta, linearised(columns.base, columns.step))
    except LimitReached:  # return the best point at the user's limit
        run.close_final(columns.theta, linearised(columns.base, columns.step))
        raise


def _continue_penalty(run: Run[Any], columns: Columns, correlation: FloatArray) -> FloatArray:
    """Make a few steps at each of several decreasing penalties; return the correlations at the end."""
    largest = float(correlation.max(initial=0.0))
    # With the squared hinge the rows with curvature change in every step; they are found faster with few features.
    loss = run.problem.loss
    one_sided = loss.flat_beyond_margin and not loss.straight_tails
    mild = largest <= (WEAK_PENALTY_RATIO if one_sided else MILD_PENALTY_RATIO)
    steps, tol = (
        (1, STRIDE_TOL) if mild else (STEPS_PER_CALL, ROUGH) if one_sided else (2, STRIDE_TOL)
    )
    for times in _falling(largest, mild):
        run.check_limits()
        columns.solve(_choose(columns, correlation, times), times, tol, steps)
        correlation = columns.correlations()
        if columns.stalled or columns.overspent(_choose(columns, correlation, 1.0)):
            break
    return correlation


def _falling(largest: float, mild: bool) -> list[float]:
    """Return decreasing penalties between ``largest`` and 1: equal ratios near 1/3 if mild, else 1/3."""
    if mild:
        strides = max(1, math.ceil(math.log(max(1.0, largest), 3.0) - SLIGHTLY))
        return [largest ** (1.0 - k / strides) for k in range(1, strides)]
    strides = math.ceil(math.log(largest / 1.5) / math.log(3.0))
    return [largest / 3.0**k for k in range(1, strides)]


def _choose(columns: Columns, correlation: FloatArray, times: float) -> IntArray:
    """Return the support and the groups with a larger correlation than ``times``; at least FIRST, by correlation."""
    support = columns.weights.support(columns.theta[:-1])
    inside = support | (correlation > times)
    if np.count_nonzero(inside) < FIRST < len(correlation):
        rank = np.where(support, np.inf, correlation)
        inside[np.argpartition(-rank, FIRST - 1)[:FIRST]] = True
    return np.flatnonzero(inside)


def _solve_at_target(run: Run[Any], columns: Columns, correlation: FloatArray) -> bool:
    """Solve on working sets at the target penalty; return whether the gap closed."""
    tol = run.stop.tol
    inner, left, before = 0.3, np.inf, np.inf
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
            correlation, followed = columns.correlations(), True
        chosen = _choose(columns, correlation, NEARLY)
        if columns.overspent(chosen):
            return False
        # small sets are solved accurately at once: that costs less than another test of all features
        goal = inner * tol if len(chosen) <= 2 * FIRST else max(inner * tol, min(ROUGH, 0.1 * left))
        status, gap = columns.solve(chosen, 1.0, goal, STEPS_PER_CALL)
        correlation = columns.correlations()
        outside = correlation.copy()
        outside[chosen] = 0.0
        left = _loss_of_bound(outside, columns)
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


def _loss_of_bound(outside: FloatArray, columns: Columns) -> float:
    """Decrease of the lower bound, relative to P, due to groups outside the set with a correlation above 1."""
    norms, ridges = columns.weights.norms, columns.weights.ridges
    straight = float(outside[ridges == 0.0].max(initial=1.0))
    held = ridges > 0.0
    over = norms[held] * np.maximum(outside[held] - 1.0, 0.0)
    cost = float((over * over / (2.0 * ridges[held])).sum()) / max(columns.value, 1e-300)
    return 1.0 - 1.0 / straight + cost
