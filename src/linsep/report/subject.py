"""The subject of a report: the model, its rows as numbers, and all names."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from sklearn.pipeline import Pipeline

from linsep.arrays import FloatArray
from linsep.data import Location, location_of
from linsep.data.entrance import inputs, labels
from linsep.data.row_access import is_sparse
from linsep.errors import BadInput
from linsep.estimators.scoring import dense_coef
from linsep.losses import Loss, Multinomial
from linsep.pipelines import Parts, require_parts
from linsep.tables import Encoder, Table

# Number of entries per block of dense and of sparse rows.
_BLOCK, _SPARSE_BLOCK = 1 << 17, 1 << 17
#: Maximum number of classes in a table.
MOST_CLASSES = 30


@dataclass(frozen=True, eq=False)
class Rows:
    """Rows as input of the linear model. ``raw`` is what the user passed, before any encoding."""

    X: Any  # float array, CSR matrix or rows on disk (n, d)
    y: Any  # array or coded labels (n,)
    weight: FloatArray | None
    raw: Any
    seen: Any  # input of the linear model: a matrix, or a frame with names

    def __len__(self) -> int:
        return int(self.X.shape[0])

    @property
    def sparse(self) -> bool:
        """Whether rows are stored by their nonzero entries."""
        return is_sparse(self.X)

    @property
    def entries(self) -> int:
        """Number of stored entries."""
        if not self.sparse:
            return int(self.X.shape[0] * self.X.shape[1])
        return int(self.X.nnz if sp.issparse(self.X) else self.X.n_entries)

    @property
    def step(self) -> int:
        """Number of rows per block; independent of where they are stored, so that sums are bit-identical."""
        if self.sparse:
            return max(1, _SPARSE_BLOCK * len(self) // max(1, len(self), self.entries))
        return max(1, _BLOCK // max(1, int(self.X.shape[1])))

    def weights(self, here: slice) -> FloatArray:
        """Return the weights of a slice of the rows."""
        return np.ones(here.stop - here.start) if self.weight is None else self.weight[here]

    def places(self) -> Iterator[slice]:
        """Iterate over the slices of the blocks."""
        for low in range(0, len(self), self.step):
            yield slice(low, min(len(self), low + self.step))

    def blocks(self) -> Iterator[tuple[slice, Any]]:
        """Iterate over the blocks of rows, with their slices."""
        for here in self.places():
            yield here, self.X[here]

    @cached_property
    def labels(self) -> tuple[list[Any], npt.NDArray[np.integer[Any]]]:
        """Return the distinct targets in sorted order, and for each row the position of its target."""
        if self.y.dtype.kind in "OU":  # a dictionary is faster than sorting
            known = labels.encode_any(self.y, len(self), "write_report")
            found, place = known.classes, known.codes
        else:
            found, place = np.unique(self.y, return_inverse=True)
        return found.tolist(), place.ravel().astype(np.min_scalar_type(len(found)))

    @property
    def total(self) -> float:
        """Number of rows, or sum of the weights."""
        return float(len(self)) if self.weight is None else float(self.weight.sum())


@dataclass(frozen=True, eq=False)
class Subject:
    """The model and its parts: steps, coefficients, classes, names and rows."""

    model: Any  # the linear model itself
    given: Any  # the model or the pipeline that ends in it
    steps: Any  # preprocessing: a pipeline, an encoder or None
    names: Sequence[str]
    coef: FloatArray  # (k, d)
    intercept: FloatArray  # (k,)
    classes: npt.NDArray[Any] | None  # None for a regression
    loss: Loss | Multinomial | None
    train: Rows
    test: Rows | None

    @property
    def several(self) -> bool:
        """Whether there are more than two classes."""
        return self.classes is not None and len(self.classes) > 2

    @property
    def probabilistic(self) -> bool:
        """Whether scores map to probabilities."""
        return self.loss is not None and self.loss.probabilistic and self.classes is not None

    @property
    def evaluated(self) -> Rows:
        """The rows on which the model is evaluated: held-out rows if there are any."""
        return self.train if self.test is None else self.test

    @property
    def regularisation(self) -> float | None:
        """Inverse regularisation strength C, if the model has one."""
        value = getattr(self.model, "C_", getattr(self.model, "C", None))
        return None if value is None else float(np.ravel(value)[0])


def open_subject(
    model: Any, X: Any, y: Any, sample_weight: Any, test: Any, encoder: Encoder | None
) -> Subject:
    """Split the model into its parts and convert all rows to numbers."""
    opened = require_parts(model, "write_report")
    final, steps = opened.model, opened.steps
    if steps is None and not isinstance(model, Pipeline):
        steps = encoder
    coef = np.atleast_2d(np.asarray(dense_coef(final), dtype=np.float64))
    classes = getattr(final, "classes_", None)
    train = _rows(final, steps, X, y, sample_weight, "X and y")
    held_out = None
    if test is not None:
        if not isinstance(test, tuple | list) or len(test) != 2:
            raise BadInput("test must be a pair (X_test, y_test) of rows the model has not seen.")
        held_out = _rows(final, steps, test[0], test[1], None, "test")
    fits = getattr(final, "_fits", None)
    return Subject(
        model=final,
        given=model,
        steps=steps,
        names=Parts(steps, final).feature_names(coef.shape[1]),
        coef=coef,
        intercept=np.atleast_1d(np.asarray(final.intercept_, dtype=np.float64)),
        classes=None if classes is None else np.asarray(classes),
        loss=fits[0].recipe.loss if fits else None,
        train=train,
        test=held_out,
    )


def _rows(model: Any, steps: Any, X: Any, y: Any, weight: Any, what: str) -> Rows:
    """Apply the steps before the model to X, unless it is already encoded."""
    stored = location_of(X) is Location.DISK
    encoded = isinstance(steps, Encoder) and (sp.issparse(X) or isinstance(X, np.ndarray) or stored)
    seen = X if steps is None or encoded else steps.transform(X)
    if isinstance(seen, Table) and seen.matrix is not None:
        seen = seen.matrix
    matrix = inputs.validate_new_rows(model, seen)
    if location_of(matrix) is Location.MEMORY:
        matrix = sp.csr_array(matrix) if sp.issparse(matrix) else np.asarray(matrix)
    if matrix.dtype not in (np.float32, np.float64):
        matrix = matrix.astype(np.float64)
    owner = f"{type(model).__name__} ({what})"
    answers = inputs.column(y, matrix.shape[0], owner)
    return Rows(matrix, answers, inputs.weights(weight, matrix.shape[0]), X, seen)
