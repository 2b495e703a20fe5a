"""Newton's method in the span of the rows; semismooth if the conjugate is linear or quadratic on an interval.

With K the Gram matrix of the rows, w = X'a, m = sigma (K a + b) + offset, the loss is smoothed by a proximal term about
a dual point u0 (hinge and absolute loss; the others are already smooth, with smoothing 1/max l'' and u0 = 0)::

    u(m) = (centre - m)/smoothing + u0, clipped to [lo, hi],    stationary: lam a = s sigma u(m), sum s sigma u(m) = 0.

Newton's method treats the rows F inside the interval as free, fixes the others at their clipped values, and solves

    (K_FF/lam + diag(smoothing/s)) p_F + b = sigma (centre - offset + smoothing u0) - K_FR p_R/lam,
    sum p = 0,    p = s sigma u:

with one Cholesky factor of the order of F. The objective is piecewise quadratic along a step, so its minimum there is
found exactly; when F no longer changes, the iterate is the solution. The proximal term is then centred at the u found
and its smoothing reduced: the gap of the loss with the kink is at most sum s smoothing |u - u0|. A warm start from the
model of another C leaves few steps.

Other smooth losses have a curvature h = s l''(m) for each row. With r = lam a + s sigma l'(m), R = diag(h)^1/2 and
t = K da + db the change of the scores, the Newton step lam da = -(r + h t), sum lam (a + da) = 0 is

    (lam I + R K R) R t = R (lam db - K r),

again with one Cholesky factor, of the order of the rows. It never divides by h, and lam (a + da) = s sigma u is the
Newton-dual point, whose gap is the Fenchel-Young slack of the losses alone.

Chapelle, Training a support vector machine in the primal, 2007. Rockafellar, Augmented Lagrangians and applications of
the proximal point algorithm, 1976. Li, Sun and Toh, A highly efficient semismooth Newton augmented Lagrangian method,
2018.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from scipy.linalg.lapack import dpotrf, dpotrs

from linsep.arrays import BoolArray, FloatArray
from linsep.interrupts import lapack
from linsep.losses import Loss, zero_margin

MAX_STEPS = 60  # Newton steps for one proximal term
MAX_PROXIMAL_TERMS = 14
# Smoothing of the proximal terms relative to |x|^2/lam: the first, the factor from one to the next, the smallest.
FIRST, NEXT, LEAST = 1.0, 0.1, 1e-12
POLISH_SMOOTHING = 1e-5  # first relative smoothing when an approximate solution is polished
POLISHES, EXACT = 3, 0.1  # proximal terms of polishing; fraction of tol at which it ends
CLOSE = 1e-4  # largest relative gap of a solution that is polished
NEAR = 0.05  # half the squared decrement, relative to P, below which the gap is computed
SUFFICIENT = 1e-4  # required decrease of the objective as a fraction of the predicted one (Armijo)
SMALL = 1e-3  # relative change of the objective, as a fraction of tol, that is negligible
STRETCH = 0.03  # fraction of tol by which a soft-margin model is scaled up: see ``Found``
_HALVINGS = 60


def applies(loss: Loss) -> bool:
    """Return whether the loss has a piecewise quadratic conjugate and a kernel, and is not minimal at w = 0."""
    known = loss.conjugate_quadratic is not None and loss.native is not None
    return known and not loss.zero_at_origin


def covers(loss: Loss) -> bool:
    """Return whether this method supports the loss."""
    return applies(loss) or (loss.smooth and loss.convex and loss.native is not None)


@dataclass(frozen=True, eq=False)
class Span:
    """Data of a problem, without the penalty, in terms of the Gram matrix K of the rows."""

    loss: Loss
    K: FloatArray
    sigma: FloatArray
    offset: FloatArray
    weight: FloatArray
    fit_intercept: bool

    @cached_property
    def kink(self) -> FloatArray:
        """Signed score sigma z of each row at which its residual is 0."""
        return np.asarray(zero_margin(self.loss) - self.offset)


@dataclass(frozen=True, eq=False)
class Found:
    """Result: dual point, intercept, relative gap and number of Newton steps.

    The model is a = stretch s sigma u/lam, with the intercept stretch b. For the hinge ``stretch`` is slightly above 1,
    so that rounding gives rows on the kink no loss, however large C is.
    """

    u: FloatArray
    b: float
    stretch: float
    gap: float
    steps: int


class _Newton:
    """Iterate of the method: a = p/lam, b, and K a."""

    def __init__(
        self, span: Span, lam: float, tol: float, check: Callable[[], None] | None
    ) -> None:
        self.span, self.lam, self.tol, self._check = span, lam, tol, check
        self.low, self.high = span.loss.domain
        self.mass = span.weight * span.sigma
        self.size = max(float(np.mean(np.diag(span.K))) / lam, 1e-300)
        self.a, self.Ka = np.zeros_like(span.sigma), np.zeros_like(span.sigma)
        self.b, self.steps = 0.0, 0
        self.stretch = 1.0 + STRETCH * tol if span.loss.soft_margin else 1.0

    def found(self) -> Found:
        """Return the current model and its gap."""
        u = self.dual()
        return Found(u, self.b, self.stretch, self.gap(u), self.steps)

    def place(self, u: FloatArray, b: float) -> None:
        """Start at the model a = s sigma u/lam of a dual point u."""
        self.a, self.b = self.mass * u / self.lam, b
        self.Ka = self.span.K @ self.a

    def _unclipped(self, smoothing: float, u0: FloatArray, Ka: FloatArray, b: float) -> FloatArray:
        """Return u before it is clipped to its interval."""
        span = self.span
        return (span.kink - span.sigma * (Ka + b)) / smoothing + u0

    def dual(self) -> FloatArray:
        """Return u from a = s sigma u/lam; from the margins it would have their errors divided by the smoothing."""
        live = self.mass != 0.0
        u = np.divide(self.lam * self.a, self.mass, out=np.zeros_like(self.a), where=live)
        cut: FloatArray = np.clip(u, self.low, self.high)
        return cut

    def minimise(self, smoothing: float, u0: FloatArray) -> bool:
        """Make Newton steps until the set of free rows no longer changes; return whether that happened."""
        for _ in range(MAX_STEPS):
            if self._check is not None:
                self._check()
            self.steps += 1
            c = self._unclipped(smoothing, u0, self.Ka, self.b)
            free = (c > self.low) & (c < self.high)
            found = self._target(smoothing, u0, np.clip(c, self.low, self.high), free)
            if found is None:
                return False
            a, b = found
            Ka = self.span.K @ a
            if not np.isfinite(b + float(a @ Ka)):
                return False
            t, gain = self._length(smoothing, c, a - self.a, Ka - self.Ka, b - self.b)
            small = gain <= SMALL * self.tol * self.lam * float(a @ Ka)
            if t >= 1.0:
                self.a, self.b, self.Ka = a, b, Ka
                c = self._unclipped(smoothing, u0, Ka, b)
                if small or np.array_equal(free, (c > self.low) & (c < self.high)):
                    return True
            elif small:
                return True
            elif t <= 1e-14:
                return False
            else:
                self.a = self.a + t * (a - self.a)
                self.b += t * (b - self.b)
                self.Ka = self.Ka + t * (Ka - self.Ka)
        return False

    def _target(
        self, smoothing: float, u0: FloatArray, u: FloatArray, free: BoolArray
    ) -> tuple[FloatArray, float] | None:
        """Return the minimiser (a, b) for fixed sets of free and clipped rows; None if the factorisation fails."""
        span, lam = self.span, self.lam
        F = np.flatnonzero(free & (span.weight > 0.0))
        p = self.mass * u
        p[F] = 0.0
        if not len(F):
            b = self._intercept(smoothing, u0, span.K @ (p / lam)) if span.fit_intercept else 0.0
            return p / lam, b
        M = span.K[np.ix_(F, F)]
        M *= 1.0 / lam
        M[np.diag_indices(len(F))] += smoothing / span.weight[F]
        fixed = np.flatnonzero(p)
        rhs = span.sigma[F] * (span.kink[F] + smoothing * u0[F])
        if len(fixed):
            rhs -= span.K[np.ix_(F, fixed)] @ (p[fixed] / lam)
        factor, info = lapack(dpotrf, M.T, lower=1, overwrite_a=1, clean=0)
        if info:
            return None
        both, info = dpotrs(factor, np.stack([rhs, np.ones(len(F))], axis=1), lower=1)
        b = 0.0
        if span.fit_intercept:
            b = float((both[:, 0].sum() + p.sum()) / both[:, 1].sum())
        p[F] = both[:, 0] - b * both[:, 1]
        return p / lam, b

    def _intercept(self, smoothing: float, u0: FloatArray, Ka: FloatArray) -> float:
        """Return the optimal intercept for these scores, by bisection."""

        def slope(b: float) -> float:
            u = np.clip(self._unclipped(smoothing, u0, Ka, b), self.low, self.high)
            return float(self.mass @ u)  # decreasing in b

        reach = 1.0
        while not slope(self.b + reach) <= 0.0 <= slope(self.b - reach) and reach < 1e300:
            reach *= 4.0
        low, high = self.b - reach, self.b + reach
        for _ in range(_HALVINGS):
            middle = 0.5 * (low + high)
            low, high = (middle, high) if slope(middle) > 0.0 else (low, middle)
        return 0.5 * (low + high)

    def _length(
        self, smoothing: float, c: FloatArray, da: FloatArray, dKa: FloatArray, db: float
    ) -> tuple[float, float]:
        """Return the step size that minimises the objective along a direction, and the absolute slope at its start."""
        lam, span = self.lam, self.span
        dm = span.sigma * (dKa + db)
        first, second = lam * float(self.a @ dKa), lam * float(da @ dKa)

        def slope(t: float) -> float:
            u = np.clip(c - (t / smoothing) * dm, self.low, self.high)
            return first + t * second - float((span.weight * u) @ dm)

        start, end = slope(0.0), slope(1.0)
        if not start < 0.0:
            return (1.0 if abs(end) <= abs(start) else 0.0), abs(start)
        if end <= 1e-9 * abs(start):
            return 1.0, abs(start)
        low, high, f_low, f_high = 0.0, 1.0, start, end
        t = 1.0
        for _ in range(_HALVINGS):  # regula falsi with the Illinois modification
            t = low - f_low * (high - low) / (f_high - f_low)
            f = slope(t)
            if abs(f) <= 1e-3 * abs(start) or high - low < 1e-12:
                break
            if f < 0.0:
                low, f_low, f_high = t, f, 0.5 * f_high
            else:
                high, f_high, f_low = t, f, 0.5 * f_low
        return t, abs(start)

    def descend(self) -> bool:
        """Make Newton steps for a smooth loss until the gap closes; return whether it did."""
        for _ in range(MAX_STEPS):
            if self._check is not None:
                self._check()
            self.steps += 1
            found = self._step()
            if found is None:
                return False
            da, dKa, db, decrement = found
            value = self._value(self.Ka, self.b, float(self.a @ self.Ka))
            t, fell = self._sufficient(da, dKa, db, decrement, value)
            if t == 0.0:
                return False
            self.a, self.Ka, self.b = self.a + t * da, self.Ka + t * dKa, self.b + t * db
            if t == 1.0 and 0.5 * decrement <= NEAR * value and self.gap(self.dual()) <= self.tol:
                return True
            if not fell:
                return False
        return False

    def _value(self, Ka: FloatArray, b: float, square: float) -> float:
        """Return the objective for the scores Ka + b and |w|^2 = ``square``."""
        span = self.span
        loss = span.loss.value(span.sigma * (Ka + b) + span.offset)
        return float(span.weight @ loss) + 0.5 * self.lam * square

    def _step(self) -> tuple[FloatArray, FloatArray, float, float] | None:
        """Return the Newton step in a, K a and b, and its squared decrement; None if it cannot be computed."""
        span, lam = self.span, self.lam
        m = span.sigma * (self.Ka + self.b) + span.offset
        slope = self.mass * span.loss.slope(m)
        root = np.sqrt(span.weight * span.loss.curvature(m))
        r = lam * self.a + slope
        B = span.K * root
        B *= root[:, None]
        B[np.diag_indices(len(r))] += lam
        factor, info = lapack(dpotrf, B.T, lower=1, overwrite_a=1, clean=0)
        if info:
            return None
        right = np.stack([-root * (span.K @ r), lam * root], axis=1)
        both, info = dpotrs(factor, right, lower=1)
        db, curvature = 0.0, float(root @ both[:, 1])
        if span.fit_intercept and curvature > 0.0:
            db = -(float(slope.sum()) + float(root @ both[:, 0])) / curvature
        da = -(r + root * (both[:, 0] + db * both[:, 1])) / lam
        dKa = span.K @ da
        decrement = -(float(r @ dKa) + db * float(slope.sum()))
        return (da, dKa, db, decrement) if np.isfinite(decrement) else None

    def _sufficient(
        self, da: FloatArray, dKa: FloatArray, db: float, decrement: float, value: float
    ) -> tuple[float, bool]:
        """Backtrack by halving to a sufficient decrease; return the step size (0: none) and whether P decreased."""
        squares = [float(x @ y) for x, y in ((self.a, self.Ka), (self.a, dKa), (da, dKa))]
        if decrement <= SMALL * self.tol * abs(value):
            return 1.0, False  # the decrease is below rounding: last step
        for t in 2.0 ** -np.arange(_HALVINGS):
            square = squares[0] + t * (2.0 * squares[1] + t * squares[2])
            new = self._value(self.Ka + t * dKa, self.b + t * db, square)
            if new <= value - SUFFICIENT * t * decrement:
                return float(t), True
        return 0.0, False

    def gap(self, u: FloatArray) -> float:
        """Relative gap of the model of u; its absolute value is used because rounding may make the gap negative."""
        span, lam = self.span, self.lam
        a = self.mass * u / lam
        Ka = span.K @ a
        m = self.stretch * span.sigma * (Ka + self.b) + span.offset
        square = lam * float(a @ Ka)
        loss = float(span.weight @ span.loss.value(m))
        dual = -float(span.weight @ (span.loss.conjugate(-u) + u * span.offset)) - 0.5 * square
        primal = loss + 0.5 * self.stretch**2 * square
        off = abs(float(a.sum()) * lam * self.b) if span.fit_intercept else 0.0
        return (abs(primal - dual) + off) / max(abs(primal), 1e-300)


# A gap that is not finite is never accepted.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def reuse_if_optimal(
    span: Span, lam: float, tol: float, mass: FloatArray, b: float
) -> Found | None:
    """Return the model of a larger lam, given as u/lam and b, if its gap at this lam is at most tol; else None.

    A hinge problem without rows at the upper bound has the same solution for every smaller lam.
    """
    method = _Newton(span, lam, tol, None)
    method.place(np.clip(lam * mass, method.low, method.high), b)
    found = method.found()
    return found if found.gap <= tol else None


# A gap that is not finite is never accepted.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def polished(span: Span, lam: float, tol: float, u: FloatArray, b: float) -> Found:
    """Polish the solution of a loss with a kink; exact if its set of free rows is nearly correct."""
    method = _Newton(span, lam, tol, None)
    method.place(u, b)
    best, share = method.found(), POLISH_SMOOTHING
    for _ in range(POLISHES):
        method.minimise(share * method.size, method.dual())
        found = method.found()
        best, share = found if found.gap < best.gap else best, NEXT * share
        if best.gap <= EXACT * tol:
            break
    return best


# A gap that is not finite is never accepted.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def polish_if_close(span: Span, lam: float, tol: float, mass: FloatArray, b: float) -> Found | None:
    """Return the polished model of a larger lam if its gap at this lam is at most tol; else None.

    Only models with a gap of at most CLOSE are polished: a larger C has merely amplified their rounding errors.
    """
    method = _Newton(span, lam, tol, None)
    u = np.clip(lam * mass, method.low, method.high)
    method.place(u, b)
    if not method.gap(u) <= CLOSE:
        return None
    found = polished(span, lam, tol, u, b)
    return found if found.gap <= tol else None


def _by_smoothing(method: _Newton) -> Found:
    """Solve for a smooth loss by continuation from smoother losses.

    If |x|^2/lam is much larger than its smoothing, the first step clips most rows at an end of the interval, and is so
    long that no step size along it helps. With a smoothing of |x|^2/lam none is clipped; it is then reduced in stages.
    """
    nothing, least = np.zeros_like(method.a), 1.0 / method.span.loss.curvature_bound
    method.place(nothing, 0.0)
    smoothing = FIRST * method.size
    while smoothing > least:
        method.minimise(smoothing, nothing)
        smoothing *= NEXT
    method.minimise(least, nothing)
    return method.found()


# A gap that is not finite is never accepted.
@np.errstate(over="ignore", invalid="ignore", divide="ignore")
def solve(
    span: Span,
    lam: float,
    tol: float,
    start: tuple[FloatArray, float] | None = None,
    check: Callable[[], None] | None = None,
) -> Found:
    """Return a model whose relative gap is at most tol, or the best one found. ``check`` may raise to stop early.

    ``start`` is u/lam and b of a larger lam, used as a warm start for smooth losses.
    """
    method = _Newton(span, lam, tol, check)
    nothing = np.zeros_like(span.sigma)
    if not applies(span.loss):
        method.descend()
        return method.found()
    if span.loss.smooth:
        if start is not None:
            method.place(np.clip(lam * start[0], method.low, method.high), start[1])
        settled = method.minimise(1.0 / span.loss.curvature_bound, nothing)
        found = method.found()
        if settled or found.gap <= tol:
            return found
        other = _by_smoothing(method)
        return other if other.gap < found.gap or not np.isfinite(found.gap) else found
    best, share, u0 = method.found(), FIRST, nothing
    for _ in range(MAX_PROXIMAL_TERMS):
        settled = method.minimise(share * method.size, u0)
        found = method.found()
        if found.gap < best.gap:
            best = found
        if found.gap <= tol or (share <= LEAST and not settled):
            break
        share, u0 = max(LEAST, NEXT * share), found.u
    return best
