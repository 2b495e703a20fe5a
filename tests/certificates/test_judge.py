"""The judge itself: objectives by hand, lies it must see, and better points it must find."""

import math
from dataclasses import replace

import numpy as np
import pytest
from judge import Problem, Task, fewest_errors, improve, judge, objective

from linsep.certificates import Optimality

POINTS = np.array([[1.0], [-1.0]])
SIGNS = np.array([1, -1])


def claim(value, **others):
    """An honest claim about an optimum of this value."""
    gap = 2e-9
    made = Optimality(value, value - 1e-9, gap, gap / value, math.sqrt(2 * gap), 1e-6, True, 1e-9)
    return replace(made, **others)


@pytest.mark.parametrize(
    ("loss", "value"),
    [
        ("hinge", 0.5 + 2 * 0.5),
        ("squared_hinge", 0.125 + 2 * 2 * 0.25),
        ("squared", 0.125 + 2 * 2 * 0.25),
        ("absolute", 0.125 + 2 * 2 * 0.5),
        ("huberised_hinge", 0.125 + 2 * 2 * 0.125),
        ("huber", 0.125 + 2 * 2 * 0.125),
        ("perceptron", 0.125),
        ("logistic", 0.125 + 2 * 2 * math.log1p(math.exp(-0.5))),
        ("exponential", 0.125 + 2 * 2 * math.exp(-0.5)),
    ],
)
def test_objectives_by_hand(loss, value):
    """w = 1/2, b = 0: both margins are 1/2."""
    C = 1.0 if loss == "hinge" else 2.0
    value = 0.125 + 1.0 if loss == "hinge" else value
    assert float(objective(Task(loss, POINTS, SIGNS, C), [0.5, 0.0])) == pytest.approx(value)


def test_coupled_objectives_by_hand():
    """Two rows, three classes, scores (1, 0, 0) and (0, 0, 0)."""
    X, y, W = np.array([[1.0], [0.0]]), np.array([0, 2]), np.array([[1.0, 0.0, 0.0], [0.0] * 3])
    hinge = Task("crammer_singer", X, y, 1.0, classes=3)
    assert float(objective(hinge, W)) == pytest.approx(0.5 + 0.0 + 1.0)
    soft = Task("multinomial", X, y, 1.0, classes=3)
    expected = 0.5 + math.log(math.e + 2) - 1 + math.log(3)
    assert float(objective(soft, W)) == pytest.approx(expected)


def test_nothing_cancels_unseen():
    """1e18 - 1e18 + 2^-30: floats see 0."""
    X = np.array([[1e18, -1e18, 2.0**-30]])
    task = Task("absolute", X, np.array([0.0]), math.inf, regression=True)
    assert float(objective(task, [1.0, 1.0, 1.0, 0.0])) == 2.0**-30


def test_an_honest_claim_passes():
    assert judge(Task("hinge", POINTS, SIGNS), [1.0, 0.0], claim(0.5))[0] == []


@pytest.mark.parametrize(
    ("lie", "kind"),
    [
        ({"primal": 0.6}, "objective"),
        ({"dual": 0.5 + 1e-12}, "lower bound"),
        ({"gap": math.nan}, "fields"),
        ({"relative_gap": 1.0}, "fields"),
        ({"certified": False}, "fields"),
        ({"gap": 0.1}, "share"),
        ({"primal": math.inf, "rounding": math.inf}, "objective"),
    ],
)
def test_lies_are_seen(lie, kind):
    found = judge(Task("hinge", POINTS, SIGNS), [1.0, 0.0], claim(0.5, **lie))[0]
    assert kind in {finding.kind for finding in found}


def test_a_point_that_is_not_optimal_is_seen():
    found = judge(Task("hinge", POINTS, SIGNS), [1.1, 0.0], claim(0.605))[0]
    assert {finding.kind for finding in found} >= {
        "lower bound",
        "gap",
        "certificate",
        "coef_error",
    }


@pytest.mark.parametrize("loss", ["logistic", "hinge", "squared_hinge", "absolute", "exponential"])
def test_better_points_are_found(loss):
    """From zero to the optimum of overlapping rows with columns of very different size."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3)) * [1e-6, 1.0, 1e6]
    y = np.where(X[:, 1] + rng.normal(size=30) > 0, 1, -1)
    problem = Problem(Task(loss, X, y, 10.0))
    best = improve(problem, np.zeros((4, 1)))
    again = improve(problem, np.full((4, 1), 1e-7))
    assert float(best.value) == pytest.approx(float(again.value), rel=1e-7)
    assert float(best.value) < float(problem.value(problem.point(np.zeros(4)))) * 0.95


def test_least_squares_of_nearly_dependent_columns():
    """a, b and their rounded sum: the rounding errors of the sum are a column of their own."""
    rng = np.random.default_rng(2)
    a, b = rng.normal(size=50), rng.normal(size=50)
    X = np.column_stack([a, b, a + b])
    t = a - b + 10 * rng.normal(size=50)
    problem = Problem(Task("squared", X, t, math.inf, regression=True))
    plain = np.linalg.lstsq(np.column_stack([X, np.ones(50)]), t, rcond=None)[0]
    best = improve(problem, plain[:, None])
    assert float(best.value) < 0.99 * float(problem.value(problem.point(plain)))


@pytest.mark.parametrize(
    ("X", "y", "least"),
    [
        ([[0.0], [1.0], [2.0], [3.0]], [1, -1, 1, -1], 1),
        ([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0]], [1, 1, -1, -1], 1),
        ([[0.0, 0.0], [1.0, 1.0], [2.0, 2.0]], [1, -1, 1], 1),
        ([[0.0, 0.0], [0.0, 0.0]], [1, -1], 1),
        ([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]], [1, -1, 1], 0),
    ],
)
def test_fewest_errors_by_hand(X, y, least):
    assert fewest_errors(np.array(X), np.array(y), None) == least
