"""Rows that the client asks the partitions for, and those that are here already."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.at_hand import AtHand, Columns, bytes_of, stacked
from linsep.data.cluster.partition import Partition, Target
from linsep.data.cluster.rows import ClusterRows

IntArray = npt.NDArray[np.int64]

FEW = 1 << 20  # numbers of rows that stay here once they have come


class Asking:
    """The way to some of the rows, with the vectors of the ``target`` that belong to them."""

    def __init__(self, X: ClusterRows, target: Target, aims: Any) -> None:
        self._X, self._target, self._aims = X, target, aims
        self._rounds, self._numbers = X.rounds, range(len(X.parts))
        self._brought = X.brought  # with the opening, until somebody asks for rows
        self.at_hand = AtHand()

    def rows(self, rows: IntArray) -> Columns:
        """The given rows (one round, unless they are here)."""
        if self._brought is not None:
            self._receive(self._brought)
            self._brought = None
        missing = self.at_hand.missing(rows)
        if len(missing) == len(rows) and len(rows) * self._X.shape[1] > FEW:
            return self._taken(rows)
        if len(missing):
            self.at_hand.add(missing, self._taken(missing))
        return self.at_hand.take(rows)

    def _receive(self, brought: list[tuple[IntArray, Partition]]) -> None:
        """Put rows at hand that came when the partitions were opened."""
        numbers, columns = [], []
        parts = zip(brought, self._X.starts[:-1], self._X.places, strict=True)
        for (rows, part), start, place in parts:
            numbers.append(rows + start)
            columns.append((part.X, *on_worker.vectors(on_worker.aim(part, self._target, place))))
        found = tuple(stacked(column) for column in zip(*columns, strict=True))
        self.at_hand.add(np.concatenate(numbers), found)

    def _taken(self, rows: IntArray) -> Columns:
        """Rows from their partitions (one round)."""
        starts = self._X.starts
        cuts = np.searchsorted(rows, starts)
        asked = [i for i in self._numbers if cuts[i + 1] > cuts[i]] or [0]
        local = [rows[cuts[i] : cuts[i + 1]] - starts[i] for i in asked]
        self._rounds.traffic.rounds += 1
        self._rounds.traffic.sent += rows.nbytes
        futures = self._rounds.map(
            *("take", on_worker.take, asked),
            *([self._X.parts[i] for i in asked], [self._aims[i] for i in asked], local),
        )
        found = self._rounds.results(futures)
        self._rounds.traffic.received += bytes_of(found)
        return tuple(stacked(column) for column in zip(*found, strict=True))

    def counts(self, k: int) -> IntArray:
        """Rows of each of k classes in each partition, from what they said when they were opened."""
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
        """For each class c the numbers of the rows that are the ``ranks[c]``-th of it; they come along (one round)."""
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
        rounds, X = self._rounds, self._X
        rounds.traffic.rounds += 1
        rounds.traffic.sent += sum(wanted.nbytes for wanted in ranks)
        asked = rounds.map("find", on_worker.find, self._numbers, X.parts, self._aims, local)
        found = rounds.results(asked)
        rounds.traffic.received += bytes_of(found)
        first = X.starts
        numbers = np.concatenate([rows + first[i] for i, (_, rows, _) in enumerate(found)])
        columns = zip(*(columns for _, _, columns in found), strict=True)
        self.at_hand.add(numbers, tuple(stacked(column) for column in columns))
        return [
            np.concatenate([by_class[c] + first[i] for i, (by_class, _, _) in enumerate(found)])
            for c in range(len(ranks))
        ]
