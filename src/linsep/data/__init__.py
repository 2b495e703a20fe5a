"""Data sets in memory, on disk or on a cluster: rows in blocks, and bit-identical sums over all rows."""

from linsep.data.block import Block
from linsep.data.cluster import Cluster
from linsep.data.dataset import Dataset
from linsep.data.disk import Disk
from linsep.data.entrance.opened import Opened, open
from linsep.data.journal import checkpoint
from linsep.data.location import Location, location_of
from linsep.data.memory import Memory, readable
from linsep.data.open_rows import dataset
from linsep.data.recorded import recorded
from linsep.data.scanning import Scan, scan
from linsep.data.stored import StoredRows
from linsep.data.targets import Targets

__all__ = [
    "Block",
    "Cluster",
    "Dataset",
    "Disk",
    "Location",
    "Memory",
    "Opened",
    "Scan",
    "StoredRows",
    "Targets",
    "checkpoint",
    "dataset",
    "location_of",
    "open",
    "readable",
    "recorded",
    "scan",
]
