"""Gap-safe screening: nothing that is proven is false, judged by far more accurate fits and by other penalties."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.datasets import load_diabetes, load_iris, load_wine
from sklearn.linear_model import Lasso

from linsep import LinearClassifier, LinearRegressor, LogisticRegression, screen
from linsep.errors import CertificateError, Refused


def rows(n=300, d=12, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, np.where(X[:, 0] - X[:, 1] + rng.logistic(size=n) > 0, 1, -1)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge", "squared"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.6])
def test_what_is_proven_of_a_rough_fit_holds_for_an_accurate_one(loss, l1_ratio):
    X, y = rows()
    exact = LinearClassifier(loss, C=0.05, l1_ratio=l1_ratio, tol=1e-11).fit(X, y)
    known = []
    for tol in (1e-3, 1e-6, 1e-9):
        model = LinearClassifier(loss, C=0.05, l1_ratio=l1_ratio, tol=tol).fit(X, y)
        found = screen(model, X, y)
        assert not exact.coef_[found.zero].any()
        assert exact.coef_[found.nonzero].all()
        assert not (found.zero & found.nonzero).any()
        assert found.zero.shape == found.undecided.shape == model.coef_.shape
        known.append(found.zero.sum())
    assert known[-1] >= 1 and known[-1] == (exact.coef_ == 0).sum()


def test_several_classes_sparse_rows_and_weights():
    X, y = load_wine(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    weight = np.arange(len(y)) % 3 + 0.5
    for data in (X, sp.csr_matrix(X)):
        model = LogisticRegression(C=0.2, l1_ratio=1.0, tol=1e-9).fit(data, y, sample_weight=weight)
        found = screen(model, data, y, weight)
        assert found.zero.shape == (3, 13) and found.zero.sum() >= 20
        assert not model.coef_[found.zero].any()
    ovr = LogisticRegression(C=0.2, l1_ratio=1.0, multiclass="ovr", tol=1e-9).fit(X, y)
    assert screen(ovr, X, y).zero.shape == (3, 13)
    assert "of 39 coefficients proven zero" in str(found)


def test_regression_agrees_with_the_lasso_of_scikit_learn():
    X, t = load_diabetes(return_X_y=True)
    alpha = 0.5  # |r|^2 / (2 n) + alpha |w|_1: with loss r^2, C = 1 / (2 n alpha)
    model = LinearRegressor(C=1 / (2 * len(t) * alpha), l1_ratio=1.0, tol=1e-9).fit(X, t)
    other = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, t)
    found = screen(model, X, t)
    assert found.zero.shape == (10,) and found.zero.any()
    assert not other.coef_[found.zero].any()


def test_refusals():
    X, y = rows()
    ridge = LogisticRegression().fit(X, y)
    with pytest.raises(Refused, match="l1_ratio > 0"):
        screen(ridge, X, y)
    steep = LinearClassifier("exponential", C=0.05, l1_ratio=1.0).fit(X, y)
    with pytest.raises(Refused, match="bounded curvature"):
        screen(steep, X, y)
    model = LogisticRegression(l1_ratio=1.0).fit(X, y)
    model.coef_ = model.coef_ + 0.1
    with pytest.raises(CertificateError):
        screen(model, X, y)


def test_a_constant_column_and_a_column_of_zeros():
    X, y = load_iris(return_X_y=True)
    X = np.column_stack([X, np.zeros(150), np.ones(150)])
    model = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-8).fit(X, y == 1)
    found = screen(model, X, y == 1)
    assert found.zero[0, 4] and not model.coef_[0, 4:].any()
