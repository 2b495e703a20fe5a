"""``linsep audit``: how far coefficients or a model of another library are from the optimum of their objective."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import linsep
from linsep.auditing import model_files
from linsep.auditing.onnx_graphs import OnnxModel
from linsep.auditing.plain import COUPLED
from linsep.cli import reading
from linsep.cli.commands import DONE, NOT_CERTIFIED
from linsep.cli.output import Outcome, say
from linsep.data.files.columns import arrow
from linsep.data.files.inference import NUMBER
from linsep.errors import BadInput
from linsep.losses import names_with

INTERCEPTS = ("intercept", "(intercept)", "const", "bias")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    reading.add_data(parser, target=True)
    group = parser.add_argument_group("the model")
    source = group.add_mutually_exclusive_group(required=True)
    source.add_argument(
        "--coef",
        metavar="FILE",
        help="table with two columns, name and coefficient; a row 'intercept' if there is one",
    )
    source.add_argument(
        "--model",
        metavar="FILE",
        help="ONNX, skops or LIBLINEAR file; skops files state their objective; pickles are not accepted",
    )
    names = ", ".join((*names_with("convex"), *COUPLED))
    group.add_argument("--loss", help=f"one of {names}; default logistic")
    group.add_argument("--C", type=float, help="weight of the losses, default 1; inf: no penalty")
    group.add_argument("--l1-ratio", type=float, help="0: L2 (default), 1: L1, between: both")
    group.add_argument("--epsilon", type=float, help="half width of epsilon-insensitive losses")
    group.add_argument(
        "--tol",
        type=float,
        default=1e-6,
        help="relative excess up to which a model counts as optimal, default 1e-6",
    )


def run(options: Any) -> Outcome:
    """Print the verdict; the exit code is 3 if the coefficients are not optimal."""
    if options.model is None:
        model, columns = _stated_coefficients(options)
        table = reading.read_labelled(options)
        X = table.matrix if table.matrix is not None else reading.numbers(table, columns)
    else:
        model = model_files.load(options.model)
        table = reading.read_labelled(options)
        X = _rows_for(model, table)
    stated = {
        name: getattr(options, name)
        for name in ("loss", "C", "l1_ratio", "epsilon")
        if getattr(options, name) is not None
    }
    found = linsep.audit(model, X, _labels(model, table.y), **stated, tol=options.tol)
    say(options, str(found))
    facts = {
        key: value if not isinstance(value, float) or math.isfinite(value) else None
        for key, value in found.to_dict().items()
    }
    return Outcome({"verb": "audit", **facts}, DONE if found.optimal else NOT_CERTIFIED)


def _labels(model: Any, y: Any) -> Any:
    """Return the targets; true and false as truth values if the classes of the model are no texts."""
    classes = getattr(model, "classes_", getattr(model, "classes", None))
    if classes is None or np.asarray(classes).dtype.kind not in "biu" or y.dtype.kind not in "OU":
        return y
    words = np.char.lower(y.astype(str))
    return words == "true" if set(words) <= {"true", "false"} else y


def _stated_coefficients(options: Any) -> tuple[Any, list[str]]:
    """Read coefficients from a table, with the names of their columns."""
    coefficients = _coefficients(options)
    intercept = 0.0
    for name in [known for known in coefficients if known.lower() in INTERCEPTS]:
        intercept = coefficients.pop(name)
    return (np.array(list(coefficients.values())), intercept), list(coefficients)


def _rows_for(model: Any, table: Any) -> Any:
    """Return the rows of a table for the model of a file; pipelines and graphs may need columns of text."""
    if table.matrix is not None:
        return table.matrix
    if isinstance(model, OnnxModel):
        return arrow().table({name: reading.column(table, name) for name in table.columns})
    if hasattr(model, "steps"):
        return reading.frame(model, table)
    return reading.numbers(table, reading.columns_for(model, table))


def _coefficients(options: Any) -> dict[str, float]:
    """Read the names and values in the file given by --coef."""
    table = linsep.read_table(options.coef)
    if len(table.columns) != 2 or table.columns[0] not in table.levels:
        raise BadInput(
            f"{table.source}: --coef needs two columns, the name of a feature and its coefficient."
        )
    words, second = table.levels[table.columns[0]], table.columns[1]
    names = [words[code] for code in table.values(table.columns[0])]
    if len(set(names)) != len(names):
        raise BadInput(f"{table.source}: some names occur more than once.")
    values = table.values(second)
    if table.kinds[second] != NUMBER or not np.isfinite(values).all():
        raise BadInput(f"{table.source}: column {second!r} must hold finite numbers.")
    return dict(zip(names, values.tolist(), strict=True))
