"""Which back end holds the rows: memory, disk or the workers of a cluster."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.data.block import FloatArray
from linsep.data.cluster import Cluster, ClusterRows
from linsep.data.memory import Memory
from linsep.data.stored import StoredRows
from linsep.data.stream import Stream


def dataset(
    X: Any,
    sign: FloatArray | None = None,
    offset: FloatArray | None = None,
    weight: FloatArray | None = None,
    labels: npt.NDArray[np.int64] | None = None,
    n_threads: int | None = None,
) -> Memory | Stream | Cluster:
    """The rows with their targets, where they are."""
    back_end: Any = Stream if isinstance(X, StoredRows) else Memory
    if isinstance(X, ClusterRows):
        back_end = Cluster
    opened: Memory | Stream | Cluster = back_end(X, sign, offset, weight, labels, n_threads)
    return opened
