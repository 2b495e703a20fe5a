"""Coordinate descent for the softmax with an L1 penalty on many features, reading X by columns.

::

    min_W  l2/2 |W_w|^2 + l1 |W_w|_1 + sum_i s_i (logsumexp(z_i) - z_{i,y_i}),     z_i = W'(x_i, 1)

As a function of the weights of one class, with the scores of the others fixed, the losses are logistic with offsets.
With E the sum of exp z over the other classes, rows of class c have -log p_c = log(1 + exp(log E - z_c)), and the loss
of the other rows depends on z_c through -log(1 - p_c) = log(1 + exp(z_c - log E)). The prox-Newton steps of one class
at a time are therefore those of ``solvers/l1/coordinate.py``; they find the support.

Joint steps of all classes use conjugate gradients on the Newton system of the support, with the intercepts eliminated
(their Hessian is singular along equal shifts of all intercepts, hence a pseudo-inverse). Weights that would change sign
become zero. The Newton-dual point p + (diag p - p p') dz of such a step closes the gap.

Reference: Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via coordinate descent,
2010.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, n_entries, squares
from linsep.data import Location
from linsep.interrupts import lapack
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Linearised
from linsep.solvers.l1.coordinate import NEARLY, Stored, uniform_weights
from linsep.solvers.linalg import cg
from linsep.solvers.run import LimitReached, Run

MAX_ROUNDS = 300
STRIDE = 3.0  # factor between decreasing penalties
STEPS_PER_CLASS = 3  # consecutive steps in one class
FAR = 0.3  # violation of the optimality conditions, relative to l1, above which a cycle is repeated
TURNS = 3  # largest number of cycles through the classes before a joint step
GRADIENTS = 1500  # conjugate gradient steps
CLOSING_DECREASE = 0.05  # decrease, relative to P, below which a step may close the gap
SHORTEST = 1e-4  # smallest step size of a joint step
STALLS = 6  # rounds without progress before the method ends


class JointStep(NamedTuple):
    """A joint step of all classes, its predicted decrease of P, and whether no weight changes sign."""

    step: FloatArray
    decrease: float
    whole: bool


class Classes:
    """A point W with few nonzero features, and its scores Z (k, n)."""

    def __init__(self, problem: CoupledProblem, W: FloatArray) -> None:
        data: Any = problem.data
        self.problem, self.W, self.k = problem, W.copy(), problem.k
        self.l1, self.l2 = problem.penalty.l1, problem.lam
        self._stored = Stored(data)
        self.X = sp.csc_matrix(data.X) if data.sparse else data.X
        assert data.labels is not None
        self.own = data.labels[None] == np.arange(self.k)[:, None]
        self._sign = np.where(self.own, 1.0, -1.0)
        self.weight = np.ones(data.n) if data.weight is None else data.weight
        self.Z = np.repeat(W[-1][:, None], data.n, axis=1)
        if W[:-1].any():
            self.Z += np.asarray(self.X @ W[:-1]).T
            problem.passes += 1

    def value(self, W: FloatArray, Z: FloatArray) -> float:
        """Return the objective P at W with scores Z."""
        losses = self.weight @ (_logsumexp(Z) - Z[self.problem.data.labels, np.arange(Z.shape[1])])
        w = W[:-1]
        return (
            float(losses) + self.l1 * float(np.abs(w).sum()) + 0.5 * self.l2 * float(np.vdot(w, w))
        )

    def gradient(self) -> FloatArray:
        """Return the gradient of the losses, sum s (p - onehot(y)) x, (d, k). k passes."""
        R = self.weight * (np.exp(self.Z - _logsumexp(self.Z)) - self.own)
        self.problem.passes += self.k
        return np.stack([self._stored.sums(np.ascontiguousarray(r)) for r in R], axis=1)

    def violation(self, V: FloatArray) -> float:
        """Largest violation of the optimality conditions, relative to l1."""
        w = self.W[:-1]
        on = np.abs(V + self.l2 * w + self.l1 * np.sign(w))
        return float(np.where(w != 0.0, on, np.maximum(np.abs(V) - self.l1, 0.0)).max() / self.l1)

    def step_each_class(self, V: FloatArray, l1: float, tol: float) -> None:
        """Make a few steps in each class, on its support and the features with |V| near or above l1."""
        whole = _logsumexp(self.Z)
        for c in range(self.k):
            inside = (self.W[:-1, c] != 0.0) | (np.abs(V[:, c]) > NEARLY * l1)
            chosen = np.flatnonzero(inside)
            others = _logsumexp_of_others(self.Z, whole, c)
            if len(chosen) or self.problem.fit_intercept:
                self._one(c, chosen if len(chosen) else np.arange(1), others, l1, tol)
            whole = np.logaddexp(others, self.Z[c])

    def _one(self, c: int, chosen: IntArray, others: FloatArray, l1: float, tol: float) -> None:
        problem, sign = self.problem, self._sign[c]
        columns, numbers, share = self._stored.read(chosen)
        at = np.append(self.W[chosen, c], self.W[-1, c])
        base, step, z = at.copy(), np.zeros_like(at), np.ascontiguousarray(self.Z[c])
        _, steps, sweeps, gradients, _, _ = _kernels.column_newton(
            columns,
            _kernels.Targets(sign, -sign * others, self.problem.data.weight),
            _kernels.Loss("logistic"),
            numbers,
            np.arange(len(chosen) + 1),
            *uniform_weights(len(chosen), l1, self.l2),
            tol,
            STEPS_PER_CLASS,
            problem.fit_intercept,
            at,
            z,
            base,
            step,
        )
        problem.passes += share * (2 * steps + sweeps + gradients)
        if np.isfinite(at).all() and np.isfinite(z).all():
            self.W[chosen, c], self.W[-1, c], self.Z[c] = at[:-1], at[-1], z

    def newton_step(self, enough: float, run: Run[CoupledProblem]) -> JointStep:
        """Return the Newton step on the support of all classes, to a largest residual of ``enough``."""
        system = _System(self, run)
        step = np.zeros_like(self.W)
        parts, step[-1], decrease = system.solve(enough)
        whole = True
        for c, part in enumerate(parts):
            on = system.support[c]
            step[on, c] = part
            whole = whole and not ((self.W[on, c] + part) * self.W[on, c] < 0.0).any()
        return JointStep(step, decrease, whole)

    def advance(self, found: JointStep) -> None:
        """Take the step, or a shorter one that decreases P; weights that would change sign become 0."""
        before, length = self.value(self.W, self.Z), 1.0
        while length >= SHORTEST:
            W = self.W + length * found.step
            W[:-1][W[:-1] * self.W[:-1] < 0.0] = 0.0
            Z = self.Z + self._scores(W - self.W)
            if self.value(W, Z) < before:
                self.W, self.Z = W, Z
                return
            length *= 0.4

    def _scores(self, step: FloatArray) -> FloatArray:
        Z = np.repeat(step[-1][:, None], self.Z.shape[1], axis=1)
        for c in range(self.k):
            on = np.flatnonzero(step[:-1, c])
            if len(on):
                Z[c] += np.asarray(self.X[:, on] @ step[on, c]).ravel()
        return Z


class _System:
    """Newton system of the weights on the support, with the intercepts eliminated."""

    def __init__(self, at: Classes, run: Run[CoupledProblem]) -> None:
        self.at, self._run, W = at, run, at.W
        self.p = np.exp(at.Z - _logsumexp(at.Z))
        self.s = at.weight
        self.support = [np.flatnonzero(W[:-1, c]) for c in range(at.k)]
        self._A = [at.X[:, on] for on in self.support]
        self._AT = [sp.csr_matrix(A.T) if sp.issparse(A) else A.T for A in self._A]
        self.edges = np.cumsum([0, *map(len, self.support)])
        self._w = np.concatenate([W[on, c] for c, on in enumerate(self.support)])
        B = -(self.s * self.p) @ self.p.T
        B[np.diag_indices(at.k)] += self.p @ self.s
        free = at.problem.fit_intercept
        self._B = (
            lapack(np.linalg.pinv, B, rcond=1e-12, hermitian=True) if free else np.zeros_like(B)
        )

    def _split(self, v: FloatArray) -> list[FloatArray]:
        return [v[a:b] for a, b in zip(self.edges[:-1], self.edges[1:], strict=True)]

    def _forth(self, v: FloatArray) -> FloatArray:
        return np.stack([A @ part for A, part in zip(self._A, self._split(v), strict=True)])

    def _back(self, U: FloatArray) -> FloatArray:
        return np.concatenate([AT @ u for AT, u in zip(self._AT, U, strict=True)])

    def _times_hessian(self, dZ: FloatArray) -> FloatArray:
        """Return s (diag p - p p') dz for every row."""
        curved: FloatArray = self.s * self.p * (dZ - (self.p * dZ).sum(axis=0))
        return curved

    def _product(self, v: FloatArray) -> FloatArray:
        """Return the product of v and the Hessian with the intercepts eliminated."""
        U = self._times_hessian(self._forth(v))
        U += self._times_hessian(np.repeat((-self._B @ U.sum(axis=1))[:, None], U.shape[1], axis=1))
        out: FloatArray = self._back(U) + self.at.l2 * v
        return out

    def solve(self, enough: float) -> tuple[list[FloatArray], FloatArray, float]:
        """Return weights and intercepts of the step, and its predicted decrease to first order."""
        at = self.at
        R = self.s * (self.p - at.own)
        first = -self._B @ R.sum(axis=1)
        R = R + self._times_hessian(np.repeat(first[:, None], R.shape[1], axis=1))
        g = self._back(R) + at.l2 * self._w + at.l1 * np.sign(self._w)
        h = self.s * self.p * (1.0 - self.p)
        size = (
            np.concatenate([squares(A) @ row for A, row in zip(self._AT, h, strict=True)]) + at.l2
        )
        scale = 1.0 / np.maximum(size, 1e-12 * max(float(size.max(initial=0.0)), 1e-300))

        def times(v: FloatArray) -> FloatArray:
            self._run.check_limits()
            return self._product(v)

        def ends(now: cg.Iterate) -> bool:
            return not float(np.abs(now.r).max(initial=0.0)) > enough

        found = cg.solve(times, lambda r: scale * r, -g, ends, GRADIENTS)
        x = found.x
        entries = sum(map(n_entries, self._A))
        at.problem.passes += 2.0 * found.products * entries / max(1, at.problem.data.n_entries)
        curved = self._times_hessian(self._forth(x)).sum(axis=1)
        return self._split(x), first - self._B @ curved, -float(g @ x)


def applies(problem: CoupledProblem, few: int, most: int) -> bool:
    """Return whether the rows are in memory and there are too many weights for a Hessian.

    The limit on the weights is ``few`` with fewer rows than features, else ``most``.
    """
    data = problem.data
    many = data.d * problem.k > (few if data.n < data.d else most)
    return many and data.location is Location.MEMORY


def solve(run: Run[CoupledProblem], W: FloatArray) -> bool:
    """Solve from W; return whether the gap closed."""
    classes = Classes(run.problem, W)
    try:
        return _rounds(run, classes, _continue_penalty(run, classes))
    except LimitReached:  # return the best point at the user's limit
        run.close_final(classes.W, Linearised(classes.W, np.zeros_like(classes.W)))
        raise


def _continue_penalty(run: Run[CoupledProblem], classes: Classes) -> FloatArray:
    """Make one cycle through the classes at each of several decreasing penalties; return the final gradient."""
    V = classes.gradient()
    l1 = float(np.abs(V).max(initial=0.0)) / STRIDE
    if classes.W[:-1].any():
        return V
    while l1 > 1.5 * classes.l1:
        run.check_limits()
        classes.step_each_class(V, l1, 0.1)
        V = classes.gradient()
        l1 /= STRIDE
    return V


def _rounds(run: Run[CoupledProblem], classes: Classes, V: FloatArray) -> bool:
    """Alternate steps in each class and joint steps until the gap closes or progress stalls."""
    tol = run.stop.tol
    least, lowest, stalls, share = np.inf, np.inf, 0, np.inf
    for _ in range(MAX_ROUNDS):
        for _ in range(TURNS):
            run.check_limits()
            classes.step_each_class(V, classes.l1, 0.1 * tol)
            V = classes.gradient()
            share = classes.violation(V)
            if share < FAR:
                break
        found = classes.newton_step(max(0.2 * tol, 0.1 * min(1.0, share) ** 2) * classes.l1, run)
        base, value = classes.W.copy(), classes.value(classes.W, classes.Z)
        near = found.whole and found.decrease <= CLOSING_DECREASE * value
        if near and run.close(base + found.step, Linearised(base, found.step)):
            return True
        classes.advance(found)
        V = classes.gradient()
        share = classes.violation(V)
        stalls = 0 if share < 0.9 * least or value < (1.0 - 0.1 * tol) * lowest else stalls + 1
        least, lowest = min(least, share), min(lowest, value)
        if stalls > STALLS:
            break
    return run.close(classes.W, Linearised(classes.W, np.zeros_like(classes.W)))


def _logsumexp(Z: FloatArray) -> FloatArray:
    top = Z.max(axis=0)
    total: FloatArray = top + np.log(np.exp(Z - top).sum(axis=0))
    return total


def _logsumexp_of_others(Z: FloatArray, whole: FloatArray, c: int) -> FloatArray:
    """Return the log-sum-exp of the scores of the other classes; ``whole`` is that of all classes."""
    rest = -np.expm1(Z[c] - whole)
    out = whole + np.log(np.maximum(rest, 0.1))
    hard = np.flatnonzero(rest < 0.1)  # the difference would cancel: sum again
    if len(hard):
        out[hard] = _logsumexp(np.delete(Z[:, hard], c, axis=0))
    found: FloatArray = out
    return found
