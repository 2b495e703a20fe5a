"""The data set on a cluster: each pass is one communication round, and the rows stay on the workers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.engine import Column
from linsep.data.cluster.partition import Facts, Found, Target, Visit
from linsep.data.cluster.row_requests import RowRequests
from linsep.data.cluster.row_state import RowStates
from linsep.data.cluster.row_store import bytes_of
from linsep.data.cluster.rows import ClusterRows, RowVector
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
        self._state = RowStates(X.engine)
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
        sizes = [size for _, size in wanted]
        made = self._round(wanted, notes, sums_only=True)
        self.engine.traffic.received += 8 * sum(sizes) * len(self.X.facts)
        return _split(self.engine.total(made, sum(sizes)), sizes)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """Return several sums and the results of the blocks; also fetch declared rows and row state. One round."""
        sizes = [size for _, size in wanted]
        made = self._round(wanted, notes, sums_only=False)
        total, parts = self.engine.total_and_rest(made, sum(sizes))
        self.engine.traffic.received += 8 * sum(sizes) * len(parts) + bytes_of(parts)
        self._receive([Found(*part) for part in parts], notes)
        return _split(total, sizes), [one for part in parts for one in part[0]]

    def _receive(self, parts: Sequence[Found], notes: PassNotes) -> None:
        """Store the rows, row state and targets that the partitions sent with the results of a round."""
        for part in parts:
            if part.rows is not None:
                self._requests.store.add(*part.rows)
        for at, name in enumerate(notes.get("prefetch_state", ())):
            self._state.receive(name, [part.state[at] for part in parts])
        if parts[0].targets is not None:
            self.targets.receive([part.targets for part in parts if part.targets is not None])

    def _round(self, wanted: Sequence[tuple[Sum, int]], notes: PassNotes, sums_only: bool) -> Any:
        """Run a round and return the column of its answers; note where the row state that it writes is stored."""
        engine, reads = self.engine, notes.get("reads") or ()
        blob = self._sent(
            ([fn for fn, _ in wanted], notes.get("prefetch_rows"), notes.get("merge"))
        )
        state, entries = self._state.read(reads)
        columns = self.X.parts, self._vectors, self._tasks, blob, *state
        sizes, fetches = tuple(size for _, size in wanted), tuple(notes.get("prefetch_state", ()))
        what = Visit(
            sizes,
            tuple(zip(reads, entries, strict=True)),
            tuple(notes.get("writes", ())),
            sums_only=sums_only,
            fetches=fetches,
            fetches_targets=bool(fetches) and not self.targets.fetched,
        )

        def store() -> Column:
            only = replace(what, stores=True, sums_only=True)
            return engine.map("state", on_worker.visit, *columns, persist=True, what=only)

        if what.writes and not notes.get("rarely_read"):
            stored = replace(what, stores=True)
            made = engine.map("sum", on_worker.visit, *columns, persist=True, what=stored)
            self._state.write(what.writes, lambda: made)
            return engine.pick(made, 0)
        self._state.write(what.writes, store)
        persist = not (sums_only or engine.collects(sum(sizes)))
        return engine.map("sum", on_worker.visit, *columns, persist=persist, what=what)

    def _sent(self, fn: Any) -> Column:
        """Serialise a function and send it to all partitions."""
        blob = self.engine.dumps(fn)
        self.engine.traffic.rounds += 1
        self.engine.traffic.sent += len(blob) * len(self.X.facts)
        return self.engine.share("function", blob)

    def fingerprint(self) -> tuple[Any, list[Any]]:
        """Return the checksums of rows and targets (one round), and no further vectors."""
        return [self.X.starts.tolist(), self.apply(on_worker.checksums)], []

    def apply(self, fn: Callable[..., Any], reads: Sequence[str] = ()) -> list[Any]:
        """Return ``fn(X, sign, offset, weight, labels, *state)`` for every partition. One round."""
        blob = self._sent(fn)
        state, entries = self._state.read(reads)
        columns = self.X.parts, self._vectors, self._tasks, blob, *state
        made = self.engine.map("map", on_worker.apply, *columns, entries=entries)
        found = self.engine.collect(made)
        self.engine.traffic.received += bytes_of(found)
        return found

    def set_row_state(self, name: str, values: FloatArray) -> None:
        """Send every partition its part of the values."""
        cuts = pairwise(self.X.starts.tolist())
        parts = [np.ascontiguousarray(values[..., lo:hi]) for lo, hi in cuts]
        self.engine.traffic.sent += values.nbytes
        self._state.send(name, parts)

    def row_state(self, name: str) -> FloatArray:
        found = self._state.fetched(name)
        if found is None:
            self.engine.traffic.rounds += 1
            self.targets.fetch()  # they are usually read next
            found = self._state.fetch(name)
        return found

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
        self._requests.store.clear()


def _split(total: FloatArray, sizes: Sequence[int]) -> list[FloatArray]:
    """Split concatenated sums."""
    return np.split(total, np.cumsum(sizes)[:-1])


def _longest(fact: Facts, size: int) -> int:
    """Bound on the number of sequential additions within a partition."""
    if fact.sparse:
        return fact.n
    return longest_sum(
        dense_edges(fact.n, fact.d, np.dtype(fact.dtype).itemsize), fact.entries, size
    )
