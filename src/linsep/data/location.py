"""The location of rows (memory, disk or cluster), which replaces type checks throughout the library."""

from __future__ import annotations

from enum import Enum
from typing import Any

import numpy as np


class Location(Enum):
    """Location of rows, which determines the cost of a pass over them."""

    MEMORY = "memory"  #: in this process: a pass reads memory
    DISK = "disk"  #: in files: a pass reads all of them
    CLUSTER = "cluster"  #: on cluster workers: a pass is one communication round that returns sums


ENGINES = {"dask": "dask", "dask_expr": "dask", "distributed": "dask", "pyspark": "spark"}
"""Module that a collection or client comes from, and the engine of ``data.cluster.engines`` that reads it."""


def location_of(X: Any) -> Location:
    """Return the location of rows, or of anything that can be opened as rows.

    Classes of linsep declare it as a class attribute ``location``. Dask collections, lists of delayed or future
    partitions, and Spark data frames are on a cluster. Everything else is in memory.
    """
    if type(X) is np.ndarray:
        return Location.MEMORY
    known = getattr(type(X), "location", None)
    if isinstance(known, Location):
        return known
    parts = X if isinstance(X, list | tuple) and X else (X,)
    remote = all(_top_module(part) in ENGINES for part in parts)
    return Location.CLUSTER if remote else Location.MEMORY


def engine_name(X: Any) -> str:
    """Return the name of the engine that reads X: a collection, a list of partitions, or a client of a cluster."""
    return ENGINES[_top_module(X[0] if isinstance(X, list | tuple) else X)]


def _top_module(X: Any) -> str:
    return type(X).__module__.partition(".")[0]
