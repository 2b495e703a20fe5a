"""``linsep fit``: the whole job, from a file to a tuned, certified model and a page about it.

Memory holds the numbers of a large table once: the model without the held-out rows is fitted, scored and reported on
first, then its matrix makes room for that of all rows.
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import linsep
from linsep.cli import clustering, finishing, modelling, reading
from linsep.cli.leakage import notices
from linsep.cli.memory import give_back, return_at_once
from linsep.cli.modelling import Judgement
from linsep.cli.output import Outcome, say
from linsep.errors import BadInput, ConvergenceWarning
from linsep.report.writing import require
from linsep.tables.table import Table
from linsep.tuning import splits

_SEPARATE = 20_000_000  # entries up to which separability is looked at


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from linsep.cli import out_of_core  # noqa: PLC0415

    reading.add_data(parser, target=True)
    modelling.add(parser)
    group = parser.add_argument_group("validation")
    group.add_argument("--C", type=float, help="use this C; default: choose it by cross-validation")
    group.add_argument(
        "--test",
        type=float,
        default=reading.HELD_OUT,
        help="fraction of rows held out for the error estimate; 0 for none",
    )
    reading.add_limits(parser)
    out_of_core.add(parser)
    clustering.add(parser)
    out = parser.add_argument_group("files")
    out.add_argument("--output", "-o", metavar="FILE", help="model file, default DATA.linsep")
    out.add_argument("--report", metavar="FILE", help="HTML report, default beside the model file")
    out.add_argument("--no-report", action="store_true", help="write no report")


def run(options: Any) -> Outcome:
    """Read, split, tune, fit, certify, save, report."""
    from linsep.cli import out_of_core  # noqa: PLC0415

    if not 0.0 <= options.test < 1.0:
        raise BadInput(f"--test must be a share of the rows below 1, got {options.test}.")
    if options.cluster is not None:
        model = modelling.estimator(options, options.task == "regress")
        return clustering.run(options, model)
    if out_of_core.needed(options):
        return out_of_core.run(options)
    if options.resume or options.cache:
        say(
            options,
            "the table fits in memory: nothing is cached, and after a kill it is fitted again",
        )
    began = perf_counter()
    if not options.no_report:
        require()  # before an hour of fitting
    return_at_once()
    table = reading.labelled(options)
    give_back()
    assert table.y is not None
    y, rows = table.y, len(table)
    regression = reading.is_regression(y, options.task)
    model = modelling.estimator(options, regression)
    say(options, f"{table.source}: {rows:,} rows")
    encoder = modelling.encoder_for(table, not options.no_standardise)
    if encoder is not None:
        say(options, str(encoder.schema_))
    notes = notices(table, regression, options.target or "the target")
    for note in notes:
        say(options, f"note: {note}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is said below
        if options.test:
            judgement = _evaluate_held_out(options, table, model, regression)
            give_back()
            X = modelling.matrix(table, encoder)
        else:
            X = modelling.matrix(table, encoder)
            judgement = _chosen(options, model, X, y)
        final = clone(model).set_params(C=judgement.C).fit(X, y)
    give_back()
    say(options, f"C = {judgement.C:g}")
    say(options, str(final.certificate_))
    if judgement.text:
        say(options, judgement.text)
        say(options, f"the saved model is refitted on all {rows:,} rows")
    separable = _separability(options, X, y, regression)
    whole = final if encoder is None else Pipeline([("encoder", encoder), ("model", final)])
    path = finishing.saved(options, whole, (X, y))
    page = _page(options)
    if page is not None:
        if not options.test:
            linsep.write_report(
                final,
                X,
                y,
                page,
                tuning=judgement.tuning,
                encoder=encoder,
                source=str(options.data),
            )
        say(options, f"report: {page}")
    return finishing.outcome(
        options,
        final,
        path,
        began,
        rows=rows,
        test=judgement.facts,
        separable=separable,
        notes=notes,
        report=None if page is None else str(page),
    )


def _evaluate_held_out(options: Any, table: Table, model: Any, regression: bool) -> Judgement:
    """Choose C and fit without the held-out rows, score that model on them, and write its report."""
    assert table.y is not None
    rows = splits.make(
        table.y,
        cv=2,
        validation=options.test,
        test=None,
        groups=None,
        classifier=not regression,
        seed=options.seed,
    ).pairs[0]
    train, held = table.take(rows[0]), table.take(rows[1])
    del rows
    assert train.y is not None and held.y is not None
    encoder = modelling.encoder_for(train, not options.no_standardise)
    give_back()
    X = modelling.matrix(train, encoder)
    chosen = _chosen(options, model, X, train.y)
    trained = clone(model).set_params(C=chosen.C).fit(X, train.y)
    give_back()
    Z = modelling.matrix(held, encoder)
    found = trained.predict(Z)
    wrong = (found - held.y) ** 2 if regression else found != held.y
    text, facts = modelling.held_out_words(float(np.mean(wrong)), held.y, None, regression)
    page = _page(options)
    if page is not None:
        source = (
            f"{options.data} ({len(train.y):,} rows to fit, {len(held.y):,} to judge; "
            "the model file is fitted to all)"
        )
        linsep.write_report(
            trained,
            X,
            train.y,
            page,
            test=(Z, held.y),
            tuning=chosen.tuning,
            encoder=encoder,
            source=source,
        )
    return Judgement(chosen.C, chosen.tuning, text, facts)


def _chosen(options: Any, model: Any, X: Any, y: npt.NDArray[Any]) -> Judgement:
    """The C that was given, or the best one and the curve that shows it."""
    if options.C is not None:
        return Judgement(options.C)
    tuning = modelling.tuned(options, model, X, y)
    give_back()
    return Judgement(tuning.best_C, tuning)


def _separability(options: Any, X: Any, y: npt.NDArray[Any], regression: bool) -> bool | None:
    entries = X.nnz if hasattr(X, "nnz") else X.size
    if regression or len(np.unique(y)) != 2 or entries > _SEPARATE:
        return None
    found = linsep.separate(X, y, n_threads=options.threads)
    say(options, str(found))
    separable = found.separable
    return None if separable is None else bool(separable)


def _page(options: Any) -> Path | None:
    """Where the report goes, if one is wanted."""
    if options.no_report:
        return None
    beside = finishing.model_path(options).with_suffix(".html")
    return Path(options.report) if options.report else beside
