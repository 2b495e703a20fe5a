"""``linsep fit``: the whole job, from a file to a tuned, certified model and a page about it."""

from __future__ import annotations

import argparse
import warnings
from dataclasses import dataclass
from pathlib import Path
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt
from sklearn.base import clone
from sklearn.pipeline import Pipeline

import linsep
from linsep.cli import clustering, reading
from linsep.cli.commands import code_of
from linsep.cli.output import Outcome, certificate_facts, say
from linsep.errors import BadInput, ConvergenceWarning
from linsep.tables import Encoder
from linsep.tables.table import Table
from linsep.tuning import Tuning, splits

MODELS = ("logistic", "svm", "squared-hinge", "least-squares", "least-absolute", "huber")
_LARGE = 1 << 27  # bytes of numbers that may be copied
_SEPARATE = 20_000_000  # entries up to which separability is looked at


@dataclass(frozen=True, eq=False)
class Page:
    """What a report is about; X is the table where there is an encoder, so that gaps are seen."""

    model: Any
    X: Any
    y: Any
    encoder: Encoder | None = None
    tuning: Tuning | None = None
    test: tuple[Any, Any] | None = None


def add(parser: argparse.ArgumentParser) -> None:
    """Options."""
    from linsep.cli import out_of_core  # noqa: PLC0415

    reading.add_data(parser, target=True)
    add_model(parser)
    reading.add_limits(parser)
    out_of_core.add(parser)
    clustering.add(parser)
    out = parser.add_argument_group("writing")
    out.add_argument("--output", "-o", metavar="FILE", help="model file, default DATA.linsep")
    out.add_argument("--report", metavar="FILE", help="HTML report, default beside the model file")
    out.add_argument("--no-report", action="store_true")


def add_model(parser: argparse.ArgumentParser) -> None:
    """Which model, which C, which split."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", choices=MODELS, help="default logistic, or least-squares for numbers"
    )
    group.add_argument("--task", choices=("auto", "classify", "regress"), default="auto")
    group.add_argument("--C", type=float, help="fixed strength; by default it is tuned")
    group.add_argument(
        "--Cs", type=int, default=reading.TRIED, help="values of C to try, from 1e-4 to 1e4"
    )
    group.add_argument("--cv", type=int, default=reading.FOLDS, help="folds for tuning")
    group.add_argument("--scoring", help="error, log_loss, auc or a scikit-learn scorer")
    group.add_argument("--rule", choices=("best", "one_standard_error"), default="best")
    group.add_argument("--l1-ratio", type=float, default=0.0)
    group.add_argument("--balanced", action="store_true", help="classes count alike")
    group.add_argument(
        "--test", type=float, default=reading.HELD_OUT, help="share of rows to judge by; 0 for none"
    )
    group.add_argument(
        "--no-standardise", action="store_true", help="leave numeric columns as they are"
    )


def estimator(options: Any, regression: bool) -> Any:
    """The estimator that the options ask for."""
    name = options.model or ("least-squares" if regression else "logistic")
    common: dict[str, Any] = {
        "tol": options.tol,
        "time_limit": options.time_limit,
        "n_threads": options.threads,
        "random_state": options.seed,
    }
    numbers = name in ("least-squares", "least-absolute", "huber")
    if numbers != regression:
        kind = "numbers" if regression else "classes"
        raise BadInput(
            f"--model {name} does not fit a target of {kind}; choose another, or say --task."
        )
    if numbers and options.balanced:
        raise BadInput("--balanced is about classes, and the target holds numbers; leave it out.")
    if numbers:
        loss = {"least-squares": "squared", "least-absolute": "absolute", "huber": "huber"}[name]
        return linsep.LinearRegressor(loss, C=1.0, l1_ratio=options.l1_ratio, **common)
    common["class_weight"] = "balanced" if options.balanced else None
    if name == "logistic":
        return linsep.LogisticRegression(l1_ratio=options.l1_ratio, **common)
    if options.l1_ratio:
        loss = {"svm": "hinge", "squared-hinge": "squared_hinge"}[name]
        return linsep.LinearClassifier(loss, l1_ratio=options.l1_ratio, **common)
    return linsep.LinearSVC(loss="hinge" if name == "svm" else "squared_hinge", **common)


def encoded(
    table: Table, options: Any, encoder: Encoder | None = None, *, consume: bool = False
) -> tuple[Any, Encoder | None]:
    """The matrix of a table, and the encoder that made it (None if the file held a matrix).

    ``consume=True`` gives the rows of the table up as they are converted.
    """
    if table.matrix is not None:
        return table.matrix, None
    if encoder is None:
        encoder = Encoder(standardise=not options.no_standardise).fit(table)
    X = encoder.transform(table, consume=consume)
    if not X.shape[1]:
        why = "; ".join(
            f"{e.name!r:.60}: {getattr(e, 'why', e.type)}" for e in encoder.encodings_[:5]
        )
        raise BadInput(
            f"{table.source}: no column is left to learn from ({why or 'there is only the target'}). "
            "Add columns, or say what they are with --type COLUMN=TYPE."
        )
    return X, encoder


def run(options: Any) -> Outcome:
    """Read, split, tune, fit, certify, save, report."""
    from linsep.cli import out_of_core  # noqa: PLC0415

    if options.cluster is not None:
        return clustering.run(options, estimator(options, options.task == "regress"))
    if out_of_core.needed(options):
        return out_of_core.run(options)
    if options.resume or options.cache:
        say(
            options,
            "the table fits in memory: nothing is cached, and after a kill it is fitted again",
        )
    began = perf_counter()
    table = reading.labelled(options)
    assert table.y is not None
    regression = reading.is_regression(table.y, options.task)
    model = estimator(options, regression)
    say(options, f"{table.source}: {len(table):,} rows")
    rows, large, encoder = len(table), _is_large(table), None
    if table.matrix is None:
        encoder = Encoder(standardise=not options.no_standardise).fit(table)
        say(options, str(encoder.schema_))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)  # the certificate is said below
        test = _judged(options, table, model, regression)
        X, encoder = test.get("encoded") or encoded(table, options, encoder, consume=large)
        final = clone(model).set_params(C=test["C"])
        final.fit(X, table.y)
    whole = final if encoder is None else Pipeline([("encoder", encoder), ("model", final)])
    say(options, f"C = {test['C']:g}")
    say(options, str(final.certificate_))
    if test.get("text"):
        say(options, test["text"])
    verdict = _separability(options, X, table.y, regression)
    path = Path(options.output or _beside(options.data, ".linsep"))
    linsep.save(whole, path, data=(X, table.y))
    say(options, f"model: {path}")
    page = _report(
        options,
        path,
        test.get("page")
        or Page(
            final,
            X if encoder is None or large else table,
            table.y,
            encoder,
            test.get("tuning"),
        ),
    )
    facts = {
        "verb": "fit",
        "linsep": linsep.__version__,
        "rows": rows,
        "features": int(X.shape[1]),
        "model": type(final).__name__,
        "C": float(test["C"]),
        "certificate": certificate_facts(final.certificate_),
        "test": {k: v for k, v in test.items() if k in ("rows", "score", "bound", "scoring")},
        "separable": verdict,
        "model_file": str(path),
        "report": page,
        "seconds": perf_counter() - began,
    }
    return Outcome(facts, code_of(options, final.certificate_))


def _is_large(table: Table) -> bool:
    """Whether the numbers of a table should not lie in memory twice."""
    return sum(batch.numbers.nbytes for batch in table.batches) > _LARGE


def _judged(options: Any, table: Table, model: Any, regression: bool) -> dict[str, Any]:
    """Choose C without the test rows, and judge by them a twin that has not seen them."""
    assert table.y is not None
    if not 0.0 <= options.test < 1.0:
        raise BadInput(f"--test must be a share of the rows below 1, got {options.test}.")
    if options.test == 0.0:
        X, encoder = encoded(table, options, consume=_is_large(table))
        return {**_chosen(options, model, X, table.y), "encoded": (X, encoder)}
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
    assert train.y is not None and held.y is not None
    large, n = _is_large(table), len(held)
    X, encoder = encoded(train, options, consume=large)
    out = _chosen(options, model, X, train.y)
    twin = clone(model).set_params(C=out["C"]).fit(X, train.y)
    Z, _ = encoded(held, options, encoder, consume=large)
    out["rows"] = n
    given = (X, Z) if encoder is None or large else (train, held)
    out["page"] = Page(twin, given[0], train.y, encoder, out.get("tuning"), (given[1], held.y))
    if regression:
        out |= {"score": float(twin.score(Z, held.y)), "scoring": "R squared"}
        out["text"] = f"R squared on {n:,} rows its twin has not seen: {out['score']:.4g}"
        return out
    wrong = int(np.count_nonzero(twin.predict(Z) != held.y))
    bound = linsep.bounds.clopper_pearson(wrong, n, delta=0.05)
    out |= {"score": wrong / n, "scoring": "error", "bound": float(bound)}
    out["text"] = (
        f"error on {n:,} rows that its twin has not seen: {wrong / n:.2%}, below "
        f"{float(bound):.2%} with probability 0.95"
    )
    return out


def _chosen(options: Any, model: Any, X: Any, y: npt.NDArray[Any]) -> dict[str, Any]:
    """The C that was given, or the best one and the curve that shows it."""
    if options.C is not None:
        return {"C": options.C}
    tuning = _tune(options, model, X, y)
    return {"C": tuning.best_C, "tuning": tuning}


def _tune(options: Any, model: Any, X: Any, y: npt.NDArray[Any]) -> Tuning:
    return linsep.tune(
        model,
        X,
        y,
        options.Cs,
        cv=options.cv,
        scoring=options.scoring,
        rule=options.rule,
        refit=False,
        random_state=options.seed,
    )


def _separability(options: Any, X: Any, y: npt.NDArray[Any], regression: bool) -> bool | None:
    entries = X.nnz if hasattr(X, "nnz") else X.size
    if regression or len(np.unique(y)) != 2 or entries > _SEPARATE:
        return None
    found = linsep.separate(X, y, n_threads=options.threads)
    say(options, str(found))
    separable = found.separable
    return None if separable is None else bool(separable)


def _report(options: Any, path: Path, page: Page) -> str | None:
    """The page about the twin, whose test rows are new to it; about the model itself if there are none."""
    if options.no_report:
        return None
    to = Path(options.report or path.with_suffix(".html"))
    source = str(options.data)
    if page.test is not None:
        source += f" ({len(page.y):,} rows to fit, {len(page.test[1]):,} to judge; the model file is fitted to all)"
    linsep.write_report(
        page.model,
        page.X,
        page.y,
        to,
        test=page.test,
        tuning=page.tuning,
        encoder=page.encoder,
        source=source,
    )
    say(options, f"report: {to}")
    return str(to)


def _beside(data: str, suffix: str) -> str:
    return f"model{suffix}" if data == "-" else str(Path(data).with_suffix(suffix))
