"""Rows of data in blocks, and the one thing that is ever asked of them: a sum over all rows."""

from linsep.data.block import Block
from linsep.data.cluster import Cluster
from linsep.data.dataset import AT_HAND, Dataset
from linsep.data.journal import checkpoint
from linsep.data.memory import Memory, readable
from linsep.data.open_rows import dataset
from linsep.data.recorded import recorded
from linsep.data.scanning import Scan, scan
from linsep.data.stored import StoredRows
from linsep.data.stream import Stream

__all__ = [
    "AT_HAND",
    "Block",
    "Cluster",
    "Dataset",
    "Memory",
    "Scan",
    "StoredRows",
    "Stream",
    "checkpoint",
    "dataset",
    "readable",
    "recorded",
    "scan",
]
