"""``linsep fit --cluster ADDRESS``: the workers of a Dask cluster read the files and keep the rows."""

from __future__ import annotations

import argparse
import warnings
from contextlib import nullcontext
from time import perf_counter
from typing import Any

import linsep
from linsep.cli import finishing
from linsep.cli.output import Outcome, say
from linsep.cli.reading import FOLDS, HELD_OUT, TRIED, only_in_memory, scanned
from linsep.data.cluster.engines.dask_engine import connected
from linsep.errors import BadInput, ConvergenceWarning


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    group = parser.add_argument_group("cluster")
    group.add_argument(
        "--cluster",
        metavar="ADDRESS",
        help="scheduler of a Dask cluster, tcp://HOST:PORT; its workers read DATA, a file, a directory or a "
        "pattern. Needs --C; numeric columns are taken as they are, and there is no report",
    )


def run(options: Any, model: Any) -> Outcome:
    """Fit on the cluster, certify, save."""
    began = perf_counter()
    _refuse(options)
    if options.C is None:
        raise BadInput("--cluster fits one model: give its --C, or tune on some of the rows first.")
    if options.target is None:
        raise BadInput("--cluster needs the column of the target: give --target.")
    state = nullcontext() if options.resume is None else linsep.checkpoint(options.resume)
    with connected(options.cluster) as client, warnings.catch_warnings(), state:
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is said below
        rows = scanned(options, options.target, client=client)
        say(options, f"{len(rows.files)} files on {options.cluster}")
        model.set_params(C=options.C).fit(rows)
        traffic = model.traffic_
        say(options, str(model.certificate_))
        say(options, f"{traffic.rounds} rounds, {traffic.sent + traffic.received:,} bytes moved")
        return finishing.outcome(
            options,
            model,
            finishing.saved(options, model),
            began,
            rounds=traffic.rounds,
            bytes_sent=traffic.sent,
            bytes_received=traffic.received,
        )


def _refuse(options: Any) -> None:
    """Options without a meaning here are not ignored in silence."""
    asked = {
        "--Cs": options.Cs != TRIED,
        "--cv": options.cv != FOLDS,
        "--rule": options.rule != "best",
        "--scoring": options.scoring,
        "--test": options.test not in (0.0, HELD_OUT),
        "--memory-limit": options.memory_limit,
        "--cache": options.cache,
    }
    wrong = only_in_memory(options) + [name for name, given in asked.items() if given]
    if wrong:
        raise BadInput(
            "The workers of a cluster read the files themselves, keep the rows and fit all of them with one C; "
            f"{', '.join(wrong)} has no meaning there. Leave that out."
        )
