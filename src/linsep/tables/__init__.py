"""Files and frames become tables, and tables become numbers."""

from linsep.tables.libsvm import LibsvmData, read_libsvm

__all__ = ["LibsvmData", "read_libsvm"]
