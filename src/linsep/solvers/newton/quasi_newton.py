"""Limited-memory quasi-Newton steps (L-BFGS): one sweep each, no products with the Hessian.

Problem: min lam/2 |w|^2 + sum s l(m), lam > 0. With the last changes S of the point and Y of the gradient, and M an
approximation of the Hessian, the step is -B g where B is the BFGS update of gamma M^-1 by all pairs of S and Y. M is
the diagonal of the Hessian of some rows; without an intercept, that of the centred rows and their mean. If the gradient
decreases so slowly that the Hessian of a larger sample pays, M becomes that Hessian; if this does not help either,
another direction takes over permanently.

A Newton step by conjugate gradients starts from nothing and has to be solved accurately. L-BFGS keeps its curvature
information between steps, so it needs about half as many passes if the Hessian is well conditioned.

References: Liu and Nocedal, On the limited memory BFGS method, 1989. Byrd, Nocedal and Schnabel, Representations of
quasi-Newton matrices, 1994 (compact form).
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location, mapped_vectors
from linsep.problem import Problem, dot
from linsep.solvers import sampling
from linsep.solvers.newton.directions import (
    DiagonalInverse,
    Preconditioner,
    Step,
    centre_gradient,
    diagonal_inverse,
)
from linsep.solvers.newton.recent_vectors import RecentVectors
from linsep.solvers.newton.solve import Direction
from linsep.solvers.run import Run

MEMORY, LEAST_MEMORY = 20, 5  # pairs; fewer if products with them would cost as much as a sweep
PAIR = 20  # entries per feature for which a sweep costs as much as the products with a pair
SAMPLE = 256  # rows from which the diagonal and the first step are estimated
WINDOW = 5  # smallest number of steps over which the decrease of the gradient is measured
REST = 12.0  # approximate number of remaining steps with the Hessian of a sample
CHEAP = 3.0  # cost [sweeps] up to which a promising Hessian is computed before the first step
PATIENCE = 2  # consecutive predictions of too many steps before a change
CLOSED = 0.85  # fraction of tol up to which the gap due to the gradient ends the fit
# Largest ratio of the squared sizes of dense columns that count as equal. With a constant diagonal all iterates stay in
# the span of the rows, without errors in directions that have no curvature but that of the penalty.
EVEN = 4.0


class Sampled(Protocol):
    """Hessian of a sample of the rows, as a preconditioner."""

    price: float  #: cost of computing it [sweeps]

    def promises(self, some: Problem, mu: FloatArray) -> bool:
        """Return whether the features of a few rows are so correlated that the Hessian will pay."""
        ...

    def refresh(self, theta: FloatArray) -> None:
        """Compute the Hessian at theta."""
        ...

    def __call__(self, problem: Problem) -> Preconditioner:
        """Return its inverse for the weights, with the intercept eliminated."""
        ...


class _Start(NamedTuple):
    """Initial quantities: centre mu of the rows, M^-1 for (w, c), c = b + mu.w, and the first gamma."""

    mu: FloatArray
    inverse: DiagonalInverse
    gamma: float
    error: float  #: standard error of mu
    at_once: bool  #: whether a better M is computed before the first step


def _start(
    problem: Problem, theta: FloatArray, g: FloatArray, seed: int, better: Sampled | None
) -> _Start:
    """Compute the initial quantities from a sample; from all rows if they are few or sparse (rare columns)."""
    some = problem
    if problem.data.n > 2 * SAMPLE:
        some = sampling.sub_problem(problem, SAMPLE, seed)
        some.value_gradient(theta)
    seen = problem if problem.data.sparse else some
    moments = seen.moments()
    _, hx, h = moments
    intercept = problem.fit_intercept and h > 0.0
    mu = hx / h if intercept else np.zeros_like(hx)
    diagonal, p, q = diagonal_inverse(seen, moments, EVEN)
    diagonal = np.append(diagonal, h if intercept else 1.0)
    inverse = DiagonalInverse(diagonal, None if p is None else np.append(p, 0.0), q)
    step = inverse(centre_gradient(g, mu))
    slope = dot(centre_gradient(g, mu), step)
    step[-1] -= dot(mu, step[:-1])
    curvature = dot(step, some.hess_vec(step))
    gamma = slope / curvature if curvature > 0.0 else 1.0
    error = 0.0
    if intercept and seen is not problem:
        error = math.sqrt(float(np.sum(diagonal[:-1] - problem.lam)) / (h * seen.data.n))
    at_once = better is not None and better.price <= CHEAP and better.promises(seen, mu)
    return _Start(mu, inverse, gamma, error, at_once)


class _Pairs:
    """The last changes S of the point and Y of the gradient, with the inner products of the compact form."""

    def __init__(self, order: int, most: int, on_disk: bool = False) -> None:
        self.S, self.Y = (RecentVectors(most, order, on_disk) for _ in range(2))
        self._D = np.zeros(most)  # s.y
        self._R = np.zeros((most, most))  # inverse of the upper triangle of S'Y
        self._YZ = np.zeros((most, most))  # Y M^-1 Y'

    def __len__(self) -> int:
        return len(self.S)

    def add(self, s: FloatArray, y: FloatArray, z: FloatArray) -> None:
        """Append a pair, with z = M^-1 y, replacing the oldest one if the storage is full."""
        if len(self) == len(self._D):
            self._D[:-1] = self._D[1:].copy()
            for products in (self._R, self._YZ):
                products[:-1, :-1] = products[1:, 1:].copy()
        self.S.append(s)
        self.Y.append(y)
        k = len(self) - 1
        along = self.S.dots(y)
        self._D[k] = along[k]
        self._R[k, : k + 1] = 0.0
        self._R[:k, k] = self._R[:k, :k] @ along[:k] / -along[k]
        self._R[k, k] = 1.0 / along[k]
        self._YZ[: k + 1, k] = self._YZ[k, : k + 1] = self.Y.dots(z)

    def change_metric(self, solve: Callable[[FloatArray], FloatArray]) -> None:
        """Recompute the stored products for a new M; ``solve`` multiplies by M^-1."""
        for k, y in enumerate(self.Y):
            self._YZ[: len(self), k] = self.Y.dots(solve(y))

    def clear(self) -> None:
        """Remove all pairs."""
        self.S.clear()
        self.Y.clear()

    @property
    def gamma(self) -> float:
        """Scale gamma = s.y / y.M^-1 y of the last pair."""
        k = len(self) - 1
        return float(self._D[k] / self._YZ[k, k])

    def times(
        self, g: FloatArray, z: FloatArray, gamma: float, solve: Callable[[FloatArray], FloatArray]
    ) -> FloatArray:
        """Return B g, given z = M^-1 g, in compact form; ``solve`` multiplies by M^-1."""
        k = len(self)
        if not k:
            return gamma * z
        R = self._R[:k, :k]
        last = R @ self.S.dots(g)
        middle = self._D[:k] * last + gamma * (self._YZ[:k, :k] @ last - self.Y.dots(z))
        out = solve(g - self.Y.combine(last))
        out *= gamma
        out += self.S.combine(R.T @ middle)
        return out


def _last_step(problem: Problem, g: FloatArray, size: float) -> Step:
    """Newton step of the intercept alone: its dual point is feasible, and the gap is that of the weights' gradient."""
    step = np.zeros(problem.order)
    h = problem.curvature_sum() if problem.fit_intercept else 0.0
    step[-1] = -g[-1] / h if h > 0.0 else 0.0
    return step, -g[-1] * float(step[-1]), size * size


class QuasiNewton:
    """L-BFGS direction; ``fallback`` takes over if more than ``longest`` further steps are predicted."""

    def __init__(
        self, fallback: Direction, seed: int, longest: float, sampled: Sampled | None = None
    ) -> None:
        self._fallback, self._seed, self._longest = fallback, seed, longest
        self._sampled = sampled
        self._inverse: Preconditioner | None = None  # inverse of the sample's Hessian
        self._start: _Start | None = None
        self._pairs = _Pairs(0, 0)
        self._last: tuple[FloatArray, FloatArray, FloatArray] | None = None  # point, g, M^-1 g
        self._sizes: list[float] = []  # |g| so far
        self._slow = 0
        self.steps = 0

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        problem = run.problem
        if problem.lam == 0.0 or self.steps < 0:
            return self._fallback(run, theta, value, g)
        if self._start is None:
            pairs = problem.data.n_entries // (PAIR * max(1, problem.data.d))
            if not pairs and problem.data.location is not Location.CLUSTER:
                self.steps = -1  # conjugate gradients take more sweeps but less time
                return self._fallback(run, theta, value, g)
            first = _start(problem, theta, g, self._seed, self._sampled)
            diagonal, p, q = first.inverse
            stored = DiagonalInverse(run.stored(diagonal), None if p is None else run.stored(p), q)
            self._start = first._replace(mu=run.stored(first.mu), inverse=stored)
            del first, diagonal, p, stored
            on_disk = problem.data.location is Location.DISK
            self._pairs = _Pairs(problem.order, min(MEMORY, max(LEAST_MEMORY, pairs)), on_disk)
        self.steps += 1
        mu = self._start.mu
        slope = centre_gradient(g, mu)
        mapped_vectors.release(g)  # here and below: saves memory if the rows are on disk
        size = math.sqrt(dot(slope[:-1], slope[:-1]))
        self._sizes.append(size)
        goal = math.sqrt(2.0 * problem.lam * run.stop.tol * abs(value))
        if self._too_slow(size, goal) and not self._improve(problem, theta):
            self.steps = -1
            return self._fallback(run, theta, value, g)
        z = self._solve(slope)
        self._remember(run, theta, slope, z)
        left = math.hypot(size, self._start.error * float(g[-1]))  # after the intercept's step
        if left * left <= CLOSED * goal * goal:
            return _last_step(problem, g, left)
        step, decrement = self._step(slope, z)
        step[-1] -= dot(mu, step[:-1])
        mapped_vectors.release(mu)
        return step, decrement, math.inf

    def improve_accuracy(self) -> bool:
        """Change to the fallback; if it is in use, improve its accuracy."""
        if self.steps < 0 or self._start is None:
            return self._fallback.improve_accuracy()
        self.steps = -1
        return True

    def _too_slow(self, size: float, goal: float) -> bool:
        """Return whether PATIENCE predictions in a row exceed the allowed steps, or a cheap better M is promising."""
        assert self._start is not None
        better = self._sampled if self._inverse is None else None
        if better is not None and self._start.at_once:
            return True
        steps = max(WINDOW, len(self._sizes) // 2)
        if len(self._sizes) <= steps or size <= goal:
            return False
        rate = math.log(self._sizes[-1 - steps] / size) / steps
        left = math.log(size / goal) / rate if rate > 0.0 else math.inf
        allowed = self._longest if better is None else better.price + REST
        # Allow fewer remaining steps the more have been made: the predictions were too optimistic.
        allowed = max(REST, allowed - 0.5 * self.steps)
        self._slow = self._slow + 1 if left > allowed else 0
        return self._slow >= PATIENCE

    def _improve(self, problem: Problem, theta: FloatArray) -> bool:
        """Use the Hessian of the sample as M; False if there is none or it is already in use."""
        if self._sampled is None or self._inverse is not None:
            return False
        self._sampled.refresh(theta)
        self._inverse = self._sampled(problem)
        self._sizes, self._slow = self._sizes[-1:], 0
        self._pairs.change_metric(self._solve)
        if self._last is not None:
            here, slope, _ = self._last
            self._last = here, slope, self._solve(slope)
        return True

    def _solve(self, v: FloatArray) -> FloatArray:
        """Return M^-1 v."""
        assert self._start is not None
        out = self._start.inverse(v)
        if self._inverse is not None:
            out[:-1] = self._inverse(np.ascontiguousarray(v[:-1]))
        return out

    def _remember(
        self, run: Run[Problem], theta: FloatArray, slope: FloatArray, z: FloatArray
    ) -> None:
        """Store the last pair of changes if its curvature s.y is positive beyond rounding."""
        assert self._start is not None
        here = theta.copy()
        here[-1] += dot(self._start.mu, theta[:-1])
        mapped_vectors.release(theta)
        mapped_vectors.release(self._start.mu)
        if self._last is not None:
            new = here, slope, z
            s, y, change = (np.subtract(a, b, out=b) for a, b in zip(new, self._last, strict=True))
            if dot(s, y) > 1e-12 * math.sqrt(dot(s, s) * dot(y, y)):
                self._pairs.add(s, y, change)
        self._last = run.stored(here), run.stored(slope), run.stored(z)

    def _step(self, slope: FloatArray, z: FloatArray) -> tuple[FloatArray, float]:
        """Return the step -B g and the squared decrement g.B g."""
        assert self._start is not None
        if len(self._pairs):
            gamma = self._pairs.gamma
        else:
            gamma = 1.0 if self._inverse else self._start.gamma
        step = -self._pairs.times(slope, z, gamma, self._solve)
        decrement = -dot(slope, step)
        if not (decrement > 0.0 and math.isfinite(decrement)):
            self._pairs.clear()
            step = -gamma * z
            decrement = -dot(slope, step)
        return step, decrement
