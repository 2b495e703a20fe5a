"""Data on a cluster: the rows stay on the workers, and each pass is one round.

A round sends a small function to every partition and adds up the results in a tree of fixed shape
(``layout.ordered``): neighbours first, in the order of the partitions. Which worker holds a partition, how many
there are and which finishes first plays no part in it, so it has the same bits for any number of them.

``engine`` says what a cluster must be able to do; ``engines`` holds one module for each library that does it, and only
these import the library, when it is needed.
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
from linsep.data.cluster.partition import Partition
from linsep.data.cluster.rows import ClusterRows, Facts, RowVector

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
