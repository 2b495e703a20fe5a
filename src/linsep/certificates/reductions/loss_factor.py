"""Reduce a scaled loss to the plain loss: c l with regularisation C is l with c C.

In reported units, with R the penalty norms and L = sum s l, the two objectives are

    P(w) = R(w) + C (c L(w)),      P'(w) = R(w) + C' L(w),      C' = c C rounded to float64,
    P(w) = c L(w),                 P'(w) = L(w)                 if C = inf.

Solvers, grids and compiled passes use P' only. Its certificate carries over to P, rounding included. For a finite C,
C' = c C (1 + delta) with |delta| <= eps = 2^-53, and L >= 0, so that |P' - P| <= eps P at every w. Hence

    min P >= (1 - eps) min P',      P(w) - min P <= P'(w) - min P' + 3 eps P'(w),

and nothing is lost if c C is a float64 number. The error of w follows from the gap and the strong convexity of R; a
bound obtained otherwise, such as that of a local certificate, grows by the distance between the two minimisers, which
is at most sqrt(6 eps P'/modulus). If C = inf means the hard margin, there is no loss to be scaled.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import replace
from fractions import Fraction
from typing import NamedTuple

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.optimality import Optimality, relative
from linsep.certificates.parts import Part
from linsep.errors import BadInput
from linsep.losses import CoupledLoss, Loss, Scaled
from linsep.penalties import ElasticNet
from linsep.problem import hard_margin
from linsep.problem.closing_rows import ROUNDOFF
from linsep.solution import Explicit, Linearised, TraceRecord

#: Covers a few roundings.
_ROUNDING_FACTOR = 1.0 + 8.0 * ROUNDOFF
#: Covers the increase of the relative gap when the certificate is converted to the scaled loss.
_LOST = 32.0 * ROUNDOFF
#: Range of c C, and of the objective at C = inf, that float64 holds to full precision.
_LEAST, _MOST = 2.0**-1000, 2.0**1000


class LossFactor(NamedTuple):
    """The plain loss and the penalty with c C instead of C, with conversions back to the scaled loss."""

    loss: Loss | CoupledLoss
    penalty: ElasticNet
    factor: float = 1.0
    scaled: bool = False  #: whether the requested loss has a factor
    exact: bool = True  #: whether c C is a float64 number, without rounding
    objective: float = 1.0  #: objective of the user divided by that of the plain problem

    @property
    def plain(self) -> bool:
        """Whether the loss is unscaled."""
        return not self.scaled

    def tol(self, asked: float) -> float:
        """Relative gap to request for the plain problem; the conversion back costs a few roundings."""
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
        """Convert a dual point of the plain problem to the user's: slopes are c times as steep."""
        if isinstance(dual, Linearised) or not self._scales_dual:
            return dual
        u = self.factor * dual.u
        lost = dual.u - self._divide_dual(u)  # exact, because the numbers are adjacent
        rest = lost if dual.rest is None else lost + dual.rest
        return Explicit(u, self.factor * rest if rest.any() else None)

    def user_trace(self, lines: Sequence[TraceRecord]) -> tuple[TraceRecord, ...]:
        """Convert the records of a trace to the user's units."""
        c = self.objective
        return tuple(replace(line, primal=c * line.primal, dual=c * line.dual) for line in lines)

    def certificate(self, found: Optimality, tol: float) -> Optimality:
        """Certificate of the user's problem from that of the plain problem, for the relative gap ``tol``."""
        if self.plain:
            return found
        if not math.isfinite(found.gap):
            return replace(found, tol=tol, certified=False)
        stated = math.isfinite(found.relative_gap)  # otherwise the objective is out of range
        if self.objective != 1.0:
            found = self._multiply(found)
        elif not self.exact:
            found = self._widen(found)
        share = found.relative_gap if stated else math.inf
        return replace(found, relative_gap=share, tol=tol, certified=share <= tol)

    def _multiply(self, found: Optimality) -> Optimality:
        """Certificate of c L from that of L."""
        c = self.objective
        primal, dual = c * found.primal, c * found.dual / _ROUNDING_FACTOR
        stated = found.primal == 0.0 or _LEAST <= primal <= _MOST
        gap = max(c * found.gap * _ROUNDING_FACTOR, primal - dual) if stated else math.inf
        none = found.relative_gap == 0.0 or not stated  # an exact fit, or no relative gap
        share = found.relative_gap if none and stated else relative(gap, primal, dual)
        return replace(
            found,
            primal=primal,
            dual=dual if stated else 0.0,
            gap=gap,
            relative_gap=share if stated else math.inf,
            rounding=c * found.rounding * _ROUNDING_FACTOR,
        )

    def _widen(self, found: Optimality) -> Optimality:
        """Certificate for c C from that for the rounded c C."""
        lost = 4.0 * ROUNDOFF * (abs(found.primal) + found.rounding)
        gap, dual = (found.gap + lost) * _ROUNDING_FACTOR, found.dual * (1.0 - 4.0 * ROUNDOFF)
        modulus = self.penalty.modulus * self.penalty.scale
        error = found.coef_error
        if math.isfinite(error) and modulus > 0.0:
            apart = 2.0 * lost / modulus
            local = found.kind == "local"
            error = error + math.sqrt(apart) if local else math.hypot(error, math.sqrt(apart))
        return replace(
            found,
            dual=dual,
            gap=gap,
            relative_gap=relative(gap, found.primal, dual),
            coef_error=error * _ROUNDING_FACTOR if modulus > 0.0 else math.inf,
            rounding=(found.rounding + lost) * _ROUNDING_FACTOR,
            kind="dual" if found.kind == "exact" else found.kind,  # exact only for the rounded c C
        )


def loss_factor(loss: Loss | CoupledLoss, penalty: ElasticNet) -> LossFactor:
    """Return the problem to solve for a loss and a penalty: the plain loss, with C times its factor."""
    if loss.plain is loss:
        return LossFactor(loss, penalty)
    assert isinstance(loss, Scaled)
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
