"""Conversion of Spark data frames to one Arrow table per partition, and of its columns to matrices and vectors.

Rows are read from the data frame as Arrow batches (``mapInArrow``), so they are never converted to Python objects.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.data.location import Location, location_of
from linsep.errors import BadInput

LARGEST = (1 << 31) - (1 << 20)  # largest value in bytes that Spark can transfer
_RAW = "linsep_raw"


def names_column(v: Any) -> bool:
    """Return whether y or a weight is a column of the frame, given by name or as an expression."""
    if isinstance(v, str):
        return True
    if location_of(v) is not Location.CLUSTER:
        return False
    if hasattr(v, "mapInArrow"):
        raise BadInput(
            "y and sample_weight must be columns of X: Spark does not know which rows of two data frames belong "
            "together. Give the name of a column, fit(frame, 'label'), or an expression of its columns."
        )
    return hasattr(v, "alias")


def expression_of(X: Any, v: Any, name: str) -> Any:
    if not isinstance(v, str):
        return v
    if v not in X.columns:
        raise BadInput(f"{name}={v!r} is not a column of X: {', '.join(X.columns)}.")
    return X[quoted(v)]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def raw_tables(frame: Any) -> Any:
    """Return an RDD whose only element per partition is the Arrow table of its rows."""
    packed = frame.mapInArrow(pack, f"{_RAW} binary")
    return packed.rdd.mapPartitions(unpack)


def pack(batches: Iterator[Any]) -> Iterator[Any]:
    """Serialise Arrow batches to bytes, on an executor."""
    import pyarrow as pa  # noqa: PLC0415

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], type=pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=[_RAW])


def unpack(rows: Iterator[Any]) -> Iterator[Any]:
    """Yield one table of all batches of a partition, or None if it has no rows, on an executor."""
    import pyarrow as pa  # noqa: PLC0415

    tables = [pa.ipc.open_stream(bytes(row[_RAW])).read_all() for row in rows]
    tables = [table for table in tables if table.num_rows]
    yield pa.concat_tables(tables) if tables else None


def vector_of(table: Any, name: str) -> Any:
    """Return a column as an array, on an executor."""
    return np.zeros(0) if table is None else table[name].to_numpy()


def holds_vectors(kind: Any) -> bool:
    return (
        kind.typeName() in ("vector", "vectorudt", "udt", "array")
        or "Vector" in type(kind).__name__
    )


def features_table(table: Any, names: Sequence[str]) -> Any:
    """Return the features of a partition, or an array without rows if it is empty, on an executor."""
    if table is None:
        return np.zeros((0, len(names)))
    if table.nbytes > LARGEST:
        raise BadInput(
            f"A partition holds {table.nbytes:,} bytes, and Spark moves {LARGEST:,} at once: repartition the frame."
        )
    return table.select(list(names))


def count_entries(table: Any, name: str) -> tuple[int, int]:
    """Count the nonzero entries and all entries of the vectors of a partition, on an executor."""
    if table is None:
        return 0, 0
    rows = csr_rows(table[name])
    return int(rows.nnz), int(np.prod(rows.shape))


def rows_of_vectors(table: Any, name: str, sparse: bool) -> Any:
    """Return a column of vectors as the rows of a matrix, on an executor."""
    if table is None:
        return np.zeros((0, 1))
    rows = csr_rows(table[name])
    return rows if sparse else rows.toarray()


def csr_rows(column: Any) -> Any:
    """Convert arrays or pyspark.ml vectors (structs of type, size, indices and values) to a CSR matrix."""
    import pyarrow as pa  # noqa: PLC0415

    column = column.combine_chunks()
    if column.null_count:
        raise BadInput(
            f"{column.null_count} of the vectors are null; fill them in or drop these rows."
        )
    if not pa.types.is_struct(column.type):
        values = [
            np.asarray(one, dtype=np.float64) for one in column.to_numpy(zero_copy_only=False)
        ]
        return _stack(values, [np.arange(len(one)) for one in values], {len(one) for one in values})
    size, indices, values = (column.field(part) for part in ("size", "indices", "values"))
    lists = [np.asarray(one, dtype=np.float64) for one in values.to_numpy(zero_copy_only=False)]
    kinds = column.field("type").to_numpy(zero_copy_only=False)
    at = [
        np.arange(len(one)) if kind else np.asarray(where, dtype=np.int64)
        for one, kind, where in zip(
            lists, kinds, indices.to_numpy(zero_copy_only=False), strict=True
        )
    ]
    sizes = [
        len(one) if kind else int(given)
        for one, kind, given in zip(lists, kinds, size.to_numpy(zero_copy_only=False), strict=True)
    ]
    return _stack(lists, at, set(sizes))


def _stack(values: list[Any], at: list[Any], sizes: set[int]) -> Any:
    if len(sizes) > 1:
        raise BadInput(f"The vectors have different lengths: {sorted(sizes)[:5]}.")
    starts = np.cumsum([0, *map(len, values)])
    found = sp.csr_matrix(
        (np.concatenate(values), np.concatenate(at), starts), shape=(len(values), max(sizes))
    )
    found.eliminate_zeros()
    return found
