"""Rows with labels and weights, from which the training and held-out rows of a grid are taken."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data import Location, location_of
from linsep.data.cluster import PersistedRows, Traffic
from linsep.pipelines import take_rows


@dataclass(frozen=True, eq=False)
class LabelledRows:
    """Rows with labels or numeric targets, and weights if there are any, in memory, on disk or on a cluster."""

    X: Any
    y: npt.NDArray[Any]
    weight: FloatArray | None
    traffic: Traffic | None = None  #: of rows that were fetched from a cluster

    @property
    def location(self) -> Location:
        """Location of the rows: memory, disk or cluster."""
        return location_of(self.X)

    def take(self, rows: IntArray | None) -> LabelledRows:
        """Return the given rows, or all for None. On disk and on a cluster, the other rows stay with weight 0."""
        if rows is None:
            return self
        if self.location is not Location.MEMORY:
            return replace(self, weight=self.weights_within(rows))
        weight = None if self.weight is None else self.weight[rows]
        return LabelledRows(take_rows(self.X, rows), self.y[rows], weight, self.traffic)

    def send(self, rows: IntArray, purpose: str) -> LabelledRows:
        """Return ``take(rows)``; on a cluster, labels and weights are sent to the workers once for all values of C."""
        if not isinstance(self.X, PersistedRows):
            return self.take(rows)
        y: Any = self.X.send("y", self.y, lambda: self.y)
        weight: Any = self.X.send(purpose, rows, lambda: self.weights_within(rows))
        return LabelledRows(self.X, y, weight)

    def weights_within(self, rows: IntArray) -> FloatArray:
        """Return the weights of all n rows, set to 0 outside the given ones."""
        out = np.zeros(len(self.y))
        out[rows] = 1.0 if self.weight is None else self.weight[rows]
        return out
