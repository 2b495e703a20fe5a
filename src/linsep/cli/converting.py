"""``linsep convert``: encode a table as numbers and write it in another format."""

from __future__ import annotations

import argparse
import csv
from pathlib import Path
from typing import Any

import numpy as np
import scipy.sparse as sp
from sklearn.datasets import dump_svmlight_file

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, say
from linsep.errors import BadInput
from linsep.pipelines import take_apart
from linsep.tables import Encoder

FORMATS = (".npz", ".svm", ".libsvm", ".csv", ".tsv", ".parquet", ".arrow", ".feather")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    reading.add_data(parser, target=True)
    parser.add_argument("output", help=f"a file that ends in {', '.join(FORMATS)}")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--standardise",
        action="store_true",
        help="scale numeric columns to mean 0 and standard deviation 1",
    )
    how.add_argument(
        "--like", metavar="MODEL", help="encode as the encoder in this model file does"
    )


def run(options: Any) -> Outcome:
    """Encode the columns as ``fit`` does, and write the matrix."""
    path = Path(options.output)
    if path.suffix not in FORMATS:
        raise BadInput(f"{path}: the output must end in one of {', '.join(FORMATS)}.")
    model = linsep.load(options.like) if options.like else None
    steps = take_apart(model).steps
    if options.like and steps is None:
        raise BadInput(f"{options.like} holds no encoder: its model takes numbers as they are.")
    wanted = reading.as_fitted(options, model)
    wanted.target = options.target  # rows to be predicted have none
    table = reading.read(wanted)
    X = table.matrix
    if X is None and model is None:
        steps = Encoder(standardise=options.standardise, extra="ignore").fit(table)
        X = steps.transform(table)
    elif model is not None:
        X = reading.matrix(model, table)
    names = [f"x{j}" for j in range(X.shape[1])]
    if steps is not None and table.matrix is None:
        names = [str(name) for name in steps.get_feature_names_out()]
    y = table.y
    if path.suffix == ".npz":
        _npz(path, X, y)
    elif path.suffix in (".csv", ".tsv"):
        _write_delimited(path, X, y, names, options.target or "y")
    elif path.suffix in (".parquet", ".arrow", ".feather"):
        _columnar(path, X, y, names, options.target or "y")
    else:
        if y is None:
            raise BadInput("A LIBSVM file needs a target: name its column with --target.")
        codes = y if y.dtype.kind in "fiub" else np.unique(y, return_inverse=True)[1]
        dump_svmlight_file(X, codes, str(path), zero_based=False)
    say(options, f"{X.shape[0]:,} rows, {X.shape[1]:,} columns: {path}")
    return Outcome({"verb": "convert", "rows": X.shape[0], "columns": names, "file": str(path)})


def _npz(path: Path, X: Any, y: Any) -> None:
    """Write the arrays X (or the parts of a CSR matrix) and y; strings as fixed-width text, to avoid pickling."""
    target = {} if y is None else {"y": y.astype(str) if y.dtype.kind == "O" else y}
    if sp.issparse(X):
        X = X.tocsr()
        parts = {"data": X.data, "indices": X.indices, "indptr": X.indptr, "shape": X.shape}
        np.savez_compressed(path, format=np.array(b"csr"), **parts, **target)
    else:
        np.savez_compressed(path, X=X, **target)


def _columnar(path: Path, X: Any, y: Any, names: list[str], target: str) -> None:
    """Write float64 columns and the target as a Parquet or Arrow (Feather) file."""
    import pyarrow as pa  # noqa: PLC0415
    import pyarrow.feather as pf  # noqa: PLC0415
    import pyarrow.parquet as pq  # noqa: PLC0415

    if sp.issparse(X):
        X = X.tocsc()
    columns = {
        name: X[:, [j]].toarray()[:, 0] if sp.issparse(X) else X[:, j]
        for j, name in enumerate(names)
    }
    table = pa.table(columns | ({} if y is None else {target: y.tolist()}))
    if path.suffix == ".parquet":
        pq.write_table(table, path)
    else:
        pf.write_feather(table, path, compression="uncompressed")


def _write_delimited(path: Path, X: Any, y: Any, names: list[str], target: str) -> None:
    with path.open("w", newline="", encoding="utf-8") as file:
        comma = "\t" if path.suffix == ".tsv" else ","
        writer = csv.writer(file, lineterminator="\n", delimiter=comma)
        writer.writerow([*names, *([] if y is None else [target])])
        for i in range(X.shape[0]):
            row = X[i].toarray()[0] if sp.issparse(X) else X[i]
            writer.writerow([*(repr(float(v)) for v in row), *([] if y is None else [y[i]])])
