"""The cost model: shapes, prices and laws, and that the choice is their minimum."""

import math
from dataclasses import replace

import numpy as np
import pytest
from catalogue import able, plain

from linsep.data import Location, Memory
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers import SOLVERS, choose, prediction
from linsep.solvers.cost.shape import Shape, correlation, hardness_of, shape_of
from linsep.solvers.cost.work import FEATURES, Law, features, kind_of, prices, terms
from linsep.solvers.newton import gram_reduction, subsampled
from linsep.solvers.prediction import BUDGETED, WORK, Prediction, predict, skip_comparison

SHAPES = [
    Shape(150, 4, 600, hardness=10.0),
    Shape(20_000, 100, 2_000_000, hardness=0.1),
    Shape(800, 2_500, 2_000_000, hardness=1e3),
    Shape(3_000, 400, 1_200_000, kept=0.1, hardness=5.0),
    Shape(10_000, 20_000, 600_000, True, hardness=1.0),
]


def rows(n, d, seed=0):
    rng = np.random.default_rng(seed)
    return rng.standard_normal((n, d)), np.where(rng.random(n) < 0.5, 1.0, -1.0)


def test_every_count_has_a_price_and_every_method_a_law():
    known = prices()
    assert all(price > 0.0 for price in known.nanoseconds.values())
    for shape in SHAPES:
        for work in (*WORK.values(), gram_reduction.work):
            assert set(work(shape)) <= set(known.nanoseconds)
            assert 0.0 < known.iteration(work, shape) < 1e4
    assert len(known.ranges) == len(FEATURES)
    smooth, kinked = (
        {"small", "newton", "newton-pilot", "newton-cg", "dual-cd"},
        {"dual-cd", "interior", "sifting"},
    )
    assert {method for method, kind in known.laws if kind == "kinked"} == kinked
    for kind in ("receding", "quadratic"):
        assert smooth <= {method for method, other in known.laws if other == kind}
    assert set(WORK) <= set(SOLVERS)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "hinge"])
def test_laws_stay_within_what_calibration_has_seen(name):
    known, kind = prices(), kind_of(get(name))
    for (_, of), law in known.laws.items():
        if of != kind:
            continue
        assert law.least < law.most and len(law.coefficients) == len(
            terms(features(SHAPES[0], 1e-6))
        )
        for hard in (0.0, 1e-300, 1.0, 1e300, math.inf):
            shape = replace(SHAPES[1], hardness=hard)
            count = law.iterations(known.terms(shape, 1e-6))
            median = count * math.exp(-0.5 * law.spread**2)
            assert math.exp(law.least) * (1 - 1e-9) <= median <= math.exp(law.most) * (1 + 1e-9)


def test_a_method_that_varies_more_is_expected_to_take_longer():
    steady = Law((1.0, 0.5), -9.0, 9.0)
    varying = replace(steady, spread=0.8)
    assert varying.iterations((1.0, 1.0)) == pytest.approx(
        math.exp(0.32) * steady.iterations((1.0, 1.0))
    )
    for (method, _), law in prices().laws.items():
        assert (law.spread == 0.0) == (method in BUDGETED)


def test_unknown_methods_cost_too_much():
    prediction = Prediction(SHAPES[1], "kinked", 1e-6)
    assert prediction.seconds("newton-cg") == prediction.seconds("no method") == math.inf


def test_hardness_and_sizes_of_a_problem():
    X, sign = rows(2_000, 30)
    problem = Problem(get("logistic"), ElasticNet(0.5), Memory(X, sign))
    shape = shape_of(problem)
    assert (shape.n, shape.d, shape.entries, shape.sparse, shape.location) == (
        *(2_000, 30, 60_000, False),
        Location.MEMORY,
    )
    assert shape.hardness == pytest.approx(0.5 * 30, rel=0.05)
    assert (
        hardness_of(get("squared_hinge"), 1.0, 1.0) == 8.0
        and hardness_of(get("hinge"), 1.0, 1.0) == 4.0
    )


def test_correlation_is_one_for_independent_features_and_d_for_equal_ones():
    X, _ = rows(64, 100)
    common = np.repeat(X[:, :1], 100, axis=1)
    assert correlation(X) == pytest.approx(1.0, abs=0.2)
    assert correlation(common) == pytest.approx(100.0, rel=0.2)
    half = 0.5**0.5 * (X + common)  # every pair has the correlation 1/2
    assert correlation(half) == pytest.approx(1.0 + 99 / 4, rel=0.4)
    scales = 10.0 ** np.linspace(-3.0, 3.0, 100)
    assert correlation(half * scales + scales) == correlation(half)
    assert correlation(np.zeros((64, 3))) == correlation(X[:2]) == 1.0


def test_correlated_features_make_conjugate_gradients_longer():
    known, law = prices(), prices().laws["newton-cg", "receding"]
    plain, factors = SHAPES[1], replace(SHAPES[1], correlation=10.0)
    assert law.iterations(known.terms(factors, 1e-6)) > law.iterations(known.terms(plain, 1e-6))


def test_short_and_long_sparse_rows_have_prices_of_their_own():
    """The price of a visit is that of a short row, which a dense one does not tell."""
    price, cell = prices().nanoseconds, replace(SHAPES[4], entries=130_000)
    assert WORK["dual-cd"](cell) == {
        "native calls": 1.0,
        "sparse visits": cell.n,
        "sparse visited": cell.entries,
    }
    assert WORK["newton-cg"](cell)["sparse rows"] == cell.n
    assert price["sparse visited"] > price["visited"]
    assert price["sparse visits"] < price["visits"]


@pytest.mark.parametrize("tol", [1e-3, 1e-6])
@pytest.mark.parametrize("C", [1.0, 100.0])
def test_short_texts_are_for_coordinate_ascent(C, tol):
    """5,574 short messages, rows of length 1: ascent took half to a third as long as conjugate gradients."""
    costs = Prediction(Shape(5_574, 8_712, 74_170, True, hardness=C), "receding", tol)
    assert costs.cheapest(["dual-cd", "newton-cg"]) == "dual-cd"


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "hinge"])
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e3])
@pytest.mark.parametrize(("n", "d"), [(3_000, 20), (400, 150), (60, 300)])
def test_auto_is_the_least_predicted_cost(name, C, n, d):
    """Whatever the number of threads is."""
    X, sign = rows(n, d)
    problem = Problem(get(name), ElasticNet(C), Memory(X, sign, n_threads=1))
    costs = predict(problem, 1e-6)
    takers = [
        m for m in able(plain(n, d), name, C) if m in WORK and m not in ("newton-rounds", "sifting")
    ]
    if "small" in takers:
        takers = [m for m in takers if m not in ("newton", "newton-pilot")]
    wanted = costs.cheapest(takers)
    if not skip_comparison(wanted, costs.kind, len(takers), n, d, n * d):
        assert costs.seconds(wanted) == min(costs.seconds(m) for m in takers)
    for threads in (1, 2, 8):
        same = Problem(get(name), ElasticNet(C), Memory(X, sign, n_threads=threads))
        assert choose(same, "auto", Stop(1e-6)).name == wanted


def test_costs_are_predicted_once_for_the_choice_and_the_budget(monkeypatch):
    made = []

    def counted(problem):
        made.append(problem)
        return shape_of(problem)

    monkeypatch.setattr(prediction, "shape_of", counted)
    X, sign = rows(400, 500)
    data = Memory(X, sign, n_threads=1)
    problem = Problem(get("logistic"), ElasticNet(0.01), data)
    chosen = choose(problem, "auto", Stop(1e-6))
    chosen.run(problem, np.zeros(501), Stop(1e-6), 0)
    assert chosen.name == "dual-cd" and made == [problem]
    assert predict(problem, 1e-6) is predict(problem, 1e-6)
    assert predict(problem, 1e-3) is not predict(problem, 1e-6)
    assert predict(Problem(get("logistic"), ElasticNet(100.0), data), 1e-3).shape.hardness > 1e3


def test_small_fits_skip_the_comparison():
    for kind, native in (("receding", "small"), ("quadratic", "small"), ("kinked", "interior")):
        assert skip_comparison(native, kind, 2, 150, 4, 600)
        small = Prediction(Shape(150, 4, 600, hardness=1.0), kind, 1e-6)
        assert small.cheapest(["dual-cd", native]) == native
        assert not skip_comparison(native, kind, 2, 100_000, 200, 20_000_000)
        assert not skip_comparison("dual-cd", kind, 2, 150, 4, 600)


def test_rows_elsewhere_count_as_middling():
    unknown = Shape(10_000, 50, 500_000, location=Location.DISK)
    assumed = prices().assumed(unknown)
    assert math.isnan(unknown.hardness) and assumed.hardness > 0.0


def test_no_pilot_for_a_cheap_hessian():
    for d, pays in ((20, False), (200, True)):
        X, sign = rows(6_000, d)
        problem = Problem(get("logistic"), ElasticNet(1.0), Memory(X, sign, n_threads=1))
        assert subsampled.pilot_pays(problem) == pays
