"""``linsep explain``: print the coefficients of a model by name, largest first."""

from __future__ import annotations

import argparse
from typing import Any

import numpy as np

import linsep
from linsep.cli import reading
from linsep.cli.output import Outcome, certificate_facts, plain, say, table


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    parser.add_argument("model", help="model file")
    parser.add_argument(
        "--top", type=int, default=20, help="number of coefficients to show, default 20"
    )


def run(options: Any) -> Outcome:
    """Print what the model is, its certificate, its largest coefficients."""
    model = linsep.load(options.model)
    final, encoder = reading.final(model), reading.encoder_of(model)
    d = final.n_features_in_
    names = [f"x{j}" for j in range(d)]
    if encoder is not None:
        names = [str(name) for name in encoder.get_feature_names_out()]
    elif hasattr(final, "feature_names_in_"):
        names = [str(name) for name in final.feature_names_in_]
    W, b = np.atleast_2d(final.coef_), np.atleast_1d(final.intercept_)
    classes = [str(c) for c in getattr(final, "classes_", [])]
    heads = classes if len(W) > 1 else [f"towards {classes[1]}" if classes else "coefficient"]
    order = np.argsort(-np.abs(W).max(axis=0), kind="stable")[: max(0, options.top)]
    rows = [[names[j], *(f"{w:.5g}" for w in W[:, j])] for j in order]
    rows.append(["(intercept)", *(f"{value:.5g}" for value in b)])
    say(options, f"{type(final).__name__}, C = {final.C:g}, {d:,} features")
    say(options, str(final.certificate_))
    say(options)
    if not options.json:
        print(plain(table(["", *heads], rows)))
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
