"""Sifting for the losses with one kink and many rows: solve on a pilot, then on bands of rows near the kink.

At the optimum of min lam/2 |w|^2 + sum s l(m) only rows on the kink have a dual variable strictly inside its interval;
the others are at the end given by their side, and enter the problem as one linear term. The method solves a sample of
the rows, computes all margins, fixes the rows that are far from the kink, solves the remaining band by the interior
point method (``central_path.py``), and computes all margins again. Fixed rows that turn out to be on the other side
join the band.

A band too large to be solved is sampled, with a linear term that gives the reduced problem the value and the gradient
of all rows at the point where they were sorted. The remaining error is a sampling error proportional to the width of
the band, so each pass narrows the band by the same factor, until it is small.

Every dual point of an unsampled band is feasible for all rows, because fixed rows are at an end of their interval; so
every result has a rigorous gap. An unsampled band only grows; if many rows are on the wrong side, or a step increases
the objective, the next band is wider and its sample larger, up to all rows: the method is finite.

Portnoy and Koenker, The Gaussian hare and the Laplacian tortoise, 1997 (for quantile regression). Shamir, Srebro and
Zhang, Communication-efficient distributed optimization using an approximate Newton-type method, 2014 (the linear term).
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import sampling
from linsep.solvers.cost.shape import Shape
from linsep.solvers.cost.work import Work
from linsep.solvers.interior import kinked
from linsep.solvers.interior.active_band import Band
from linsep.solvers.interior.central_path import Path
from linsep.solvers.interior.crossover import cross_over, crossable
from linsep.solvers.interior.kinked import CROSSOVER_GAP, ROUGH
from linsep.solvers.interior.start import flat_answer
from linsep.solvers.interior.subsampling import Pilot
from linsep.solvers.run import LimitReached, Run, begin

Point = tuple[FloatArray, FloatArray, float]  # theta, u of the band, a lower bound

ENTRIES = 500_000  # entries of X below which solving on all rows is as fast
MANY_ROWS = 60  # rows per feature below which a sufficiently wide band contains most rows
PILOT_SHARE, PILOT_ROWS = 1 / 40, 200  # share of the rows, and at least so many per feature
SAMPLE_TOL = 1e-5  # relative gap of a sampled band, whose solution is only an estimate
BAND_STEPS = 30
SHORTEST_BAND_STEP = 0.02  # step size that shows a band to be too narrow: its problem diverges
MAX_BANDS = 16
FEW_ROUNDS, FEW_ENTRIES = 3, 1 << 24  # on a cluster: rounds before up to 128 MB are copied instead
WHOLE = 1.5  # largest unsampled band, as a multiple of the pilot
SPARE = 1.3  # extra width of a first band that is not sampled: another band would cost as much
# Copies of the pilot's rows in memory, at most: the pilot, a band of WHOLE times its rows, and either in transfer.
COPIES = 8
WIDEN = 4.0  # factor on the band after one that was too narrow
# The error of a sample of m rows, relative to the width of the band they were drawn from, is about ERROR sqrt(d/m).
# With a warm start (from the previous C) the first band is WARM_BAND times as large.
ERROR, WARM_BAND = 2.4, 0.25
NARROW = 1.5  # change of the margins, in widths of the band, that shows it to be too narrow
CROWDED = 1e-3  # distance |v|/q from the kink up to which a row counts as on it
LEAST = 20  # smallest band [rows per feature]


def pilot_rows(data: sampling.Size) -> int:
    """Return the number of rows of the pilot and of every sampled band."""
    n, d = data.n, data.d
    return sampling.limit_to_memory(
        int(max(PILOT_SHARE * n, min(PILOT_ROWS * d, n / 4), 2000)), data, COPIES
    )


def worthwhile(problem: Problem) -> bool:
    """Return whether there are enough rows per feature for a band to be much smaller than the data.

    Sparse rows are excluded: many are similar and on the kink, so the band grows to all rows. Time relative to the
    interior point method on all rows: 0.7 at 133 rows per feature, 0.5 at 300 to 1,000, 0.25 at 3,000; but 2 at 13
    (10,000 x 784).
    """
    data = problem.data
    return not data.sparse and data.n * data.d >= ENTRIES and data.n >= MANY_ROWS * data.d


def work(shape: Shape) -> Work:
    """Return the work of one iteration on a pilot or a band, with its share of a pass over all rows."""
    n, d = shape.n, shape.d
    m = max(PILOT_SHARE * n, min(PILOT_ROWS * d, n / 4), 2000)
    return {
        **{"calls": 2.0, "reads": 0.25 * shape.entries + 4.0 * m * d},
        **{"gram": 0.5 * m * d * d, "factors": d**3 / 3.0},
    }


class _Search:
    """Sequence of bands: the best point so far, and width tau and sample size m of the next band."""

    def __init__(self, run: Run[Problem], first: Pilot, theta: FloatArray) -> None:
        self.run, self.problem, self.first = run, run.problem, first
        self.band = Band(run, first.mu, first.scale)
        self.n, self.d = run.problem.data.n, run.problem.data.d
        self.m = float(first.size)
        # upper limit of m
        self.most = float(sampling.limit_to_memory(self.n, run.problem.data, COPIES))
        self.best, self.value = theta, np.inf
        self.far = first.kink_distances(theta)
        self.tau = first.tau(self.far, (WARM_BAND if first.warm else 1.0) * self.m)
        if self._is_crowded():
            self._handle_crowded_kink()
        elif not first.warm:
            self.tau = max(self.tau, first.width(theta))
            if first.expected_rows(self.far, SPARE * self.tau) <= WHOLE * self.m:
                self.tau *= SPARE

    def _error(self) -> float:
        return min(1.0, ERROR * float(np.sqrt(self.d / self.m)))

    def _is_crowded(self) -> bool:
        """Return whether most rows are on the kink, so that no narrower band exists and no sample is representative."""
        return self.first.expected_rows(self.far, CROWDED) > 0.5 * self.n

    def _handle_crowded_kink(self) -> None:
        """If most rows are near the kink, keep those with the largest loss: they approximate the class sums best.

        If w = 0 is nearly optimal, the side of the kink does not determine the dual variables of the other rows. After
        a shift of the intercept by a fraction of tol, all of them are 0.
        """
        self.m = min(WIDEN * self.m, self.most)
        if self.problem.loss.soft_margin and self.problem.fit_intercept:
            side = 1.0 if self.best[-1] > 0.0 else -1.0
            self.best = np.zeros_like(self.best)
            self.best[-1] = side * (1.0 + 0.1 * self.run.stop.tol)
            self.value = np.inf
        self.far = self.first.kink_distances(self.best)
        self.tau = self.first.tau(self.far, self.m)

    def _start(self, path: Path, target: float) -> float:
        """Initial mu from the typical distance to the kink, but at least what already closes the gap.

        If most rows are on the kink, theta is good and only the dual variables are unknown.
        """
        loss = self.value / self.n
        least = 0.5 * loss if self._is_crowded() else 0.1 * target * loss
        return max(0.1 * path.width * self.band.reach(), least)

    def widen(self) -> None:
        """Make the next band wider and its sample larger, after one that was too narrow."""
        if self._is_crowded():
            self._handle_crowded_kink()
            return
        self.m = min(2.0 * self.m, self.most)
        rows = WIDEN * max(self.first.expected_rows(self.far, self.tau), LEAST * self.d)
        wider = self.first.tau(self.far, rows) if rows < self.n else np.inf
        self.tau = max(WIDEN * self.tau, wider)

    def sort(self, theta: FloatArray) -> bool:
        """Sort the rows at theta. One pass.

        If theta is worse than the best point, return False and move the best point to a minimum between the two.
        """
        self.far = self.first.kink_distances(theta)
        rows = self.first.expected_rows(self.far, self.tau)
        thin = None
        if rows > WHOLE * self.m:
            thin = self.first.thinning(self.far, self.tau, self.m)
        value = self.band.sort(theta, self.tau, thin)
        if self.value == np.inf:
            self.run.record(value)
        if value <= self.value + 0.1 * self.run.stop.tol * abs(value):
            self.best, self.value = theta, value
            return True
        self.best, self.value = _best_between(self.problem, self.best, self.value, theta, value)
        self.far = self.first.kink_distances(self.best)
        return False

    def narrow(self, theta: FloatArray) -> FloatArray:
        """Make the next band narrower after a sampled one gave theta; return the point at which to sort it."""
        first, before = self.first, self.best
        self.far = first.kink_distances(theta)
        if self._is_crowded():
            self._handle_crowded_kink()
            return self.best
        moved = first.margin_change(before, theta, self.tau)
        if moved > NARROW * self.tau:
            self.tau = min(moved, WIDEN * self.tau)
        else:
            self.tau = max(self._error() * moved, first.tau(self.far, LEAST * self.d))
        return theta

    def solve(self) -> bool | None:
        """Return whether the gap closed (without a penalty: the vertex was found); None if all rows are needed."""
        theta, sorted_, closed = self.best, False, False
        soon_here = (
            self.problem.data.location is Location.CLUSTER
            and self.problem.data.n_entries <= FEW_ENTRIES
        )
        for number in range(MAX_BANDS):
            if soon_here and not sorted_ and number >= FEW_ROUNDS:
                break
            if not sorted_ and not self.sort(theta):
                self.widen()
                theta = self.best
                continue
            if 2 * len(self.band.rows) > self.n:
                break
            whole = self.band.share is None
            point = self._solve(self.band.path(), whole)
            if point is None:
                self.widen()
                theta, sorted_ = self.best, False
            elif not whole:
                theta, sorted_ = self.narrow(point[0]), False
            else:
                done, more = self._evaluate(point)
                theta, closed = self.best, closed or done
                # Without a penalty, if no row is wrong, the vertex was found or cannot be found.
                if done and (self.problem.lam > 0.0 or not more):
                    return True
                if more is None:
                    break
                sorted_ = more
        return closed or None

    def _solve(self, path: Path, whole: bool) -> Point | None:
        """Solve a band, to high accuracy if it is not sampled; None if the band is too narrow."""
        tol = self.run.stop.tol
        target = max(SAMPLE_TOL, 0.25 * tol)
        path.place(self.best, self._start(path, target))
        if not path.descend(target, BAND_STEPS, SHORTEST_BAND_STEP):
            if whole or not path.gap <= 10.0 * target * abs(path.value):
                return None  # otherwise slow, but accurate enough for an estimate
        point = path.theta.copy(), path.dual(), path.value - path.gap
        if whole and (tol < ROUGH or self.problem.lam == 0.0):
            point = sharpen(path, min(0.1 * tol, CROSSOVER_GAP), point)
        return point

    def _evaluate(self, point: Point) -> tuple[bool, bool | None]:
        """Evaluate the solution of an unsampled band on all rows: whether the gap closed, whether rows joined the band.

        The second value is None if no row is wrong and the gap is still open.
        """
        problem, tol, band = self.problem, self.run.stop.tol, self.band
        theta, u, lower = point
        primal, wrong, sums = band.evaluate(theta, u)
        near = primal - lower <= 0.8 * tol * primal
        done = near and self.run.close(theta, band.dual(), sums)
        count = len(wrong.rows)
        if count > len(band.rows):
            self.best, self.value = _best_between(problem, self.best, self.value, theta, primal)
            self.far = self.first.kink_distances(self.best)
            self.widen()
            return done, False
        if primal < self.value:
            self.best, self.value = theta, primal
        if count and not (done and problem.lam > 0.0):
            band.admit(wrong)
        return done, True if count else False if done else None


def sharpen(path: Path, target: float, point: Point) -> Point:
    """Solve a band to a gap far below tol, exactly by crossover if possible; else return the given point.

    With a penalty an inexact solution suffices, as its gap is far below tol. Without one, two more attempts from closer
    points are made to find the vertex: the free rows of a linear programme are identified late.
    """
    for _ in range(3 if path.problem.lam == 0.0 else 1):
        falling = path.descend(target)
        if falling:
            point = path.theta.copy(), path.dual(), path.value - path.gap
        if crossable(path):
            right, theta, u = cross_over(path, *point[:2])
            if right:
                return theta, u, point[2]
        if not falling:
            break
        target *= 1e-2
    return point


def _best_between(
    problem: Problem, theta: FloatArray, value: float, other: FloatArray, primal: float
) -> tuple[FloatArray, float]:
    """Return the best of nine equidistant points from theta to other, and its objective. One pass."""
    steps = np.arange(1, 8) / 8.0
    values, _ = problem.along(theta, other - theta, steps)
    k = int(np.argmin(values))
    points = [(value, 0.0), (primal, 1.0), (float(values[k]), float(steps[k]))]
    least, t = min(points)
    return theta + t * (other - theta), least


def solve(problem: Problem, theta: FloatArray, stop: Stop, seed: int = 0) -> Solution:
    """Solve on a pilot and bands; if they fail, on all rows."""
    if not worthwhile(problem) or flat_answer(problem) is not None:
        return kinked.solve(problem, theta, stop, seed)
    run = begin(problem, stop)
    nothing = Explicit(np.zeros(problem.data.n))
    status = Status.WORKING_PRECISION
    try:
        with run.in_time():
            run.check_limits()
            first = Pilot(run, theta, pilot_rows(problem.data), seed)
            closed = None
            if first.theta is not None:
                theta = first.theta
                closed = _Search(run, first, theta).solve()
            if not closed and problem.data.location is Location.CLUSTER:
                return run.solution(Status.GIVEN_UP, theta, nothing)
            if not closed:
                theta, _, _ = problem.start(theta)
                closed = kinked.iterate(run, theta)
            if closed:
                status = Status.CERTIFIED
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, theta, nothing)
