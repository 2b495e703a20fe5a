"""Approximate leave-one-out: exact where it should be, close elsewhere, labelled, refused where it has no meaning."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris
from sklearn.model_selection import KFold

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    LogisticRegressionCV,
    tune,
)
from linsep.errors import BadInput, Refused
from linsep.tuning import leave_one_out

CS = [0.01, 1.0, 100.0]
LOO = "loo-approximate"


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:120, :5] / X[:120, :5].std(axis=0), y[:120]


def left_out(model, X, y, C, score, weight=None):
    """The definition: a fit without each row."""
    out = np.empty(len(y))
    for i in range(len(y)):
        rest = np.arange(len(y)) != i
        model.set_params(C=C).fit(
            X[rest], y[rest], sample_weight=None if weight is None else weight[rest]
        )
        out[i] = score(model, X[i : i + 1])
    return out


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_it_is_exact_for_the_squared_loss(fit_intercept):
    X, t = load_diabetes(return_X_y=True)
    X, t = 30.0 * X[:60] + 500.0 * fit_intercept, t[:60]
    weight = np.linspace(0.5, 2.0, 60)
    model = LinearRegressor(fit_intercept=fit_intercept, tol=1e-10)
    given = model._grid_problem(X, t, weight)
    for C, fit in zip(CS, leave_one_out.fits_of(given, CS), strict=True):
        expected = left_out(model, X, t, C, lambda m, x: m.predict(x)[0], weight)
        assert np.allclose(leave_one_out.scores(given, fit), expected, rtol=1e-5)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_it_is_close_for_the_other_smooth_losses(cancer, loss):
    X, y = cancer
    model = LinearClassifier(loss, tol=1e-9)
    given = model._grid_problem(X, y, None)
    for C, fit in zip(CS[:2], leave_one_out.fits_of(given, CS[:2]), strict=True):
        expected = left_out(model, X, y, C, lambda m, x: m.decision_function(x)[0])
        seen = model.set_params(C=C).fit(X, y).decision_function(X)
        near = np.abs(leave_one_out.scores(given, fit) - expected)
        far = np.abs(seen - expected)  # what the scores of the fit itself miss
        assert near.sum() <= 0.2 * far.sum()


def test_tune_reports_it_as_approximate(cancer):
    X, y = cancer
    tuning = tune(LogisticRegression(), X, y, CS, cv=LOO, scoring="log_loss")
    assert tuning.curve.approximate and tuning.curve.scores.shape == (3, 1)
    assert "by approximate leave-one-out" in str(tuning)
    assert tuning.certified and tuning.certificates.shape == (3, 1)
    exact = tune(LogisticRegression(), X, y, CS, cv=KFold(len(y)), scoring="log_loss")
    assert not exact.curve.approximate
    assert np.allclose(tuning.curve.mean[:2], exact.curve.mean[:2], rtol=0.005)
    # with hardly a penalty a row of 120 moves the fit further than one Newton step follows
    assert np.isclose(tuning.curve.mean[2], exact.curve.mean[2], rtol=0.1)
    assert tuning.best_C == exact.best_C
    assert tuning.best_estimator_.C == tuning.best_C


def test_dense_and_sparse_rows_agree_and_a_test_part_is_set_aside(cancer):
    X, y = cancer
    plain = tune(LogisticRegression(), X, y, CS, cv=LOO, scoring="log_loss", test=0.2)
    sparse = tune(
        LogisticRegression(), sp.csr_matrix(X), y, CS, cv=LOO, scoring="log_loss", test=0.2
    )
    assert np.allclose(plain.curve.scores, sparse.curve.scores, rtol=1e-3)
    assert plain.test_score is not None
    model = LogisticRegressionCV(CS, cv=LOO, scoring="log_loss").fit(X, y)
    assert model.tuning_.curve.approximate
    assert model.scores_.shape == (1, 3)


def test_a_row_of_weight_zero_is_not_missed(cancer):
    X, y = cancer
    weight = np.ones(len(y))
    weight[::4] = 0.0
    given = LogisticRegression()._grid_problem(X, y, weight)
    (fit,) = leave_one_out.fits_of(given, [1.0])
    z = leave_one_out.scores(given, fit)
    own = X @ fit.W[:-1, 0] + fit.W[-1, 0]
    assert np.allclose(z[::4], own[::4])
    assert not np.isclose(z[1], own[1], rtol=1e-6)


def test_what_has_no_newton_step_is_refused(cancer):
    X, y = cancer
    with pytest.raises(Refused, match="smooth loss: the hinge loss"):
        tune(LinearSVC(), X, y, CS, cv=LOO)
    with pytest.raises(Refused, match="l1_ratio=0"):
        tune(LogisticRegression(l1_ratio=0.5), X, y, CS, cv=LOO)
    with pytest.raises(Refused, match="two classes"):
        tune(LogisticRegression(), *load_iris(return_X_y=True), CS, cv=LOO)
    with pytest.raises(Refused, match="2,000 features"):
        tune(LogisticRegression(), sp.csr_matrix((120, 3000)), y, CS, cv=LOO)
    with pytest.raises(BadInput, match="neither validation nor groups"):
        tune(LogisticRegression(), X, y, CS, cv=LOO, validation=0.2)
    with pytest.raises(BadInput, match="no folds"):
        tune(LogisticRegression(), X, y, CS, cv=LOO, rule="one_standard_error")
