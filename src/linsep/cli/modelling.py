"""Choice of the estimator, the encoder and C from the options."""

from __future__ import annotations

import argparse
from collections.abc import Collection
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import numpy.typing as npt

import linsep
from linsep import losses
from linsep.cli import reading
from linsep.cli.output import say
from linsep.data.entrance import labels
from linsep.errors import BadInput
from linsep.estimators import parameters
from linsep.tables import Encoder
from linsep.tables.table import Table
from linsep.tuning import Tuning, grids, scoring, splits

_FOR_NUMBERS = ("least-squares", "least-absolute", "huber")
MODELS = ("logistic", "svm", "squared-hinge", *_FOR_NUMBERS)


@dataclass(frozen=True)
class HeldOutResult:
    """The chosen C, and its evaluation on held-out rows."""

    C: float
    tuning: Tuning | None = None
    text: str = ""
    facts: dict[str, Any] = field(default_factory=dict)


def held_out_words(
    loss: float, y: Any, weight: npt.NDArray[Any] | None, regression: bool
) -> tuple[str, dict[str, Any]]:
    """Return the held-out error as text and as facts; ``loss`` is the fraction of errors or the mean squared error."""
    n = len(y)
    if regression:
        mean = np.average(y, weights=weight)
        score = 1.0 - loss / float(np.average((y - mean) ** 2, weights=weight))
        text = f"held-out R squared {score:.4g} ({n:,} rows)"
        return text, {"rows": n, "score": score, "scoring": "R squared"}
    wrong = round(loss * n)
    bound = float(linsep.bounds.clopper_pearson(wrong, n, delta=0.05))
    known = labels.encode_any(y, n, "linsep fit")
    classes, counts = known.classes, np.bincount(known.codes, weight)
    guess = float((counts.sum() - counts.max()) / counts.sum())
    common = str(classes[counts.argmax()])
    text = (
        f"held-out error {100 * loss:.1f} % ({wrong:,} of {n:,} rows), "
        f"95 % upper confidence bound {100 * bound:.1f} %; "
        f"baseline (always {common if len(common) <= 40 else common[:37] + '...'}) {100 * guess:.1f} %"
    )
    if loss >= guess:
        text += "\nnote: the model is no better than the baseline; add columns, or use --balanced if one class is rare"
    return text, {"rows": n, "score": loss, "scoring": "error", "bound": bound, "baseline": guess}


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options for the model and for the choice of C."""
    group = parser.add_argument_group("model")
    group.add_argument(
        "--model", choices=MODELS, help="default: logistic for classes, least-squares for numbers"
    )
    group.add_argument(
        "--task",
        choices=("auto", "classify", "regress"),
        default="auto",
        help="classification or regression; default: from the target",
    )
    group.add_argument(
        "--Cs",
        type=int,
        default=reading.TRIED,
        help=f"number of values of C between 1e-4 and 1e4, default {reading.TRIED}",
    )
    group.add_argument(
        "--cv",
        type=int,
        help=f"cross-validation folds, default {reading.FOLDS}, fewer if a class has fewer rows",
    )
    group.add_argument("--scoring", help="error, log_loss, auc or a scikit-learn scorer")
    group.add_argument(
        "--rule",
        choices=("best", "one_standard_error"),
        default="best",
        help="choose the best C, or the smallest within one standard error of the best",
    )
    group.add_argument(
        "--l1-ratio",
        type=float,
        default=0.0,
        help="mix of the penalties, from 0 (L2, default) to 1 (L1)",
    )
    group.add_argument(
        "--balanced", action="store_true", help="give every class the same total weight"
    )
    group.add_argument(
        "--no-standardise", action="store_true", help="keep numeric columns in their units"
    )


def check(options: Any) -> None:
    """Refuse values of options that no table can make right, before one is read."""
    model = estimator(options, options.model in _FOR_NUMBERS)
    loss = losses.get("squared")  # any: the options of a model do not depend on it
    C = getattr(options, "C", None)
    parameters.recipe(model if C is None else model.set_params(C=C), loss)
    grids.grid_of(options.Cs)
    if options.cv is not None:
        splits.require_folds(options.cv)
    scoring.resolve(options.scoring, regression=False)


def estimator(options: Any, regression: bool) -> Any:
    """Return the estimator for the options."""
    name = options.model or ("least-squares" if regression else "logistic")
    common: dict[str, Any] = {
        "tol": options.tol,
        "time_limit": options.time_limit,
        "n_threads": options.threads,
        "random_state": options.seed,
    }
    numbers = name in _FOR_NUMBERS
    if numbers != regression:
        kind = "numbers" if regression else "classes"
        raise BadInput(
            f"--model {name} does not fit a target of {kind}; choose another, or set --task."
        )
    if numbers and options.balanced:
        raise BadInput("--balanced weights classes, but the target holds numbers; leave it out.")
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


def encoder_for(table: Any, standardise: bool, dropped: Collection[str] = ()) -> Encoder | None:
    """Fit an encoder to a table without the ``dropped`` columns, where it is stored; None if the file has a matrix."""
    encoder = Encoder(standardise=standardise, types=dict.fromkeys(dropped, "drop") or None)
    if isinstance(table, Table):
        if table.matrix is not None:
            return None
        encoder.fit(table)
    elif table.numeric:
        return None
    else:
        encoder.merge(table.statistics(encoder))
    if not any(e.width for e in encoder.encodings_):
        why = "; ".join(
            f"{e.name!r:.60}: {getattr(e, 'why', e.type)}" for e in encoder.encodings_[:5]
        )
        raise BadInput(
            f"{table.source}: no column is left to learn from ({why or 'there is only the target'}). "
            "Add columns, or set their types with --type COLUMN=TYPE."
        )
    return encoder


def folds(options: Any, y: Any, regression: bool) -> int:
    """Number of cross-validation folds: as given, otherwise five, or fewer if the rarest class has fewer rows."""
    if options.cv is not None or regression:
        return int(reading.FOLDS if options.cv is None else options.cv)
    rarest = int(np.bincount(labels.encode_any(y, len(y), "linsep fit").codes).min())
    if rarest < reading.FOLDS:
        rows = "only 1 row" if rarest == 1 else f"only {rarest} rows"
        then = (
            "C = 1, without cross-validation"
            if rarest == 1
            else f"{rarest} folds instead of {reading.FOLDS}"
        )
        say(options, f"note: the rarest class has {rows} to fit; using {then}")
    return min(rarest, reading.FOLDS)


def tune_model(options: Any, model: Any, X: Any, y: npt.NDArray[Any], cv: int) -> Tuning:
    """Compute the validation curve and the C it selects."""
    return linsep.tune(
        model,
        X,
        y,
        options.Cs,
        cv=cv,
        scoring=options.scoring,
        rule=options.rule,
        refit=False,
        random_state=options.seed,
    )
