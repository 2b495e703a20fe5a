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

Where ascent sets out, and whether rows are centred, is told in beginning.py. theta = (w', b0) belongs to the rows as
they are, scores and intercepts to the centred ones: w = w' - (e/lam) c, b = b0 - c.w.

Rows that rest at an end of their interval, with a slope that points farther beyond it than any row of the last epoch
was from stationarity, leave the list that epochs visit, until the gap says that some of them must be asked again.
Where epochs alone would still be many, each is followed by conjugate gradients on the free rows (free_set.py).

Hsieh, Chang, Lin, Keerthi, Sundararajan 2008 (the method, and how rows leave); Yu, Huang, Lin 2011 (logistic loss);
Shalev-Shwartz and Zhang 2013 (rates); Hestenes 1969, Powell 1969 (augmented Lagrangian).
"""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.data import Memory
from linsep.errors import NonFinite
from linsep.problem import dot
from linsep.solution import Explicit
from linsep.solvers.beginning import Beginning, Centre, ClassStart
from linsep.solvers.free_set import Rounds, is_parabola
from linsep.solvers.hardness import hardness
from linsep.solvers.intercept import Intercept
from linsep.solvers.run import SAFETY

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.run import Run

RHO = 0.1  # stiffness of the intercept in units of mean |x|^2 / lam; 0.03 serves as well, 0.3 is slower
SLOW, STEADY, FAR = (
    0.3,
    0.1,
    8.0,
)  # ratios of steps of the multiplier: from which, how alike, how far
FINE = 0.02  # step of Newton's method for the multiplier whose square is below what an epoch leaves
LEAVE = 0.35  # slope of a row that leaves, as a multiple of the largest one of a row that moved
STAY = 4.0  # epochs over all rows, at most, before any leaves
GAIN = 12.0  # by which a round on the free rows divides the slacks, about
# The pace from which the rows that move farthest, at most so many, are visited more often, and how often.
SLOWLY, ALIKE, REPEATS = 0.7, 8, 100
FEW = 2  # the list is short if all rows are more than so many times as many
# Rows that settle an intercept among themselves, and how far they move it at most.
ENOUGH, WITHIN = 32, 0.1
NEAR = 0.1  # relative gap from which Newton's method gains by a start: from 0.4 on it loses
_IN_CACHE = 8 << 20  # bytes of data within which visiting rows at random costs little
_ENTRIES_PER_CALL = 4_000_000  # about 10 ms: Ctrl-C and limits are answered between calls


class Ascent:
    """What moves: u, theta = (w, b0) with w = v/lam, scores z and intercepts b as each row last saw them."""

    def __init__(self, problem: Problem, theta: FloatArray, seed: int, tol: float = 0.0) -> None:
        assert problem.data.whole is not None and problem.loss.native is not None
        self.problem, self.block = problem, problem.data.whole
        self._two = isinstance(problem.data, Memory) and problem.data.n_threads > 1
        self.loss = _kernels.Loss(problem.loss.native, *problem.loss.params)
        self.intercept = Intercept(problem, self.block, self.loss)
        begin = Beginning(problem, self.block)
        if not math.isfinite(begin.size):
            problem.start(theta)
            raise NonFinite("Some row of X has a norm too large to square. Scale the features.")
        n = problem.data.n
        # Rows that lie side by side are often alike (sorted by class, say), and to visit them in turn
        # wastes work: rows in random order, or eights of them where memory is slower than that.
        self.bucket = 1 if 12 * problem.data.n_entries <= _IN_CACHE else 8
        self.seed, self.epochs, self._walks, self.visited = int(seed), 0, 0, 0.0
        self._steps: list[float] = []  # of the multiplier, the last three
        self._reach = math.inf  # of the next one, about
        self.z, self.b, self.state = np.zeros(n), np.zeros(n), np.zeros(4)
        self._rests, self._stay = is_parabola(problem), 0.5
        self.all_back()
        self.hardness = hardness(problem, begin.size / max(1, begin.live))
        self.slacks: list[float] = []
        self.rounds = Rounds(self)
        self.primal, self.stale = math.inf, False
        self.begun_near = self.there = False  # from class sums near the solution; within tol of it
        self.centre: Centre | None = None
        self.u, self.theta = np.zeros(n), np.zeros_like(theta)
        if theta[:-1].any():
            self._near(theta, begin)
        else:
            self._from_classes(float(theta[-1]), begin, tol)
        self.norms = begin.norms
        free = problem.fit_intercept and begin.total > 0.0
        self.stiffness = RHO * begin.mean / problem.lam if free else 0.0
        if not math.isfinite(self.primal):
            problem.start(theta)  # says whose fault it is

    def _near(self, theta: FloatArray, begin: Beginning) -> None:
        """A start from theta: the slopes there, times the factor that brings w = v/lam nearest to it."""
        problem, block = self.problem, self.block
        if begin.far_off:
            self.centre, self.z = begin.centred(theta)
            z = self.z + (dot(self.centre.c, theta[:-1]) + theta[-1])
        else:
            z = block.scores(theta)
            self.z = z - theta[-1]
        u = -self.intercept.slopes(block.margins(z))
        problem.passes += 1
        v = self._combined(u)
        size, along = dot(v[:-1], v[:-1]), dot(v[:-1], theta[:-1])
        t = min(1.0, max(0.0, problem.lam * along / size)) if size > 0.0 else 1.0
        self.u = t * u
        self._take(t * v, float(theta[-1]) + self._shift(theta[:-1]))
        self.best, self.primal = float(self.theta[-1]), 0.0
        self.b += self.best

    def _from_classes(self, b: float, begin: Beginning, tol: float) -> None:
        """A start from the dual point at w = 0; from zero where there is none."""
        problem, sign = self.problem, self.block.sign
        self.best, self.primal = self.intercept.alone(self.z, b)
        start = begin.guess(self.best)
        if start is not None:
            self.u = np.where(sign > 0.0, start.plus, start.minus)
            self.theta[:-1] = start.w
        near = start is not None and start.near and problem.fit_intercept
        if near or begin.far_off:
            self.centre, self.z = begin.centred(self.theta)
            self._recount()
        if near and start is not None:
            size = 0.5 * problem.lam * dot(start.w, start.w)
            self.best, loss = self.intercept.best(self.z, self.best, 1e-6)
            self.primal = loss + size
            self.slacks.append(self.primal - start.dual)
            self.begun_near, self.there = True, self.slacks[0] <= SAFETY * tol * self.primal
            if not problem.loss.smooth and not self.there:
                self._in_order(start, begin)
        self.theta[-1] = self.best
        self.b += self.best

    def _in_order(self, start: ClassStart, begin: Beginning) -> None:
        """The hinge: all u = 1 but in the larger class, of which the rows farthest beyond the kink give u = 0.

        So few rows are near the kink that epochs may begin with those alone.
        """
        block, lam = self.block, self.problem.lam
        self.u = self.intercept.balanced(np.ones_like(self.u), self.z, self.b)
        mass = block.weights() * block.sign
        given = np.flatnonzero(self.u != 1.0)
        kept = np.flatnonzero(self.u != 0.0)
        v, rows = np.zeros(len(start.w)), given if len(given) <= len(kept) else kept
        if rows is given:
            _kernels.list_add(self.block.rows, rows, mass[rows] * (self.u[rows] - 1.0), v)
            v += begin.plus - begin.minus
        else:
            _kernels.list_add(self.block.rows, rows, mass[rows] * self.u[rows], v)
        self.problem.passes += 0.5 * len(rows) / max(1, self.problem.data.n)
        v /= lam
        moved = v - start.w
        self.theta[:-1] = v
        self._recount()
        slopes = np.abs(1.0 - block.sign * (self.z + self.best))
        near = slopes <= math.sqrt(dot(moved, moved) * begin.mean)
        self._visit_only(np.flatnonzero(near))

    def _shift(self, w: FloatArray) -> float:
        """c.w: by how much the intercept of the centred rows is larger."""
        return 0.0 if self.centre is None else dot(self.centre.c, w)

    def _recount(self) -> None:
        """e and f for the u and w as they are."""
        mass = self.block.sign * self.u
        if self.block.weight is not None:
            mass *= self.block.weight
        self.state[0] = float(mass.sum())
        self.state[3] = self.problem.lam * self._shift(self.theta[:-1])

    def _take(self, sums: FloatArray, b: float) -> None:
        """w' and e from the sums (v, e), and the multiplier b."""
        self.state[0] = sums[-1]
        self.state[3] = self._shift(sums[:-1])
        self.theta = sums / self.problem.lam
        self.theta[-1] = b

    def _primal_w(self) -> FloatArray:
        """w = w' - (e/lam) c."""
        w = self.theta[:-1].copy()
        if self.centre is not None:
            w -= (float(self.state[0]) / self.problem.lam) * self.centre.c
        return w

    def _combined(self, u: FloatArray) -> FloatArray:
        """Sum of s sigma u (x, 1): v and e."""
        mass = self.block.weights() * self.block.sign * u
        self.problem.passes += 1
        return self.problem.data.sum(
            lambda b, out: _kernels.combine(b.rows, b.lo, b.hi, mass, out), self.problem.order
        )

    def restart(self, u: FloatArray, b: float) -> None:
        """Go on from these dual variables and this multiplier."""
        self.u = u
        self._take(self._combined(u), b)
        self.theta[-1] += self._shift(self._primal_w())
        self._steps = []
        self.all_back()

    def free(self) -> int:
        """The number of rows whose u is strictly inside its interval."""
        low, high = self.problem.loss.domain
        return int(np.count_nonzero((self.u > low) & (self.u < high)))

    def all_back(self) -> None:
        """The next epoch visits all rows, and none leaves."""
        n, self._asked, self._far = self.problem.data.n, self.epochs, math.inf
        self._stay = min(STAY, 2.0 * self._stay)  # who had to be called back is not let go so soon
        self._visit_only(np.arange(n, dtype=np.int64))

    def recall(self) -> None:
        """The next epoch visits the rows that are not at rest where w is now (one read of X).

        Those that have left the list were asked where w was then.
        """
        problem, block = self.problem, self.block
        w = self._primal_w()
        self.z = block.scores(np.append(w, -self._shift(w)))
        problem.passes += 0.5
        self.stale, self._asked = True, self.epochs
        self.refresh()
        self.b = np.full_like(self.z, self.best)
        low, high = problem.loss.domain
        bend = 1.0 / problem.loss.curvature_bound if problem.loss.smooth else 0.0
        slope = 1.0 - block.margins(self.z + self.best) - bend * self.u
        far = self._far if self._far < math.inf else 0.0
        rests = ((self.u <= low) & (slope < -far)) | ((self.u >= high) & (slope > far))
        self._visit_only(np.flatnonzero(~rests))

    def _visit_only(self, rows: npt.NDArray[np.int64]) -> None:
        self.rows, self.count = rows, len(rows)
        self._order = np.arange(-(-self.count // self.bucket), dtype=np.int64)

    @property
    def _lately(self) -> int:
        """Epochs since all rows were asked: what the slacks did before tells nothing about the pace."""
        return self.epochs - self._asked

    @property
    def share(self) -> float:
        """Of the rows, those that the next epoch visits."""
        return self.count / max(1, self.problem.data.n)

    def epoch(self, run: Run[Problem] | None = None) -> None:
        """One visit to every row of the list, in a new order, then the new multiplier."""
        self.epochs += 1
        self.visited += self.share
        self.state[1:3] = 0.0
        rows = self.rows[: self.count]
        slowly = self._lately > 3 and self.slacks[-1] > SLOWLY * self.slacks[-2]
        start = self.u.copy() if slowly else None
        try:
            self._walk(self._order, self.bucket, rows, self._far, run)
            if start is not None:
                self._revisit(np.abs(self.u - start), run)
        finally:  # also when a limit ends the epoch
            before = float(self.theta[-1])
            if self._far < math.inf:
                self._let_leave(rows)
            self._settle_intercept(before + self.stiffness * float(self.state[0]))
            self._extrapolate(float(self.theta[-1]) - before)
        self.slacks.append(float(self.state[1]))
        if self._rests and self._lately >= self._stay:
            moved = abs(float(self.theta[-1]) - before)
            self._far = LEAVE * float(self.state[2]) + 0.5 * moved

    def _let_leave(self, rows: npt.NDArray[np.int64]) -> None:
        self.count = _kernels.remaining(rows)
        buckets = -(-self.count // self.bucket)
        if buckets < len(self._order):
            self._order = np.arange(buckets, dtype=np.int64)

    def visit(self, rows: npt.NDArray[np.int64], run: Run[Problem] | None = None) -> None:
        """One visit to the given rows alone; the multiplier stays."""
        self._walk(rows, 1, None, math.inf, run)

    def _revisit(self, moved: FloatArray, run: Run[Problem] | None) -> None:
        """Visit the few rows that moved farthest, again and again.

        Rows that are nearly alike trade their u in small steps, and keep all others waiting until they have done.
        """
        few = np.flatnonzero(moved >= 0.25 * float(moved.max()))
        if 2 <= len(few) <= ALIKE:
            slack, most = self.state[1:3]
            self._walk(np.tile(few, REPEATS * ALIKE // len(few)), 1, None, math.inf, run)
            self.state[1:3] = slack, most

    def _walk(
        self,
        order: npt.NDArray[np.int64],
        bucket: int,
        listed: npt.NDArray[np.int64] | None,
        far: float,
        run: Run[Problem] | None,
    ) -> None:
        problem, count, centre = self.problem, len(order), self.centre
        along, size = (None, 0.0) if centre is None else (centre.along, centre.size)
        self._walks += 1
        seed = (self.seed * 0x9E3779B1 + self._walks) % 2**64
        if bucket == 1 and listed is not None:
            _kernels.arrange(self.block.rows, order, seed, listed)
        else:
            _kernels.shuffle(order, seed)
        rows = count if listed is None else len(listed)
        entries = max(1, problem.data.n_entries * rows // max(1, problem.data.n))
        step = max(1, _ENTRIES_PER_CALL * count // entries)
        problem.passes += rows / max(1, problem.data.n)
        for k in range(0, count, step):
            if run is not None and k > 0:
                run.check_limits()
            _kernels.dual_cd(
                self.block.rows,
                self.block.targets,
                self.loss,
                k,
                min(count, k + step),
                order,
                bucket,
                listed,
                far,
                problem.lam,
                self.stiffness,
                self.norms,
                self.u,
                self.z,
                self.b,
                self.theta,
                self.state,
                along,
                size,
                self._two,
            )

    def _settle_intercept(self, b: float) -> None:
        """The multiplier becomes the best intercept at the scores z.

        Of few rows on the list: the best while the u of the others stay, unless that leads far. Else the primal value
        there is noted.
        """
        self.stale = FEW * self.count < len(self.z) and self.count >= ENOUGH
        if self.stale:
            e, rows = float(self.state[0]), self.rows[: self.count]
            self.best = self.intercept.among(rows, self.z, self.u, e, b, FINE, self._reach)
            self.stale = abs(self.best - b) <= WITHIN * (1.0 + abs(b))
        if not self.stale:
            self._settle(b)
        self._reach = 2.0 * abs(self.best - b)
        self.theta[-1] = self.best

    def refresh(self) -> None:
        """The best intercept and the primal value with regard to all rows, if they are not."""
        if self.stale:
            self.stale = False
            self._settle(self.best)

    def _settle(self, b: float) -> None:
        self.best, loss = self.intercept.best(self.z, b, FINE, self._reach)
        lam, size = self.problem.lam, dot(self.theta[:-1], self.theta[:-1])
        if self.centre is not None:
            e = float(self.state[0]) / lam
            size += e * (e * self.centre.size - 2.0 * float(self.state[3]) / lam)
        self.primal = loss + 0.5 * lam * size

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
            least = 0.03 if self.problem.loss.smooth else 0.3
            if self.begun_near and self.problem.loss.smooth:  # measured at k = 0.01 and 0.08
                return last * min(0.3, max(1e-4, 5.0 * self.hardness**2))
            return last * min(0.3, max(least, 0.1 * self.hardness))
        shrinking = min(1.0, max(0.05, last / before)) if before > 0.0 else 1.0
        return last * shrinking * (2.0 if len(self.slacks) == 3 else 1.15)  # it slows down at first

    def epochs_to(self, gap: float) -> float:
        """Epochs until the gap is that small, if it goes on falling as in the last half of them."""
        span = max(3, self._lately // 2)
        now, before, last = self.foretold(), self.slacks[-1 - span], self.slacks[-1]
        if now <= gap:
            return 0.0
        falling = 0.0 < last < before and gap > 0.0
        return span * math.log(now / gap) / math.log(before / last) if falling else math.inf

    def many_more(self, tol: float) -> bool:
        """Whether a round on the free rows is worth more than the epochs that take as long, and that many are left."""
        if self._lately < 3:
            return False
        before, last = self.slacks[-3], self.slacks[-1]
        goal = tol * self.primal
        if last <= goal:
            return False
        few = 0.5 * self.rounds.price(self.free() / max(1, self.count))  # the pace of two epochs
        return before <= last or few * math.log(before / last) < math.log(min(GAIN, last / goal))

    def hopeless(self, tol: float, patience: float) -> bool:
        """Whether more epochs are foretold than are worth it, and a few more would not help Newton either."""
        if not self.finite():
            return True
        if self._lately < max(6, self.epochs // 3):  # too early to tell
            return self.visited > 3.0 * patience
        left = self.share * self.epochs_to(tol * self.primal)
        if left <= patience and self.visited <= 3.0 * patience:
            return False
        near = NEAR * self.primal
        return self.foretold() <= near or self.epochs_to(near) > 10

    def stalled(self) -> bool:
        """Whether the slacks have stopped to shrink: 50 epochs for nothing, or 200 in which rows came back."""
        slacks, lately = self.slacks, self._lately
        if len(slacks) > 400 and min(slacks[-200:]) > 0.9 * min(slacks[:-200]):
            return True
        if lately <= 100:  # who came back brings slacks along
            return False
        return min(slacks[-50:]) > 0.9 * min(slacks[-lately:-50])

    def finite(self) -> bool:
        """Whether no number has overflowed."""
        return math.isfinite(sum(self.slacks[-1:]) + self.primal + float(self.theta[-1]))

    def point(self) -> tuple[FloatArray, Explicit]:
        """Theta with the best intercept known, and u moved to e = 0."""
        self.refresh()
        w = self._primal_w()
        theta = np.append(w, self.best - self._shift(w))
        return theta, Explicit(self.intercept.balanced(self.u, self.z, self.b))
