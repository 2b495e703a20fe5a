"""The law of certificates as an assertion.

What a fit claims is true by an independent judge; and what it calls certified passes ``verify``, in floats and exactly.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np
import scipy.sparse as sp
from hostile import coefficients
from judge import Task, judge

from linsep import verify


def fit_quietly(estimator: Any, X: Any, y: Any, weight: Any = None) -> Any:
    """Fit without the warning of a fit that is not certified."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return estimator.fit(X, y, weight)


def assert_true(task: Task, W: Any, claim: Any) -> None:
    """Assert that the claim about coefficients (d + 1, k) is true."""
    findings, _ = judge(task, W, claim)
    assert not findings, "\n".join(f"{kind}: {detail}" for kind, detail in findings)


def assert_verified(model: Any, X: Any, y: Any, weight: Any = None) -> None:
    """Assert that a certified model passes verify, in floats and exactly, and that both agree."""
    if not model.certificate_.certified:
        return
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = verify(model, X, y, weight)
        exact = verify(model, X, y, weight, exact=True)
    assert found.certified
    assert exact.certified
    rounding = getattr(found, "rounding", 0.0)  # errors are counted without any
    assert abs(found.primal - exact.primal) <= rounding + 2.0**-52 * abs(exact.primal)


def task_of(model: Any, X: Any, y: Any, weight: Any = None, C: float | None = None) -> Task:
    """The objective of a model for two classes (labels +-1), for targets, or with coupled classes."""
    rows = np.asarray(X.toarray() if sp.issparse(X) else X, dtype=np.float64)
    recipe = model._fits[0].recipe
    return Task(
        recipe.loss.name,
        rows,
        y,
        model.C if C is None else C,
        getattr(model, "l1_ratio", 0.0),
        weight,
        model.fit_intercept,
        regression=not hasattr(model, "classes_"),
        width=getattr(recipe.loss, "width", 1.0),
        classes=getattr(recipe.loss, "k", 1),
    )


def assert_lawful(model: Any, X: Any, y: Any, weight: Any = None, C: float | None = None) -> None:
    """Assert that what a fitted model claims is true, and that verify agrees if it is certified."""
    assert_true(task_of(model, X, y, weight, C), coefficients(model), model.certificate_)
    assert_verified(model, X, y, weight)
