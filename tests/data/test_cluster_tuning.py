"""Choosing C, paths, scores and summaries of rows on a Dask cluster: the answers of the same rows in memory."""

from __future__ import annotations

import numpy as np
import pytest

from linsep import (
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    path,
    scan,
    summary,
    tune,
)
from linsep.data.cluster import PersistedRows
from linsep.errors import BadInput

da = pytest.importorskip("dask.array")
distributed = pytest.importorskip("distributed")

N, PARTS = 3000, 3
CS = [0.001, 1.0]


@pytest.fixture(scope="module")
def table(client):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, 4))
    z = X.sum(axis=1) + 2.0 * rng.logistic(size=N)
    return X, np.where(z > 0, "yes", "no"), z, rng.integers(0, 3, N) / 2.0


def cut(a):
    return da.from_array(a, chunks=(N // PARTS, *a.shape[1:]))


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    "model, options",
    [
        (LogisticRegression(tol=1e-10), {"cv": 2, "scoring": "log_loss"}),
        (LogisticRegression(class_weight="balanced"), {"validation": 0.25, "test": 0.2}),
        (LinearSVC(), {"validation": 0.3, "scoring": "auc"}),
    ],
    ids=["logistic", "balanced", "hinge"],
)
def test_curves_are_those_of_an_array(model, options, table):
    X, y, _, weight = table
    there = tune(model, cut(X), cut(y), CS, sample_weight=cut(weight), **options)
    here = tune(model, X, y, CS, sample_weight=weight, **options)
    assert there.certified and there.best_C == here.best_C
    np.testing.assert_allclose(there.curve.scores, here.curve.scores, rtol=2e-4)
    if "test" in options:
        assert abs(there.test_score - here.test_score) <= 0.01
    assert there.best_estimator_.traffic_.rounds > 0


@pytest.mark.slow
def test_estimators_that_choose_their_own_c(table, client, tmp_path):
    X, y, _, _ = table
    model = LogisticRegressionCV(CS, cv=2).fit(cut(X), cut(y))
    assert model.C_ == LogisticRegressionCV(CS, cv=2).fit(X, y).C_ and model.tuning_.certified
    assert LinearSVCCV(CS, cv=2).fit(list(cut(X).to_delayed().ravel()), y).C_ in CS
    for k in range(2):
        np.save(tmp_path / f"{k}.npy", X[k::2])
    both = np.concatenate([y[0::2], y[1::2]])
    files = LogisticRegressionCV(CS, cv=2).fit(scan(tmp_path, target=both, client=client))
    assert files.tuning_.certified and files.score(X, y) > 0.6


def test_a_path(table):
    X, y, _, _ = table
    model = LogisticRegression(tol=1e-10)
    there, here = path(model, cut(X), cut(y), CS), path(model, X, y, CS)
    np.testing.assert_allclose(there.coefs, here.coefs, atol=1e-4)
    assert all(proof.certified for proof in there.certificates)


def test_scores_and_summaries(table):
    X, y, z, weight = table
    model = LogisticRegression(C=np.inf).fit(X, y)
    assert np.isclose(model.score(cut(X), cut(y)), model.score(X, y), rtol=1e-12)
    other = da.from_array(y, chunks=700)  # cut otherwise than X
    assert np.isclose(model.score(cut(X), other, cut(weight)), model.score(X, y, weight))
    line = LinearRegressor(C=1.0).fit(X, z)
    assert np.isclose(line.score(cut(X), cut(z), weight), line.score(X, z, weight), rtol=1e-10)
    assert str(summary(model, cut(X), cut(y))) == str(summary(model, X, y))
    with pytest.raises(BadInput, match="needs y"):
        model.score(cut(X))


def test_what_needs_memory_is_refused(table):
    X, y, _, _ = table
    for options, text in (
        ({"cv": "loo-approximate"}, "in memory or on disk"),
        ({"reject": True}, "in memory"),
        ({"scoring": "f1_macro"}, "on a cluster are scored by one of error"),
    ):
        with pytest.raises(BadInput, match=text):
            tune(LogisticRegression(), cut(X), cut(y), CS, **options)


def test_means_over_held_out_rows_are_made_by_the_workers(table, monkeypatch):
    X, y, _, weight = table
    options = {"cv": 2, "sample_weight": weight}
    here = tune(LogisticRegression(tol=1e-10), X, y, CS, **options)

    def refuse(*given):
        raise AssertionError("predictions travel")

    for module in ("classification", "scoring"):
        monkeypatch.setattr(f"linsep.estimators.{module}.predict_lazily", refuse)
    sent = []
    keep = PersistedRows.send
    monkeypatch.setattr(
        PersistedRows,
        "send",
        lambda self, *asked: sent.append(id(keep(self, *asked))) or keep(self, *asked),
    )
    there = tune(LogisticRegression(tol=1e-10), cut(X), cut(y), CS, **options)
    np.testing.assert_allclose(there.curve.scores, here.curve.scores, rtol=1e-9)
    # y once, two vectors for each fold, and the weights of the last fit
    assert len(sent) == 14 and len(set(sent)) <= 6
