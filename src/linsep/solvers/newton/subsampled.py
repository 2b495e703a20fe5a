"""Newton's method started or preconditioned by a pilot: the fastest measured combinations for dense rows.

Few features: a pilot by the native Newton method, then Newton-Cholesky on all rows. More features: quasi-Newton steps,
with the Hessian of a pilot if there are many rows and features are correlated or steps are slow. If that is slow too,
this Hessian preconditions conjugate gradients; once these cost more than a factorisation, Newton-Cholesky takes over.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.interrupts import if_in_time
from linsep.losses import Squared, zero_margin
from linsep.problem import Problem, dot
from linsep.solution import Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, sweeps
from linsep.solvers.linalg import minimum_norm
from linsep.solvers.linalg.factor import Factor, eliminate_intercept
from linsep.solvers.newton import gram_reduction
from linsep.solvers.newton import native as native_newton
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import (
    REPAIRABLE,
    Cholesky,
    ConjugateGradients,
    Preconditioner,
    Step,
    truncated_work,
)
from linsep.solvers.newton.lazy_hessian import LazyHessian, prices_of
from linsep.solvers.newton.quasi_newton import REST, QuasiNewton
from linsep.solvers.run import Run, linearised

MANY = 25  # rows per feature from which a pilot's Hessian is a good preconditioner
PILOT_PART = 0.1  # share of the rows in the pilot
GRAM_PASSES = 20  # a Hessian of d features costs about d/20 products
HARD = 12  # products in a step after which the pilot's Hessian is recomputed
#: Products in a step with an up-to-date Hessian after which single precision is considered too inaccurate.
MAX_PRODUCTS = 100
#: Rows per feature of a pilot: at least, and at most unless PILOT_PART of the rows are more.
PILOT_ROWS, PILOT_MOST = 10, 40
CORRELATED = 0.3  # sum of squared correlations of a feature from which a pilot beats the diagonal
PILOT_PRICE = 1.5  # products that the pilot's Gram matrix may always cost
LONGEST = 30.0  # largest predicted number of remaining quasi-Newton steps with a pilot's Hessian
CHEAP_HESSIAN = 2.0  # cost [products] of the full Hessian up to which a pilot's does not pay
INTERPOLATED = 1e-16  # objective, relative to that of the null model, that is rounding error


def cholesky_work(shape: Shape) -> Work:
    """Return the work of one iteration: two sweeps, a Gram matrix (dense: single precision), a factorisation."""
    gram = "sparse gram" if shape.sparse else "single gram"
    return {
        **{"calls": 3.0, **sweeps(shape, 2.0), gram: shape.pairs},
        "factors": shape.d**3 / 3.0,
    }


def preconditioned_work(shape: Shape) -> Work:
    """Return the work of one product or sweep, with its share of the Hessian of a pilot (of all rows if few)."""
    part = PILOT_PART if shape.n >= MANY * shape.d else 1.0
    return {
        **truncated_work(shape),
        **{
            "single gram": part * shape.pairs / GRAM_PASSES,
            "factors": shape.d**3 / (3.0 * GRAM_PASSES),
        },
    }


def pilot_pays(problem: Problem) -> bool:
    """Return whether the Hessian of all rows is so expensive that the Hessian of a sample may save time.

    If both are cheap it saves little, and convergence is slow if the sample misses rare values.
    """
    row, factored = prices_of(problem)
    return factored + row * problem.data.n > CHEAP_HESSIAN


def solve_cholesky(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Newton-Cholesky on all rows, started from the optimum of a pilot if that pays."""
    data, mu = problem.data, None
    if _may_interpolate(problem) and not theta.any():
        run = Run(problem, stop)
        shortest = _in_span(problem, stop, seed)
        run.record(problem.value_gradient(shortest)[0])
        if run.trace[-1].primal <= INTERPOLATED * problem.null_value():
            dual = linearised(shortest, np.zeros_like(shortest))
            return run.solution(Status.WORKING_PRECISION, shortest, dual)
    if data.n_entries > native_newton.ENTRIES and not theta.any():
        penalised = problem.lam > 0.0
        first = (native_newton.worthy_pilot if penalised else native_newton.penalised_pilot)(
            problem, seed
        )
        if first is not None:  # the pilot also gives the centre without another pass
            theta, mu = native_newton.pilot_optimum(first, theta), first.centre()
    mu = problem.centre() if mu is None else mu
    problem.expect_hessian(mu, single=problem.lam > 0.0 and not data.sparse)
    solution = newton.solve(problem, theta, stop, Cholesky(mu))
    if problem.lam == 0.0 and solution.status is Status.WORKING_PRECISION:
        theta = np.ascontiguousarray(solution.W[:, 0])
        problem.value_gradient(theta)
        shortest = if_in_time(lambda: minimum_norm.among_minimisers(problem, theta), lambda: theta)
        return Solution(
            shortest.reshape(-1, 1),
            solution.dual,
            solution.status,
            problem.passes,
            solution.seconds,
            solution.trace,
        )
    return solution


def _may_interpolate(problem: Problem) -> bool:
    """Return whether there is no penalty, the loss has slopes of both signs, and few rows but more features."""
    low, high = problem.loss.domain
    here = problem.data.location is Location.MEMORY
    return here and problem.lam == 0.0 and low < 0.0 < high and gram_reduction.applies(problem)


def _in_span(problem: Problem, stop: Stop, seed: int) -> FloatArray:
    """Minimum-norm least-squares fit, computed in the span of the rows; if it interpolates, every loss is 0."""
    squares = Squared(centre=zero_margin(problem.loss))
    reduced = gram_reduction.Reduced(
        Problem(squares, problem.penalty, problem.data, problem.fit_intercept)
    )
    found = solve_cholesky(reduced.problem, np.zeros(reduced.problem.order), stop, seed)
    problem.passes += reduced.whole.passes + reduced.problem.passes
    return reduced.lift(np.ascontiguousarray(found.W[:, 0]))


class PilotHessian:
    """Preconditioner M^-1 from the Hessian of a pilot with weighted rows, the intercept eliminated."""

    def __init__(self, problem: Problem, seed: int) -> None:
        row, factored = prices_of(problem)
        n, d = problem.data.n, problem.data.d
        enough = min(max(PILOT_ROWS * d, PILOT_PRICE / row), PILOT_MOST * d)
        rows = int(min(max(PILOT_PART * n, enough), n // 2))
        self.price = factored + row * rows  # in products with the Hessian of all rows
        self._draw = partial(sampling.sub_problem, problem, rows, seed)
        self._sub: tuple[Problem, FloatArray] | None = None  # the pilot and its centre
        self._factor: Factor | None = None
        self._single = True

    @property
    def missing(self) -> bool:
        """Return whether it has not been computed yet."""
        return self._factor is None

    def promises(self, some: Problem, mu: FloatArray) -> bool:
        """Return whether the squared correlations of a feature with all others sum to more than ``CORRELATED``."""
        S = eliminate_intercept(some.hessian(mu, single=True))
        scale = 1.0 / np.sqrt(np.maximum(np.diag(S), some.lam))
        S = S * scale * scale[:, None]
        own = 1.0 - some.lam * scale * scale  # diagonal without the penalty
        squares, total = dot(own, own), float(own.sum())
        chance = (total * total - squares) / some.data.n  # expectation for independent features
        off_diagonal = dot(S.ravel(), S.ravel()) - len(S)
        return not off_diagonal - chance <= CORRELATED * squares

    def refresh(self, theta: FloatArray) -> None:
        """Compute and factorise the Hessian at theta; in double precision if single is too inaccurate."""
        if self._sub is None:
            sub = self._draw()
            self._sub = sub, sub.centre()
        sub, mu = self._sub
        sub.value_gradient(theta)
        if self._single:
            H = sub.hessian(mu, single=True)
            if np.isfinite(H).all():
                self._factor = Factor(eliminate_intercept(H), definite=True)
                if self._factor.least > REPAIRABLE:
                    return
            self._single = False
        self._factor = Factor(eliminate_intercept(sub.hessian(mu)), definite=True)

    def __call__(self, problem: Problem) -> Preconditioner:
        assert self._factor is not None
        return self._factor.apply

    def renew(self, problem: Problem, products: int) -> None:
        """Return None: the factor stays the same during a step."""


class Adaptive:
    """Conjugate gradients while they cost less than a factorisation, Cholesky afterwards.

    The preconditioner is the Hessian of a pilot or, for dense rows, a lazily updated Hessian of all rows.
    """

    def __init__(self, problem: Problem, hessian: PilotHessian | None) -> None:
        self._hessian = hessian
        if hessian is None and not problem.data.sparse and problem.lam > 0.0:
            lazy = LazyHessian(problem, np.inf)  # quasi-Newton steps have shown that it pays
            self.price = lazy.price
            self._gradients = ConjugateGradients(lazy, MAX_PRODUCTS + int(lazy.price))
        else:
            most = max(20, problem.data.d // GRAM_PASSES)
            self.price = float(most) if hessian is None else hessian.price
            self._gradients = ConjugateGradients(hessian, most)
        self._cholesky: Cholesky | None = None

    def __call__(self, run: Run[Problem], theta: FloatArray, value: float, g: FloatArray) -> Step:
        if self._cholesky is None:
            hessian = self._hessian
            if hessian is not None and (hessian.missing or self._gradients.products > HARD):
                hessian.refresh(theta)
            if not self._gradients.stalled:
                step = self._gradients(run, theta, value, g)
            if not self._gradients.stalled:
                return step
            self._cholesky = Cholesky(run.problem.centre())
        return self._cholesky(run, theta, value, g)

    def improve_accuracy(self) -> bool:
        """Change to Cholesky factors; if these are in use, to double precision."""
        if self._cholesky is not None:
            return self._cholesky.improve_accuracy()
        self._gradients.stalled = True
        return True


def solve_preconditioned(
    problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0
) -> Solution:
    """Quasi-Newton steps, with the Hessian of a pilot; if these are slow, conjugate gradients, then Cholesky."""
    data = problem.data
    if data.n < MANY * data.d:
        fallback = Adaptive(problem, None)
        direction = QuasiNewton(fallback, seed, fallback.price + REST)
        return newton.solve(problem, theta, stop, direction)
    hessian = PilotHessian(problem, seed)
    direction = QuasiNewton(Adaptive(problem, hessian), seed, LONGEST, hessian)
    return newton.solve(problem, theta, stop, direction)


def minimise(problem: Problem, theta: FloatArray, stop: Stop) -> FloatArray:
    """Return the minimiser of an auxiliary problem, computed natively if it is small."""
    if native_newton.fits(problem):
        theta = theta.copy()
        status, *_ = native_newton.run_native(problem, theta, stop.tol, polish=False)
        if status != native_newton.UNFINISHED:
            return theta
    found = newton.solve(problem, theta, stop, Adaptive(problem, None))
    return np.ascontiguousarray(found.W[:, 0])
