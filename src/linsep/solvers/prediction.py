"""Predict the processor time of each method on a problem, and return the cheapest method.

The choice of a solver, budgets and hand-overs depend only on these predictions. They are functions of the problem, not
of the elapsed time, the number of threads or the machine.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from functools import lru_cache
from weakref import WeakKeyDictionary

from linsep.problem import Problem
from linsep.solvers.cost.shape import Shape, shape_of
from linsep.solvers.cost.work import Declared, kind_of, prices
from linsep.solvers.dual_ascent import solve as dual_ascent
from linsep.solvers.interior import kinked, sifting
from linsep.solvers.newton import directions, subsampled
from linsep.solvers.newton import native as native_newton

#: Work of one iteration, for each method with calibrated iteration counts.
WORK: dict[str, Declared] = {
    "small": native_newton.work,
    "newton": subsampled.cholesky_work,
    "newton-pilot": subsampled.preconditioned_work,
    "newton-cg": directions.truncated_work,
    "dual-cd": dual_ascent.work,
    "interior": kinked.work,
    "sifting": sifting.work,
}
NATIVE = ("small", "interior")  # one native call each
BUDGETED = ("dual-cd",)  # hand over once they have cost as much as the next best method would
# A native method is chosen without comparison if it takes less time [s] per candidate: 20 times the cost of comparing.
_COMPARISON_SECONDS = 1e-4


@lru_cache(maxsize=4096)
def skip_comparison(
    method: str, kind: str, count: int, n: int, d: int, entries: int, sparse: bool = False
) -> bool:
    """Return whether a native method is so fast that comparing ``count`` candidates costs more than it saves."""
    if method not in NATIVE or (method, kind) not in prices().laws:
        return False
    law = prices().laws[method, kind]
    usual = math.exp(0.5 * (law.least + law.most))
    seconds = usual * prices().iteration(WORK[method], Shape(n, d, entries, sparse))
    return seconds < _COMPARISON_SECONDS * count


class Prediction:
    """Predicted cost of each method on a problem of this shape and kind of loss."""

    def __init__(self, shape: Shape, kind: str, tol: float) -> None:
        self.prices = prices()
        self.shape, self.kind = self.prices.assumed(shape), kind
        self._terms = self.prices.terms(self.shape, tol)

    def seconds(self, method: str) -> float:
        """Predicted processor time of a method [s]; inf if it is not calibrated."""
        work, law = WORK.get(method), self.prices.laws.get((method, self.kind))
        if work is None or law is None:
            return math.inf
        return law.iterations(self._terms) * self.prices.iteration(work, self.shape)

    def iteration(self, method: str) -> float:
        """Predicted processor time of one iteration [s]."""
        return self.prices.iteration(WORK[method], self.shape)

    def cheapest(self, methods: Iterable[str]) -> str:
        """Return the method with the smallest predicted cost; the first one if none is calibrated."""
        names, shape = list(methods), self.shape
        for name in names:
            sizes = shape.n, shape.d, shape.entries, shape.sparse
            if name in NATIVE and skip_comparison(name, self.kind, len(names), *sizes):
                return name
        return min(names, key=self.seconds)


_LAST: WeakKeyDictionary[Problem, tuple[float, Prediction]] = WeakKeyDictionary()


def predict(problem: Problem, tol: float) -> Prediction:
    """Return the predicted costs of the methods on a penalised problem; computed once for its choice and its budget."""
    known = _LAST.get(problem)
    if known is None or known[0] != tol:
        known = tol, Prediction(shape_of(problem), kind_of(problem.loss), tol)
        _LAST[problem] = known
    return known[1]
