"""Prox-Newton on working sets for the softmax with an L1 penalty, with all classes of a feature together.

::

    min_W  l2/2 |W_w|^2 + l1 |W_w|_1 + sum_i s_i (logsumexp(z_i) - z_{i,y_i}),     z_i = W'(x_i, 1)

The method is that of ``solvers/l1/working_set.py`` and ``solvers/l1/prox_newton.py``, with matrices W (d+1, k): the
quadratic model includes all pairs of classes, the intercepts are eliminated from it (their Hessian is singular along
equal shifts of all intercepts, hence a pseudo-inverse), and the Newton-dual point p + (diag p - p p') dz of the last
step closes the gap. On a cluster the fit starts at the optimum of a pilot, and each sweep also computes the Hessian.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray, IntArray, embed
from linsep.data import Location
from linsep.interrupts import lapack
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers.l1 import prox_newton
from linsep.solvers.multiclass import softmax, softmax_l1_columns
from linsep.solvers.newton import cluster as newton_cluster
from linsep.solvers.run import LimitReached, Run

UNKNOWNS, UNKNOWNS_FEW = 600, 1500  # largest d k for which all features are used; on a cluster
MOST = 4000  # largest number of unknowns of a working set
FIRST = 20  # smallest first working set [features]
MAX_ROUNDS = 60
MAX_STEPS = 60
CLOSING_DECREASE = 0.05  # predicted decrease, relative to P, below which the gap may have closed
FINE = 1e-13  # decrease, relative to P, that is rounding noise
# After a step that reduces P by less than this factor, the sweeps over a model double, up to the largest number.
_SLOW, _MOST_SWEEPS = 0.8, 400
_TINY = 1e-12  # relative increase of the diagonal of the model, for dependent features
# Curvature added to the model where its steps do not decrease P, in units of sum (x - mu)^2.
_LEAST_DAMPING, _DAMPING_GROWTH, _MOST_DAMPING = 1e-12, 100.0, 1.0


@dataclass(frozen=True, eq=False)
class _Point:
    W: FloatArray
    base: FloatArray
    step: FloatArray
    sums: FloatArray | None = None  # sums of the closing pass
    limit: LimitReached | None = None  # the limit of the user that ended the method


def solve(problem: CoupledProblem, W: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve on growing working sets of features, each by prox-Newton."""
    run = Run(problem, stop)
    status, d, k = Status.WORKING_PRECISION, problem.data.d, problem.k
    W = W.copy()
    dual = Linearised(W, np.zeros_like(W))
    try:
        with run.in_time():
            mu, score = None, np.zeros(d)
            if problem.data.location is Location.CLUSTER and _fits_hessian(problem):
                W, mu = _pilot(run, W, seed)
            elif not W.any() and problem.fit_intercept:
                W[-1] = _null_intercepts(problem)
            if mu is None:
                value, g = problem.start(W)
                run.record(value + problem.penalty.l1 * float(np.abs(W[:-1]).sum()))
                score = np.abs(g[:-1] - problem.lam * W[:-1]).max(axis=1)
            if softmax_l1_columns.applies(problem, UNKNOWNS, MOST):
                closed = softmax_l1_columns.solve(run, W)
                status = Status.CERTIFIED if closed else run.status_above_tol(stop.tol)
                return run.solution(status, W, dual)
            inner, relative, chosen = 0.3, 0.3, np.arange(0)
            for _ in range(MAX_ROUNDS):
                chosen = _grow(problem, chosen, W, score)
                whole = len(chosen) == d
                goal = inner * stop.tol if whole else max(inner * stop.tol, 0.1 * relative)
                found = _solve_on(problem, chosen, W, goal, run.check_limits, mu)
                W, dual = found.W, Linearised(found.base, found.step)
                if run.close(W, dual, found.sums):
                    status = Status.CERTIFIED
                    break
                if found.limit is not None:
                    raise found.limit
                last = run.trace[-1]
                relative = min(0.3, (last.primal - last.dual) / max(last.primal, 1e-300))
                score = np.abs(run.last_sums[4 + 2 * k :][: d * k].reshape(d, k)).max(axis=1)
                wanting = score > problem.penalty.l1 * (1 + 1e-12)
                wanting[chosen] = False
                if not wanting.any() and goal <= inner * stop.tol:
                    inner *= 0.1
                    if inner < 1e-4:
                        break
                if wanting.any() and 2 * len(chosen) * k > MOST:
                    status = Status.GIVEN_UP  # the next quadratic model would be too large
                    break
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, W, dual)


def _pilot(run: Run[CoupledProblem], W: FloatArray, seed: int) -> tuple[FloatArray, FloatArray]:
    """Return the optimum of a pilot, or W if that is a start, and a centre of the rows."""
    problem = run.problem
    if W.any():
        return W, problem.centre()
    least = newton_cluster.PILOT_ROWS * problem.data.d * (problem.k - 1)
    rows = max(newton_cluster.pilot_rows(problem.data), least)
    few = softmax.sample(problem, rows, seed)
    tol = run.stop.tol if few.data.n >= problem.data.n else newton_cluster.PILOT_TOL
    return solve(few, W, run.rest(tol), seed).W, few.centre()


def _null_intercepts(problem: CoupledProblem) -> FloatArray:
    labels, weight = problem.data.labels, problem.data.weight
    mass = np.bincount(np.asarray(labels), weight, minlength=problem.k).astype(np.float64)
    logs = np.log(np.maximum(mass, 1e-12 * mass.sum()))
    return np.asarray(logs - logs.mean())


def _fits_hessian(problem: CoupledProblem) -> bool:
    """Return whether the Hessian of all features is small enough."""
    remote = problem.data.location is Location.CLUSTER
    return problem.data.d * problem.k <= (UNKNOWNS_FEW if remote else UNKNOWNS)


def _grow(problem: CoupledProblem, chosen: IntArray, W: FloatArray, score: FloatArray) -> IntArray:
    """Return the next working set: the support and the features with the largest |V_jc|, at most doubled."""
    d = problem.data.d
    if _fits_hessian(problem):
        return np.arange(d)
    rank = score.copy()
    support = np.flatnonzero(W[:-1].any(axis=1))
    rank[support] = np.inf
    size = min(d, max(FIRST, len(chosen), 2 * len(support)))
    return np.sort(np.argpartition(-rank, size - 1)[:size])


def _solve_on(
    problem: CoupledProblem,
    chosen: IntArray,
    W: FloatArray,
    tol: float,
    check: Callable[[], None],
    mu: FloatArray | None,
) -> _Point:
    """Solve on the chosen features; return the point for all features. ``mu`` is a centre of the rows, if known."""
    data = problem.data
    if len(chosen) == data.d:
        return _ProxNewton(problem, W, check, mu).solve(tol)
    rows = data.columns(chosen)
    sub = CoupledProblem(problem.loss, problem.penalty, rows, problem.fit_intercept)
    centre = None if mu is None else np.ascontiguousarray(mu[chosen])
    found = _ProxNewton(sub, np.vstack([W[chosen], W[-1:]]), check, centre).solve(tol)
    problem.passes += 1.0 + sub.passes * rows.n_entries / max(1, data.n_entries)
    rows.close()
    full = [embed(part, chosen, data.d) for part in (found.W, found.base, found.step)]
    return _Point(full[0], full[1], full[2], limit=found.limit)


class _ProxNewton:
    """Iterate of prox-Newton with the full Hessian of all features and classes."""

    def __init__(
        self,
        problem: CoupledProblem,
        W: FloatArray,
        check: Callable[[], None],
        mu: FloatArray | None,
    ) -> None:
        self.problem, self.W, self.check = problem, W, check
        self.l1, self.mu = problem.penalty.l1, problem.centre() if mu is None else mu
        self.remote = problem.data.location is Location.CLUSTER
        if self.remote:
            problem.expect_hessian(self.mu)
        self.sweeps = prox_newton.SWEEPS
        self.damping, self.squares = 0.0, self._centred_squares()
        self.value, self.g = self._at(W)

    def _centred_squares(self) -> FloatArray:
        """Sums of (x - mu)^2 (d,), 1 for constant columns: curvatures of the model where no row is fitted."""
        problem, mu, d = self.problem, self.mu, self.problem.data.d
        moments = problem.moments()
        squares = moments[:d] - mu * (2.0 * moments[d : 2 * d] - moments[-1] * mu)
        return np.where(squares > 0.0, squares, 1.0)

    def _at(self, W: FloatArray) -> tuple[float, FloatArray]:
        smooth, g = self.problem.value_gradient(W)
        return smooth + self.l1 * float(np.abs(W[:-1]).sum()), g

    def step(self, exact: bool) -> tuple[FloatArray, float]:
        """Return the step to the minimum of the model, and its predicted decrease of P to first order.

        If rounding makes the model indefinite, it is damped until its step decreases P to first order.
        """
        H = self.problem.hessian(self.mu)
        while True:
            with np.errstate(over="ignore", invalid="ignore", divide="ignore"):
                D, decrease = self._minimise(H, exact)
            if decrease >= -FINE * self.value and np.isfinite(D).all():
                return D, decrease
            if not self._damp():
                return np.zeros_like(D), 0.0

    def _damp(self) -> bool:
        """Increase the curvature that is added to the model; return False at its largest value."""
        if self.damping >= _MOST_DAMPING:
            return False
        self.damping = max(_LEAST_DAMPING, _DAMPING_GROWTH * self.damping)
        return True

    def _minimise(self, H: FloatArray, exact: bool) -> tuple[FloatArray, float]:
        """Return the step to the minimum of the damped model, and its predicted decrease of P to first order."""
        problem, mu, k = self.problem, self.mu, self.problem.k
        order = problem.order
        last = np.arange(k) * order + order - 1
        weights = np.setdiff1d(np.arange(k * order), last)
        g, W = self.g, self.W
        gw = (g[:-1] - np.outer(mu, g[-1])).T.ravel()
        S, cross = H[np.ix_(weights, weights)], H[np.ix_(weights, last)]
        inverse = lapack(np.linalg.pinv, H[np.ix_(last, last)], rcond=1e-12, hermitian=True)
        S = np.ascontiguousarray(S - cross @ inverse @ cross.T)
        S = 0.5 * (S + S.T)
        at = np.arange(len(S))
        squares = np.tile(self.squares, k)
        S[at, at] += _TINY * np.where(S[at, at] > 0.0, S[at, at], squares) + self.damping * squares
        q = gw - cross @ (inverse @ g[-1])
        w = np.ascontiguousarray(W[:-1].T.ravel())
        x = prox_newton.minimise(S, q, w, self.l1, exact, self.sweeps)
        D = np.zeros_like(W)
        D[:-1] = (x - w).reshape(k, -1).T
        D[-1] = -inverse @ (g[-1] + cross.T @ (x - w)) - mu @ D[:-1]
        if not problem.fit_intercept:
            D[-1] = 0.0
        grown = float(np.abs(x).sum() - np.abs(w).sum())
        return D, -(float(np.vdot(g, D)) + self.l1 * grown)

    def solve(self, tol: float) -> _Point:
        """Solve until the relative gap on these features is at most tol, or up to a limit of the user."""
        try:
            return self._iterate(tol)
        except LimitReached as limit:
            return _Point(self.W, self.W, np.zeros_like(self.W), limit=limit)

    def _iterate(self, tol: float) -> _Point:
        best = _Point(self.W, self.W, np.zeros_like(self.W))
        least, exact, stalls = np.inf, self.remote, 0
        for _ in range(MAX_STEPS):
            self.check()
            D, decrease = self.step(exact)
            before = self.value
            near = decrease <= CLOSING_DECREASE * before
            if near and exact:
                trial = self.W + D
                sums = self.problem.closing(trial, Linearised(self.W, D))
                primal, lower = self.problem.values(trial, sums)
                gap = (primal - lower) / max(abs(primal), 1e-300)
                if gap < least and primal <= self.value * (1.0 + CLOSING_DECREASE):
                    least, best = gap, _Point(trial, self.W, D, sums)
                if gap <= tol or stalls > 3:
                    break
            if not self._advance(D, decrease):
                if decrease > FINE * self.value and self._damp():
                    self.value, self.g = self._at(self.W)  # restores the probabilities
                    continue
                if exact:
                    break
                exact = True
                self.value, self.g = self._at(self.W)
                continue
            self.damping = self.damping / _DAMPING_GROWTH if self.damping > _LEAST_DAMPING else 0.0
            stalls += decrease <= FINE * self.value
            if self.value > _SLOW * before:
                self.sweeps = min(2 * self.sweeps, _MOST_SWEEPS)
            exact = exact or near
            if not np.isfinite(least):
                best = _Point(self.W, self.W, np.zeros_like(self.W))
        return best

    def _advance(self, D: FloatArray, decrease: float) -> bool:
        """Take the step, or the best of several shorter ones; return whether P decreased."""
        value, g = self._at(self.W + D)
        if value < self.value and value <= self.value - 1e-4 * decrease:
            self.W, self.value, self.g = self.W + D, value, g
            return True
        if decrease <= FINE * self.value:
            if value <= self.value * (1.0 + FINE):
                self.W, self.value, self.g = self.W + D, value, g
                return True
            return False
        steps = 0.6 ** np.arange(1.0, 25.0)
        values, _ = self.problem.along(self.W, D, steps)
        moved = self.W[:-1] + steps[:, None, None] * D[:-1]
        values = values + self.l1 * np.abs(moved).sum(axis=(1, 2))
        values = np.where(np.isfinite(values), values, np.inf)
        trial = self.W + float(steps[int(np.argmin(values))]) * D
        value, g = self._at(trial)
        if not value < self.value:
            return False
        self.W, self.value, self.g = trial, value, g
        return True
