"""scikit-learn's logistic regression by linsep: the same objective, at its proven minimum."""

import logging

import numpy as np
import pytest
from sklearn import linear_model
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_wine

from linsep import audit
from linsep.sklearn import LogisticRegression

WINE, LABELS = load_wine(return_X_y=True)
SCALED = (WINE - WINE.mean(axis=0)) / WINE.std(axis=0)

OPTIONS = [
    {},
    {"C": 10.0, "class_weight": "balanced"},
    {"class_weight": {0: 2.0, 1: 0.5}},
    {"l1_ratio": 1.0, "solver": "saga"},
    {"l1_ratio": 0.5, "solver": "saga"},
    {"fit_intercept": False},
    {"solver": "newton-cholesky"},
]
BINARY = [
    {"solver": "liblinear"},
    {"solver": "liblinear", "intercept_scaling": 10.0, "class_weight": "balanced"},
    {"solver": "liblinear", "l1_ratio": 1.0, "intercept_scaling": 3.0},
    {"solver": "liblinear", "dual": True},
]


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("options", OPTIONS + BINARY, ids=str)
def test_the_objective_of_scikit_learn_is_minimised(options, weighted):
    weight = np.random.default_rng(0).uniform(0.1, 3.0, len(LABELS)) if weighted else None
    targets = [LABELS == 1] if options in BINARY else [LABELS, LABELS == 1]
    for y in targets:
        model = LogisticRegression(**options, tol=1e-5).fit(SCALED, y, sample_weight=weight)
        other = linear_model.LogisticRegression(**options, tol=1e-10).set_params(max_iter=20_000)
        other.fit(SCALED, y, sample_weight=weight)
        assert model.certificate_.certified
        assert audit(model, SCALED, y, weight).relative_excess[1] < 1e-7
        assert np.abs(model.coef_ - other.coef_).max() < 1e-4
        for name in ("coef_", "intercept_", "classes_", "n_iter_"):
            ours, theirs = getattr(model, name), getattr(other, name)
            assert ours.shape == theirs.shape and ours.dtype == theirs.dtype, name


def test_raw_data_need_no_iterations_more():
    X, y = load_breast_cancer(return_X_y=True)
    model = LogisticRegression().fit(X, y)  # warnings are errors
    assert model.certificate_.certified and model.n_iter_[0] < model.max_iter
    assert audit(model, X, y).optimal


@pytest.mark.parametrize("scaling", [1.0, 3.0])
def test_the_certificate_holds_for_single_precision(scaling):
    X, y = SCALED.astype(np.float32), LABELS == 0
    model = LogisticRegression(solver="liblinear", intercept_scaling=scaling).fit(X, y)
    verdict = audit(model, X, y)
    low, high = verdict.minimum
    assert model.certificate_.certified
    assert model.certificate_.dual <= high and verdict.objective <= model.certificate_.primal * (
        1 + 1e-9
    )
    assert model.certificate_.primal - model.certificate_.gap <= low * (1 + 1e-9)


def test_what_has_no_minimum_is_left_to_scikit_learn(caplog):
    with caplog.at_level(logging.INFO, logger="linsep.sklearn"):
        model = LogisticRegression(C=np.inf, max_iter=10_000).fit(SCALED, LABELS == 0)
    assert "separable" in caplog.text and not hasattr(model, "certificate_")
    assert model.score(SCALED, LABELS == 0) == 1.0
    assert hasattr(clone(model).set_params(C=1.0).fit(SCALED, LABELS), "certificate_")
