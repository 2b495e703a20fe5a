"""One entrance: arrays, sparse matrices, frames, scans of files and Dask collections become rows with targets."""
