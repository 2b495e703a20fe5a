"""F15: scikit-learn's pipelines, searches and tools around linsep's estimators."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pandas as pd
import polars as pl
from sklearn import (
    calibration,
    ensemble,
    feature_selection,
    model_selection,
    multiclass,
    pipeline,
    preprocessing,
)

import linsep
from scoreboard.f04_arrays import X, Y
from scoreboard.harness import Case, check, close, same

NAMES = ["a", "b", "c"]
FRAME = pd.DataFrame(X, columns=NAMES)


def model() -> Any:
    return linsep.LogisticRegression()


def good_score(made: Callable[[], Any], library: Any) -> None:
    """A fit in that tool predicts the rows about as well as the plain model does."""
    found = made().fit(X, Y)
    check(found.score(X, Y) >= model().fit(X, Y).score(X, Y) - 0.15, found.score(X, Y))


TOOLS: dict[str, Callable[[], Any]] = {
    "pipeline": lambda: pipeline.make_pipeline(preprocessing.StandardScaler(), model()),
    "grid search": lambda: model_selection.GridSearchCV(model(), {"C": [0.1, 1.0]}, cv=2),
    "grid search with failures": lambda: model_selection.GridSearchCV(
        model(), {"C": [1.0]}, cv=2, error_score="raise"
    ),
    "random search": lambda: model_selection.RandomizedSearchCV(
        model(), {"C": [0.1, 1.0]}, n_iter=2, cv=2, random_state=0
    ),
    "calibration": lambda: calibration.CalibratedClassifierCV(linsep.LinearSVC(), cv=2),
    "one against the rest": lambda: multiclass.OneVsRestClassifier(model()),
    "one against one": lambda: multiclass.OneVsOneClassifier(model()),
    "voting": lambda: ensemble.VotingClassifier([("a", model()), ("b", linsep.LinearSVC())]),
    "stacking": lambda: ensemble.StackingClassifier([("a", linsep.LinearSVC())], model(), cv=2),
    "bagging": lambda: ensemble.BaggingClassifier(model(), 3, random_state=0),
    "selection from the model": lambda: pipeline.make_pipeline(
        feature_selection.SelectFromModel(model()), model()
    ),
    "recursive elimination": lambda: feature_selection.RFE(model(), n_features_to_select=2),
    "threshold": lambda: model_selection.FixedThresholdClassifier(model(), threshold=0.5),
}


def frames() -> Iterator[Case]:
    yield Case("names are kept", _names)
    yield Case(
        "names in another order",
        lambda _: model().fit(FRAME, Y).predict(FRAME[["b", "a", "c"]]),
        ("feature names", "order"),
    )
    yield Case(
        "other names",
        lambda _: model().fit(FRAME, Y).predict(FRAME.rename(columns={"a": "z"})),
        ("feature names", "z"),
    )
    yield Case(
        "a column less",
        lambda _: model().fit(FRAME, Y).predict(FRAME[["a", "b"]]),
        ("feature names",),
    )
    yield Case(
        "a column more",
        lambda _: model().fit(FRAME, Y).predict(FRAME.assign(d=1.0)),
        ("feature names",),
    )
    yield Case("polars after pandas", _polars)
    yield Case("array after a frame", _array, ("feature names",))
    yield Case("encoder in a pipeline", _encoder)
    yield Case("encoder, a column missing", _encoder_missing, ("'s'", "missing"))
    yield Case("encoder, unknown level", _encoder_unknown)
    yield Case("encoder, NaN and None among categories", _encoder_gaps)
    yield Case("cross_val_score", lambda _: model_selection.cross_val_score(model(), X, Y, cv=3))
    yield Case(
        "learning curve",
        lambda _: model_selection.learning_curve(model(), X, Y, cv=2, train_sizes=[0.5, 1.0]),
    )
    yield Case("set_output", _set_output)
    yield Case(
        "unknown parameter",
        lambda _: linsep.LogisticRegression(penalty_strength=1),
        ("penalty_strength",),
    )
    yield Case("set_params, unknown", lambda _: model().set_params(nonsense=1), ("nonsense",))
    yield Case(
        "scikit-learn's keyword",
        lambda _: linsep.LogisticRegression(max_iter=100).fit(X, Y),
        ("max_iter", "time_limit"),
    )
    yield Case("predict before fit", lambda _: model().predict(X), ("not fitted",))
    yield Case("a class in one fold only", _rare_class, ("fold",))


def _names(library: Any) -> None:
    same(model().fit(FRAME, Y).feature_names_in_.tolist(), NAMES)


def _polars(library: Any) -> None:
    found = model().fit(FRAME, Y)
    same(found.predict(pl.DataFrame(X, NAMES)), found.predict(FRAME))


def _array(library: Any) -> None:
    model().fit(FRAME, Y).predict(X)


def _table(n: int = 30) -> Any:
    return pd.DataFrame({"a": X[:n, 0], "s": np.where(X[:n, 1] > 0, "u", "v")})


def _encoded() -> Any:
    return pipeline.make_pipeline(linsep.Encoder(), model()).fit(_table(), Y)


def _encoder(library: Any) -> None:
    check(_encoded().score(_table(), Y) > 0.6, "score")


def _encoder_missing(library: Any) -> None:
    _encoded().predict(_table()[["a"]])


def _encoder_unknown(library: Any) -> None:
    check(len(_encoded().predict(_table().assign(s="never seen"))) == 30, "predictions")


def _encoder_gaps(library: Any) -> None:
    for gap in (None, np.nan, pd.NA):
        rows = _table().astype({"s": object})
        rows.loc[[2, 5, 7], "s"] = gap
        found = linsep.Encoder().fit(rows)
        names = found.get_feature_names_out().tolist()
        check("s=(missing)" in names, names)


def _set_output(library: Any) -> None:
    found = linsep.Encoder().set_output(transform="pandas").fit_transform(_table())
    same(list(found.columns), ["a", "s=u", "s=v"])


def _rare_class(library: Any) -> None:
    y = Y.copy()
    y[0] = 2
    linsep.tune(model(), X, y, [0.1, 1.0], cv=5)


def cases() -> Iterator[Case]:
    for name, made in TOOLS.items():
        yield Case(name, partial(good_score, made))
    yield from frames()
    yield Case(
        "coefficients of one row twice",
        lambda _: close(
            model().fit(np.vstack([X, X]), np.append(Y, Y)).coef_,
            linsep.LogisticRegression(C=2.0).fit(X, Y).coef_,
            1e-4,
        ),
    )
