"""What all solvers share: the limits of the user, the trace, the test whether a gap has closed."""

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
from linsep.problem import CoupledProblem, Problem
from linsep.solution import Explicit, Linearised, Solution, Status, Stop, TraceRecord
from linsep.solvers.dual_infeasibility import Imbalance

CLOSING_DECREMENT = (
    2e-3  # half the squared decrement, as a share of P, below which a Newton step may close the gap
)
FAR_FROM_CLOSED = 100.0  # times tol: a gap that rounding alone does not explain
SAFETY = 0.9  # solvers stop a little below tol: the certificate adds its rounding allowance


P = TypeVar("P", bound="Problem | CoupledProblem")
D = TypeVar("D", bound="Linearised | Explicit")
Gap = Callable[[Any, "FloatArray", "FloatArray"], tuple[float, float]]


class LimitReached(Exception):
    """A limit of the user was reached (control flow: users never see it)."""

    def __init__(self, status: Status) -> None:
        super().__init__(status.value)
        self.status = status


class HandOver(LimitReached):
    """The method leaves the problem to another one, where it stands."""

    def __init__(self) -> None:
        super().__init__(Status.GIVEN_UP)


def primal_dual(
    problem: Problem | CoupledProblem, at: FloatArray, sums: FloatArray
) -> tuple[float, float]:
    """Primal and dual value at a point, from the sums of its closing pass."""
    return problem.values(at, sums)


class Run(Generic[P]):
    """One run of a solver: its clock, its trace and the best certified point so far.

    Points are theta (d+1,) or, for losses that couple the classes, W (d+1, k); ``gap`` gives the primal
    and the dual value at a point from the sums of its closing pass.
    """

    def __init__(self, problem: P, stop: Stop, gap: Gap = primal_dual) -> None:
        self.problem, self.stop, self._gap = problem, stop, gap
        self.began = time.perf_counter()
        self.trace: list[TraceRecord] = []
        self.best: tuple[float, FloatArray, Linearised | Explicit, FloatArray] | None = None
        self.lower = 0.0
        self.last_sums = np.zeros(0)  # of the last closing pass
        self.best_dual: Linearised | Explicit | None = None  # the one that gave it
        self._out_of_time = False  # and the method knows
        self._put_aside: WeakKeyDictionary[Linearised, Linearised] = WeakKeyDictionary()
        self._in_files: WeakSet[Linearised] = WeakSet()

    @property
    def seconds(self) -> float:
        """Time since the run began."""
        return time.perf_counter() - self.began

    def rest(self, tol: float, max_passes: float | None = None) -> Stop:
        """The time that is left, for a solve on the way; a sub-problem counts its own passes."""
        return Stop(tol, self.stop.after(self.seconds).time_limit, max_passes)

    @contextmanager
    def in_time(self) -> Iterator[None]:
        """Raise LimitReached inside, even amid a pass or a native call, as soon as the user's time is used up.

        It is raised once: whoever catches it may finish what it needs for an answer.
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
        """Raise LimitReached when the user's time or passes are used up."""
        self._out_of_time = False
        self._check_time()
        if self.stop.max_passes is not None and self.problem.passes >= self.stop.max_passes:
            raise LimitReached(Status.PASS_LIMIT)

    def record(self, primal: float) -> None:
        """One line of the trace, in reported units."""
        scale = self.problem.penalty.scale
        line = TraceRecord(self.problem.passes, self.seconds, scale * primal, scale * self.lower)
        self.trace.append(line)
        note(line.passes, line.primal, line.dual, self.problem)

    def close(
        self, at: FloatArray, dual: Linearised | Explicit, sums: FloatArray | None = None
    ) -> bool:
        """One closing pass, unless its sums are known: keeps the best point, says whether tol is met."""
        if sums is None:
            sums = self.problem.closing(at, dual)
        self.last_sums = sums
        primal, lower = self._gap(self.problem, at, sums)
        if lower > self.lower:
            self.lower, self.best_dual = float(lower), self.aside(dual)
        gap = primal - lower
        finite = bool(np.isfinite(gap))
        if finite and (self.best is None or gap < self.best[0]):
            self.best = (gap, self.stored(at.copy()), self.aside(dual), self.stored(sums))
            self.last_sums = self.best[3]
        self.record(primal)
        return finite and gap <= SAFETY * self.stop.tol * max(abs(primal), abs(lower))

    def aside(self, dual: D) -> D:
        """The dual point, kept for later: in a file if the rows are on disk, where memory is short."""
        if isinstance(dual, Explicit) or self.problem.data.location is not Location.DISK:
            return dual
        if dual in self._in_files:
            return dual
        found = self._put_aside.get(dual)
        if found is None:
            found = Linearised(self.stored(dual.base), self.stored(dual.step))
            self._put_aside[dual] = found
            self._in_files.add(found)
        return cast("D", found)

    def stored(self, vector: FloatArray) -> FloatArray:
        """A vector that is not needed in the next pass: in a file if the rows are on disk."""
        on_disk = self.problem.data.location is Location.DISK
        return mapped_vectors.moved(vector) if on_disk else vector

    def settle(self, at: FloatArray, dual: Linearised | Explicit) -> bool:
        """The last word of a run that ended short of tol: its last point, with the best dual point too."""
        done = self.close(at, dual)
        if not done and self.best_dual is not None and self.best_dual is not self.aside(dual):
            done = self.close(at, self.best_dual)
        return done

    def short_of(self, tol: float) -> Status:
        """Status of a run with an absolute penalty that ended above tol: working precision if close, else given up."""
        relative = (
            self.best[0] * self.problem.penalty.scale / abs(self.trace[-1].primal or 1.0)
            if self.best
            else 1.0
        )
        return Status.GIVEN_UP if relative > FAR_FROM_CLOSED * tol else Status.WORKING_PRECISION

    def solution(self, status: Status, at: FloatArray, dual: Linearised | Explicit) -> Solution:
        """Solution of the run: the best closed point, or (at, dual) if none was closed."""
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
    """The Newton-dual point of one column."""
    return Linearised(base.reshape(-1, 1).copy(), step.reshape(-1, 1).copy())


def begin(problem: Problem, stop: Stop) -> Run[Problem]:
    """A run whose gap counts dual infeasibility where nothing is penalised."""
    gap: Gap = primal_dual if problem.lam > 0.0 else Imbalance(problem).gap
    return Run(problem, stop, gap)
