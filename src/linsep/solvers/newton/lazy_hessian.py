"""A factor of the Hessian that follows the curvatures of the rows at a distance, as a preconditioner.

Problem: min lam/2 |w|^2 + sum s l(m) by Newton's method on dense rows with some hundred to some thousand features. H =
lam + sum h x x' is made once, in single precision; from then on a row is added or subtracted only when its weight h
has changed by more than a factor. What is left in M has eigenvalues of M^-1 H within that factor of 1, so that few
products make a step exact, and a row takes part in one or two of all Hessians of a fit. Of the squared hinge, whose
curvatures are 0 or 2, only the rows that pass the margin do.

M is made, or brought up to date, once conjugate gradients without that have taken half as long as it would take, so
that a spectrum that needs no M, and one that needs it at once, both cost little more than the better choice.

References: Keerthi and DeCoste, A modified finite Newton method, 2005 (rows that pass the margin). Erdogdu and
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
from linsep.solvers.linalg.factor import Factor
from linsep.solvers.newton.directions import REPAIRABLE, Preconditioner, truncated_work

FACTOR = 12.0  # by which the weight of a row may differ from the one it has in M
NEGLIGIBLE = 1e-3  # weight of a row that may be missing in M, as a share of the largest
COPIED = 1024  # rows out of date up to which they are copied
# Share of its price that products may cost before M is made, or brought up to date; the second if curvatures are
# constant but for rows that pass a kink, so that M is H once it is up to date.
WORTH, WORTH_EXACT = 0.5, 0.05


def _row_work(shape: Shape) -> Work:
    """Counts of one row of a Gram matrix of dense rows."""
    return {"single gram": 0.5 * shape.d**2}


def _factor_work(shape: Shape) -> Work:
    """Counts of a factorisation."""
    return {"calls": 3.0, "factors": shape.d**3 / 3.0}


def prices_of(problem: Problem) -> tuple[float, float]:
    """Prices of one row of a Gram matrix and of a factorisation, in products with the Hessian of all rows."""
    shape, known = Shape(problem.data.n, problem.data.d, problem.data.n_entries), prices()
    product = known.iteration(truncated_work, shape)
    row, factored = known.iteration(_row_work, shape), known.iteration(_factor_work, shape)
    return row / product, factored / product


class LazyHessian:
    """M^-1 for conjugate gradients, intercept eliminated: see above."""

    def __init__(self, problem: Problem, products: float = 0.0) -> None:
        """With ``products`` made before: at its price or beyond, M is made after the first one."""
        self._row, self._factored = prices_of(problem)
        self.price = self._factored + self._row * problem.data.n
        self._mu: FloatArray | None = None
        self._sums = self._weights = np.zeros(0)
        self._factor: Factor | None = None
        self._single = True
        self._products = products  # since M was last made or brought up to date

    def __call__(self, problem: Problem) -> Preconditioner | None:
        """The factor as it is; None while there is none."""
        return None if self._factor is None else self._factor.apply

    def renew(self, problem: Problem, products: int) -> Preconditioner | None:
        """The factor after so many products: made, or brought up to date."""
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
        """Change of the weight of every row, 0 where it is small enough."""
        h, kept = problem.data.row_state(CURVATURE), self._weights
        floor = NEGLIGIBLE * float(h.max(initial=0.0))
        changed = (h > FACTOR * kept + floor) | (kept > FACTOR * h + floor)
        return np.where(changed, h - kept, 0.0)

    def _refresh(self, problem: Problem) -> None:
        """Bring the sums up to date, or make them anew if that reads fewer rows."""
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
        """Factor of M; once its smallest pivot cannot stand single precision, the sums are made in double."""
        assert self._mu is not None
        if self._single and np.isfinite(self._sums).all():
            factor = Factor(self._schur(problem), definite=True)
            if factor.least > REPAIRABLE:
                return factor
        if self._single:
            self._single = False
            self._sums = problem.gram(self._weights, self._mu)
        return Factor(self._schur(problem), definite=True)

    def _gram(self, problem: Problem, weights: FloatArray) -> FloatArray:
        """Gram of the rows with a weight: a copy of few of them is read by one kernel, without a pass over all."""
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

    def _schur(self, problem: Problem) -> FloatArray:
        """M among the weights, the intercept eliminated."""
        assert self._mu is not None
        H = problem.hessian_of(self._sums, self._mu)
        S = H[:-1, :-1]
        if problem.fit_intercept and H[-1, -1] > 0:
            S = S - np.outer(H[:-1, -1], H[:-1, -1]) / H[-1, -1]
        return S
