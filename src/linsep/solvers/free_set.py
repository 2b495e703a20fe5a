"""Conjugate gradients on the free rows: those whose u is strictly inside its interval.

With the other rows fixed, the augmented dual of ascent.py is a quadratic in the signed masses p = s sigma u of
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

from linsep.problem import dot
from linsep.solvers.free_rows import Copied, Listed, System, free_rows

if TYPE_CHECKING:
    import numpy.typing as npt

    from linsep.problem import Problem
    from linsep.solution import FloatArray
    from linsep.solvers.ascent import Ascent
    from linsep.solvers.run import Run

LOSSES = ("squared_hinge", "huberised_hinge", "huber", "hinge", "absolute")
STEPS = 15  # of conjugate gradients in a round
LONG = 100  # where the set of free rows has settled
FINE = 0.05  # residual at which they end, as a share of the first one
EPOCHS = 3  # over the free rows in a round
FEWER = 0.5  # share of the rows that stop the next shorter move
FITTING = 0.9  # length along the chord at which the bend does no harm


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

    def __init__(self, ascent: Ascent, kept: Listed | Copied | None = None) -> None:
        self.ascent, problem, block = ascent, ascent.problem, ascent.block
        weight, u = block.weights(), ascent.u
        self.low, self.high = problem.loss.domain
        inside = (u > self.low) & (u < self.high) & (weight > 0.0)
        self.list: npt.NDArray[np.int64] = np.flatnonzero(inside)
        rows = self.list
        self.settled = kept is not None and np.array_equal(rows, kept.rows)
        self.rows = kept if kept is not None and self.settled else free_rows(problem, rows)
        self.u, self.sign, self.weight = u[rows], block.sign[rows], weight[rows]
        bend = 1.0 / problem.loss.curvature_bound if problem.loss.smooth else 0.0
        self.system = System(problem.lam, ascent.stiffness, bend / self.weight, ascent.norms[rows])
        e, f = float(ascent.state[0]), float(ascent.state[3])
        z = self.rows.dots(ascent.theta)
        z += ascent.theta[-1] + ascent.stiffness * e
        if ascent.centre is not None:
            self.system.along, self.system.centre = ascent.centre.along[rows], ascent.centre.size
            z -= (e * (self.system.along - self.system.centre) + f) / problem.lam
        offset = 0.0 if block.offset is None else block.offset[rows]
        self.gradient = z - self.sign * (1.0 - offset - bend * self.u)

    def direction(self, run: Run[Problem] | None, steps: int, fine: float) -> FloatArray:
        """The change of u that conjugate gradients ask for, whatever the intervals."""
        x = self.rows.solve(self.system, -self.gradient, steps, fine, run)
        return self.sign * x / self.weight

    def _trial(self, move: FloatArray) -> _Move:
        """The move bent onto the intervals, and the best length along the chord to its end."""
        system = self.system
        new = np.clip(self.u + move, self.low, self.high)
        mass = self.sign * self.weight * (new - self.u)
        v = self.rows.add(mass)
        slope, total = dot(self.gradient, mass), float(mass.sum())
        square = dot(v, v) + total * (system.centre * total - 2.0 * system.shared(mass))
        curved = square / system.lam + dot(system.ridge * mass, mass)
        curved += system.stiffness * total * total
        length = min(1.0, -slope / curved) if curved > 0.0 else 0.0
        return _Move(new, mass, v, length, -length * (slope + 0.5 * length * curved))

    def search(self, move: FloatArray) -> _Move:
        """The best of some lengths of the move, each of which fewer rows stop than the one before."""
        room = np.where(move > 0.0, self.high - self.u, self.low - self.u)
        with np.errstate(divide="ignore", invalid="ignore"):
            hits = np.sort((room / move)[(move != 0.0) & (np.abs(move) >= np.abs(room))])
        best = self._trial(move)
        count = len(hits)
        while count > 0 and best.length < FITTING:
            count = int(FEWER * count)
            shorter = self._trial(float(hits[count]) * move)
            if shorter.gain <= best.gain and best.gain > 0.0:
                break
            best = shorter if shorter.gain > best.gain else best
        return best

    def apply(self, move: _Move) -> None:
        """Make the move."""
        ascent, t = self.ascent, move.length
        ascent.u[self.list] += t * (move.new - self.u)
        ascent.theta[:-1] += (t / self.system.lam) * move.v
        ascent.state[0] += t * float(move.mass.sum())
        ascent.state[3] += t * self.system.shared(move.mass)


class Rounds:
    """Rounds on the free rows, between the epochs over all of them."""

    def __init__(self, ascent: Ascent) -> None:
        self.ascent = ascent
        self._last: Listed | Copied | None = None

    @staticmethod
    def price(share: float) -> float:
        """Epochs that take as long as a round would, with this share of the rows free."""
        return 2.0 + (STEPS + EPOCHS) * share

    def improve(self, run: Run[Problem] | None = None, goal: float = FINE) -> None:
        """One round: conjugate gradients, the bent move, some epochs over the free rows.

        Once the set of free rows has settled, one long run serves better than many short ones: up to the
        share ``goal`` of the residual.
        """
        free = FreeSet(self.ascent, self._last)
        if len(free.list) < 2:
            return
        self._last = free.rows
        length = (LONG, min(FINE, goal)) if free.settled else (STEPS, FINE)
        move = free.search(free.direction(run, *length))
        if move.gain > 0.0 and np.isfinite(move.gain):
            free.apply(move)
        for _ in range(EPOCHS):
            if run is not None:
                run.check_limits()
            self.ascent.visit(free.list.copy(), run)
