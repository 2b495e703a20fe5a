"""Losses made of straight lines on more features than rows, or than a matrix can have."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearRegressor, verify
from linsep.losses import Absolute, EpsilonInsensitive, Pinball, Scaled
from linsep.sklearn import LinearSVR
from linsep.solvers.interior.hinge_rows import positive_parts


@pytest.mark.parametrize(
    "loss",
    [
        *(Absolute(centre=0.0), Pinball(0.5), Pinball(0.05), Pinball(0.9)),
        *(EpsilonInsensitive(0.3), EpsilonInsensitive(0.0), Scaled(Pinball(0.2), 3.0)),
    ],
)
def test_positive_parts_add_up_to_the_loss(loss):
    r = np.linspace(-3.0, 3.0, 61)
    parts = sum(a * np.maximum(side * (r - c), 0.0) for side, a, c in positive_parts(loss))
    centre = getattr(loss, "centre", getattr(getattr(loss, "loss", None), "centre", 0.0))
    np.testing.assert_allclose(parts, loss.value(centre - r), atol=1e-12)


def words(n: int, d: int):
    rng = np.random.default_rng(0)
    X = sp.random_array((n, d), density=10.0 / d, format="csr", rng=rng)
    return X, np.asarray(X @ rng.standard_normal(d)).ravel() + 0.1 * rng.standard_normal(n)


@pytest.mark.parametrize("loss", [EpsilonInsensitive(0.1), Pinball(0.9)])
@pytest.mark.parametrize("C", [0.01, 10.0])
def test_more_features_than_a_matrix_can_have(loss, C):
    X, y = words(400, 7000)
    model = LinearRegressor(loss, C=C).fit(X, y)
    assert model.certificate_.certified and model.solver_ == "hinge-rows"
    verify(model, X, y)


def test_linear_svr_fits_texts():
    X, y = words(300, 7000)
    assert LinearSVR(epsilon=0.1).fit(X, y).certificate_.certified


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_same_optimum_as_absolute_rows(fit_intercept):
    rng = np.random.default_rng(1)
    X = rng.standard_normal((40, 90))
    y, weight = X[:, 0] + rng.standard_normal(40) + 5.0, rng.integers(0, 4, 40).astype(float)
    objective = {}
    for solver in ("auto", "hinge-rows", "absolute-rows"):
        model = LinearRegressor(Pinball(0.3), C=0.5, solver=solver, fit_intercept=fit_intercept)
        ended = model.fit(X, y, sample_weight=weight).certificate_
        assert ended.certified
        objective[solver] = ended.primal
    assert objective["auto"] == objective["hinge-rows"]
    assert objective["auto"] == pytest.approx(objective["absolute-rows"], rel=2e-6)


def test_columns_of_unlike_units():
    """Absolute rows alone ended without a certificate here."""
    rng = np.random.default_rng(2)
    X = np.column_stack([1.6e9 + 1e8 * rng.random(2000), rng.normal(0.0, 1e-4, (2000, 3))])
    y = 60.0 + 100.0 * (X[:, 0] - 1.65e9) / 1e8
    model = LinearRegressor(EpsilonInsensitive(20.0), C=3.6).fit(X, y)
    assert model.certificate_.certified
