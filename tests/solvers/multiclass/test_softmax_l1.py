"""The softmax with an absolute penalty: optimality conditions and bounds by other code, laws, refusals."""

from __future__ import annotations

import copy

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.special import entr, softmax
from sklearn.datasets import load_iris, load_wine

from linsep import ConvergenceWarning, LinearClassifier, LogisticRegression, path, verify
from linsep.errors import CertificateError


def classes(load):
    X, y = load(return_X_y=True)
    return (X - X.mean(axis=0)) / X.std(axis=0), y


def objective(model, X, y, C, l1_ratio):
    """P in the units of the user."""
    W = model.coef_
    Z = X @ W.T + model.intercept_
    top = Z.max(axis=1)
    losses = top + np.log(np.exp(Z - top[:, None]).sum(axis=1)) - Z[np.arange(len(y)), y]
    size = l1_ratio * np.abs(W).sum() + 0.5 * (1 - l1_ratio) * np.square(W).sum()
    return size + C * losses.sum()


def conditions(model, X, y, C, l1_ratio):
    """Largest violation of the optimality conditions, as a share of the L1 penalty."""
    P = softmax(X @ model.coef_.T + model.intercept_, axis=1)
    residual = C * (P - np.eye(P.shape[1])[y])
    G = residual.T @ X + (1 - l1_ratio) * model.coef_
    away = np.maximum(np.abs(G) - l1_ratio, 0.0)
    on = model.coef_ != 0
    away[on] = np.abs(G + l1_ratio * np.sign(model.coef_))[on]
    return away.max() / l1_ratio, np.abs(residual.sum(axis=0)).max()


@pytest.mark.parametrize("load", [load_iris, load_wine], ids=["iris", "wine"])
@pytest.mark.parametrize("C", [0.05, 1.0, 30.0])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_optimal_and_proven(load, C, l1_ratio):
    X, y = classes(load)
    model = LogisticRegression(C=C, l1_ratio=l1_ratio, tol=1e-8).fit(X, y)
    certificate = model.certificate_
    assert certificate.certified and verify(model, X, y).certified
    assert np.isclose(certificate.primal, objective(model, X, y, C, l1_ratio), rtol=1e-12)
    at_features, at_intercepts = conditions(model, X, y, C, l1_ratio)
    # the objective is known to 1e-8, conditions to its root
    assert at_features <= 1e-3 * max(1.0, C) and at_intercepts <= 1e-2 * max(1.0, C)


def test_no_feasible_dual_point_lies_above_the_bound_and_the_bound_below_every_model():
    X, y = classes(load_iris)
    model = LogisticRegression(C=1.0, l1_ratio=1.0, tol=1e-9).fit(X, y)
    # a dual point of our own: the residuals, class sums made 0 by projection of the intercepts, shrunk into the box
    P = softmax(X @ model.coef_.T + model.intercept_, axis=1)
    V = (np.eye(3)[y] - P).T @ X
    kappa = min(1.0, 1.0 / np.abs(V).max())
    bound = kappa * entr(P).sum()
    assert bound <= model.certificate_.primal * (1 + 1e-9)
    rng = np.random.default_rng(0)
    other = copy.deepcopy(model)
    for size in (1e-3, 1e-1, 1.0):
        other.coef_ = model.coef_ + size * rng.normal(size=model.coef_.shape)
        assert model.certificate_.dual <= objective(other, X, y, 1.0, 1.0)


def test_dense_csr_csc_and_single_precision_have_one_minimum():
    X, y = classes(load_wine)
    dense = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-9).fit(X, y)
    for other in (sp.csr_matrix(X), sp.csc_matrix(X), np.asfortranarray(X)):
        model = LogisticRegression(C=0.5, l1_ratio=1.0, tol=1e-9).fit(other, y)
        assert np.allclose(model.coef_, dense.coef_, atol=1e-5)
        assert verify(model, other, y).certified
    single = X.astype(np.float32)
    assert verify(LogisticRegression(C=0.5, l1_ratio=1.0).fit(single, y), single, y).certified


def test_weight_two_is_the_row_twice_and_threads_do_not_matter():
    X, y = classes(load_iris)
    weight = np.array([0.0, 1.0, 2.0])[np.arange(len(y)) % 3]
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    a = LogisticRegression(C=1.0, l1_ratio=1.0, tol=1e-10).fit(X, y, sample_weight=weight)
    b = LogisticRegression(C=1.0, l1_ratio=1.0, tol=1e-10).fit(X[rows], y[rows])
    assert np.isclose(a.certificate_.primal, b.certificate_.primal, rtol=1e-9)
    assert np.allclose(a.coef_, b.coef_, atol=1e-5)
    c = LogisticRegression(C=1.0, l1_ratio=1.0, tol=1e-10, n_threads=1).fit(
        X, y, sample_weight=weight
    )
    assert np.array_equal(a.coef_, c.coef_)


def test_working_sets_of_features_and_a_tampered_model():
    rng = np.random.default_rng(1)
    X = rng.normal(size=(100, 120))
    y = np.argmax(X[:, :4] + 0.5 * rng.normal(size=(100, 4)), axis=1)
    model = LogisticRegression(C=0.2, l1_ratio=1.0).fit(X, y)
    assert verify(model, X, y).certified
    used = np.count_nonzero(model.coef_.any(axis=0))
    assert 4 <= used < 100
    model.coef_ = model.coef_ * 1.01
    with pytest.raises(CertificateError):
        verify(model, X, y)


def topics(n=240, d=900, k=4, seed=0):
    """Sparse rows of several classes, more columns than rows."""
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.03, format="csr", random_state=seed)
    W = np.zeros((d, k))
    W[:80] = 4.0 * rng.normal(size=(80, k))
    return X, np.argmax(X @ W + 0.3 * rng.gumbel(size=(n, k)), axis=1)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize(("C", "l1_ratio"), [(1.0, 1.0), (30.0, 1.0), (5.0, 0.5), (300.0, 0.1)])
def test_many_features_class_by_class_and_all_together(C, l1_ratio, fit_intercept):
    X, y = topics()
    options = {"fit_intercept": fit_intercept, "tol": 1e-8}
    model = LogisticRegression(C=C, l1_ratio=l1_ratio, **options).fit(X, y)
    assert verify(model, X, y).certified
    assert 0 < np.count_nonzero(model.coef_) < model.coef_.size
    dense = X.toarray()
    assert np.isclose(
        model.certificate_.primal, objective(model, dense, y, C, l1_ratio), rtol=1e-11
    )
    at_features, at_intercepts = conditions(model, dense, y, C, l1_ratio)
    assert at_features <= 1e-2  # the objective is known to 1e-8, conditions to its root
    assert at_intercepts <= 1e-2 or not fit_intercept


def test_laws_hold_on_many_features():
    X, y = topics()
    weight = np.array([0.0, 1.0, 2.0])[np.arange(len(y)) % 3]
    rows = np.repeat(np.arange(len(y)), weight.astype(int))
    options = {"C": 5.0, "l1_ratio": 0.7, "tol": 1e-9}
    a = LogisticRegression(**options).fit(X, y, sample_weight=weight)
    b = LogisticRegression(**options).fit(X[rows], y[rows])
    assert np.isclose(a.certificate_.primal, b.certificate_.primal, rtol=1e-8)
    one = LogisticRegression(n_threads=1, **options).fit(X, y, sample_weight=weight)
    assert np.array_equal(one.coef_, a.coef_)
    full = LogisticRegression(**options).fit(X.toarray(), y, sample_weight=weight)
    assert np.isclose(a.certificate_.primal, full.certificate_.primal, rtol=1e-8)
    again = LogisticRegression(warm_start=True, **options).fit(X, y)
    passes = again.n_passes_
    assert again.fit(X, y).n_passes_ < passes and again.certificate_.certified
    none = LogisticRegression(C=1e-3, l1_ratio=1.0).fit(X, y)
    assert not none.coef_.any() and verify(none, X, y).certified


def test_a_limit_leaves_the_weights_reached():
    X, y = topics()
    with pytest.warns(ConvergenceWarning):
        model = LogisticRegression(C=30.0, l1_ratio=1.0, max_passes=60).fit(X, y)
    assert model.coef_.any() and 0.0 < model.certificate_.relative_gap < 1.0


def test_a_weak_penalty_frees_and_a_strong_one_leaves_the_class_shares():
    X, y = classes(load_iris)
    share = np.bincount(y) / len(y)
    top = np.abs(X.T @ (np.eye(3)[y] - share)).max()
    none = LogisticRegression(C=0.999 / top, l1_ratio=1.0).fit(X, y)
    assert not none.coef_.any() and none.certificate_.certified
    assert np.allclose(softmax(none.intercept_), share, atol=1e-4)
    assert LogisticRegression(C=1.01 / top, l1_ratio=1.0).fit(X, y).coef_.any()


def test_nearly_no_absolute_part_is_the_ridge():
    X, y = classes(load_iris)
    ridge = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    nearly = LogisticRegression(C=1.0, l1_ratio=1e-7, tol=1e-10).fit(X, y)
    assert np.allclose(ridge.coef_, nearly.coef_, atol=1e-4)


def test_a_path_is_certified_at_every_strength():
    X, y = classes(load_iris)
    found = path(LogisticRegression(l1_ratio=1.0), X, y, [0.05, 0.5, 5.0])
    assert all(certificate.certified for certificate in found.certificates)


def test_the_hinge_takes_an_elastic_net():
    X, y = classes(load_iris)
    model = LinearClassifier("hinge", l1_ratio=0.5).fit(X, y == 1)
    assert model.certificate_.certified and model.solver_ == "absolute-rows"


def test_a_limit_returns_the_last_point_and_not_the_start():
    X, y = load_iris(return_X_y=True)
    objectives = []
    for passes in (5, 12, 20):
        model = LogisticRegression(100.0, l1_ratio=1.0, max_passes=passes)
        with pytest.warns(ConvergenceWarning):
            objectives.append(model.fit(X, y).certificate_.primal)
    assert objectives[1] < 0.5 * objectives[0]
    assert objectives[2] < objectives[1]
