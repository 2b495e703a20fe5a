"""``linsep explain``: print the coefficients of a model by name, largest first."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import linsep
from linsep.cli.output import Outcome, certificate_facts, plain, say
from linsep.cli.reading import encoder_of
from linsep.estimators.scoring import dense_coef
from linsep.notebook import text_table
from linsep.pipelines import take_apart


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    parser.add_argument("model", help="model file")
    parser.add_argument(
        "--top", type=int, default=20, help="number of coefficients to show, default 20"
    )


def run(options: Any) -> Outcome:
    """Print a description of the model, its certificate and its largest coefficients."""
    model = linsep.load(options.model)
    opened = take_apart(model)
    final, d = opened.model, opened.model.n_features_in_
    names = opened.feature_names(d)
    W, b = np.atleast_2d(dense_coef(final)), np.atleast_1d(final.intercept_)
    classes = [str(c) for c in getattr(final, "classes_", [])]
    heads = classes if len(W) > 1 else [f"towards {classes[1]}" if classes else "coefficient"]
    order = np.argsort(-np.abs(W).max(axis=0), kind="stable")[: max(0, options.top)]
    rows = [[names[j], *(f"{w:.5g}" for w in W[:, j])] for j in order]
    rows.append(["(intercept)", *(f"{value:.5g}" for value in b)])
    cut = f"; the {len(order):,} largest are shown (--top)" if len(order) < d else ""
    say(options, f"{type(final).__name__}, C = {final.C:g}, {d:,} features{cut}")
    say(options, str(final.certificate_))
    encodings = getattr(encoder_of(model), "encodings_", ())
    if any(getattr(encoding, "scale", 1.0) != 1.0 for encoding in encodings):
        say(
            options,
            "numeric columns are standardised: their coefficients are per standard deviation",
        )
    say(options)
    if not options.json:
        print(plain("\n".join(text_table(["", *heads], rows))))
    facts = {
        "verb": "explain",
        "model": type(final).__name__,
        "classes": classes,
        "names": names,
        "coef": W,
        "intercept": b,
        "certificate": certificate_facts(final.certificate_),
    }
    return Outcome(facts)
