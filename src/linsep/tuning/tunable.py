"""The optional interface by which ``tune`` and ``path`` fit a whole grid of an estimator together.

The linear estimators of linsep implement it, so that all models of a grid share their passes over the rows.
Other estimators need only ``fit``, ``predict`` and a parameter C; their models are fitted one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt

from linsep import interrupts
from linsep.arguments import number
from linsep.arrays import FloatArray
from linsep.data import Location
from linsep.pipelines import take_apart
from linsep.solvers.grid.problem import GridProblem
from linsep.train import Fit
from linsep.tuning.labelled_rows import LabelledRows


@runtime_checkable
class Tunable(Protocol):
    """Protocol of estimators that expose how they read data and the problem that all models of a grid share."""

    def _read_targets(self, X: Any, y: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """Return rows, column names, and targets or labels, read as ``fit`` reads them."""

    def _grid_problem(self, X: Any, y: Any, weight: FloatArray | None) -> GridProblem | None:
        """Return the problem that the models of every C share, or None if each must be fitted separately."""

    def _scoring_model(self, problem: GridProblem, fit: Fit) -> Any:
        """Return a fitted estimator whose only feature is the score x.w + b of the model ``fit``."""


P = ParamSpec("P")
R = TypeVar("R")


def within_its_time_limit(call: Callable[P, R]) -> Callable[P, R]:
    """Decorate a function of an estimator or a pipeline so that ``time_limit`` applies to all its fits together."""

    @wraps(call)
    def limited(*args: P.args, **given: P.kwargs) -> R:
        estimator = args[0] if args else given.get("estimator")
        limit = getattr(take_apart(estimator).model, "time_limit", None)
        with interrupts.time_limit(None if limit is None else number("time_limit", limit)):
            return call(*args, **given)

    return limited


def tunable(estimator: Any) -> Tunable | None:
    """Return the estimator if it implements ``Tunable``, otherwise None."""
    return estimator if isinstance(estimator, Tunable) else None


def grid_problem(
    estimator: Any, data: LabelledRows
) -> tuple[Tunable, GridProblem] | tuple[None, None]:
    """Return the estimator and the problem that its models of every C share; None if they are fitted separately."""
    asked = None if data.location is Location.CLUSTER else tunable(estimator)
    problem = None if asked is None else asked._grid_problem(data.X, data.y, data.weight)
    return (None, None) if asked is None or problem is None else (asked, problem)
