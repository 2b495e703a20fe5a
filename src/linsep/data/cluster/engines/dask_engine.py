"""The Dask engine: partitions are futures of a ``distributed.Client``, and columns are lists of them.

Partitions and row state are results of tasks. If a worker dies, the scheduler recomputes the results it held, from the
user's own graph.
"""

from __future__ import annotations

import importlib
import time
import uuid
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.data.cluster.engine import Column, Engine, Source, cut, lengths, pick
from linsep.data.layout import FAN, one_after_another
from linsep.data.location import Location, location_of
from linsep.errors import BadInput, ClusterError, LinsepError
from linsep.interrupts import check

LARGE = 4096  # functions of more bytes are sent once instead of in every task
POLL = 0.5  # seconds between two checks that there are workers
NO_WORKERS = "no-workers-timeout"
NO_WORKERS_SECONDS = 30.0


class DaskEngine(Engine):
    """Engine that runs tasks through a Dask client."""

    collected_bytes = 1 << 22

    def __init__(self, client: Any, count: int) -> None:
        super().__init__()
        self.client, self.numbers = client, list(range(count))
        self.origins: dict[str, int] = {}  # key of the user's own task -> number of its partition
        self._run, self._calls = uuid.uuid4().hex[:12], 0
        self._refuse_closed()

    def restart(self) -> DaskEngine:
        again = DaskEngine(self.client, 0)
        again.numbers, again.origins = list(self.numbers), self.origins
        return again

    def map(
        self,
        what: str,
        fn: Callable[..., Any],
        /,
        *columns: Column,
        among: Sequence[int] | None = None,
        persist: bool = False,
        **common: Any,
    ) -> list[Any]:
        self._refuse_closed()
        numbers = self.numbers
        if among is not None:
            numbers = [numbers[i] for i in among]
            columns = tuple([column[i] for i in among] for column in columns)
        keys = self._keys(what, numbers)
        if not any(_lazy(value) for column in columns for value in column[:1]):
            with _large_graphs():
                futures: list[Any] = self.client.map(fn, *columns, key=keys, pure=False, **common)
            return futures
        from dask.delayed import delayed  # noqa: PLC0415

        call = delayed(fn, pure=False)
        parts = zip(zip(*columns, strict=True), keys, strict=True)
        lazily = [call(*values, dask_key_name=key, **common) for values, key in parts]
        return self._compute(lazily)

    def _compute(self, lazily: list[Any]) -> list[Any]:
        """Submit lazy values and return futures."""
        with _large_graphs():
            futures: list[Any] = self.client.compute(lazily)
        return futures

    def _keys(self, what: str, numbers: Sequence[int]) -> list[str]:
        """Return descriptive and unique keys of tasks."""
        self._calls += 1
        return [f"linsep-{what}-{self._run}-{self._calls}-{i}" for i in numbers]

    def send(self, what: str, values: Sequence[Any]) -> list[Any]:
        keys = self._keys(what, self.numbers)
        submit = self.client.submit
        pairs = zip(values, keys, strict=True)
        with _large_graphs():
            return [submit(same, value, key=key, pure=False) for value, key in pairs]

    def share(self, what: str, value: Any) -> list[Any]:
        if not isinstance(value, bytes) or len(value) > LARGE:
            (key,) = self._keys(what, [0])
            with _large_graphs():
                value = self.client.submit(same, value, key=key, pure=False)
        return [value] * len(self.numbers)

    def keep(self, column: list[Any], numbers: Sequence[int]) -> list[Any]:
        self.numbers = [self.numbers[i] for i in numbers]
        return [column[i] for i in numbers]

    def _tree(self, column: list[Any]) -> FloatArray:
        """Return the ordered sum, with one task for each node of the tree."""
        level = 0
        while len(column) > 1:
            level += 1
            groups = [list(column[at : at + FAN]) for at in range(0, len(column), FAN)]
            keys = self._keys(f"tree{level}", range(len(groups)))
            column = [
                self.client.submit(one_after_another, group, key=key, pure=False)
                for group, key in zip(groups, keys, strict=True)
            ]
        return np.array(self.collect(column)[0])

    def collect(self, column: Sequence[Any]) -> list[Any]:
        """Copy the values to the client, in order; raise if the cluster has no workers for too long."""
        from distributed import wait  # noqa: PLC0415

        idle_since = None
        pending = self._compute(list(column)) if any(map(_lazy, column)) else list(column)
        while True:
            check()
            try:
                self._refuse_closed()
                try:
                    wait(pending, timeout=POLL)  # type: ignore[no-untyped-call]
                except TimeoutError:
                    idle_since = self._still_idle(idle_since)
                    continue
                return list(self.client.gather(pending))
            except LinsepError:
                raise
            except Exception as error:
                raise self._explained(error, pending) from error

    def dumps(self, fn: Any) -> bytes:
        import cloudpickle  # type: ignore[import-untyped] # noqa: PLC0415 - comes with Dask

        blob: bytes = cloudpickle.dumps(fn)
        return blob

    def setting(self, name: str) -> Any:
        import dask  # noqa: PLC0415

        return dask.config.get(f"linsep.{name}", None)

    def how_to_set(self, name: str, value: str) -> str:
        return f"dask.config.set({{'linsep.{name}': {value!r}}})"

    def _refuse_closed(self) -> None:
        if self.client.status != "running":
            raise ClusterError(
                f"The Dask client is {self.client.status}: connect a new one and fit again."
            )

    def _still_idle(self, since: float | None) -> float | None:
        """Return since when there have been no workers, or None; raise if that exceeds the timeout."""
        from dask.utils import parse_timedelta  # noqa: PLC0415

        if self.client.nthreads():
            return None
        now = time.monotonic()
        limit = parse_timedelta(self.setting(NO_WORKERS) or NO_WORKERS_SECONDS)
        if since is not None and now - since >= limit:
            raise ClusterError(
                f"The cluster has had no workers for {limit:g} seconds: start some, or wait longer with "
                f"{self.how_to_set(NO_WORKERS, '10 minutes')}."
            )
        return now if since is None else since

    def _number(self, task: str) -> int | None:
        """Return the number of the partition that a task belongs to, or None."""
        if task.startswith("linsep-") and not task.startswith("linsep-tree"):
            return int(task.rsplit("-", 1)[1])
        return self.origins.get(task)

    def _explained(self, error: Exception, futures: Sequence[Any]) -> ClusterError:
        """Convert an error of Dask to a ClusterError that names the partition and the remedy."""
        from distributed.scheduler import KilledWorker  # noqa: PLC0415

        if isinstance(error, KilledWorker):
            killed = [f.exception() for f in futures if f.status == "error"]
            tasks = sorted({str(one.task) for one in killed if isinstance(one, KilledWorker)})
            numbers = {self._number(task) for task in tasks}
            known = tuple(sorted(number for number in numbers if number is not None))
            names = ", ".join(map(str, known or tasks))
            return ClusterError(
                f"Partition {names} (counting from 0): {error.allowed_failures + 1} workers died, one after the "
                "other, while they had it. It, or one of them, is too large for their memory, or its data bring "
                "them down. Look at it, cut it into smaller ones, or give the workers more memory.",
                known,
            )
        if self.client.status != "running":
            return ClusterError(f"The Dask client was closed during the fit: {error}")
        return ClusterError(f"The cluster failed: {type(error).__name__}: {error}")


def _large_graphs() -> Any:
    """Return the context in which Dask does not warn of graphs that contain large arrays."""
    import dask  # noqa: PLC0415

    return dask.config.set({"distributed.admin.large-graph-warning-threshold": "1 PB"})


def same(value: Any) -> Any:
    """Return the argument; a task that puts a value into the graph."""
    return value


def _lazy(value: Any) -> bool:
    """Return whether a value is lazy, so that it is computed together with the tasks that depend on it."""
    return hasattr(value, "__dask_graph__")


def connected(address: str) -> Any:
    """Return a client of the scheduler at an address."""
    try:
        client: Any = importlib.import_module("distributed").Client
    except ImportError as error:
        raise ClusterError(
            'A cluster needs Dask: pip install "dask[array]" distributed.'
        ) from error
    try:
        return client(address, timeout="10s")
    except (OSError, ValueError) as error:
        raise ClusterError(f"No scheduler answers at {address}: {error}") from error


def _client() -> Any:
    """Return the current Dask client; raise if there is none."""
    from distributed import get_client  # noqa: PLC0415

    try:
        return get_client()
    except ValueError as error:
        raise ClusterError(
            "X is on Dask, and there is no Dask client: make one before fit, for instance "
            "from dask.distributed import Client; client = Client()."
        ) from error


# conversion of the user's input


def source(X: Any, y: Any, weight: Any) -> Source:
    """Return dask arrays, dask dataframes or lists of delayed partitions as columns of an engine."""
    x = pieces(X, "X")
    engine = DaskEngine(_client(), len(x))
    engine.origins = {str(getattr(one, "key", "")): i for i, one in enumerate(x)}
    target, weights = (
        None if v is None else _align(v, X, x, name, engine)
        for v, name in ((y, "y"), (weight, "sample_weight"))
    )
    dense = isinstance(getattr(X, "_meta", None), np.ndarray) and X.ndim == 2
    width = int(X.shape[1]) if dense else None
    return Source(engine, x, len(x), target, weights, known_sizes(X), width)


def files(client: Any, paths: Sequence[Any], read: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return an engine, and the three columns of the tuples that ``read(file)`` returns for each file."""
    from dask.delayed import delayed  # noqa: PLC0415

    call, part = delayed(read, pure=True), delayed(pick, pure=True)
    parts = [call(path) for path in paths]
    columns = ([part(one, at) for one in parts] for at in range(3))
    return DaskEngine(client, len(parts)), *columns


def pieces(X: Any, name: str) -> list[Any]:
    """Return the partitions as delayed values or futures."""
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
    """Return the number of rows of each partition, or None if they are not known without computing."""
    chunks = getattr(X, "chunks", None)
    if chunks is None or any(np.isnan(size) for size in chunks[0]):
        return None
    return tuple(int(size) for size in chunks[0])


def _align(v: Any, X: Any, x: Sequence[Any], name: str, engine: DaskEngine) -> list[Any]:
    """Return the partitions of v, split like those of X."""
    if location_of(v) is not Location.CLUSTER:
        return cut(v, known_sizes(X) or lengths(engine, x), name)
    ours, theirs = known_sizes(X), known_sizes(v)
    if ours is not None and theirs is not None and ours != theirs:
        if sum(ours) != sum(theirs):
            raise BadInput(
                f"X has {sum(ours)} rows, {name} has {sum(theirs)}; give one {name} for each row of X."
            )
        v = v.rechunk((ours,))
    parts = pieces(v, name)
    if len(parts) != len(x):
        raise BadInput(
            f"X has {len(x)} partitions and {name} has {len(parts)}, of sizes that are not all known: cut both "
            "in the same way, for instance from one dataframe, or give arrays with known chunks."
        )
    return parts


# lazy predictions


def predict(model: Any, method: str, X: Any, encode: Any = None) -> Any:
    """Return ``model.method(part)`` for every partition of X, encoded first, as a dask array.

    The dtype and the number of columns are found by predicting a row of zeros.
    """
    return _answers_of(model, method, pieces(X, "X"), known_sizes(X), encode)


def predict_files(model: Any, method: str, parts: list[Any], encode: Any = None) -> Any:
    """Return ``model.method(part)`` for every file that the workers read, as a dask array."""
    return _answers_of(model, method, parts, None, encode)


def _answers_of(
    model: Any, method: str, parts: list[Any], sizes: tuple[int, ...] | None, encode: Any
) -> Any:
    da: Any = importlib.import_module("dask.array")
    from dask.delayed import delayed  # noqa: PLC0415

    example = _example(model, method)
    rows = [np.nan] * len(parts) if sizes is None else sizes
    call = delayed(_answers, pure=True)
    # The model is one node of the graph instead of being copied into every task.
    sent = delayed((model, encode), traverse=False)
    blocks = [
        da.from_delayed(
            call(sent, method, part, example[:0]), (size, *example.shape[1:]), example.dtype
        )
        for part, size in zip(parts, rows, strict=True)
    ]
    return da.concatenate(blocks, axis=0, allow_unknown_chunksizes=True)


def _example(model: Any, method: str) -> Any:
    """Return the prediction for one row of zeros."""
    row: Any = np.zeros((1, model.n_features_in_))
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        pandas = importlib.import_module("pandas")  # a dependency of dask dataframes
        row = pandas.DataFrame(row, columns=names)
    return getattr(model, method)(row)


def _answers(sent: tuple[Any, Any], method: str, part: Any, nothing: Any) -> Any:
    """Return the predictions for a partition on its worker; ``nothing`` if it is empty."""
    model, encode = sent
    if part.shape[0] == 0:
        return nothing
    return getattr(model, method)(part if encode is None else encode.transform(part))
