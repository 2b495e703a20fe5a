"""Rows on a cluster for many questions: made once and held there, while what belongs to each row comes here."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.opening import aligned, client_of, from_files, on_cluster, pieces
from linsep.data.cluster.rounds import Rounds

FloatArray = npt.NDArray[np.float64]


def held(X: Any, y: Any, weight: Any) -> tuple[list[Any], Any, Any]:
    """The partitions of X, which are made once and stay on the workers; y and the weights as arrays here."""
    rounds = Rounds(client_of(X))
    if isinstance(X, ClusterScan):
        X, y, weight = from_files(X, y, weight)
    parts = [_future(rounds, part) for part in pieces(X, "X")]
    return parts, _brought(rounds, y, "y"), _brought(rounds, weight, "sample_weight")


def _future(rounds: Rounds, part: Any) -> Any:
    return rounds.client.compute(part) if hasattr(part, "dask") else part


def _brought(rounds: Rounds, vector: Any, name: str) -> Any:
    if vector is None or not on_cluster(vector):
        return vector if vector is None else np.asarray(vector)
    parts = rounds.results([_future(rounds, part) for part in pieces(vector, name)])
    return np.concatenate([np.asarray(part) for part in parts])


def tallied(
    fn: Callable[..., FloatArray], model: Any, X: Any, y: Any, weight: Any
) -> list[FloatArray]:
    """``fn(model, x, y, weight)`` of every partition that has rows, by the workers: only that travels."""
    from dask.delayed import delayed  # noqa: PLC0415

    rounds = Rounds(client_of(X))
    if isinstance(X, ClusterScan):
        X, y, weight = from_files(X, y, weight)
    columns = pieces(X, "X")
    nothing: list[Any] = [None] * len(columns)
    labels = aligned(y, X, columns, "y", rounds)
    weights = nothing if weight is None else aligned(weight, X, columns, "sample_weight", rounds)
    travelling = delayed(model, traverse=False)  # once in the graph, not once for each partition
    call = delayed(_tally, pure=False)
    asked = [call(fn, travelling, *part) for part in zip(columns, labels, weights, strict=True)]
    found = rounds.results(rounds.client.compute(asked))
    return [one for one in found if one is not None]


def _tally(fn: Callable[..., FloatArray], model: Any, x: Any, y: Any, weight: Any) -> Any:
    """On a worker."""
    if len(y) == 0:
        return None
    return fn(model, x, np.asarray(y), np.ones(len(y)) if weight is None else np.asarray(weight))
