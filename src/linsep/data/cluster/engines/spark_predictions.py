"""Predictions for a Spark data frame: an additional column that the executors compute lazily."""

from __future__ import annotations

import importlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.data.cluster.engines.spark_columns import csr_rows, holds_vectors
from linsep.errors import BadInput

_COLUMNS = {
    "predict": "prediction",
    "predict_proba": "probability",
    "predict_log_proba": "log_probability",
    "decision_function": "score",
}


def predict(model: Any, method: str, X: Any, encode: Any = None) -> Any:
    """Return the data frame X with the result of ``model.method`` as an additional column, computed lazily.

    The column is called "prediction", "probability", "log_probability" or "score"; results with several numbers per
    row are arrays. X may have columns that are not features of the model; they are kept.
    """
    types: Any = importlib.import_module("pyspark.sql.types")
    column, names = _COLUMNS[method], _features_for(encode or model, X)
    if column in X.columns:
        raise BadInput(f"X has a column {column!r} already; drop or rename it.")
    vectors = any(holds_vectors(X.schema[name].dataType) for name in names)
    kind, arrow = _types(model, method)
    answer = _Answers(model, encode, method, tuple(names), column, arrow, vectors)
    return X.mapInArrow(
        answer, types.StructType([*X.schema.fields, types.StructField(column, kind)])
    )


def _features_for(model: Any, X: Any) -> list[str]:
    names = getattr(model, "feature_names_in_", None)
    if names is not None:
        missing = [name for name in names if name not in X.columns]
        if missing:
            raise BadInput(f"X lacks columns that the model was fitted to: {', '.join(missing)}.")
        return list(names)
    columns = list(X.columns)
    wide = [name for name in columns if holds_vectors(X.schema[name].dataType)]
    if len(wide) == 1:
        return wide
    if len(columns) != model.n_features_in_:
        raise BadInput(
            f"X has {len(columns)} columns, and the model was fitted to {model.n_features_in_} without names: select "
            "these columns."
        )
    return columns


def _types(model: Any, method: str) -> tuple[Any, Any]:
    """Return the Spark and Arrow types of the predictions, found by predicting a row of zeros."""
    import pyarrow as pa  # noqa: PLC0415

    from_arrow_type: Any = importlib.import_module("pyspark.sql.pandas.types").from_arrow_type
    example = getattr(model, method)(_rows(np.zeros((1, model.n_features_in_)), model))
    kind = pa.array(np.ravel(example)[:1].tolist()).type
    kind = kind if example.ndim == 1 else pa.list_(kind)
    return from_arrow_type(kind), kind


def _rows(X: Any, model: Any) -> Any:
    """Return rows as a table with the column names of the model, or unchanged if it has none."""
    import pyarrow as pa  # noqa: PLC0415

    names = getattr(model, "feature_names_in_", None)
    return X if names is None else pa.table(dict(zip(names, X.T, strict=True)))


@dataclass
class _Answers:
    """Function for ``mapInArrow`` that appends the predictions of a model to each batch, on an executor."""

    model: Any
    encode: Any
    method: str
    names: tuple[str, ...]
    column: str
    kind: Any
    vectors: bool

    def __call__(self, batches: Iterator[Any]) -> Iterator[Any]:
        import pyarrow as pa  # noqa: PLC0415

        for batch in batches:
            answer = self._of(pa.table(batch)) if batch.num_rows else np.zeros(0)
            made = pa.array(answer.tolist(), type=self.kind)
            names = [*batch.schema.names, self.column]
            yield pa.RecordBatch.from_arrays([*batch.columns, made], names=names)

    def _of(self, table: Any) -> Any:
        rows = table.select(list(self.names))
        if self.encode is not None:
            rows = self.encode.transform(rows)
        elif self.vectors:
            rows = csr_rows(rows[self.names[0]])
        elif getattr(self.model, "feature_names_in_", None) is None:
            rows = np.column_stack([column.to_numpy() for column in rows.columns])
        return getattr(self.model, self.method)(rows)


def predict_files(model: Any, method: str, parts: Any, encode: Any = None) -> Any:
    """Raise: predictions on Spark are a column of a data frame, and files have none."""
    raise BadInput(
        "Predictions for files on Spark need a data frame: model.predict(spark.read.parquet(path))."
    )
