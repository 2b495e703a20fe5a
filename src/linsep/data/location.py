"""Where rows are stored: one fact that replaces tests of types."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class Location(Enum):
    """Where rows are stored, and what one pass over them costs."""

    MEMORY = "memory"  #: in this process: a pass reads memory
    DISK = "disk"  #: in files: a pass reads all of them
    CLUSTER = (
        "cluster"  #: on the workers of a Dask cluster: a pass is one round, and only sums return
    )


def location_of(X: Any) -> Location:
    """Location of rows, or of anything that can be opened as rows.

    Classes of linsep declare it as a class attribute ``location``. Dask collections, and lists of delayed or
    future partitions, are on a cluster. Everything else is in memory.
    """
    if type(X) is np.ndarray:
        return Location.MEMORY
    known = getattr(type(X), "location", None)
    if isinstance(known, Location):
        return known
    if isinstance(X, list | tuple) and X:
        return Location.CLUSTER if all(map(_of_dask, X)) else Location.MEMORY
    return Location.CLUSTER if _of_dask(X) else Location.MEMORY


def _of_dask(X: Any) -> bool:
    return type(X).__module__.split(".")[0] in ("dask", "dask_expr", "distributed")
