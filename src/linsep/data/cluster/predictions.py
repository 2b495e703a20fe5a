"""Predictions for rows on Dask: a lazy dask array."""

from __future__ import annotations

import importlib
from typing import Any

import numpy as np

from linsep.data.cluster.dask_input import known_sizes, pieces


def predict_lazily(model: Any, method: str, X: Any) -> Any:
    """``model.method(part)`` of every partition of X, as a dask array.

    An answer for one row of zeros tells the type and the number of columns.
    """
    da: Any = importlib.import_module("dask.array")
    from dask.delayed import delayed  # noqa: PLC0415

    example = _example(model, method)
    parts, sizes = pieces(X, "X"), known_sizes(X)
    rows = [np.nan] * len(parts) if sizes is None else sizes
    call = delayed(_answers, pure=True)
    sent = delayed(model, traverse=False)  # once in the graph, not once for each partition
    blocks = [
        da.from_delayed(
            call(sent, method, part, example[:0]), (size, *example.shape[1:]), example.dtype
        )
        for part, size in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _example(model: Any, method: str) -> Any:
    """The answer for one row of zeros."""
    row: Any = np.zeros((1, model.n_features_in_))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        pandas = importlib.import_module("pandas")  # dask dataframes are made of these
        row = pandas.DataFrame(row, columns=names)
    return getattr(model, method)(row)


def _answers(model: Any, method: str, part: Any, nothing: Any) -> Any:
    """On a worker: what the model says of a partition, which may be empty."""
    return nothing if part.shape[0] == 0 else getattr(model, method)(part)
