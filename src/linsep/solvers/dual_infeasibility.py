"""Dual infeasibility of problems without a penalty, and a gap that includes it.

Without a penalty a dual point of min sum s l(m) is feasible only if r = sum s sigma u x~ = 0 exactly, x~ = (x, 1).
Iterates satisfy this approximately, and their gap is meaningful only if r is small. The relative infeasibility is the
largest |r_j - mu_j r_b| divided by sqrt(sum s) sqrt(sum s (x_j - mu_j)^2), its upper bound for |u| <= 1, which makes it
independent of the scales of the columns. It is a stopping criterion of the solvers; certificates do not use it.
"""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.data import Block
from linsep.problem import Problem
from linsep.problem.duality import ClosingSums
from linsep.problem.gram import CONSTANT
from linsep.problem.pointwise import CURVATURE


class DualInfeasibility:
    """Relative dual infeasibility for the rows of one problem; the constructor makes one pass."""

    def __init__(self, problem: Problem) -> None:
        def weigh(b: Block, out: FloatArray) -> None:
            b.row_state(CURVATURE)[b.lo : b.hi] = b.weights()

        problem.data.sum(weigh, 1)
        self.mu = problem.centre()
        squares, sums, self.mass = problem.moments()
        about = squares - 2.0 * self.mu * sums + self.mu**2 * self.mass
        noise = CONSTANT * squares
        varies = about > noise if problem.fit_intercept else squares > 0.0
        self.spread = np.where(
            varies, np.sqrt(self.mass * np.maximum(about, 1e-12 * squares)), np.inf
        )
        self.intercept = problem.fit_intercept

    def relative(self, r: FloatArray) -> float:
        """Return the relative infeasibility of r (d + 1)."""
        rb = float(r[-1]) if self.intercept else 0.0
        worst = float(np.max(np.abs(r[:-1] - self.mu * rb) / self.spread, initial=0.0))
        return max(worst, abs(rb) / self.mass if self.mass > 0.0 else 0.0)

    def gap(self, problem: Problem, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
        """Return objective and lower bound from closing sums, the bound reduced by the infeasibility."""
        read = ClosingSums.from_flat(sums, problem.data.d)
        r = np.append(read.v_plus + read.v_minus, read.mass_plus - read.mass_minus)
        found = -read.conj_plus - read.conj_minus
        # The dual value of an infeasible point may exceed the objective: count the difference as gap.
        return read.loss, read.loss - abs(read.loss - found) - read.absolute * self.relative(r)
