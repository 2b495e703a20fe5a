"""Data sets keep the promises in their names, as linear programming and hard facts see them."""

import numpy as np
import pytest
from scipy.optimize import linprog

import linsep
from linsep import LogisticRegression, datasets
from linsep.errors import BadInput

GENERATORS = [
    datasets.blobs_margin,
    datasets.overlapping,
    datasets.exclusive_or,
    datasets.moons,
    datasets.touching_hulls,
]
LOADERS = [datasets.breast_cancer, datasets.iris, datasets.digits]


def separable(X, y):
    rows = y[:, None] * np.column_stack([X, np.ones(len(X))])
    found = linprog(np.zeros(rows.shape[1]), -rows, -np.ones(len(X)), bounds=(None, None))
    return found.status == 0


@pytest.mark.parametrize("make", [*GENERATORS, *LOADERS])
def test_rows_and_labels(make):
    X, y = make()
    assert X.dtype == np.float64
    assert y.dtype == np.int64
    assert X.shape == (len(y), X.shape[1])
    assert np.isfinite(X).all()
    assert set(y.tolist()) == {-1, 1}
    assert 0.3 < (y == 1).mean() < 0.7
    again = make()
    np.testing.assert_array_equal(again[0], X)
    assert linsep.datasets is datasets


@pytest.mark.parametrize("make", GENERATORS)
def test_the_seed_and_the_size_count(make):
    X, y = make(n=30, seed=1)
    assert len(X) == len(y) == 30
    assert not np.array_equal(X, make(n=30, seed=2)[0])


@pytest.mark.parametrize(("d", "margin"), [(2, 0.5), (7, 1.5), (1, 0.0)])
def test_blobs_have_the_margin(d, margin):
    """The hyperplane is found again from the seed: every row keeps its distance."""
    X, y = datasets.blobs_margin(60, d, margin, seed=3)
    w = np.random.default_rng(3).normal(size=d)
    w /= np.linalg.norm(w)
    assert (y * (X @ w)).min() >= margin - 1e-12
    assert separable(X, y)


def test_overlapping_clouds_and_half_moons_are_not_separable():
    assert not separable(*datasets.overlapping())
    assert not separable(*datasets.moons(noise=0.05))
    assert separable(*datasets.overlapping(distance=20.0))


def test_exclusive_or_defeats_lines():
    X, y = datasets.exclusive_or()
    assert LogisticRegression().fit(X, y).score(X, y) < 0.8
    assert (
        LogisticRegression().fit(np.c_[X, X[:, 0] * X[:, 1]], y).score(X=np.c_[X, X.prod(1)], y=y)
        == 1
    )


def test_hulls_touch_in_one_point():
    X, y = datasets.touching_hulls()
    assert not separable(X, y)
    assert separable(X[1:], y[1:])  # without the origin
    np.testing.assert_array_equal((X[1] + X[2]) / 2, X[0])
    assert (y * X[:, 0]).min() == 0


def test_loaders():
    assert datasets.breast_cancer()[0].shape == (569, 30)
    assert (datasets.breast_cancer()[1] == 1).sum() == 212
    assert datasets.iris()[0].shape == (100, 4)
    assert separable(*datasets.iris("setosa", "virginica"))
    assert not separable(*datasets.iris())
    assert datasets.digits(1, 0)[0].shape[1] == 64


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: datasets.blobs_margin(1), "n must be a whole number of at least 2, got 1"),
        (lambda: datasets.blobs_margin(10, 0), "d must be a whole number of at least 1, got 0"),
        (lambda: datasets.blobs_margin(margin=-1.0), "margin must be at least 0"),
        (lambda: datasets.touching_hulls(3), "n must be at least 4, got 3"),
        (lambda: datasets.iris("rose"), "one of setosa, versicolor, virginica, got 'rose'"),
        (lambda: datasets.digits(10), "digits are 0 ... 9, got 10"),
        (lambda: datasets.digits(3, 3), "two different classes"),
    ],
)
def test_bad_arguments(call, message):
    with pytest.raises(BadInput, match=message):
        call()
