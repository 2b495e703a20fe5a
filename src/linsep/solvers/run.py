"""State of one run of a solver: limits, trace, best point, and the test whether the gap is at most tol."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any, Generic, TypeVar, cast
from weakref import WeakKeyDictionary, WeakSet

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Location, mapped_vectors
from linsep.interrupts import OutOfTime, checking
from linsep.monitoring import note
from linsep.problem import CoupledProblem, GroupProblem, Problem
from linsep.solution import Explicit, Linearised, Solution, Status, Stop, TraceRecord
from linsep.solvers.dual_infeasibility import DualInfeasibility

# half the squared decrement, relative to P, below which a Newton step may close the gap
CLOSING_DECREMENT = 2e-3
FAR_FROM_CLOSED = 100.0  # a relative gap above this times tol is not explained by rounding
SAFETY = 0.9  # solvers stop at this fraction of tol: the certificate adds a rounding bound


P = TypeVar("P", bound="Problem | CoupledProblem | GroupProblem")
D = TypeVar("D", bound="Linearised | Explicit")
Gap = Callable[[Any, "FloatArray", "FloatArray"], tuple[float, float]]


class LimitReached(Exception):
    """A limit of the user was reached (control flow: never visible to users)."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class HandOver(LimitReached):
    """The method stalled and another one continues from its current point (control flow)."""

    def __init__(self) -> None:
        super().__init__(Status.GIVEN_UP)


def primal_dual(
    problem: Problem | CoupledProblem | GroupProblem, at: FloatArray, sums: FloatArray
) -> tuple[float, float]:
    """Return primal and dual value at a point from the sums of its closing pass."""
    return problem.values(at, sums)


class Run(Generic[P]):
    """One run of a solver: elapsed time, trace and the point with the smallest gap so far.

    Points are theta (d+1,) or, for losses that couple the classes, W (d+1, k); ``gap`` computes the primal
    and the dual value at a point from the sums of its closing pass.
    """

    def __init__(self, problem: P, stop: Stop, gap: Gap = primal_dual) -> None:
        self.problem, self.stop, self._gap = problem, stop, gap
        self.began = time.perf_counter()
        self.trace: list[TraceRecord] = []
        self.best: tuple[float, FloatArray, Linearised | Explicit, FloatArray] | None = None
        self.lower = 0.0
        self.last_sums = np.zeros(0)  # sums of the last closing pass
        self.best_dual: Linearised | Explicit | None = None  # dual point of the bound ``lower``
        self._out_of_time = False  # whether LimitReached has been raised for the time limit
        self._mapped: WeakKeyDictionary[Linearised, Linearised] = WeakKeyDictionary()
        self._in_files: WeakSet[Linearised] = WeakSet()

    @property
    def seconds(self) -> float:
        """Elapsed time of the run [s]."""
        return time.perf_counter() - self.began

    def rest(self, tol: float, max_passes: float | None = None) -> Stop:
        """Return the limits of a subproblem: the remaining time, and passes that the subproblem counts itself."""
        return Stop(tol, self.stop.after(self.seconds).time_limit, max_passes)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Context that raises LimitReached at the time limit, even during a pass or a native call.

        It is raised only once, so that the handler can complete its result.
        """
        try:
            with checking(*([] if self.stop.time_limit is None else [self._check_time])):
                yield
        except OutOfTime:
            raise LimitReached(Status.TIME_LIMIT) from None

    def _check_time(self) -> None:
        limit = self.stop.time_limit
        if not self._out_of_time and limit is not None and self.seconds >= limit:
            self._out_of_time = True
            raise LimitReached(Status.TIME_LIMIT)

    def check_limits(self) -> None:
        """Raise LimitReached if the user's time limit or pass limit is reached."""
        self._out_of_time = False
        self._check_time()
        if self.stop.max_passes is not None and self.problem.passes >= self.stop.max_passes:
            raise LimitReached(Status.PASS_LIMIT)

    def record(self, primal: float) -> None:
        """Append a line to the trace, in reported units."""
        scale = self.problem.penalty.scale
        line = TraceRecord(self.problem.passes, self.seconds, scale * primal, scale * self.lower)
        self.trace.append(line)
        note(line.passes, line.primal, line.dual, self.problem)

    def close(
        self, at: FloatArray, dual: Linearised | Explicit, sums: FloatArray | None = None
    ) -> bool:
        """Make a closing pass, unless its sums are given, store the best point; return whether tol is met."""
        if sums is None:
            sums = self.problem.closing(at, dual)
        self.last_sums = sums
        primal, lower = self._gap(self.problem, at, sums)
        if lower > self.lower:
            self.lower, self.best_dual = float(lower), self.to_file(dual)
        gap = primal - lower
        finite = bool(np.isfinite(gap))
        if finite and (self.best is None or gap < self.best[0]):
            self.best = (gap, self.stored(at.copy()), self.to_file(dual), self.stored(sums))
            self.last_sums = self.best[3]
        self.record(primal)
        return finite and gap <= SAFETY * self.stop.tol * max(abs(primal), abs(lower))

    def to_file(self, dual: D) -> D:
        """Return the dual point for later use; memory-mapped if the rows are on disk, to save memory."""
        if isinstance(dual, Explicit) or self.problem.data.location is not Location.DISK:
            return dual
        if dual in self._in_files:
            return dual
        found = self._mapped.get(dual)
        if found is None:
            found = Linearised(self.stored(dual.base), self.stored(dual.step))
            self._mapped[dual] = found
            self._in_files.add(found)
        return cast("D", found)

    def stored(self, vector: FloatArray) -> FloatArray:
        """Return a vector that the next pass does not need; memory-mapped if the rows are on disk."""
        on_disk = self.problem.data.location is Location.DISK
        return mapped_vectors.moved(vector) if on_disk else vector

    def close_final(self, at: FloatArray, dual: Linearised | Explicit) -> bool:
        """Close at the final point of a stalled run, with its dual point, then with the best one; one pass each."""
        done = self.close(at, dual)
        if not done and self.best_dual is not None and self.best_dual is not self.to_file(dual):
            done = self.close(at, self.best_dual)
        return done

    def status_above_tol(self, tol: float) -> Status:
        """Return WORKING_PRECISION if the final gap of a run with an L1 penalty is near tol, else GIVEN_UP."""
        relative = (
            self.best[0] * self.problem.penalty.scale / abs(self.trace[-1].primal or 1.0)
            if self.best
            else 1.0
        )
        return Status.GIVEN_UP if relative > FAR_FROM_CLOSED * tol else Status.WORKING_PRECISION

    def solution(self, status: Status, at: FloatArray, dual: Linearised | Explicit) -> Solution:
        """Return the point with the smallest gap, or (at, dual) if there was no closing pass."""
        sums = None
        if self.best is not None:
            _, at, dual, sums = self.best
        if isinstance(dual, Linearised):
            dual = Linearised(
                mapped_vectors.in_memory(dual.base), mapped_vectors.in_memory(dual.step)
            )
        return Solution(
            W=at.reshape(len(at), -1).copy(),
            dual=dual,
            status=status,
            passes=self.problem.passes,
            seconds=self.seconds,
            trace=tuple(self.trace),
            sums=sums,
        )


def linearised(base: FloatArray, step: FloatArray) -> Linearised:
    """Return the Newton-dual point of vectors (one column)."""
    return Linearised(base.reshape(-1, 1).copy(), step.reshape(-1, 1).copy())


def begin(problem: Problem, stop: Stop) -> Run[Problem]:
    """Start a run; without a penalty its gap includes the dual infeasibility."""
    gap: Gap = primal_dual if problem.lam > 0.0 else DualInfeasibility(problem).gap
    return Run(problem, stop, gap)
