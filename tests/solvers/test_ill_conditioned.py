"""Data on which a solver could end short of the optimum: flat tails, huge columns, offsets. Fits must reach it."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import ConvergenceWarning, LinearClassifier, LinearRegressor
from linsep.certificates import Optimality, describe_bad_scale, explain
from linsep.data import Memory
from linsep.losses import Hinge, Huber
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import rescaled, solve_again
from linsep.solvers.l1 import prox_newton


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


def identifier(n, d, low, high, seed=0):
    """Standard normal columns, but the third holds whole numbers that say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = X[:, 0] + rng.normal(size=n)
    X[:, 2] = rng.integers(low, high, size=n).astype(float)
    return X, y


IDENTIFIERS = {
    "phone": (10**9, 10**10),
    "card": (10**15, 10**16),
    "snowflake": (10**17, 2 * 10**18),
    "hash": (0, 2**63 - 1),
    "nanoseconds": (17 * 10**17, 17 * 10**17 + 10**15),
}
# Optima by Clarabel, in the same order, with the column centred and scaled.
WITH_IDENTIFIER = {
    ("hinge", 200, 5): (104.908392134, 104.908392135, 105.939331747, 104.908392135, 104.908392135),
    ("hinge", 40, 60): (0.59074067777, 0.59074067777, 0.66292723769, 0.59074067777, 0.59074067777),
    ("absolute", 200, 5): (
        152.972774248,
        152.972774248,
        152.966576061,
        152.972774248,
        152.972774248,
    ),
    ("absolute", 40, 60): (
        1.02246602244,
        1.02246602244,
        1.05639039848,
        1.02246602244,
        1.02246602244,
    ),
}


def objective(model, loss, X, y, C):
    z = X @ model.coef_.ravel() + float(np.ravel(model.intercept_)[0])
    losses = np.abs(y - z) if loss == "absolute" else np.maximum(1 - y * z, 0.0)
    return 0.5 * (model.coef_**2).sum() + C * losses.sum()


def fitted_with_identifier(loss, shape, kind, C=1.0):
    X, y = identifier(*shape, *IDENTIFIERS[kind])
    if loss == "absolute":
        return quietly(LinearRegressor(loss, C=C), X, y), X, y
    y = np.where(y > 0, 1.0, -1.0)
    return quietly(LinearClassifier(loss, C=C), X, y), X, y


@pytest.mark.sampled(5)
@pytest.mark.parametrize("case", WITH_IDENTIFIER)
@pytest.mark.parametrize("which", range(5))
def test_kinked_losses_reach_the_optimum_beside_an_identifier(case, which):
    loss, *shape = case
    model, X, y = fitted_with_identifier(loss, shape, list(IDENTIFIERS)[which])
    value = objective(model, loss, X, y, 1.0)
    assert value == pytest.approx(WITH_IDENTIFIER[case][which], rel=3e-6)
    assert model.certificate_.dual <= WITH_IDENTIFIER[case][which] * (1 + 1e-9)


@pytest.mark.sampled(8)
@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("kind", IDENTIFIERS)
@pytest.mark.parametrize("C", [1e-2, 1e2, 1e4])
def test_an_identifier_never_makes_the_model_worse_than_none(loss, kind, C):
    model, X, y = fitted_with_identifier(loss, (150, 4), kind, C)
    value = objective(model, loss, X, y, C)
    best = np.abs(y - np.median(y)) if loss == "absolute" else 1 - y * (1 if y.sum() > 0 else -1)
    assert value <= C * best.sum()
    X[:, 2] = 0.0
    without = type(model)(loss, C=C).fit(X, y)
    assert value <= without.certificate_.primal * (1 + 2e-6)


def test_a_solution_is_never_worse_than_the_model_without_features():
    X, y = gaussian(40, 5)
    y = np.where(y > 0, 1.0, -1.0)
    problem = Problem(Hinge(), ElasticNet(1.0), Memory(X, y), True)
    bad = Solution(
        W=np.full((6, 1), 1e6),
        dual=Explicit(np.zeros(40)),
        status=Status.TIME_LIMIT,
        passes=1.0,
        seconds=0.0,
    )
    found = rescaled.improve(problem, bad, Stop(), solve_again)
    assert found.status is Status.TIME_LIMIT
    assert (found.W[:-1] == 0.0).all()
    certified = replace(bad, status=Status.CERTIFIED)
    assert rescaled.improve(problem, certified, Stop(), solve_again) is certified


def said(model, X, y):
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(X, y)
    return str(caught[-1].message)


def test_the_warning_names_the_column_whose_scale_costs_the_digits():
    pd = pytest.importorskip("pandas")
    X, y = identifier(20_000, 4, *IDENTIFIERS["card"])  # too many rows for decimals
    y = np.where(y > 0, 1.0, -1.0)
    text = said(LinearClassifier("hinge"), X, y)
    assert "Column 2 (counting from 0) has entries near 1e+16 while those of the other" in text
    assert "Divide it by a power of ten, standardise it, or drop it if it is an identifier." in text
    text = said(LinearClassifier("hinge"), pd.DataFrame(X, columns=["a", "b", "card", "d"]), y)
    assert "Column 2 ('card') has entries near 1e+16" in text


def test_the_warning_tells_a_single_entry_from_a_column_and_an_offset_from_a_size():
    X, _ = gaussian(100, 6)
    proof = Optimality(1.0, 0.5, 0.5, 0.5, np.inf, 1e-6, False, rounding=3e-5)
    assert describe_bad_scale(proof, X) == ""
    outlier, shifted, large = X.copy(), X + 1e9, 1e8 * X
    outlier[3, 1] = 1e12
    assert "Column 1 (counting from 0) has an entry of 1e+12 while" in describe_bad_scale(
        proof, outlier
    )
    assert "that differ by" in describe_bad_scale(proof, shifted)
    assert "Subtract its mean" in describe_bad_scale(proof, shifted)
    assert (
        "The columns have entries near 3e+08: rounding alone accounts for a relative gap of 3e-05"
        in describe_bad_scale(proof, large)
    )
    assert describe_bad_scale(replace(proof, certified=True), large) == ""
    assert "Column 1 " in describe_bad_scale(proof, sp.csr_matrix(outlier))
    limited = explain(Status.TIME_LIMIT, proof, outlier)
    assert limited.startswith("The fit reached time_limit before")
    assert explain(Status.WORKING_PRECISION, proof, outlier).startswith("Column 1 ")


@pytest.mark.parametrize("loss", ["squared", "squared_hinge", "huber", "huberised_hinge"])
@pytest.mark.parametrize("C", [1.0, 100.0])
@pytest.mark.parametrize("scale", [1e4, 1e6, 1e8])
def test_few_rows_of_large_features_are_interpolated_by_the_shortest_weights(loss, C, scale):
    X, y = gaussian(50, 200)
    X *= scale
    classifier = loss in ("squared_hinge", "huberised_hinge")
    y = np.where(y > 0, 1.0, -1.0) if classifier else y
    kind = LinearClassifier if classifier else LinearRegressor
    model = kind(loss, C=C).fit(X, y)
    assert model.certificate_.certified
    # Interpolation with the shortest w is feasible, and nearly optimal with so weak a penalty.
    ones = np.ones((50, 1))
    system = np.block([[X @ X.T / scale**2, ones], [ones.T, np.zeros((1, 1))]])
    found = np.linalg.solve(system, np.append(y, 0.0))
    shortest = 0.5 * float(y @ found[:50]) / scale**2
    assert 0.0 < model.certificate_.primal <= shortest * (1 + 1e-6)
    if not classifier:
        assert model.certificate_.primal == pytest.approx(shortest, rel=1e-5)


@pytest.mark.parametrize("loss", ["hinge", "squared_hinge", "logistic"])
@pytest.mark.parametrize("offset", [1e4, 1e6, 1e8])
@pytest.mark.parametrize("C", [1.0, 1e3])
def test_an_offset_does_not_change_the_objective_reached(loss, offset, C):
    X, y = gaussian(120, 8)
    y = np.where(y > 0, 1.0, -1.0)
    moved = X + offset
    model = quietly(LinearClassifier(loss, C=C), moved, y)
    near = LinearClassifier(loss, C=C).fit(moved - offset, y)
    assert near.certificate_.certified
    # one rounding of the intercept, about |w| offset, moves the margins of all rows
    rounding = 4.0 * C * len(y) * offset * 2.0**-53
    expected = pytest.approx(near.certificate_.primal, rel=3e-6, abs=rounding)
    assert model.certificate_.primal == expected


@pytest.mark.parametrize("density", [0.05, 0.3])
@pytest.mark.parametrize("loss", ["squared", "huberised_hinge"])
def test_few_sparse_rows_with_one_huge_entry_take_few_passes(density, loss):
    rng = np.random.default_rng(0)
    X = rng.standard_cauchy(size=(200, 400)) * (rng.random((200, 400)) < density)
    X[17, 33] = 1e6
    y = np.where(rng.normal(size=200) > 0, 1.0, -1.0)
    model = LinearClassifier(loss, C=2.3).fit(sp.csr_matrix(X), y)
    assert model.certificate_.certified
    assert loss != "squared" or model.n_passes_ < 1000


@pytest.mark.parametrize("which", [1, 2])
def test_secant_curvatures_lead_newton_to_the_bend_where_columns_are_not_at_hand(which):
    X, y = gaussian(200, 10, (1.0, 10.0, 1e3)[which])
    problem = Problem(
        Huber(), ElasticNet(1.0, 1.0), Memory(X, None, getattr(Huber(), "centre", 1.0) - y), True
    )
    found = prox_newton.solve(problem, np.zeros(11), 1e-7, lambda: None)
    residuals = y - X @ found.theta[:-1] - found.theta[-1]
    value = np.abs(found.theta[:-1]).sum() + huber(residuals).sum()
    assert value == pytest.approx(HUBER[200, 10][which], rel=1e-6)
