"""Sparse tables with many features without a penalty: the proof needs a point of the dual that is feasible for each."""

import math
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, LinearRegressor, verify
from linsep.certificates.curvature.dependence import distinct_columns
from linsep.certificates.curvature.repaired_dual import _held_rows, feasible_point
from linsep.certificates.curvature.rows import Rows
from linsep.losses import Squared, SquaredHinge


def words(n, d, length, seed):
    """Counts of words with Zipf's frequencies; many occur once, and some never."""
    rng = np.random.default_rng(seed)
    chosen = (d * rng.random(n * length) ** 3).astype(np.int64)
    rows = np.repeat(np.arange(n), length)
    return sp.csr_matrix((np.ones(n * length), (rows, chosen)), shape=(n, d))


def rows_of(X, intercept=True, weight=None):
    n = X.shape[0]
    weight = np.ones(n) if weight is None else weight
    return Rows(X, np.ones(n), np.zeros(n), weight, intercept, 0.0)


def test_sums_of_sparse_rows_are_those_of_dense_rows():
    X, h = words(300, 60, 4, 0), np.random.default_rng(1).random(300)
    few, all_of_them = rows_of(X, False), rows_of(X.toarray(), False)
    np.testing.assert_allclose(few.gram(h), all_of_them.gram(h), rtol=1e-13, atol=0.0)
    columns = distinct_columns(few, np.ones(300, dtype=bool))
    metric = few.metric(h + 0.1, columns)
    np.testing.assert_allclose(few.reach(metric), all_of_them.reach(metric), rtol=1e-9)
    for part in (few, all_of_them):
        total, slack = np.zeros((2, part.size))
        for rows, A in part.blocks():
            own, error = part.pull(A, h[rows])
            total, slack = total + own, slack + error
        exact = np.array([math.fsum(column) for column in (X.toarray() * h[:, None]).T])
        assert (np.abs(total - exact) <= slack).all()


def test_a_column_with_one_entry_holds_its_row():
    X = np.zeros((6, 5))
    X[0, 0] = 2.0  # row 0
    X[[0, 1], 1] = 1.0  # then row 1
    X[[1, 2, 3], 2] = 1.0  # two rows are left
    X[[2, 3], 3] = 3.0
    X[[4, 5], 4] = 1.0
    held = _held_rows(Squared(), rows_of(sp.csr_matrix(X)))
    assert held.tolist() == [True, True, False, False, False, False]
    weight = np.array([1.0, 1.0, 1.0, 1.0, 1.0, 0.0])  # a row that does not count holds no other
    held = _held_rows(Squared(), rows_of(sp.csr_matrix(X), weight=weight))
    assert held.tolist() == [True, True, False, False, True, False]
    assert not _held_rows(Squared(), rows_of(X)).any()


def test_columns_of_one_sign_hold_their_rows_if_no_dual_variable_is_negative():
    X = np.zeros((5, 3))
    X[:3, 0] = [1.0, 2.0, -1.0]  # cancels
    X[[1, 2], 1] = [1.0, -1.0]  # one sign with sigma: rows 1, 2, then row 0
    X[[3, 4], 2] = [1.0, 2.0]
    part = replace(rows_of(sp.csr_matrix(X)), sigma=np.array([1.0, 1.0, -1.0, 1.0, -1.0]))
    assert _held_rows(SquaredHinge(), part).tolist() == [True, True, True, False, False]
    assert not _held_rows(Squared(), part).any()


def test_distinct_columns_where_rows_count():
    X = np.array([[1.0, 0.0, 1.0, 0.0, 7.0], [2.0, 0.0, 2.0, 1.0, 7.0], [0.0, 5.0, 0.0, 0.0, 7.0]])
    counts = np.array([True, True, False])
    assert distinct_columns(rows_of(sp.csr_matrix(X)), counts).tolist() == [0, 3, 4, 5]
    assert distinct_columns(rows_of(sp.csr_matrix(X), False), counts).tolist() == [0, 3, 4]
    assert distinct_columns(rows_of(X), counts).tolist() == [0, 1, 2, 3, 4, 5]


@pytest.mark.parametrize("seed", range(4))
def test_the_point_found_is_feasible(seed):
    part = rows_of(words(200, 150, 5, seed))
    u = np.random.default_rng(seed).normal(size=200)
    u, c = feasible_point(Squared(), part, u, 1e-6)
    held = _held_rows(Squared(), part)
    assert held.any() and not u[held].any() and not c[held].any()
    rho = np.append(part.X.T @ u, u.sum())
    assert np.abs(rho).max() <= 1e-12
    assert c.max() <= 1e-10


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "huberised_hinge"])
def test_many_words_without_a_penalty(loss):
    X = words(800, 1200, 8, 5)
    rng = np.random.default_rng(6)
    z = X @ rng.normal(size=1200) + rng.normal(size=800)
    factor = rng.choice([0.0, 1.0, 3.0], 1200)
    y = z if loss == "squared" else np.where(z > 0.0, 1, -1)
    kind = LinearRegressor if loss == "squared" else LinearClassifier
    model = kind(loss, C=0.01, penalty_factor=factor).fit(X, y)
    assert model.certificate_.certified, model.certificate_
    assert verify(model, X, y).certified
