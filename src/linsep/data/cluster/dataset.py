"""The data set on a cluster: each pass is one communication round, and the rows stay on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.engine import Column
from linsep.data.cluster.partition import Target
from linsep.data.cluster.row_requests import RowRequests
from linsep.data.cluster.row_store import bytes_of
from linsep.data.cluster.rows import ClusterRows, Facts, RowVector
from linsep.data.cluster.targets import ClusterTargets, target_of
from linsep.data.dataset import Dataset, PassNotes, Sum
from linsep.data.layout import dense_edges, longest_ordered, longest_sum
from linsep.data.location import Location
from linsep.data.memory import Memory

if TYPE_CHECKING:
    from typing import Unpack


class Cluster(Dataset):
    """Data set on the workers of a cluster."""

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
        self.X, self.engine = X, X.engine
        self.n, self.d = X.shape
        self.sparse, self.n_entries = X.sparse, X.n_entries
        self.n_threads = n_threads or 1
        self._state: dict[str, Column] = {}
        self._fetched: dict[str, FloatArray] = {}  # row state that was copied to the client
        self._tasks = X.tasks(self.n_threads)
        self._given = vectors = sign, offset, weight, labels
        target = target_of(*vectors)
        self._vectors = self._vectors_of(target)
        self._requests = RowRequests(X, target, self._vectors)
        self.targets = ClusterTargets(X, vectors, self._vectors, self._requests)

    def _vectors_of(self, target: Target) -> Column:
        """Return the targets of each partition, computed and stored by its worker."""
        return self.engine.map(
            "targets", on_worker.vectors_of, self.X.parts, self.X.places, target=target
        )

    def __reduce__(self) -> Any:
        raise TypeError("Rows on a cluster stay there: a function sent to them must not hold them.")

    def longest_sum(self, size: int) -> int:
        longest = max(_longest(fact, size) for fact in self.X.facts)
        return longest_ordered(longest, len(self.X.facts))

    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        """Return several sums over all partitions. One round."""
        plain = not notes.get("writes")
        made = self._round(wanted, notes, plain=plain)
        return self._collected(made if plain else self._store_state(made, notes), wanted)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """Return several sums and the results of the blocks; also fetch declared rows and row state. One round."""
        made = self._round(wanted, notes, plain=False)
        found = self.engine.pick(made, 1)
        totals = self._collected(self._store_state(made, notes), wanted)
        parts = self.engine.collect(found)
        self.engine.traffic.received += bytes_of(parts)
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
        return self.engine.map(
            *("sum", on_worker.visit),
            *(self.X.parts, self._vectors, self._tasks, blob, *state),
            persist=not plain,
            sizes=tuple(size for _, size in wanted),
            reads=tuple(reads),
            writes=tuple(notes.get("writes", ())),
            plain=plain,
        )

    def _sent(self, fn: Any) -> Column:
        """Serialise a function and send it to all partitions."""
        blob = self.engine.dumps(fn)
        self.engine.traffic.rounds += 1
        self.engine.traffic.sent += len(blob) * len(self.X.facts)
        return self.engine.share("function", blob)

    def _store_state(self, made: Any, notes: PassNotes) -> Any:
        """Store references to the row state that the round writes, and return the column of its sums."""
        for at, name in enumerate(notes.get("writes", ())):
            self._state[name] = self.engine.pick(made, 2 + at)
            self._fetched.pop(name, None)
        return self.engine.pick(made, 0)

    def _collected(self, sums: Column, wanted: Sequence[tuple[Any, int]]) -> list[FloatArray]:
        """Return the totals of the partitions' sums, added in order and split by function."""
        sizes = [size for _, size in wanted]
        self.engine.traffic.received += 8 * sum(sizes) * len(self.X.facts)
        return np.split(self.engine.total(sums, sum(sizes)), np.cumsum(sizes)[:-1])

    def fingerprint(self) -> tuple[Any, list[Any]]:
        """Return the checksums of rows and targets (one round), and no further vectors."""
        return [self.X.starts.tolist(), self.apply(on_worker.checksums)], []

    def apply(self, fn: Callable[..., Any], reads: Sequence[str] = ()) -> list[Any]:
        """Return ``fn(X, sign, offset, weight, labels, *state)`` for every partition. One round."""
        blob = self._sent(fn)
        state = [self._state[name] for name in reads]
        columns = self.X.parts, self._vectors, self._tasks, blob, *state
        found = self.engine.collect(self.engine.map("map", on_worker.apply, *columns))
        self.engine.traffic.received += bytes_of(found)
        return found

    def set_row_state(self, name: str, values: FloatArray) -> None:
        """Send every partition its part of the values."""
        cuts = pairwise(self.X.starts.tolist())
        parts = [np.ascontiguousarray(values[..., lo:hi]) for lo, hi in cuts]
        self.engine.traffic.sent += values.nbytes
        self._fetched.pop(name, None)
        self._state[name] = self.engine.send(name, parts)

    def row_state(self, name: str) -> FloatArray:
        found = self._fetched.get(name)
        if found is None:
            self.engine.traffic.rounds += 1
            found = self._gathered(name)
        return found

    def _gathered(self, name: str) -> FloatArray:
        """Copy row state to the client, and the targets too, because they are usually read next."""
        self.targets.fetch()
        parts = self.engine.collect(self._state[name])
        self.engine.traffic.received += bytes_of(parts)
        return np.concatenate(parts, axis=-1)

    def stays_remote(self) -> bool:
        """Return whether the client has neither memory nor a directory for all rows."""
        from linsep.data.cluster.spill import DIRECTORY  # noqa: PLC0415 - it imports this class

        return not self.fits_memory() and self.engine.setting(DIRECTORY) is None

    def to_local(self) -> Dataset:
        """Copy all rows to memory, or to the client's disk if they are too many."""
        if self.fits_memory():
            return self.sample(np.arange(self.n))
        from linsep.data.cluster.spill import spill  # noqa: PLC0415 - it imports this class

        return spill(self)

    def columns(self, chosen: IntArray) -> Cluster:
        """Copy the chosen features on the workers. No round, because nothing returns to the client."""
        rows = self.X.columns(chosen)
        sign, offset, weight, labels = (
            None if v is None else RowVector(rows, v.target) for v in self._given
        )
        return Cluster(rows, sign, offset, weight, labels, self.n_threads)

    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        """Copy the given rows to memory. One round, unless the client already has them."""
        X, sign, offset, weight, labels = self._requests.rows(np.asarray(rows, dtype=np.int64))
        if factor is not None:
            weight = factor if weight is None else weight * factor
        return Memory(X, sign, offset, weight, labels)

    @property
    def largest_part(self) -> int:
        return max(fact.n for fact in self.X.facts)

    def close(self) -> None:
        """Release the row state on the workers; the rows stay there, because the caller owns them."""
        self._state.clear()
        self._fetched.clear()
        self._requests.store.clear()


def _longest(fact: Facts, size: int) -> int:
    """Bound on the number of sequential additions within a partition."""
    if fact.sparse:
        return fact.n
    return longest_sum(
        dense_edges(fact.n, fact.d, np.dtype(fact.dtype).itemsize), fact.entries, size
    )
