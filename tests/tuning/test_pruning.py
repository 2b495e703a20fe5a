"""Losing C told by bounds: the bounds enclose the truth, the choice is the same, what is left out is said."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_iris
from sklearn.model_selection import StratifiedKFold

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, tune
from linsep.errors import BadInput, Refused
from linsep.tuning import pruning as rejecting
from linsep.tuning.labelled_rows import LabelledRows

CS = [1e-5, 1e-3, 0.1, 1.0, 10.0]


@pytest.fixture(scope="module")
def text():
    """Sparse rows of unit length, three in ten of one class: small C call them all the other."""
    rng = np.random.default_rng(6)
    X = sp.csr_matrix(np.where(rng.random((400, 300)) < 0.05, rng.random((400, 300)), 0.0))
    X = sp.csr_matrix(X.multiply(1.0 / np.sqrt(X.multiply(X).sum(axis=1)).clip(1e-9)))
    z = X @ rng.normal(size=300) + 0.1 * rng.normal(size=400)
    return X, np.where(z > np.quantile(z, 0.7), "rare", "common")


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "huberised_hinge"])
def test_bounds_of_a_rough_model_enclose_the_error_of_the_optimum(text, loss, weighted):
    X, y = text
    weight = np.linspace(0.5, 1.5, len(y)) if weighted else None
    train, held = next(iter(StratifiedKFold(4).split(X, y)))
    own = None if weight is None else weight[train]
    rows = LabelledRows(X, y, weight)
    narrow = 0
    for C in CS:
        for fit_intercept in (True, False):
            rough = LinearClassifier(loss, C=C, tol=1e-3, fit_intercept=fit_intercept)
            rough.fit(X[train], y[train], sample_weight=own)
            parts = [rejecting.signed_rows(rough, rows.take(part)) for part in (train, held)]
            least, most = rejecting.error_bounds(rough, *parts)
            exact = LinearClassifier(loss, C=C, tol=1e-9, fit_intercept=fit_intercept)
            exact.fit(X[train], y[train], sample_weight=own)
            wrong = np.average(
                exact.predict(X[held]) != y[held], weights=None if weight is None else weight[held]
            )
            assert least - 1e-12 <= wrong <= most + 1e-12
            narrow += most - least < 0.1
    assert narrow >= 2  # they say something


@pytest.mark.parametrize("loss", ["logistic", "hinge"])
def test_the_best_intercept_lies_between_the_bounds(loss):
    rng = np.random.default_rng(0)
    z, reach = rng.normal(size=50), rng.uniform(0.0, 0.3, 50)
    sign = np.where(z + rng.normal(size=50) > 0, 1.0, -1.0)
    one = LinearClassifier(loss)._two_class_loss()
    low, high = rejecting.intercepts(one, sign, z, reach, np.ones(50), 0.0)
    b = np.linspace(low - 1.0, high + 1.0, 4001)
    for _ in range(20):
        scores = z + reach * rng.uniform(-1.0, 1.0, 50)
        values = one.value(sign * (scores + b[:, None])).sum(axis=1)
        best = b[values <= values.min() * (1 + 1e-12)]
        assert low - 1e-3 <= best.min() and best.max() <= high + 1e-3


@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()], ids=["logistic", "hinge"])
@pytest.mark.sampled(1)
def test_the_choice_is_the_same_and_what_was_rejected_is_said(text, model):
    X, y = text
    plain = tune(model, X, y, CS, cv=4)
    quick = tune(model, X, y, CS, cv=4, reject=True)
    assert quick.best_C == plain.best_C and plain.rejected == {}
    assert quick.rejected and "C rejected by bounds" in str(quick)
    best = plain.curve.mean.min()
    for C, (least, most) in quick.rejected.items():
        at = CS.index(C)
        assert best < least <= plain.curve.mean[at] + 1e-12 and plain.curve.mean[at] <= most + 1e-12
        assert all(proof.tol == rejecting.TOL for proof in quick.certificates[at])
    kept = [c for c, C in enumerate(CS) if C not in quick.rejected]
    assert all(p.tol == 1e-6 and p.certified for c in kept for p in quick.certificates[c])
    assert np.allclose(quick.curve.scores[kept], plain.curve.scores[kept], atol=0.011)


def test_requests_that_bounds_cannot_serve_are_refused(text):
    X, y = text
    with pytest.raises(BadInput, match="scoring='error'"):
        tune(LogisticRegression(), X, y, CS, reject=True, scoring="auc")
    with pytest.raises(BadInput, match="rule='best'"):
        tune(LogisticRegression(), X, y, CS, reject=True, rule="one_standard_error")
    with pytest.raises(Refused, match="two classes"):
        tune(LogisticRegression(), *load_iris(return_X_y=True), CS, reject=True)
    with pytest.raises(BadInput, match="scoring='error'"):
        tune(LinearRegressor(), X, np.arange(400.0), CS, reject=True)
