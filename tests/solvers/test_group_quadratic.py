"""Group lasso on tables where the quadratic models are badly conditioned or have no curvature."""

import numpy as np
import pytest

import linsep
from linsep.penalties import GroupElasticNet
from linsep.solvers.group import quadratic


def badly_scaled(seed):
    """Columns from 1e-3 to 1e3, a third of the tables rounded; labels that a plane separates or nearly does."""
    rng = np.random.default_rng(seed)
    n, d = int(rng.integers(5, 60)), int(rng.integers(2, 12))
    X = rng.normal(size=(n, d)) * 10.0 ** rng.integers(-3, 4, size=d)
    X = np.round(X) if seed % 3 == 0 else X
    score = 3.0 * X @ (rng.normal(size=d) / (np.abs(X).max(axis=0) + 1.0))
    y = score + rng.normal(size=n) * (seed % 2) > np.median(score)
    return X, y.astype(int), rng.integers(0, 3, size=d).tolist()


@pytest.mark.parametrize("loss", ["squared_hinge", "huberised_hinge", "logistic"])
@pytest.mark.parametrize("seed", range(8))
@pytest.mark.sampled(9)
def test_rows_without_curvature(loss, seed):
    """Most rows are flat beyond the margin at a large C: undamped steps would be far too long."""
    X, y, groups = badly_scaled(seed)
    C, l1_ratio = 10.0 ** (seed % 6), 0.5 + 0.5 * (seed % 2)
    model = linsep.LinearClassifier(loss, C=C, l1_ratio=l1_ratio, feature_groups=groups)
    with np.errstate(all="raise", under="ignore"):
        model.fit(X, y)
    assert model.certificate_.certified, model.certificate_
    assert linsep.verify(model, X, y).certified


@pytest.mark.parametrize("seed", range(4))
def test_condition_numbers_of_1e12(seed):
    """Proximal gradient steps alone would need millions; smoothed norms need a few factorisations."""
    rng = np.random.default_rng(seed)
    d = 12
    Q = np.linalg.qr(rng.normal(size=(d, d)))[0]
    S = (Q * 10.0 ** np.linspace(-6, 6, d)) @ Q.T
    S = 0.5 * (S + S.T)
    penalty = GroupElasticNet(1.0, 1.0, np.ones(d), np.repeat(np.arange(4), 3))
    c = -S @ rng.normal(size=d)
    x = quadratic.minimise(S, c, np.zeros(d), penalty, 1e-9)
    model = quadratic.Model(S, c, penalty)
    assert model.violation(x) <= 1e-9
    for other in x + 1e-3 * rng.normal(size=(50, d)):
        assert model.value(x) <= model.value(other) + 1e-9  # of terms of 1e6


def test_a_model_that_overflows_has_no_minimiser():
    """Features of 1e-310, scaled to unit curvature: the step is refused, not the fit."""
    penalty = GroupElasticNet(1.0, 1.0, np.ones(3), np.zeros(3, dtype=np.int64))
    S = np.eye(3)
    S[0, 2] = S[2, 0] = np.inf
    assert np.isnan(quadratic.minimise(S, np.ones(3), np.zeros(3), penalty, 1e-9)).all()
