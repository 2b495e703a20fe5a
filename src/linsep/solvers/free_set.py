"""Conjugate gradients on the free rows: those whose u is strictly inside its interval.

With the other rows fixed, the augmented dual of dual_cd.py is a quadratic in the signed masses p = s sigma u of
the free rows F, if the conjugate of the loss is a parabola there. Its Hessian is

    A = X_F X_F'/lam + r 1 1' + diag(ridge/s),      ridge = (curvature of l*) = 1/(curvature of l).

An epoch settles what is local quickly and what is global slowly; conjugate gradients do the opposite. So a round is:
some of their steps, the move projected onto the intervals, and a few epochs over F alone, which cost no more than the
rows of F. The projection bends the move, and the more rows it stops the worse the rest of the move fits: so its
length is searched along the bent path, and the dual value never falls.

Moré and Toraldo 1991 (conjugate gradients between bounds); Hsieh et al. 2008 (why the set of free rows settles).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.dual_cd import Ascent
    from linsep.solvers.run import Run

LOSSES = ("squared_hinge", "huberised_hinge", "huber", "hinge", "absolute")
STEPS = 15  # of conjugate gradients in a round
LONG = 100  # where the set of free rows has settled
FINE = 0.05  # residual at which they end, as a share of the first one
EPOCHS = 3  # over the free rows in a round
TRIALS = 6  # lengths tried along the bent path
SHORTER = 0.4
FITTING = 0.9  # length along the chord at which the bend does no harm
_ENTRIES_PER_CALL = 4_000_000  # about 20 ms: Ctrl-C and limits are answered between calls


def is_parabola(problem: Problem) -> bool:
    """Whether the conjugate of the loss is a parabola on an interval."""
    return problem.loss.native in LOSSES


@dataclass(frozen=True)
class _Move:
    """A feasible move of the free rows: its ends in u, its masses, its effect on v, its gain over the chord."""

    new: FloatArray
    mass: FloatArray
    v: FloatArray
    length: float
    gain: float


class FreeSet:
    """The rows that are free now, and the quadratic on them."""

    def __init__(self, ascent: Ascent) -> None:
        self.ascent, problem, block = ascent, ascent.problem, ascent.block
        low, high = problem.loss.domain
        weight, u = block.weights(), ascent.u
        self.low, self.high, self.lam = low, high, problem.lam
        self.list: npt.NDArray[np.int64] = np.flatnonzero((u > low) & (u < high) & (weight > 0.0))
        rows = self.list
        self.share = len(rows) / max(1, problem.data.n)
        self.u, self.sign, self.weight = u[rows], block.sign[rows], weight[rows]
        bend = 1.0 / problem.loss.curvature_bound if problem.loss.smooth else 0.0
        self.ridge = bend / self.weight
        self.inverse = 1.0 / (
            ascent.norms[rows] / self.lam + ascent.stiffness + self.ridge + 1e-300
        )
        z = np.empty(len(rows))
        _kernels.list_dots(block.rows, rows, ascent.theta, z)
        problem.passes += 0.5 * self.share
        z += ascent.theta[-1] + ascent.stiffness * float(ascent.state[0])
        offset = 0.0 if block.offset is None else block.offset[rows]
        self.gradient = z - self.sign * (1.0 - offset - bend * self.u)

    def solve(self, run: Run[Problem] | None, steps: int, fine: float) -> FloatArray:
        """The masses to which conjugate gradients would move, whatever the intervals.

        They end after so many steps, or when the residual has become that share of what it was.
        """
        problem, rows = self.ascent.problem, self.list
        x, r, y, state = np.zeros(len(rows)), -self.gradient, np.zeros(len(rows)), np.zeros(1)
        enough = fine * fine * dot(r * r, self.inverse)
        entries = max(1.0, 2.0 * self.share * problem.data.n_entries)
        at_once = max(1, min(int(_ENTRIES_PER_CALL / entries), int(1.0 / self.share)))
        done = 0
        while done < steps:
            if run is not None and done > 0:
                run.check_limits()
            wanted = min(at_once, steps - done)
            made = _kernels.free_cg(
                self.ascent.block.rows,
                rows,
                self.lam,
                self.ascent.stiffness,
                self.ridge,
                self.inverse,
                wanted,
                enough,
                x,
                r,
                y,
                state,
            )
            done += made
            problem.passes += self.share * made
            if made < wanted:
                break
        return x

    def _trial(self, move: FloatArray) -> _Move:
        """The move bent onto the intervals, and the best length along the chord to its end."""
        problem = self.ascent.problem
        new = np.clip(self.u + move, self.low, self.high)
        mass = self.sign * self.weight * (new - self.u)
        v = np.zeros(problem.data.d)
        _kernels.list_add(self.ascent.block.rows, self.list, mass, v)
        problem.passes += 0.5 * self.share
        slope, total = dot(self.gradient, mass), float(mass.sum())
        curved = dot(v, v) / self.lam + dot(self.ridge * mass, mass)
        curved += self.ascent.stiffness * total * total
        length = min(1.0, -slope / curved) if curved > 0.0 else 0.0
        return _Move(new, mass, v, length, -length * (slope + 0.5 * length * curved))

    def search(self, move: FloatArray) -> _Move:
        """The best of some lengths of the move."""
        best = self._trial(move)
        for k in range(1, TRIALS):
            if best.length >= FITTING:
                break
            shorter = self._trial(SHORTER**k * move)
            if shorter.gain <= best.gain:
                break
            best = shorter
        return best

    def apply(self, move: _Move) -> None:
        """Make the move."""
        ascent, t = self.ascent, move.length
        ascent.u[self.list] += t * (move.new - self.u)
        ascent.theta[:-1] += (t / self.lam) * move.v
        ascent.state[0] += t * float(move.mass.sum())


class Rounds:
    """Rounds on the free rows, between the epochs over all of them."""

    def __init__(self, ascent: Ascent) -> None:
        self.ascent = ascent
        self._last: npt.NDArray[np.int64] = np.zeros(0, np.int64)

    def price(self) -> float:
        """Epochs that take as long as a round would now."""
        low, high = self.ascent.problem.loss.domain
        u = self.ascent.u
        share = np.count_nonzero((u > low) & (u < high)) / max(1, len(u))
        return 2.0 + (STEPS + EPOCHS) * float(share)

    def improve(self, run: Run[Problem] | None = None, goal: float = FINE) -> None:
        """One round: conjugate gradients, the bent move, some epochs over the free rows.

        Once the set of free rows has settled, one long run serves better than many short ones: up to the
        share ``goal`` of the residual.
        """
        free = FreeSet(self.ascent)
        if len(free.list) < 2:
            return
        settled = np.array_equal(free.list, self._last)
        self._last = free.list.copy()
        x = free.solve(run, LONG, min(FINE, goal)) if settled else free.solve(run, STEPS, FINE)
        move = free.search(free.sign * x / free.weight)
        if move.gain > 0.0 and np.isfinite(move.gain):
            free.apply(move)
        for _ in range(EPOCHS):
            if run is not None:
                run.check_limits()
            self.ascent.visit(free.list, run)
