"""Prox-Newton for a smooth loss with an L1 penalty, on features few enough for a Hessian.

Problem: min F(w, b) + l1 |w|_1 with F = l2/2 |w|^2 + sum s l(m). Each step minimises the quadratic model of F plus the
penalty: the intercept is eliminated exactly, coordinate descent on the Hessian finds support and signs (without reading
X), and a linear solve on the support makes the step exact. The Newton-dual point ``u = -(l'(m) + l''(m) sigma dz)``
then satisfies the optimality conditions of the penalised problem on these features up to rounding, and the duality gap
is the Fenchel-Young slack of the losses (as in ``solvers/newton/solve.py``).

On a cluster each step takes one round, which computes closing sums, gradient and Hessian, and evaluates shorter steps.

Reference: Lee, Sun and Saunders, Proximal Newton-type methods for minimizing composite functions, 2014.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Location
from linsep.penalties import ElasticNet
from linsep.problem import Problem, TrialPoint, dot
from linsep.solvers.linalg.factor import eliminate_intercept, solve_spd
from linsep.solvers.newton.cluster import NonquadraticProbe
from linsep.solvers.run import linearised

CLOSING_DECREASE = (
    0.05  # half the predicted decrease, relative to P, below which the gap may be closed
)
MAX_STEPS = 100
MAX_DESCENT_ROUNDS = 30  # rounds of descent and solves for one quadratic model
SWEEPS = 12  # sweeps of descent in a round
FINE = 1e-13  # a decrease below this fraction of P is rounding noise
POLISHES = 4  # steps made after the decrease is rounding noise
DAMPINGS = 8  # dampings of one model, each ten times the last
WRONG_MODEL_STEP = 0.2  # step size below which the model is considered wrong
# Secant steps: at most so many, while the curvature is below this fraction of its bound, and until P decreases by less
# than this fraction.
SECANTS, CURVED, SLOW = 60, 0.5, 1e-4
SUPPORTS = 30  # supports tried in a round
SHORTER = 0.6 ** np.arange(1.0, 17.0)  # step sizes that are tried if P does not decrease
_TINY = 1e-12  # relative increase of the diagonal
_KINKS = 200  # largest number of kinks evaluated along a step


@dataclass(frozen=True, eq=False)
class Outcome:
    """Result; (base, step) defines the Newton-dual point, and ``gap`` is relative and for these features only."""

    theta: FloatArray
    base: FloatArray
    step: FloatArray
    gap: float
    sums: FloatArray | None = None  #: sums of the closing pass at theta


def total(problem: Problem, theta: FloatArray, smooth: float) -> float:
    """Return P = F + l1 |w|_1 from the value F of its smooth part."""
    return smooth + problem.penalty.l1 * float(np.abs(theta[:-1]).sum())


def direction(
    H: FloatArray,
    g: FloatArray,
    theta: FloatArray,
    mu: FloatArray,
    penalty: ElasticNet,
    exact: bool,
) -> FloatArray:
    """Return the step (w, b) to the minimum of the quadratic model plus l1 |w|_1; H is in coordinates (w, b + mu.w).

    Without an L2 penalty columns may be dependent: a tiny curvature around w makes the minimum unique.
    """
    w = theta[:-1]
    cross, corner = H[:-1, -1], float(H[-1, -1])
    q = g[:-1] - mu * g[-1]
    if corner > 0.0:
        q = q - cross * (g[-1] / corner)
    S = np.ascontiguousarray(eliminate_intercept(H))
    if penalty.l2 == 0.0:
        at = np.arange(len(S))
        S[at, at] *= 1.0 + _TINY
    x = minimise(S, q, w, penalty.l1, exact)
    delta = np.empty_like(theta)
    delta[:-1] = x - w
    change = -(g[-1] + dot(cross, delta[:-1])) / corner if corner > 0.0 else 0.0
    delta[-1] = change - dot(mu, delta[:-1]) if corner > 0.0 else 0.0
    return delta


def minimise(
    S: FloatArray, q: FloatArray, w: FloatArray, l1: float, exact: bool, sweeps: int = SWEEPS
) -> FloatArray:
    """Return the minimiser x of q'(x - w) + (x - w)'S(x - w)/2 + l1 |x|_1.

    Coordinate descent finds the support, and linear solves on it make x exact (feature-sign search: Lee, Battle, Raina
    and Ng 2007): if the solution for the current signs changes a sign, the step ends at the best kink along the way,
    and coefficients that became zero leave the support. If not ``exact``, far from the optimum, descent alone is used.
    """
    full = S @ w - q  # the gradient of the quadratic at x is S x - full
    x = w.copy()
    if not exact:
        _kernels.quadratic_cd(S, l1, 1e-3 * np.sqrt(l1), sweeps, x, q.copy())
        return x
    for _ in range(MAX_DESCENT_ROUNDS):
        slope = S @ x - full
        settled = _kernels.quadratic_cd(S, l1, 1e-7 * np.sqrt(l1), sweeps, x, slope)
        on = _on_support(S, full, x, l1)
        rest = np.abs(full - S[:, on] @ x[on])
        rest[on] = 0.0
        if rest.max(initial=0.0) <= l1 * (1 + 1e-9) or settled > 0:
            break
    return x


def _on_support(S: FloatArray, full: FloatArray, x: FloatArray, l1: float) -> IntArray:
    """Move x to the minimum over its support, which may shrink; return the final support."""
    on = np.flatnonzero(x)
    for _ in range(SUPPORTS):
        if not len(on):
            break
        signs, at = np.sign(x[on]), x[on]
        part = S[np.ix_(on, on)]
        to = solve_spd(part, full[on] - l1 * signs, definite=True)
        if not np.isfinite(to).all():
            break
        way = to - at
        turning = to * signs <= 0.0
        if not turning.any():
            x[on] = to
            break
        kinks = np.unique(at[turning] / (at[turning] - to[turning]))
        steps = np.append(kinks[kinks < 1.0], 1.0)[:_KINKS]
        values = (
            0.5 * steps**2 * dot(way, part @ way)
            + steps * dot(way, part @ at - full[on])
            + l1 * np.abs(at + steps[:, None] * way).sum(axis=1)
        )
        best = steps[int(np.argmin(values))]
        moved = at + best * way
        moved[turning & (np.abs(moved) <= 1e-14 * np.abs(at))] = 0.0
        if not values.min() < l1 * np.abs(at).sum() or best == 0.0:
            break
        x[on] = moved
        on = on[moved != 0.0]
    return on


def solve(
    problem: Problem,
    theta: FloatArray,
    tol: float,
    check: Callable[[], None],
    steps: int = MAX_STEPS,
    mu: FloatArray | None = None,
) -> Outcome:
    """Solve from theta until the relative gap on these features is at most tol, or there is no progress.

    ``mu`` is a centre of the rows, by default ``problem.centre()``.
    """
    state = _State(problem, theta, problem.centre() if mu is None else mu)
    if problem.loss.straight_tails and problem.native:
        state.majorise(check)
    best, least = state.outcome(), np.inf
    # on a cluster a round costs more than the exact minimum of a model
    exact, polished = state.remote, 0
    constant = problem.loss.constant_curvature
    known: FloatArray | None = None
    for _ in range(steps):
        check()
        H = problem.hessian(state.mu) if known is None else known.copy()
        if constant and known is None:
            known = H.copy()
        delta, decrease = state.propose(H, exact)
        near = decrease <= 2 * CLOSING_DECREASE * state.value
        tried = None
        if (near or state.remote) and exact and state.damping == 0.0:
            trial = state.theta + delta
            sums, tried = state.close(delta)
            primal, lower = problem.values(trial, sums)
            gap = (primal - lower) / max(abs(primal), abs(lower), 1e-300)
            if gap < best.gap:
                best, least = Outcome(trial, state.theta, delta, gap, sums), primal
            if gap <= tol or polished == POLISHES:
                break
            if decrease <= FINE * state.value:  # P cannot decrease visibly, but the gap may
                state.move(trial, tried)
                polished += 1
                continue
        if not state.advance(H, delta, decrease, exact, check, tried):
            if exact:
                break
            exact, state.damping = True, 0.0
            problem.value_gradient(state.theta)  # trials have overwritten the curvatures
            continue
        exact = exact or near
        if not np.isfinite(best.gap):
            best = state.outcome()
    else:  # another call may continue: a lower point is a better start than the one with the smallest gap
        if state.value < least:
            return state.outcome()
    return best


class _State:
    """Iterate with objective, gradient, and the damping of the next model.

    Rows far on their side have no curvature, and the step of such a model is far too long. If P does not decrease, a
    multiple of the curvature bound is added to the diagonal (Levenberg and Marquardt), less after every good step.
    """

    def __init__(self, problem: Problem, theta: FloatArray, mu: FloatArray) -> None:
        self.problem, self.mu = problem, mu
        self.remote = problem.data.location is Location.CLUSTER
        if self.remote:
            problem.expect_hessian(mu, single=False)
        self.theta = theta.copy()
        smooth, self.g = problem.value_gradient(self.theta)
        self.value = total(problem, self.theta, smooth)
        self.damping = 0.0
        self._bound: FloatArray | None = None

    def outcome(self) -> Outcome:
        """Return the current point as a result without a gap."""
        return Outcome(self.theta, self.theta, np.zeros_like(self.theta), np.inf)

    def propose(self, H: FloatArray, exact: bool) -> tuple[FloatArray, float]:
        """Return the step to the minimum of the damped model, and the predicted decrease of P to first order."""
        if self.damping:
            H = H.copy()
            at = np.arange(len(H) - 1)
            H[at, at] += self.damping * self.bound(H)
        penalty = self.problem.penalty
        delta = direction(H, self.g, self.theta, self.mu, penalty, exact)
        w = self.theta[:-1]
        grown = float(np.abs(w + delta[:-1]).sum() - np.abs(w).sum())
        return delta, -(dot(self.g, delta) + penalty.l1 * grown)

    def bound(self, H: FloatArray) -> FloatArray:
        """Diagonal of the Hessian with every curvature at its bound; if unbounded, from the current Hessian."""
        if self._bound is None:
            squares, sums, count = self.problem.moments(weighted=False)
            weight = self.problem.data.weight
            most = self.problem.loss.curvature_bound * (1.0 if weight is None else weight.max())
            centred = np.maximum(squares - self.mu * (2.0 * sums - count * self.mu), 0.0)
            self._bound = most * centred if np.isfinite(most) else np.zeros(0)
        return self._bound if len(self._bound) else np.diag(H)[:-1] + np.trace(H)

    def majorise(self, check: Callable[[], None]) -> None:
        """Make steps with secant curvatures while few rows have curvature.

        A row on a straight tail has a slope but no curvature. The parabola of curvature |l'(m)/(m - centre)| through
        its point is a majorant of the loss, so the minimum of the model never increases P (iteratively reweighted
        least squares).
        """
        problem = self.problem
        bound = problem.loss.curvature_bound * max(problem.data.total_weight(), 1e-300)
        for _ in range(SECANTS):
            check()
            if problem.moments()[2] >= CURVED * bound:
                return
            before = self.value
            problem.value_gradient(self.theta, blend=1.0)
            delta, _ = self.propose(problem.hessian(self.mu), exact=False)
            if not self._take(self.theta + delta, 0.0) or before - self.value <= SLOW * before:
                break
        problem.value_gradient(self.theta)

    def advance(
        self,
        H: FloatArray,
        delta: FloatArray,
        decrease: float,
        exact: bool,
        check: Callable[[], None],
        tried: TrialPoint | None = None,
    ) -> bool:
        """Take the step, shortened or damped if necessary; return whether P decreased."""
        for _ in range(DAMPINGS):
            if self._take(self.theta + delta, decrease, tried):
                self.damping = 0.1 * self.damping if self.damping > 1e-5 else 0.0
                return True
            if decrease <= FINE * self.value:
                return False
            length = self._shorter(delta, tried)
            tried = None
            if length >= WRONG_MODEL_STEP and self._take(self.theta + length * delta, 0.0):
                return True
            check()
            self.damping = max(10.0 * self.damping, 1e-4)
            delta, decrease = self.propose(H, exact)
        return False

    def close(self, delta: FloatArray) -> tuple[FloatArray, TrialPoint | None]:
        """Return the closing sums after the step; on a cluster also the gradient there and P at shorter steps."""
        problem, trial, dual = self.problem, self.theta + delta, linearised(self.theta, delta)
        if not self.remote:
            return problem.closing(trial, dual), None
        no_rows = NonquadraticProbe(problem.loss, self.theta, delta, 0, problem.data.n)
        tried, _ = problem.closing_with_trial(trial, dual, SHORTER, no_rows, no_rows.rows_of)
        return tried.sums, tried

    def move(self, trial: FloatArray, tried: TrialPoint | None) -> None:
        """Move to the trial point without testing P."""
        self.value, self.g = self._value_gradient(trial, tried)
        self.theta = trial

    def _value_gradient(
        self, trial: FloatArray, tried: TrialPoint | None
    ) -> tuple[float, FloatArray]:
        """Return P and the gradient of its smooth part: one pass, unless the point was already tried."""
        found = (tried.value, tried.g) if tried else self.problem.value_gradient(trial)
        return total(self.problem, trial, found[0]), found[1]

    def _take(self, trial: FloatArray, decrease: float, tried: TrialPoint | None = None) -> bool:
        value, g = self._value_gradient(trial, tried)
        if not value < self.value or not value <= self.value - 1e-4 * decrease:
            return False
        self.theta, self.value, self.g = trial, value, g
        return True

    def _shorter(self, delta: FloatArray, tried: TrialPoint | None) -> float:
        """Return the best of the step sizes SHORTER along delta. One pass."""
        values, _ = tried.along if tried else self.problem.along(self.theta, delta, SHORTER)
        w, dw = self.theta[:-1], delta[:-1]
        values = values + self.problem.penalty.l1 * np.abs(w + SHORTER[:, None] * dw).sum(axis=1)
        values = np.where(np.isfinite(values), values, np.inf)
        return float(SHORTER[int(np.argmin(values))])
