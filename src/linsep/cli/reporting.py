"""``linsep report``: write an HTML report about a model and its data."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, say
from linsep.paths import check_folder
from linsep.report.writing import require
from linsep.tables import Table


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=True)
    parser.add_argument(
        "--test",
        metavar="FILE",
        help="labelled rows not used for fitting, for the error estimates",
    )
    parser.add_argument("--title", help="heading of the page")
    parser.add_argument("--output", "-o", metavar="FILE", help="default: MODEL.html")


def run(options: Any) -> Outcome:
    """Write the report."""
    require()
    page = Path(options.output or Path(options.model).with_suffix(".html"))
    check_folder(page)
    model = reading.load_model(options)
    final, encoder = reading.final(model), reading.encoder_of(model)
    if encoder is not None:
        encoder.extra = "ignore"  # the table may still have the target and ignored columns
    train = reading.read_labelled_for(options, model)
    held = None if options.test is None else reading.read_labelled_for(options, model, options.test)
    source = reading.source_name(options)
    source = f"{source}, evaluated on {options.test}" if options.test else source
    linsep.write_report(
        final,
        _rows(model, train),
        train.y,
        page,
        test=None if held is None else (_rows(model, held), held.y),
        title=options.title,
        encoder=encoder,
        source=source,
    )
    say(options, f"report: {page}")
    return Outcome({"verb": "report", "report": str(page)})


def _rows(model: Any, table: Table) -> Any:
    """Return the table itself if the model has an encoder, so that the report sees its missing values."""
    has_names = reading.encoder_of(model) is not None and table.matrix is None
    return table if has_names else reading.matrix(model, table)
