"""Mehrotra's interior point method for the losses with one kink, on all rows.

``central_path.py`` states the problem and computes the steps; ``start.py`` has the starting point and the solutions
that need no iteration. The result is the exact solution by crossover (kernels/interior/crossover.hpp) if the free rows
are identified, or, for a loose tolerance, the first iterate that meets it; the gap is always that of a closing pass.
Without a penalty (the absolute loss) the problem is a linear programme, and its exact solution is a vertex.

A small problem is solved in one native call (kernels/interior/fit.hpp). If the method fails because of rounding in the
Gram matrix, it is repeated with a penalty on directions along which no score changes (``null_directions``).
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.losses import NAMES, CoupledLoss, Loss, get
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work, sweeps
from linsep.solvers.interior.central_path import LIMIT, Path, feasible, native_loss
from linsep.solvers.interior.crossover import cross_over, crossable
from linsep.solvers.interior.start import flat_answer, null_directions, squared_start
from linsep.solvers.newton import gram_reduction
from linsep.solvers.newton import native as native_newton
from linsep.solvers.newton.exact_fit import exact_fit
from linsep.solvers.run import SAFETY, LimitReached, Run, begin

CROSSOVER_GAP = 1e-9  # relative gap below which the free rows are usually identified
VERTEX = 1e-11  # relative gap above which a vertex is not optimal
ROUNDS = 3  # attempts to cross over
NO_POINT = 3  # native status: no point found
ROUGH = 1e-4  # tol from which the first iterate that meets it is returned
DIRECT = 1000  # largest order of a Gram matrix of the features, if that of the rows fails

Close = Callable[[FloatArray, FloatArray], bool]
Polish = Callable[[FloatArray, FloatArray], FloatArray]


def covers(loss: Loss | CoupledLoss) -> bool:
    """Return whether the loss is piecewise linear with one kink, and has a kernel."""
    return isinstance(loss, Loss) and loss.native is not None and loss.piecewise_linear


def names() -> list[str]:
    """Return the names of the losses with one kink and a kernel."""
    return [name for name in NAMES if covers(get(name))]


def applies(problem: Problem) -> bool:
    """Return whether the loss has one kink and a kernel."""
    return covers(problem.loss)


def factorisable(problem: Problem) -> bool:
    """Return whether a matrix of the order of the rows or of the features is small enough to factorise."""
    return min(problem.data.n, problem.data.d) <= gram_reduction.MAX_ORDER


def work(shape: Shape) -> Work:
    """Return the work of one iteration: four reads, a Gram matrix of the features, a factorisation.

    With fewer rows than features the Gram matrix of the rows is computed once; each iteration counts a twelfth of it.
    """
    n, d, kind = float(shape.n), shape.d, shape.storage
    reads = {"calls": 0.25, **sweeps(shape, 4.0)}
    if n < d:
        once = 0.5 * n * shape.entries
        return {**reads, kind + "products": once / 12.0, "factors": 0.5 * n**3}
    return {**reads, kind + "gram": shape.pairs, "factors": d**3 / 3.0}


def iterate(run: Run[Problem], theta: FloatArray, null: FloatArray | None = None) -> bool:
    """Run the method on all rows from theta, and from 0 if that fails; return whether the gap closed."""
    problem = run.problem

    def close(point: FloatArray, u: FloatArray) -> bool:
        return run.close(point, Explicit(feasible(problem, u)))

    return follow(Path(run, problem, null=null), theta, 0.3, close, problem.lam == 0.0)


def follow(
    path: Path,
    theta: FloatArray,
    share: float,
    close: Close,
    exact: bool,
    polish: Polish = lambda theta, u: theta,
) -> bool:
    """Follow the path from theta, and from 0 if that fails, and cross over; return whether the gap closed.

    ``share`` is the gap to reach without crossover, relative to tol. ``close`` closes at a point of the path and its
    dual variables, after ``polish`` if the point is a crossover solution. If ``exact``, the result should be a vertex:
    a gap below tol does not suffice.
    """
    tol = path.run.stop.tol
    target = min(0.1 * tol, CROSSOVER_GAP) if crossable(path) else share * tol
    try:
        path.place(theta)
        if tol >= ROUGH and not exact and _close_loosely(path, close):
            return True
        falling = path.descend(target)
        if not falling and not path.gap <= 1e-3 * abs(path.value):
            path.place(np.zeros_like(theta), 0.5 * path.width * float(np.abs(path.v).mean()))
            falling = path.descend(target)
        if not np.isfinite(path.theta).all():
            return False
        closed = False
        for _ in range(ROUNDS):
            at_vertex, enough = _finish(path, close, exact, polish)
            closed = closed or enough
            if at_vertex or (closed and not exact) or not falling:
                break
            target *= 1e-2
            falling = path.descend(target, 10)
        return closed
    except LimitReached:
        if np.isfinite(path.theta).all():
            close(path.theta, path.dual())
        raise


def _close_loosely(path: Path, close: Close) -> bool:
    """Close at the first iterate that meets tol, with snapped dual variables; return whether the gap closed.

    Snapping (``Path.snap_dual``) makes the support as small as at the optimum, and usually the gap smaller.
    """
    for share in (4.0, 0.5):
        if not path.descend(share * path.run.stop.tol):
            return False
        if close(path.theta, path.snap_dual()):
            return True
    return False


def _finish(path: Path, close: Close, exact: bool, polish: Polish) -> tuple[bool, bool]:
    """Close at the crossover solution if found, else at the iterate; return whether exact and whether closed."""
    u, run = path.dual(), path.run
    if crossable(path):
        right, theta, vertex = cross_over(path, path.theta, u)
        if right and close(polish(theta, vertex), vertex):
            assert run.best is not None
            gap = run.problem.penalty.scale * run.best[0]
            return not exact or gap <= VERTEX * run.trace[-1].primal, True
    return False, close(path.theta, u)


def solve_from_starts(run: Run[Problem], theta: FloatArray) -> bool:
    """Run the method from the squared-loss start; if that fails, from theta with null directions penalised."""
    if iterate(run, squared_start(run.problem, theta)):
        return True
    return iterate(run, theta, null_directions(run.problem))


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve by the interior point method; see the module docstring."""
    run = begin(problem, stop)
    known = flat_answer(problem)
    nothing = Explicit(np.zeros(problem.data.n))
    if known is not None and run.close(known, nothing):
        return run.solution(Status.CERTIFIED, known, nothing)
    status = Status.WORKING_PRECISION
    try:
        with run.in_time():
            if (
                native_newton.fits(problem)
                and native_newton.ends_before(stop)
                and problem.data.n >= problem.data.d
            ):
                if _native(run, theta):
                    return run.solution(Status.CERTIFIED, theta, nothing)
            theta, value, _ = problem.start(theta)
            run.record(value)
            fitted = exact_fit(problem, value) if problem.lam == 0.0 else None
            if fitted is not None:
                run.best = None
                return run.solution(Status.WORKING_PRECISION, fitted, nothing)
            if _solve_by_gram(run, theta):
                status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, nothing)


def _solve_by_gram(run: Run[Problem], theta: FloatArray) -> bool:
    """Solve with the Gram matrix of the rows if they are few; if that fails, with that of the features."""
    if not gram_reduction.applies(run.problem):
        return solve_from_starts(run, theta)
    if gram_reduction.solve(run, solve_from_starts):
        return True
    return run.problem.order <= DIRECT and run.problem.lam > 0.0 and solve_from_starts(run, theta)


def _native(run: Run[Problem], theta: FloatArray) -> bool:
    """Fit in one native call; return whether the gap closed."""
    problem = run.problem
    block = problem.data.whole
    assert block is not None
    at, u = theta.copy(), np.zeros(problem.data.n)
    sums = np.zeros(8 + 2 * problem.data.d)
    status, _, sweeps, grams, _ = _kernels.interior(
        block.rows,
        block.targets,
        native_loss(problem.loss),
        problem.lam,
        SAFETY * run.stop.tol,
        LIMIT,
        problem.fit_intercept,
        bool(theta.any()),
        at,
        u,
        sums,
    )
    problem.passes += sweeps + grams
    return status != NO_POINT and run.close(at, Explicit(u), sums)
