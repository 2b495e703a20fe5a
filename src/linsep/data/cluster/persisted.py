"""Rows on a cluster for many fits: computed once and persisted there, while targets and weights are on the client."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.dask_input import (
    aligned,
    client_of,
    cut,
    from_files,
    lengths,
    pieces,
)
from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.rounds import Rounds
from linsep.data.location import Location, location_of

FloatArray = npt.NDArray[np.float64]


class PersistedRows(list[Any]):
    """Partitions on the workers, and vectors with one entry per row that were sent to them and are used again."""

    def __init__(self, rounds: Rounds, parts: list[Any]) -> None:
        super().__init__(parts)
        self._rounds = rounds
        self._sizes: tuple[int, ...] | None = None
        self._sent: dict[str, tuple[Any, list[Any]]] = {}

    def send(self, what: str, which: Any, vector: Callable[[], Any]) -> list[Any]:
        """The vector cut as the rows are, and sent unless ``which`` of its kind was the last to be."""
        found = self._sent.get(what)
        if found is None or found[0] is not which:
            self._sent.pop(what, None)
            if self._sizes is None:
                self._sizes = lengths(self, self._rounds)
            parts = cut(np.asarray(vector()), self._sizes, what)
            submit = self._rounds.client.submit
            sent = [submit(on_worker.same, part, pure=False) for part in parts]
            found = self._sent[what] = which, sent
        return found[1]


def persist(X: Any, y: Any, weight: Any) -> tuple[PersistedRows, Any, Any]:
    """The partitions of X, computed once and persisted on the workers; y and the weights as arrays on the client."""
    rounds = Rounds(client_of(X))
    if isinstance(X, ClusterScan):
        X, y, weight = from_files(X, y, weight)
    parts = [_future(rounds, part) for part in pieces(X, "X")]
    vectors = _fetched(rounds, y, "y"), _fetched(rounds, weight, "sample_weight")
    return PersistedRows(rounds, parts), *vectors


def _future(rounds: Rounds, part: Any) -> Any:
    return rounds.client.compute(part) if hasattr(part, "dask") else part


def _fetched(rounds: Rounds, vector: Any, name: str) -> Any:
    if vector is None or location_of(vector) is not Location.CLUSTER:
        return vector if vector is None else np.asarray(vector)
    parts = rounds.results([_future(rounds, part) for part in pieces(vector, name)])
    return np.concatenate([np.asarray(part) for part in parts])


def partition_results(
    fn: Callable[..., FloatArray], model: Any, X: Any, y: Any, weight: Any
) -> list[FloatArray]:
    """``fn(model, x, y, weight)`` of every partition that has rows, computed by the workers."""
    from dask.delayed import delayed  # noqa: PLC0415

    rounds = Rounds(client_of(X))
    if isinstance(X, ClusterScan):
        X, y, weight = from_files(X, y, weight)
    columns = pieces(X, "X")
    nothing: list[Any] = [None] * len(columns)
    labels = aligned(y, X, columns, "y", rounds)
    weights = nothing if weight is None else aligned(weight, X, columns, "sample_weight", rounds)
    sent = delayed(model, traverse=False)  # once in the graph, not once for each partition
    call = delayed(_call, pure=False)
    asked = [call(fn, sent, *part) for part in zip(columns, labels, weights, strict=True)]
    found = rounds.results(rounds.client.compute(asked))
    return [one for one in found if one is not None]


def _call(fn: Callable[..., FloatArray], model: Any, x: Any, y: Any, weight: Any) -> Any:
    """On a worker."""
    if len(y) == 0:
        return None
    return fn(model, x, np.asarray(y), np.ones(len(y)) if weight is None else np.asarray(weight))
