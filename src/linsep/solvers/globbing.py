"""Pilot and band, for the losses with one kink and many rows.

At the optimum of min lam/2 |w|^2 + sum s l(m) only rows on the kink have a dual variable inside its box; the
others are at the end that their side dictates, and enter the problem as one linear term. So: solve a sample
of the rows, read all margins once, fix the rows that are far from the kink, solve the band that remains by the
interior point method (``central_path.py``), read all margins again. Fixed rows that turn out to be on the other side
join the band.

Every dual point made here is feasible for all rows, whatever the guess: what is fixed is at an end of its box. So
each exit carries a rigorous gap, and the band only grows: the method is finite.

Portnoy and Koenker, The Gaussian hare and the Laplacian tortoise, 1997 (for quantile regression).
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import interior, pilot
from linsep.solvers.band import Band
from linsep.solvers.central_path import Path
from linsep.solvers.foreknowledge import flat_answer, squared_start
from linsep.solvers.imbalance import begin
from linsep.solvers.interior import NEAR
from linsep.solvers.run import LimitReached, Run

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.solution import FloatArray

    Rows = npt.NDArray[np.int64]
    Point = tuple[FloatArray, FloatArray, float]  # theta, u of the band, a lower bound

ENTRIES = 500_000  # of X, below which all rows are as quick
PILOT_TOL = 1e-3  # cheap: the last digits cost an iteration or two each
FIRST_TOL = 1e-5  # of the first band, whose rows are a guess
BAND_STEPS = 40
SHORT = 0.02  # steps that show a band to be too narrow: its problem has run away
ROUNDS = 12
WIDEN = 2.0  # rows of the next band, as a multiple
# Rows of the first band as a multiple of those of the pilot: a pilot misses by as much as its rows scatter, a start
# from a model nearby (the C before) by far less.
FIRST_BAND, WARM_BAND = 2.0, 0.25


def pilot_rows(problem: Problem) -> int:
    """Rows of the pilot; the band begins with twice as many. Both errors grow like the square root of d/rows."""
    n, d = problem.data.n, problem.data.d
    share = 0.5 if d < 60 else 0.25
    return int(max(share * (float(n) * d) ** (2.0 / 3.0), 30 * d))


def worthwhile(problem: Problem) -> bool:
    """Whether there are so many rows per feature that a band is much smaller than the whole.

    Sparse rows are often alike, many of them on the kink: there the band grows into the whole.
    """
    data = problem.data
    return not data.sparse and data.n * data.d >= ENTRIES and 3 * pilot_rows(problem) <= data.n


class Pilot:
    """A sample of the rows, solved to three digits, and how far its rows are from the kink."""

    def __init__(self, run: Run[Problem], theta: FloatArray, seed: int) -> None:
        problem, data = run.problem, run.problem.data
        self.size = pilot_rows(problem)
        rows, self.share = pilot.draw(data, self.size, seed)
        sample = data.sample(rows, self.share)
        sub = Problem(problem.loss, problem.penalty, sample, problem.fit_intercept)
        problem.passes += len(rows) / data.n
        path = Path(run, sub)
        path.place(squared_start(sub, theta))
        self.warm = bool(theta.any())
        self.solved = self.warm or path.descend(PILOT_TOL)
        if not self.solved:
            path.place(np.zeros_like(theta))
            self.solved = path.descend(PILOT_TOL)
        path.dual()
        self.theta = path.theta
        squares, sums, count = sub.moments(weighted=False)
        self.mu = sub.centre()
        about = squares / count - 2.0 * self.mu * sums / count + self.mu**2
        self.scale = np.where(about > 0.0, 1.0 / np.where(about > 0.0, about, 1.0), 0.0)
        self._v = path.v
        self._data = sample

    def tau(self, rows: float) -> float:
        """The tau whose band has about that many rows."""
        far = np.abs(self._v) / np.sqrt(1.0 + self._spread())
        order = np.argsort(far)
        reach = int(np.searchsorted(np.cumsum(self.share[order]), rows))
        return max(float(far[order[min(reach, len(order) - 1)]]), 1e-300)

    def _spread(self) -> FloatArray:
        X = self._data.X
        if self._data.sparse:
            return np.asarray(X.multiply(X) @ self.scale).ravel()
        return np.asarray((np.asarray(X, np.float64) - self.mu) ** 2 @ self.scale)


def _rounds(run: Run[Problem], first: Pilot, band: Band) -> bool | None:
    """Bands until the gap closes, without a penalty until the vertex is found; None if all rows had better be taken."""
    problem, tol = run.problem, run.stop.tol
    n = problem.data.n
    tau = first.tau((WARM_BAND if first.warm else FIRST_BAND) * first.size)
    best, closed = first.theta, False
    value = band.sort(best, tau)
    run.record(value)
    target, final = max(FIRST_TOL, 0.25 * tol), min(0.1 * tol, NEAR)
    for _ in range(ROUNDS):
        if 2 * len(band.rows) > n:
            break
        path = band.path()
        path.place(best, 0.1 * path.width * band.reach())
        if not path.descend(target, BAND_STEPS, SHORT):
            tau = first.tau(WIDEN * len(band.rows))
            value = band.sort(best, tau)
            continue
        point = path.theta.copy(), path.dual(), path.value - path.gap
        primal, wrong = band.contradicted(point[0])
        sums: FloatArray | None = None
        if not len(wrong.rows):
            point = _sharpen(path, final, point)
            primal, wrong, sums = band.judged(*point[:2])
        theta, u, lower = point
        near = primal - lower <= 0.8 * tol * primal
        if near and sums is None:
            _, _, sums = band.judged(theta, u)
        if near and run.close(theta, band.dual(), sums):
            closed = True
            # Without a penalty and nothing wrong the vertex was found, or cannot be.
            if problem.lam > 0.0 or not len(wrong.rows):
                return True
        target = final
        if len(wrong.rows) <= len(band.rows):
            best, value = (theta, primal) if primal < value else (best, value)
            if len(wrong.rows):
                band.admit(wrong)
        else:
            best, value = _between(problem, best, value, theta, primal)
            tau = first.tau(WIDEN * len(band.rows))
            band.sort(best, tau)
    return closed or None


def _sharpen(path: Path, target: float, point: Point) -> Point:
    """The solution of the band far below tol, exactly if possible; else what is given.

    With a penalty an inexact end will do, as its gap is far below tol. Without one the vertex is worth two more
    attempts from nearer by: the free rows of a linear programme show late.
    """
    for _ in range(3 if path.problem.lam == 0.0 else 1):
        falling = path.descend(target)
        if falling:
            point = path.theta.copy(), path.dual(), path.value - path.gap
        if path.crossable:
            right, theta, u = path.exact(*point[:2])
            if right:
                return theta, u, point[2]
        if not falling:
            break
        target *= 1e-2
    return point


def _between(
    problem: Problem, theta: FloatArray, value: float, other: FloatArray, primal: float
) -> tuple[FloatArray, float]:
    """The best of some points between the two (one pass)."""
    steps = np.arange(1, 8) / 8.0
    values, _ = problem.along(theta, other - theta, steps)
    k = int(np.argmin(values))
    points = [(value, 0.0), (primal, 1.0), (float(values[k]), float(steps[k]))]
    least, t = min(points)
    return theta + t * (other - theta), least


def _here(problem: Problem, theta: FloatArray, stop: Stop, seed: int) -> Solution:
    """All rows of a cluster, brought to the client; the certificate is made where they were."""
    data = problem.data.sample(np.arange(problem.data.n))
    sub = Problem(problem.loss, problem.penalty, data, problem.fit_intercept)
    found = replace(interior.solve(sub, theta, stop, seed), sums=None)
    problem.passes += sub.passes
    return found


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Pilot, bands, and all rows if those fail."""
    if not worthwhile(problem) or flat_answer(problem) is not None:
        return interior.solve(problem, theta, stop, seed)
    run = begin(problem, stop)
    nothing = Explicit(np.zeros(problem.data.n))
    status = Status.WORKING_PRECISION
    try:
        run.check_limits()
        first = Pilot(run, theta, seed)
        closed = None
        if first.solved:
            theta = first.theta
            closed = _rounds(run, first, Band(run, first.mu, first.scale))
        if not closed and problem.data.remote and problem.data.at_hand:
            return _here(problem, theta, stop, seed)
        if not closed and not problem.data.remote:
            theta, _, _ = problem.start(theta)
            closed = interior.iterate(run, theta)
        if closed:
            status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, nothing)
