"""Tables with columns of numbers, text and times: reading them from files and frames, and encoding them as matrices."""

from linsep.data.files.libsvm import LibsvmData, read_libsvm
from linsep.tables.encoder import Encoder, Schema
from linsep.tables.frames import from_frame
from linsep.tables.table import Table
from linsep.tables.table_files import read_table

__all__ = ["Encoder", "LibsvmData", "Schema", "Table", "from_frame", "read_libsvm", "read_table"]
