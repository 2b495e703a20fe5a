"""Alterations of a fitted model, of its claim and of its data, each of which ``verify`` has to notice.

An alteration is (name, model, X, y, weight, certain). ``certain`` alterations contradict themselves or the settings
of the fit, so they must be refused whatever the data; the others must be refused if the altered claim is false, which
the judge decides.
"""

from __future__ import annotations

import copy
import math
from collections.abc import Iterator
from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np


class Altered(NamedTuple):
    """A model with something wrong about it, and the data it is verified on."""

    name: str
    model: Any
    X: Any
    y: Any
    weight: Any
    certain: bool


def _sharper(claim: Any, share: float) -> dict[str, Any]:
    """Fields of a claim without rounding whose gap is smaller, all of which agree with one another."""
    shrunk = {"gap": share * claim.gap, "dual": claim.primal - share * claim.gap}
    shrunk |= {"relative_gap": share * claim.gap / claim.primal}
    return {
        **shrunk,
        "coef_error": math.sqrt(share) * claim.coef_error,
        "kind": "exact",
        "rounding": 0.0,
    }


def _claims(claim: Any) -> Iterator[tuple[str, dict[str, Any], bool]]:
    """Fields that are replaced, and whether the claim is then surely wrong."""
    for name in ("primal", "dual", "gap", "relative_gap", "coef_error", "rounding", "tol"):
        yield f"{name}=nan", {name: math.nan}, True
        yield f"{name}=-inf", {name: -math.inf}, True
    for name in ("primal", "dual", "gap", "relative_gap", "rounding"):
        yield f"{name}=inf", {name: math.inf}, True
    scale = max(abs(claim.primal), abs(claim.dual), claim.gap, 1e-300)
    for share in (-1.0, -0.01, 0.01):
        yield f"primal {share:+.0%}", {"primal": claim.primal + share * scale}, False
        yield f"dual {share:+.0%}", {"dual": claim.dual + share * scale}, share > 0
    yield "gap=-1", {"gap": -1.0}, True
    yield "coef_error=-1", {"coef_error": -1.0}, True
    yield "rounding=-1", {"rounding": -1.0}, True
    if claim.gap > 0.0:
        yield "gap=0", {"gap": 0.0}, claim.primal > claim.dual
        yield "relative_gap=0", {"relative_gap": 0.0}, claim.relative_gap > 0.0
        if math.isfinite(claim.coef_error):
            yield "coef_error=0", {"coef_error": 0.0}, False
    yield "relative_gap above tol", {"relative_gap": 2.0 * claim.tol}, True
    if claim.relative_gap > 0.0:
        yield "tol below relative_gap", {"tol": 0.5 * claim.relative_gap}, True
    yield "certified=False", {"certified": False}, True
    yield "kind=nonsense", {"kind": "nonsense"}, True
    if claim.kind != "exact":
        yield "kind=exact", {"kind": "exact"}, claim.rounding > 0.0
    if 0.0 < claim.relative_gap < math.inf and not claim.parts:
        yield "exact, gap/1000", _sharper(claim, 1e-3), False
    nothing = {"primal": 0.0, "dual": 0.0, "gap": 0.0, "relative_gap": 0.0, "coef_error": 0.0}
    yield "all 0, rounding large", {**nothing, "rounding": 1e9 * scale}, claim.dual > 0.0
    yield "primal 123, rounding inf", {"primal": 123.0, "rounding": math.inf}, True


def _recipes(model: Any) -> Iterator[tuple[str, Any]]:
    for name, change in {
        "recipe.C": lambda r: replace(r, penalty=replace(r.penalty, C=_other(r.penalty.C))),
        "recipe.tol": lambda r: replace(r, tol=1.0),
        "recipe.fit_intercept": lambda r: replace(r, fit_intercept=not r.fit_intercept),
    }.items():
        forged = copy.deepcopy(model)
        forged._fits = type(model._fits)(
            replace(fit, recipe=change(fit.recipe)) for fit in model._fits
        )
        yield name, forged


def _other(C: float) -> float:
    return 100.0 * C if C < 1e6 else C / 100.0 if math.isfinite(C) else 1.0


def _models(model: Any) -> Iterator[tuple[str, Any, bool]]:
    coef = np.asarray(model.coef_)
    for name, change in {
        "coef=nan": lambda a: a * math.nan,
        "coef*1.01": lambda a: a * 1.01,
        "coef=0": lambda a: a * 0.0,
        "coef=-coef": lambda a: -a,
        "coef[0]+1": lambda a: a + np.eye(1, a.size).reshape(a.shape),
    }.items():
        forged = copy.deepcopy(model)
        forged.coef_ = change(coef)
        yield name, forged, name == "coef=nan"
    forged = copy.deepcopy(model)
    forged.intercept_ = model.intercept_ + 0.1 * (1.0 + np.abs(model.intercept_))
    yield "intercept moved", forged, False
    if len(getattr(model, "classes_", ())) == 2:
        forged = copy.deepcopy(model)
        forged.classes_ = model.classes_[::-1].copy()
        yield "classes_ reversed", forged, False
    if "C" in model.get_params(deep=False):
        forged = copy.deepcopy(model)
        forged.C = _other(model.C)
        yield "model.C", forged, True


def alterations(model: Any, X: Any, y: Any, weight: Any) -> Iterator[Altered]:
    """Every alteration of a certified model that has an ``Optimality``."""
    for name, lie, certain in _claims(model.certificate_):
        forged = copy.copy(model)
        forged.certificate_ = replace(model.certificate_, **lie)
        yield Altered(f"claim {name}", forged, X, y, weight, certain)
    for name, forged, certain in _models(model):
        yield Altered(name, forged, X, y, weight, certain)
    for name, forged in _recipes(model):
        yield Altered(name, forged, X, y, weight, True)
    n = X.shape[0]
    rows = np.arange(n)
    fewer = rows[:-1]
    if not hasattr(model, "classes_") or len(np.unique(y[fewer])) == len(model.classes_):
        weight_fewer = None if weight is None else weight[fewer]
        yield Altered("last row dropped", model, X[fewer], y[fewer], weight_fewer, False)
    moved = y.copy()
    moved[0] = y[1] if hasattr(model, "classes_") else y[0] + 1.0 + abs(y[0])
    if not np.array_equal(moved, y):
        yield Altered("first label changed", model, X, moved, weight, False)
    weight = np.ones(n) if weight is None else weight
    yield Altered("weights doubled", model, X, y, 2.0 * weight, False)
