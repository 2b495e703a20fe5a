"""``linsep verify``: check the certificate of a model against its rows."""

from __future__ import annotations

import argparse
from typing import Any

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, certificate_facts, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=True)
    parser.add_argument("--exact", action="store_true", help="recompute in exact arithmetic")


def run(options: Any) -> Outcome:
    """Recompute the certificate without solvers and kernels, and raise if it does not hold."""
    model = reading.load_model(options)
    table = reading.read_labelled_for(options, model)
    final, X = reading.final(model), reading.matrix(model, table)
    found = linsep.verify(final, X, table.y, exact=options.exact)
    say(options, f"verified: {found}")
    return Outcome({"verb": "verify", "verified": True, "certificate": certificate_facts(found)})
