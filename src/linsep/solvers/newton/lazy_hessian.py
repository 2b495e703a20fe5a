"""Preconditioner from a Hessian that is updated only for rows whose curvature has changed much.

Problem: min lam/2 |w|^2 + sum s l(m) by Newton's method on dense rows with a few hundred to a few thousand features.
H = lam + sum h x x' is computed once, in single precision; afterwards a row is added or subtracted only when its
curvature h has changed by more than a factor. The resulting M has eigenvalues of M^-1 H within that factor of 1, so few
products make a step accurate, and a row contributes to only one or two of all Hessians of a fit. For the squared hinge,
whose curvatures are 0 or 2, only the rows that cross the margin are updated.

M is computed or updated once the conjugate gradient products so far have taken half as long as that would take: whether
the spectrum needs M or not, the cost is then little more than that of the better choice.

References: Keerthi and DeCoste, A modified finite Newton method, 2005 (rows that cross the margin). Erdogdu and
Montanari, Convergence rates of sub-sampled Newton methods, 2015 (approximate Hessians).
"""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data.memory import kernel_rows, readable
from linsep.problem import Problem
from linsep.problem.pointwise import CURVATURE
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, prices
from linsep.solvers.linalg.factor import Factor, eliminate_intercept
from linsep.solvers.newton.directions import REPAIRABLE, Preconditioner, truncated_work

FACTOR = 12.0  # largest ratio between the curvature of a row and its value in M
NEGLIGIBLE = 1e-3  # curvature of a row, relative to the largest, that M may omit
COPIED = 1024  # largest number of outdated rows that are copied
# M is computed or updated once the products have cost this fraction of it; the second value is for updates if
# curvatures change only at kinks, so that the updated M equals H.
WORTH, WORTH_EXACT = 0.5, 0.05


def _row_work(shape: Shape) -> Work:
    """Return the work of adding one dense row to a Gram matrix."""
    return {"single gram": 0.5 * shape.d**2}


def _factor_work(shape: Shape) -> Work:
    """Return the work of a Cholesky factorisation."""
    return {"calls": 3.0, "factors": shape.d**3 / 3.0}


def prices_of(problem: Problem) -> tuple[float, float]:
    """Return the costs of one row of a Gram matrix and of a factorisation [products with the full Hessian]."""
    shape, known = Shape(problem.data.n, problem.data.d, problem.data.n_entries), prices()
    product = known.iteration(truncated_work, shape)
    row, factored = known.iteration(_row_work, shape), known.iteration(_factor_work, shape)
    return row / product, factored / product


class LazyHessian:
    """Preconditioner M^-1 for conjugate gradients with the intercept eliminated, see the module docstring."""

    def __init__(self, problem: Problem, products: float = 0.0) -> None:
        """Start without M; ``products`` already made count, so that with inf M is computed after the next one."""
        self._row, self._factored = prices_of(problem)
        self.price = self._factored + self._row * problem.data.n
        self._mu: FloatArray | None = None
        self._sums = self._weights = np.zeros(0)
        self._factor: Factor | None = None
        self._single = True
        self._products = products  # since M was last computed or updated

    def __call__(self, problem: Problem) -> Preconditioner | None:
        """Return the current factor; None if there is none yet."""
        return None if self._factor is None else self._factor.apply

    def renew(self, problem: Problem, products: int) -> Preconditioner | None:
        """Compute or update the factor if the products so far justify it; None if not."""
        self._products += 1
        worth = WORTH if self._factor is None or problem.loss.recedes else WORTH_EXACT
        if worth * self._factored > self._products:
            return None
        rows = np.count_nonzero(self._outdated(problem)) if self._factor else problem.data.n
        if rows == 0 or worth * (self._factored + self._row * rows) > self._products:
            return None
        self._refresh(problem)
        self._products = 0
        assert self._factor is not None
        return self._factor.apply

    def _outdated(self, problem: Problem) -> FloatArray:
        """Return the change of every row's curvature since it entered M; 0 if within the tolerance."""
        h, kept = problem.data.row_state(CURVATURE), self._weights
        floor = NEGLIGIBLE * float(h.max(initial=0.0))
        changed = (h > FACTOR * kept + floor) | (kept > FACTOR * h + floor)
        return np.where(changed, h - kept, 0.0)

    def _refresh(self, problem: Problem) -> None:
        """Update the Gram matrix, or recompute it if that reads fewer rows, and factorise it."""
        h = problem.data.row_state(CURVATURE)
        present = np.where(h > NEGLIGIBLE * float(h.max(initial=0.0)), h, 0.0)
        if self._mu is None:
            self._mu = problem.centre()
            change = present
        else:
            change = self._outdated(problem)
        if np.count_nonzero(change) >= np.count_nonzero(present):
            self._weights = present
            self._sums = problem.gram(present, self._mu, self._single)
        else:
            self._weights = self._weights + change
            for sign in (1.0, -1.0):
                self._sums += sign * self._gram(problem, np.maximum(sign * change, 0.0))
        self._factor = self._factorise(problem)

    def _factorise(self, problem: Problem) -> Factor:
        """Factorise M; recompute it in double precision if the smallest pivot is too small for single precision."""
        assert self._mu is not None
        if self._single and np.isfinite(self._sums).all():
            factor = self._factor_of(problem)
            if factor.least > REPAIRABLE:
                return factor
        if self._single:
            self._single = False
            self._sums = problem.gram(self._weights, self._mu)
        return self._factor_of(problem)

    def _factor_of(self, problem: Problem) -> Factor:
        assert self._mu is not None
        H = problem.hessian_of(self._sums, self._mu)
        return Factor(eliminate_intercept(H), definite=True)

    def _gram(self, problem: Problem, weights: FloatArray) -> FloatArray:
        """Gram matrix of the rows with nonzero weight; if they are few, from a copy instead of a pass."""
        assert self._mu is not None
        rows = np.flatnonzero(weights)
        if len(rows) > COPIED:
            return problem.gram(weights, self._mu, self._single)
        out = np.zeros(problem.order * problem.order)
        if len(rows):
            some = problem.data.sample(rows)
            problem.passes += len(rows) / problem.data.n
            _kernels.gram(
                kernel_rows(readable(some.X)),
                0,
                len(rows),
                weights[rows],
                self._mu,
                out,
                self._single,
            )
        return out.reshape(problem.order, problem.order)
