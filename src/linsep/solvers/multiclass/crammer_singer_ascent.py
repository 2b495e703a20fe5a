"""Dual coordinate ascent for the multiclass hinge, the first phase of fits with large Newton systems.

For one row after another, p is set to the maximiser of the dual, a projection on the simplex
(kernels/softmax/crammer_singer.hpp), and W = V/lam is updated. The intercepts are handled by an augmented Lagrangian:
scores use b = b0 + r e, with e the class sums of s (onehot(y) - p), and b0 becomes b after each epoch, so that e
vanishes in the limit and the intercepts are exact and unpenalised.

An epoch sums the slack of each row at its visit, which predicts the duality gap. Newton's method takes over once the
remaining epochs, predicted from the recent rate, would take longer than it does.

Keerthi, Sundararajan, Chang, Hsieh, Lin 2008 (the method); Hestenes 1969, Powell 1969 (augmented Lagrangian).
"""

from __future__ import annotations

import math

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.problem import MaxMarginProblem
from linsep.solvers.multiclass.crammer_singer_dual import dual_point
from linsep.solvers.run import Run

_NEWTON_STEPS = 12  # typical number of Newton steps of a fit without ascent
_LEAST_BUDGET = 40.0  # cost of these steps [epochs] from which ascent is tried
_MOST_BUDGET = 800.0  # largest budget [epochs]
# Cost of a multiply-add of the Hessian of some rows, and of its factor, relative to one of an epoch.
_GRAM_PRICE, _FACTOR_PRICE = 0.017, 0.023
_EPOCHS = 500
_STIFFNESS = 0.1  # augmented Lagrangian factor r of the intercepts, in units of mean |x|^2/lam
_BUCKET = 2  # consecutive rows that are visited together
_SPARE = 10  # epochs between closing passes while the predicted gap is far above tol
_WINDOW = 25  # epochs over which the rate is measured: progress is uneven
_PER_CALL = 1_000_000  # multiply-adds between two checks of the limits


def _budget(problem: MaxMarginProblem) -> float:
    """Approximate cost of Newton's method alone [epochs], at most _MOST_BUDGET."""
    unknowns = problem.order * problem.k
    step = _GRAM_PRICE * unknowns + _FACTOR_PRICE * unknowns * unknowns / problem.data.n
    return min(_NEWTON_STEPS * step, _MOST_BUDGET)


def prefers(problem: MaxMarginProblem) -> bool:
    """Return whether to start with ascent: one block of rows in memory, and large Newton systems."""
    return problem.data.whole is not None and _budget(problem) >= _LEAST_BUDGET


class Ascent:
    """State of the ascent: P (n, K), W (d+1, K), class sums e, and the slacks of the epochs."""

    def __init__(self, run: Run[MaxMarginProblem], seed: int) -> None:
        self.run, self.problem, self.seed = run, run.problem, seed
        problem, data = run.problem, run.problem.data
        self.norms = problem.row_norms()
        self.P = problem.label_distribution()
        K = self.P.shape[1]
        self.W, self.state = np.zeros((problem.order, K)), np.zeros(K + 1)
        self.order = np.arange(-(-data.n // _BUCKET), dtype=np.int64)
        weight = np.ones(data.n) if data.weight is None else data.weight
        mean = float(weight @ self.norms) / float(weight.sum())
        self.stiffness = _STIFFNESS * mean / problem.lam if problem.fit_intercept else 0.0
        self.slacks: list[float] = []

    def climb(self) -> bool:
        """Run epochs until the gap closes (True) or progress is slow (False)."""
        run, closed, budget = self.run, 0, _budget(self.problem)
        if not np.isfinite(self.norms).all():
            return False
        for epoch in range(1, _EPOCHS + 1):
            self._epoch(epoch)
            slack, primal = self.slacks[-1], self._primal_below()
            last = self._epochs_left(run.stop.tol * primal) > budget
            if last or slack <= run.stop.tol * primal or epoch - closed >= _SPARE:
                closed = epoch
                if run.close(self.at(), dual_point(self.problem, self.P)):
                    return True
            if last:
                break
        return False

    def _epochs_left(self, goal: float) -> float:
        """Predict the epochs until the slack reaches the goal, from the recent rate; 0 while that is unknown."""
        slack = self.slacks[-1]
        if len(self.slacks) <= _WINDOW or slack <= goal:
            return 0.0
        rate = math.log(self.slacks[-1 - _WINDOW] / slack) / _WINDOW
        return math.log(slack / max(goal, 1e-300)) / rate if rate > 0.0 else math.inf

    def at(self) -> FloatArray:
        """Return W (d+1, k) with the current intercepts b0 + r e."""
        W = self.W[:, : self.problem.k].copy()
        W[-1] += self.stiffness * self.state[: self.problem.k]
        return W

    def _epoch(self, number: int) -> None:
        """Visit every row in a new random order, then update the multiplier b0."""
        problem, count = self.problem, len(self.order)
        problem.passes += 1
        _kernels.shuffle(self.order, (self.seed * 0x9E3779B1 + number) % 2**64)
        self.state[-1] = 0.0
        work = problem.data.n_entries * self.P.shape[1]
        step = max(1, _PER_CALL * count // max(1, work))
        for k in range(0, count, step):
            self.run.check_limits()
            part = self.order[k : k + step]
            problem.ascend(part, _BUCKET, self.stiffness, self.norms, self.P, self.W, self.state)
        self.W[-1] += self.stiffness * self.state[:-1]
        self.slacks.append(float(self.state[-1]))

    def _primal_below(self) -> float:
        """Estimate of the objective from below: the dual value at P."""
        k, labels, weight = self.problem.k, self.problem.data.labels, self.problem.data.weight
        assert labels is not None
        off = 1.0 - self.P[np.arange(len(labels)), labels]
        gain = float(off.sum() if weight is None else weight @ off)
        return max(gain - self.problem.penalty_value(self.W[:, :k]), 0.0)
