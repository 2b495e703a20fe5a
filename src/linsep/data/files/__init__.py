"""Readers of CSV, Parquet, Arrow, LIBSVM and NumPy files, shared by tables in memory and by scans of any size."""
