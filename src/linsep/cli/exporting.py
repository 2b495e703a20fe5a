"""``linsep export``: write a model in another language."""

from __future__ import annotations

import argparse
import sys
from typing import Any

import linsep
from linsep import export
from linsep.cli import reading
from linsep.cli.output import Outcome, say
from linsep.errors import BadInput
from linsep.paths import write_file

FORMATS = ("sql", "c", "python", "onnx")


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    parser.add_argument("--to", choices=FORMATS, required=True, help="language of the scorer")
    parser.add_argument(
        "--numeric",
        action="store_true",
        help="export only the linear model; its inputs are what `linsep convert --like MODEL` writes",
    )
    parser.add_argument("--table", default="data", help="name of the table in SQL, default data")
    parser.add_argument(
        "--output", "-o", metavar="FILE", help="default: standard output (not for onnx)"
    )


def run(options: Any) -> Outcome:
    """Write the scorer."""
    model = linsep.load(options.model)
    if options.numeric:
        model = reading.final(model)
    write = getattr(export, options.to)
    made: str | bytes = write(model, options.table) if options.to == "sql" else write(model)
    if options.output:
        data = made if isinstance(made, bytes) else made.encode("utf-8")
        write_file(options.output, data)
        say(options, f"{options.to}: {options.output}")
    elif isinstance(made, bytes):
        raise BadInput("ONNX is not text: give --output FILE.")
    elif not options.json:
        sys.stdout.write(made)
    facts = {"verb": "export", "to": options.to, "file": options.output}
    if options.json and not options.output:
        facts["text"] = made
    return Outcome(facts)
