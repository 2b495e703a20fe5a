"""``linsep tune``: print the validation curve, without writing a model file."""

from __future__ import annotations

import argparse
from typing import Any

from linsep.cli import modelling, reading, storage
from linsep.cli.commands import DONE, NOT_CERTIFIED
from linsep.cli.output import Outcome, say


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    reading.add_data(parser, target=True)
    modelling.add(parser)
    reading.add_limits(parser)


def run(options: Any) -> Outcome:
    """Print mean and standard error for every C, and the chosen C."""
    modelling.check(options)
    table = reading.read_labelled(options)
    assert table.y is not None
    regression = reading.is_regression(table.y, options.task)
    model = modelling.estimator(options, regression)
    X = storage.matrix(options, table, modelling.encoder_for(table, not options.no_standardise))
    tuning = modelling.tune_model(
        options, model, X, table.y, modelling.folds(options, table.y, regression)
    )
    say(options, str(tuning.curve))
    say(options, str(tuning))
    facts = {
        "verb": "tune",
        "best_C": tuning.best_C,
        "rule": tuning.rule,
        "scoring": tuning.curve.scoring,
        "Cs": tuning.curve.Cs,
        "scores": tuning.curve.scores,
        "certified": tuning.certified,
        "seconds": tuning.seconds,
    }
    return Outcome(facts, DONE if tuning.certified else NOT_CERTIFIED)
