"""Wrapper of native dual coordinate ascent with an exact, unpenalised intercept.

kernels/dual/ascent.hpp describes the method: epochs, the intercept's multiplier, shrinking of rows, rounds on the free
rows. A native call returns when a closing pass pays, progress is slow, or the limits have to be checked.
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

#: A row is shrunk if its slope exceeds this multiple of the largest slope of a row that changed.
LEAVE = 0.35
#: Stored entries from which a second thread pays; up to twice as many entries of free rows are copied.
LARGE = 500_000
_ENTRIES_PER_CALL = 4_000_000  # about 10 ms: Ctrl-C and limits are checked between calls


class Next(IntEnum):
    """Requests of ``advance`` to Python, in the order of kernels/dual/ascent.hpp."""

    PAUSE = 0  # check the limits
    CLOSE = 1  # make a closing pass
    SLOW = 2  # continue with another method, if there is one; requested once
    END = 3  # stop: no further progress
    BROKEN = 4  # stop: overflow


class Ascent:
    """State of an ascent, started at the dual point of w = 0, or near theta if its weights are not 0."""

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
            problem.start(theta)  # raises an error that names the cause

    def advance(self, run: Run[Problem]) -> Next:
        """Run until the next request and return it."""
        native, problem = self.native, self.problem
        native.passes = problem.passes
        limit = math.inf if run.stop.max_passes is None else run.stop.max_passes
        asked = Next(native.advance(_ENTRIES_PER_CALL, limit))
        problem.passes = native.passes
        return asked

    def report_gap(self, gap: float) -> None:
        """Report the gap of a closing pass that is above tol."""
        self.native.passes = self.problem.passes
        self.native.report_gap(gap)
        self.problem.passes = self.native.passes

    def point(self) -> tuple[FloatArray, Explicit]:
        """Return theta with the best intercept so far, and u made feasible for the intercept's constraint."""
        theta, u = np.empty(self.problem.order), np.empty(self.problem.data.n)
        self.native.point(theta, u)
        return theta, Explicit(u)
