"""Small tables in decimal arithmetic: what float64 cannot solve is solved, rounded well, and proven."""

from __future__ import annotations

import math
from decimal import Decimal
from fractions import Fraction

import numpy as np
import pytest
from hostile import answers, coefficients, draw
from lawful import assert_true, assert_verified, fit_quietly, task_of

import linsep
from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression
from linsep.certificates.exact import dual as exact_dual
from linsep.certificates.exact.coupled import CoupledRows
from linsep.certificates.parts import Part
from linsep.certificates.precise import precise_sums
from linsep.errors import SeparableData
from linsep.exact import budget
from linsep.exact.decimals import (
    backward,
    cholesky,
    decimals,
    floats,
    forward,
    gram,
    many_digits,
    two_floats,
)
from linsep.losses import CrammerSinger, Hinge, Logistic, Scaled, Squared, SquaredHinge
from linsep.multiprecision.rounding import _Search, best_rounding
from linsep.multiprecision.terms import longest_step
from linsep.penalties import ElasticNet
from linsep.solution import Explicit


def timestamps(seed, n=30):
    """Start and end in nanoseconds, and labels that depend on the duration."""
    rng = np.random.default_rng(seed)
    start = np.floor(1.7e18 * (1 + 1e-6 * rng.random(n)))
    end = start + np.round(1e4 * rng.gamma(2.0, 1.0, n))
    X = np.column_stack([start, end, rng.normal(size=n)])
    score = (end - start) / 1e4 - 2.0 + rng.normal(size=n)
    return X, score


def assert_certified(model, X, y, **names):
    """Assert that the fit is certified, true, and verified in floats and exactly."""
    assert model.certificate_.certified, model.certificate_
    assert_true(task_of(model, X, y, **names), coefficients(model), model.certificate_)
    assert_verified(model, X, y)


class TestFitsThatFloatsLeaveShort:
    @pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic", "huberised_hinge"])
    @pytest.mark.parametrize("C", [1e-6, 1e6])
    def test_timestamps(self, loss, C):
        X, score = timestamps(1)
        y = np.where(score > 0, 1, -1)
        assert_certified(fit_quietly(LinearClassifier(loss, C=C), X, y), X, y)

    @pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
    def test_targets(self, loss):
        X, score = timestamps(2)
        assert_certified(fit_quietly(LinearRegressor(loss, C=1e3), X, score), X, score)

    @pytest.mark.parametrize("l1_ratio", [0.5, pytest.param(1.0, marks=pytest.mark.slow)])
    def test_absolute_penalties_with_coefficients_that_are_exactly_zero(self, l1_ratio):
        rng = np.random.default_rng(3)
        X = rng.normal(size=(20, 30))
        y = np.where(rng.normal(size=20) > 0, 1, -1)
        model = LinearClassifier("squared_hinge", C=1.5e9, l1_ratio=l1_ratio)
        assert_certified(fit_quietly(model, X, y), X, y)
        if l1_ratio == 1.0:
            assert 0 < np.count_nonzero(model.coef_) <= 20

    @pytest.mark.parametrize("estimator", [LogisticRegression, LinearSVC])
    def test_several_classes(self, estimator):
        X, score = timestamps(4)
        y = np.digitize(score, [-1.0, 1.0])
        several = {"multiclass": "crammer_singer"} if estimator is LinearSVC else {}
        model = fit_quietly(estimator(C=1e-2, **several), X, y)
        assert_certified(model, X, y)

    def test_a_scaled_loss_takes_the_same_way(self):
        X, score = timestamps(5)
        y = np.where(score > 0, 1, -1)
        twice = fit_quietly(LinearClassifier(Scaled(SquaredHinge(), 2.0), C=5e5), X, y)
        once = fit_quietly(LinearClassifier("squared_hinge", C=1e6), X, y)
        assert twice.certificate_.certified and once.certificate_.certified
        assert twice.certificate_.primal == pytest.approx(once.certificate_.primal, rel=1e-6)

    def test_sums_that_cancel_without_a_penalty(self):
        sign = np.where(np.arange(40) % 2 == 0, 1, -1)
        X = np.column_stack([sign, -sign]).astype(float)
        for c in (1, -1):
            rows = np.flatnonzero(sign == c)
            X[rows[:5]], X[rows[-5:]] = 2.0**60, -(2.0**60)
        model = fit_quietly(LinearClassifier("squared_hinge", C=math.inf), X, sign)
        assert_certified(model, X, sign)

    def test_a_model_file_keeps_the_digits_of_the_dual_point(self, tmp_path):
        X, score = timestamps(1)
        y = np.where(score > 0, 1, -1)
        model = fit_quietly(LinearClassifier("hinge", C=1e6), X, y)
        dual = model._fits[0].dual
        assert isinstance(dual, Explicit) and dual.rest is not None
        linsep.save(model, tmp_path / "model.linsep")
        again = linsep.load(tmp_path / "model.linsep")
        assert (again._fits[0].dual.rest == dual.rest).all()
        assert linsep.verify(again, X, y).certified


class TestRounding:
    def test_a_lattice_point_far_better_than_the_nearest(self):
        """|theta_1 x + theta_2 x' - 1| with x near 1e17: the nearest floats miss by units, some floats do not."""
        with many_digits():
            rows = decimals(np.array([[1.7e17, 1.7e17 + 64.0, 1.0], [1.7e17 + 32, 1.7e17, 1.0]]))
            H = gram(rows, decimals(np.ones(2))) + np.diag(decimals(np.full(3, 1e-12)))
            theta = decimals(np.array([1.0, -1.0 - 1e-9, 3.0])) / 7
            L = cholesky(H)

            def excess(step):
                y = L.T @ step
                return y @ y

            ones = decimals(np.ones(3))
            nearest = excess(decimals(floats(theta)) - theta)
            rounded, best = best_rounding(theta, ones, L, excess, Decimal(0))
            assert best == excess(decimals(rounded) - theta)
        assert best < nearest / 100

    def test_two_floats_hold_twice_the_digits(self):
        with many_digits():
            third = decimals(np.ones(1)) / 3
            high, low = two_floats(third)
            assert abs(third - decimals(high) - decimals(low))[0] < Decimal(2) ** -107


def test_cholesky_solves_what_float64_cannot():
    """A Hilbert matrix of order 12, whose condition is 1e16."""
    with many_digits():
        H = np.array([[Decimal(1) / (i + j + 1) for i in range(12)] for j in range(12)])
        L = cholesky(H)
        x = backward(L, forward(L, H @ decimals(np.ones(12))))
        assert max(abs(v - 1) for v in x) < Decimal("1e-20")


@pytest.mark.parametrize("loss", [Hinge(), Squared(), Logistic()], ids=lambda loss: loss.name)
def test_the_rest_of_a_dual_point_enters_v_exactly(loss):
    rng = np.random.default_rng(0)
    X = 10.0 ** rng.uniform(0, 18, size=(12, 3)) * rng.choice([-1, 1], (12, 3))
    sign, weight = rng.choice([-1.0, 1.0], 12), rng.uniform(0.5, 2.0, 12)
    u = rng.uniform(0.1, 0.9, 12)
    rest = 0.4 * np.spacing(u) * rng.uniform(-1, 1, 12)
    W = np.zeros((4, 1))
    vectors = X, sign, None, weight, None, W, Explicit(u, rest)
    sums = precise_sums(Part(loss, ElasticNet(1.0), False, *vectors, 1e-6))
    for j in range(3):
        exact = sum(
            Fraction(s) * Fraction(g) * (Fraction(a) + Fraction(b)) * Fraction(x)
            for s, g, a, b, x in zip(weight, sign, u, rest, X[:, j], strict=True)
        )
        assert abs(Fraction(sums.v[0][j]) - exact) <= Fraction(sums.v_error_entry)
    assert sums.v_error_entry <= 2.0**-50 * max(abs(v) for v in sums.v[0])


@pytest.mark.sampled(5)
@pytest.mark.parametrize(
    ("seed", "what"),
    [
        (700412, "what is free in all classes stays near 0"),
        (700441, "an objective of 0 without a penalty is the end"),
        (701631, "weights of 1e199 without a penalty predict well"),
        (701594, "a gap at the end of the digits is small enough"),
        (701807, "larger products where steps are short"),
        (700135, "thresholds of an absolute penalty count"),
        (700367, "small tables take more iterations"),
        (701671, "a lattice of 36 coefficients is reduced"),
        (701759, "hard margin with an identifier"),
        (700083, "hard margin with timestamps, proven in exact arithmetic"),
    ],
)
def test_hostile_tables_are_solved_and_proven(seed, what):
    case = draw(seed)
    model, (answer,) = answers(case)
    assert answer.claim.certified, what
    assert_true(answer.task, answer.W, answer.claim)
    assert_verified(model, case.X, case.y, case.weight)


def test_classes_that_are_separable_in_part_have_no_minimiser():
    """Small integers: two rows of different classes coincide, the others can be told apart."""
    case = draw(701281)
    with pytest.raises(SeparableData, match="at least in part") as caught:
        answers(case)
    V, b = caught.value.direction
    z = case.X @ V + b
    margins = z[np.arange(len(z)), case.y][:, None] - z
    assert margins.min() >= -1e-12 and margins.max() > 1e-3


def test_steps_of_a_lattice_are_taken_while_the_objective_falls():
    def excess(step):
        return abs(step[0] - 3) + abs(step[1] + 2)

    origin, ones = decimals(np.zeros(2)), decimals(np.ones(2))
    search = _Search(origin, ones, excess, Decimal(0), math.inf)
    search.offer(np.zeros(2))
    search.descend(decimals(np.eye(2)))
    assert search.best.tolist() == [3.0, -2.0]


def test_a_dual_point_on_the_edge_of_the_simplex_keeps_its_digits():
    """Rows of Crammer and Singer whose p off the label add up to 1 have a sum in float64 that may exceed it."""
    loss, rng = CrammerSinger(3), np.random.default_rng(0)
    p = rng.dirichlet(np.ones(2), 40) * (1.0 + 2.0**-52)
    labels = rng.integers(3, size=40)
    U = np.zeros((40, 3))
    for row, y, (a, b) in zip(U, labels, p, strict=True):
        row[y], row[(y + 1) % 3], row[(y + 2) % 3] = a + b, -a, -b
    rows = CoupledRows(loss, rng.normal(size=(40, 2)), labels, None, np.zeros((3, 3)))
    gain = rows.evaluate(rows.unfold(Explicit(U))).entropy
    assert 40 - Fraction(1, 2**48) < gain.low <= 40


@pytest.mark.slow
def test_a_method_that_stalls_hands_over_early():
    """Columns 1e15 and -1e15 under the hinge of Crammer and Singer: rounds that use all their steps gain nothing."""
    case = draw(91893)
    model = fit_quietly(case.estimator(), case.X, case.y)
    assert model._fits[0].n_passes < 1500
    assert_certified(model, case.X, case.y)


class TestBudget:
    """Work in decimal and exact arithmetic is limited by count, so that no fit of a tiny table takes many seconds."""

    def test_work_inside_counts_outside(self):
        with budget.at_most(10.0):
            with pytest.raises(budget.OverBudget), budget.at_most(4.0):
                budget.spend(5.0)
            budget.spend(5.0)
            with pytest.raises(budget.OverBudget), budget.at_most(4.0):
                budget.spend(1.0)
        budget.spend(1e300)  # no limit

    def test_a_limit_leaves_a_true_bound(self):
        X, score = timestamps(1)
        y = np.where(score > 0, 1, -1)
        with budget.at_most(1e4):
            model = fit_quietly(LinearClassifier("hinge", C=1e6), X, y)
        assert not model.certificate_.certified
        assert_true(task_of(model, X, y), coefficients(model), model.certificate_)

    @pytest.mark.slow
    def test_no_proof_is_searched_for_a_solution_that_rounding_spoils(self, monkeypatch):
        """Columns 1e15 and -1e15, whose optimum has no float64 neighbour: only the dual point at hand is evaluated."""
        evaluated = []
        evaluate = exact_dual._evaluate
        monkeypatch.setattr(
            exact_dual, "_evaluate", lambda *point: evaluated.append(evaluate(*point))
        )
        _, found = answers(draw(801102))
        assert found and not any(answer.claim.certified for answer in found)
        assert not evaluated


def test_scores_beyond_float64_take_the_least_step():
    """Halving a step until it is this short would take 3e9 rounds."""
    least = Decimal("1e-1000000000")
    assert longest_step(least, math.inf, lambda t: math.nan) == least
