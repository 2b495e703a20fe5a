"""More features than rows: smooth losses in the span of the rows, and who is sent there."""

import numpy as np
import pytest
from catalogue import Sample, fit, objective, plain

from linsep import LinearClassifier, LinearRegressor, verify
from linsep.losses import get
from linsep.solution import Explicit, Status, Stop
from linsep.solvers import plan
from linsep.solvers.dual_ascent import solve as dual_cd
from linsep.solvers.linalg import minimum_norm
from linsep.solvers.newton import gram_reduction as wide

PARABOLAS = ("squared_hinge", "squared", "huberised_hinge")
SMOOTH = (*PARABOLAS, "logistic")


def unscaled(n: int = 60, d: int = 150, seed: int = 0) -> Sample:
    """Columns of very different size: slow for every method that visits rows or columns in turn."""
    sample = plain(n, d, seed)
    size = np.exp(3.0 * np.random.default_rng(seed).standard_normal(d))
    return Sample(size * sample.X, sample.sign)


@pytest.mark.parametrize("loss", SMOOTH)
@pytest.mark.parametrize("C", [1e-4, 1.0])
@pytest.mark.parametrize("intercept", [True, False], ids=["free b", "no b"])
def test_the_answer_in_the_span_of_the_rows_is_the_answer(loss, C, intercept):
    sample = unscaled()
    problem = sample.problem(get(loss), C, fit_intercept=intercept)
    found = wide.solve_smooth(problem, np.zeros(problem.order), Stop(1e-8))
    assert found.status is Status.CERTIFIED and isinstance(found.dual, Explicit)
    theta = found.W[:, 0]
    _, g, H = objective(get(loss), C, sample, theta, intercept)
    if not intercept:
        assert theta[-1] == 0.0
        g, H = g[:-1], H[:-1, :-1]
    decrement = g @ np.linalg.lstsq(H, g, rcond=1e-15)[0]
    assert decrement <= 1e-6 * found.trace[-1].primal


def test_a_point_keeps_its_margins_on_the_way_back():
    sample = unscaled()
    problem = sample.problem(get("squared_hinge"), 1.0)
    reduced = wide.Reduced(problem)
    y = np.random.default_rng(1).standard_normal(reduced.problem.order)
    there = reduced.problem.data.X @ y[:-1] + y[-1]
    theta = reduced.lift(y)
    here = sample.X @ theta[:-1] + theta[-1]
    assert np.allclose(there, here, rtol=1e-6, atol=1e-6 * np.abs(there).max())
    assert np.isclose(theta[:-1] @ theta[:-1], y[:-1] @ y[:-1], rtol=1e-6)


@pytest.mark.parametrize("loss", ["squared_hinge", "logistic"])
@pytest.mark.parametrize("C", [1e-2, 1.0, 1e4])
def test_unscaled_columns_are_certified_and_anyone_can_check_it(loss, C):
    sample = unscaled(80, 400)
    model = LinearClassifier(loss, C=C).fit(sample.X, sample.sign)
    assert model.certificate_.certified
    assert verify(model, sample.X, sample.sign).relative_gap <= 1e-6


def test_few_dense_rows_do_not_wait_for_conjugate_gradients():
    """What took thousands of passes takes some tens and one factorisation."""
    found = fit(unscaled(80, 400), "squared_hinge", 1.0)
    assert found.solver == "dual-cd" and found.certificate.certified and found.n_passes < 300


def test_the_bits_do_not_depend_on_the_threads():
    one, two = (fit(unscaled(80, 400), "squared_hinge", n_threads=k).W for k in (1, 2))
    assert np.array_equal(one, two)


@pytest.mark.parametrize(
    ("n", "d", "storage", "loss", "takes"),
    [
        (60, 150, "dense64", "squared_hinge", True),
        (60, 150, "dense64", "logistic", True),
        (60, 150, "dense64", "hinge", False),
        (60, 150, "csr64-int32", "squared_hinge", True),
        (1200, 1500, "csr64-int32", "squared_hinge", False),
        (150, 60, "dense64", "squared_hinge", False),
    ],
)
def test_whom_it_serves(n, d, storage, loss, takes):
    problem = plain(n, d).in_storage(storage).problem(get(loss), 1.0)
    assert wide.finishes(problem) is takes


@pytest.mark.parametrize("loss", PARABOLAS)
def test_ascent_gives_up_and_the_span_of_the_rows_goes_on(loss):
    problem = unscaled(80, 400).problem(get(loss), 1.0)
    first = dual_cd.solve(problem, np.zeros(401), Stop(1e-6), budget=20.0)
    assert first.status is Status.WORKING_PRECISION
    problem = unscaled(80, 400).problem(get(loss), 1.0)
    both = plan.ascent_then_primal(problem, np.zeros(401), Stop(1e-6), 0)
    assert both.status is Status.CERTIFIED and problem.passes <= 300
    seconds = [record.seconds for record in both.trace]
    assert seconds == sorted(seconds) and len(both.trace) > 1


def test_nearly_all_rows_free_at_first_is_not_crowded():
    """Fewer than twice as many rows as features: ascent goes on, and ends."""
    problem = plain(330, 301, noise=0.0).problem(get("squared_hinge"), 100.0)
    found = dual_cd.solve(problem, np.zeros(302), Stop(1e-6))
    assert found.status is Status.CERTIFIED


@pytest.mark.parametrize("intercept", [True, False], ids=["free b", "no b"])
@pytest.mark.parametrize("spread", [0.0, 3.0])
def test_without_a_penalty_the_shortest_interpolation_needs_no_matrix_of_the_features(
    intercept, spread, monkeypatch
):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((40, 900)) * 10.0 ** (spread * rng.random(900))
    t = X[:, 0] + rng.standard_normal(40)
    orders = []
    whole = minimum_norm.null_space

    def null_space(S):
        orders.append(len(S))
        return whole(S)

    monkeypatch.setattr(minimum_norm, "null_space", null_space)
    model = LinearRegressor(fit_intercept=intercept).fit(X, t)
    assert model.certificate_.certified and max(orders, default=0) <= 40
    verify(model, X, t)
    mean = (X.mean(axis=0), t.mean()) if intercept else (0.0, 0.0)
    shortest = np.linalg.lstsq(X - mean[0], t - mean[1], rcond=None)[0]
    assert np.allclose(model.coef_, shortest, rtol=1e-8, atol=1e-10 * np.abs(shortest).max())


def test_rows_that_contradict_each_other_are_fitted_as_well_as_they_can_be():
    rng = np.random.default_rng(0)
    X = np.repeat(rng.standard_normal((10, 300)), 2, axis=0)
    t = rng.standard_normal(20)
    model = LinearRegressor().fit(X, t)
    means = np.repeat(t.reshape(10, 2).mean(axis=1), 2)
    assert np.allclose(model.predict(X), means)
