"""The strength C and its translation, in one place."""

import math

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
