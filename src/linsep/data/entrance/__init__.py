"""Validation and conversion of user input (arrays, sparse matrices, frames, scans, Dask and Spark collections)."""
