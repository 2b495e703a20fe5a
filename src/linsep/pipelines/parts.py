"""A pipeline taken apart: the steps that turn rows into numbers, and the linear model that reads them."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import narwhals as nw
import numpy as np
import scipy.sparse as sp
from sklearn.pipeline import Pipeline
from sklearn.utils import _safe_indexing

from linsep.arrays import IntArray, stack_rows
from linsep.data import Location, location_of
from linsep.errors import BadInput, require_fitted
from linsep.tables import Encoder, Table

_SKIPPED = (None, "passthrough")


@dataclass(frozen=True, eq=False)
class Parts:
    """The steps before a model, in order, and the model itself.

    Attributes
    ----------
    steps : Pipeline or None
        What turns the rows that the user has into the rows that the model reads; None if nothing does.
    model : estimator
    """

    steps: Pipeline | None
    model: Any

    def transform(self, X: Any) -> Any:
        """The rows that the model reads."""
        return X if self.steps is None else self.steps.transform(X)

    def feature_names(self, d: int) -> list[str]:
        """Names of the d features of the model, where the model or the steps know them; else x0, x1, ..."""
        names = getattr(self.model, "feature_names_in_", None)
        if names is None and self.steps is not None:
            alone = isinstance(self.steps, Pipeline) and len(self.steps) == 1
            step = self.steps[0] if alone else self.steps
            try:
                names = (
                    step.column_names_
                    if isinstance(step, Encoder)
                    else step.get_feature_names_out()
                )
            except (AttributeError, ValueError):  # a step does not say what it returns
                pass
        if names is None or len(names) != d:
            return [f"x{j}" for j in range(d)]
        return [str(name) for name in names]


def take_apart(model: Any) -> Parts:
    """The steps of a pipeline and its last one; any other model has no steps. Pipelines within pipelines are joined."""
    if not isinstance(model, Pipeline):
        return Parts(None, model)
    steps = _join(model)
    if not steps or steps[-1][1] in _SKIPPED:
        raise BadInput("the pipeline has no model: its last step must be an estimator of linsep.")
    before = [(name, step) for name, step in steps[:-1] if step not in _SKIPPED]
    return Parts(Pipeline(before, memory=model.memory) if before else None, steps[-1][1])


def require_parts(model: Any, caller: str) -> Parts:
    """The parts of a fitted model or pipeline; anything else is refused in the name of ``caller``."""
    parts = take_apart(model)
    require_fitted(parts.model, caller)
    return parts


def final_step(pipeline: Pipeline) -> str:
    """Prefix of the parameters of a pipeline's model: ``logisticregression``, or ``outer__inner``."""
    name, last = pipeline.steps[-1]
    return f"{name}__{final_step(last)}" if isinstance(last, Pipeline) else str(name)


def take_rows(X: Any, rows: IntArray) -> Any:
    """Select rows of an array, a sparse matrix, a frame, a list (of texts) or a table."""
    if location_of(X) is not Location.MEMORY:
        raise BadInput(
            "the steps of a pipeline need their rows in memory; transform the rows first, or fit the model "
            "without steps."
        )
    if isinstance(X, Table):
        return X.take(rows)
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, rows)


def stack(above: Any, below: Any) -> Any:
    """Two matrices or frames of the same columns as one."""
    if sp.issparse(above) or isinstance(above, np.ndarray):
        return stack_rows([above, below])
    frames = [nw.from_native(above), nw.from_native(below)]
    return nw.concat(frames, how="vertical").to_native()


def _join(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """The steps, with those of a pipeline at the end in its place; names are made unique."""
    if not pipeline.steps:
        return []
    *before, (name, last) = pipeline.steps
    if not isinstance(last, Pipeline):
        return [*before, (name, last)]
    return [*before, *((f"{name}-{inner}", step) for inner, step in _join(last))]
