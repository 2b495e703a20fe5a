"""What a certificate of optimality says, and how it is read aloud."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from linsep.notebook import facts_table

Kind = Literal["dual", "local", "exact"]

#: Without a penalty, an objective of at most tol times this share of every constant model's is an exact fit.
EXACT_FIT = 1e-6
#: Factor that outweighs the roundings of the last few operations.
_UP = 1.0 + 2.0**-51
#: Objectives below are too close to underflow to be reported with a relative error.
SMALLEST = 2.0**-1000
#: More than underflow can take from a number in the units that users read.
_UNDERFLOW = 2.0**-1073


@dataclass(frozen=True)
class Optimality:
    """Certificate of optimality: two numbers that enclose the minimum of the objective.

    Attributes
    ----------
    primal : float
        Objective at the coefficients.
    dual : float
        The best proven lower bound on the objective of every choice of coefficients.
    gap : float
        Guaranteed bound on ``primal`` minus the minimum; the rounding allowance is included.
    relative_gap : float
        ``gap / max(|primal|, |dual|)``; 0 if the gap is 0, and 0 for an exact fit without a penalty: an objective
        below ``tol`` times a millionth of every constant model's, so that there is nothing to be relative to.
    coef_error : float
        Guaranteed bound on |w - w*|, inf where there is none.
    tol : float
        The relative gap that was asked for.
    certified : bool
        Whether ``relative_gap <= tol``, for every part if there are several.
    rounding : float
        The part of ``gap`` that allows for the rounding errors of computing it; 0 if exact.
    kind : {"dual", "local", "exact"}
        Duality in float64, curvature around the answer (no penalty needed), or exact duality.
    parts : tuple of Optimality
        One for each subproblem of one-vs-rest, else empty.
    """

    primal: float
    dual: float
    gap: float
    relative_gap: float
    coef_error: float
    tol: float
    certified: bool
    rounding: float = 0.0
    kind: Kind = "dual"
    parts: tuple[Optimality, ...] = ()

    def describe(self, advice: bool = True) -> str:
        """The certificate in one line; one that falls short ends with ``advice`` for the fit."""
        facts = (
            f"objective {self.primal:.9g}, lower bound {self.dual:.9g}, "
            f"relative gap {self.relative_gap:.1e} {'<=' if self.certified else '>'} tol {self.tol:g}"
        )
        if self.certified:
            known = math.isfinite(self.coef_error)
            return f"certified optimum: {facts}" + (
                f", |w - w*| <= {self.coef_error:.1e}" if known else ""
            )
        return f"not certified: {facts}" + (f"; {self._advice()}" if advice else "")

    def __str__(self) -> str:
        return self.describe()

    __repr__ = __str__

    def _repr_html_(self) -> str:
        sign = "<=" if self.certified else ">"
        facts = {
            "objective": f"{self.primal:.9g}",
            "proven lower bound": f"{self.dual:.9g}",
            "relative gap": f"{self.relative_gap:.1e} {sign} tol {self.tol:g}",
        }
        if math.isfinite(self.coef_error):
            facts["|w - w*|"] = f"at most {self.coef_error:.1e}"
        if self.parts:
            done = sum(part.certified for part in self.parts)
            facts["one-vs-rest problems"] = f"{done} of {len(self.parts)} certified"
        title = "Certified optimum" if self.certified else "Not certified"
        return facts_table(title, facts, "" if self.certified else self._advice())

    def _advice(self) -> str:
        if not math.isfinite(self.primal):
            return "the objective is not finite: scale the features or choose a smaller C"
        failing = sum(not part.certified for part in self.parts)
        where = f"{failing} of {len(self.parts)} parts fall short: " if failing else ""
        scale = max(abs(self.primal), abs(self.dual))
        if scale == 0.0:
            return f"{where}nothing is left of the objective to be relative to"
        if self.rounding > self.tol * scale:
            return (
                f"{where}rounding alone may account for {self.rounding / scale:.1e}: "
                "raise tol above that, or standardise the features"
            )
        if self.relative_gap > 0.5:
            return f"{where}next to nothing is proven yet: raise time_limit, max_passes or epochs"
        return (
            f"{where}raise time_limit, max_passes or epochs, or accept tol={self.relative_gap:.1e}"
        )


def relative(gap: float, primal: float, dual: float) -> float:
    """The gap as a share of the objective: 0 if the gap is 0, inf if there is nothing to share."""
    if gap == 0.0:
        return 0.0
    scale = max(abs(primal), abs(dual))
    share = gap / scale if scale > 0.0 else math.inf
    return math.inf if math.isnan(share) else share


def enclose(  # noqa: PLR0913
    primal: float,
    bound: float,
    rounding: float,
    *,
    scale: float,
    tol: float,
    distance: float,
    kind: Kind,
    drop: float | None = None,
    exact_fit: bool = False,
) -> Optimality:
    """Certificate from a primal value, a lower bound and the rounding allowance of the two.

    The inputs are in internal units. Every loss has minimum 0, so 0 is a lower bound too, and one that
    no rounding can touch. ``distance`` is the factor c of |w - w*| <= c sqrt(P - P*), where ``drop`` bounds
    P - P* if that is known without the rounding of P itself.
    ``exact_fit`` says that the objective is zero to working precision: nothing is left to be relative to.
    """
    primal, bound, rounding = float(primal), float(bound), float(rounding)
    largest = scale * (abs(primal) + rounding)
    if not (math.isfinite(primal) and math.isfinite(scale * primal)):
        none = math.inf, math.inf, math.inf, tol, False, math.inf, kind
        return Optimality(scale * primal, 0.0, *none)
    if not bound > 0.0:  # also nan
        bound = 0.0
    if not math.isfinite(largest):  # also nan
        rounding = math.inf
    if bound > primal + rounding:  # impossible: the sums do not belong together, and prove nothing
        bound = 0.0
    # The bound 0 needs no allowance of its own; what remains then concerns the primal value alone.
    gap, dual = max(primal - bound, 0.0) + rounding, max(bound - rounding, 0.0)
    coef_error = math.inf
    if math.isfinite(distance):
        coef_error = distance * math.sqrt(gap if drop is None else min(drop, gap)) * _UP
    dual = max(scale * dual / _UP - _UNDERFLOW, 0.0)
    reported_gap = max(scale * gap * _UP + _UNDERFLOW, scale * primal - dual)
    share = 0.0 if exact_fit else relative(reported_gap, scale * primal, dual)
    if (
        primal > 0.0 and scale * primal < SMALLEST
    ):  # its digits are lost in the units that users read
        share, dual, reported_gap = math.inf, 0.0, math.inf
    return Optimality(
        primal=scale * primal,
        dual=dual,
        gap=reported_gap,
        relative_gap=share,
        coef_error=coef_error,
        tol=tol,
        certified=share <= tol,
        rounding=scale * rounding * _UP,
        kind=kind,
    )


def exact_zero(tol: float) -> Optimality:
    """The certificate of an objective that is exactly zero at coefficients that are: nothing is smaller."""
    return Optimality(0.0, 0.0, 0.0, 0.0, math.inf, tol, True, 0.0, "dual")


def preference(bound: Optimality) -> tuple[bool, float]:
    """Sort key of proofs of one fit: certified first, then the smaller gap."""
    return not bound.certified, bound.gap


def combine(parts: Sequence[Optimality]) -> Optimality:
    """One certificate for several subproblems: the bounds add up, and every part must hold."""
    if len(parts) == 1:
        return parts[0]
    primal = math.fsum(part.primal for part in parts)
    dual = math.fsum(part.dual for part in parts)
    gap = math.fsum(part.gap for part in parts)
    kinds = {part.kind for part in parts}
    share = relative(gap, primal, dual)
    if any(part.relative_gap == 0.0 < part.gap for part in parts):  # nothing to be relative to
        share = max(part.relative_gap for part in parts)
    return Optimality(
        primal=primal,
        dual=dual,
        gap=gap,
        relative_gap=share,
        coef_error=math.hypot(*(part.coef_error for part in parts)),
        tol=max(part.tol for part in parts),
        certified=all(part.certified for part in parts),
        rounding=math.fsum(part.rounding for part in parts),
        kind=kinds.pop() if len(kinds) == 1 else "local",
        parts=tuple(parts),
    )
