"""One reader of CSV, Parquet, Arrow, LIBSVM and NumPy files, for tables in memory and for scans of any size."""
