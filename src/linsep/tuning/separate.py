"""The models of a grid one after another: C rising, each from the one before."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.utils import _safe_indexing

from linsep.errors import ConvergenceWarning

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def some(X: Any, rows: IntArray) -> Any:
    """These rows of an array, a sparse matrix or a frame."""
    if hasattr(X, "tocsr"):
        X = X.tocsr()
    return _safe_indexing(X, rows)


def fit(
    model: Any, X: Any, y: npt.NDArray[Any], weight: FloatArray | None, rows: IntArray | None
) -> None:
    """Fit to these rows, or to all."""
    if rows is not None:
        X, y = some(X, rows), y[rows]
        weight = None if weight is None else weight[rows]
    model.fit(X, y) if weight is None else model.fit(X, y, sample_weight=weight)


def models(
    estimator: Any,
    X: Any,
    y: npt.NDArray[Any],
    weight: FloatArray | None,
    Cs: FloatArray,
    pairs: Sequence[tuple[IntArray, IntArray]],
) -> Iterator[tuple[int, int, Any]]:
    """Yield (number of C, fold, fitted model); a model is the same object from C to C of a fold.

    Whether a model is certified is for the caller to say, once for all of them.
    """
    for f, (train, _) in enumerate(pairs):
        model = clone(estimator)
        if "warm_start" in model.get_params(deep=False):
            model.set_params(warm_start=True)
        rows, target = some(X, train), y[train]
        own = None if weight is None else weight[train]
        for c, C in enumerate(Cs.tolist()):
            model.set_params(C=C)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                fit(model, rows, target, own, None)
            yield c, f, model
