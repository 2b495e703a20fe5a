"""``linsep audit``: how far coefficients from elsewhere are from the optimum of their objective."""

from __future__ import annotations

import argparse
import math
from typing import Any

import numpy as np

import linsep
from linsep.cli import reading
from linsep.cli.commands import DONE, NOT_CERTIFIED
from linsep.cli.output import Outcome, say
from linsep.data.files.columns import missing_name
from linsep.data.files.inference import BOOLEAN, NUMBER
from linsep.errors import BadInput
from linsep.losses import NAMES

INTERCEPTS = ("intercept", "(intercept)", "const", "bias")


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    reading.add_data(parser, target=True)
    group = parser.add_argument_group("the model")
    group.add_argument(
        "--coef",
        required=True,
        metavar="FILE",
        help="table with two columns, name and coefficient; a row 'intercept' if there is one",
    )
    group.add_argument("--loss", default="logistic", help=f"one of {', '.join(NAMES)}")
    group.add_argument("--C", type=float, default=1.0, help="weight of the losses; inf: no penalty")
    group.add_argument("--l1-ratio", type=float, default=0.0, help="0: L2, 1: L1, between: both")
    group.add_argument("--tol", type=float, default=1e-6, help="relative excess that is optimal")


def run(options: Any) -> Outcome:
    """The verdict; not optimal is exit code 3."""
    coefficients = _coefficients(options)
    table = reading.labelled(options)
    intercept = 0.0
    for name in [known for known in coefficients if known.lower() in INTERCEPTS]:
        intercept = coefficients.pop(name)
    for name in coefficients:
        if name not in table.columns:
            raise missing_name(name, table.columns, table.source)
    X = np.column_stack([_numbers(table, name) for name in coefficients])
    found = linsep.audit(
        (np.array(list(coefficients.values())), intercept),
        X,
        table.y,
        loss=options.loss,
        C=options.C,
        l1_ratio=options.l1_ratio,
        tol=options.tol,
    )
    say(options, str(found))
    facts = {
        key: value if not isinstance(value, float) or math.isfinite(value) else None
        for key, value in found.to_dict().items()
    }
    return Outcome({"verb": "audit", **facts}, DONE if found.optimal else NOT_CERTIFIED)


def _coefficients(options: Any) -> dict[str, float]:
    """Names and values of the file that --coef names."""
    table = linsep.read_table(options.coef)
    if len(table.columns) != 2 or table.columns[0] not in table.levels:
        raise BadInput(
            f"{table.source}: --coef needs two columns, the name of a feature and its coefficient."
        )
    words, second = table.levels[table.columns[0]], table.columns[1]
    names = [words[code] for code in table.values(table.columns[0])]
    if len(set(names)) != len(names):
        raise BadInput(f"{table.source}: some names occur more than once.")
    return dict(zip(names, _numbers(table, second).tolist(), strict=True))


def _numbers(table: Any, name: str) -> Any:
    values = np.asarray(table.values(name))
    if table.kinds[name] not in (NUMBER, BOOLEAN) or not np.isfinite(values).all():
        raise BadInput(f"{table.source}: column {name!r} must hold finite numbers.")
    return values
