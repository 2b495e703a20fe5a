"""What the fits of a path over C share: the covariance of the rows, curvature pairs, and an extrapolated start.

The Hessian of the losses changes slowly along a path, and the weights are smooth in log C. A fit of a path therefore
starts on the line through the last two solutions, as a function of log C, and its linear systems use the covariance
and the products with the Hessian that earlier fits have computed. All of this is a start or a preconditioner: it
changes how long a fit takes, not what its certificate proves.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar

from linsep.arrays import FloatArray
from linsep.problem.coupled import CoupledProblem
from linsep.solvers.linalg.curvature_pairs import CurvaturePairs
from linsep.solvers.multiclass.softmax_kronecker import Covariance

_LONGEST = 2.0  # extrapolate by at most so many times the last change of log C


class SoftmaxPath:
    """State of a path over C on one set of rows."""

    def __init__(self) -> None:
        self._rows: object = None
        self._fit_intercept = True
        self._clear()

    def _clear(self) -> None:
        self.covariance: Covariance | None = None
        self.pairs: CurvaturePairs | None = None
        self._solutions: list[tuple[float, FloatArray]] = []  # the last two: lam and W

    @contextmanager
    def use(self) -> Iterator[None]:
        """Let softmax fits inside the context share this state."""
        token = _current.set(self)
        try:
            yield
        finally:
            _current.reset(token)

    def begin_fit(self, problem: CoupledProblem) -> None:
        """Forget the state unless it belongs to the rows of the problem."""
        own = problem.data.X is self._rows and problem.fit_intercept == self._fit_intercept
        own = own and all(W.shape == (problem.order, problem.k) for _, W in self._solutions)
        if not own:
            self._clear()
            self._rows, self._fit_intercept = problem.data.X, problem.fit_intercept

    def extrapolate(self, W: FloatArray, lam: float) -> FloatArray:
        """Return the point at lam on the line through the last two solutions; W if there are not two."""
        if not W.any() or len(self._solutions) < 2:
            return W
        (first, before), (second, last) = self._solutions
        if not (first > second > lam > 0.0):
            return W
        along = min(_LONGEST, math.log(second / lam) / math.log(first / second))
        out: FloatArray = last + along * (last - before)
        return out

    def remember(self, lam: float, W: FloatArray) -> None:
        """Store the solution at lam."""
        self._solutions = [*self._solutions[-1:], (lam, W)]


_current: ContextVar[SoftmaxPath | None] = ContextVar("softmax_path", default=None)


def current(problem: CoupledProblem) -> SoftmaxPath:
    """Return the state of the path that the fit belongs to, or an empty one."""
    path = _current.get() or SoftmaxPath()
    path.begin_fit(problem)
    return path
