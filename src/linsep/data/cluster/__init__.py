"""Data sets on a Dask or Spark cluster: the rows stay on the workers, and each pass is one communication round.

A round sends a small function to every partition and adds the results in a tree of fixed shape
(``layout.ordered``): neighbours first, in the order of the partitions. Results are bit-identical for any number of
workers, because neither the assignment of partitions nor the order of completion affects the additions.

``engine`` defines the operations that a cluster must provide; ``engines`` has one module for each library, and only
these import the library, on first use.
"""

from linsep.data.cluster.dataset import Cluster
from linsep.data.cluster.engine import Traffic
from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.opening import (
    MappedRows,
    PersistedRows,
    Prefetch,
    open_rows,
    partition_results,
    persist,
    predict_lazily,
    statistics_of,
)
from linsep.data.cluster.partition import Facts, Partition
from linsep.data.cluster.rows import ClusterRows, RowVector

__all__ = [
    "Cluster",
    "ClusterRows",
    "ClusterScan",
    "Facts",
    "MappedRows",
    "Partition",
    "PersistedRows",
    "Prefetch",
    "RowVector",
    "Traffic",
    "open_rows",
    "partition_results",
    "persist",
    "predict_lazily",
    "statistics_of",
]
