"""Dask arrays, dask dataframes and lists of delayed partitions become rows on the workers."""

from __future__ import annotations

import importlib
import sys
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.rounds import Rounds
from linsep.data.cluster.rows import ClusterRows, Facts
from linsep.data.location import Location, location_of
from linsep.errors import BadInput, ClusterError

Prepare = Callable[..., "tuple[Any, Facts | None, Any]"]
Prefetch = Callable[[Sequence[int], int], Any]  # of sizes and d: numbers of rows


def open_rows(
    X: Any, y: Any, weight: Any, prepare: Prepare, prefetch: Prefetch | None = None, **facts: Any
) -> ClusterRows:
    """The rows of X with y and weights on the workers, each partition checked there (one round).

    ``prepare(x, y, weight, some, **facts)`` runs on a worker and makes a partition of its part, and one of ``some`` of
    its rows: ``prefetch(sizes, d)`` returns the row numbers that a fit requests first, where the sizes are known.
    """
    rounds = Rounds(client_of(X))
    if isinstance(X, ClusterScan):
        X, y, weight = from_files(X, y, weight)
    columns = pieces(X, "X")
    vectors = [
        None if v is None else aligned(v, X, columns, name, rounds)
        for v, name in ((y, "y"), (weight, "sample_weight"))
    ]
    wanted = _wanted(X, prefetch)
    parts, found, some = _opened(rounds, columns, [*vectors, wanted], prepare, facts)
    kept = [i for i, fact in enumerate(found) if fact is not None]
    if not kept:
        raise BadInput("X has no rows: every partition is empty.")
    _refuse_unlike(found, kept)
    rows = ClusterRows(rounds, [parts[i] for i in kept], [found[i] for i in kept])
    rows.prefetched = None if wanted is None else [(wanted[i], some[i]) for i in kept]
    return rows


def _wanted(X: Any, prefetch: Prefetch | None) -> list[Any] | None:
    """For each partition of a dense array the rows to prefetch; None if sizes are unknown."""
    sizes = known_sizes(X)
    if prefetch is None or sizes is None or not isinstance(getattr(X, "_meta", None), np.ndarray):
        return None
    starts = np.cumsum([0, *sizes])
    rows = prefetch(sizes, int(X.shape[1])) if X.ndim == 2 and starts[-1] else ()
    if not len(rows):
        return None
    parts = np.split(rows, np.searchsorted(rows, starts[1:-1]))
    return [part - start for part, start in zip(parts, starts, strict=False)]


def connected(address: str) -> Any:
    """A client of the scheduler at that address."""
    try:
        client: Any = importlib.import_module("distributed").Client
    except ImportError as error:
        raise ClusterError('A cluster needs Dask: pip install "linsep[dask]".') from error
    try:
        return client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ClusterError(f"No scheduler answers at {address}: {error}") from error


def from_files(X: ClusterScan, y: Any, weight: Any) -> tuple[Any, Any, Any]:
    """Rows, target and weights of a scan, which may bring its own."""
    columns, own_y, own_weight = X.pieces()
    given = (("target", y, X.y, own_y), ("weights", weight, X.weight, own_weight))
    for name, *places in given:
        if sum(place is not None for place in places) > 1:
            raise BadInput(
                f"The scan has {name} already: give them to scan or to fit, not to both."
            )
    first = [next((v for v in places if v is not None), None) for _, *places in given]
    if first[0] is None:
        raise BadInput(
            "The scan has no target: give scan(paths, target=...) the column, or y to fit."
        )
    return columns, first[0], first[1]


def client_of(X: Any) -> Any:
    """The client that knows X."""
    if isinstance(X, ClusterScan):
        return X.client
    from distributed import get_client  # noqa: PLC0415

    try:
        return get_client()
    except ValueError as error:
        raise ClusterError(
            "X is on Dask, and there is no Dask client: make one before fit, for instance "
            "from dask.distributed import Client; client = Client()."
        ) from error


def pieces(X: Any, name: str) -> list[Any]:
    """The partitions as delayed values or futures."""
    if isinstance(X, ClusterScan):
        return X.pieces()[0]
    if isinstance(X, list | tuple):
        return list(X)
    if hasattr(X, "npartitions") and hasattr(X, "divisions"):  # a dataframe or a series
        return list(X.to_delayed())
    if not hasattr(X, "to_delayed") or not hasattr(X, "chunks"):
        raise BadInput(
            f"{name} is a {type(X).__module__}.{type(X).__name__}; give a dask array, a dask dataframe or a "
            "list of delayed partitions."
        )
    if X.ndim == 2 and len(X.chunks[1]) > 1:
        X = X.rechunk({1: -1})
    return list(np.ravel(X.to_delayed()))


def known_sizes(X: Any) -> tuple[int, ...] | None:
    """Rows of each partition, where they are known without computing."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or any(np.isnan(size) for size in chunks[0]):
        return None
    return tuple(int(size) for size in chunks[0])


def aligned(v: Any, X: Any, columns: Sequence[Any], name: str, rounds: Rounds) -> list[Any]:
    """v cut as X is."""
    if location_of(v) is not Location.CLUSTER:
        return cut(np.asarray(v), known_sizes(X) or lengths(columns, rounds), name)
    ours, theirs = known_sizes(X), known_sizes(v)
    if ours is not None and theirs is not None and ours != theirs:
        if sum(ours) != sum(theirs):
            raise BadInput(
                f"X has {sum(ours)} rows, {name} has {sum(theirs)}; give one {name} for each row of X."
            )
        v = v.rechunk((ours,))
    parts = pieces(v, name)
    if len(parts) != len(columns):
        raise BadInput(
            f"X has {len(columns)} partitions and {name} has {len(parts)}, of sizes that are not all known: cut both "
            "in the same way, for instance from one dataframe, or give arrays with known chunks."
        )
    return parts


def lengths(columns: Sequence[Any], rounds: Rounds) -> tuple[int, ...]:
    """Rows of each partition (one round)."""
    from dask.delayed import delayed  # noqa: PLC0415

    rounds.traffic.rounds += 1
    counts = [delayed(on_worker.length)(column) for column in columns]
    return tuple(rounds.results(rounds.client.compute(counts)))


def cut(v: Any, sizes: tuple[int, ...], name: str) -> list[Any]:
    """A vector in pieces of these sizes."""
    if v.ndim == 0:
        v = np.full(sum(sizes), v)
    if len(v) != sum(sizes):
        raise BadInput(
            f"X has {sum(sizes)} rows, {name} has {len(v)}; give one {name} for each row."
        )
    return list(np.split(v, np.cumsum(sizes)[:-1]))


def _opened(
    rounds: Rounds,
    columns: Sequence[Any],
    vectors: Sequence[list[Any] | None],
    prepare: Prepare,
    facts: dict[str, Any],
) -> tuple[Any, list[Any], list[Any]]:
    """Partitions on the workers, their facts, and the rows to prefetch."""
    from dask.delayed import delayed  # noqa: PLC0415

    run, numbers = uuid.uuid4().hex[:12], range(len(columns))
    nothing: list[Any] = [None] * len(columns)
    y, weight, some = (nothing if v is None else v for v in vectors)
    lazily = delayed(prepare, pure=False)
    made = [
        lazily(
            *(columns[i], y[i], weight[i], some[i]),
            number=i,
            dask_key_name=f"linsep-open-{run}-{i}",
            **facts,
        )
        for i in numbers
    ]
    rounds.origins = {str(getattr(one, "key", "")): i for i, one in enumerate(columns)}
    futures = rounds.client.compute(made)
    parts = rounds.map("part", on_worker.pick, numbers, futures, at=0)
    results = [rounds.map(f"facts{at}", on_worker.pick, numbers, futures, at=at) for at in (1, 2)]
    rounds.traffic.rounds += 1
    found, prefetched = (rounds.results(one) for one in results)
    rounds.traffic.received += sum(sys.getsizeof(one) for one in prefetched if one is not None)
    return parts, found, prefetched


def _refuse_unlike(found: Sequence[Any], kept: Sequence[int]) -> None:
    """All partitions must have the same columns, stored in the same way."""
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
