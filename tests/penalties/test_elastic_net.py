"""The strength C and its translation, in one place."""

import math

import numpy as np
import pytest

from linsep.errors import BadInput
from linsep.penalties import ElasticNet


def test_internal_times_scale_is_what_users_read():
    """scale * (l2/2 |w|^2 + l1 |w|_1) = (1 - r)/2 |w|^2 + r |w|_1 for every C."""
    for C in (1e-3, 1.0, 7.0, 1e9):
        penalty = ElasticNet(C, 0.25)
        assert penalty.scale * penalty.l2 == pytest.approx(0.75)
        assert penalty.scale * penalty.l1 == pytest.approx(0.25)


def test_infinite_strength_is_no_penalty():
    penalty = ElasticNet(math.inf, 0.5)
    assert (penalty.l1, penalty.l2, penalty.scale) == (0.0, 0.0, 1.0)


def test_defaults_are_the_squared_norm():
    assert (ElasticNet().l2, ElasticNet().l1) == (1.0, 0.0)
    assert (ElasticNet(2.0, 1.0).l2, ElasticNet(2.0, 1.0).l1) == (0.0, 0.5)


@pytest.mark.parametrize("C", [0.0, -1.0, math.nan, -math.inf])
def test_bad_strength_is_refused(C):
    with pytest.raises(BadInput, match=r"C must lie in \(0, inf\]"):
        ElasticNet(C)


@pytest.mark.parametrize("ratio", [-0.1, 1.1, math.nan])
def test_bad_ratio_is_refused(ratio):
    with pytest.raises(BadInput, match="l1_ratio"):
        ElasticNet(1.0, ratio)


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_value_and_conjugate_obey_fenchel_young(ratio):
    """value(w) + conjugate(v) >= v.w, with equality where v is a subgradient at w."""
    rng = np.random.default_rng(0)
    penalty = ElasticNet(0.7, ratio)
    for _ in range(50):
        w, v = rng.normal(size=(2, 5))
        assert penalty.value(w) + penalty.conjugate(v) >= v @ w - 1e-12
        x = penalty.prox(w, 0.5)
        slope = (w - x) / 0.5
        slope = np.clip(slope, -penalty.l1, penalty.l1) if ratio == 1.0 else slope
        assert penalty.value(x) + penalty.conjugate(slope) == pytest.approx(slope @ x, abs=1e-12)
