"""Fits whose proof needs more digits than float64: norms, or no penalty, on columns of times and numbers."""

from __future__ import annotations

import numpy as np
import pytest

from linsep import LinearClassifier, LinearRegressor, dual_correction, verify
from linsep.data import Memory
from linsep.losses import Hinge, Squared
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.problem import GroupProblem, Problem

FACTORS = np.array([0.0, 1.0, 0.0, 3.0, 0.5, 1.0])


def unscaled(n: int, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """A table of times, numbers, ages, years and small measurements, and scores that depend on all of them."""
    rng = np.random.default_rng(seed)
    X = np.column_stack(
        [
            1.6e9 + 1e8 * rng.random(n),
            rng.integers(1, 10_000_000, n),
            rng.integers(18, 90, n),
            2000 + rng.integers(0, 25, n),
            rng.normal(0, 1e-4, n),
            rng.standard_normal(n),
        ]
    )
    z = (X - X.mean(axis=0)) / X.std(axis=0) @ rng.standard_normal(6)
    return X, z + 0.3 * rng.standard_normal(n)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
@pytest.mark.parametrize(
    "penalty",
    [
        {"l1_ratio": 1.0, "C": 1e3},
        {"penalty_factor": FACTORS, "C": 1e-4},
        {"l1_ratio": 1.0, "C": 1e3, "feature_groups": [0, 0, 1, 1, 2, 2]},
        {"l1_ratio": 0.7, "C": 30.0, "feature_groups": [0, 0, 0, 1, 1, 1]},
    ],
)
def test_classifiers_on_unscaled_columns_are_certified(loss, penalty):
    for seed in range(3):
        X, z = unscaled(2000, seed)
        model = LinearClassifier(loss, **penalty).fit(X, z > 0.0)
        assert model.certificate_.certified, model.certificate_
        verify(model, X, z > 0.0)


@pytest.mark.parametrize(
    "penalty", [{"l1_ratio": 1.0, "C": 1.0}, {"penalty_factor": FACTORS, "C": 1e-3}]
)
def test_regressions_on_unscaled_columns_are_certified(penalty):
    for seed in range(3):
        X, z = unscaled(2000, seed)
        model = LinearRegressor("squared", **penalty).fit(X, 1000.0 * z)
        assert model.certificate_.certified, model.certificate_
        verify(model, X, 1000.0 * z)


def test_scope():
    """Smooth losses, and any penalty but a plain ridge, which has another proof."""
    X, z = unscaled(50, 0)
    data = Memory(X, np.ones(50), -z, None)
    assert dual_correction.applies(Problem(Squared(), ElasticNet(1.0, 1.0), data))
    assert not dual_correction.applies(Problem(Squared(), ElasticNet(1.0), data))
    assert not dual_correction.applies(Problem(Squared(), ElasticNet(np.inf), data))
    assert not dual_correction.applies(Problem(Hinge(), ElasticNet(1.0, 1.0), data))
    pairs = GroupElasticNet(1.0, 1.0, np.ones(6), np.arange(6) // 2)
    assert dual_correction.applies(GroupProblem(Squared(), pairs, data))
    alone = GroupElasticNet(1.0, 1.0, FACTORS, np.arange(6))
    assert dual_correction.applies(GroupProblem(Squared(), alone, data))
