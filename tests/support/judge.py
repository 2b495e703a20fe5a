"""An independent judge of certificates: the objective in ball arithmetic, and better points than the model's own.

Nothing here is shared with ``linsep.certificates``. Objectives are evaluated with python-flint, whose balls enclose
the true value however much cancels; a claim is called false only if it contradicts such an enclosure. Candidates for
a better objective are made by Newton's method with hundreds of bits, so that neither the scale of the columns nor
the rank of the rows misleads it. Any point is a candidate: its objective bounds the minimum from above.

The objective is the public one, in the units users read::

    (1 - r)/2 |w|^2 + r |w|_1 + C sum_i s_i loss_i        (C = inf: sum_i s_i loss_i)
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from fractions import Fraction
from time import process_time
from typing import Any, NamedTuple

import numpy as np
from flint import arb, arb_mat, ctx

#: Bits of the evaluation, doubled until an enclosure has ``_SHARP`` bits.
_BITS, _MOST_BITS, _SHARP = 256, 8192, 120
_EXACT = 1024
#: Losses whose kink is replaced by a short parabola while candidates are searched.
KINKED = ("hinge", "absolute", "perceptron")
COUPLED = ("multinomial", "crammer_singer")
REGRESSION = ("squared", "absolute", "huber")
#: Losses with values that are rational if the data are.
PIECEWISE = (
    "hinge",
    "squared_hinge",
    "huberised_hinge",
    "squared",
    "absolute",
    "huber",
    "perceptron",
)
_ULP = 2.0**-52


class Finding(NamedTuple):
    """One way in which a claim is false."""

    kind: str
    detail: str


@dataclass(frozen=True, eq=False)
class Task:
    """One minimisation as its user describes it.

    ``y`` holds +-1 for two classes, real targets for regression, 0..k-1 for losses that couple k classes. ``loss``
    is a name, or "hard_margin". ``centre`` is 1 for margins and "target" for residuals.
    """

    loss: str
    X: Any
    y: Any
    C: float = 1.0
    l1_ratio: float = 0.0
    weight: Any = None
    fit_intercept: bool = True
    regression: bool = False
    width: float = 1.0
    classes: int = 1
    counts: dict[str, int] = field(default_factory=dict)

    @property
    def penalised(self) -> bool:
        return math.isfinite(self.C)

    @property
    def curved(self) -> bool:
        """Whether the objective is strongly convex in w, so that the coefficients have an error bound."""
        return self.penalised and self.l1_ratio < 1.0


class Ball(NamedTuple):
    """An enclosure [low, high] of a real number; the ends are exact."""

    low: arb
    high: arb

    @classmethod
    def of(cls, x: arb) -> Ball:
        return cls(x.lower(), x.upper())

    @property
    def finite(self) -> bool:
        return bool(self.low.is_finite() and self.high.is_finite())

    def __float__(self) -> float:
        return float((self.low + self.high) / 2)


class Precision:
    """Bits of ball arithmetic for the length of a ``with`` block."""

    def __init__(self, bits: int) -> None:
        self.bits = bits

    def __enter__(self) -> None:
        self.before, ctx.prec = ctx.prec, self.bits

    def __exit__(self, *_: Any) -> None:
        ctx.prec = self.before


def _vector(values: Any) -> list[arb]:
    return [arb(v) for v in np.asarray(values, dtype=np.float64).tolist()]


def _product(entries: Any) -> arb_mat:
    rows, columns = len(entries), len(entries[0]) if entries else 0
    return arb_mat(rows, columns, [v for row in entries for v in row])


class Problem:
    """The objective of a task at points of any precision; a point is an arb_mat (d + 1, k), the intercepts last."""

    def __init__(self, task: Task) -> None:
        self.task = task
        n, self.d = task.X.shape
        there = np.arange(n) if task.weight is None else np.flatnonzero(np.asarray(task.weight) > 0)
        X, y = np.asarray(task.X, dtype=np.float64)[there], np.asarray(task.y)[there]
        self.n, self.k = len(there), task.classes
        self.A = arb_mat(self.n, self.d + 1, [arb(v) for row in X.tolist() for v in (*row, 1.0)])
        self.s = _vector(np.ones(n) if task.weight is None else np.asarray(task.weight)[there])
        if task.loss in COUPLED:
            self.labels = y.astype(int).tolist()
        elif task.regression:
            self.sign, self.centre = [1] * self.n, _vector(y)
        else:
            self.sign, self.centre = y.astype(int).tolist(), [arb(1)] * self.n
        self.C = arb(task.C) if task.penalised else arb(1)
        r = arb(task.l1_ratio) if task.penalised else arb(0)
        self.l2 = 1 - r if task.penalised else arb(0)
        self.l1 = r
        self.total = sum(self.s, arb(0))

    def point(self, W: Any) -> arb_mat:
        """Float coefficients (d + 1, k) without rounding."""
        W = np.asarray(W, dtype=np.float64).reshape(self.d + 1, self.k)
        return arb_mat(self.d + 1, self.k, [arb(v) for v in W.ravel().tolist()])

    def value(self, theta: arb_mat) -> Ball:
        """Enclosure of the objective, with as many bits as it needs to be sharp."""
        bits = _BITS
        while True:
            with Precision(bits):
                value = self.C * self._losses(self.A * theta) + self._penalty(theta)
                if value.rel_accuracy_bits() >= _SHARP or bits >= _MOST_BITS or value == 0:
                    return Ball.of(value)
            bits *= 2

    def _penalty(self, theta: arb_mat, blunt: arb | None = None) -> arb:
        square, absolute = arb(0), arb(0)
        for row in theta.tolist()[:-1]:
            for v in row:
                square += v * v
                if blunt is None:
                    absolute += abs(v)
                elif not self.l1.is_zero():
                    absolute += _absolute(v, blunt)[0]
        return self.l2 * square / 2 + self.l1 * absolute

    def _losses(self, Z: arb_mat) -> arb:
        total = arb(0)
        for i, s in enumerate(self.s):
            total += s * (
                self._coupled_loss(Z, i) if self.task.loss in COUPLED else self._single(Z, i)
            )
        return total

    def _single(self, Z: arb_mat, i: int) -> arb:
        return _loss(self.task, self.centre[i] - self.sign[i] * Z[i, 0])

    def _coupled_loss(self, Z: arb_mat, i: int) -> arb:
        y = self.labels[i]
        z = [Z[i, c] - Z[i, y] for c in range(self.k)]
        if self.task.loss == "crammer_singer":
            worst = arb(0)
            for c, v in enumerate(z):
                worst = worst if c == y else worst.max(v + 1)
            return worst
        top = max(z, key=lambda v: v.mid())
        return top + sum(((v - top).exp() for v in z), arb(0)).log()

    def smallest_margin(self, theta: arb_mat, bits: int = _EXACT) -> arb:
        """Lower end of the smallest margin."""
        with Precision(bits):
            Z = self.A * theta
            margins = [self.sign[i] * Z[i, 0] for i in range(self.n)]
            least = margins[0]
            for m in margins[1:]:
                least = least.min(m)
            return least.lower()


def _loss(task: Task, r: arb) -> arb:
    """The loss at 1 - margin, or at the residual; rigorous where the ball covers a kink."""
    name, width = task.loss, arb(task.width)
    if name == "logistic":
        return _softplus(r - 1)
    if name == "exponential":
        return (r - 1).exp()
    if name == "perceptron":
        return (r - 1).nonnegative_part()
    if name in ("absolute", "huber"):
        r = abs(r)
    elif name != "squared":
        r = r.nonnegative_part()
    if name in ("hinge", "absolute"):
        return r
    if name in ("squared_hinge", "squared"):
        return r * r
    bent = r.min(width)
    value = bent * (r - bent / 2)
    return value / width if name == "huberised_hinge" else value


def _softplus(t: arb) -> arb:
    """log(1 + e^t) without overflow."""
    if t.mid() > 0:
        return t + (-t).exp().log1p()
    return t.exp().log1p()


def _absolute(v: arb, width: arb) -> tuple[arb, arb, arb]:
    """sqrt(v^2 + width^2), which is |v| without its kink: value, slope, curvature."""
    square = width * width
    value = (v * v + square).sqrt()
    return value, v / value, square / (value * value * value)


def _huber(v: arb, width: arb) -> tuple[arb, arb, arb]:
    """v^2/(2 width) where |v| <= width, |v| - width/2 beyond: value, slope, curvature."""
    size = abs(v)
    if size <= width:
        return v * v / (2 * width), v / width, 1 / width
    return size - width / 2, arb(1) if v > 0 else arb(-1), arb(0)


def _smoothed_loss(task: Task, r: arb, blunt: arb) -> tuple[arb, arb, arb]:
    """Value, slope and curvature in r, kinks rounded over ``blunt``."""
    name, zero = task.loss, arb(0)
    if name == "logistic":
        t = r - 1
        p = 1 / (1 + (-abs(t)).exp())
        up = p if t > 0 else 1 - p
        return _softplus(t), up, up * (1 - up)
    if name == "exponential":
        e = (r - 1).exp()
        return e, e, e
    if name == "absolute":
        return _absolute(r, blunt)
    if name == "perceptron":
        r = r - 1
    if name in ("hinge", "perceptron"):
        value, slope, curvature = _absolute(r, blunt)  # max(r, 0) = (r + |r|)/2
        return (r + value) / 2, (1 + slope) / 2, curvature / 2
    if name == "squared" or (name == "squared_hinge" and r > 0):
        return r * r, 2 * r, arb(2)
    if name == "squared_hinge" or (name == "huberised_hinge" and not r > 0):
        return zero, zero, zero
    width = arb(task.width)
    value, slope, curvature = _huber(r, width)
    return (
        (value, slope, curvature)
        if name == "huberised_hinge"
        else (value * width, slope * width, curvature * width)
    )


class Newton:
    """Descend from a point with many bits; kinks are blunted, ever less."""

    def __init__(self, problem: Problem, bits: int = 320) -> None:
        self.problem, self.bits = problem, bits
        self.p = problem.d + int(problem.task.fit_intercept)
        self.steps = 0
        self.converged = False

    def descend(self, theta: arb_mat, blunt: arb, steps: int, end: float = math.inf) -> arb_mat:
        """At most so many Newton steps with exact line searches, none after ``end`` (process time)."""
        problem = self.problem
        with Precision(self.bits):
            theta = theta.mid()
            Z = (problem.A * theta).mid()
            self.converged = False
            for _ in range(steps):
                if process_time() > end:
                    break
                value, g, H = self._expand(theta, Z, blunt)
                move = self._solve(H, g)
                if move is None:
                    break
                slope = (g.transpose() * move)[0, 0].mid()
                if not slope < 0:
                    self.converged = True
                    break
                step = self._unpack(move)
                dZ = (problem.A * step).mid()
                t = self._length(theta, step, Z, dZ, blunt, slope)
                if not t > 0:
                    break
                theta, Z = (theta + step * t).mid(), (Z + dZ * t).mid()
                self.steps += 1
                if t < arb(2) ** -20:  # the parabolas are too short to see the next kink coming
                    break
                if -slope <= abs(value) * arb(2) ** -90:
                    self.converged = True
                    break
            return theta

    def _unpack(self, move: arb_mat) -> arb_mat:
        problem, k = self.problem, self.problem.k
        rows = [[move[c * self.p + j, 0] for c in range(k)] for j in range(self.p)]
        if self.p == problem.d:
            rows.append([arb(0)] * k)
        return _product(rows)

    def _solve(self, H: arb_mat, g: arb_mat) -> arb_mat | None:
        """-H^-1 g, where a direction without curvature gets next to none."""
        size = H.nrows()
        tiny = arb(2) ** (-self.bits * 2 // 3)
        for j in range(size):
            h = H[j, j]
            H[j, j] = h + h * tiny if h > 0 else arb(1)
        try:
            x = H.solve(-g, algorithm="approx")
        except ZeroDivisionError:
            return None
        x = x.mid()
        return x if all(v.is_finite() for v in x.entries()) else None

    def _expand(self, theta: arb_mat, Z: arb_mat, blunt: arb) -> tuple[arb, arb_mat, arb_mat]:
        problem, k, p = self.problem, self.problem.k, self.p
        A = problem.A.tolist() if p == problem.d + 1 else [r[:-1] for r in problem.A.tolist()]
        At = _product(A).transpose()
        if problem.task.loss in COUPLED:
            value, slopes, curves = self._coupled_sums(Z, blunt)
        else:
            value, slopes, curves = self._pointwise(Z, blunt)
        g = [v for c in range(k) for v in (At * _product([[s[c]] for s in slopes])).entries()]
        H = [[arb(0)] * (k * p) for _ in range(k * p)]
        for (c, e), weights in curves.items():
            scaled = _product([[w * v for v in row] for w, row in zip(weights, A, strict=True)])
            block = (At * scaled).mid().tolist()
            for i in range(p):
                H[c * p + i][e * p : (e + 1) * p] = block[i]
                if c != e:
                    for j in range(p):
                        H[e * p + j][c * p + i] = block[i][j]
        self._add_penalty(theta, blunt, g, H)
        value = value + problem._penalty(theta, blunt)
        return value.mid(), _product([[v] for v in g]).mid(), _product(H)

    def _add_penalty(self, theta: arb_mat, blunt: arb, g: list[arb], H: list[list[arb]]) -> None:
        problem, p = self.problem, self.p
        for c in range(problem.k):
            for j in range(problem.d):
                at = c * p + j
                v = theta[j, c]
                g[at] += problem.l2 * v
                H[at][at] += problem.l2
                if not problem.l1.is_zero():
                    _, slope, curvature = _absolute(v, blunt)
                    g[at] += problem.l1 * slope
                    H[at][at] += problem.l1 * curvature

    def _pointwise(self, Z: arb_mat, blunt: arb) -> tuple[arb, list[list[arb]], dict[Any, Any]]:
        problem = self.problem
        total, slopes, curves = arb(0), [], []
        for i, s in enumerate(problem.s):
            weight = problem.C * s
            value, slope, curvature = _smoothed_loss(
                problem.task, problem.centre[i] - problem.sign[i] * Z[i, 0], blunt
            )
            total += weight * value
            slopes.append([-problem.sign[i] * weight * slope])
            curves.append(weight * curvature)
        return total, slopes, {(0, 0): curves}

    def _coupled_sums(self, Z: arb_mat, blunt: arb) -> tuple[arb, list[list[arb]], dict[Any, Any]]:
        problem, k = self.problem, self.problem.k
        total, slopes = arb(0), []
        pairs = [(c, e) for c in range(k) for e in range(c, k)]
        curves: dict[Any, Any] = {pair: [] for pair in pairs}
        for i, s in enumerate(problem.s):
            weight = problem.C * s
            value, p, heat = self._soft(Z, i, blunt)
            total += weight * value
            slopes.append([weight * (q - int(c == problem.labels[i])) for c, q in enumerate(p)])
            for c, e in pairs:
                curves[c, e].append(weight / heat * p[c] * (int(c == e) - p[e]))
        return total, slopes, curves

    def _soft(self, Z: arb_mat, i: int, blunt: arb) -> tuple[arb, list[arb], arb]:
        """heat log sum exp((z + lead)/heat) - z_y, its probabilities, and the heat."""
        problem = self.problem
        y = problem.labels[i]
        hinge = problem.task.loss == "crammer_singer"
        heat = blunt if hinge else arb(1)
        z = [Z[i, c] - Z[i, y] + (1 if hinge and c != y else 0) for c in range(problem.k)]
        top = max(z)
        powers = [((v - top) / heat).exp() for v in z]
        total = sum(powers, arb(0))
        return top + heat * total.log(), [v / total for v in powers], heat

    def _slope(
        self, theta: arb_mat, step: arb_mat, Z: arb_mat, dZ: arb_mat, t: arb, blunt: arb
    ) -> arb:
        """Derivative of the objective along the step, at t."""
        problem = self.problem
        coupled = problem.task.loss in COUPLED
        moved = Z + dZ * t
        total = arb(0)
        for i, s in enumerate(problem.s):
            if coupled:
                _, p, _ = self._soft(moved, i, blunt)
                for c in range(problem.k):
                    total += problem.C * s * (p[c] - int(c == problem.labels[i])) * dZ[i, c]
            else:
                r = problem.centre[i] - problem.sign[i] * moved[i, 0]
                slope = _smoothed_loss(problem.task, r.mid(), blunt)[1]
                total -= problem.C * s * problem.sign[i] * slope * dZ[i, 0]
        for j in range(problem.d):
            for c in range(problem.k):
                v = theta[j, c] + t * step[j, c]
                total += problem.l2 * v * step[j, c]
                if not problem.l1.is_zero():
                    total += problem.l1 * _absolute(v.mid(), blunt)[1] * step[j, c]
        return total.mid()

    def _length(
        self, theta: arb_mat, step: arb_mat, Z: arb_mat, dZ: arb_mat, blunt: arb, start: arb
    ) -> arb:
        """1 if the objective still falls there, else a little before its derivative vanishes."""
        end = self._slope(theta, step, Z, dZ, arb(1), blunt)
        if end <= abs(start) * arb(2) ** -20:
            return arb(1)
        low, high, below, above = arb(0), arb(1), start, end
        for turn in range(60):
            share = below / (below - above) if turn % 3 else arb(0.5)
            middle = (low + (high - low) * share).mid()
            at = self._slope(theta, step, Z, dZ, middle, blunt)
            if at <= 0:
                low, below = middle, at
                if abs(at) <= abs(start) * arb(0.3):
                    break
            else:
                high, above = middle, at
        return low


class Better(NamedTuple):
    """The best point found: an upper bound on the minimum."""

    value: arb
    theta: arb_mat
    how: str
    converged: bool


def _stretches(problem: Problem, theta: arb_mat) -> Iterator[tuple[str, arb_mat]]:
    for k in (10, 20, 30, 36, 42, 47, 51):
        for sign in (1, -1):
            yield f"(1 {'+' if sign > 0 else '-'} 2^-{k})(w, b)", theta * (1 + sign * arb(2) ** -k)


def improve(
    problem: Problem, W: Any, effort: int = 30, bits: int = 320, seconds: float = 1.0
) -> Better:
    """The best of: the point itself, zero, stretches of the point, and Newton's method from it.

    Newton's method ends after so many seconds of this process, whatever it has reached.
    """
    end = process_time() + seconds
    with Precision(bits):
        zero = problem.point(np.zeros((problem.d + 1, problem.k)))
        start = problem.point(W) if np.isfinite(W).all() else zero
        candidates = [("the model itself", start), ("zero", zero)]
        if problem.task.loss in (*KINKED, "crammer_singer"):
            candidates += _stretches(problem, start)
        best: Better | None = None
        for how, theta in candidates:
            best = _better(problem, best, theta, how)
        assert best is not None
        kinked = problem.task.loss in (*KINKED, "crammer_singer") or not problem.l1.is_zero()
        newton = Newton(problem, bits)
        theta = best.theta
        for blunt, steps in _widths(problem, best, effort) if kinked else ((arb(1), effort),):
            theta = newton.descend(theta, blunt, steps, end)
            best = _better(problem, best, theta, "Newton")
            best = best._replace(converged=newton.converged)
            if (newton.converged and steps < effort) or process_time() > end:
                break
        return best


def _widths(problem: Problem, best: Better, effort: int) -> Iterator[tuple[arb, int]]:
    """Widths over which kinks are rounded, each with a number of steps.

    First the one that changes the objective by 1e-8 of itself, enough for a good answer; then from 1 down to it.
    """
    weight = problem.C * problem.total + problem.l1 * problem.d
    last = (best.value / weight * arb(1e-8)).mid()
    if not (last > 0 and last.is_finite()):
        return
    yield last, effort // 2
    width = last.max(arb(1)).mid()
    while width > last:
        yield width, effort
        width = (width / 20).mid()
    yield last, effort


def _better(problem: Problem, best: Better | None, theta: arb_mat, how: str) -> Better:
    value = problem.value(theta).high
    if best is None or (value.is_finite() and (value < best.value or not best.value.is_finite())):
        return Better(value, theta, how, False)
    return best


def objective(task: Task, W: Any) -> Ball:
    """Enclosure of the objective of float coefficients (d + 1, k)."""
    problem = Problem(task)
    return problem.value(problem.point(W))


def judge(
    task: Task, W: Any, claim: Any, effort: int = 30, seconds: float = 1.0
) -> tuple[list[Finding], dict[str, Any]]:
    """What of the claim about the coefficients W (d + 1, k) is false, and what is true instead."""
    if task.loss == "hard_margin":
        return _judge_margin(task, W, claim, effort)
    found = _consistent(claim)
    problem = Problem(task)
    theta = problem.point(W)
    truth = problem.value(theta)
    if not truth.finite:
        if claim.certified:
            found.append(Finding("objective", f"certified, but the true objective is {truth}"))
        return found, {"true": math.inf, "best": math.nan}
    best = improve(problem, W, effort, seconds=seconds)
    with Precision(_EXACT):
        found += _compare(task, problem, W, claim, truth, best)
        suboptimal = (truth.low - best.value) / truth.high if truth.high > 0 else arb(0)
        facts = {
            "true": float(truth),
            "best": float(best.value),
            "how": best.how,
            "true_gap": max(float(suboptimal), 0.0),
        }
    return found, facts


def _compare(
    task: Task, problem: Problem, W: Any, claim: Any, truth: Ball, best: Better
) -> list[Finding]:
    found = []
    facts = f"true objective {float(truth):.17g}, attained {float(best.value):.17g} by {best.how}"
    if math.isfinite(claim.primal) and not math.isinf(claim.rounding):
        off = max(truth.low - arb(claim.primal), arb(claim.primal) - truth.high)
        allowed = arb(claim.rounding) + abs(arb(claim.primal)) * _ULP / 2 + arb(2) ** -1074
        if off > allowed:
            text = f"primal {claim.primal!r} +- {claim.rounding:.3g}, {facts}"
            found.append(Finding("objective", text))
    elif claim.certified:
        found.append(Finding("objective", f"certified with primal {claim.primal!r}, {facts}"))
    if arb(claim.dual) > best.value:
        found.append(Finding("lower bound", f"dual {claim.dual!r} is above: {facts}"))
    drop = (truth.low - best.value).lower()
    if math.isfinite(claim.gap) and drop > arb(claim.gap):
        text = f"gap {claim.gap:.3g} is smaller than {float(drop):.3g}: {facts}"
        found.append(Finding("gap", text))
    if claim.certified and not _exact_fit(task, problem, claim, truth):
        if drop > arb(claim.tol) * truth.high * (1 + arb(1e-9)):
            text = f"certified to {claim.tol:g}, off by {float(drop / truth.high):.3g}: {facts}"
            found.append(Finding("certificate", text))
        scale = max(abs(claim.primal), abs(claim.dual))
        if claim.gap > claim.tol * scale * (1 + 1e-9):
            text = f"certified with gap {claim.gap:.3g} of {scale:.3g}: {facts}"
            found.append(Finding("share", text))
    if task.curved and best.converged and math.isfinite(claim.coef_error):
        found += _coefficients(problem, W, claim, best)
    return found


def _exact_fit(task: Task, problem: Problem, claim: Any, truth: Ball) -> bool:
    """Whether the documented exception applies: no penalty, and next to nothing left of the zero model's objective."""
    if task.penalised:
        return False
    null = problem.value(problem.point(np.zeros((problem.d + 1, problem.k))))
    return bool(truth.high <= null.high * arb(claim.tol) * arb(1.01e-6))


def _coefficients(problem: Problem, W: Any, claim: Any, best: Better) -> list[Finding]:
    """Newton's answer is near the optimum: the claimed distance must cover the way to it."""
    theta = problem.point(W)
    square = arb(0)
    for j in range(problem.d):
        for c in range(problem.k):
            square += (theta[j, c] - best.theta[j, c]) ** 2
    distance = square.sqrt().lower()
    if distance > arb(claim.coef_error) * (1 + arb(1e-6)) + best_error(problem, best):
        text = f"coef_error {claim.coef_error:.3g}, distance {float(distance):.3g}"
        return [Finding("coef_error", text)]
    return []


def best_error(problem: Problem, best: Better) -> arb:
    """Distance of Newton's answer from the optimum: 2^-40 of its objective by strong convexity, and blunt kinks."""
    share = arb(2) ** -24 if problem.task.loss in (*KINKED, "crammer_singer") else arb(2) ** -60
    if not problem.l1.is_zero():
        share = arb(2) ** -24
    return (2 * best.value * share / problem.l2).sqrt()


def _consistent(claim: Any) -> list[Finding]:
    """What a claim says against itself."""
    numbers = (claim.primal, claim.dual, claim.gap, claim.relative_gap, claim.rounding)
    if any(math.isnan(v) for v in numbers[1:]) or (claim.certified and math.isnan(claim.primal)):
        return [Finding("fields", f"NaN among {numbers}")]
    found = []
    if claim.certified != (claim.relative_gap <= claim.tol) and not claim.parts:
        found.append(Finding("fields", f"certified={claim.certified} against {claim}"))
    if claim.certified and not all(map(math.isfinite, numbers)):
        found.append(Finding("fields", f"certified with {numbers}"))
    if claim.gap < (claim.primal - claim.dual) * (1 - 1e-15) - 1e-300:
        found.append(Finding("fields", f"gap {claim.gap!r} is below primal - dual of {claim}"))
    return found


def _judge_margin(
    task: Task, W: Any, claim: Any, effort: int
) -> tuple[list[Finding], dict[str, Any]]:
    """The hard margin: 1/2 |w|^2 over all (w, b) whose margins are at least 1."""
    found = _consistent(claim)
    signs = replace(task, loss="squared_hinge", C=1e6)
    problem = Problem(signs)
    theta = problem.point(W)
    half = _half_square(problem, theta)
    least = problem.smallest_margin(theta)
    best, how = None, "nothing"
    tries = [("the model, rescaled", theta)]
    newton = Newton(problem)
    for C in (1e3, 1e6, 1e9, 1e12):
        problem.C = arb(C) * (half.high if half.high > 0 else 1)
        theta = newton.descend(theta, arb(1), effort)
        tries.append((f"Newton, C={C:g}", theta))
    for name, point in tries:
        margin = problem.smallest_margin(point)
        if margin > 0:
            with Precision(_EXACT):
                reached = (_half_square(problem, point).high / (margin * margin)).upper()
                if best is None or reached < best:
                    best, how = reached, name
    facts = {"true": float(half), "best": float(best) if best is not None else math.nan, "how": how}
    with Precision(_EXACT):
        if claim.certified and not least > 0:
            found.append(Finding("certificate", f"certified with a margin {float(least):.3g}"))
        if best is not None:
            if arb(claim.dual) > best:
                found.append(Finding("lower bound", f"dual {claim.dual!r}, attained {facts}"))
            if math.isfinite(claim.gap) and (half.low - best) > arb(claim.gap):
                found.append(Finding("gap", f"gap {claim.gap:.3g}, attained {facts}"))
            short = half.high / least**2 - best if least > 0 and least < 1 else half.low - best
            if claim.certified and short > arb(claim.tol) * best * (1 + arb(1e-9)):
                found.append(Finding("certificate", f"off by {float(short / best):.3g}: {facts}"))
    return found, facts


def _half_square(problem: Problem, theta: arb_mat) -> Ball:
    with Precision(_EXACT):
        return Ball.of(sum((v * v for row in theta.tolist()[:-1] for v in row), arb(0)) / 2)


# --- the fewest errors ----------------------------------------------------------------------------------------


def fewest_errors(X: Any, y: Any, weight: Any) -> Fraction | None:
    """Least weight of errors of any hyperplane in one or two dimensions, by exact enumeration; None beyond.

    Every split of points in the plane by a line is one by a line through two of them, turned by next to nothing:
    points are sorted by its normal, ties by the direction along the line in either sense.
    """
    if X.shape[1] > 2:
        return None
    points = [tuple(map(Fraction, row)) for row in np.asarray(X, dtype=np.float64).tolist()]
    points = [p if len(p) == 2 else (p[0], Fraction(0)) for p in points]
    s = [Fraction(v) for v in (np.ones(len(points)) if weight is None else weight).tolist()]
    both = [sum(v for v, c in zip(s, y, strict=True) if c == side) for side in (1, -1)]
    best = min(both)
    for p, q in {(p, q) for p in points for q in points if p != q}:
        along = q[0] - p[0], q[1] - p[1]
        keys = [(a * along[1] - b * along[0], a * along[0] + b * along[1]) for a, b in points]
        best = min(best, _sorted_errors(keys, y, s))
    return Fraction(best)


def _sorted_errors(keys: list[tuple[Fraction, Fraction]], y: Any, s: list[Fraction]) -> Fraction:
    """Fewest errors of all thresholds on keys in lexicographic order, in both senses."""
    total = sum(s, Fraction(0))
    order = sorted(range(len(keys)), key=lambda i: keys[i])
    wrong = sum((v for v, c in zip(s, y, strict=True) if c < 0), Fraction(0))  # all called +1
    best = min(wrong, total - wrong)
    for at, i in enumerate(order):
        wrong += s[i] if y[i] > 0 else -s[i]
        last = at + 1 == len(order) or keys[order[at + 1]] != keys[i]
        if last:
            best = min(best, wrong, total - wrong)
    return best


def count_errors(X: Any, y: Any, weight: Any, w: Any, b: float) -> Fraction:
    """Weight of the rows that sign(w.x + b) gets wrong, sign(0) = +1, without rounding."""
    total = Fraction(0)
    w = [Fraction(v) for v in np.ravel(w).tolist()]
    s = np.ones(len(X)) if weight is None else np.asarray(weight)
    for row, c, v in zip(np.asarray(X, dtype=np.float64).tolist(), y, s.tolist(), strict=True):
        z = sum((Fraction(a) * q for a, q in zip(row, w, strict=True)), Fraction(b))
        total += Fraction(v) if (1 if z >= 0 else -1) != c else 0
    return total


def judge_errors(X: Any, y: Any, weight: Any, claim: Any) -> list[Finding]:
    """What of a claim about the fewest errors is false; fractional weights are compared to 4e-9 of their sum."""
    found = []
    s = np.ones(len(X)) if weight is None else np.asarray(weight)
    slack = Fraction(0) if (s == np.round(s)).all() else Fraction(4e-9) * Fraction(float(s.sum()))
    made = count_errors(X, y, weight, claim.w, claim.b)
    if abs(made - Fraction(claim.errors)) > slack:
        text = f"errors {claim.errors!r}, truly {float(made)!r}"
        found.append(Finding("objective", text))
    least = fewest_errors(X, y, weight)
    if least is None:
        least = made
    if Fraction(claim.lower_bound) > least + slack:
        text = f"bound {claim.lower_bound!r}, attained {float(least)!r}"
        found.append(Finding("lower bound", text))
    if claim.proven and made > least + slack:
        text = f"proven {claim.errors!r}, attained {float(least)!r}"
        found.append(Finding("certificate", text))
    return found
