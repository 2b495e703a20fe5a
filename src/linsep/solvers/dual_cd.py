"""Dual coordinate ascent with an exact, unpenalised intercept.

Problem and dual, for lam > 0, with v = sum s sigma u x::

    min lam/2 |w|^2 + sum s l(m)
    max -sum s (l*(-u) + u offset) - |v|^2/(2 lam)    subject to  e = sum s sigma u = 0

One row after the other, its u is moved to the maximiser (a proximal step of the loss, kernels/dual_cd.hpp)
while w = v/lam is kept in step. The intercept's constraint e = 0 is left to an augmented Lagrangian: margins
use b = b0 + r e, and after each epoch the multiplier b0 becomes the best intercept for the scores as each
row last saw them. That costs no pass, it is a Newton step of the dual in b, and where u has come to rest
these are the true scores: the fixed point is the exact minimiser, not one with a penalised bias.

An epoch also adds up the Fenchel-Young slacks that the rows had when their turn came. Their sum is the duality
gap of the recent past, so it foretells when the closing pass is worth its price.

Hsieh, Chang, Lin, Keerthi, Sundararajan 2008 (the method); Yu, Huang, Lin 2011 (logistic loss);
Shalev-Shwartz and Zhang 2013 (rates); Hestenes 1969, Powell 1969 (augmented Lagrangian).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.errors import NonFinite
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.run import LimitReached, Run

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray

LOSSES = ("logistic", "squared", "squared_hinge", "huberised_hinge", "huber")
RHO = 0.1  # stiffness of the intercept in units of mean |x|^2 / lam; 0.03 to 0.1 serve alike, 0.3 is slower
PATIENCE = 60  # epochs still to come, as foretold, at which the ascent gives up
_SPARE = 10  # epochs between closing passes while the gap is not foretold to be near tol
_IN_CACHE = 8 << 20  # bytes of data within which visiting rows at random costs little
_ENTRIES_PER_CALL = 4_000_000  # about 10 ms: Ctrl-C and limits are answered between calls


def applies(problem: Problem) -> bool:
    """Whether there is a penalty, a kernel for the loss, and rows in memory as the kernel reads them."""
    penalised = problem.lam > 0.0 and problem.penalty.l1 == 0.0
    return penalised and problem.loss.native in LOSSES and problem.data.whole is not None


def dot(a: FloatArray, b: FloatArray) -> float:
    """a.b by one thread: that of BLAS wakes others for long vectors, and its bits depend on how many."""
    return float(np.einsum("i,i->", a, b))


class Ascent:
    """The moving parts: u, theta = (w, b0) with w = v/lam, scores as last seen, order of the rows."""

    def __init__(self, problem: Problem, theta: FloatArray, seed: int) -> None:
        assert problem.data.whole is not None and problem.loss.native is not None
        self.problem, self.block = problem, problem.data.whole
        self.loss = _kernels.Loss(problem.loss.native, *problem.loss.params)
        self.norms = row_norms(problem)
        if not np.isfinite(self.norms).all():
            problem.start(theta)
            raise NonFinite("Some row of X has a norm too large to square. Scale the features.")
        n = problem.data.n
        # Rows that lie side by side are often alike (sorted by class, say), and to visit them in turn
        # wastes work: pairs of rows in random order, or eights where memory is slower than that.
        self.bucket = 2 if 12 * problem.data.n_entries <= _IN_CACHE else 8
        self.order = np.arange(-(-n // self.bucket), dtype=np.int64)
        self.seed, self.epochs = seed, 0
        self.z, self.state = np.zeros(n), np.zeros(2)
        self.stiffness = self._stiffness() if problem.fit_intercept else 0.0
        self.slacks: list[float] = []
        self.primal = math.inf
        if theta[:-1].any():
            self.u, self.theta = self._near(theta)
        else:
            self.u, self.theta = np.zeros(n), np.zeros_like(theta)
            self.theta[-1] = self._intercept(float(theta[-1]), 60)
            if not math.isfinite(self.primal):
                problem.start(theta)  # says whose fault it is

    def _stiffness(self) -> float:
        """RHO mean |x|^2 / lam, or where that is next to nothing what moves b by a Newton step."""
        weight = self.block.weights()
        total = float(weight.sum())
        if not total > 0.0:
            return 0.0
        mean = dot(weight, self.norms) / total
        return max(RHO * mean / self.problem.lam, 2.0 / (total * self.problem.loss.curvature_bound))

    def _near(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A start from theta: the slopes there, times the factor that brings w = v/lam nearest to it."""
        problem, block = self.problem, self.block
        m = block.margins(scores(problem, theta))
        u, spare = np.empty_like(m), np.empty((3, len(m)))
        _kernels.pointwise(self.loss, m, spare[0], u, spare[1], spare[2])
        mass = block.weights() * block.sign * -u
        problem.passes += 1
        v = problem.data.sum(
            lambda b, out: _kernels.combine(b.rows, b.lo, b.hi, mass, out), problem.order
        )
        size, along = dot(v[:-1], v[:-1]), dot(v[:-1], theta[:-1])
        t = min(1.0, max(0.0, problem.lam * along / size)) if size > 0.0 else 1.0
        start = (t / problem.lam) * v
        start[-1] = theta[-1]
        self.state[0] = t * float(v[-1])
        return -t * u, start

    def epoch(self, run: Run | None = None) -> None:
        """One visit to every row, in a new order, then the new multiplier."""
        problem, count = self.problem, len(self.order)
        self.epochs += 1
        problem.passes += 1
        _kernels.shuffle(self.order, (self.seed * 0x9E3779B1 + self.epochs) % 2**64)
        step = max(1, _ENTRIES_PER_CALL * count // max(1, problem.data.n_entries))
        self.state[1] = 0.0
        for k in range(0, count, step):
            if run is not None and k > 0:
                run.check_limits()
            _kernels.dual_cd(
                self.block.rows,
                self.block.targets,
                self.loss,
                k,
                min(count, k + step),
                self.order,
                self.bucket,
                problem.lam,
                self.stiffness,
                self.norms,
                self.u,
                self.z,
                self.theta,
                self.state,
            )
        self.theta[-1] += self.stiffness * float(self.state[0])
        self.theta[-1] = self._intercept(float(self.theta[-1]), 2)
        self.slacks.append(float(self.state[1]))

    def _intercept(self, b: float, steps: int) -> float:
        """Newton's method for b at the scores z, kept between the b whose slopes are known to bracket it."""
        low, high = -math.inf, math.inf
        for _ in range(steps if self.problem.fit_intercept else 1):
            out = np.zeros(3)
            _kernels.shifted(self.block.targets, self.loss, 0, len(self.z), self.z, b, out)
            value, slope, curvature = out.tolist()
            self.primal = value + 0.5 * self.problem.lam * dot(self.theta[:-1], self.theta[:-1])
            if not self.problem.fit_intercept or slope == 0.0 or not math.isfinite(slope):
                break
            low, high = (low, b) if slope > 0.0 else (b, high)
            reach = 4.0 + 2.0 * abs(
                b
            )  # far out a slope without curvature says nothing about distance
            move = -slope / curvature if curvature > 0.0 else math.copysign(reach, -slope)
            move = min(max(move, -reach), reach)
            if abs(move) <= 1e-9 * (1.0 + abs(b)):
                break
            b = b + move if low < b + move < high else 0.5 * (low + high)
        return b

    def foretold(self) -> float:
        """The duality gap now, as the slacks of the last two epochs let it be guessed."""
        if len(self.slacks) < 2:
            return math.inf
        before, last = self.slacks[-2:]
        return last * min(1.0, last / before) if before > 0.0 else last

    def epochs_to(self, gap: float) -> float:
        """Epochs until the gap is that small, if it goes on falling as in the last three."""
        if len(self.slacks) < 5:
            return 0.0
        now, rate = self.foretold(), (self.slacks[-1] / self.slacks[-4]) ** (1 / 3)
        if now <= gap:
            return 0.0
        return math.log(now / gap) / -math.log(rate) if 0.0 < rate < 1.0 and gap > 0.0 else math.inf

    def point(self) -> tuple[FloatArray, Explicit]:
        """Theta, and u made feasible for the intercept by shrinking its heavier side."""
        if not self.problem.fit_intercept:
            return self.theta.copy(), Explicit(self.u.copy())
        mass = self.block.weights() * self.block.sign * self.u
        plus, minus = float(mass[mass > 0.0].sum()), -float(mass[mass < 0.0].sum())
        heavy = mass > 0.0 if plus > minus else mass < 0.0
        factor = min(plus, minus) / max(plus, minus) if plus != minus else 1.0
        return self.theta.copy(), Explicit(np.where(heavy, factor * self.u, self.u))


def row_norms(problem: Problem) -> FloatArray:
    """|x|^2 of every row (one pass)."""
    problem.passes += 1
    norms = np.zeros(problem.data.n)

    def fill(block: Block, out: FloatArray) -> None:
        _kernels.row_norms(
            block.rows, block.lo, block.hi, norms[block.first : block.first + block.rows.n]
        )

    problem.data.sum(fill, 1)
    return norms


def scores(problem: Problem, theta: FloatArray) -> FloatArray:
    """x.w + b of every row (one pass)."""
    problem.passes += 1
    z = np.zeros(problem.data.n)

    def fill(block: Block, out: FloatArray) -> None:
        z[block.first + block.lo : block.first + block.hi] = block.scores(theta)

    problem.data.sum(fill, 1)
    return z


def solve(
    problem: Problem, theta: FloatArray, stop: Stop, epochs: int | None = None, seed: int = 0
) -> Solution:
    """Ascend until the gap closes.

    Other ends: a limit of the user (its status), or as many epochs as given, or progress so slow that more than
    PATIENCE epochs are foretold. In the last two cases the status is WORKING_PRECISION, and W is a start for
    Newton's method.
    """
    run = Run(problem, stop)
    ascent = Ascent(problem, theta, seed)
    status, closed, bias = Status.WORKING_PRECISION, 0, 1.0
    try:
        while epochs is None or ascent.epochs < epochs:
            run.check_limits()
            ascent.epoch(run)
            target, foretold = stop.tol * ascent.primal, ascent.foretold()
            if bias * foretold <= target or ascent.epochs - closed >= _SPARE:
                if run.close(*ascent.point()):
                    status = Status.CERTIFIED
                    break
                closed = ascent.epochs
                gap = run.trace[-1].primal - run.trace[-1].dual
                bias = min(4.0, max(0.5, gap / (problem.penalty.scale * foretold or 1.0)))
            if not math.isfinite(foretold + ascent.primal) and ascent.epochs > 1:
                break
            if epochs is None and ascent.epochs_to(target) > PATIENCE:
                break
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, *ascent.point())


def warm(
    problem: Problem, theta: FloatArray, epochs: int, seed: int = 0
) -> tuple[FloatArray, FloatArray]:
    """Some epochs and no certificate: a start for Newton's method, and the dual variables."""
    ascent = Ascent(problem, theta, seed)
    for _ in range(epochs):
        ascent.epoch()
    return ascent.theta.copy(), ascent.u.copy()
