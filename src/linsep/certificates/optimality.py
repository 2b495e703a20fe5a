"""The certificate of optimality: its fields, its text, and the enclosure from a primal value and a bound."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Literal

from linsep.interrupts import if_in_time
from linsep.notebook import facts_table
from linsep.records import fast_constructor

Kind = Literal["dual", "local", "exact"]

#: If only features without a penalty are used, a fit is exact if its objective is at most tol times this fraction of
#: every constant model's.
EXACT_FIT = 1e-6
#: Factor that covers the roundings of the last few operations.
_ROUNDING_FACTOR = 1.0 + 2.0**-51
#: Smaller objectives are too close to underflow to have a relative error.
SMALLEST = 2.0**-1000
#: Larger than any underflow error in reported units.
_UNDERFLOW = 2.0**-1073


@fast_constructor
@dataclass(frozen=True)
class Optimality:
    """Certificate of optimality: two numbers that enclose the minimum of the objective.

    Attributes
    ----------
    primal : float
        Objective at the coefficients.
    dual : float
        Best proven lower bound on the objective of any coefficients.
    gap : float
        Guaranteed bound on ``primal`` minus the minimum, including the rounding bound.
    relative_gap : float
        ``gap / max(|primal|, |dual|)``. 0 if the gap is 0, and 0 for an exact fit by features without a penalty, that
        is an objective below ``tol`` times a millionth of every constant model's, for which no relative gap is
        defined.
    coef_error : float
        Guaranteed bound on |w - w*|, inf where there is none.
    tol : float
        Requested relative gap.
    certified : bool
        Whether ``relative_gap <= tol``; for several parts, whether this holds for each of them.
    rounding : float
        Part of ``gap`` that bounds the rounding errors of computing it; 0 if exact.
    kind : {"dual", "local", "exact"}
        Method of proof: duality in float64, curvature around the solution (needs no penalty), or exact duality.
    parts : tuple of Optimality
        One certificate for each one-vs-rest subproblem, otherwise empty.
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
        """Describe the certificate in one line; if it is not certified, optionally end with ``advice`` for the fit."""
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
            return (
                "the objective is not finite: choose a finite or smaller C, or scale the features"
            )
        failing = sum(not part.certified for part in self.parts)
        where = f"{failing} of {len(self.parts)} parts fall short: " if failing else ""
        scale = max(abs(self.primal), abs(self.dual))
        if scale == 0.0:
            return f"{where}the objective is 0, so no relative gap can be stated"
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
    """Gap divided by the objective: 0 if the gap is 0, inf if the objective is 0."""
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
    """Build a certificate from a primal value, a lower bound and a bound on the rounding errors of both.

    The inputs are in internal units. Every loss has minimum 0, so 0 is a lower bound too, free of rounding errors.
    ``distance`` is the factor c in |w - w*| <= c sqrt(P - P*); ``drop`` bounds P - P* where that is known without the
    rounding of P itself. ``exact_fit`` says that the objective is zero to working precision, so that no relative gap is
    defined.
    """
    primal, bound, rounding = float(primal), float(bound), float(rounding)
    objective = scale * primal
    if not math.isfinite(objective):
        none = math.inf, math.inf, math.inf, tol, False, math.inf, kind
        return Optimality(objective, 0.0, *none)
    if not bound > 0.0:  # also nan
        bound = 0.0
    if not math.isfinite(scale * (abs(primal) + rounding)):  # also nan
        rounding = math.inf
    if bound > primal + rounding:  # impossible: the sums are inconsistent, and prove nothing
        bound = 0.0
    # The bound 0 has no rounding error of its own; the rest concerns the primal value alone.
    gap, dual = max(primal - bound, 0.0) + rounding, max(bound - rounding, 0.0)
    coef_error = math.inf
    if math.isfinite(distance):
        coef_error = (
            distance * math.sqrt(gap if drop is None else min(drop, gap)) * _ROUNDING_FACTOR
        )
    dual = max(scale * dual / _ROUNDING_FACTOR - _UNDERFLOW, 0.0)
    reported_gap = max(scale * gap * _ROUNDING_FACTOR + _UNDERFLOW, objective - dual)
    share = 0.0 if exact_fit else relative(reported_gap, objective, dual)
    if primal > 0.0 and objective < SMALLEST:  # its digits are lost in reported units
        share, dual, reported_gap = math.inf, 0.0, math.inf
    return Optimality(
        primal=objective,
        dual=dual,
        gap=reported_gap,
        relative_gap=share,
        coef_error=coef_error,
        tol=tol,
        certified=share <= tol,
        rounding=scale * rounding * _ROUNDING_FACTOR + _UNDERFLOW,
        kind=kind,
    )


def exact_zero(tol: float) -> Optimality:
    """Certificate of an objective that is exactly 0 at w = 0, and hence minimal."""
    return Optimality(0.0, 0.0, 0.0, 0.0, math.inf, tol, True, 0.0, "dual")


def nothing_proven(tol: float) -> Optimality:
    """Certificate of coefficients about which nothing is known."""
    return Optimality(math.nan, 0.0, math.inf, math.inf, math.inf, tol, False, math.inf)


def preference(bound: Optimality) -> tuple[bool, float]:
    """Sort key for proofs of one fit: certified first, then the smaller gap."""
    return not bound.certified, bound.gap


def stronger(found: Optimality, attempt: Callable[[], Optimality]) -> Optimality:
    """Return the better of a proof and another attempt, which is given up when time runs out."""
    return min(found, if_in_time(attempt, lambda: found), key=preference)


def combine(parts: Sequence[Optimality]) -> Optimality:
    """Combine the certificates of several subproblems: bounds are added, and all parts must be certified."""
    if len(parts) == 1:
        return parts[0]
    primal = math.fsum(part.primal for part in parts)
    dual = math.fsum(part.dual for part in parts)
    gap = math.fsum(part.gap for part in parts)
    kinds = {part.kind for part in parts}
    share = relative(gap, primal, dual)
    if any(part.relative_gap == 0.0 < part.gap for part in parts):  # an exact fit
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
