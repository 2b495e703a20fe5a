"""Newton's method for smooth losses, with the Newton-dual certificate.

Problem: min lam/2 |w|^2 + sum s l(m). Each step solves H delta = -g, by one of the directions of
``directions.py``, and tries the unit step. The dual point ``u = -(l'(m) + l''(m) sigma dz)`` that belongs to the
step makes ``v = lam (w + delta)`` exact up to the residual of the linear solve, so that the duality gap
is the Fenchel-Young slack of the losses: fourth order in the step, and free of 1/lam. So the pass that
closes the gap is tried in place of the next sweep once the step is short.

When P would rise, the step is found by bracketing the zero of the derivative along delta; with this
exact search Newton's method is finite for piecewise quadratic losses (Keerthi and DeCoste 2005).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol

import numpy as np

from linsep.solution import Solution, Status, Stop
from linsep.solvers import recession
from linsep.solvers.run import NEAR, LimitReached, Run, linearised

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray

FINE = 1e-15  # a decrement below this share of P is rounding noise
SHORT = 0.1  # length of a step that shows the curvatures to be wrong
MAX_STEPS = 500


class Direction(Protocol):
    """Solves H delta = -g at theta, where the last sweep was made."""

    def __call__(
        self, run: Run, theta: FloatArray, value: float, g: FloatArray
    ) -> tuple[FloatArray, float, float]:
        """Return the step, the squared decrement -g.delta, and |r|^2 of its residual r = H delta + g."""
        ...


def exact_step(run: Run, theta: FloatArray, delta: FloatArray, slope: float) -> float:
    """Minimiser of P along theta + t delta for t in (0, 1]: three passes, eight steps in each."""
    a, b, fa = 0.0, 1.0, slope
    best = (np.inf, 0.0)
    steps = 2.0 ** -np.arange(8.0)[::-1]
    for _ in range(3):
        run.check_limits()
        values, slopes = run.problem.along(theta, delta, steps)
        k = int(np.nanargmin(np.where(np.isfinite(values), values, np.inf)))
        best = min(best, (float(values[k]), float(steps[k])))
        rising = np.flatnonzero(~(slopes < 0))
        first = int(rising[0]) if len(rising) else len(steps)
        if first > 0:
            a, fa = float(steps[first - 1]), float(slopes[first - 1])
        if first == len(steps):
            if b == 1.0 and a == 1.0:
                break
        else:
            b = float(steps[first])
            fb = float(slopes[first])
            if np.isfinite(fb) and fb > 0 and b - a < 1e-3 * b:
                return a - fa * (b - a) / (fb - fa)
        steps = a + (b - a) * np.arange(1, 9) / 9
    return best[1]


class _Curvatures:
    """Which curvatures the next step uses, for losses with straight tails.

    Newton's own, unless they are missing where there is slope, or led to a short step: then secant ones
    (a majorant: each step descends) for a few steps, twice as many each time.
    """

    def __init__(self, needed: bool) -> None:
        self.needed = needed
        self.blend = 0.0
        self._hold, self._left = 1, 0

    def to_secant(self) -> bool:
        """Switch, if that is a way out."""
        if not self.needed or self.blend:
            return False
        self.blend, self._left, self._hold = 1.0, self._hold, min(16, 2 * self._hold)
        return True

    def stepped(self, tiny: bool) -> bool:
        """Count a secant step; says whether it is time for Newton's own again."""
        self._left -= 1
        if self._left > 0 and not tiny:
            return False
        self.blend = 0.0
        return True


def _ignores(problem: Problem, g: FloatArray, delta: FloatArray) -> bool:
    """Whether the step leaves an intercept alone that has a gradient: no row has curvature."""
    return bool(problem.fit_intercept and g[-1] != 0.0 and not delta.any())


def solve(problem: Problem, theta: FloatArray, stop: Stop, direction: Direction) -> Solution:
    """Newton's method from theta."""
    run = Run(problem, stop)
    theta = theta.copy()
    dual = linearised(theta, np.zeros_like(theta))
    status = Status.WORKING_PRECISION
    curvatures = _Curvatures(problem.straight_tails)
    try:
        value, g = problem.start(theta)
        run.record(value)
        for _ in range(MAX_STEPS):
            run.check_limits()
            delta, decrement, left = direction(run, theta, value, g)
            if _ignores(problem, g, delta) and curvatures.to_secant():
                value, g = problem.value_gradient(theta, curvatures.blend)
                continue
            if curvatures.blend == 0.0:
                dual = linearised(theta, delta)
                if _short(problem, stop, value, decrement, left) and run.close(theta + delta, dual):
                    status = Status.CERTIFIED
                    break
            run.check_limits()
            tiny = decrement <= FINE * value
            length, trial, new_value, new_g = _advance(run, theta, value, delta, decrement, curvatures)
            if not tiny and not new_value < value:
                if not curvatures.to_secant():
                    break
                value, g = problem.value_gradient(theta, curvatures.blend)
                continue
            theta, value, g = trial, new_value, new_g
            run.record(value)
            recession.refuse_separated(problem, theta)
            if curvatures.blend:
                if curvatures.stepped(tiny):
                    value, g = problem.value_gradient(theta)
                continue
            if tiny or value == 0.0:
                break
            if length < SHORT and curvatures.to_secant():
                value, g = problem.value_gradient(theta, curvatures.blend)
    except LimitReached as limit:
        status = limit.status
    if status is Status.WORKING_PRECISION:
        recession.refuse_receding(problem, theta)
    return run.solution(status, theta, dual)


def _short(problem: Problem, stop: Stop, value: float, decrement: float, left: float) -> bool:
    """Whether the step is so short, and its residual so small, that its dual point may close the gap."""
    if problem.lam == 0.0 or 0.5 * decrement > NEAR * value:
        return False
    return left <= 2 * problem.lam * stop.tol * value


def _advance(
    run: Run,
    theta: FloatArray,
    value: float,
    delta: FloatArray,
    decrement: float,
    curvatures: _Curvatures,
) -> tuple[float, FloatArray, float, FloatArray]:
    """The unit step, or the exact one when P would rise: length, point, value and gradient there."""
    trial, length = theta + delta, 1.0
    new_value, g = run.problem.value_gradient(trial, curvatures.blend)
    if decrement > FINE * value and not new_value <= value - 1e-4 * decrement:
        length = exact_step(run, theta, delta, -decrement)
        trial = theta + length * delta
        new_value, g = run.problem.value_gradient(trial, curvatures.blend)
    return length, trial, new_value, g
