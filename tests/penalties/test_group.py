"""Penalties with factors and groups of features: formulas, and what users may write."""

import numpy as np
import pytest

from linsep.errors import BadInput, Refused
from linsep.penalties import ElasticNet, GroupElasticNet, Penalty, resolve


def some(ratio, group=(0, 0, 1, 2, 2, 2), factor=(1.0, 1.0, 4.0, 0.5, 0.5, 0.5), C=0.7):
    return GroupElasticNet(C, ratio, np.array(factor), np.array(group))


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
def test_value_and_conjugate_obey_fenchel_young(ratio):
    rng = np.random.default_rng(0)
    penalty = some(ratio)
    for _ in range(50):
        w, v = rng.normal(size=(2, 6))
        assert penalty.value(w) + penalty.conjugate(v) >= v @ w - 1e-12
        x = penalty.prox(w, 0.5)
        slope = (w - x) / 0.5
        if ratio == 1.0:  # onto the ball, from which rounding may have taken it
            slope = slope / max(1.0, penalty.gauge(slope)) * (1 - 1e-15)
        assert penalty.value(x) + penalty.conjugate(slope) == pytest.approx(slope @ x, abs=1e-11)


def test_the_minimiser_attains_the_conjugate():
    penalty, v = some(0.3), np.random.default_rng(1).normal(size=6)
    w = penalty.minimiser(v)
    assert v @ w - penalty.value(w) == pytest.approx(penalty.conjugate(v))


def test_the_formula_is_the_documented_one():
    penalty, w = some(0.3, C=2.0), np.arange(1.0, 7.0)
    ridge = 0.7 / 2 * (np.array([1, 1, 4, 0.5, 0.5, 0.5]) * w * w).sum()
    norms = np.sqrt(2) * np.hypot(1, 2) + 4 * 3 + 0.5 * np.sqrt(3) * np.sqrt(16 + 25 + 36)
    assert penalty.scale * penalty.value(w) == pytest.approx(ridge + 0.3 * norms, rel=1e-14)


@pytest.mark.parametrize("size", [1e-200, 1.0, 1e200])
def test_norms_neither_overflow_nor_underflow(size):
    assert some(1.0).norms(size * np.array([3.0, 4, 1, 2, 3, 6])) == pytest.approx(
        size * np.array([5.0, 1, 7])
    )


def test_one_number_for_all_features_is_refused():
    """What reads one penalty for all features must not go on with a wrong one."""
    for name in ("l1", "l2"):
        with pytest.raises(Refused, match="penalty_factor"):
            getattr(some(0.5), name)


def test_both_kinds_are_penalties():
    for penalty in (ElasticNet(2.0, 0.5), some(0.5)):
        given: Penalty = penalty
        assert given.quadratic(6).shape == given.unpenalised(6).shape == (6,)
        assert given.modulus == given.quadratic(6).min()
    assert some(0.5) == some(0.5) and some(0.5) != some(0.4) and hash(some(0.5)) == hash(some(0.5))
    assert some(0.5) != some(
        0.5, factor=(1, 1, 4, 0.5, 0.5, 0.5)[:6], group=(0, 0, 1, 2, 2, 2), C=1
    )


class TestResolve:
    plain = ElasticNet(1.0, 0.5)

    def test_nothing_given_is_the_plain_penalty(self):
        assert resolve(self.plain, None, None, 3, None) is self.plain
        assert resolve(self.plain, [1, 1, 1], None, 3, None) is self.plain
        assert resolve(self.plain, np.ones(3), ["a", "b", "c"], 3, None) is self.plain

    def test_names(self):
        found = resolve(self.plain, {"b": 0.0}, {"a": 1, "c": 1}, 3, ["a", "b", "c"])
        assert isinstance(found, GroupElasticNet)
        assert found.factor.tolist() == [1, 0, 1] and found.group.tolist() == [0, 1, 0]

    def test_lists_and_labels_are_the_same(self):
        one = resolve(self.plain, None, [[2, 0], [1, 3]], 5, None)
        other = resolve(self.plain, None, ["x", "y", "x", "y", "z"], 5, None)
        assert one == other

    @pytest.mark.parametrize(
        ("factor", "groups", "message"),
        [
            ([1, 2], None, "each of the 3 features"),
            ([1, -1, 2], None, "not negative; that of feature 1"),
            ([1, np.nan, 2], None, "finite"),
            ("abc", None, "3 numbers"),
            ({"q": 1.0}, None, "not a column of X"),
            (None, [0, 1], "one label for each"),
            (None, [[0, 1], [1, 2]], "feature 1 twice"),
            (None, [[0, 3]], "names feature 3"),
            ([1, 2, 1], [0, 0, 1], "same penalty_factor"),
        ],
    )
    def test_refusals(self, factor, groups, message):
        with pytest.raises(BadInput, match=message):
            resolve(self.plain, factor, groups, 3, ["a", "b", "c"])

    def test_names_need_a_frame(self):
        with pytest.raises(BadInput, match="no column names"):
            resolve(self.plain, {"a": 1.0}, None, 3, None)

    def test_without_a_penalty_there_is_nothing_to_multiply(self):
        with pytest.raises(BadInput, match="finite C"):
            resolve(ElasticNet(np.inf), [1, 2, 3], None, 3, None)
        with pytest.raises(BadInput, match="l1_ratio"):
            resolve(ElasticNet(1.0), None, [0, 0, 1], 3, None)
