"""Newton's method for smooth losses, with the Newton-dual certificate.

Problem: min lam/2 |w|^2 + sum s l(m). Each iteration solves H delta = -g, by one of the directions of
``directions.py``, and tries the unit step. The dual point ``u = -(l'(m) + l''(m) sigma dz)`` of the step
makes ``v = lam (w + delta)`` exact up to the residual of the linear solve, so that the duality gap
is the Fenchel-Young slack of the losses: fourth order in the step, and independent of 1/lam. Once the step
is short, a closing pass therefore replaces the next sweep.

If the unit step increases P, a line search brackets the zero of the derivative along delta; with this
exact search Newton's method is finite for piecewise quadratic losses (Keerthi and DeCoste 2005).
"""

from __future__ import annotations

from typing import Protocol

import numpy as np

from linsep.arrays import FloatArray
from linsep.problem import Problem, TrialPoint, dot
from linsep.solution import Linearised, Solution, Status, Stop
from linsep.solvers.newton import recession
from linsep.solvers.run import CLOSING_DECREMENT, HandOver, LimitReached, Run

FINE = 1e-15  # a squared decrement below this fraction of P is rounding noise
WRONG_CURVATURE_STEP = 0.1  # step size below which the curvatures are considered wrong
SHORT_STEP = 0.3  # step size below which a step counts as short
SEARCHES = 12  # largest number of passes of a line search
MAX_STEPS = 500
HALVINGS = 2.0 ** -np.arange(8.0)[::-1]  # first step sizes of a line search

Step = tuple["FloatArray", float, float]  # delta, the squared decrement, |r|^2
Known = tuple["FloatArray", "FloatArray"]  # P and its derivative at some steps


class Attempt(Protocol):
    """Choose the next point and evaluate it in one pass: closing sums, gradient, and the objective along the step."""

    def __call__(
        self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray, dual: Linearised
    ) -> TrialPoint:
        """Return the results of the pass."""
        ...


class Direction(Protocol):
    """Solve H delta = -g at theta, where the last sweep stored the curvatures."""

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        """Return the step, the squared decrement -g.delta, and |r|^2 of the residual r = H delta + g (inf: unknown)."""
        ...

    def improve_accuracy(self) -> bool:
        """Change to a more accurate direction after a step that did not decrease P; False if there is none."""
        ...


def exact_step(
    run: Run[Problem],
    theta: FloatArray,
    delta: FloatArray,
    slope: float,
    known: Known | None = None,
) -> float:
    """Minimise P along theta + t delta, t in (0, 1], and return t: a few passes with eight step sizes each.

    The derivative increases from ``slope`` < 0; its zero is bracketed by equidistant points and the secant, which
    is exact once the bracket lies within one piece of a piecewise quadratic. On a cluster the values ``known``
    at HALVINGS give the bracket, and the secant step is taken without further passes.
    """
    a, b, fa, fb = 0.0, 1.0, slope, np.inf
    steps = HALVINGS
    best = (np.inf, 0.0)
    for _ in range(SEARCHES):
        run.check_limits()
        values, slopes = known or run.problem.along(theta, delta, steps)
        values = np.where(np.isfinite(values), values, np.inf)
        k = int(np.argmin(values))
        best = min(best, (float(values[k]), float(steps[k])))
        rising = np.flatnonzero(~(slopes < 0))
        first = int(rising[0]) if len(rising) else len(steps)
        if first > 0:
            a, fa = float(steps[first - 1]), float(slopes[first - 1])
        if first < len(steps):
            b, fb = float(steps[first]), float(slopes[first])
        elif fb == np.inf:
            return 1.0  # P still decreases at the unit step
        if min(-fa, abs(fb)) <= -1e-9 * slope or b - a <= 1e-12 * b:
            return a if -fa <= abs(fb) else b
        if known is not None and a > 0.0:
            return a - fa * (b - a) / (fb - fa) if np.isfinite(fb) else a
        known = None
        steps = a + (b - a) * np.arange(1, 8) / 8
        if np.isfinite(fb):
            steps = np.unique(np.append(steps, a - fa * (b - a) / (fb - fa)))
    return best[1]


class _Curvatures:
    """Choice of the curvatures for the next step, for losses with straight tails.

    Second derivatives, unless all vanish while the gradient does not, or led to a short step: then secant curvatures
    (a majorant, so each step decreases P) for a few steps, twice as many each time.
    """

    def __init__(self, needed: bool) -> None:
        self.needed = needed
        self.blend = 0.0
        self._hold, self._left = 1, 0

    def to_secant(self) -> bool:
        """Switch to secant curvatures; False if they are not needed or already in use."""
        if not self.needed or self.blend:
            return False
        self.blend, self._left, self._hold = 1.0, self._hold, min(16, 2 * self._hold)
        return True

    def after_step(self, length: float, tiny: bool) -> bool:
        """Count the step; return whether the next one needs other curvatures."""
        if not self.blend:
            return length < WRONG_CURVATURE_STEP and self.to_secant()
        self._left -= 1
        if self._left > 0 and not tiny:
            return False
        self.blend = 0.0
        return True


def _no_curvature(problem: Problem, g: FloatArray) -> bool:
    """Return whether the intercept has a nonzero gradient but no row has curvature. No pass over X."""
    if not problem.loss.straight_tails or not problem.fit_intercept or g[-1] == 0.0:
        return False
    return problem.curvature_sum() == 0.0


def solve(
    problem: Problem,
    theta: FloatArray,
    stop: Stop,
    direction: Direction,
    attempt: Attempt | None = None,
) -> Solution:
    """Run Newton's method from theta; ``attempt``, if given, chooses each point and evaluates it in one pass."""
    run = Run(problem, stop)
    theta = theta.copy()
    dual = Linearised(theta.reshape(-1, 1), np.zeros((len(theta), 1)))
    status = Status.WORKING_PRECISION
    curvatures = _Curvatures(problem.loss.straight_tails)
    short_steps, began = 0, problem.passes
    try:
        with run.in_time():
            theta, value, g = problem.start(theta)
            run.record(value)
            for _ in range(MAX_STEPS):
                run.check_limits()
                if not curvatures.blend and _no_curvature(problem, g) and curvatures.to_secant():
                    value, g = problem.value_gradient(theta, curvatures.blend)
                g = run.stored(g)
                delta, decrement, left = found = direction(run, theta, value, g)
                tried = None
                if not curvatures.blend:
                    dual = Linearised(theta.reshape(-1, 1), delta.reshape(-1, 1))
                    closed, tried = _try_to_close(run, theta, value, g, found, dual, attempt)
                    dual = run.to_file(dual)
                    if closed:
                        status = Status.CERTIFIED
                        break
                run.check_limits()
                tiny = abs(decrement) <= FINE * value
                length, trial, new_value, g = _advance(
                    run, theta, value, g, found, curvatures, tried
                )
                del found, delta, tried  # reduces peak memory during the next pass
                if tiny or new_value < value:
                    theta, value = run.stored(trial), new_value
                    run.record(value)
                    recession.refuse_separated(problem, theta, value)
                    ended = tiny and not (left == np.inf and direction.improve_accuracy())
                    if not curvatures.blend and (ended or value == 0.0):
                        break
                    changed = curvatures.after_step(length, tiny)
                    short_steps += length < SHORT_STEP
                    if _hands_over(stop, short_steps, problem.passes - began):
                        raise HandOver
                else:
                    changed = direction.improve_accuracy() or curvatures.to_secant()
                    if not changed:
                        break
                del trial
                if changed:
                    value, g = problem.value_gradient(theta, curvatures.blend)
    except LimitReached as limit:
        status = limit.status
    if status is Status.WORKING_PRECISION:
        status = _final_status(run, theta, dual)
    return run.solution(status, theta, dual)


def _hands_over(stop: Stop, short_steps: int, passes: float) -> bool:
    """Return whether so many steps were short, after so many passes, that another method takes over."""
    most = stop.max_short_steps
    return most is not None and short_steps >= most and passes >= stop.short_step_passes


def _final_status(run: Run[Problem], theta: FloatArray, dual: Linearised) -> Status:
    """Return the status after no step decreases P; raise if there is no minimiser."""
    recession.refuse_receding(run.problem, theta)
    closed = run.problem.lam > 0.0 and run.close_final(theta, dual)
    return Status.CERTIFIED if closed else Status.WORKING_PRECISION


def _try_to_close(
    run: Run[Problem],
    theta: FloatArray,
    value: float,
    g: FloatArray,
    step: Step,
    dual: Linearised,
    attempt: Attempt | None,
) -> tuple[bool, TrialPoint | None]:
    """Return whether the gap closes at the point of ``attempt`` (also returned), or after a short step."""
    if attempt:
        tried = attempt(run, theta, value, g, dual)
        return run.close(tried.at, dual, tried.sums), tried
    delta, decrement, left = step
    short = _short(run.problem, run.stop, value, decrement, left)
    return short and run.close(theta + delta, dual), None


def _short(problem: Problem, stop: Stop, value: float, decrement: float, left: float) -> bool:
    """Return whether step and residual are so small that the dual point of the step may close the gap."""
    # The gap is proportional to the square of the squared decrement.
    near = max(CLOSING_DECREMENT, min(0.05, float(np.sqrt(2 * stop.tol))))
    if problem.lam == 0.0 or 0.5 * decrement > near * value:
        return False
    return left <= 2 * problem.lam * stop.tol * value


def _advance(
    run: Run[Problem],
    theta: FloatArray,
    value: float,
    g: FloatArray,
    step: Step,
    curvatures: _Curvatures,
    tried: TrialPoint | None,
) -> tuple[float, FloatArray, float, FloatArray]:
    """Take the unit step, or a line search if it increases P; return step size, point, value and gradient.

    If a point was already ``tried``, it replaces the unit step. If the step is not Newton's (its residual is unknown),
    the zero of the secant of the derivative is tried before the line search.
    """
    delta, decrement, left = step
    length, trial, known = 1.0, theta + delta, None
    if tried is not None:
        trial, new_value, new_g, known = tried.at, tried.value, tried.g, tried.along
        delta = trial - theta
        decrement = -dot(g, delta)
    else:
        new_value, new_g = run.problem.value_gradient(trial, curvatures.blend)
    enough = 1e-4 * decrement
    if decrement > FINE * value and not new_value <= value - enough:
        rise = dot(new_g, delta)
        if left == np.inf and 0.0 < rise < np.inf:
            length = decrement / (decrement + rise)
            trial = theta + length * delta
            new_value, new_g = run.problem.value_gradient(trial, curvatures.blend)
        if length == 1.0 or not new_value <= value - length * enough:
            length = exact_step(run, theta, delta, -decrement, known)
            trial = theta + length * delta
            new_value, new_g = run.problem.value_gradient(trial, curvatures.blend)
    return length, trial, new_value, new_g
