"""Interface of the solvers: stopping criteria (``Stop``) and result (``Solution``).

A dual point is a proposal: the certificate is computed from it by separate code that assumes nothing about the
solver. There are two representations.

``Linearised(base, step)``
    the Newton-dual point ``u_i = -(l'(m0_i) + l''(m0_i) sigma_i x~_i . step)`` with margins ``m0``
    at ``base``: two small matrices describe all n dual variables.
``Explicit(u)``
    one number per row (per row and class for losses that couple classes), or an unevaluated sum of two.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from enum import Enum

from linsep.arrays import FloatArray
from linsep.records import fast_constructor


class Status(Enum):
    """Reason why the solver stopped; ``message`` explains it and says what to do next."""

    CERTIFIED = "certified"
    WORKING_PRECISION = "optimal to working precision"
    TIME_LIMIT = "time limit"
    PASS_LIMIT = "pass limit"
    GIVEN_UP = "given up"
    OUT_OF_RANGE = "objective out of range"

    @property
    def message(self) -> str:
        """One or two sentences for the user."""
        return _MESSAGES[self]


_MESSAGES = {
    Status.CERTIFIED: "The relative duality gap is at most tol.",
    Status.WORKING_PRECISION: (
        "Rounding in float64 prevents further progress, and the gap that can be proven is still "
        "above tol. Likely causes: (a) tol is smaller than rounding allows for this many rows, "
        "(b) features of very different scales. Raise tol or standardise the features."
    ),
    Status.TIME_LIMIT: (
        "The fit reached time_limit before its gap was at most tol; the certificate holds the gap proven so far. "
        "Raise time_limit or tol, or continue with warm_start=True."
    ),
    Status.PASS_LIMIT: (
        "The fit reached max_passes before its gap was at most tol; the certificate holds the gap proven so far. "
        "Raise max_passes or tol, or continue with warm_start=True."
    ),
    Status.GIVEN_UP: (
        "The solver stalled; the certificate holds the gap proven so far. With such a weak L1 penalty, hardly any row "
        "gives the objective curvature. Lower C, or add an L2 part to the penalty (l1_ratio below 1)."
    ),
    Status.OUT_OF_RANGE: (
        "The coefficients are optimal to tol, but their objective is outside the range of full float64 precision "
        "(2.3e-308 to 1.8e308), so no certificate can state it. Change the units of the targets: with y * 2.0**k the "
        "coefficients are 2.0**k times as large, and certified."
    ),
}


@dataclass(frozen=True)
class Stop:
    """Stopping criteria: relative duality gap ``tol``, and the user's limits on time [s] and passes.

    ``max_short_steps``: number of short Newton steps after which another method takes over, once the method has made
    ``short_step_passes`` passes (solvers/plan.py).
    """

    tol: float = 1e-6
    time_limit: float | None = None
    max_passes: float | None = None
    max_short_steps: int | None = None
    short_step_passes: float = 0.0

    @property
    def limited(self) -> bool:
        """Return whether there is a limit on time or passes."""
        return self.time_limit is not None or self.max_passes is not None

    def after(self, seconds: float, passes: float = 0.0) -> Stop:
        """Return the limits minus what is spent, but at least 1 ms and one pass."""
        limit, most = self.time_limit, self.max_passes
        left = None if limit is None else max(1e-3, limit - seconds)
        if most is not None and passes:
            most = max(1.0, most - passes)
        return replace(self, time_limit=left, max_passes=most)


@fast_constructor
@dataclass(frozen=True)
class TraceRecord:
    """One line of the trace: passes and seconds so far and the best bounds, in reported units."""

    passes: float
    seconds: float
    primal: float
    dual: float


@fast_constructor
@dataclass(frozen=True, eq=False)
class Linearised:
    """Newton-dual point: loss slopes at ``base``, linearised along ``step``; both are (d+1, k)."""

    base: FloatArray
    step: FloatArray


@dataclass(frozen=True, eq=False)
class Explicit:
    """Dual variables ``u + rest`` per unit weight, (n,) or (n, k).

    ``rest``, at most half a unit in the last place of ``u``, doubles the precision of v = sum s sigma u x.
    """

    u: FloatArray
    rest: FloatArray | None = None


@fast_constructor
@dataclass(frozen=True, eq=False)
class Solution:
    """Result of a solver, not yet certified: W (d+1, k) with the intercepts last, and a dual point."""

    W: FloatArray
    dual: Linearised | Explicit
    status: Status
    passes: float
    seconds: float
    trace: tuple[TraceRecord, ...] = ()
    sums: FloatArray | None = None  #: sums of the closing pass at (W, dual), if already computed
