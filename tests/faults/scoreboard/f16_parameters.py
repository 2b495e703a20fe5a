"""F16: parameters of every public estimator and function. A value is refused by name, or the answer is right."""

from __future__ import annotations

import inspect
import io
import os
from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np

import linsep
from scoreboard.f04_arrays import T, X, Y
from scoreboard.harness import Case, check

ESTIMATORS = (
    *("LogisticRegression", "LinearSVC", "LinearClassifier", "LinearRegressor", "Perceptron"),
    *("SGDClassifier", "ZeroOneClassifier", "LogisticRegressionCV", "LinearSVCCV", "Encoder"),
)
#: Values that hardly any parameter has a meaning for.
STRANGE: dict[str, Any] = {
    "-1": -1, "0": 0, "nan": float("nan"), "inf": float("inf"), "1e30": 1e30, "10**9": 10**9, "10**30": 10**30,
    "text": "nonsense", "a list": [1, "a"], "an empty list": [], "a dict": {"a": 1}, "None": None, "True": True,
    "an array": np.ones(2), "a function": len, "complex": 1j, "bytes": b"a", "2.5": 2.5,
}  # fmt: skip
#: Asks for days of work, or for gigabytes.
LONG = {("epochs", "10**9"), ("batch_size", "10**9")}
#: Fits of nothing but what the default limits allow.
QUICK = {
    "ZeroOneClassifier": {"max_rounds": 3, "time_limit": 5.0},
    "LogisticRegressionCV": {"Cs": [1.0], "cv": 2},
    "LinearSVCCV": {"Cs": [1.0], "cv": 2},
}


def constructors() -> Iterator[Case]:
    for name in ESTIMATORS:
        kind = getattr(linsep, name)
        for parameter in inspect.signature(kind).parameters:
            for label, value in STRANGE.items():
                if (parameter, label) in LONG:
                    continue
                yield Case(
                    f"{name}({parameter}={label})",
                    partial(_fits, name, parameter, value),
                    (parameter,),
                    either=True,
                    apart=label in ("10**9", "10**30", "1e30"),
                    slow=name in ("ZeroOneClassifier", "LogisticRegressionCV", "LinearSVCCV")
                    or label.startswith("10**"),
                )


def _fits(name: str, parameter: str, value: Any, library: Any) -> None:
    kind = getattr(linsep, name)
    model = kind(**{**QUICK.get(name, {}), parameter: value})
    if name == "Encoder":
        import pandas as pd

        found = model.fit(pd.DataFrame({"a": X[:, 0], "b": np.where(Y, "u", "v")}))
        found.transform(pd.DataFrame({"a": X[:, 0], "b": np.where(Y, "u", "v")}))
        return
    model.fit(X, T if name == "LinearRegressor" else Y)
    check(np.isfinite(model.coef_).all(), "coefficients that are not finite")
    predicted = model.predict(X)
    check(len(predicted) == len(X), "predictions")


def _model() -> Any:
    return linsep.LogisticRegression().fit(X, Y)


def _scikit_learn() -> Any:
    from sklearn.linear_model import LogisticRegression

    return LogisticRegression().fit(X, Y)


def _file(suffix: str = ".npy") -> str:
    path = os.path.abspath(f"rows{suffix}")
    if suffix == ".npy":
        np.save(path, X)
    elif suffix == ".csv":
        with open(path, "w") as file:
            file.write(
                "a,b,y\n" + "".join(f"{a},{b},{y}\n" for a, b, y in zip(*X.T[:2], Y, strict=True))
            )
    return path


SVM = b"1 1:2\n-1 2:1\n"
FUNCTIONS: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
    "tune": (
        linsep.tune,
        {"estimator": linsep.LogisticRegression(), "X": X, "y": Y, "Cs": [0.1, 1.0], "cv": 2},
    ),
    "path": (
        linsep.path,
        {"estimator": linsep.LogisticRegression(), "X": X, "y": Y, "Cs": [0.1, 1.0]},
    ),
    "verify": (linsep.verify, {"model": _model, "X": X, "y": Y}),
    "separate": (linsep.separate, {"X": X, "y": Y}),
    "screen": (
        linsep.screen,
        {"model": lambda: linsep.LogisticRegression(l1_ratio=1.0).fit(X, Y), "X": X, "y": Y},
    ),
    "summary": (
        linsep.summary,
        {"model": lambda: linsep.LogisticRegression(C=np.inf).fit(X, Y), "X": X, "y": Y},
    ),
    "audit": (linsep.audit, {"model": _scikit_learn, "X": X, "y": Y}),
    "save": (linsep.save, {"model": _model, "path": "model.linsep"}),
    "load": (linsep.load, {"path": "model.linsep"}),
    "scan": (linsep.scan, {"paths": _file, "target": Y}),
    "read_libsvm": (linsep.read_libsvm, {"source": lambda: io.BytesIO(SVM)}),
    "read_table": (linsep.read_table, {"source": lambda: _file(".csv"), "target": "y"}),
}


def functions() -> Iterator[Case]:
    for name, (function, given) in FUNCTIONS.items():
        for parameter in inspect.signature(function).parameters:
            if (name, parameter) in (("scan", "client"),):
                continue
            for label, value in STRANGE.items():
                yield Case(
                    f"{name}({parameter}={label})",
                    partial(_call, function, given, parameter, value),
                    (_WORDS.get((name, parameter), parameter),),
                    either=True,
                    apart=label in ("10**9", "10**30", "1e30"),
                    slow=name in ("tune", "audit") or label.startswith("10**"),
                )


#: What messages call a parameter, if not by its name.
_WORDS: dict[tuple[str, str], str] = {
    ("load", "path"): "",
    ("scan", "paths"): "",
    ("audit", "model"): "",
    ("summary", "held_out"): "",
    ("scan", "target"): "",
    ("scan", "weight"): "",
    ("scan", "ignore"): "",
    ("read_libsvm", "source"): "",
    ("read_table", "source"): "",
    ("read_table", "target"): "",
    ("read_table", "ignore"): "",
    (
        "verify",
        "sample_weight",
    ): "",  # other weights than the model's: a certificate that does not hold
    ("screen", "sample_weight"): "",
}


def _call(function: Any, given: dict[str, Any], parameter: str, value: Any, library: Any) -> None:
    arguments = {
        key: one() if callable(one) and key != "scoring" else one for key, one in given.items()
    }
    found = function(**{**arguments, parameter: value})
    if hasattr(found, "close"):
        found.close()


def cases() -> Iterator[Case]:
    yield from constructors()
    yield from functions()
