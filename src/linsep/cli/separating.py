"""``linsep separate``: decide whether a hyperplane separates the classes, with a proof either way."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import linsep
from linsep.cli import modelling, reading, storage
from linsep.cli.commands import DONE, NOT_CERTIFIED
from linsep.cli.output import Outcome, say
from linsep.errors import BadInput
from linsep.separability import Separable


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    reading.add_data(parser, target=True)
    parser.add_argument("--of", metavar="CLASS", help="separate this class from all others")
    parser.add_argument("--exact", action="store_true", help="check the proof in exact arithmetic")
    parser.add_argument("--threads", type=int, help="default: all cores")


def run(options: Any) -> Outcome:
    """Print the verdict, and whether its proof was verified."""
    table = reading.read_labelled(options)
    X = storage.matrix(options, table, modelling.encoder_for(table, standardise=False))
    y = table.y if options.of is None else _rows_of_class(table.y, options.of)
    found = linsep.separate(X, y, n_threads=options.threads)
    say(options, str(found))
    facts: dict[str, Any] = {"verb": "separate", "separable": found.separable, "text": str(found)}
    if found.separable is None:
        return Outcome(facts, NOT_CERTIFIED)
    checked = bool(found.check(X, y, exact=options.exact))
    how = " in exact arithmetic" if options.exact else ""
    say(options, f"proof checked{how}: it {'holds' if checked else 'does not hold'}")
    facts["checked"] = checked
    if isinstance(found, Separable):
        facts["margin"] = float(found.margin)
    else:
        facts |= {"rows": found.rows.tolist(), "weights": found.weights.tolist()}
    return Outcome(facts, DONE if checked else NOT_CERTIFIED)


def _rows_of_class(y: Any, name: str) -> Any:
    """Return a mask of the rows of the class with that name."""
    chosen = y.astype(str) == name
    if not chosen.any():
        known = ", ".join(map(repr, np.unique(y).tolist()[:10]))
        raise BadInput(f"--of {name!r}: the target holds no such class; it holds {known}.")
    return chosen
