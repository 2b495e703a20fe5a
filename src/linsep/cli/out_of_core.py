"""``linsep fit`` on a file that memory does not hold: the same steps, read from disk pass by pass."""

from __future__ import annotations

import argparse
import re
import warnings
from contextlib import nullcontext
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone

import linsep
from linsep.cli import finishing, modelling, reading
from linsep.cli.modelling import Judgement
from linsep.cli.output import Outcome, say
from linsep.data import Scan
from linsep.data.memory_limit import available_memory
from linsep.errors import BadInput, ConvergenceWarning
from linsep.tuning import one_by_one as separate
from linsep.tuning import splits
from linsep.tuning.scoring import resolve

_SHARE = 0.25  # of the free memory that a file may take: read, encoded and split it takes about four times as much
_GROWN = {
    ".parquet": 8.0,
    ".npz": 4.0,
}  # bytes in memory for a byte of a compressed file, at a guess
_UNITS = {"": 1, "K": 1 << 10, "M": 1 << 20, "G": 1 << 30, "T": 1 << 40}


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    group = parser.add_argument_group("files larger than memory")
    group.add_argument(
        "--memory-limit",
        metavar="SIZE",
        help="e.g. 500M or 8G: larger files are read from disk in every pass (default: a quarter of the free memory)",
    )
    group.add_argument(
        "--cache", metavar="DIR", help="directory that keeps decoded rows for the next run"
    )
    group.add_argument(
        "--resume",
        metavar="FILE",
        help="file that keeps the state of the fit; resume from it after a crash",
    )


def needed(options: Any) -> bool:
    """Whether the file is larger than the memory it may take."""
    path = Path(options.data)
    if options.data == "-" or not path.is_file():
        return False
    limit = _size(options.memory_limit) if options.memory_limit else _SHARE * available_memory()
    return path.stat().st_size * _GROWN.get(path.suffix.lower(), 1.0) > limit


def _size(text: str) -> float:
    found = re.fullmatch(r"(\d+(?:\.\d*)?)\s*([KMGT]?)(?:i?B)?", text.strip(), re.IGNORECASE)
    if found is None:
        raise BadInput(f"--memory-limit {text}: write a number of bytes, or 500M, 8G and the like.")
    return float(found[1]) * _UNITS[found[2].upper()]


def run(options: Any) -> Outcome:
    """Scan, tune, fit, certify, save; rows are neither encoded nor standardised, and there is no report."""
    began = perf_counter()
    _refuse(options)
    state = nullcontext() if options.resume is None else linsep.checkpoint(options.resume)
    target = options.target
    if target is None and Path(options.data).suffix.lower() == ".npz":
        target = "y"
    with (
        state,
        reading.scanned(options, target, cache=options.cache) as rows,
    ):
        if rows.y is None:
            raise BadInput(f"{options.data}: say which column to predict: --target NAME.")
        say(options, f"{options.data}: {rows.shape[0]:,} rows, read from disk in every pass")
        regression = reading.is_regression(rows.y, options.task)
        model = modelling.estimator(options, regression)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is said below
            judgement = _evaluate_held_out(options, rows, model, regression)
            final = clone(model).set_params(C=judgement.C).fit(rows)
        say(options, f"C = {judgement.C:g}")
        say(options, str(final.certificate_))
        say(options, judgement.text)
        path = finishing.saved(options, final)
        reads, shape = rows.reads, rows.shape
    if not options.no_report:
        say(options, "no report: it needs the rows in memory")
    return finishing.outcome(
        options,
        final,
        path,
        began,
        rows=shape[0],
        test=judgement.facts,
        separable=None,
        report=None,
        reads=reads,
    )


def _refuse(options: Any) -> None:
    wrong = reading.only_in_memory(options)
    if wrong:
        raise BadInput(
            f"{options.data} is larger than the memory it may take, and is read from disk; {', '.join(wrong)} needs it "
            "in memory. Leave that out, raise --memory-limit, or store the table as Parquet."
        )


def _evaluate_held_out(options: Any, rows: Scan, model: Any, regression: bool) -> Judgement:
    """Choose C and fit without the held-out rows, and score that model on them."""
    y, weight = rows.given(None, None, "fit")
    bare, n = rows.without_targets(), rows.shape[0]
    everything = np.arange(n)
    train, held = everything, everything[:0]
    if options.test:
        train, held = splits.make(
            y,
            cv=2,
            validation=options.test,
            test=None,
            groups=None,
            classifier=not regression,
            seed=options.seed,
        ).pairs[0]
    seen = separate.without(weight, n, train) if len(held) else weight
    C = options.C
    if C is None:
        C = modelling.tuned(options, model, bare, y, seen).best_C
    if not len(held):
        return Judgement(C, text="no rows were set aside to judge by")
    trained = clone(model).set_params(C=C).fit(bare, y, seen)
    score = resolve(None, regression=regression)
    value = separate.held_out(score, trained, bare, y, weight, held)
    own = None if weight is None else weight[held]
    text, facts = modelling.held_out_words(value, y[held], own, regression)
    return Judgement(C, text=text, facts=facts)
