"""Conversion of the user's collections to rows on the workers: opened for one fit, or persisted for many."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, stack_rows
from linsep.data.cluster import engines
from linsep.data.cluster.engine import Column, Engine, Source, cut, length, lengths
from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.partition import Partition, describe, with_partition_number
from linsep.data.cluster.rows import ClusterRows
from linsep.data.location import Location
from linsep.data.memory_rows import few_on_cluster
from linsep.errors import BadInput

Prepare = Callable[..., Partition | None]
Prefetch = Callable[[Sequence[int], int], Any]  # (partition sizes, d) -> row numbers
Encode = Any  # a fitted transformer: ``transform`` and ``feature_names_in_``


def source_of(X: Any, y: Any, weight: Any) -> Source:
    """Return X, y and weights as columns of the engine of X."""
    if isinstance(X, ClusterScan | PersistedRows | MappedRows):
        return X.source(y, weight)
    found: Source = engines.module_of(X).source(X, y, weight)
    return found


def predict_lazily(model: Any, method: str, X: Any, encode: Encode | None = None) -> Any:
    """Return ``model.method`` of the rows of X, lazily: a dask array, or a Spark data frame with an extra column.

    ``encode``, a fitted transformer, is applied to the raw rows of each partition first.
    """
    if isinstance(X, MappedRows):
        return predict_lazily(model, method, X.rows, X.encode)
    if isinstance(X, ClusterScan | PersistedRows):
        return X.predict(model, method, encode)
    return engines.module_of(X).predict(model, method, X, encode)


def open_rows(
    X: Any, y: Any, weight: Any, prepare: Prepare, prefetch: Prefetch | None = None, **facts: Any
) -> ClusterRows:
    """Open the rows of X with y and weights on the workers, which check their partitions. One round.

    ``prepare(x, y, weight, number, **facts)`` runs on a worker and returns its partition. The worker sends the facts of
    it and, if the partition sizes are known beforehand, the rows that a fit requests first, ``prefetch(sizes, d)``.
    """
    source = source_of(X, y, weight)
    engine = source.engine
    wanted = _wanted(source, prefetch)
    nothing: list[Any] = [None] * source.count
    columns = [nothing if v is None else v for v in (source.y, source.weight)]
    numbers = list(range(source.count))
    parts = engine.map("open", prepare, source.x, *columns, numbers, persist=True, **facts)
    engine.traffic.rounds += 1
    described = engine.map("facts", describe, parts, nothing if wanted is None else wanted)
    found, some = zip(*engine.collect(described), strict=True)
    engine.traffic.received += sum(sys.getsizeof(one) for one in some if one is not None)
    kept = [i for i, fact in enumerate(found) if fact is not None]
    if not kept:
        raise BadInput("X has no rows: every partition is empty.")
    _refuse_unlike(found, kept)
    rows = ClusterRows(engine, engine.keep(parts, kept), [found[i] for i in kept], kept)
    rows.prefetched = None if wanted is None else [(wanted[i], some[i]) for i in kept]
    return rows


def _wanted(source: Source, prefetch: Prefetch | None) -> list[Any] | None:
    """Return the rows to prefetch of each partition of a dense array, or None if the sizes are unknown.

    These are all rows if the fit is in memory.
    """
    if prefetch is None or source.sizes is None or source.width is None:
        return None
    starts = np.cumsum([0, *source.sizes])
    if few_on_cluster(8.0 * starts[-1] * source.width, source.engine.memory_limit()):
        rows: Any = np.arange(starts[-1])
    else:
        rows = prefetch(source.sizes, source.width) if starts[-1] else ()
    if not len(rows):
        return None
    parts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [part - start for part, start in zip(parts, starts, strict=False)]


def _refuse_unlike(found: Sequence[Any], kept: Sequence[int]) -> None:
    """Raise unless all partitions have the same columns and all are dense or all sparse."""
    first = found[kept[0]]
    for i in kept[1:]:
        fact = found[i]
        if fact.d != first.d:
            raise BadInput(
                f"Partition {i} of X has {fact.d} columns, partition {kept[0]} has {first.d}."
            )
        if fact.sparse != first.sparse:
            raise BadInput(
                "Some partitions of X are sparse and others dense: make them all the same."
            )
        if (fact.names is None) != (first.names is None) or (
            first.names is not None and list(fact.names) != list(first.names)
        ):
            raise BadInput(
                f"Partition {i} of X has other columns than partition {kept[0]}: {fact.names} and {first.names}."
            )


class SentVector:
    """Vector with one entry per row that was sent to the workers of persisted rows."""

    location = Location.CLUSTER

    def __init__(self, column: Column) -> None:
        self.column = column


class PersistedRows:
    """Raw rows that stay on the workers for many fits, with the vectors of one entry per row sent to them."""

    location = Location.CLUSTER

    def __init__(self, engine: Engine, x: Column, count: int) -> None:
        self._engine, self._x, self._count = engine, x, count
        self._sizes: tuple[int, ...] | None = None
        self._sent: dict[str, tuple[Any, SentVector]] = {}

    def send(self, kind: str, key: Any, vector: Callable[[], Any]) -> SentVector:
        """Send a vector, split by partition; reuse the last one of this kind if ``key`` is the same object."""
        found = self._sent.get(kind)
        if found is None or found[0] is not key:
            self._sent.pop(kind, None)
            if self._sizes is None:
                self._sizes = lengths(self._engine, self._x)
            parts = cut(vector(), self._sizes, kind)
            found = self._sent[kind] = key, SentVector(self._engine.send(kind, parts))
        return found[1]

    def few(self) -> bool:
        """Return whether a fit may fetch the rows, judged by their size as float64. One round."""
        sizes = self._engine.collect(self._engine.map("size", _size, self._x))
        return few_on_cluster(sum(sizes), self._engine.memory_limit())

    def source(self, y: Any, weight: Any) -> Source:
        """Return the rows for one fit, with vectors that were sent before or are sent now."""
        target, weights = (
            v.column if isinstance(v, SentVector) else self._once(v, name)
            for v, name in ((y, "y"), (weight, "sample_weight"))
        )
        return Source(self._engine.restart(), self._x, self._count, target, weights)

    def _once(self, v: Any, name: str) -> Column | None:
        return None if v is None else self.send(name, v, lambda: v).column

    def predict(self, model: Any, method: str, encode: Encode | None) -> npt.NDArray[Any]:
        """Return ``model.method`` of all rows, as an array on the client."""
        shared = self._engine.share("model", (model, encode))
        answer = self._engine.map("predict", _predict_partition, self._x, shared, method=method)
        return np.concatenate([one for one in self._engine.collect(answer) if one is not None])


def _size(x: Any) -> int:
    """Return the size in bytes of the raw rows of a partition, as a float64 array or CSR matrix."""
    if hasattr(x, "nnz"):
        return 12 * int(x.nnz)
    return 8 * length(x) * int(np.shape(x)[1])


class MappedRows:
    """Raw rows on a cluster with a fitted transformer, which the workers apply when they open a partition."""

    location = Location.CLUSTER

    def __init__(self, rows: Any, encode: Encode) -> None:
        self.rows, self.encode = rows, encode

    def source(self, y: Any, weight: Any) -> Source:
        """Return the encoded rows with their targets and weights."""
        found = source_of(self.rows, y, weight)
        numbers, code = list(range(found.count)), found.engine.share("code", self.encode)
        x = found.engine.map("encode", _encoded, found.x, numbers, code)
        return replace(found, x=x, width=None)

    def compute(self) -> Any:
        """Copy all encoded rows to the client, as an array or a CSR matrix."""
        source = self.source(None, None)
        return stack_rows([part for part in source.engine.collect(source.x) if part.shape[0]])


def _encoded(x: Any, number: int, encode: Encode) -> Any:
    """Encode the rows of a partition on its worker; an empty partition gives no rows."""
    with with_partition_number(number):
        return np.zeros((0, 1)) if length(x) == 0 else encode.transform(x)


def statistics_of(fn: Callable[[Any], Any], X: Any, y: Any = None) -> list[Any]:
    """Return ``fn(rows)`` for every partition that has rows, in order. One round. y may name a column of X."""
    source = source_of(X, y, None)
    engine = source.engine
    numbers = list(range(source.count))
    learnt = engine.map("learn", _unless_empty, source.x, numbers, engine.share("fn", fn))
    found = engine.collect(learnt)
    if all(one is None for one in found):
        raise BadInput("X has no rows: every partition is empty.")
    return [one for one in found if one is not None]


def _unless_empty(x: Any, number: int, fn: Callable[[Any], Any]) -> Any:
    """Return ``fn(rows)`` of a partition on its worker, or None if it has no rows."""
    with with_partition_number(number):
        return None if length(x) == 0 else fn(x)


def persist(X: Any, y: Any, weight: Any) -> tuple[PersistedRows, Any, Any]:
    """Compute the partitions of X once and persist them on the workers; return y and the weights as local arrays."""
    source = source_of(X, y, weight)
    engine = source.engine
    rows = engine.map("persist", _identity, source.x, persist=True)
    target, weights = (
        None if v is None else np.concatenate([np.asarray(part) for part in engine.collect(v)])
        for v in (source.y, source.weight)
    )
    return PersistedRows(engine, rows, source.count), target, weights


def _identity(x: Any) -> Any:
    """Return the raw rows of a partition; a task that persists them on the worker."""
    return x


def partition_results(
    fn: Callable[..., FloatArray], model: Any, X: Any, y: Any, weight: Any
) -> list[FloatArray]:
    """Return ``fn(model, x, y, weight)``, computed on the workers, for every partition that has rows. One round."""
    source = source_of(X, y, weight)
    engine = source.engine
    weights = [None] * source.count if source.weight is None else source.weight
    asked = engine.map(
        "score", _score_partition, engine.share("model", model), source.x, source.y, weights, fn=fn
    )
    return [one for one in engine.collect(asked) if one is not None]


def _score_partition(model: Any, x: Any, y: Any, weight: Any, fn: Callable[..., FloatArray]) -> Any:
    """Return ``fn(model, x, y, weight)`` of a partition on its worker, or None if it has no rows."""
    if len(y) == 0:
        return None
    return fn(model, x, np.asarray(y), np.ones(len(y)) if weight is None else np.asarray(weight))


def _predict_partition(x: Any, shared: tuple[Any, Encode | None], method: str) -> Any:
    """Return the predictions for a partition on its worker, or None if it has no rows."""
    model, encode = shared
    if length(x) == 0:
        return None
    return getattr(model, method)(x if encode is None else encode.transform(x))
