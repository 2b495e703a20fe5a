"""A scaled loss is solved as the loss itself: c l with C is l with c C.

In the units that users read, with R the norms of the penalty and L = sum s l, the two objectives are

    P(w) = R(w) + C (c L(w)),      P'(w) = R(w) + C' L(w),      C' = c C rounded to float64,
    P(w) = c L(w),                 P'(w) = L(w)                 if C = inf.

Solvers, grids and compiled passes see P' alone. Its certificate carries over to P, rounding included. For a finite C,
C' = c C (1 + delta) with |delta| <= eps = 2^-53, and L >= 0, so that |P' - P| <= eps P at every w. Hence

    min P >= (1 - eps) min P',      P(w) - min P <= P'(w) - min P' + 3 eps P'(w),

and nothing is lost where c C is a float64 number. The error of w follows from the gap and the strong convexity of R; a
bound that does not come from it, as that of a local certificate, grows by the distance between the two minimisers,
which is at most sqrt(6 eps P'/modulus). Where C = inf means the hard margin, no loss is left to be scaled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.optimality import Optimality, relative
from linsep.certificates.recheck import Part
from linsep.errors import BadInput
from linsep.losses import CoupledLoss, Loss, Scaled
from linsep.penalties import ElasticNet
from linsep.problem import hard_margin
from linsep.problem.closing_rows import ROUNDOFF
from linsep.solution import Explicit, Linearised, TraceRecord

#: More than a few roundings take.
_UP = 1.0 + 8.0 * ROUNDOFF
#: More than the certificate loses of its relative gap on the way to the scaled loss.
_LOST = 32.0 * ROUNDOFF
#: Smallest and largest c C, and the smallest objective at C = inf, of full precision.
_LEAST, _MOST = 2.0**-1000, 2.0**1000


@dataclass(frozen=True)
class LossFactor:
    """The plain loss and the penalty with c C in place of C, and the way back to the scaled loss."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    factor: float = 1.0
    scaled: bool = False  #: whether the loss that was asked for has a factor
    exact: bool = True  #: whether c C is what was asked for, without rounding
    objective: float = 1.0  #: factor from the objective of the plain problem to that of the user

    @property
    def plain(self) -> bool:
        """Whether the loss is not scaled."""
        return not self.scaled

    def tol(self, asked: float) -> float:
        """The relative gap to ask of the plain problem: the way back takes a few roundings of it."""
        return asked if self.plain else max(asked - _LOST, 0.5 * asked)

    def part(self, given: Part) -> Part:
        """Subproblem with the plain loss in place of the scaled one."""
        if self.plain:
            return given
        return given._replace(
            loss=self.loss,
            penalty=self.penalty,
            dual=self._plain_dual(given.dual),
            tol=self.tol(given.tol),
        )

    @property
    def _scales_dual(self) -> bool:
        return not hard_margin(self.loss, self.penalty)

    def _plain_dual(self, dual: Linearised | Explicit) -> Linearised | Explicit:
        if isinstance(dual, Linearised) or not self._scales_dual:
            return dual
        return Explicit(
            self._divide_dual(dual.u), None if dual.rest is None else dual.rest / self.factor
        )

    def _divide_dual(self, u: FloatArray) -> FloatArray:
        assert not isinstance(self.loss, CoupledLoss)
        return np.clip(u / self.factor, *self.loss.domain)

    def user_dual(self, dual: Linearised | Explicit) -> Linearised | Explicit:
        """A dual point of the plain problem as one of the user's: slopes are c times as steep."""
        if isinstance(dual, Linearised) or not self._scales_dual:
            return dual
        u = self.factor * dual.u
        if dual.rest is None:
            return Explicit(u)
        lost = dual.u - self._divide_dual(u)  # exact: neighbouring numbers
        return Explicit(u, self.factor * (lost + dual.rest))

    def user_trace(self, lines: Sequence[TraceRecord]) -> tuple[TraceRecord, ...]:
        """The lines of a trace in the units of the user."""
        c = self.objective
        return tuple(replace(line, primal=c * line.primal, dual=c * line.dual) for line in lines)

    def certificate(self, found: Optimality, tol: float) -> Optimality:
        """The certificate of the user's problem, from that of the plain one, for the relative gap ``tol``."""
        if self.plain:
            return found
        if not math.isfinite(found.gap):
            return replace(found, tol=tol, certified=False)
        if self.objective != 1.0:
            found = self._multiply(found)
        elif not self.exact:
            found = self._widen(found)
        return replace(found, tol=tol, certified=found.relative_gap <= tol)

    def _multiply(self, found: Optimality) -> Optimality:
        """The certificate of c L from that of L."""
        c = self.objective
        primal, dual = c * found.primal, c * found.dual / _UP
        stated = found.primal == 0.0 or _LEAST <= primal <= _MOST
        gap = max(c * found.gap * _UP, primal - dual) if stated else math.inf
        none = found.relative_gap == 0.0 or not stated  # an exact fit, or nothing to be relative to
        share = found.relative_gap if none and stated else relative(gap, primal, dual)
        return replace(
            found,
            primal=primal,
            dual=dual if stated else 0.0,
            gap=gap,
            relative_gap=share if stated else math.inf,
            rounding=c * found.rounding * _UP,
        )

    def _widen(self, found: Optimality) -> Optimality:
        """The certificate for c C from that for c C rounded."""
        lost = 4.0 * ROUNDOFF * (abs(found.primal) + found.rounding)
        gap, dual = (found.gap + lost) * _UP, found.dual * (1.0 - 4.0 * ROUNDOFF)
        modulus = self.penalty.modulus * self.penalty.scale
        error = found.coef_error
        if math.isfinite(error) and modulus > 0.0:
            apart = 2.0 * lost / modulus
            local = found.kind == "local"
            error = error + math.sqrt(apart) if local else math.sqrt(error**2 + apart)
        return replace(
            found,
            dual=dual,
            gap=gap,
            relative_gap=relative(gap, found.primal, dual),
            coef_error=error * _UP if modulus > 0.0 else math.inf,
            rounding=(found.rounding + lost) * _UP,
            kind="dual" if found.kind == "exact" else found.kind,  # exact for c C rounded alone
        )


def loss_factor(loss: Loss | CoupledLoss, penalty: ElasticNet) -> LossFactor:
    """The problem that is solved for a loss and a penalty: that of the plain loss, with C times its factor."""
    if not isinstance(loss, Scaled):
        return LossFactor(loss, penalty)
    c = loss.factor
    if math.isinf(penalty.C):
        objective = 1.0 if hard_margin(loss, penalty) else c
        return LossFactor(loss.plain, penalty, c, True, objective=objective)
    C = c * penalty.C
    if not _LEAST <= C <= _MOST:
        raise BadInput(
            f"C={penalty.C!r} times the factor {c!r} of the loss must lie between {_LEAST:g} and {_MOST:g}, got {C!r}."
        )
    exact = Fraction(C) == Fraction(c) * Fraction(penalty.C)
    return LossFactor(loss.plain, replace(penalty, C=C), c, True, exact)
