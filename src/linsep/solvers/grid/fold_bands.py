"""Bands of the folds, and their union over all folds but one, on which a hinge model is solved (``hinge.py``)."""

from __future__ import annotations

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.data.memory import readable
from linsep.problem import Problem
from linsep.solution import Explicit, Stop
from linsep.solvers.grid.problem import GridProblem
from linsep.solvers.interior.active_band import SORTED, Band, Wrong
from linsep.solvers.interior.subsampling import Pilot
from linsep.solvers.run import Run

ROWS = 4096  # rows of a matrix product


class Part:
    """The rows of one fold: their band, and the sums over its fixed rows."""

    def __init__(self, problem: GridProblem, rows: IntArray) -> None:
        recipe = problem.recipe
        assert problem.sigma is not None
        self.rows, self.sign = rows, problem.sigma[rows]
        self.X = readable(np.ascontiguousarray(problem.rows[rows]))
        data = Memory(self.X, self.sign, n_threads=recipe.n_threads)
        self.problem = Problem(problem.loss, recipe.penalty, data, recipe.fit_intercept)

    @property
    def kernel_rows(self) -> _kernels.Rows:
        """Return the rows in the form that the kernels read."""
        whole = self.problem.data.whole
        assert whole is not None
        return whole.rows

    def sort(self, theta: FloatArray, tau: float, first: Pilot) -> None:
        """Find the band |v| <= tau q about the kink at theta. One pass over the fold."""
        self.band = Band(Run(self.problem, Stop()), first.mu, first.scale)
        self.band.sort(theta, tau)
        self.u = self.problem.data.row_state(SORTED).copy()
        self.band.data()  # copy the rows of the band

    def admit(self, wrong: IntArray) -> None:
        """Add these rows to the band."""
        if len(wrong):
            self.band.admit(Wrong(wrong, self.u[wrong]))
            self.u[wrong] = 2.0


class BandUnion:
    """Union of the bands of all parts but one, with the sums over the fixed rows."""

    def __init__(self, parts: list[Part], n_threads: int | None) -> None:
        bands = [part.band.data() for part in parts]
        self.X = np.concatenate([band.X for band in bands])
        self.sign = np.concatenate([band.sign for band in bands])
        self.data = Memory(self.X, self.sign, n_threads=n_threads)
        v = np.concatenate([part.band.v for part in parts])
        self.reach = 2.0 * float(np.median(np.abs(v))) if len(v) else 1.0
        self.linear = np.sum([part.band.linear for part in parts], axis=0)
        self.constant = float(sum(part.band.constant for part in parts))
        self.parts = parts

    def unfold(self, u: FloatArray) -> list[FloatArray]:
        """Return the dual variables of all rows of each part from those of the bands; fixed rows keep theirs."""
        every, at = [], 0
        for part in self.parts:
            own, inside = part.u.copy(), part.band.rows
            own[inside] = u[at : at + len(inside)]
            every.append(own)
            at += len(inside)
        return every

    def closing(self, theta: FloatArray, u: list[FloatArray]) -> tuple[FloatArray, float]:
        """Return the sums of the closing pass over all rows of the parts, and their longest chain of additions."""
        passes = [
            part.problem.closing(theta, Explicit(own))
            for part, own in zip(self.parts, u, strict=True)
        ]
        size = len(passes[0])
        longest = max(part.problem.data.longest_sum(size) for part in self.parts)
        return np.sum(passes, axis=0), longest + len(passes)
