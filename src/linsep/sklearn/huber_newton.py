"""Huber regression with its scale: Newton's method on coefficients and intercept, with the scale eliminated.

Problem: minimise over w, b and sigma > 0, with S = sum s_i and H(z) = z^2 for |z| <= epsilon, 2 epsilon |z| - epsilon^2
beyond,

    P(w, b, sigma) = S sigma + sum_i s_i sigma H((t_i - x_i.w - b)/sigma) + alpha |w|^2.

Method: for fixed residuals r the best sigma solves sum s min((r/sigma)^2, epsilon^2) = S. The result is a convex
function of (w, b). With the rows A where |r| <= epsilon sigma, q = sum_A s r x~ and rho = sum_A s r^2, it has

    gradient  2 alpha w - sum s u x~,    u = 2 clip(r/sigma, -epsilon, epsilon),
    Hessian   2/sigma (sum_A s x~ x~' - q q'/rho) + 2 alpha I_w.

The Gram matrix of the rows A is updated by the rows that enter or leave A. Sparse rows and many features use conjugate
gradients instead.

Reference: Huber and Ronchetti, Robust Statistics, 2nd edition 2009, section 7.8; Owen, A robust hybrid of lasso and
ridge regression, 2007, for the scale as a variable.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray
from linsep.sklearn.fitting import Delegated
from linsep.solvers.linalg import cg

#: Most Newton steps, line search trials, and products of conjugate gradients.
_STEPS, _TRIALS, _PRODUCTS = 60, 60, 2000
#: Relative gap at which Newton's method stops, relative decrement close to rounding, and steps allowed from there on.
_GAP, _PRECISION, _SPARE = 1e-9, 1e-15, 3
#: Relative residuals to which conjugate gradients solve a Newton system.
_LOOSE, _TIGHT = 0.1, 1e-4
#: Largest order, and largest ratio of features to rows, for which the Gram matrix is formed.
_LARGEST, _DENSE = 1500, 4
#: Smallest unexplained fraction of the squared inner residuals, unless the targets are fitted exactly.
_UNEXPLAINED = 1e-10
#: Scales below this fraction of the targets are an exact fit, in which outliers cannot be distinguished.
NO_SCALE = 1e-9

EXACT_FIT = "the targets are fitted exactly, and the scale tends to 0"


class Point(NamedTuple):
    """Coefficients with the intercept last, residuals, the optimal scale, and the objective there."""

    theta: FloatArray
    r: FloatArray
    scale: float
    value: float


class Regression:
    """Rows, targets and weights, with the parameters of the objective."""

    def __init__(
        self,
        X: Any,
        t: FloatArray,
        weight: FloatArray,
        epsilon: float,
        alpha: float,
        fit_intercept: bool,
    ) -> None:
        self.X, self.t, self.s = X, t, weight
        self.epsilon, self.alpha, self.free = float(epsilon), float(alpha), fit_intercept
        self.mass = math.fsum(weight.tolist())
        self.least = NO_SCALE * float(np.abs(t).max(initial=0.0))

    def scale_of(self, r: FloatArray) -> float:
        """Optimal scale for residuals r; raises Delegated if they are too small."""
        size = np.abs(r)
        order = np.argsort(size)
        size, s = size[order], self.s[order]
        inner, outer = np.cumsum(s * size * size), self.mass - np.cumsum(s)
        rest = self.mass - self.epsilon**2 * outer
        with np.errstate(divide="ignore", invalid="ignore"):
            scale = np.sqrt(np.where(rest > 0.0, inner / rest, np.nan))
            reach = self.epsilon * scale
            fits = (size <= reach) & (reach <= np.append(size[1:], np.inf))
        found = scale[fits]
        if not len(found) or not found[0] > self.least:
            raise Delegated(EXACT_FIT)
        return float(found[0])

    def slopes(self, at: Point) -> FloatArray:
        """Dual variables u = 2 clip(r/sigma, -epsilon, epsilon)."""
        return 2.0 * np.clip(at.r / at.scale, -self.epsilon, self.epsilon)

    def point_at(self, theta: FloatArray, r: FloatArray) -> Point:
        """Return the point with coefficients theta and residuals r."""
        scale, w = self.scale_of(r), theta[:-1]
        z = np.abs(r / scale)
        slope = np.minimum(z, self.epsilon)
        value = self.mass + float(self.s @ (slope * (2.0 * z - slope)))
        return Point(theta, r, scale, scale * value + self.alpha * float(w @ w))

    def scores(self, theta: FloatArray) -> FloatArray:
        """Scores x.w + b."""
        return np.asarray(self.X @ theta[:-1] + theta[-1])

    def pull(self, p: FloatArray) -> FloatArray:
        """Sum of p x~; 0 for an intercept that is not fitted."""
        return np.append(self.X.T @ p, p.sum() if self.free else 0.0)

    def gradient(self, at: Point) -> FloatArray:
        """Gradient 2 alpha w - sum s u x~."""
        g = -self.pull(self.s * self.slopes(at))
        g[:-1] += 2.0 * self.alpha * at.theta[:-1]
        return g

    def gap(self, at: Point, g: FloatArray) -> float:
        """Approximate gap of the dual point u at the gradient g."""
        balance = abs(float(g[-1])) * at.scale
        return balance + (float(g[:-1] @ g[:-1]) / (4.0 * self.alpha) if self.alpha else 0.0)


def minimise(problem: Regression) -> tuple[Point, int]:
    """Return the minimiser, to a relative gap of about 1e-9 or working precision, and the number of Newton steps."""
    n, d = problem.X.shape
    dense = isinstance(problem.X, np.ndarray) and d <= min(_LARGEST, _DENSE * n)
    system: _Factored | _Conjugate = _Factored(problem) if dense else _Conjugate(problem)
    spread = problem.t - (np.average(problem.t, weights=problem.s) if problem.free else 0.0)
    scale = math.sqrt(float(problem.s @ (spread * spread)) / problem.mass)
    if not scale > problem.least:
        raise Delegated(EXACT_FIT)
    everyone = np.ones(n, dtype=bool)
    theta = system.solve(problem.pull(problem.s * problem.t), everyone, scale, _LOOSE)
    at = problem.point_at(theta, problem.t - problem.scores(theta))
    before, spare, forcing = math.inf, _SPARE, _LOOSE
    for step in range(1, _STEPS):
        g = problem.gradient(at)
        size = math.sqrt(float(g @ g))
        if problem.alpha and problem.gap(at, g) <= _GAP * at.value:
            return at, step
        forcing = min(_LOOSE, max(_TIGHT, (size / before) ** 2)) if before < math.inf else _LOOSE
        inner = np.abs(at.r) <= problem.epsilon * at.scale
        direction = -0.5 * at.scale * system.solve(g, inner, at.scale, forcing, at.r)
        slope = float(g @ direction)
        if -slope <= _PRECISION * at.value:
            spare -= 1
        later = _search(problem, at, direction, slope) if spare and slope < 0.0 else None
        if later is None:
            return at, step
        at, before = later, size
    return at, _STEPS


def _search(problem: Regression, at: Point, direction: FloatArray, slope: float) -> Point | None:
    """Point along a direction where |slope| is at most a third of the initial one; None if the objective increases.

    Uses secants of the slope between a step where it is negative and one where it is positive.
    """
    moved, share = problem.scores(direction), 1.0
    low, high = (0.0, slope), (math.inf, math.inf)
    pull = 2.0 * problem.alpha
    for _ in range(_TRIALS):
        later = problem.point_at(at.theta + share * direction, at.r - share * moved)
        along = pull * float(later.theta[:-1] @ direction[:-1])
        along -= float(moved @ (problem.s * problem.slopes(later)))
        if abs(along) <= -slope / 3.0:
            return later
        low, high = ((share, along), high) if along < 0.0 else (low, (share, along))
        if high[0] == math.inf:
            share *= 2.0
            continue
        width = high[0] - low[0]
        secant = -low[1] / (high[1] - low[1])
        share = low[0] + width * min(max(secant, 0.1), 0.9)
    return later if later.value < at.value else None


class _Factored:
    """(sum_A s x~ x~' + alpha sigma I_w - q q'/rho)^-1 by Cholesky, for dense rows; q = 0 without residuals r."""

    def __init__(self, problem: Regression) -> None:
        self.problem = problem
        n, d = problem.X.shape
        self.rows = np.zeros(n, dtype=bool)
        # lower triangle of sum_A s x x', and the last row of sum_A s x~ x~'
        self.gram, self.last = np.zeros((d, d), order="F"), np.zeros(d + 1)
        self._matrix = np.zeros((d + 1, d + 1), order="F")

    def solve(
        self,
        b: FloatArray,
        rows: BoolArray,
        scale: float,
        share: float,
        r: FloatArray | None = None,
    ) -> FloatArray:
        """Return the solution; raises Delegated if the matrix is not definite. ``share`` is ignored."""
        self._update(rows)
        matrix, d = self._matrix, self.problem.X.shape[1]
        matrix[:d, :d] = self.gram
        matrix[d] = self.last
        matrix.flat[: d * (d + 2) : d + 2] += self.problem.alpha * scale
        if not self.problem.free:
            matrix[d, d] = 1.0
        try:
            factor = scipy.linalg.cho_factor(
                matrix, lower=True, overwrite_a=True, check_finite=False
            )
        except scipy.linalg.LinAlgError as error:
            raise Delegated("the inner rows do not determine the coefficients") from error
        found: FloatArray = scipy.linalg.cho_solve(factor, b, check_finite=False)
        if r is not None:
            held = np.where(rows, self.problem.s * r, 0.0)
            q = self.problem.pull(held)
            aside = scipy.linalg.cho_solve(factor, q, check_finite=False)
            rho = float(held @ r)
            left = rho - float(q @ aside)  # part of r that no coefficients explain
            if not left > _UNEXPLAINED * rho:
                raise Delegated(EXACT_FIT)
            found += (float(q @ found) / left) * aside
        return found

    def _update(self, rows: BoolArray) -> None:
        """Update the Gram matrix to these rows."""
        changed = rows != self.rows
        if np.count_nonzero(changed) > np.count_nonzero(rows):
            self.gram[:] = self.last[:] = 0.0
            self._add(rows, 1.0)
        else:
            self._add(rows & changed, 1.0)
            self._add(self.rows & changed, -1.0)
        self.rows = rows

    def _add(self, rows: BoolArray, sign: float) -> None:
        """Add rows to the Gram matrix (sign +1) or remove them (sign -1)."""
        if not rows.any():
            return
        whole = bool(rows.all())
        X, s = (
            (self.problem.X, self.problem.s)
            if whole
            else (self.problem.X[rows], self.problem.s[rows])
        )
        if (s == 1.0).all():
            root, A = np.ones(len(s)), X
        else:
            root = np.sqrt(s)
            A = root[:, None] * X
        self.gram = scipy.linalg.blas.dsyrk(
            sign, A.T, beta=1.0, c=self.gram, lower=1, overwrite_c=1
        )
        if self.problem.free:
            self.last[:-1] += sign * (A.T @ root)
            self.last[-1] += sign * float(s.sum())


class _Conjugate:
    """Newton steps by conjugate gradients with a diagonal preconditioner."""

    def __init__(self, problem: Regression) -> None:
        self.problem = problem
        X = problem.X
        self.squares = X.multiply(X).tocsr().T if sp.issparse(X) else (X * X).T

    def solve(
        self,
        b: FloatArray,
        rows: BoolArray,
        scale: float,
        share: float,
        r: FloatArray | None = None,
    ) -> FloatArray:
        """Return the solution with the residual reduced to a fraction ``share``."""
        problem, ridge = self.problem, self.problem.alpha * scale
        s = np.where(rows, problem.s, 0.0)
        unit = np.append(self.squares @ s + ridge, s.sum() if problem.free else 1.0)
        unit = np.where(unit > 0.0, unit, 1.0)
        held = np.zeros_like(s) if r is None else s * r
        rho = 1.0 if r is None else float(held @ r)

        def times(v: FloatArray) -> FloatArray:
            z = problem.scores(v)
            out = problem.pull(s * z - (float(held @ z) / rho) * held)
            out[:-1] += ridge * v[:-1]
            return out

        def ends(at: cg.Iterate) -> bool:
            return at.rho <= share * share * at.rho_first

        return cg.solve(times, lambda v: v / unit, b, ends, _PRODUCTS).x
