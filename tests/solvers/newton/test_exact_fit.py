"""Fits without a penalty that leave no residual: more features than rows."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearRegressor, losses, verify
from linsep.data import Memory
from linsep.losses import Absolute, Logistic, Squared, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solvers.newton import exact_fit


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
