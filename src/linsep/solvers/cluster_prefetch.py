"""Predict the pilot rows of a fit on a cluster before the data are read.

The workers return these rows when they open the partitions, which saves a round. If the classes turn out to be
imbalanced, the solver draws other rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import IntArray
from linsep.data import Location
from linsep.data.dataset import may_be_copied
from linsep.penalties import ElasticNet
from linsep.solvers import sampling
from linsep.solvers.interior import kinked, sifting
from linsep.solvers.newton import cluster as newton_cluster


@dataclass
class _UnopenedRows:
    """Size of a data set of dense rows that is not open yet."""

    n: int
    d: int
    location: Location = Location.CLUSTER

    @property
    def n_entries(self) -> int:
        return self.n * self.d


def pilot_rows(
    loss: Any, penalty: ElasticNet, solver: str, sizes: Sequence[int], d: int, seed: int
) -> IntArray:
    """Return the row numbers of the pilot for dense rows in partitions of these sizes; empty without a pilot."""
    n, m = sum(sizes), 0
    data = _UnopenedRows(n, d)
    worthwhile = newton_cluster.worthwhile(d, max(sizes))
    if penalty.l1 > 0.0:
        few = loss.smooth and not may_be_copied(n * d) and solver in ("auto", "working-set")
        m = newton_cluster.pilot_rows(data) if few and worthwhile else 0
    elif penalty.l2 == 0.0 or n <= d:
        pass
    elif kinked.covers(loss):
        some = sifting.pilot_rows(data)
        if solver in ("auto", "sifting") and n * d >= sifting.ENTRIES and 3 * some <= n:
            m = some
    elif loss.smooth and solver in ("auto", "newton-rounds"):
        m = newton_cluster.pilot_rows(data) if worthwhile else 0
    if m >= n:
        return np.arange(n)
    return sampling.sample_rows(n, m, np.random.default_rng(seed)) if m else np.zeros(0, np.int64)
