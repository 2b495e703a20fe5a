"""Newton's method with a Hessian that is made once, on a pilot, and corrected by what the gradients show.

With M the pilot's Hessian and the last few changes S of theta and Y of the gradient, the step is

    delta = -S gamma - M^-1 (g - Y gamma),     gamma = argmin |g - Y gamma| in the norm of M^-1:

a multisecant (Anderson, type II) correction; each step costs one sweep and no n d^2 work at all. A pilot
that misses part of the data shows in a slow decrease of the gradient: then conjugate gradients take over.
Reference: Fang and Saad, Two classes of multisecant methods, 2009.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from linsep.solvers.linalg.factor import Factor

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.newton.directions import Step
    from linsep.solvers.newton.solve import Direction
    from linsep.solvers.run import Run

MEMORY = 3
SLOW = 0.5  # decrease of the gradient per step that counts as slow
PATIENCE = 3
LONGEST = 30


class Multisecant:
    """The step above; ``fallback`` takes over for good when progress is slow."""

    def __init__(self, pilot: Problem, theta: FloatArray, fallback: Direction) -> None:
        self.mu = pilot.centre()
        pilot.value_gradient(theta)
        self._factor = Factor(pilot.hessian(self.mu), definite=pilot.lam > 0)
        self._fallback = fallback
        self._gave_up = False
        self._last: tuple[FloatArray, FloatArray] | None = None
        self._changes: list[tuple[FloatArray, FloatArray]] = []
        self._norm = np.inf
        self._slow = self._calls = 0

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        if self._gave_up:
            return self._fallback(run, theta, value, g)
        mu = self.mu
        here = theta.copy()  # in the coordinates (w, c), c = b + mu.w
        here[-1] += mu @ theta[:-1]
        slope = g.copy()
        slope[:-1] -= mu * g[-1]
        if self._last is not None:
            self._changes.append((here - self._last[0], slope - self._last[1]))
            del self._changes[:-MEMORY]
        self._last = here, slope
        plain = self._factor.apply(slope)
        norm = float(np.sqrt(max(float(slope @ plain), 0.0)))
        shrink = norm / self._norm
        self._calls += 1
        self._slow = self._slow + 1 if shrink > SLOW else 0
        if self._slow >= PATIENCE or self._calls > LONGEST:
            self._gave_up = True
            return self._fallback(run, theta, value, g)
        self._norm = norm
        step = self._corrected(slope, plain)
        decrement = -float(slope @ step)
        if not decrement > 0:
            self._changes.clear()
            step, decrement = -plain, norm * norm
        step[-1] -= mu @ step[:-1]
        # The residual of the linear system after this step will be about as much smaller as last time.
        left = min(shrink, 1.0) ** 2 * float(g[:-1] @ g[:-1])
        return step, decrement, left

    def _corrected(self, slope: FloatArray, plain: FloatArray) -> FloatArray:
        if not self._changes:
            return -plain
        S = np.array([s for s, _ in self._changes]).T
        Y = np.array([y for _, y in self._changes]).T
        MY = np.column_stack([self._factor.apply(np.ascontiguousarray(y)) for y in Y.T])
        gamma = np.linalg.lstsq(Y.T @ MY, MY.T @ slope, rcond=1e-10)[0]
        out: FloatArray = -S @ gamma - (plain - MY @ gamma)
        return out
