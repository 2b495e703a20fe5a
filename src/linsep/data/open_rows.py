"""Construction of a data set for the location of its rows: memory, disk or the workers of a cluster."""

from __future__ import annotations

from typing import Any

from linsep.data.cluster import Cluster
from linsep.data.disk import Disk
from linsep.data.location import Location, location_of
from linsep.data.memory import Memory

_BACK_ENDS: dict[Location, Any] = {
    Location.MEMORY: Memory,
    Location.DISK: Disk,
    Location.CLUSTER: Cluster,
}


def dataset(
    X: Any,
    sign: Any = None,
    offset: Any = None,
    weight: Any = None,
    labels: Any = None,
    n_threads: int | None = None,
) -> Memory | Disk | Cluster:
    """Return a data set of the rows and their targets, at their location."""
    kind = _BACK_ENDS[location_of(X)]
    found: Memory | Disk | Cluster = kind(X, sign, offset, weight, labels, n_threads)
    return found
