"""Lower bounds from a relaxed problem, for regressions whose penalty or curved part of the loss is negligible.

If a term of the objective is smaller than the rounding errors of the others, no solver and no dual point can resolve
it. The problem without that term can be solved, and its certificate carries over. In internal units, with
L(w) = sum s l and S = sum s,

    without the penalty:        min L  <=  P*,                    P(w) = L(w) + penalty(w),
    tails of slope h as h |r|:  min A - S q h^2  <=  P*,          P(w) <= A(w),

where A has h |r| instead of a loss with linear tails such as Huber's, which lies between h |r| - q h^2 and h |r|. q is
its ``conjugate_quadratic``.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.curvature.rows import UNDERFLOW
from linsep.certificates.optimality import Optimality, enclose, exact_zero
from linsep.losses import Absolute, Loss
from linsep.penalties import ElasticNet
from linsep.problem.closing_rows import ROUNDOFF
from linsep.solution import Explicit, Linearised

Dual = Linearised | Explicit

#: At least the number of products below, each of which may underflow.
_PRODUCTS = 16


@dataclass(frozen=True)
class Relaxation:
    """A relaxed problem: its loss and penalty, and those of the original problem."""

    loss: Loss
    penalty: ElasticNet
    original: Loss
    original_penalty: ElasticNet

    @property
    def _width(self) -> float:
        """Factor from the values of the relaxed loss to those of the original."""
        return self.original.domain[1] if self._kinked else 1.0

    @property
    def _kinked(self) -> bool:
        return self.loss.piecewise_linear and not self.original.piecewise_linear

    def dual(self, given: Dual) -> Dual | None:
        """Convert a dual point of the original problem to the relaxed one; None if that is impossible."""
        if not self._kinked:
            return given
        if not isinstance(given, Explicit):
            return None
        return Explicit(np.clip(given.u / self._width, -1.0, 1.0))

    def original_dual(self, given: Dual) -> Dual | None:
        """Convert a dual point of the relaxed problem to the original one; None if that is impossible."""
        if not self._kinked:
            return given
        if not isinstance(given, Explicit):
            return None
        return Explicit(np.clip(self._width * given.u, -self._width, self._width))

    def certificate(self, found: Optimality, W: FloatArray, mass: float) -> Optimality:
        """Certificate of W in the original problem from that of the relaxed one; ``mass`` is sum s.

        Sums of d terms and quotients of a few factors have a relative error of (d + 16) roundoffs, or underflow;
        ``found.dual`` already excludes its own rounding error.
        """
        w, inner = W[:-1, 0], self.penalty.scale
        relative_error = (len(w) + 16) * ROUNDOFF
        slack = 0.0
        if self._kinked:
            q = self.original.conjugate_quadratic
            assert q is not None
            slack = q * mass * self._width * self._width * (1.0 + relative_error)
        penalty = 0.0
        if math.isinf(self.penalty.C):
            penalty = self.original_penalty.value(w)
        primal = self._width * (found.primal / inner) + penalty
        if found.primal == 0.0 == found.gap and not w.any():
            return exact_zero(found.tol)
        return enclose(
            primal,
            self._width * (found.dual / inner) * (1.0 - relative_error) - slack,
            self._width * (found.rounding / inner)
            + slack
            + relative_error * primal
            + _PRODUCTS * UNDERFLOW,
            scale=self.original_penalty.scale,
            tol=found.tol,
            distance=math.inf,
            kind="dual" if found.kind == "exact" else found.kind,  # terms added here are rounded
        )


def relaxations(loss: Loss, penalty: ElasticNet) -> list[Relaxation]:
    """Relaxed problems that may replace a regression with this loss and penalty."""
    if loss.degree is None:
        return []
    found = []
    free = ElasticNet(math.inf)
    if math.isfinite(penalty.C):
        found.append(Relaxation(loss, free, loss, penalty))
    ridge = penalty.uniform and penalty.l1_ratio == 0.0
    straight = loss.straight_tails and bool(loss.conjugate_quadratic)
    if straight and ridge and penalty.C * loss.domain[1] > 0.0:
        steep = ElasticNet(penalty.C * loss.domain[1])
        found.append(Relaxation(Absolute(centre=0.0), steep, loss, penalty))
    return found
