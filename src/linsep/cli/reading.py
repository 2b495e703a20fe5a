"""Options shared by several verbs, and reading of the data they name: file, target, columns."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Iterator, Sequence
from copy import copy
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray
from linsep.cli import live
from linsep.cli.pandas_import import show_pandas
from linsep.data import scan
from linsep.data.files.columns import missing_name
from linsep.data.files.datafile import DataFile
from linsep.data.files.formats import FORMATS, MATRICES, TYPES, Reading, format_of
from linsep.data.files.inference import BOOLEAN, MISSING, NUMBER, STRING, kind_of
from linsep.data.files.listing import list_files
from linsep.data.files.remote import is_url, shown
from linsep.data.files.source import is_plain
from linsep.errors import BadInput
from linsep.model_files import is_model_file, load
from linsep.pipelines import take_apart
from linsep.tables import Encoder, read_table
from linsep.tables.table import Table
from linsep.tables.table_files import read_as, stream_table

_CLASSES = 20  # largest number of distinct integers that count as classes
# Defaults: number of values of C, folds, fraction of held-out rows.
TRIED, FOLDS, HELD_OUT = 10, 5, 0.25


def add_data(parser: argparse.ArgumentParser, *, target: bool) -> None:
    """Add the DATA argument and the options for reading it."""
    parser.add_argument(
        "data",
        help="CSV, TSV, Parquet, Arrow, LIBSVM or npz file, a directory or pattern of such files, or a URL "
        "(https://, s3://, gs://, ...); - is standard input",
    )
    group = parser.add_argument_group("reading")
    if target:
        group.add_argument(
            "--target", "-t", help="column to predict (not needed for LIBSVM and npz files)"
        )
        group.add_argument(
            "--drop-unlabelled", action="store_true", help="leave out rows without a target"
        )
    group.add_argument(
        "--ignore",
        action="append",
        default=[],
        metavar="COLUMN",
        help="column to leave out; may be repeated",
    )
    group.add_argument(
        "--type",
        action="append",
        default=[],
        metavar="COLUMN=TYPE",
        help=f"override the inferred type: {', '.join(TYPES)}",
    )
    group.add_argument("--format", choices=FORMATS, help="default: from the content and the name")
    group.add_argument("--delimiter", help="default: inferred from , ; | and tab")
    group.add_argument("--decimal", help="decimal separator, default .")
    group.add_argument(
        "--thousands", help="separator of thousands, e.g. , in 1,234,567; default: none"
    )
    group.add_argument("--encoding", default="utf-8", help="default utf-8")
    group.add_argument(
        "--no-header", action="store_true", help="the first line is data, not column names"
    )
    group.add_argument(
        "--no-quotes", action="store_true", help="treat quotes as ordinary characters"
    )
    group.add_argument(
        "--missing",
        action="append",
        metavar="TEXT",
        help="further text that means a missing value (besides NA, NaN, null, ...)",
    )
    parser.set_defaults(types={})  # of the columns of the model, which --type overrides
    group.add_argument(
        "--storage-option",
        action="append",
        default=[],
        metavar="KEY=VALUE",
        help="option of the file system of a URL, e.g. anon=true; may be repeated",
    )


def add_limits(parser: argparse.ArgumentParser) -> None:
    """Add the options for threads, time, tolerance and seed."""
    group = parser.add_argument_group("fitting")
    group.add_argument(
        "--tol", type=float, default=1e-6, help="proven relative gap at which to stop, default 1e-6"
    )
    group.add_argument(
        "--time-limit",
        type=float,
        metavar="SECONDS",
        help="stop after SECONDS with the best model so far",
    )
    group.add_argument("--threads", type=int, help="default: all cores")
    group.add_argument("--seed", type=int, default=0, help="for folds and held-out rows, default 0")


def read(options: Any) -> Table:
    """Read the table named by the options."""
    return read_table(options.data, options.target, **read_options(options))


def scan_files(options: Any, target: str | None, **where: Any) -> Any:
    """Return a scan of the files named by the options, on disk or on a cluster, read like a table in memory."""
    written = read_options(options)
    del written["types"], written["unlabelled"]  # not applicable to a matrix
    return scan(options.data, target=target, **written, **where)


def stream_tables(options: Any) -> Iterator[Table]:
    """Iterate over tables of the rows named by the options; standard input with column names is streamed."""
    written = read_options(options)
    text = options.types and options.format in (None, "csv", "tsv") and written["header"]
    pipe: Any = sys.stdin.buffer if options.data == "-" and text else None
    if pipe is not None and is_plain(pipe.peek(8)[:8]):
        return live.tables(pipe, **written)
    return stream_table(options.data, **written)


def read_options(options: Any) -> dict[str, Any]:
    """Return the keyword arguments of ``read_table`` that describe the file format."""
    said = dict(options.types)
    for pair in options.type:
        name, _, kind = pair.rpartition("=")
        if not name:
            raise BadInput(f"--type {pair}: write COLUMN=TYPE, for instance --type zip=category.")
        said[name] = kind
    return {
        "format": options.format,
        "types": said,
        "ignore": options.ignore,
        "delimiter": "\t" if options.delimiter == "\\t" else options.delimiter,
        "header": not options.no_header,
        "decimal": "." if options.decimal is None else options.decimal,
        "thousands": options.thousands,
        "encoding": options.encoding,
        "quote": None if options.no_quotes else '"',
        "missing": (*MISSING, *(options.missing or ())),
        "storage_options": storage_options(options),
        "unlabelled": "drop" if getattr(options, "drop_unlabelled", False) else "error",
    }


def storage_options(options: Any) -> dict[str, Any]:
    """Parse options of the file system: true, false, short integers and JSON in braces; anything else is text."""
    found: dict[str, Any] = {}
    for pair in options.storage_option:
        name, equals, value = pair.partition("=")
        if not name or not equals:
            raise BadInput(
                f"--storage-option {pair}: write KEY=VALUE, for instance --storage-option anon=true."
            )
        found[name] = _option_value(pair, value)
    return found


def _option_value(pair: str, text: str) -> Any:
    if not re.fullmatch(r'true|false|null|0|[1-9]\d{0,8}|[{\["].*', text, re.DOTALL):
        return text
    try:
        return json.loads(text)
    except ValueError as error:
        raise BadInput(f"--storage-option {pair}: the value is not JSON ({error}).") from error


def files(options: Any) -> list[Any]:
    """Return the files named by the options, including standard input and files that do not exist."""
    return list_files(options.data, storage_options(options))


def is_there(file: Any) -> bool:
    """Return whether a file can be inspected before it is read; standard input and pipes cannot."""
    return isinstance(file, DataFile) and (is_url(file.path) or Path(file.path).is_file())


def matrix_format(options: Any) -> str | None:
    """Return the format of a single file without column names, or None if the columns have names."""
    named = files(options)
    if len(named) != 1 or not is_there(named[0]):
        return options.format if options.format in MATRICES else None
    kind = format_of(named[0], options.format)
    return kind if kind in MATRICES else None


def source_name(options: Any) -> str:
    """Name of the data for messages: the path as given, or the URL without secrets."""
    return shown(options.data) if is_url(options.data) else str(options.data)


def read_labelled(options: Any) -> Table:
    """Read the table with its target."""
    how = labelled_reading(options)
    return refuse_unlabelled(read_as(options.data, options.target, how, storage_options(options)))


def labelled_reading(options: Any) -> Reading:
    """Return the settings for reading a table that must have a target."""
    written = read_options(options)
    del written["storage_options"]  # already part of the file objects
    return replace(Reading.of(**written), needs_target=True)


def refuse_unlabelled(table: Table) -> Table:
    """Return the table, or raise if it has no target."""
    if table.y is None:
        raise BadInput(f"{table.source}: the file holds no targets; add an array y to it.")
    return table


def load_model(options: Any) -> Any:
    """Load the model named by the options; raise if model and data are swapped."""
    if not is_model_file(options.model) and is_model_file(options.data):
        raise BadInput(
            f"the model comes first: linsep {options.verb} {options.data} {options.model}."
        )
    return load(options.model)


def read_labelled_for(options: Any, model: Any, source: str | None = None) -> Table:
    """Read labelled rows for a model, from ``source`` instead of DATA if given."""
    return read_labelled(as_fitted(options, model, source))


def as_fitted(options: Any, model: Any, source: str | None = None) -> Any:
    """Return the options completed with those of the file to which the encoder of a model was fitted.

    Options of the command line take precedence; ``--decimal`` and ``--thousands`` belong together. A file without
    column names holds rows that are already encoded.
    """
    found, encoder = copy(options), encoder_of(model)
    found.data = options.data if source is None else source
    if encoder is None or matrix_format(found) is not None:
        return found
    found.types = {name: kind for name, kind in encoder.types_.items() if name not in found.ignore}
    stored = encoder.reading_
    if not stored:
        return found
    if found.decimal is None and found.thousands is None:
        found.decimal, found.thousands = stored["decimal"], stored["thousands"]
    found.missing = [*stored["missing"], *(found.missing or ())]
    if getattr(found, "target", "") is None:
        found.target = stored["target"]
    return found


def encoder_of(model: Any) -> Encoder | None:
    """Return the encoder at the beginning of a pipeline, or None."""
    first = model[0] if hasattr(model, "steps") else None
    return first if isinstance(first, Encoder) else None


def final(model: Any) -> Any:
    """Return the final estimator of a pipeline, or the model itself."""
    return take_apart(model).model


def matrix(model: Any, table: Table) -> Any:
    """Return the rows of a table as the input of the final estimator."""
    encoder, steps = encoder_of(model), take_apart(model).steps
    if table.matrix is not None:  # already encoded, or the input of the steps
        return (
            table.matrix if encoder is not None or steps is None else steps.transform(table.matrix)
        )
    if encoder is not None:
        encoder.extra = "ignore"  # the table may still have the target and ignored columns
    if steps is None:
        return numbers(table, columns_for(model, table))
    return steps.transform(table if encoder is not None else frame(model, table))


def frame(model: Any, table: Table) -> Any:
    """Return the columns of a table to which the steps of a scikit-learn pipeline were fitted."""
    names = require_columns(table, columns_for(model, table))
    if not hasattr(model, "feature_names_in_"):
        return np.column_stack([column(table, name) for name in names])
    show_pandas()
    try:
        import pandas as pd  # noqa: PLC0415
    except ImportError as error:
        raise BadInput(
            "the steps of this model choose columns by name, which needs pandas: pip install pandas."
        ) from error
    return pd.DataFrame({name: column(table, name) for name in names})


def column(table: Table, name: str) -> npt.NDArray[Any]:
    """Return one column for another library: text as strings, missing values as None."""
    values = table.values(name)
    if table.kinds[name] != STRING:
        return values
    found: npt.NDArray[Any] = np.array([*table.levels[name], None], dtype=object)[values]
    return found  # the code -1 of a missing value selects the last entry


def numbers(table: Table, names: Sequence[str]) -> FloatArray:
    """Return columns of numbers without missing values as a matrix, by name."""
    columns = []
    for name in require_columns(table, names):
        values = table.values(name)
        if table.kinds[name] not in (NUMBER, BOOLEAN) or np.isnan(values).any():
            raise BadInput(
                f"{table.source}: column {name!r} holds text or missing values, and the model takes numbers only: it "
                f"has no encoder. Fill the values in, or leave the column out with ignore=[{name!r}]."
            )
        columns.append(values)
    return np.column_stack(columns)


def columns_for(model: Any, table: Table) -> list[str]:
    """Return the names of the columns to which a model was fitted, or all if it has no names."""
    return [str(name) for name in getattr(model, "feature_names_in_", table.columns)]


def require_columns(table: Table, names: Sequence[str]) -> Sequence[str]:
    """Return the names; raise if the table does not have one of these columns."""
    for name in names:
        if name not in table.kinds:
            raise missing_name(name, table.columns, table.source)
    return names


def is_regression(y: npt.NDArray[Any], task: str) -> bool:
    """Return whether the target is a number rather than a class."""
    if task == "regress" and y.dtype.kind not in "iuf":
        raise BadInput(
            f"--task regress needs a target of numbers, but it holds text, for instance {str(y[0])!r}; correct these "
            "values, or use --task classify."
        )
    if task != "auto":
        return task == "regress"
    if y.dtype.kind != "f":
        _refuse_written_numbers(y)
        return False
    whole = bool((y == np.round(y)).all())
    return not (whole and len(np.unique(y)) <= _CLASSES)


def _refuse_written_numbers(y: npt.NDArray[Any]) -> None:
    """Refuse many labels that are numbers written with separators or signs: nobody means classes by them."""
    levels = sorted(set(map(str, y))) if y.dtype.kind in "OU" else []
    complaint = kind_of(levels)[1] if len(levels) > _CLASSES else None
    if complaint and "otherwise" not in complaint[1]:
        value, problem = complaint
        raise BadInput(
            f"{value!r} in the target, which holds {problem}, or predict it as a class with --task classify."
        )
