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

Where epochs alone would be many, each is followed by conjugate gradients on the free rows (free_set.py).

Hsieh, Chang, Lin, Keerthi, Sundararajan 2008 (the method); Yu, Huang, Lin 2011 (logistic loss);
Shalev-Shwartz and Zhang 2013 (rates); Hestenes 1969, Powell 1969 (augmented Lagrangian).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.errors import NonFinite
from linsep.problem import dot
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers.free_set import Rounds, is_parabola
from linsep.solvers.hardness import MANY, hardness, newton_passes, row_norms, sampled_mean
from linsep.solvers.intercept import intercept
from linsep.solvers.run import LimitReached, Run

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.problem import Problem
    from linsep.solution import FloatArray

LOSSES = (
    "logistic",
    "squared",
    "squared_hinge",
    "huberised_hinge",
    "huber",
    "hinge",
    "absolute",
)
RHO = 0.1  # stiffness of the intercept in units of mean |x|^2 / lam; 0.03 serves as well, 0.3 is slower
SLOW, STEADY, FAR = (
    0.3,
    0.1,
    8.0,
)  # ratios of steps of the multiplier: from which, how alike, how far
NEAR = 0.1  # relative gap from which Newton's method gains by a start: from 0.4 on it loses
EPOCH = 1.4  # price of an epoch, in passes of Newton's method
_SPARE = 10  # epochs between closing passes while the gap is not foretold to be near tol
_IN_CACHE = 8 << 20  # bytes of data within which visiting rows at random costs little
_ENTRIES_PER_CALL = 4_000_000  # about 10 ms: Ctrl-C and limits are answered between calls


def applies(problem: Problem) -> bool:
    """Whether there is a penalty, a kernel for the loss, and rows in memory as the kernel reads them."""
    penalised = problem.lam > 0.0 and problem.penalty.l1 == 0.0
    return penalised and problem.loss.native in LOSSES and problem.data.whole is not None


class Ascent:
    """What moves: u, theta = (w, b0) with w = v/lam, scores z and intercepts b as each row last saw them."""

    def __init__(self, problem: Problem, theta: FloatArray, seed: int) -> None:
        assert problem.data.whole is not None and problem.loss.native is not None
        self.problem, self.block = problem, problem.data.whole
        self.loss = _kernels.Loss(problem.loss.native, *problem.loss.params)
        self.intercept = intercept(problem, self.block, self.loss)
        self.norms = row_norms(problem)
        if not np.isfinite(self.norms).all():
            problem.start(theta)
            raise NonFinite("Some row of X has a norm too large to square. Scale the features.")
        n = problem.data.n
        # Rows that lie side by side are often alike (sorted by class, say), and to visit them in turn
        # wastes work: pairs of rows in random order, or eights where memory is slower than that.
        self.bucket = 2 if 12 * problem.data.n_entries <= _IN_CACHE else 8
        self.order = np.arange(-(-n // self.bucket), dtype=np.int64)
        self.seed, self.epochs, self._walks = int(seed), 0, 0
        self._steps: list[float] = []  # of the multiplier, the last three
        self.z, self.b, self.state = np.zeros(n), np.zeros(n), np.zeros(2)
        weight = self.block.weights()
        total, size = float(weight.sum()), dot(weight, self.norms)
        self.hardness = hardness(problem, size / max(1, int(np.count_nonzero(weight))))
        free = problem.fit_intercept and total > 0.0
        self.stiffness = RHO * size / (total * problem.lam) if free else 0.0
        self.slacks: list[float] = []
        self.rounds = Rounds(self)
        self.primal = math.inf
        if theta[:-1].any():
            self.u, self.theta = self._near(theta)
            self.best = float(theta[-1])
        else:
            self.u, self.theta = np.zeros(n), np.zeros_like(theta)
            self._settle_intercept(float(theta[-1]), 1e-6)
            self.b += self.theta[-1]
            if not math.isfinite(self.primal):
                problem.start(theta)  # says whose fault it is

    def _near(self, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
        """A start from theta: the slopes there, times the factor that brings w = v/lam nearest to it."""
        problem, block = self.problem, self.block
        self.z = block.scores(theta)
        u = -self.intercept.slopes(block.margins(self.z))
        self.z -= theta[-1]
        self.b += theta[-1]
        mass = block.weights() * block.sign * u
        problem.passes += 2
        v = problem.data.sum(
            lambda b, out: _kernels.combine(b.rows, b.lo, b.hi, mass, out), problem.order
        )
        size, along = dot(v[:-1], v[:-1]), dot(v[:-1], theta[:-1])
        t = min(1.0, max(0.0, problem.lam * along / size)) if size > 0.0 else 1.0
        start = (t / problem.lam) * v
        start[-1] = theta[-1]
        self.state[0] = t * float(v[-1])
        return t * u, start

    def epoch(self, run: Run[Problem] | None = None) -> None:
        """One visit to every row, in a new order, then the new multiplier."""
        self.epochs += 1
        self.state[1] = 0.0
        try:
            self._walk(self.order, self.bucket, run)
        finally:  # also when a limit ends the epoch
            before = float(self.theta[-1])
            self._settle_intercept(before + self.stiffness * float(self.state[0]), 1e-3)
            self._extrapolate(float(self.theta[-1]) - before)
        self.slacks.append(float(self.state[1]))

    def visit(self, rows: npt.NDArray[np.int64], run: Run[Problem] | None = None) -> None:
        """One visit to the given rows alone; the multiplier stays."""
        self._walk(rows, 1, run)

    def _walk(self, order: npt.NDArray[np.int64], bucket: int, run: Run[Problem] | None) -> None:
        problem, count = self.problem, len(order)
        self._walks += 1
        _kernels.shuffle(order, (self.seed * 0x9E3779B1 + self._walks) % 2**64)
        rows = min(problem.data.n, count * bucket)
        entries = max(1, problem.data.n_entries * rows // max(1, problem.data.n))
        step = max(1, _ENTRIES_PER_CALL * count // entries)
        problem.passes += rows / max(1, problem.data.n)
        for k in range(0, count, step):
            if run is not None and k > 0:
                run.check_limits()
            self._ascend(order, bucket, k, min(count, k + step))

    def _ascend(self, order: npt.NDArray[np.int64], bucket: int, k0: int, k1: int) -> None:
        _kernels.dual_cd(
            self.block.rows,
            self.block.targets,
            self.loss,
            k0,
            k1,
            order,
            bucket,
            self.problem.lam,
            self.stiffness,
            self.norms,
            self.u,
            self.z,
            self.b,
            self.theta,
            self.state,
        )

    def _settle_intercept(self, b: float, fine: float) -> None:
        """The multiplier becomes the best intercept at the scores z; the primal value there is noted."""
        self.best, loss = self.intercept.best(self.z, b, fine)
        self.theta[-1] = self.best
        self.primal = loss + 0.5 * self.problem.lam * dot(self.theta[:-1], self.theta[:-1])

    def _extrapolate(self, step: float) -> None:
        """Where the steps of the multiplier shrink slowly and steadily, make the rest of them at once."""
        self._steps = [*self._steps[-2:], step]
        if len(self._steps) < 3 or 0.0 in self._steps:
            return
        first, second, third = self._steps
        if SLOW < third / second < 1.0 and abs(third / second - second / first) < STEADY:
            self.theta[-1] += third * min(FAR, third / (second - third))
            self._steps = []  # three plain steps before the next guess

    def foretold(self) -> float:
        """The duality gap now, as guessed from the slacks of the last epoch and how fast they shrink.

        The first epoch starts from afar: its slacks tell nothing, but the hardness does.
        """
        if len(self.slacks) < 2:
            return 0.1 * self.hardness * self.primal if self.slacks else math.inf
        before, last = self.slacks[-2:]
        if len(self.slacks) == 2:
            return last * min(0.3, max(0.03, 0.1 * self.hardness))
        return last * (min(1.0, max(0.05, last / before)) if before > 0.0 else 1.0)

    def epochs_to(self, gap: float) -> float:
        """Epochs until the gap is that small, if it goes on falling as in the last half of them."""
        span = max(3, self.epochs // 2)
        now, before, last = self.foretold(), self.slacks[-1 - span], self.slacks[-1]
        if now <= gap:
            return 0.0
        falling = 0.0 < last < before and gap > 0.0
        return span * math.log(now / gap) / math.log(before / last) if falling else math.inf

    def many_more(self, tol: float) -> bool:
        """Whether the last two epochs foretell more of them than a round on the free rows is worth."""
        if len(self.slacks) < 3:
            return False
        before, last = self.slacks[-2:]
        goal = tol * self.primal
        if last <= goal:
            return False
        few = self.rounds.price()
        return before <= last or few * math.log(before / last) < math.log(last / goal)

    def hopeless(self, tol: float, patience: float) -> bool:
        """Whether more epochs are foretold than are worth it, and a few more would not help Newton either."""
        if not self.finite():
            return True
        if self.epochs < 6:  # too early to tell
            return False
        if self.epochs_to(tol * self.primal) <= patience and self.epochs <= 3.0 * patience:
            return False
        near = NEAR * self.primal
        return self.foretold() <= near or self.epochs_to(near) > 10

    def finite(self) -> bool:
        """Whether no number has overflowed."""
        return math.isfinite(sum(self.slacks[-1:]) + self.primal + float(self.theta[-1]))

    def point(self) -> tuple[FloatArray, Explicit]:
        """Theta with the best intercept known, and u moved to e = 0."""
        theta = self.theta.copy()
        theta[-1] = self.best
        return theta, Explicit(self.intercept.balanced(self.u, self.z, self.b))


def prefers(problem: Problem, tol: float) -> bool:
    """Whether to begin with coordinate ascent, among the methods for many features.

    Passes to certified gaps of 1e-3 and 1e-6, ascent with Newton to finish / truncated Newton alone, by
    k = C mean |x|^2; one pass of ascent takes as long as 1.1 to 1.7 of Newton's::

        logistic        k = 0.01          k = 1              k = 100
        sms             4   5 / 10  11    7   8 / 19  27     11   31 /  54   68
        imdb            3   7 /  7   8    5   8 / 14  18      8   14 /  51   68
        news20          4   5 /  7  12    7   8 / 19  22      8   12 /  51   65
        noisy, large    3   5 /  7   8    5   8 / 11  20     37   59 /  45   65
        squared hinge
        sms             5   7 /  8   9    8  16 / 40  56     39  290 / 576  745
        imdb            4   7 /  8   9    7  12 / 29  37     16   54 / 347  475
        news20          7   7 /  8   9    8  14 / 31  44     18  110 / 393  585
        noisy, large    4   6 /  8   9   11  21 / 21  33    206  322 / 196  313

    Below k = 0.001 Newton needs four passes and wins. Where ascent is slow (large k, many rows, noisy labels) it
    notices after six epochs. The choice may not depend on the number of threads, or the bits of the answer
    would; so large data, whose passes threads do share, begin with Newton up to k = 1/2.
    """
    if not applies(problem):
        return False
    least = 0.001 if problem.data.n_entries < MANY else 0.5
    return hardness(problem, sampled_mean(problem)) >= least * (1.0 - 1e-6)


def solve(
    problem: Problem, theta: FloatArray, stop: Stop, epochs: int | None = None, seed: int = 0
) -> Solution:
    """Ascend until the gap closes.

    Other ends: a limit of the user (its status); as many epochs as given, or progress so slow that Newton's
    method would be faster (status WORKING_PRECISION). In the last case W is a good start for it if the
    gap, which the last record of the trace shows, is below 0.3 of the objective.
    """
    run = Run(problem, stop)
    ascent = Ascent(problem, theta, seed)
    patience = newton_passes(problem, ascent.hardness, stop.tol) / EPOCH
    parabola = is_parabola(problem)
    status, closed, bias, last, slow = Status.WORKING_PRECISION, 0, 1.0, False, False
    try:
        while not last:
            run.check_limits()
            ascent.epoch(run)
            count, foretold = ascent.epochs, ascent.foretold()
            last = ascent.hopeless(stop.tol, patience) if epochs is None else count >= epochs
            if not ascent.finite():
                return run.solution(status, theta, Explicit(np.zeros_like(ascent.u)))
            near = bias * foretold <= stop.tol * ascent.primal
            if last or count - closed >= _SPARE or near:
                closed = count
                if run.close(*ascent.point()):
                    status = Status.CERTIFIED
                    break
                gap = run.trace[-1].primal - run.trace[-1].dual
                bias = min(4.0, max(0.5, gap / (problem.penalty.scale * foretold or 1.0)))
            slow = slow or (parabola and ascent.many_more(stop.tol))
            if slow and not last:
                goal = 0.3 * stop.tol * ascent.primal / (ascent.slacks[-1] or 1.0)
                ascent.rounds.improve(run, goal)
    except LimitReached as limit:
        status = limit.status
    return run.solution(status, *ascent.point())
