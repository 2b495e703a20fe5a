"""Separation of a pipeline into preprocessing steps and linear model."""

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
from linsep.data.memory_rows import NamedRows
from linsep.errors import BadInput, require_fitted
from linsep.tables import Encoder, Table

_SKIPPED = (None, "passthrough")


@dataclass(frozen=True, eq=False)
class Parts:
    """Preprocessing steps of a model, and the model itself.

    Attributes
    ----------
    steps : Pipeline or None
        Steps that transform the user's rows to the rows of the model; None if there are none.
    model : estimator
        The last step.
    """

    steps: Pipeline | None
    model: Any

    def transform(self, X: Any) -> Any:
        """Transform the user's rows to the rows of the model."""
        return X if self.steps is None else self.steps.transform(X)

    def feature_names(self, d: int) -> list[str]:
        """Return the names of the d features of the model, from the model or the steps, or else x0, x1, ..."""
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
            except (AttributeError, ValueError):  # a step does not provide feature names
                pass
        if names is None or len(names) != d:
            return [f"x{j}" for j in range(d)]
        return [str(name) for name in names]


def take_apart(model: Any) -> Parts:
    """Return the steps and the model of a pipeline, or a model without steps. A nested last pipeline is flattened."""
    if not isinstance(model, Pipeline):
        return Parts(None, model)
    steps = _join(model)
    if not steps or steps[-1][1] in _SKIPPED:
        raise BadInput("the pipeline has no model: its last step must be an estimator of linsep.")
    before = [(name, step) for name, step in steps[:-1] if step not in _SKIPPED]
    return Parts(Pipeline(before, memory=model.memory) if before else None, steps[-1][1])


def require_parts(model: Any, caller: str) -> Parts:
    """Return the parts of a fitted model or pipeline; raise for anything else, naming ``caller`` in the message."""
    parts = take_apart(model)
    require_fitted(parts.model, caller)
    return parts


def final_step(pipeline: Pipeline) -> str:
    """Return the prefix of the parameters of a pipeline's model: ``logisticregression``, or ``outer__inner``."""
    name, last = pipeline.steps[-1]
    return f"{name}__{final_step(last)}" if isinstance(last, Pipeline) else str(name)


def take_rows(X: Any, rows: IntArray) -> Any:
    """Select rows of an array, a sparse matrix, a frame, a list (of texts) or a table."""
    if location_of(X) is not Location.MEMORY:
        raise BadInput(
            "the steps of a pipeline need their rows in memory; transform the rows first, or fit the model "
            "without steps."
        )
    if isinstance(X, Table | NamedRows):
        return X.take(rows)
    return _safe_indexing(X.tocsr() if hasattr(X, "tocsr") else X, rows)


def stack(above: Any, below: Any) -> Any:
    """Concatenate the rows of two matrices or frames with the same columns."""
    if sp.issparse(above) or isinstance(above, np.ndarray):
        return stack_rows([above, below])
    frames = [nw.from_native(above), nw.from_native(below)]
    return nw.concat(frames, how="vertical").to_native()


def _join(pipeline: Pipeline) -> list[tuple[str, Any]]:
    """Return the steps, with a pipeline at the end replaced by its steps under unique names."""
    if not pipeline.steps:
        return []
    *before, (name, last) = pipeline.steps
    if not isinstance(last, Pipeline):
        return [*before, (name, last)]
    return [*before, *((f"{name}-{inner}", step) for inner, step in _join(last))]
