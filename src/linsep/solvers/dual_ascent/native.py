"""Dual coordinate ascent with an exact, unpenalised intercept: the native driver, and what Python is asked in between.

kernels/dual/ascent.hpp states the method: epochs, the intercept's multiplier, rows that leave and come back, rounds on
the free rows. It runs until a closing pass is worth its price, progress is slow, or the limits must be looked at.
"""

from __future__ import annotations

import math
from enum import IntEnum

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.errors import NonFinite
from linsep.problem import Problem
from linsep.solution import Explicit
from linsep.solvers.run import Run

#: Slope of a row that leaves, as a multiple of the largest one of a row that moved.
LEAVE = 0.35
#: Stored numbers from which a second thread is worth its price; of free rows twice as many are copied.
LARGE = 500_000
_ENTRIES_PER_CALL = 4_000_000  # about 10 ms: Ctrl-C and limits are answered between calls


class Next(IntEnum):
    """Requests of ``advance`` to Python, in the order of kernels/dual/ascent.hpp."""

    PAUSE = 0  # a look at the limits
    CLOSE = 1  # a closing pass
    SLOW = 2  # another method, if there is one; asked once
    END = 3  # nothing: there is no hope
    BROKEN = 4  # nothing: a number has overflowed


class Ascent:
    """An ascent from theta: from the dual point at w = 0 if its weights are 0, else from one near it."""

    def __init__(self, problem: Problem, theta: FloatArray, seed: int, tol: float = 0.0) -> None:
        block = problem.data.whole
        assert block is not None
        self.problem, self.block = problem, block
        self.native = native = _kernels.Ascent(
            block.rows,
            block.targets,
            problem.native_loss,
            theta,
            problem.lam,
            tol,
            problem.fit_intercept,
            problem.data.location is Location.MEMORY and problem.data.n_threads > 1,
            int(seed) % 2**64,
            LARGE,
            LEAVE,
        )
        native.passes += problem.passes
        problem.passes = native.passes
        if native.overflown:
            problem.start(theta)
            raise NonFinite("Some row of X has a norm too large to square. Scale the features.")
        if not math.isfinite(native.primal):
            problem.start(theta)  # says whose fault it is

    def advance(self, run: Run[Problem]) -> Next:
        """Continue until the next request."""
        native, problem = self.native, self.problem
        native.passes = problem.passes
        limit = math.inf if run.stop.max_passes is None else run.stop.max_passes
        asked = Next(native.advance(_ENTRIES_PER_CALL, limit))
        problem.passes = native.passes
        return asked

    def report_gap(self, gap: float) -> None:
        """Report the gap of a closing pass that is wider than required."""
        self.native.passes = self.problem.passes
        self.native.report_gap(gap)
        self.problem.passes = self.native.passes

    def point(self) -> tuple[FloatArray, Explicit]:
        """Theta with the best intercept known, and u moved to e = 0."""
        theta, u = np.empty(self.problem.order), np.empty(self.problem.data.n)
        self.native.point(theta, u)
        return theta, Explicit(u)
