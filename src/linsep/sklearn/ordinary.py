"""Fast path that skips scikit-learn's checks for small data of ordinary types.

On small data the checks of scikit-learn's ``fit`` take many times as long as the fit. They are unnecessary for a dense
array of finite float64 numbers with integer labels or float64 targets, and for parameters that are the defaults except
for a few of ordinary type. Such data are fitted directly; all others go through scikit-learn's ``fit``.
"""

from __future__ import annotations

import functools
import inspect
import math
from collections.abc import Callable
from typing import Any

import numpy as np

from linsep.data.entrance import labels
from linsep.errors import LinsepError
from linsep.sklearn import fitting
from linsep.sklearn.fitting import Delegated, Minimum
from linsep.sklearn_objectives import Given, Objective, objective_of

#: Entries of X up to which scikit-learn's checks take as long as the fit.
SMALL = 100_000


def _positive(value: Any) -> bool:
    return type(value) is float and 0.0 < value < math.inf


#: Parameters that may differ from their default, and a test for ordinary values.
_ORDINARY: dict[str, Callable[[Any], bool]] = {
    "C": _positive,
    "alpha": _positive,
    "tol": _positive,
    "max_iter": lambda value: type(value) is int and value >= fitting.FEW_ITERATIONS,
    "fit_intercept": lambda value: type(value) is bool,
    "random_state": lambda value: type(value) is int and 0 <= value < 2**32,
}


def minimise_classes(
    model: Any,
    kind: Any,
    X: Any,
    y: Any,
    tol: float,
    also: str = "",
    most: int | None = None,
    large: Callable[[Objective], Minimum | None] | None = None,
) -> tuple[Minimum, Any] | None:
    """Return the minimum for ordinary labels, and the classes; None if rows, labels or parameters are not ordinary.

    ``also`` names a parameter that the caller has checked, ``most`` bounds the number of classes, and ``large`` is a
    solver for X of any size, which returns None if an entry is not finite.
    """
    size = SMALL if large is None else math.inf
    if not (_ordinary_rows(model, kind, X, y, also, size) and y.dtype.kind in "iub"):
        return None
    known = labels.encode_any(y, len(y), kind.__name__)
    if not 2 <= len(known.classes) <= (most or len(y) // 2):
        return None
    problem = objective_of(model, Given(len(y), y, None, known.classes))
    try:
        found = fitting.minimise(problem, X, tol) if large is None else large(problem)
    except LinsepError:
        return None
    return None if found is None else (found, known.classes)


def minimise_targets(
    model: Any, kind: Any, X: Any, y: Any, tol: float, also: str = ""
) -> Minimum | None:
    """Return the minimum for ordinary targets; None if rows, targets or parameters are not ordinary."""
    if not targets(model, kind, X, y, also):
        return None
    problem = objective_of(model, Given(len(y), np.ascontiguousarray(y), None))
    try:
        return fitting.minimise_proven(problem, X, tol)
    except (Delegated, LinsepError):
        return None


def targets(model: Any, kind: Any, X: Any, y: Any, also: str = "", largest: float = SMALL) -> bool:
    """Return whether rows, targets and parameters are ordinary; entries of X may be infinite or NaN."""
    rows = _ordinary_rows(model, kind, X, y, also, largest)
    return rows and y.dtype.char == "d" and len(y) > 1 and math.isfinite(y.sum())


def store(model: Any, X: Any, found: Minimum, **others: Any) -> None:
    """Store the fitted attributes of a classifier, updated by ``others``."""
    state = vars(model)
    state.pop("feature_names_in_", None)
    state.update(
        {
            "coef_": np.ascontiguousarray(found.W[:-1].T),
            "intercept_": found.W[-1].copy(),
            "n_features_in_": X.shape[1],
            "certificate_": found.certificate,
            **others,
        }
    )


def store_regression(model: Any, X: Any, found: Minimum, **others: Any) -> None:
    """Store the fitted attributes of a regression on one target, updated by ``others``."""
    intercept = found.W[-1, 0] if model.fit_intercept else 0.0
    store(model, X, found, coef_=found.W[:-1, 0].copy(), intercept_=intercept, **others)


def _ordinary_rows(
    model: Any, kind: Any, X: Any, y: Any, also: str, largest: float = SMALL
) -> bool:
    """Return whether X, a dense array of at most ``largest`` entries, vector y and the parameters need no checks."""
    if not (type(model) is kind and type(X) is np.ndarray and type(y) is np.ndarray):
        return False
    if X.ndim != 2 or y.ndim != 1 or len(y) != len(X) or not 0 < X.size <= largest:
        return False
    if X.dtype.char != "d" or not X.flags.c_contiguous:
        return False
    state = vars(model)
    if "_skl_callbacks" in state:
        return False
    for name, default in _defaults(kind).items():  # type: ignore[arg-type]
        value = state[name]
        if value is not default and name != also and not _ordinary(name, value):
            return False
    return True


def _ordinary(name: str, value: Any) -> bool:
    ordinary = _ORDINARY.get(name)
    return ordinary is not None and ordinary(value)


@functools.cache
def _defaults(kind: Any) -> dict[str, Any]:
    """Default value of every parameter of a class."""
    found = inspect.signature(kind).parameters.values()
    return {parameter.name: parameter.default for parameter in found}
