"""Grids of sparse rows: every model is the one that a fit of its own finds."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, path, tune

CS = [1e-3, 0.3, 30.0]


def text(n=240, d=400, seed=3):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, density=0.05, random_state=rng, format="csr")
    X.data += 0.1
    y = np.where(X @ rng.normal(size=d) + 0.3 * rng.logistic(size=n) > 0.0, 1.0, -1.0)
    return X, y


@pytest.mark.parametrize("weighted", [False, True], ids=["plain", "weighted"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_folds_have_the_errors_of_separate_fits(loss, weighted):
    X, y = text()
    weight = 1.0 + (np.arange(len(y)) % 3 == 0) if weighted else None
    order = np.arange(len(y))
    folds = [(order[order % 3 != f], order[order % 3 == f]) for f in range(3)]
    tuning = tune(
        LinearClassifier(loss), X, y, CS, cv=folds, refit=False, keep=True, sample_weight=weight
    )
    for c, C in enumerate(CS):
        for f, (train, _) in enumerate(folds):
            own = None if weight is None else weight[train]
            alone = LinearClassifier(loss, C=C).fit(X[train], y[train], sample_weight=own)
            proof = tuning.certificates[c, f]
            assert proof.certified
            apart = np.linalg.norm(tuning.coefs[c, f] - alone.coef_)
            assert apart <= proof.coef_error + alone.certificate_.coef_error


def test_targets_have_no_classes():
    X, _ = text()
    t = X @ np.linspace(-1.0, 1.0, X.shape[1])
    assert tune(LinearRegressor("huber"), X, t, CS, cv=3, refit=False).certified


def test_a_path_has_the_models_of_separate_fits():
    X, y = text()
    rising = path(LinearClassifier("logistic"), X, y, CS)
    for C, proof, coef in zip(CS, rising.certificates, rising.coefs, strict=True):
        alone = LinearClassifier("logistic", C=C).fit(X, y)
        assert proof.certified
        apart = np.linalg.norm(coef - alone.coef_)
        assert apart <= proof.coef_error + alone.certificate_.coef_error


def test_models_may_be_rejected():
    X, y = text()
    tuning = tune(LinearClassifier("logistic"), X, y, CS, cv=3, reject=True, refit=False)
    assert tuning.best_C in CS
