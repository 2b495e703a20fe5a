"""The law of tuning: every curve value and every objective is that of a separate certified fit.

Losses x kinds of data x splitters. The reference is one cold fit for each C and fold by the plain estimator; rows
whose score is too near zero for either fit to say their side may be counted differently.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.model_selection import (
    GridSearchCV,
    GroupKFold,
    KFold,
    LeaveOneGroupOut,
    RepeatedStratifiedKFold,
    StratifiedGroupKFold,
    StratifiedKFold,
    StratifiedShuffleSplit,
    TimeSeriesSplit,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    tune,
)

N = 160
CS = [0.02, 3.0]


def rows(kind):
    rng = np.random.default_rng(4)
    X = rng.normal(size=(N, 4))
    y = np.where(X @ [1.0, -1.0, 0.5, 0.0] + 0.8 * rng.normal(size=N) > 0, "yes", "no")
    weight = None
    if kind == "single":
        X = X.astype(np.float32)
    elif kind == "sparse":
        X = sp.csr_matrix(np.where(np.abs(X) > 0.5, X, 0.0))
    elif kind == "weighted":
        weight = rng.integers(0, 4, N) / 2.0
    elif kind == "uneven":
        X = X * [1e-2, 1.0, 30.0, 1.0] + [0.0, 100.0, 0.0, -3.0]
    elif kind == "wide":
        X = np.hstack([X, rng.normal(size=(N, 200))])
    return X, y, weight


KINDS = ["plain", "single", "sparse", "weighted", "uneven", "wide"]
GROUPS = np.arange(N) // 8
SPLITTERS = {
    "stratified": StratifiedKFold(3),
    "shuffled": KFold(3, shuffle=True, random_state=0),
    "groups": GroupKFold(3),
    "stratified-groups": StratifiedGroupKFold(3),
    "group-out": LeaveOneGroupOut(),
    "time": TimeSeriesSplit(3),
    "random": StratifiedShuffleSplit(2, test_size=0.3, random_state=0),
    "repeated": RepeatedStratifiedKFold(n_splits=2, n_repeats=2, random_state=0),
}
MODELS = {
    "logistic": LogisticRegression(),
    "squared_hinge": LinearSVC(loss="squared_hinge"),
    "hinge": LinearSVC(),
    "huberised_hinge": LinearClassifier("huberised_hinge"),
    "squared": LinearClassifier("squared"),
    "l1": LogisticRegression(l1_ratio=0.5),
}


def groups_for(splitter):
    if isinstance(splitter, LeaveOneGroupOut):
        return np.arange(N) // 40
    return GROUPS if isinstance(splitter, GroupKFold | StratifiedGroupKFold) else None


def check(model, X, y, weight, splitter):
    groups = groups_for(splitter)
    tuning = tune(model, X, y, CS, cv=splitter, groups=groups, sample_weight=weight, refit=False)
    assert tuning.certified
    weight = np.ones(N) if weight is None else weight
    expected = np.empty_like(tuning.curve.scores)
    for f, (train, held) in enumerate(splitter.split(np.zeros((N, 1)), y, groups)):
        for c, C in enumerate(CS):
            alone = model.set_params(C=C).fit(X[train], y[train], sample_weight=weight[train])
            proof, other = alone.certificate_, tuning.certificates[c, f]
            assert proof.certified
            # each objective is above the other's lower bound
            assert proof.dual <= other.primal * (1 + 1e-12)
            assert other.dual <= proof.primal * (1 + 1e-12)
            z = alone.decision_function(X[held])
            expected[c, f] = np.average(alone.predict(X[held]) != y[held], weights=weight[held])
            unsure = np.average(np.abs(z) <= 2e-3, weights=weight[held])
            assert abs(tuning.curve.scores[c, f] - expected[c, f]) <= unsure + 1e-12
    mean = expected.mean(axis=1)
    assert (
        mean[CS.index(tuning.best_C)] <= mean.min() + np.abs(expected - tuning.curve.scores).max()
    )


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("name", MODELS)
def test_every_loss_on_every_kind_of_data(name, kind):
    X, y, weight = rows(kind)
    check(MODELS[name], X, y, weight, SPLITTERS["stratified"])


@pytest.mark.parametrize("split", SPLITTERS)
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_every_splitter(name, split):
    X, y, weight = rows("plain" if name == "logistic" else "weighted")
    check(MODELS[name], X, y, weight, SPLITTERS[split])


@pytest.mark.parametrize("loss", ["squared", "huber", "absolute"])
@pytest.mark.parametrize("split", ["shuffled", "groups", "time"])
def test_regressions(loss, split):
    X, _, _ = rows("plain")
    t = X @ [1.0, -2.0, 0.0, 3.0] + np.random.default_rng(0).normal(size=N)
    splitter = SPLITTERS[split]
    model = LinearRegressor(loss, tol=1e-8)
    groups = groups_for(splitter)
    tuning = tune(model, X, t, CS, cv=splitter, groups=groups, refit=False)
    assert tuning.certified
    for f, (train, held) in enumerate(splitter.split(X, t, groups)):
        for c, C in enumerate(CS):
            alone = model.set_params(C=C).fit(X[train], t[train])
            expected = np.mean((alone.predict(X[held]) - t[held]) ** 2)
            assert np.isclose(tuning.curve.scores[c, f], expected, rtol=1e-3)


@pytest.mark.parametrize("kind", ["plain", "sparse"])
@pytest.mark.parametrize("name", ["logistic", "hinge"])
def test_any_number_of_threads_gives_the_same_bits(name, kind, tuned):
    tuned(worth_a_thread=0)
    X, y, _ = rows(kind)
    found = [
        tune(MODELS[name].set_params(n_threads=threads), X, y, CS, cv=4, scoring="auc", refit=False)
        for threads in (1, 2, 3)
    ]
    MODELS[name].set_params(n_threads=None)
    for other in found[1:]:
        assert np.array_equal(found[0].curve.scores, other.curve.scores)
        assert [p.primal for p in found[0].certificates.flat] == [
            p.primal for p in other.certificates.flat
        ]


def test_nested_cross_validation_in_a_pipeline():
    X, y, _ = rows("uneven")
    outer, inner = StratifiedKFold(2), GroupKFold(2)
    for chosen, plain in (
        (LogisticRegressionCV(CS, cv=inner), LogisticRegression()),
        (LinearSVCCV(CS, cv=inner), LinearSVC()),
    ):
        for train, held in outer.split(X, y):
            pipeline = make_pipeline(StandardScaler(), chosen)
            step = pipeline.steps[-1][0]
            pipeline.fit(X[train], y[train], **{f"{step}__groups": GROUPS[train]})
            scale = StandardScaler().fit(X[train])
            tuning = tune(
                plain, scale.transform(X[train]), y[train], CS, cv=inner, groups=GROUPS[train]
            )
            assert pipeline[-1].C_ == tuning.best_C
            alone = tuning.best_estimator_.predict(scale.transform(X[held]))
            assert np.array_equal(pipeline.predict(X[held]), alone)
    search = GridSearchCV(
        make_pipeline(StandardScaler(), LogisticRegressionCV(CS, cv=2)),
        {"logisticregressioncv__rule": ["best", "one_standard_error"]},
        cv=2,
    ).fit(X, y)
    assert search.best_estimator_[-1].tuning_.certified
