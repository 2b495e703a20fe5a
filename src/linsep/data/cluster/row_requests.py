"""Requests of the client for single rows of the partitions, with a store of the rows it has received."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linsep.arrays import IntArray, stack_rows
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.partition import Partition, Target
from linsep.data.cluster.row_store import Columns, RowStore, bytes_of
from linsep.data.cluster.rows import ClusterRows

FEW = 1 << 20  # larger requests, in entries, are not stored on the client


class RowRequests:
    """Requests for some of the rows with their targets, answered from a store if possible."""

    def __init__(self, X: ClusterRows, target: Target, vectors: Any) -> None:
        self._X, self._target, self._vectors = X, target, vectors
        self._engine, self._numbers = X.engine, range(len(X.facts))
        # Rows that were sent when the partitions were opened; added to the store on the first request.
        self._prefetched = X.prefetched
        self.store = RowStore()

    def rows(self, rows: IntArray) -> Columns:
        """Return the given rows with their targets. One round, unless they are in the store."""
        if self._prefetched is not None:
            self._receive(self._prefetched)
            self._prefetched = None
        missing = self.store.missing(rows)
        if len(missing) == len(rows) and len(rows) * self._X.shape[1] > FEW:
            return self._take(rows)
        if len(missing):
            self.store.add(missing, self._take(missing))
        return self.store.take(rows)

    def _receive(self, prefetched: list[tuple[IntArray, Partition]]) -> None:
        """Store rows that were prefetched when the partitions were opened."""
        numbers, columns = [], []
        parts = zip(prefetched, self._X.starts[:-1], self._X.places, strict=True)
        for (rows, part), start, place in parts:
            numbers.append(rows + start)
            columns.append((part.X, *on_worker.vectors_of(part, place, self._target)))
        found = tuple(stack_rows(column) for column in zip(*columns, strict=True))
        self.store.add(np.concatenate(numbers), found)

    def _take(self, rows: IntArray) -> Columns:
        """Fetch rows from their partitions. One round."""
        starts = self._X.starts
        cuts = np.searchsorted(rows, starts)
        asked = [i for i in self._numbers if cuts[i + 1] > cuts[i]] or [0]
        local = [rows[cuts[i] : cuts[i + 1]] - starts[i] for i in self._numbers]
        engine = self._engine
        engine.traffic.rounds += 1
        engine.traffic.sent += rows.nbytes
        columns = self._X.parts, self._vectors, local
        found = engine.collect(engine.map("take", on_worker.take, *columns, among=asked))
        engine.traffic.received += bytes_of(found)
        return tuple(stack_rows(column) for column in zip(*found, strict=True))

    def counts(self, k: int) -> IntArray:
        """Return the number of rows of each of k classes in each partition, without communication."""
        found = np.zeros((len(self._X.facts), k), dtype=np.int64)
        coupled, positive = self._target.coupled, self._target.positive
        for i, (fact, place) in enumerate(zip(self._X.facts, self._X.places, strict=True)):
            if fact.counts is None or place is None or not (coupled or positive is not None):
                found[i, 1] = fact.n
            elif coupled:
                found[i, place] = fact.counts
            else:
                ours = place == positive
                found[i] = fact.counts[~ours].sum(), fact.counts[ours].sum()
        return found

    def find(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """Return for each class c the numbers of its ``ranks[c]``-th rows, and store these rows. One round."""
        counts = self.counts(len(ranks))
        before = np.vstack([np.zeros(len(ranks), dtype=np.int64), np.cumsum(counts, axis=0)])
        cuts = [np.searchsorted(wanted, before[:, c]) for c, wanted in enumerate(ranks)]
        local = [
            [
                w[cut[i] : cut[i + 1]] - before[i, c]
                for c, (w, cut) in enumerate(zip(ranks, cuts, strict=True))
            ]
            for i in self._numbers
        ]
        engine, X = self._engine, self._X
        engine.traffic.rounds += 1
        engine.traffic.sent += sum(wanted.nbytes for wanted in ranks)
        found = engine.collect(engine.map("find", on_worker.find, X.parts, self._vectors, local))
        engine.traffic.received += bytes_of(found)
        first = X.starts
        numbers = np.concatenate([rows + first[i] for i, (_, rows, _) in enumerate(found)])
        columns = zip(*(columns for _, _, columns in found), strict=True)
        self.store.add(numbers, tuple(stack_rows(column) for column in columns))
        return [
            np.concatenate([by_class[c] + first[i] for i, (by_class, _, _) in enumerate(found)])
            for c in range(len(ranks))
        ]
