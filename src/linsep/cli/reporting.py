"""``linsep report``: the HTML page of a model on its data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import linsep
from linsep.cli import predicting, reading
from linsep.cli.output import Outcome, say


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=True)
    parser.add_argument("--output", "-o", metavar="FILE", help="default: MODEL.html")


def run(options: Any) -> Outcome:
    """Write the page."""
    model = linsep.load(options.model)
    encoder = reading.encoder_of(model)
    table = reading.labelled(
        options, None if encoder is None else predicting.known(encoder, options)
    )
    final = reading.final(model)
    if encoder is not None:
        encoder.extra = "ignore"  # the target may still be there, and what was ignored before
    X = table if encoder is not None and table.matrix is None else reading.matrix(model, table)
    page = Path(options.output or Path(options.model).with_suffix(".html"))
    linsep.write_report(final, X, table.y, page, encoder=encoder, source=str(options.data))
    say(options, f"report: {page}")
    return Outcome({"verb": "report", "report": str(page)})
