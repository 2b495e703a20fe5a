"""How far a dual point is from feasible when nothing is penalised, and the gap that follows.

Without a penalty the dual of min sum s l(m) asks for r = sum s sigma u x~ = 0 exactly, x~ = (x, 1). An iterate is near
it, and a gap means nothing before r does. The measure is the largest |r_j - mu_j r_b| as a share of
sqrt(sum s) sqrt(sum s (x_j - mu_j)^2), which bounds it for |u| <= 1: the scales of the columns do not matter. Only
the solvers use it; what is proven is decided by the certificates.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.problem import Problem
from linsep.problem.duality import ClosingSums
from linsep.problem.pointwise import CURVATURE

_CONSTANT = 1e-24  # share of a column's squares below which its variation is rounding noise


class Imbalance:
    """The measure, for the rows of one problem (one pass)."""

    def __init__(self, problem: Problem) -> None:
        def weigh(b: Block, out: FloatArray) -> None:
            b.row_state(CURVATURE)[b.lo : b.hi] = b.weights()

        problem.data.sum(weigh, 1)
        self.mu = problem.centre()
        squares, sums, self.mass = problem.moments()
        about = squares - 2.0 * self.mu * sums + self.mu**2 * self.mass
        noise = _CONSTANT * squares
        varies = about > noise if problem.fit_intercept else squares > 0.0
        self.spread = np.where(
            varies, np.sqrt(self.mass * np.maximum(about, 1e-12 * squares)), np.inf
        )
        self.intercept = problem.fit_intercept

    def share(self, r: FloatArray) -> float:
        """The measure of r (d + 1)."""
        rb = float(r[-1]) if self.intercept else 0.0
        worst = float(np.max(np.abs(r[:-1] - self.mu * rb) / self.spread, initial=0.0))
        return max(worst, abs(rb) / self.mass if self.mass > 0.0 else 0.0)

    def gap(self, problem: Problem, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
        """Objective and lower bound by the sums of a closing pass; feasibility first."""
        read = ClosingSums.from_flat(sums, problem.data.d)
        r = np.append(read.v_plus + read.v_minus, read.mass_plus - read.mass_minus)
        found = -read.conj_plus - read.conj_minus
        # Far from feasible, what was found may lie above the objective: as wrong as if it lay below.
        return read.loss, read.loss - abs(read.loss - found) - read.absolute * self.share(r)
