"""What ``tune`` and ``path`` ask of an estimator beyond ``fit``, ``predict`` and a parameter C.

The linear estimators of linsep have these methods, so that a whole grid is fitted together on rows that are read once.
Other estimators need none of them: their models are fitted one after another.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import wraps
from typing import Any, ParamSpec, Protocol, TypeVar, runtime_checkable

import numpy.typing as npt

from linsep import interrupts
from linsep.arguments import number
from linsep.arrays import FloatArray
from linsep.pipelines import take_apart
from linsep.solvers.grid.problem import GridProblem
from linsep.train import Fit


@runtime_checkable
class Tunable(Protocol):
    """An estimator that lays open how it reads data and which problem all models of a grid share."""

    def _read_targets(self, X: Any, y: Any) -> tuple[Any, Any, npt.NDArray[Any]]:
        """Rows, names of the columns, and targets or labels, as ``fit`` reads them."""

    def _grid_problem(self, X: Any, y: Any, weight: FloatArray | None) -> GridProblem | None:
        """The problem that the models of every C share; None if there is not one such problem."""

    def _scoring_model(self, problem: GridProblem, fit: Fit) -> Any:
        """A fitted estimator whose one feature is the score x.w + b of the model ``fit``."""


P = ParamSpec("P")
R = TypeVar("R")


def within_its_time_limit(call: Callable[P, R]) -> Callable[P, R]:
    """``call``, whose first argument is an estimator or a pipeline, ends when the estimator's ``time_limit`` does.

    The limit is one for all its fits together.
    """

    @wraps(call)
    def limited(*args: P.args, **given: P.kwargs) -> R:
        estimator = args[0] if args else given.get("estimator")
        limit = getattr(take_apart(estimator).model, "time_limit", None)
        with interrupts.time_limit(None if limit is None else number("time_limit", limit)):
            return call(*args, **given)

    return limited


def tunable(estimator: Any) -> Tunable | None:
    """The estimator, if it has these methods."""
    return estimator if isinstance(estimator, Tunable) else None
