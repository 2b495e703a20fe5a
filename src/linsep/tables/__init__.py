"""Files and frames become tables, and tables become numbers."""

from linsep.tables.encoder import Encoder, Schema
from linsep.tables.libsvm import LibsvmData, read_libsvm
from linsep.tables.reading import read_table
from linsep.tables.table import Table, from_frame

__all__ = ["Encoder", "LibsvmData", "Schema", "Table", "from_frame", "read_libsvm", "read_table"]
