"""Fits without a penalty that leave no residual: more features than rows."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, losses, verify
from linsep.data import Memory
from linsep.errors import CertificateError, SeparableData
from linsep.losses import Absolute, Logistic, Squared, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers.newton import exact_fit
from linsep.solvers.newton.subsampled import minimise


def counts(n: int, d: int, seed: int) -> tuple[sp.csr_matrix, np.ndarray]:
    """Counts of frequent and rare words, and targets that depend on all of them."""
    rng = np.random.default_rng(seed)
    lengths = 1 + rng.poisson(15, n)
    words = (d * rng.random(lengths.sum()) ** 2.5).astype(np.int64)
    rows = np.repeat(np.arange(n), lengths)
    X = sp.csr_matrix((np.ones(len(rows)), (rows, words)), shape=(n, d))
    return X, 100.0 * np.asarray(X @ rng.standard_normal(d)) + 7.0


@pytest.mark.parametrize(
    "loss", ["squared", "huber", "absolute", losses.Pinball(0.2), losses.EpsilonInsensitive(0.1)]
)
def test_words_without_a_penalty_are_fitted_exactly(loss):
    X, y = counts(400, 450, 1)
    model = LinearRegressor(loss, C=np.inf).fit(X, y)
    assert model.certificate_.certified and model.certificate_.relative_gap == 0.0
    assert np.abs(model.predict(X) - y).max() <= 1e-12 * np.abs(y).max()
    verify(model, X, y)


@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("intercept", [False, True])
def test_the_fit_has_the_least_norm(dense, intercept):
    X, y = counts(120, 200, 2)
    weight = np.where(np.arange(120) % 7 == 0, 0.0, 2.0)
    problem = Problem(
        Squared(centre=0.0),
        ElasticNet(np.inf),
        Memory(X.toarray() if dense else X, np.ones(120), -y, weight),
        intercept,
    )
    found = exact_fit.solve(problem)
    assert found is not None
    A, t = X.toarray()[weight > 0.0], y[weight > 0.0]
    if intercept:
        A, t = A - A.mean(axis=0), t - t.mean()
    np.testing.assert_allclose(found.W[:-1, 0], np.linalg.pinv(A) @ t, atol=1e-7)


@pytest.mark.parametrize("d", [4, 320])
def test_a_small_auxiliary_problem_is_minimised_natively(d):
    """The solver in Python takes over above ``native.FEATURES``; both end at the least-squares solution."""
    rng = np.random.default_rng(d)
    X = rng.standard_normal((400, d))
    t = X @ rng.standard_normal(d) + rng.standard_normal(400)
    data = Memory(X, np.ones(400), -t)
    problem = Problem(Squared(centre=0.0), ElasticNet(np.inf), data, False)
    theta = minimise(problem, np.zeros(d + 1), Stop(1e-9))
    np.testing.assert_allclose(theta[:-1], np.linalg.lstsq(X, t)[0], atol=1e-8)
    assert (problem.passes <= 5.0) == (d == 4)


def test_targets_that_contradict_each_other_have_no_exact_fit():
    X, y = counts(120, 200, 3)
    X = sp.vstack([X, X[:1]]).tocsr()
    data = Memory(X, np.ones(121), -np.append(y, y[0] + 1.0), None)
    assert exact_fit.solve(Problem(Squared(centre=0.0), ElasticNet(np.inf), data)) is None


def test_scope():
    """No penalty, a loss of residuals, and at least as many features as rows."""
    X, y = counts(50, 60, 0)
    wide, tall = Memory(X, np.ones(50), -y, None), Memory(X[:, :40], np.ones(50), -y, None)
    free = ElasticNet(np.inf)
    assert exact_fit.in_row_space(Problem(Absolute(centre=0.0), free, wide))
    assert not exact_fit.in_row_space(Problem(Absolute(centre=0.0), free, tall))
    assert not exact_fit.in_row_space(Problem(Squared(), ElasticNet(1.0), wide))
    assert not exact_fit.in_row_space(Problem(Logistic(), free, wide))
    assert not exact_fit.in_row_space(Problem(SquaredHinge(), free, wide))
    assert exact_fit.solve(Problem(Squared(), free, tall)) is None


def wide(n: int, d: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A table with more columns than rows, scores, and penalty factors, a third of which are 0."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    return X, X @ rng.standard_normal(d), np.where(np.arange(d) % 3, 1.0, 0.0)


@pytest.mark.parametrize("l1_ratio", [0.0, 0.5, 1.0])
@pytest.mark.parametrize("loss", ["squared", "huber"])
def test_regressions_by_unpenalised_features_alone_are_exact(loss, l1_ratio):
    X, z, factor = wide(12, 60, 4)
    model = LinearRegressor(loss, C=0.3, penalty_factor=factor, l1_ratio=l1_ratio).fit(X, 5.0 + z)
    assert model.certificate_.certified and model.certificate_.relative_gap == 0.0
    assert not model.coef_[factor > 0.0].any()
    np.testing.assert_allclose(model.predict(X), 5.0 + z, rtol=1e-12)
    verify(model, X, 5.0 + z)
    verify(model, X, 5.0 + z, exact=True)


@pytest.mark.parametrize("loss", ["squared_hinge", "huberised_hinge"])
def test_classes_that_unpenalised_features_separate_have_loss_0(loss):
    X, z, factor = wide(12, 60, 5)
    model = LinearClassifier(loss, C=30.0, penalty_factor=factor).fit(X, z > 0.0)
    assert model.certificate_.certified and model.certificate_.primal == 0.0
    verify(model, X, z > 0.0)
    verify(model, X, z > 0.0, exact=True)


def test_an_exact_fit_that_is_not_exact_is_rejected():
    """A claim of relative gap 0 needs an objective that is zero to working precision."""
    X, z, factor = wide(30, 40, 6)
    model = LinearRegressor("squared", C=1.0, penalty_factor=factor).fit(X, z)
    assert model.certificate_.certified and model.certificate_.relative_gap > 0.0
    model._fits[0] = replace(
        model._fits[0], certificate=replace(model._fits[0].certificate, relative_gap=0.0)
    )
    model.certificate_ = replace(model.certificate_, relative_gap=0.0)
    with pytest.raises(CertificateError):
        verify(model, X, z)


def test_receding_losses_have_no_minimiser_if_unpenalised_features_separate():
    X, z, factor = wide(12, 60, 7)
    with pytest.raises(SeparableData, match="penalty_factor=0") as raised:
        LinearClassifier("logistic", penalty_factor=factor).fit(X, z > 0.0)
    w, b = raised.value.direction
    assert not w[factor > 0.0].any()
    assert (np.where(z > 0.0, 1.0, -1.0) * (X @ w + b) > 0.0).all()


@pytest.mark.parametrize("dense", [False, True])
def test_one_word_of_one_class_suffices(dense):
    """A word without a penalty that occurs in texts of one class only, beside words of both."""
    X, y = counts(300, 40, 8)
    X = X.tolil()
    X[:, 3] = 0.0
    X[7, 3], X[9, 3] = 2.0, 1.0
    X = X.toarray() if dense else X.tocsr()
    label = y > np.median(y)
    label[[7, 9]] = False
    factor = np.where(np.arange(40) < 5, 0.0, 1.0)
    with pytest.raises(SeparableData, match="penalty_factor=0") as raised:
        LinearClassifier("logistic", penalty_factor=factor).fit(X, label)
    assert np.flatnonzero(raised.value.direction[0]).tolist() == [3]
    assert raised.value.direction[0][3] < 0.0
