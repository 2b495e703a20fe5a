"""Data on a Dask cluster: the rows stay on the workers, and each pass is one round.

A round sends a small function to every partition and adds up the results in a tree of fixed shape
(``layout.ordered``): neighbours first, in the order of the partitions. Which worker holds a partition, how many
there are and which finishes first plays no part in it, so it has the same bits for any number of them.

Partitions and row state (the curvatures of the last sweep) are results of tasks. When a worker dies the scheduler
recomputes what it held, from the user's own graph.

Only this module imports Dask, and only when it is needed.
"""

from linsep.data.cluster.dask_input import connected, open_rows
from linsep.data.cluster.dataset import Cluster
from linsep.data.cluster.files import ClusterScan
from linsep.data.cluster.partition import Partition
from linsep.data.cluster.persisted import PersistedRows, partition_results, persist
from linsep.data.cluster.predictions import predict_lazily
from linsep.data.cluster.rounds import Traffic
from linsep.data.cluster.rows import ClusterRows, Facts, RowVector

__all__ = [
    "Cluster",
    "ClusterRows",
    "ClusterScan",
    "Facts",
    "Partition",
    "PersistedRows",
    "RowVector",
    "Traffic",
    "connected",
    "open_rows",
    "partition_results",
    "persist",
    "predict_lazily",
]
