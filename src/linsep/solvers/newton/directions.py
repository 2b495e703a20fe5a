"""Solve the Newton system H delta = -g by a Cholesky factorisation or by conjugate gradients.

Cholesky: H is summed in the coordinates (w, c) with c = b + mu.w, i.e. for centred rows, Jacobi-scaled,
factorised, and the solution is refined once. This suffices for columns of any scale (algorithmic reference:
Higham, Accuracy and Stability, ch. 10 and 12).

Conjugate gradients: b is eliminated exactly. With h the curvatures, x~ = sum h x / sum h,

    (H_ww - H_wb H_bw / H_bb) dw = -(g_w - x~ g_b),     db = -(g_b + H_bw dw)/H_bb,

so the intercept's equation holds to rounding whatever the accuracy of dw. The iteration stops early
while far from the optimum, and near it only when |r|^2/(2 lam), the contribution of the residual r to the
Newton-dual gap, is a fraction of the tolerated gap.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import NamedTuple, Protocol

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location, mapped_vectors
from linsep.problem import Problem, dot
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, sweeps
from linsep.solvers.linalg import cg
from linsep.solvers.linalg.factor import Factor, solve_spd
from linsep.solvers.run import CLOSING_DECREMENT, Run

#: The step, the squared Newton decrement -g.delta, and |r|^2 of the residual r = H delta + g (weights).
Step = tuple["FloatArray", float, float]
# Weight of the diagonal of X'hX relative to lam for sparse rows: rows of text have similar norms, columns do not.
SPARSE_SHARE = 0.1
# Curvature of the mean of the rows, after division by the diagonal, from which it is part of the preconditioner: a
# multiple of 1, the mean curvature, and of what rows around 0 would show.
CLEAR = 2.0
# Single precision: its squared relative error, the smallest pivot that tolerates it, half the squared decrement
# relative to P below which the gap may reveal it, and the number of refinements that cost less than double precision.
BLUR, SURE, SEEN, REFINEMENTS = 4e-14, 1e-4, 0.05, 2
REPAIRABLE = 2e-6  # smallest pivot that tolerates single precision if the step is refined
# vectors of length d that a step reads: six for each of about ten pairs (quasi_newton.py)
STEP_VECTORS = 60.0


def centre_gradient(g: FloatArray, mu: FloatArray) -> FloatArray:
    """Transform a gradient from (w, b) to the coordinates (w, c), c = b + mu.w."""
    out = g.copy()
    out[:-1] -= mu * g[-1]
    return out


class Cholesky:
    """Newton direction by a Cholesky factorisation of the full Hessian: one more pass, of n d^2 work.

    The Hessian is in single precision as long as the smallest pivot tolerates its error, 1e-7 of the diagonal. If the
    error would be visible in the gap (a residual r adds |r|^2/(2 lam)), the step is refined: a product with the Hessian
    in double precision costs a fraction of computing it.
    """

    def __init__(self, mu: FloatArray, exact: bool = False) -> None:
        self.mu = mu
        self._exact = exact  # whether to use double precision
        self.H = np.zeros((0, 0))  # the last Hessian in double precision

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        problem = run.problem
        rhs = -g
        rhs[:-1] += self.mu * g[-1]
        self._exact = self._exact or problem.lam == 0.0 or problem.data.sparse
        if not self._exact:
            H = problem.hessian(self.mu, single=True)
            found = self._refine(problem, H, rhs, value, run.stop.tol)
            if found is not None:
                return found
            self._exact = True
            problem.expect_hessian(self.mu, single=False)
        H = self.H = problem.hessian(self.mu)
        delta = solve_spd(H, rhs, definite=problem.lam > 0)
        return self._placed(delta), dot(rhs, delta), 0.0

    def improve_accuracy(self) -> bool:
        """Change to double precision; False if it is already in use."""
        was, self._exact = self._exact, True
        return not was

    def _refine(
        self, problem: Problem, H: FloatArray, rhs: FloatArray, value: float, tol: float
    ) -> Step | None:
        """Return the step from a Hessian in single precision, refined as the gap requires; None if that fails."""
        if not np.isfinite(H).all():
            return None
        factor = Factor(H, definite=True)
        # on a cluster a product takes another round; on disk the refined step is bit-identical to memory
        times = 0 if problem.data.location is Location.CLUSTER else REFINEMENTS
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
        """Transform a step from (w, c), c = b + mu.w, to (w, b)."""
        out = delta.copy()
        out[-1] -= self.mu @ delta[:-1]
        return out

    @staticmethod
    def _blur(H: FloatArray, delta: FloatArray) -> float:
        """Estimate of |r|^2 due to single precision: r = 2e-7 diag(H)^1/2 |diag(H)^1/2 delta|."""
        diagonal = np.diag(H)[:-1]
        return BLUR * float(diagonal.sum()) * float(diagonal @ delta[:-1] ** 2)


def truncated_work(shape: Shape) -> Work:
    """Return the work of one sweep or Hessian product, and of the vector operations of a step."""
    return {"calls": 1.0, **sweeps(shape, 1.0), "vectors": STEP_VECTORS * shape.d}


Preconditioner = Callable[["FloatArray"], "FloatArray"]


class Preconditioning(Protocol):
    """Source of the preconditioner M^-1 for the weights, intercept eliminated; None means the diagonal of H."""

    def __call__(self, problem: Problem) -> Preconditioner | None:
        """Return M^-1 for the start of a solve, at the curvatures of the last sweep."""
        ...

    def renew(self, problem: Problem, products: int) -> Preconditioner | None:
        """Return a better M^-1 after ``products`` products of the current solve, if it pays; else None."""
        ...


class DiagonalInverse(NamedTuple):
    """Inverse of M = D + h mean mean', as D^-1 - q p p' (Sherman and Morrison 1950); D^-1 alone if p is None."""

    diagonal: FloatArray
    p: FloatArray | None = None
    q: float = 0.0

    def __call__(self, r: FloatArray) -> FloatArray:
        out: FloatArray = r / self.diagonal
        mapped_vectors.release(self.diagonal)  # saves memory if the rows are on disk
        if self.p is not None:
            out -= self.q * dot(self.p, r) * self.p
            mapped_vectors.release(self.p)
        return out


def diagonal_inverse(
    problem: Problem, moments: tuple[FloatArray, FloatArray, float], even: float = 0.0
) -> DiagonalInverse:
    """Preconditioner for the weights from the sums of h x^2, h x and h; an intercept is eliminated.

    Without an intercept that follows the mean of the scores, the mean of the rows may be the direction of the largest
    curvature: counts, frequencies, these with the column of a penalised intercept. It is then part of M. The diagonal
    of dense rows is replaced by its mean if its largest entry is at most ``even`` times the smallest.
    """
    squares, hx, h = moments
    if not h > 0.0:
        return DiagonalInverse(_diagonal(problem, squares, even))
    spread = np.maximum(squares - hx * hx / h, 0.0)
    if problem.fit_intercept:
        return DiagonalInverse(_diagonal(problem, spread, even))
    plain = _diagonal(problem, squares, even)
    noise = (
        float(np.sum(spread / plain)) / problem.data.n
    )  # expected curvature of the mean of rows around 0
    if not dot(hx / plain, hx) > CLEAR * h * max(1.0, noise):
        return DiagonalInverse(plain)
    diagonal = _diagonal(problem, spread, even)
    p = hx / diagonal
    return DiagonalInverse(diagonal, p, 1.0 / (h + dot(hx, p)))


def _diagonal(problem: Problem, spread: FloatArray, even: float) -> FloatArray:
    diagonal: FloatArray = problem.lam + (SPARSE_SHARE * spread if problem.data.sparse else spread)
    diagonal[diagonal <= 0] = 1.0
    if even and not problem.data.sparse and diagonal.max() <= even * diagonal.min():
        diagonal[:] = diagonal.mean()
    return diagonal


class ConjugateGradients:
    """Truncated Newton direction by conjugate gradients, preconditioned by the diagonal of H or as given."""

    def __init__(self, preconditioning: Preconditioning | None = None, limit: int = 500) -> None:
        self._preconditioning = preconditioning
        self.limit = limit
        self.products = 0  # Hessian products of the last step
        self.stalled = False  # whether the last step ended at the limit, or without curvature

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        problem, ask = run.problem, self._preconditioning
        given = ask(problem) if ask is not None else None
        moments = problem.moments()
        h = moments[2]
        intercept = problem.fit_intercept and h > 0
        mean = moments[1] / h if intercept else np.zeros_like(moments[1])
        inverse = diagonal_inverse(problem, moments) if given is None else given
        del moments  # reduces peak memory during the products
        done = 0
        rhs = -(g[:-1] - mean * g[-1]) if intercept else -g[:-1]
        mapped_vectors.release(g)  # reduces peak memory during the products
        direction, count = np.zeros(problem.order), itertools.count()

        def product(v: FloatArray) -> FloatArray:
            if next(count) % 8 == 7:
                run.check_limits()
            direction[:-1] = v
            direction[-1] = -dot(mean, v) if intercept else 0.0
            out: FloatArray = problem.hess_vec(direction)[:-1]
            return out

        lam, tol = problem.lam, run.stop.tol

        def ends(at: cg.Iterate) -> bool:
            if not at.rho > 1e-30 * at.rho_first:
                return True
            if at.products == 0:
                return False
            size, decrement = dot(at.r, at.r), dot(rhs, at.x)
            return self._enough(size, decrement, lam, tol, value, at.rho_before, at.rho_first)

        def precondition(r: FloatArray) -> FloatArray:
            return inverse(r)

        def renew() -> bool:
            nonlocal inverse, done
            done += 1
            better = ask.renew(problem, done) if ask is not None else None
            inverse = inverse if better is None else better
            return better is not None

        at = cg.solve(product, precondition, rhs, ends, self.limit, renew=renew)
        self.products, self.stalled = at.products, not at.ended
        db = -(g[-1] / h + dot(mean, at.x)) if intercept else 0.0
        delta = np.append(at.x, db)
        decrement = -dot(g, delta)
        mapped_vectors.release(g)
        return delta, decrement, dot(at.r, at.r)

    def improve_accuracy(self) -> bool:
        """Return False: there is no more accurate direction that needs as little memory."""
        return False

    @staticmethod
    def _enough(
        rr: float, decrement: float, lam: float, tol: float, value: float, rho: float, first: float
    ) -> bool:
        if lam > 0 and rr <= 0.4 * tol * lam * value:
            return True
        near = 0.5 * decrement <= CLOSING_DECREMENT * value
        return not near and rho <= 0.01 * first
