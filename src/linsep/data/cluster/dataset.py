"""A data set on a cluster: each pass is one round, and the rows stay on the workers."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from linsep.data.block import FloatArray
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.partition import Target
from linsep.data.cluster.row_requests import RowRequests
from linsep.data.cluster.row_store import bytes_of
from linsep.data.cluster.rows import ClusterRows, Facts, RowVector
from linsep.data.cluster.targets import ClusterTargets, target_of
from linsep.data.dataset import Dataset, PassNotes, Sum
from linsep.data.layout import FAN, dense_edges, longest_ordered, longest_sum
from linsep.data.location import Location
from linsep.data.memory import Memory
from linsep.data.targets import IntArray

if TYPE_CHECKING:
    from typing import Unpack

LARGE = 4096  # bytes of a function beyond which it is sent once and not in every task


class Cluster(Dataset):
    """Rows on the workers of a Dask cluster, with their targets."""

    location = Location.CLUSTER
    X: ClusterRows
    targets: ClusterTargets

    def __init__(
        self,
        X: ClusterRows,
        sign: RowVector | None = None,
        offset: RowVector | None = None,
        weight: RowVector | None = None,
        labels: RowVector | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.X, self.rounds = X, X.rounds
        self.n, self.d = X.shape
        self.sparse, self.n_entries = X.sparse, X.n_entries
        self.n_threads = n_threads or 1
        self._state: dict[str, list[Any]] = {}  # futures of the partitions
        self._fetched: dict[str, FloatArray] = {}  # of the state, what was copied to the client
        self._tasks = X.tasks(self.n_threads)
        self._numbers = range(len(X.parts))
        vectors = sign, offset, weight, labels
        target = target_of(*vectors)
        self._vectors = self._vectors_of(target)
        self._requests = RowRequests(X, target, self._vectors)
        self.targets = ClusterTargets(X, vectors, self._vectors, self._requests)

    def _vectors_of(self, target: Target) -> Any:
        """Targets of each partition, made and stored by its worker."""
        count = len(self.X.parts)
        return self.rounds.client.map(
            on_worker.vectors_of,
            self.X.parts,
            [target] * count,
            self.X.places,
            key=[f"linsep-targets-{uuid.uuid4().hex[:12]}-{i}" for i in self._numbers],
            pure=False,
        )

    def __reduce__(self) -> Any:
        raise TypeError("Rows on a cluster stay there: a function sent to them must not hold them.")

    def longest_sum(self, size: int) -> int:
        longest = max(_longest(fact, size) for fact in self.X.facts)
        return longest_ordered(longest, len(self.X.parts))

    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        """One round for all of them."""
        plain = not notes.get("writes")
        made = self._round(wanted, notes, plain=plain)
        return self._collected(made if plain else self._store_state(made, notes), wanted)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """One round, whose results come with the rows and the row state to prefetch."""
        made = self._round(wanted, notes, plain=False)
        found = self._picked(made, 1)
        totals = self._collected(self._store_state(made, notes), wanted)
        parts = self.rounds.results(found)
        self.rounds.traffic.received += bytes_of(parts)
        for _, prefetched in parts:
            if prefetched is not None:
                self._requests.store.add(*prefetched)
        for name in notes.get("prefetch_state", ()):
            self._fetched[name] = self._gathered(name)
        return totals, [one for part, _ in parts for one in part]

    def _round(self, wanted: Sequence[tuple[Sum, int]], notes: PassNotes, plain: bool) -> Any:
        blob = self._sent(
            ([fn for fn, _ in wanted], notes.get("prefetch_rows"), notes.get("merge"))
        )
        reads = notes.get("reads") or ()
        state = [self._state[name] for name in reads]
        return self.rounds.map(
            *("sum", on_worker.visit, self._numbers),
            *(self.X.parts, self._vectors, self._tasks, blob, *state),
            sizes=tuple(size for _, size in wanted),
            reads=tuple(reads),
            writes=tuple(notes.get("writes", ())),
            plain=plain,
        )

    def _sent(self, fn: Any) -> list[Any]:
        """A function for all partitions; a large one is sent once, then from worker to worker."""
        import cloudpickle  # type: ignore[import-untyped] # noqa: PLC0415 - comes with Dask

        blob: Any = cloudpickle.dumps(fn)
        traffic, count = self.rounds.traffic, len(self.X.parts)
        traffic.rounds += 1
        traffic.sent += len(blob) * count
        if len(blob) > LARGE:
            (key,) = self.rounds.keys("function", [0])
            blob = self.rounds.client.submit(on_worker.same, blob, key=key, pure=False)
        return [blob] * count

    def _picked(self, made: Any, at: int) -> Any:
        return self.rounds.map(f"pick{at}", on_worker.pick, self._numbers, made, at=at)

    def _store_state(self, made: Any, notes: PassNotes) -> Any:
        """Store futures of the row state that the round writes; return its sums."""
        for at, name in enumerate(notes.get("writes", ())):
            self._state[name] = self._picked(made, 2 + at)
            self._fetched.pop(name, None)
        return self._picked(made, 0)

    def _collected(self, sums: Any, wanted: Sequence[tuple[Any, int]]) -> list[FloatArray]:
        """The tree of sums (``layout.ordered``), a task for each node."""
        level, sizes = 0, [size for _, size in wanted]
        self.rounds.traffic.received += 8 * sum(sizes) * len(sums)
        while len(sums) > 1:
            level += 1
            groups = [list(sums[at : at + FAN]) for at in range(0, len(sums), FAN)]
            keys = self.rounds.keys(f"tree{level}", range(len(groups)))
            submit = self.rounds.client.submit
            sums = [
                submit(on_worker.total, group, key=key, pure=False)
                for group, key in zip(groups, keys, strict=True)
            ]
        total: FloatArray = np.array(self.rounds.results(sums)[0])
        return np.split(total, np.cumsum(sizes)[:-1])

    def fingerprint(self) -> tuple[Any, list[Any]]:
        """Checksums of rows and targets (one round); no vectors beside them."""
        return [self.X.starts.tolist(), self.apply(on_worker.checksums)], []

    def apply(self, fn: Callable[..., Any], reads: Sequence[str] = ()) -> list[Any]:
        """``fn(X, sign, offset, weight, labels, *state)`` of every partition (one round)."""
        blob = self._sent(fn)
        state = [self._state[name] for name in reads]
        futures = self.rounds.map(
            *("map", on_worker.apply, self._numbers),
            *(self.X.parts, self._vectors, self._tasks, blob, *state),
        )
        found = self.rounds.results(futures)
        self.rounds.traffic.received += bytes_of(found)
        return found

    def set_row_state(self, name: str, values: FloatArray) -> None:
        """Send every partition its part through the graph, so that the scheduler can recompute it."""
        starts = self.X.starts
        parts = [
            np.ascontiguousarray(values[..., starts[i] : starts[i + 1]]) for i in self._numbers
        ]
        self.rounds.traffic.sent += values.nbytes
        self._fetched.pop(name, None)
        what = f"{name}-{uuid.uuid4().hex[:8]}"
        self._state[name] = [
            self.rounds.client.submit(on_worker.same, part, key=key, pure=False)
            for part, key in zip(parts, self.rounds.keys(what, self._numbers), strict=True)
        ]

    def row_state(self, name: str) -> FloatArray:
        found = self._fetched.get(name)
        if found is None:
            self.rounds.traffic.rounds += 1
            found = self._gathered(name)
        return found

    def _gathered(self, name: str) -> FloatArray:
        """Row state on the client; the targets, which are mostly read next, are copied too."""
        self.targets.fetch()
        parts = self.rounds.results(self._state[name])
        self.rounds.traffic.received += bytes_of(parts)
        return np.concatenate(parts, axis=-1)

    def to_memory(self) -> Dataset:
        """Copy all rows to memory, or to the client's disk if they are too many."""
        if self.fits_memory():
            return self.sample(np.arange(self.n))
        from linsep.data.cluster.spill import spill  # noqa: PLC0415 - which knows this class

        return spill(self)

    def columns(self, chosen: IntArray) -> Memory:
        """Copy to memory: methods that ask for columns work on rows there."""
        return self.sample(np.arange(self.n)).columns(chosen)

    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        """Copy the given rows to memory (one round, unless the client has them)."""
        X, sign, offset, weight, labels = self._requests.rows(np.asarray(rows, dtype=np.int64))
        if factor is not None:
            weight = factor if weight is None else weight * factor
        return Memory(X, sign, offset, weight, labels)

    @property
    def largest_part(self) -> int:
        return max(fact.n for fact in self.X.facts)

    def close(self) -> None:
        """Release the row state on the workers; the rows belong to whoever opened them."""
        self._state.clear()
        self._fetched.clear()
        self._requests.store.clear()


def _longest(fact: Facts, size: int) -> int:
    """Bound on the terms added one after another within a partition."""
    if fact.sparse:
        return fact.n
    return longest_sum(
        dense_edges(fact.n, fact.d, np.dtype(fact.dtype).itemsize), fact.entries, size
    )
