"""scikit-learn's classifiers by linsep: the same objective, attributes of the same kind, at the proven minimum."""

import logging
import pickle

import joblib
import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_wine
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from versions import needs_sklearn

import linsep.sklearn as ours
from linsep import audit

WINE, LABELS = load_wine(return_X_y=True)
SCALED = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)
WEIGHT = np.random.default_rng(0).uniform(0.0, 3.0, len(LABELS))

CASES = [
    ("LinearSVC", {}),
    ("LinearSVC", {"loss": "hinge", "C": 0.1}),
    ("LinearSVC", {"penalty": "l1", "intercept_scaling": 5.0, "C": 0.2}),
    ("LinearSVC", {"multi_class": "crammer_singer"}),
    ("LinearSVC", {"class_weight": "balanced", "dual": True}),
    ("LinearSVC", {"class_weight": {0: 3.0}, "fit_intercept": False}),
    ("RidgeClassifier", {}),
    ("RidgeClassifier", {"alpha": 10.0, "class_weight": "balanced"}),
    ("RidgeClassifier", {"fit_intercept": False, "solver": "sag"}),
    ("SGDClassifier", {"alpha": 0.01}),
    ("SGDClassifier", {"loss": "log_loss", "alpha": 0.01, "class_weight": {1: 4.0}}),
    ("SGDClassifier", {"loss": "modified_huber", "penalty": "elasticnet"}),
    ("SGDClassifier", {"loss": "squared_hinge", "penalty": "l1", "alpha": 0.01}),
    ("SGDClassifier", {"loss": "squared_error", "alpha": 0.1}),
]


def original(name):
    return getattr(svm if name == "LinearSVC" else linear_model, name)


@pytest.mark.sampled(10)
@pytest.mark.parametrize("weight", [None, WEIGHT], ids=["plain", "weighted"])
@pytest.mark.parametrize(("name", "options"), CASES, ids=str)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_the_objective_of_scikit_learn_is_minimised(name, options, weight):
    for y in (LABELS, LABELS == 1):
        model = getattr(ours, name)(**options).fit(SCALED, y, sample_weight=weight)
        other = original(name)(**options).set_params(max_iter=5000)
        other.fit(SCALED, y, sample_weight=weight)
        mine, theirs = (audit(m, SCALED, y, weight) for m in (model, other))
        assert model.certificate_.certified
        assert mine.relative_excess[1] < 2e-6
        assert mine.objective <= theirs.objective * (1.0 + 2e-6)
        for attribute in ("coef_", "intercept_", "classes_"):
            found, wanted = getattr(model, attribute), getattr(other, attribute)
            assert np.shape(found) == np.shape(wanted), attribute
            assert np.asarray(found).dtype == np.asarray(wanted).dtype, attribute
        assert type(model.n_iter_) is type(other.n_iter_)
        assert {*vars(other)} <= {*vars(model)}


@pytest.mark.parametrize("name", ["LogisticRegression", "LinearSVC", "RidgeClassifier"])
def test_the_short_road_leads_to_the_same_model(name):
    """Integers as lists go through scikit-learn's checks, arrays past them."""
    kind = getattr(ours, name)
    for y in (LABELS, (LABELS > 0).astype(int)):
        short, whole = kind().fit(SCALED, y), kind().fit(SCALED.tolist(), y.tolist())
        assert {*vars(short)} == {*vars(whole)}
        for attribute in ("coef_", "intercept_", "classes_", "n_iter_", "n_features_in_"):
            found, wanted = getattr(short, attribute), getattr(whole, attribute)
            np.testing.assert_allclose(
                np.asarray(found, float), np.asarray(wanted, float), rtol=1e-9
            )
            assert type(found) is type(wanted)
        assert (short.predict(SCALED) == whole.predict(SCALED)).all()
        with pytest.raises(ValueError, match="Input X contains NaN"):
            kind().fit(np.where(SCALED > 3.0, np.nan, SCALED), y)


KINDS = ["LogisticRegression", "LinearSVC", "RidgeClassifier", "SGDClassifier"]


@pytest.mark.parametrize("name", KINDS)
def test_sparse_and_dense_rows_agree(name):
    kind = getattr(ours, name)
    model, other = (kind().fit(X, LABELS == 0) for X in (SCALED, sp.csr_array(SCALED)))
    np.testing.assert_allclose(model.coef_, other.coef_, rtol=1e-4, atol=1e-5)


@pytest.mark.parametrize("name", KINDS)
def test_models_survive_pickling_cloning_and_searching(name):
    kind, base = getattr(ours, name), original(name)
    model = kind().fit(SCALED, LABELS)
    assert isinstance(model, base) and model.get_params() == base().get_params()
    other = pickle.loads(pickle.dumps(model))
    assert (other.coef_ == model.coef_).all() and other.certificate_ == model.certificate_
    assert not hasattr(clone(model), "coef_")
    strength = "C" if "C" in model.get_params() else "alpha"
    step = name.lower()
    pipe = make_pipeline(StandardScaler(), kind())
    search = GridSearchCV(pipe, {f"{step}__{strength}": [0.01, 1.0]}, cv=3).fit(WINE, LABELS)
    assert search.best_estimator_[-1].certificate_.certified
    assert cross_val_score(pipe, WINE, LABELS, cv=3).min() > 0.9


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"average": True}, "mean of the iterates"),
        ({"early_stopping": True}, "before its end"),
        ({"learning_rate": "constant", "eta0": 0.1}, "learning_rate='constant'"),
        ({"tol": None, "max_iter": 20}, "exactly max_iter epochs"),
        ({"max_iter": 3, "tol": 1e-3}, "max_iter=3"),
        ({"loss": "perceptron"}, "is minimal at w = 0"),
    ],
    ids=str,
)
@pytest.mark.filterwarnings("ignore::sklearn.exceptions.ConvergenceWarning")
def test_a_descent_of_its_own_is_left_to_scikit_learn(options, reason, caplog):
    with caplog.at_level(logging.INFO, logger="linsep.sklearn"):
        model = ours.SGDClassifier(random_state=0, **options).fit(SCALED, LABELS)
    other = linear_model.SGDClassifier(random_state=0, **options).fit(SCALED, LABELS)
    assert reason in caplog.text and not hasattr(model, "certificate_")
    assert (model.coef_ == other.coef_).all() and model.t_ == other.t_
    model.partial_fit(SCALED, LABELS)
    other.partial_fit(SCALED, LABELS)
    assert (model.coef_ == other.coef_).all()


def test_the_perceptron_is_scikit_learns_and_proves_separation():
    for y, separable in ((LABELS, True), (np.arange(len(LABELS)) % 2, False)):
        model, other = ours.Perceptron().fit(SCALED, y), linear_model.Perceptron().fit(SCALED, y)
        assert (model.coef_ == other.coef_).all() and model.n_iter_ == other.n_iter_
        assert hasattr(model, "certificate_") is separable
    model.fit(SCALED, LABELS)
    assert model.certificate_.certified and model.certificate_.primal == 0.0
    assert not hasattr(model.partial_fit(SCALED, LABELS), "certificate_")


@needs_sklearn("1.8", "no use_legacy_attributes")
@pytest.mark.parametrize("refit", [True, False])
@pytest.mark.parametrize("y", [LABELS, LABELS == 0], ids=["three", "two"])
def test_cross_validation_has_the_attributes_of_scikit_learn(y, refit):
    options = {
        "Cs": [0.01, 0.1, 1.0],
        "cv": 3,
        "scoring": "neg_log_loss",
        "l1_ratios": (0.0,),
        "refit": refit,
    }
    for legacy in (True, False):
        options["use_legacy_attributes"] = legacy
        model = ours.LogisticRegressionCV(**options).fit(SCALED, y)
        other = linear_model.LogisticRegressionCV(
            **options, tol=1e-9, solver="newton-cholesky"
        ).fit(SCALED, y)
        np.testing.assert_allclose(model.coef_, other.coef_, atol=1e-3)
        assert model.C_ == pytest.approx(other.C_) and np.shape(model.n_iter_) == np.shape(
            other.n_iter_
        )
        scores, wanted = (
            np.asarray(m.scores_ if not legacy else [*m.scores_.values()]) for m in (model, other)
        )
        np.testing.assert_allclose(scores, wanted, atol=1e-4)
        assert hasattr(model, "certificate_") is refit


@needs_sklearn("1.8", "no use_legacy_attributes")
@pytest.mark.slow
@pytest.mark.parametrize("backend", ["threading", pytest.param("loky", marks=pytest.mark.slow)])
def test_cross_validation_runs_in_threads_and_processes(backend):
    options = {
        "Cs": 3,
        "cv": 2,
        "scoring": "accuracy",
        "l1_ratios": (0.0,),
        "use_legacy_attributes": False,
    }
    with joblib.parallel_config(backend):
        model = ours.LogisticRegressionCV(n_jobs=2, **options).fit(SCALED, LABELS)
    alone = ours.LogisticRegressionCV(**options).fit(SCALED, LABELS)
    assert (model.coef_ == alone.coef_).all() and model.certificate_.certified


def test_negative_weights_and_weightless_classes_are_left_to_scikit_learn(caplog):
    weight = np.where(LABELS == 0, 0.0, 1.0)
    with caplog.at_level(logging.INFO, logger="linsep.sklearn"):
        ours.LogisticRegression(max_iter=50).fit(SCALED, LABELS, sample_weight=weight)
    assert "no row of positive weight" in caplog.text
