"""``linsep predict``: predictions for new rows, as CSV on standard output or into a file."""

from __future__ import annotations

import argparse
import csv
import io
import os
import sys
from pathlib import Path
from typing import Any

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, say


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=False)
    parser.add_argument(
        "--proba", action="store_true", help="a column of probability for each class"
    )
    parser.add_argument("--scores", action="store_true", help="scores x.w + b too")
    parser.add_argument("--output", "-o", metavar="FILE", help="default: standard output")
    parser.add_argument(
        "--spreadsheet",
        action="store_true",
        help="an apostrophe in front of names that a spreadsheet would run as formulas (=, +, -, @)",
    )


def run(options: Any) -> Outcome:
    """Read, predict, write."""
    model = linsep.load(options.model)
    encoder = reading.encoder_of(model)
    table = reading.read(options, None, None if encoder is None else known(encoder, options))
    final = reading.final(model)
    X = reading.matrix(model, table)
    columns: dict[str, Any] = {"prediction": final.predict(X)}
    if options.scores:
        scores = final.decision_function(X)
        names = ["score"] if scores.ndim == 1 else [f"score {c}" for c in final.classes_]
        columns |= dict(zip(names, scores.reshape(len(scores), -1).T, strict=True))
    if options.proba:
        if not hasattr(final, "predict_proba"):
            raise linsep.errors.Refused(
                f"{type(final).__name__} gives no probabilities; leave --proba out, or fit --model logistic."
            )
        pairs = zip(final.classes_, final.predict_proba(X).T, strict=True)
        columns |= {f"p {label}": p for label, p in pairs}
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    rows = [list(columns), *zip(*(c.tolist() for c in columns.values()), strict=True)]
    if options.spreadsheet:
        rows = [[_guarded(cell) for cell in row] for row in rows]
    writer.writerows(rows)
    facts = {"verb": "predict", "rows": len(table)}
    if options.output:
        _write(Path(options.output), text.getvalue())
        say(options, f"{len(table):,} predictions: {options.output}")
    elif options.json:
        facts["columns"] = {name: values.tolist() for name, values in columns.items()}
    else:
        sys.stdout.write(text.getvalue())
    return Outcome(facts)


def known(encoder: Any, options: Any) -> dict[str, str]:
    """How the columns were read when the encoder was fitted."""
    return {name: kind for name, kind in encoder.types_.items() if name not in options.ignore}


def _guarded(cell: Any) -> Any:
    """A cell that no spreadsheet takes for a formula; numbers are numbers."""
    return f"'{cell}" if isinstance(cell, str) and cell[:1] in tuple("=+-@\t\r") else cell


def _write(path: Path, text: str) -> None:
    """Whole or not at all."""
    part = path.with_name(path.name + ".part")
    part.write_text(text, "utf-8")
    os.replace(part, path)
