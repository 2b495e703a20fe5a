"""Piecewise linear losses with an elastic net, written as least absolute deviations with additional rows.

Every such loss is a sum of absolute values and a linear term (``Loss.absolute_terms``), and so is the penalty l1 |w|_1:

    l(m) = sum_k a_k |r - c_k| + g r + constant,      l1 |w|_1 = sum_j l1 |e_j.w|.

The quantile loss is |r|/2 + (q - 1/2) r, the epsilon-insensitive one |r - epsilon|/2 + |r + epsilon|/2 - epsilon.
The problem thus has the absolute loss with a linear term, one row for each a_k of each row, and d rows for the
penalty. ``central_path.py`` follows its central path, and the crossover finds its vertex. The dual point of the given
problem is u = sum_k a_k u_k + g; the gap is always that of the given problem.

Since |v_j| <= B_j = sum s |x_j| max |u|, any penalty above B_j gives w_j = 0; it is replaced by 2 B_j.

The rows of the penalty must not contain the intercept, which therefore is the coefficient of a constant column. With
l2 > 0 this column is so large that the penalty on its coefficient is negligible, and the median is subtracted from the
targets.

References: Koenker and Bassett, Regression quantiles, 1978; Portnoy and Koenker, The Gaussian hare and the Laplacian
tortoise, 1997 (interior point method); Li and Zhu, L1-norm quantile regression, 2008 (penalty).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data import Location, Memory
from linsep.losses import Absolute, zero_margin
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.interior.central_path import Path
from linsep.solvers.interior.kinked import follow
from linsep.solvers.interior.start import flat_answer, squared_start
from linsep.solvers.interior.vertex import solve_through
from linsep.solvers.newton import gram_reduction
from linsep.solvers.newton.exact_fit import exact_fit
from linsep.solvers.run import LimitReached, Run, begin

NAME = "absolute-rows"
# A coefficient whose dual variable is inside its interval is set to 0 if it contributes at most this share to scores.
VANISHED = 1e-11
LARGE_COLUMN = 1e5  # value of the constant column if l2 > 0, in units of the largest mean |x_j|


def applies(problem: Problem) -> bool:
    """Return whether the loss is piecewise linear, the rows are in memory and the features few enough to factorise."""
    return (
        problem.loss.absolute_terms is not None
        and problem.data.location is Location.MEMORY
        and problem.data.d <= gram_reduction.MAX_ORDER
    )


@dataclass(frozen=True, eq=False)
class _Extended:
    """The problem with additional rows, its linear term and constant, and the map back to the given problem."""

    given: Problem
    problem: Problem
    linear: FloatArray
    constant: float
    column: float  #: value of the constant column, 0 if there is none
    sizes: FloatArray  #: mean |x_j|
    shift: float  #: constant subtracted from the targets

    @classmethod
    def of(cls, given: Problem) -> _Extended:
        """Construct the problem: a row for each term of the loss at each row, and d rows for an L1 penalty."""
        found = given.loss.absolute_terms
        assert found is not None
        (terms, slope), data, l1 = found, given.data, given.penalty.l1
        sign, offset, weight = vectors(data)
        need = zero_margin(given.loss) - offset  # r = need - sign z
        column, mass, shift = 0.0, float(weight.sum()), 0.0
        sizes = np.asarray(abs(data.X).T @ weight, dtype=np.float64) / (mass or 1.0)
        if l1 and given.fit_intercept:
            shift = float(np.median(sign * need)) if given.lam else 0.0
            need = need - shift * sign
            column = LARGE_COLUMN * max(1.0, float(sizes.max(initial=0.0))) if given.lam else 1.0
        extra = data.d if l1 else 0
        X = stack(data.X, len(terms), column, extra)
        reach = max(map(abs, given.loss.domain)) * mass * sizes
        rows = Memory(
            X,
            np.concatenate([np.tile(sign, len(terms)), np.ones(extra)]),
            np.concatenate([*(c - need for _, c in terms), np.zeros(extra)]),
            np.concatenate([*(a * weight for a, _ in terms), np.minimum(l1, 2.0 * reach)[:extra]]),
            None,
            data.n_threads,
        )
        penalty = ElasticNet(1.0 / given.lam if given.lam > 0.0 else math.inf)
        free = given.fit_intercept and not column
        problem = Problem(Absolute(centre=0.0), penalty, rows, free)
        push = slope * weight * sign
        linear = np.append(data.X.T @ push, push.sum())
        if column:
            linear = np.append(linear[:-1], [column * linear[-1], 0.0])
        elif not free:
            linear[-1] = 0.0
        constant = slope * float(weight @ need) - mass * sum(a * abs(c) for a, c in terms)
        return cls(given, problem, linear, constant, column, sizes, shift)

    def coefficients(self, theta: FloatArray, u: FloatArray) -> FloatArray:
        """Return (w, b) of the given problem, with coefficients at the kink of their penalty set to 0."""
        d, found = self.given.data.d, theta.copy()
        if self.column:
            found = np.append(theta[:d], self.column * theta[d] + self.shift)
        if self.given.penalty.l1 and d:
            w, usual = found[:d], np.abs(vectors(self.problem.data)[1]).mean()
            parts = np.abs(w) * self.sizes
            w[(np.abs(u[-d:]) < 1.0) & (parts <= VANISHED * max(usual, parts.max()))] = 0.0
        return found

    def dual(self, u: FloatArray) -> Explicit:
        """Return the dual variables of the given rows."""
        found, n = self.given.loss.absolute_terms, self.given.data.n
        assert found is not None
        total = np.full(n, found[1])
        for k, (a, _) in enumerate(found[0]):
            total += a * u[k * n : (k + 1) * n]
        return Explicit(np.clip(total, *self.given.loss.domain))


def vectors(data: Any) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Return signs, offsets and weights of the rows."""
    offset = np.zeros(data.n) if data.offset is None else np.asarray(data.offset)
    weight = np.ones(data.n) if data.weight is None else np.asarray(data.weight)
    return np.asarray(data.sign), offset, weight


def stack(X: Any, copies: int, column: float = 0.0, units: int = 0) -> Any:
    """Stack ``copies`` of X, with a constant column if ``column`` is not 0, and ``units`` unit vectors."""
    sparse = sp.issparse(X)
    if column:
        constant = np.full((X.shape[0], 1), column, dtype=X.dtype)
        X = (
            sp.hstack([X, sp.csr_array(constant)], format="csr")
            if sparse
            else np.hstack([X, constant])
        )
    parts = [X] * copies
    if units:
        if sparse:
            parts.append(sp.eye_array(units, X.shape[1], dtype=X.dtype, format="csr"))
        else:
            parts.append(np.eye(units, X.shape[1], dtype=X.dtype))
    if len(parts) == 1:
        return X
    return sp.vstack(parts, format="csr") if sparse else np.vstack(parts)


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve by the interior point method on additional rows; see the module docstring."""
    penalised = problem.lam > 0.0 or problem.penalty.l1 > 0.0
    run = Run(problem, stop) if penalised else begin(problem, stop)
    nothing = Explicit(np.zeros(problem.data.n))
    flat = flat_answer(problem)
    if flat is not None and run.close(flat, nothing):
        return run.solution(Status.CERTIFIED, flat, nothing)
    status = Status.WORKING_PRECISION
    try:
        theta, value, _ = problem.start(theta)
        run.record(value + problem.penalty.l1 * float(np.abs(theta[:-1]).sum()))
        fitted = None if penalised else exact_fit(problem, value)
        if fitted is not None:
            return run.solution(Status.WORKING_PRECISION, fitted, nothing)
        if _attempt(run, _Extended.of(problem)):
            status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, nothing)


def _attempt(run: Run[Problem], rows: _Extended) -> bool:
    """Follow the central path and cross over to the vertex; return whether the gap closed."""

    def close(theta: FloatArray, u: FloatArray) -> bool:
        return run.close(rows.coefficients(theta, u), rows.dual(u))

    path = Path(run, rows.problem, rows.linear, rows.constant)
    start = squared_start(rows.problem, np.zeros(rows.problem.order))
    return follow(path, start, 0.1, close, exact=True, polish=partial(_polish, rows.problem))


def _polish(problem: Problem, theta: FloatArray, u: FloatArray) -> FloatArray:
    """Recompute the vertex from the rows on their kink, whose dual variables are strictly inside [-1, 1]."""
    data = problem.data
    sign, offset, weight = vectors(data)
    free = np.flatnonzero((np.abs(u) < 1.0) & (weight > 0.0))
    if problem.lam > 0.0 or not 0 < len(free) <= 2 * problem.order:
        return theta
    rows = data.X[free].toarray() if sp.issparse(data.X) else np.asarray(data.X[free], np.float64)
    used = slice(None) if problem.fit_intercept else slice(0, -1)
    A = (sign[free, None] * np.column_stack([rows, np.ones(len(free))]))[:, used]
    found = theta.copy()
    found[used] = solve_through(A, -offset[free], theta[used])
    return found if np.isfinite(found).all() else theta
