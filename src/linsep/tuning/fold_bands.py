"""The bands of the folds: what a model of the hinge that leaves one of them out sees (``hinge_grid.py``)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data import Memory
from linsep.data.memory import readable
from linsep.losses import CoupledLoss
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers.interior.active_band import SORTED, Band, Wrong
from linsep.solvers.interior.subsampling import Pilot
from linsep.solvers.run import Run
from linsep.tuning.newton_grid import Shared

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ROWS = 4096  # multiplied together


class Part:
    """The rows of one fold: their band, and what the others add up to."""

    def __init__(self, given: Shared, rows: IntArray) -> None:
        loss, recipe = given.recipe.loss, given.recipe
        assert given.sigma is not None and not isinstance(loss, CoupledLoss)
        self.rows, self.sign = rows, given.sigma[rows]
        self.X = readable(np.ascontiguousarray(given.rows[rows]))
        data = Memory(self.X, self.sign, n_threads=given.recipe.n_threads)
        self.problem = Problem(loss, recipe.penalty, data, recipe.fit_intercept)
        self.lengths = np.sqrt(np.einsum("ij,ij->i", self.X, self.X, dtype=np.float64))

    @property
    def kernel_rows(self) -> _kernels.Rows:
        """The rows as the kernels read them."""
        whole = self.problem.data.whole
        assert whole is not None
        return whole.rows

    def sort(self, theta: FloatArray, tau: float, first: Pilot) -> None:
        """Lay the band |v| <= tau q about the kink of theta."""
        self.band = Band(Run(self.problem, Stop()), first.mu, first.scale)
        self.band.sort(theta, tau)
        self.u = self.problem.data.row_state(SORTED).copy()
        self.gather()

    def gather(self) -> None:
        """The rows of the band side by side; of the others, by sign: how many are at 1, their sums, their lengths."""
        self.band.rows_of_it()
        u = np.where(self.u > 1.0, 0.0, self.u)
        sides = np.stack([u * (self.sign > 0.0), -u * (self.sign < 0.0)])
        totals = np.zeros((2, self.X.shape[1] + 1))
        for side, total in zip(sides, totals, strict=True):
            _kernels.combine(self.kernel_rows, 0, len(u), side, total)
        self.sums = totals[:, :-1]
        self.counts = np.abs(sides).sum(axis=1)
        self.long = float(u @ self.lengths)

    def admit(self, wrong: IntArray) -> None:
        """Let these rows join the band."""
        if len(wrong):
            self.band.admit(Wrong(wrong, self.u[wrong]))
            self.u[wrong] = 2.0
            self.gather()


class Together:
    """The bands of all parts but one, side by side, and what the rows outside them add up to."""

    def __init__(self, parts: list[Part], n_threads: int | None) -> None:
        bands = [part.band.rows_of_it() for part in parts]
        self.X = np.concatenate([band.X for band in bands])
        self.sign = np.concatenate([band.sign for band in bands])
        self.data = Memory(self.X, self.sign, n_threads=n_threads)
        self.lengths = np.concatenate([part.lengths[part.band.rows] for part in parts])
        v = np.concatenate([part.band.v for part in parts])
        self.reach = 2.0 * float(np.median(np.abs(v))) if len(v) else 1.0
        self.linear = np.sum([part.band.linear for part in parts], axis=0)
        self.constant = float(sum(part.band.constant for part in parts))
        self.sums = np.sum([part.sums for part in parts], axis=0)
        self.counts = np.sum([part.counts for part in parts], axis=0)
        self.long = float(sum(part.long for part in parts))
        self.n = sum(len(part.rows) for part in parts)
