"""Two ways to solve the Newton system H delta = -g: by factorising H, or by conjugate gradients.

Cholesky: H is summed in the coordinates (w, c) with c = b + mu.w, i.e. for centred rows, Jacobi-scaled,
factorised and refined once. Nothing else is needed for columns of any size (algorithmic reference:
Higham, Accuracy and Stability, ch. 10 and 12).

Conjugate gradients: b is eliminated exactly. With h the curvatures, x~ = sum h x / sum h,

    (H_ww - H_wb H_bw / H_bb) dw = -(g_w - x~ g_b),     db = -(g_b + H_bw dw)/H_bb,

so the intercept's equation holds to rounding whatever the accuracy of dw. The iteration stops early
while far from the optimum, and near it only when |r|^2/(2 lam) is a fraction of the tolerated gap: the
residual r enters the Newton-dual gap by just that term.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

import numpy as np
import scipy.linalg as sl

from linsep import _kernels
from linsep.problem import dot
from linsep.solvers.run import NEAR

if TYPE_CHECKING:
    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.run import Run

#: The step, the squared Newton decrement -g.delta, and |r|^2 of the residual r = H delta + g (weights).
Step = tuple["FloatArray", float, float]
# Order up to which a system is solved by the kernels: LAPACK wakes other threads, and on a busy machine
# waits for them far longer than the factorisation takes.
NATIVE = 1000
# Of the diagonal of X'HX beside lam: rows of text are of one size, columns are not.
SPARSE_SHARE = 0.1
# Single precision: the square of its error, the smallest pivot that can stand it, half the squared decrement,
# as a share of P, from which the gap may show it, and how often a step is refined before double precision is cheaper.
BLUR, SURE, SEEN, REFINEMENTS = 4e-14, 1e-4, 0.05, 2
REPAIRABLE = 2e-6  # the smallest pivot that can stand it if the step is refined
# Relative eigenvalue below which a direction counts as absent when nothing penalises it.
DROP = 1e-13


class Factor:
    """Jacobi-scaled Cholesky factor of a symmetric positive semidefinite matrix.

    ``definite`` (there is a penalty): a pivot lost to rounding is replaced by a tiny one, and refinement
    repairs what that costs. Otherwise directions without curvature are left out, by eigenvalues.
    """

    def __init__(self, H: FloatArray, definite: bool) -> None:
        self.H = H
        self.least = 0.0  # smallest pivot
        self._factor: tuple[FloatArray, bool] | None = None
        self._native: FloatArray | None = None
        if len(H) <= NATIVE:
            self._native, self.scale = np.empty(H.shape), np.empty(len(H))
            whole = np.ascontiguousarray(H)
            self.least = _kernels.spd_factor(whole, False, self._native, self.scale)
            if definite or self.least > DROP:
                return
            self._native = None
        diagonal = np.diag(H)
        present = diagonal > 0
        self.scale = np.where(present, 1 / np.sqrt(np.where(present, diagonal, 1.0)), 0.0)
        scaled = H * self.scale
        scaled *= self.scale[:, None]
        scaled[~present, ~present] = 1.0
        for jitter in (0.0, 1e-14, 1e-12, 1e-10) if definite else (0.0,):
            scaled[np.diag_indices(len(H))] = 1.0 + jitter
            try:
                factor = sl.cho_factor(scaled, lower=True, check_finite=False)
            except sl.LinAlgError:
                continue
            self.least = 0.0 if jitter else float(np.min(np.diag(factor[0]))) ** 2
            if definite or self.least > DROP:
                self._factor = factor
                return
        scaled[np.diag_indices(len(H))] = 1.0
        values, vectors = np.linalg.eigh(scaled)
        keep = values > DROP * values[-1]
        self._inverse = (vectors[:, keep] / values[keep]) @ vectors[:, keep].T

    def apply(self, r: FloatArray) -> FloatArray:
        """H^-1 r without refinement: what a preconditioner needs."""
        if self._native is not None:
            x = np.empty_like(self.scale)
            _kernels.spd_apply(self._native, self.scale, np.ascontiguousarray(r), x)
            return x
        y = self.scale * r
        if self._factor is not None:
            solved: FloatArray = sl.cho_solve(self._factor, y, check_finite=False)
            return self.scale * solved
        out: FloatArray = self.scale * (self._inverse @ y)
        return out

    def solve(self, r: FloatArray) -> FloatArray:
        """H^-1 r (on the range of H), refined once."""
        x = self.apply(r)
        return x + self.apply(np.where(self.scale > 0, r - self.H @ x, 0.0))


def solved(H: FloatArray, rhs: FloatArray, definite: bool) -> FloatArray:
    """H^-1 rhs, refined once."""
    return solved_with_pivot(H, rhs, definite)[0]


def solved_with_pivot(H: FloatArray, rhs: FloatArray, definite: bool) -> tuple[FloatArray, float]:
    """H^-1 rhs and the smallest pivot of the scaled H."""
    if len(H) > NATIVE:
        factor = Factor(H, definite)
        return factor.solve(rhs), factor.least
    x = np.empty_like(rhs)
    least = _kernels.spd_solve(np.ascontiguousarray(H), rhs, not definite, x)
    return x, least


class Cholesky:
    """The full Hessian, one more pass of n d^2 work.

    In single precision as long as its error, 1e-7 of the diagonal, is not beyond what the smallest pivot allows. Where
    the gap would show it (a residual r enters that by |r|^2/(2 lam)), the step is refined: a product with the Hessian
    in double precision costs a fraction of making it.
    """

    def __init__(self, mu: FloatArray, exact: bool = False) -> None:
        self.mu = mu
        self._exact = exact  # double precision from the beginning
        self.H = np.zeros((0, 0))  # the last one, if it was

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        problem = run.problem
        rhs = -g
        rhs[:-1] += self.mu * g[-1]
        self._exact = self._exact or problem.lam == 0.0 or problem.data.sparse
        if not self._exact:
            H = problem.hessian(self.mu, single=True)
            found = self._refined(problem, H, rhs, value, run.stop.tol)
            if found is not None:
                return found
            self._exact = True
            problem.expect_hessian(self.mu, single=False)
        H = self.H = problem.hessian(self.mu)
        delta = solved(H, rhs, definite=problem.lam > 0)
        return self._placed(delta), dot(rhs, delta), 0.0

    def _refined(
        self, problem: Problem, H: FloatArray, rhs: FloatArray, value: float, tol: float
    ) -> Step | None:
        """The step by a Hessian in single precision, as exact as the gap needs it; None if that is out of reach."""
        if not np.isfinite(H).all():
            return None
        factor = Factor(H, definite=True)
        times = 0 if problem.data.far else REFINEMENTS  # there, a product is one more round
        if not factor.least > (REPAIRABLE if times else SURE):
            return None
        delta = factor.solve(rhs)
        left = self._blur(H, delta)
        if 0.5 * dot(rhs, delta) <= SEEN * value:
            enough = 0.2 * problem.lam * tol * value
        else:
            enough = np.inf
        while left > enough or (times == REFINEMENTS and factor.least <= SURE):
            if times == 0:
                return None
            times -= 1
            product = problem.hess_vec(self._placed(delta))
            product[:-1] -= self.mu * product[-1]
            change = factor.solve(rhs - product)
            delta += change
            left = self._blur(H, change)
        return self._placed(delta), dot(rhs, delta), left

    def _placed(self, delta: FloatArray) -> FloatArray:
        """From (w, c) to (w, b): c = b + mu.w."""
        out = delta.copy()
        out[-1] -= self.mu @ delta[:-1]
        return out

    @staticmethod
    def _blur(H: FloatArray, delta: FloatArray) -> float:
        """About |r|^2 that single precision leaves: r = 2e-7 diag(H)^1/2 |diag(H)^1/2 delta|."""
        diagonal = np.diag(H)[:-1]
        return BLUR * float(diagonal.sum()) * float(diagonal @ delta[:-1] ** 2)


Preconditioner = Callable[["FloatArray"], "FloatArray"]


class ConjugateGradients:
    """Truncated Newton; ``precondition()`` gives M^-1 for the weights, by default the diagonal of H."""

    def __init__(
        self, precondition: Callable[[], Preconditioner] | None = None, limit: int = 500
    ) -> None:
        self._make = precondition
        self.limit = limit
        self.products = 0  # Hessian products of the last step
        self.stalled = False  # whether the last step ended at the limit

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        problem = run.problem
        squares, hx, h = problem.moments()
        intercept = problem.fit_intercept and h > 0
        mean = hx / h if intercept else np.zeros_like(hx)
        if self._make is None:
            spread = np.maximum(squares - mean * hx, 0.0) if intercept else squares
            diagonal = problem.lam + (SPARSE_SHARE * spread if problem.data.sparse else spread)
            diagonal[diagonal <= 0] = 1.0
            apply: Preconditioner = lambda r: r / diagonal  # noqa: E731
        else:
            apply = self._make()
        rhs = -(g[:-1] - mean * g[-1]) if intercept else -g[:-1]

        room = np.zeros(problem.order)

        def product(v: FloatArray) -> FloatArray:
            room[:-1] = v
            room[-1] = -dot(mean, v) if intercept else 0.0
            out: FloatArray = problem.hess_vec(room)[:-1]
            return out

        dw, left = self._solve(run, product, apply, rhs, value)
        db = -(g[-1] / h + dot(mean, dw)) if intercept else 0.0
        delta = np.append(dw, db)
        return delta, -dot(g, delta), left

    def _solve(
        self,
        run: Run[Problem],
        product: Callable[[FloatArray], FloatArray],
        apply: Preconditioner,
        rhs: FloatArray,
        value: float,
    ) -> tuple[FloatArray, float]:
        """Preconditioned conjugate gradients on S x = rhs from 0: x and |S x - rhs|^2."""
        lam, tol = run.problem.lam, run.stop.tol
        x, r = np.zeros_like(rhs), rhs.copy()
        y = apply(r)
        p, rho = y.copy(), dot(r, y)
        first = rho
        self.products, self.stalled = 0, False
        while self.products < self.limit and rho > 1e-30 * first:
            if self.products % 8 == 7:
                run.check_limits()
            Sp = product(p)
            self.products += 1
            curve = dot(p, Sp)
            if not curve > 0:
                break
            a = rho / curve
            x += a * p
            r -= a * Sp
            if self._enough(dot(r, r), dot(rhs, x), lam, tol, value, rho, first):
                return x, dot(r, r)
            y = apply(r)
            rho, old = dot(r, y), rho
            p *= rho / old
            p += y
        self.stalled = self.products >= self.limit
        return x, dot(r, r)

    @staticmethod
    def _enough(
        rr: float, decrement: float, lam: float, tol: float, value: float, rho: float, first: float
    ) -> bool:
        if lam > 0 and rr <= 0.4 * tol * lam * value:
            return True
        near = 0.5 * decrement <= NEAR * value
        return not near and rho <= 0.01 * first
