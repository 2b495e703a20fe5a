"""Rows hashed to many columns: solved on those that occur, certified on all."""

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, verify
from linsep.data import Memory
from linsep.solvers.empty_columns import MANY, occurring_columns


def hashed(n: int = 60, d: int = 1 << 15, classes: int = 2, seed: int = 0):
    """Four of 200 words in each row, hashed to d columns."""
    rng = np.random.default_rng(seed)
    words = rng.choice(d, 200, replace=False)
    y = np.arange(n) % classes
    at = words[(rng.integers(0, 200, (n, 4)) + 37 * y[:, None]) % 200]
    X = sp.csr_matrix(
        (rng.uniform(0.5, 1.5, 4 * n), (np.repeat(np.arange(n), 4), at.ravel())), (n, d)
    )
    X.sum_duplicates()
    return X, y


def test_which_columns_occur():
    X, y = hashed()
    found = occurring_columns(Memory(X, 2.0 * y - 1.0))
    assert found is not None
    np.testing.assert_array_equal(found, np.unique(X.indices))
    assert occurring_columns(Memory(X[:, found], 2.0 * y - 1.0)) is None
    assert occurring_columns(Memory(sp.csr_matrix((3, MANY)), np.ones(3))) is None
    assert occurring_columns(Memory(X.toarray(), 2.0 * y - 1.0)) is None


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "hinge"])
def test_the_model_is_that_of_the_columns_that_occur(loss):
    X, y = hashed()
    used = np.unique(X.indices)
    model = LinearClassifier(loss, tol=1e-9).fit(X, y)
    small = LinearClassifier(loss, tol=1e-9).fit(X[:, used], y)
    assert model.certificate_.certified
    assert verify(model, X, y).relative_gap <= 1e-9
    np.testing.assert_allclose(model.coef_[0, used], small.coef_[0], atol=1e-4)
    assert np.count_nonzero(model.coef_) <= len(used)


def test_several_classes_and_absolute_penalties():
    X, y = hashed(classes=3)
    for model in (
        LogisticRegression(),
        LinearSVC(multiclass="crammer_singer"),
        LogisticRegression(l1_ratio=0.5),
    ):
        assert model.fit(X, y).certificate_.certified


@pytest.mark.parametrize("C", [1.0, 1e7])
def test_columns_that_are_all_constant_beside_the_intercept(C):
    """Only the intercept is left to fit: a loss without kernels, small weights."""
    model = LinearRegressor("squared_epsilon_insensitive", C=C)
    model.fit(np.array([[3.0, 4.0]]), [13004.8], sample_weight=[4.1e-12])
    assert model.certificate_.certified
    assert not model.coef_.any() and abs(model.intercept_ - 13004.8) <= 0.2
