"""Data on which a solver could end short of the optimum: flat tails, huge columns, offsets. Fits must reach it."""

import warnings

import numpy as np
import pytest

from linsep import ConvergenceWarning, LinearClassifier, LinearRegressor


def gaussian(n, d, scale=1.0, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    return X, scale * (X[:, :5] @ rng.normal(size=5) + 0.5 * rng.normal(size=n))


def huber(r, width=1.345):
    r = np.abs(r)
    return np.where(r <= width, r * r / 2, width * (r - width / 2))


def huberised(r):
    return np.where(r <= 0, 0.0, np.where(r <= 1, r * r / 2, r - 0.5))


def quietly(model, X, y):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(X, y)


# Optima by an interior point method of another hand (Clarabel, relative gap 1e-11).
HUBER = {
    (200, 10): (28.86327909961348, 940.0079962979876, 110362.22684659594, 110535431.47508955),
    (30, 60): (6.263214478593379, 70.39391919970188, 7151.461093629544, 7152591.973472842),
    (60, 300): (5.999845779196474, 62.72299525307257, 6305.206693907035, 6305539.4573242925),
}
HUBERISED = {
    (30, 60): (3.4630392737975666, 3.4670951810032378, 3.4671389418825433),
    (100, 40): (14.326360786696197, 14.36900443947873, 14.369431474748309),
}


@pytest.mark.parametrize("shape", HUBER)
@pytest.mark.parametrize("which", range(4))
def test_huber_with_an_absolute_penalty_reaches_the_optimum_whatever_the_targets(shape, which):
    X, y = gaussian(*shape, (1.0, 10.0, 1e3, 1e6)[which])
    model = LinearRegressor("huber", C=1.0, l1_ratio=1.0).fit(X, y)
    value = np.abs(model.coef_).sum() + huber(y - model.predict(X)).sum()
    assert model.certificate_.certified
    assert value == pytest.approx(HUBER[shape][which], rel=2e-6)


@pytest.mark.parametrize("shape", HUBERISED)
@pytest.mark.parametrize("which", range(3))
def test_huberised_hinge_with_a_weak_absolute_penalty_reaches_the_optimum(shape, which):
    X, y = gaussian(*shape)
    y, C = np.where(y > 0, 1.0, -1.0), (1e2, 1e4, 1e6)[which]
    model = LinearClassifier("huberised_hinge", C=C, l1_ratio=1.0).fit(X, y)
    value = np.abs(model.coef_).sum() + C * huberised(1 - y * model.decision_function(X)).sum()
    assert model.certificate_.certified
    assert value == pytest.approx(HUBERISED[shape][which], rel=2e-6)


@pytest.mark.parametrize("shape", [(200, 10), (40, 60)])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
def test_huber_with_an_absolute_penalty_is_certified_for_every_seed(shape, C):
    certified = [
        quietly(LinearRegressor("huber", C=C, l1_ratio=1.0), *gaussian(*shape, scale, seed))
        for seed in range(4)
        for scale in (10.0, 1e3, 1e5)
    ]
    assert all(model.certificate_.certified for model in certified)
