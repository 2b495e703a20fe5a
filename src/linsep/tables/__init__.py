"""Files and frames become tables, and tables become numbers."""

from linsep.tables.encoder import Encoder, Schema
from linsep.tables.frames import from_frame
from linsep.tables.libsvm import LibsvmData, read_libsvm
from linsep.tables.reading import read_table
from linsep.tables.table import Table

__all__ = ["Encoder", "LibsvmData", "Schema", "Table", "from_frame", "read_libsvm", "read_table"]
