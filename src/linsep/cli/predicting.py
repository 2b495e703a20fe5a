"""``linsep predict``: predict new rows and write CSV to standard output or a file."""

from __future__ import annotations

import argparse
import csv
import io
import sys
from collections.abc import Iterable
from typing import Any, TextIO

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, say
from linsep.paths import replace_file


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=False)
    parser.add_argument(
        "--proba", action="store_true", help="add a column with the probability of each class"
    )
    parser.add_argument("--scores", action="store_true", help="add the scores x.w + b")
    parser.add_argument("--output", "-o", metavar="FILE", help="default: standard output")
    parser.add_argument(
        "--spreadsheet",
        action="store_true",
        help="put an apostrophe before names that a spreadsheet would run as formulas (=, +, -, @)",
    )


def run(options: Any) -> Outcome:
    """Read, predict and write the rows piece by piece."""
    model = reading.load_model(options)
    final = reading.final(model)
    if options.proba and not hasattr(final, "predict_proba"):
        raise linsep.errors.Refused(
            f"{type(final).__name__} gives no probabilities; leave --proba out, or fit --model logistic."
        )
    pieces = (
        _columns(options, final, reading.matrix(model, table))
        for table in reading.stream_tables(reading.as_fitted(options, model))
    )
    facts: dict[str, Any] = {"verb": "predict"}
    if options.output:
        facts["rows"] = _into_file(options, pieces)
        say(options, f"{facts['rows']:,} predictions: {options.output}")
    elif options.json:
        facts |= _gather(pieces)
    else:
        facts["rows"] = _write(options, pieces, sys.stdout)
    return Outcome(facts)


def _columns(options: Any, final: Any, X: Any) -> dict[str, list[Any]]:
    """Return the output columns for some rows."""
    columns = {"prediction": final.predict(X).tolist()}
    if options.scores:
        scores = final.decision_function(X) if hasattr(final, "classes_") else final.predict(X)
        names = ["score"] if scores.ndim == 1 else [f"score {c}" for c in final.classes_]
        columns |= dict(zip(names, scores.reshape(len(scores), -1).T.tolist(), strict=True))
    if options.proba:
        pairs = zip(final.classes_, final.predict_proba(X).T.tolist(), strict=True)
        columns |= {f"p {label}": p for label, p in pairs}
    return columns


def _write(options: Any, pieces: Iterable[dict[str, list[Any]]], file: TextIO) -> int:
    """Write CSV piece by piece and return the number of rows."""
    writer = csv.writer(file, lineterminator="\n")
    n = 0
    for piece in pieces:
        rows: list[Any] = list(zip(*piece.values(), strict=True))
        if n == 0:
            rows.insert(0, list(piece))
        n += len(piece["prediction"])
        if options.spreadsheet:
            rows = [[_guard(cell) for cell in row] for row in rows]
        writer.writerows(rows)
        file.flush()  # so that the reader of a pipe gets the rows now
    return n


def _gather(pieces: Iterable[dict[str, list[Any]]]) -> dict[str, Any]:
    """Collect all predictions for one JSON object."""
    columns: dict[str, list[Any]] = {}
    for piece in pieces:
        for name, values in piece.items():
            columns.setdefault(name, []).extend(values)
    return {"rows": len(columns["prediction"]), "columns": columns}


def _into_file(options: Any, pieces: Iterable[dict[str, list[Any]]]) -> int:
    """Write the output file atomically and return the number of rows."""
    with replace_file(options.output) as stream:
        file = io.TextIOWrapper(stream, encoding="utf-8", newline="", write_through=True)
        n = _write(options, pieces, file)
        file.detach()
    return n


def _guard(cell: Any) -> Any:
    """Escape a text cell that a spreadsheet would take for a formula; numbers are not changed."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in tuple("=+-@\t\r") else cell
