"""F7: certificates. Whatever is changed, ``verify`` refuses; what is true, it confirms, also in exact arithmetic."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import replace
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import scipy.sparse as sp

import linsep
from scoreboard.f04_arrays import N, T, X, Y
from scoreboard.harness import Case, check

MODELS: dict[str, Callable[[], Any]] = {
    "logistic": lambda: linsep.LogisticRegression().fit(X, Y),
    "L1": lambda: linsep.LogisticRegression(l1_ratio=1.0, C=0.5).fit(X, Y),
    "hinge": lambda: linsep.LinearSVC().fit(X, Y),
    "squared hinge": lambda: linsep.LinearClassifier("squared_hinge").fit(X, Y),
    "squared": lambda: linsep.LinearRegressor(C=1.0).fit(X, T),
    "absolute": lambda: linsep.LinearRegressor("absolute", C=1.0).fit(X, T),
}


def target_of(model: Any) -> Any:
    return Y if hasattr(model, "classes_") else T


def changes() -> dict[str, Callable[[Any], tuple[Any, ...]]]:
    """Name -> (model) -> arguments of ``verify``."""

    def data(change: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
        return lambda model: (model, change(X.copy()), target_of(model))

    def target(change: Callable[[Any], Any]) -> Callable[[Any], tuple[Any, ...]]:
        return lambda model: (model, X, change(target_of(model).copy()))

    def of_model(change: Callable[[Any], object]) -> Callable[[Any], tuple[Any, ...]]:
        def act(model: Any) -> tuple[Any, ...]:
            model = copy.deepcopy(model)
            change(model)
            return model, X, target_of(model)

        return act

    def claims(**fields: Any) -> Callable[[Any], tuple[Any, ...]]:
        return of_model(lambda m: setattr(m, "certificate_", replace(m.certificate_, **fields)))

    return {
        "columns exchanged": data(lambda A: A[:, ::-1].copy()),
        "a column negated": data(lambda A: A * [1.0, -1.0, 1.0]),
        "all rows doubled": data(lambda A: 2.0 * A),
        "a row changed": data(lambda A: np.vstack([A[:1] + 3.0, A[1:]])),
        "labels of two rows exchanged": target(_exchanged),
        "all labels exchanged": target(lambda y: y[::-1].copy()),
        "coefficients doubled": of_model(lambda m: _scaled(m, 2.0)),
        "coefficients of float16": of_model(lambda m: _rounded(m, np.float16)),
        "coefficients zero": of_model(lambda m: _scaled(m, 0.0)),
        "intercept moved": of_model(_moved),
        "C doubled": of_model(lambda m: m.set_params(C=2.0 * m.C)),
        "a smaller gap claimed": claims(gap=0.0, relative_gap=0.0),
        "a higher lower bound claimed": claims(dual=1e6),
        "a lower objective claimed": claims(primal=1e-6),
    }


def _exchanged(y: Any) -> Any:
    low, high = int(np.argmin(y)), int(np.argmax(y))
    y[[low, high]] = y[[high, low]]
    return y


def _scaled(model: Any, factor: float) -> None:
    model.coef_ = model.coef_ * factor
    _keep(model)


def _rounded(model: Any, kind: Any) -> None:
    model.coef_ = model.coef_.astype(kind).astype(float)
    _keep(model)


def _moved(model: Any) -> None:
    model.intercept_ = model.intercept_ + 0.5
    _keep(model)


def _keep(model: Any) -> None:
    """The stored fit follows the attributes, as it does in a model file that was altered."""
    fits = vars(model).get("_fits")
    if fits:
        W = np.vstack([np.atleast_2d(model.coef_).T, np.atleast_1d(model.intercept_)])
        model._fits = [replace(fits[0], W=W)]


def _refuses(name: str, change: Any, library: Any) -> None:
    linsep.verify(*change(MODELS[name]()))


def _confirms(name: str, exact: bool, make: Any, library: Any) -> None:
    model = MODELS[name]()
    check(linsep.verify(model, make(X), target_of(model), exact=exact).certified, "not confirmed")


def _alpha_proves(loss: str, outlier: float, library: Any) -> None:
    """The bound that ``alpha_`` gives, in rational numbers, is the one that the certificate states."""
    given = X.copy()
    given[3, 1] = outlier
    model = linsep.LinearSVC(loss=loss).fit(given, Y)
    certificate = model.certificate_
    check(certificate.certified, certificate)
    alpha = [Fraction(a) for a in model.alpha_.tolist()]
    signed = [a if y else -a for a, y in zip(alpha, Y, strict=True)]
    columns = [map(Fraction, column) for column in given.T.tolist()]
    v = [sum(s * x for s, x in zip(signed, column, strict=True)) for column in columns]
    curved = sum(a * a for a in alpha) / 4 if loss == "squared_hinge" else 0
    bound = sum(alpha) - curved - sum(one * one for one in v) / 2
    check(min(alpha) >= 0 and (loss == "squared_hinge" or max(alpha) <= 1), "infeasible")
    check(abs(sum(signed)) <= 1e-12 * float(sum(alpha)), f"classes of weight {float(sum(signed))}")
    check(bound >= certificate.primal * (1 - certificate.tol), f"{float(bound)}: {certificate}")


def _separate(rows: Any, kind: str, library: Any) -> None:
    found = linsep.separate(np.array(rows), [0, 0, 1, 1])
    check(found.separable == (kind == "separable") and not found.quasi, f"{found}, not {kind}")


def tiny_numbers() -> Iterator[Case]:
    for outlier in (1e6, 1e10, 1e14):
        for loss in ("hinge", "squared_hinge"):
            yield Case(
                f"alpha_ of the {loss} proves the bound, one entry {outlier:g}",
                partial(_alpha_proves, loss, outlier),
            )
    for size in (1e-100, 1e-300, 1e-308, 5e-324):
        for kind, rows in {
            "overlap": [[-1.0], [size], [0.0], [1.0]],
            "separable": [[-1.0, 0.0], [0.0, size], [0.0, 0.0], [1.0, 0.0]],
        }.items():
            yield Case(f"{kind} by {size:g}", partial(_separate, rows, kind))


def cases() -> Iterator[Case]:
    yield from tiny_numbers()
    for name in MODELS:
        for title, change in changes().items():
            if name == "L1" and title == "a column negated":
                continue  # its coefficient is zero
            yield Case(f"{name}, {title}", partial(_refuses, name, change), ("",))
        for exact in (False, True):
            yield Case(
                f"{name} confirmed, exact={exact}",
                partial(_confirms, name, exact, np.asarray),
                slow=exact,
            )
        yield Case(f"{name} confirmed from CSR", partial(_confirms, name, False, sp.csr_matrix))
        yield Case(
            f"{name} confirmed from Fortran order",
            partial(_confirms, name, False, np.asfortranarray),
        )
    yield Case(
        "a row more",
        lambda library: linsep.verify(MODELS["hinge"](), np.vstack([X, X[:1]]), np.append(Y, Y[0])),
        ("31",),
    )
    yield Case(
        "a column less",
        lambda library: linsep.verify(MODELS["logistic"](), X[:, :2], Y),
        ("2 features", "3"),
    )
    yield Case(
        "not fitted",
        lambda library: linsep.verify(linsep.LogisticRegression(), X, Y),
        ("not fitted",),
    )
    yield Case("no model", lambda library: linsep.verify("model", X, Y), ("fitted estimator",))
    yield Case(
        "weights that the fit did not have",
        lambda library: linsep.verify(MODELS["logistic"](), X, Y, np.arange(1.0, N + 1)),
        ("",),
    )
