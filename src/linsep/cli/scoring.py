"""``linsep score``: the error of a model on labelled rows."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    reading.add_data(parser, target=True)


def run(options: Any) -> Outcome:
    """Print the error and its exact upper confidence bound, or R squared for a numeric target."""
    model = reading.load_model(options)
    table = reading.read_labelled_for(options, model)
    final, X = reading.final(model), reading.matrix(model, table)
    n = len(table)
    if not hasattr(final, "classes_"):
        score = float(final.score(X, table.y))
        say(options, f"R squared on {n:,} rows: {score:.6g}")
        return Outcome({"verb": "score", "rows": n, "r_squared": score})
    wrong = int(np.count_nonzero(final.predict(X) != table.y))
    bound = linsep.bounds.clopper_pearson(wrong, n, delta=0.05)
    say(
        options,
        f"error {100 * wrong / n:.1f} % ({wrong:,} of {n:,} rows), 95 % upper confidence bound "
        f"{100 * float(bound):.1f} % (valid only if the model was not fitted to these rows)",
    )
    facts = {"verb": "score", "rows": n, "errors": wrong, "error": wrong / n, "bound": float(bound)}
    return Outcome(facts)
