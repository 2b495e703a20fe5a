"""The rows that a fit on a cluster will ask for first, as far as that can be told before the rows are looked at.

They come along when the partitions are opened, which saves a round. If the classes turn out to be uneven, others
are drawn.
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
class _Ahead:
    """Dense rows, of which no more is known."""

    n: int
    d: int
    location: Location = Location.CLUSTER

    @property
    def n_entries(self) -> int:
        return self.n * self.d


def pilot_rows(
    loss: Any, penalty: ElasticNet, solver: str, sizes: Sequence[int], d: int, seed: int
) -> IntArray:
    """Numbers of the rows of the pilot, for dense rows in parts of these sizes; empty if there is no pilot."""
    n, m = sum(sizes), 0
    data = _Ahead(n, d)
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
    return sampling.evenly(n, m, np.random.default_rng(seed)) if m else np.zeros(0, np.int64)
