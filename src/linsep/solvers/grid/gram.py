"""Grid engine for more features than rows: all models from one Gram matrix of the rows.

With a ridge penalty every model is w = X'a. The Gram matrix K = (X - mu)(X - mu)' of all rows is computed once; its
submatrix K_f of a training set defines the problem exactly, whatever the number of features. Piecewise quadratic losses
are solved with K_f alone (``solvers/newton/gram_space.py``), the logistic loss on the rows of the Cholesky factor L,
K_f = L L', which have the same inner products and as many columns as rows. Held-out scores and certificates are also
computed from K; the rounding errors of K are included in the gap (``certificates/gram.py``).
"""

from __future__ import annotations

from collections.abc import Iterator
from time import perf_counter

import numpy as np
from scipy.linalg import LinAlgError, cholesky

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.data.threads import usable_threads
from linsep.interrupts import Workers, dense_product, lapack
from linsep.losses import CoupledLoss
from linsep.monitoring import advance
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.problem.gram import GramRows
from linsep.solution import Explicit, Status, Stop
from linsep.solvers import choose
from linsep.solvers.dual_ascent import solve as dual_ascent
from linsep.solvers.grid.problem import GridProblem, HeldOut, SpanProposal
from linsep.solvers.newton import gram_space

NAME = "span"
LARGEST = 3000  # largest number of rows for which the Gram matrix is computed
_WORTH = 200  # rows per model of the grid up to which the Gram matrix pays
# Rows up to which Newton's method always beats ascent; with more, ascent gets n/_EPOCHS(_SMOOTH) epochs first.
_FEW, _EPOCHS, _EPOCHS_SMOOTH = 600, 10, 25
_COLUMNS = 4096  # columns of X that are centred at a time
_READING = 2.0  # passes for K and for the coefficients
_SHARE = 0.3  # relative gap of a model, as a fraction of tol
# Stretch of a hinge model as a fraction of that gap: the larger one if a row on the kink is within rounding of it.
_LONGER = (gram_space.STRETCH, 10.0 * gram_space.STRETCH)
# Multiple of the largest |x|^2 added to the diagonal of a singular K_f; increased tenfold until it can be factorised.
_LIFT = 1e-15


def applies(problem: GridProblem) -> bool:
    """Return whether there are more features than rows, few enough rows, and a loss that dual ascent supports."""
    loss = problem.recipe.loss
    if isinstance(loss, CoupledLoss) or not dual_ascent.covers(loss) or problem.recipe.limited:
        return False
    if not isinstance(problem.rows, np.ndarray) or not problem.plain_ridge:
        return False
    n, d = problem.rows.shape
    models = len(problem.Cs) * max(1, int(problem.part.max()) + 1)
    return n < d and n <= min(LARGEST, _WORTH * models) and problem.both_classes


def solve(problem: GridProblem, held: HeldOut) -> Iterator[SpanProposal]:
    """Yield a proposal for every C and fold."""
    span = InnerProducts(problem)
    folds, threads = problem.folds, problem.recipe.n_threads
    threads = usable_threads() if threads is None else threads

    def fit(f: int) -> list[SpanProposal]:
        return _fit_fold(span, f)

    with Workers(max(1, min(threads, len(folds))), "linsep-fold") as pool:
        for done, proposals in enumerate(pool.map(fit, folds), 1):
            advance(done * len(problem.Cs))
            yield from proposals


class InnerProducts:
    """Centre mu and centred Gram matrix K of all rows of a problem."""

    def __init__(self, problem: GridProblem) -> None:
        self.problem, X = problem, problem.rows
        n, d = X.shape
        self.mu = np.zeros(d)
        if problem.recipe.fit_intercept:
            self.mu = np.asarray(X.mean(axis=0, dtype=np.float64))
        self.K = np.zeros((n, n))
        for low in range(0, d, _COLUMNS):
            some = self._centre(slice(low, low + _COLUMNS))
            self.K += dense_product(some, some.T)
        self.sigma = np.ones(n) if problem.sigma is None else problem.sigma

    def _centre(self, columns: slice) -> FloatArray:
        return np.asarray(self.problem.rows[:, columns], np.float64) - self.mu[columns]

    def take(self, rows: IntArray) -> GramRows:
        """Return the Gram matrix and targets of the rows that a model is trained on."""
        problem = self.problem
        return GramRows(
            np.ascontiguousarray(self.K[np.ix_(rows, rows)]),
            problem.rows.shape[1],
            float(np.linalg.norm(self.mu)),
            self.sigma[rows],
            None if problem.offset is None else problem.offset[rows],
            None if problem.weight is None else problem.weight[rows],
        )

    def lift(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Return coefficients (d + 1, models): w = (X - mu)'a for every column a of A, with intercepts b at mu."""
        d = self.problem.rows.shape[1]
        W = np.zeros((d + 1, A.shape[1]))
        for low in range(0, d, _COLUMNS):
            here = slice(low, min(low + _COLUMNS, d))
            W[here] = dense_product(self._centre(here).T, A)
        if self.problem.recipe.fit_intercept:
            W[-1] = b - self.mu @ W[:-1]
        return W

    def scores(self, A: FloatArray, b: FloatArray) -> FloatArray:
        """Return the scores (n, models) of all rows by the models A, b."""
        return np.asarray(dense_product(self.K, A) + b)


def _factor(K: FloatArray) -> FloatArray:
    """Return the Cholesky factor L of K, with a tiny diagonal added if K is numerically singular."""
    lift = 0.0
    top = max(float(np.diag(K).max(initial=0.0)), 1e-300)
    while True:
        try:
            lifted = K if lift == 0.0 else K + lift * np.eye(len(K))
            return np.ascontiguousarray(lapack(cholesky, lifted, lower=True, check_finite=False))
        except LinAlgError:
            lift = 10.0 * lift if lift else _LIFT * top


def _fit_fold(span: InnerProducts, f: int) -> list[SpanProposal]:
    """Fit the models of all C, in increasing order, on the rows outside fold f."""
    problem = span.problem
    loss, tol = problem.loss, _SHARE * problem.recipe.tol
    rows = span.take(np.flatnonzero(problem.training_rows(f)))
    entries, models = problem.rows.size, len(problem.Cs) * len(problem.folds)
    stretches = tuple(s * tol for s in (_LONGER if not loss.smooth else _LONGER[:1]))
    find = _by_newton if gram_space.applies(loss) else _by_rows
    found = []
    began = perf_counter()
    for c, (u, b, read) in enumerate(find(problem, rows, tol)):
        passes = _READING / models + read / entries
        seconds, began = perf_counter() - began, perf_counter()
        found.append(SpanProposal(c, f, span, rows, u, b, stretches, passes, seconds))
    return found


Answer = tuple["FloatArray", float, float]  # u, b, number of matrix entries read


def _by_newton(problem: GridProblem, rows: GramRows, tol: float) -> Iterator[Answer]:
    """Solve piecewise quadratic losses for all C with the Gram matrix; with many rows dual ascent is tried first."""
    recipe, loss, n = problem.recipe, problem.loss, len(rows.K)
    offset = np.zeros(n) if rows.offset is None else rows.offset
    weight = np.ones(n) if rows.weight is None else rows.weight
    span = gram_space.Span(loss, rows.K, rows.sigma, offset, weight, recipe.fit_intercept)
    table = _table(rows) if n > _FEW else None
    budget = n / (_EPOCHS_SMOOTH if loss.smooth else _EPOCHS)
    start = None
    for C in problem.Cs:
        lam = ElasticNet(C).l2
        known = None if start is None else gram_space.reuse_if_optimal(span, lam, tol, *start)
        if known is None and start is not None and not loss.smooth:
            known = gram_space.polish_if_close(span, lam, tol, *start)
        if known is None and table is not None:
            reduced = Problem(loss, ElasticNet(C), table, recipe.fit_intercept)
            begin = np.zeros(reduced.order)
            first = dual_ascent.solve(reduced, begin, Stop(tol), None, recipe.seed or 0, budget)
            if first.status is Status.CERTIFIED and isinstance(first.dual, Explicit):
                u, b = first.dual.u, float(first.W[-1, 0])
                if loss.smooth or u.max() >= loss.domain[1]:
                    start = u / lam, b
                    yield u, b, reduced.passes * n * n
                    continue
                known = gram_space.polished(span, lam, tol, u, b)  # also solves all larger C
        found = gram_space.solve(span, lam, tol, start) if known is None else known
        start = found.u / lam, found.b
        yield found.u, found.b, float(2 * found.steps * n * n)


def _table(rows: GramRows) -> Memory:
    return Memory(_factor(rows.K), rows.sigma, rows.offset, rows.weight, n_threads=1)


def _by_rows(problem: GridProblem, rows: GramRows, tol: float) -> Iterator[Answer]:
    """Solve other losses for all C on the rows of L, with warm starts from the previous C."""
    recipe, loss, data = problem.recipe, problem.loss, _table(rows)
    L = data.X
    theta = np.zeros(L.shape[1] + 1)
    for C in problem.Cs:
        reduced = Problem(loss, ElasticNet(C), data, recipe.fit_intercept)
        solution = choose(reduced, "auto", Stop(tol)).run(
            reduced, theta, Stop(tol), recipe.seed or 0
        )
        theta = np.ascontiguousarray(solution.W[:, 0])
        dual = solution.dual
        u = dual.u if isinstance(dual, Explicit) else reduced.unfold(theta, dual)
        yield u, float(theta[-1]), reduced.passes * L.size
