"""Targets of rows on a cluster; the vectors stay on the workers until the client reads one of them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data.cluster.partition import Target, Vectors
from linsep.data.cluster.row_requests import RowRequests
from linsep.data.cluster.rows import ClusterRows, RowVector


def target_of(sign: Any, offset: Any, weight: Any, labels: Any) -> Target:
    """Return the description from which the workers compute the four vectors of their partitions."""
    chosen = labels if labels is not None else sign
    factors = None if weight is None else weight.target.factors
    return Target(
        None if chosen is None else chosen.target.positive,
        labels is not None,
        factors,
        weight is not None and weight.target.weighted,
        *(() if offset is None else (True, offset.target.centre, offset.target.exponent)),
    )


class ClusterTargets:
    """Signs, offsets, weights and labels of all rows. Reading one of them fetches all. One round."""

    def __init__(
        self,
        X: ClusterRows,
        vectors: Sequence[RowVector | None],
        parts: Any,
        requests: RowRequests,
    ) -> None:
        self._X, self._parts, self._requests = X, parts, requests
        self._vectors = dict(zip(("sign", "offset", "weight", "labels"), vectors, strict=True))

    @property
    def sign(self) -> FloatArray:
        """Sign of each row: -1 or +1; 1 for a regression."""
        found = self._read("sign")
        return np.ones(len(self._X)) if found is None else found

    @property
    def offset(self) -> FloatArray | None:
        """Offset of the margin of each row, or None for zeros."""
        offset: FloatArray | None = self._read("offset")
        return offset

    @property
    def weight(self) -> FloatArray | None:
        """Sample weight of each row, or None for ones."""
        weight: FloatArray | None = self._read("weight")
        return weight

    @property
    def labels(self) -> IntArray | None:
        """Class number of each row, or None."""
        labels: IntArray | None = self._read("labels")
        return labels

    def _read(self, name: str) -> Any:
        vector = self._vectors[name]
        if vector is None:
            return None
        if not vector.fetched:
            self._X.traffic.rounds += 1
            self.fetch()
        return np.asarray(vector)

    def fetch(self) -> None:
        """Copy all four vectors to the client, unless it has them already."""
        if not self.fetched:
            self.receive(self._X.engine.collect(self._parts))

    @property
    def fetched(self) -> bool:
        """Whether the client has copies of all vectors."""
        return all(vector is None or vector.fetched for vector in self._vectors.values())

    def receive(self, parts: Sequence[Vectors]) -> None:
        """Store copies of all four vectors at the client, given the partitions' parts."""
        columns = zip(*parts, strict=True)
        for vector, column in zip(self._vectors.values(), columns, strict=True):
            if vector is not None and not vector.fetched:
                vector.set(np.concatenate(column))
                self._X.traffic.received += 8 * len(self._X)

    def vectors(self) -> tuple[Any, Any, Any, Any]:
        """Return signs, offsets, weights and labels, which stay on the workers until they are read."""
        sign, offset, weight, labels = self._vectors.values()
        return sign, offset, weight, labels

    @property
    def has_offset(self) -> bool:
        """Whether the margins have offsets."""
        return self._vectors["offset"] is not None

    def total_weight(self) -> float:
        """Return the sum of the sample weights, without communication."""
        weight, facts = self._vectors["weight"], self._X.facts
        if weight is None:
            return float(len(self._X))
        if weight.target.factors is None:
            return sum(fact.n if fact.weight is None else fact.weight[2] for fact in facts)
        factors = np.array(weight.target.factors)
        pairs = zip(facts, self._X.places, strict=True)
        return float(sum(factors[place] @ fact.totals for fact, place in pairs))

    def class_counts(self, k: int) -> IntArray:
        """Return the number of rows of each class, without communication."""
        counts: IntArray = self._requests.counts(k).sum(axis=0)
        return counts

    def rows_of_rank(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """Return for each class c the numbers of its ``ranks[c]``-th rows, and fetch these rows. One round."""
        return self._requests.find(ranks)
