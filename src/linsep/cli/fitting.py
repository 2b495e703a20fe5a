"""``linsep fit``: from a file to a tuned, certified model and an HTML report.

The steps are the same for a table in memory, on disk and on the workers of a cluster. Memory holds one encoded matrix
at a time: the model without the held-out rows is fitted, scored and reported first, then its matrix is freed before
all rows are encoded.
"""

from __future__ import annotations

import argparse
import math
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import linsep
from linsep.cli import clustering, modelling, reading, storage
from linsep.cli.clustering import ClusterTable
from linsep.cli.commands import DONE, LIMIT, NOT_CERTIFIED
from linsep.cli.leakage import ROWS, notices
from linsep.cli.memory import release_memory, return_at_once
from linsep.cli.modelling import HeldOutResult
from linsep.cli.output import Outcome, certificate_facts, say
from linsep.data import Location, location_of
from linsep.data.entrance import labels
from linsep.data.files.formats import COMPRESSED
from linsep.data.files.remote import is_url, local_path, shown
from linsep.data.row_access import is_sparse
from linsep.errors import BadInput, ConvergenceWarning
from linsep.model_files import LARGEST_DIGEST
from linsep.paths import check_folder
from linsep.report.writing import require
from linsep.separability.decision import WIDE
from linsep.tables import Encoder, Table
from linsep.tuning import splits

_SEPARATE = 20_000_000  # entries up to which separability is decided
_SEPARATE_WIDE = 1_000_000  # the same for wide tables, which need many passes or dense coordinates


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command to the parser."""
    reading.add_data(parser, target=True)
    modelling.add(parser)
    group = parser.add_argument_group("validation")
    group.add_argument("--C", type=float, help="use this C; default: choose it by cross-validation")
    group.add_argument(
        "--test",
        type=float,
        default=reading.HELD_OUT,
        help=f"fraction of rows held out for the error estimate, default {reading.HELD_OUT}; 0 for none",
    )
    reading.add_limits(parser)
    storage.add(parser)
    clustering.add(parser)
    out = parser.add_argument_group("files")
    out.add_argument("--output", "-o", metavar="FILE", help="model file, default DATA.linsep")
    out.add_argument("--report", metavar="FILE", help="HTML report, default beside the model file")
    out.add_argument("--no-report", action="store_true", help="write no report")


def run(options: Any) -> Outcome:
    """Read, split, tune, fit, certify, save and report; the same steps wherever the rows are stored."""
    began = perf_counter()
    if not 0.0 <= options.test < 1.0:
        raise BadInput(
            f"--test must be a fraction of the rows, from 0 to below 1; got {options.test}."
        )
    modelling.check(options)
    check_folder(_model_path(options))
    page = _page(options)
    if page is not None:
        require()  # fail before a long fit, not after it
        check_folder(page)
    return_at_once()
    with storage.resumable(options), _open_table(options) as table, warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is printed below
        release_memory()
        return _fit(options, table, began)


@contextmanager
def _open_table(options: Any) -> Iterator[Table | ClusterTable]:
    """Open the labelled table, on the workers of a cluster or locally."""
    if options.cluster is None:
        yield storage.read(options)
    else:
        with clustering.open_table(options) as table:
            yield table


def _fit(options: Any, table: Table | ClusterTable, began: float) -> Outcome:
    rows, regression = len(table), reading.is_regression(np.asarray(table.y), options.task)
    if isinstance(table, Table) and not regression:
        table.y = labels.code_strings(np.asarray(table.y))
    y: Any = table.y
    model = modelling.estimator(options, regression)
    left_out = f"; left out {table.unlabelled:,} without a target" if table.unlabelled else ""
    say(options, f"{table.source}: {rows:,} row{'' if rows == 1 else 's'}{left_out}")
    if not regression and len(classes := labels.classes_of(y)) == 1:
        raise BadInput(
            f"{table.source}: the target holds one class only, {classes[0]}; a classifier needs at least 2 classes: "
            "add rows of another class."
        )
    encoder = modelling.encoder_for(table, not options.no_standardise)
    if encoder is not None:
        say(options, str(encoder.schema_))
    notes = [] if encoder is None else _notices(table, regression, options.target, encoder)
    for note in notes:
        say(options, f"note: {note}")
    if options.test:
        held_out = _evaluate_held_out(options, table, model, regression, _dropped(encoder))
        release_memory()
        numbers = _numbers(options, table, encoder)
    else:
        numbers = _numbers(options, table, encoder)
        held_out = _choose(options, model, numbers, y, regression)
    if (options.resume or options.cache) and numbers.location is Location.MEMORY:
        say(
            options,
            "the table fits in memory: nothing is cached, and a killed fit starts again from the beginning",
        )
    final = clone(model).set_params(C=held_out.C).fit(numbers.X, numbers.y)
    release_memory()
    say(options, _choice(held_out))
    say(options, str(final.certificate_))
    if held_out.text:
        say(options, held_out.text)
        say(options, f"the saved model is refitted on all {rows:,} rows")
    separable = _separability(options, numbers, y, regression)
    whole = final if encoder is None else Pipeline([("encoder", encoder), ("model", final)])
    path = _model_path(options)
    linsep.save(whole, path, data=numbers.fingerprint_data)
    say(options, f"model: {path}")
    page = _page(options)
    if page is not None:
        if not options.test:
            linsep.write_report(
                final,
                numbers.local_rows,
                y,
                page,
                tuning=held_out.tuning,
                encoder=encoder,
                source=reading.source_name(options),
            )
        say(options, f"report: {page}")
    return _outcome(
        options,
        final,
        path,
        began,
        rows=rows,
        test=held_out.facts,
        separable=separable,
        notes=notes,
        report=None if page is None else str(page),
        **storage.readings(numbers.X),
        **_traffic(final),
    )


@dataclass(frozen=True, eq=False)
class Numbers:
    """Encoded rows and their targets for an estimator: in memory, on disk or on a cluster."""

    X: Any
    y: Any
    columns: int

    @property
    def location(self) -> Location:
        """Location of the rows."""
        return location_of(self.X)

    @cached_property
    def local_rows(self) -> Any:
        """Return the rows in the memory or on the disk of this machine."""
        on_cluster = self.location is Location.CLUSTER
        return clustering.to_local(self.X, self.columns) if on_cluster else self.X

    @property
    def entries(self) -> float:
        """Number of stored entries; infinite on a cluster."""
        if self.location is Location.CLUSTER:
            return math.inf
        rows = self.X.rows if storage.on_disk(self.X) else self.X
        return float(getattr(rows, "nnz", getattr(rows, "n_entries", rows.size)))

    @property
    def wide(self) -> bool:
        """Whether there are more columns than rows, or many sparse columns."""
        if self.location is Location.CLUSTER:
            return False
        n, d = self.X.shape
        return bool(
            d > n or (d > WIDE and is_sparse(self.X.rows if storage.on_disk(self.X) else self.X))
        )

    @property
    def fingerprint_data(self) -> tuple[Any, Any] | None:
        """Return rows and targets for the digest in the model file, or None if there are too many."""
        if self.location is Location.CLUSTER or math.prod(self.X.shape) > LARGEST_DIGEST:
            return None
        return self.X, self.y


def _numbers(
    options: Any, table: Table | ClusterTable, encoder: Encoder | None, name: str = ""
) -> Numbers:
    """Encode the rows of a table. A table in memory is consumed, so that memory holds the rows once."""
    if not isinstance(table, Table):
        return Numbers(*clustering.matrix(options, table, encoder))
    X = storage.matrix(options, table, encoder, name)
    return Numbers(X, table.y, X.shape[1])


def _choice(held_out: HeldOutResult) -> str:
    """Describe the value of C and how it was chosen."""
    text = f"C = {held_out.C:g}"
    if held_out.tuning is None:
        return text
    values, folds = held_out.tuning.curve.scores.shape
    return f"{text}, chosen from {values} values by {folds}-fold cross-validation"


def _notices(
    table: Table | ClusterTable, regression: bool, target: str | None, encoder: Encoder
) -> list[str]:
    """Return warnings about columns that predict the target on their own, from a sample of the rows."""
    if len(table) > ROWS:
        table = table.take(np.linspace(0, len(table) - 1, ROWS).astype(np.int64))
    some = table if isinstance(table, Table) else table.to_local()
    return notices(some, regression, target or "the target", _dropped(encoder))


def _dropped(encoder: Encoder | None) -> frozenset[str]:
    """Return the columns that the encoder drops."""
    encodings = () if encoder is None else encoder.encodings_
    return frozenset(encoding.name for encoding in encodings if not encoding.width)


def _evaluate_held_out(
    options: Any,
    table: Table | ClusterTable,
    model: Any,
    regression: bool,
    dropped: frozenset[str],
) -> HeldOutResult:
    """Choose C and fit without the held-out rows, score that model on them, and write its report.

    Columns ``dropped`` from the whole table, such as row numbers, may not be recognised in a part of it, but this model
    must not use them either.
    """
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
    names = [storage.rows_name(some) for some in rows]
    del rows
    y, truth = train.y, held.y
    encoder = modelling.encoder_for(train, not options.no_standardise, dropped)
    release_memory()
    fitted = _numbers(options, train, encoder, names[0])
    chosen = _choose(options, model, fitted, y, regression)
    trained = clone(model).set_params(C=chosen.C).fit(fitted.X, fitted.y)
    release_memory()
    judged = _numbers(options, held, encoder, names[1]).local_rows
    found = trained.predict(judged)
    wrong = (found - truth) ** 2 if regression else found != np.asarray(truth)
    loss = float(np.mean(wrong))
    del found, wrong
    text, facts = modelling.held_out_words(loss, truth, regression)
    page = _page(options)
    if page is not None:
        source = (
            f"{reading.source_name(options)} ({len(y):,} rows for fitting, {len(truth):,} held out; "
            "the saved model is refitted on all rows)"
        )
        linsep.write_report(
            trained,
            fitted.local_rows,
            y,
            page,
            test=(judged, truth),
            tuning=chosen.tuning,
            encoder=encoder,
            source=source,
        )
    return HeldOutResult(chosen.C, chosen.tuning, text, facts)


def _choose(options: Any, model: Any, numbers: Numbers, y: Any, regression: bool) -> HeldOutResult:
    """Return the given C, or the best one with its validation curve; C = 1 if some class has a single row."""
    if options.C is not None:
        return HeldOutResult(options.C)
    cv = modelling.folds(options, y, regression)
    if cv == 1 and options.cv is None:
        return HeldOutResult(1.0)
    tuning = modelling.tune_model(options, model, numbers.X, numbers.y, cv)
    release_memory()
    return HeldOutResult(tuning.best_C, tuning)


def _separability(options: Any, numbers: Numbers, y: Any, regression: bool) -> bool | None:
    if regression or len(labels.classes_of(y)) != 2:
        return None
    if numbers.entries > (_SEPARATE_WIDE if numbers.wide else _SEPARATE):
        return None
    found = linsep.separate(numbers.X, y, n_threads=options.threads)
    say(options, str(found))
    separable = found.separable
    return None if separable is None else bool(separable)


def _traffic(model: Any) -> dict[str, int]:
    """Return the rounds and bytes of a fit on a cluster, as facts for ``--json``."""
    traffic = getattr(model, "traffic_", None)
    if traffic is None:
        return {}
    return {
        "rounds": traffic.rounds,
        "bytes_sent": traffic.sent,
        "bytes_received": traffic.received,
    }


def _page(options: Any) -> Path | None:
    """Path of the report, or None if none is written."""
    if options.no_report:
        return None
    beside = _model_path(options).with_suffix(".html")
    return Path(options.report) if options.report else beside


def _model_path(options: Any) -> Path:
    """Path of the model file: ``--output``, or the name of the data file in the current directory."""
    if options.output:
        return Path(options.output)
    if options.data == "-":
        return Path("model.linsep")
    path = Path(local_path(options.data) or options.data)
    if is_url(options.data) and local_path(options.data) is None:
        name = Path(shown(options.data)).name  # in the current directory
        return _beside(Path(name or "model"))
    return _beside(path) if path.is_file() else Path("model.linsep")


def _beside(data: Path) -> Path:
    """Replace the suffixes of a data file: rows.csv and rows.csv.gz give rows.linsep."""
    compressed = data.suffix in COMPRESSED and data.with_suffix("").suffix
    return (data.with_suffix("") if compressed else data).with_suffix(".linsep")


def _outcome(options: Any, model: Any, path: Path, began: float, **more: Any) -> Outcome:
    """Collect the facts of a fit, with ``more``, and determine the exit code from the certificate."""
    certificate = model.certificate_
    facts = {
        "verb": "fit",
        "linsep": linsep.__version__,
        "features": int(model.n_features_in_),
        "model": type(model).__name__,
        "C": float(model.C),
        "certificate": certificate_facts(certificate),
        "model_file": str(path),
        **more,
        "seconds": perf_counter() - began,
    }
    unproven = NOT_CERTIFIED if options.time_limit is None else LIMIT
    return Outcome(facts, DONE if certificate.certified else unproven)
