"""Columns of a Spark data frame as Arrow tables, and these as rows: one value for each partition.

Rows leave the data frame as Arrow batches (``mapInArrow``), so no row becomes a Python object.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.data.location import Location, location_of
from linsep.errors import BadInput

LARGEST = (1 << 31) - (1 << 20)  # bytes of one value that Spark can move
_RAW = "linsep_raw"


def names_column(v: Any) -> bool:
    """Whether y or a weight is a column of the frame, by name or as an expression."""
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
        raise BadInput(f"{name}={v!r} is no column of X: {', '.join(X.columns)}.")
    return X[quoted(v)]


def quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"


def raw_tables(frame: Any) -> Any:
    """The rows of each partition as one Arrow table: an RDD with one element for each of them."""
    packed = frame.mapInArrow(pack, f"{_RAW} binary")
    return packed.rdd.mapPartitions(unpack)


def pack(batches: Iterator[Any]) -> Iterator[Any]:
    """On an executor: Arrow batches as bytes."""
    import pyarrow as pa  # noqa: PLC0415

    for batch in batches:
        sink = pa.BufferOutputStream()
        with pa.ipc.new_stream(sink, batch.schema) as writer:
            writer.write_batch(batch)
        packed = pa.array([sink.getvalue().to_pybytes()], type=pa.binary())
        yield pa.RecordBatch.from_arrays([packed], names=[_RAW])


def unpack(rows: Iterator[Any]) -> Iterator[Any]:
    """On an executor: one table of all batches of a partition; None if it has no rows."""
    import pyarrow as pa  # noqa: PLC0415

    tables = [pa.ipc.open_stream(bytes(row[_RAW])).read_all() for row in rows]
    tables = [table for table in tables if table.num_rows]
    yield pa.concat_tables(tables) if tables else None


def vector_of(table: Any, name: str) -> Any:
    """On an executor: a column as an array."""
    return np.zeros(0) if table is None else table[name].to_numpy()


def holds_vectors(kind: Any) -> bool:
    return (
        kind.typeName() in ("vector", "vectorudt", "udt", "array")
        or "Vector" in type(kind).__name__
    )


def features_table(table: Any, names: Sequence[str]) -> Any:
    """On an executor: the features of a partition; an array without rows if it is empty."""
    if table is None:
        return np.zeros((0, len(names)))
    if table.nbytes > LARGEST:
        raise BadInput(
            f"A partition holds {table.nbytes:,} bytes, and Spark moves {LARGEST:,} at once: repartition the frame."
        )
    return table.select(list(names))


def count_entries(table: Any, name: str) -> tuple[int, int]:
    """On an executor: stored entries of the vectors of a partition, and entries in all."""
    if table is None:
        return 0, 0
    rows = csr_rows(table[name])
    return int(rows.nnz), int(np.prod(rows.shape))


def rows_of_vectors(table: Any, name: str, sparse: bool) -> Any:
    """On an executor: vectors as the rows of a matrix."""
    if table is None:
        return np.zeros((0, 1))
    rows = csr_rows(table[name])
    return rows if sparse else rows.toarray()


def csr_rows(column: Any) -> Any:
    """Arrays or vectors of pyspark.ml (structs of type, size, indices and values) as CSR rows."""
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
