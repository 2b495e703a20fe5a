"""The interior point method for quadratic hinges: certified wherever it begins, and where Newton's method stalled."""

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, verify
from linsep.data import Memory
from linsep.losses import HuberisedHinge, Logistic, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers.interior import quadratic_hinge as slack_path
from linsep.solvers.run import Run


def nearly_separable(n=240, d=90, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    y = np.where(X @ rng.normal(size=d) > 0, 1.0, -1.0)
    y[:3] *= -1
    return X, y


def finished(X, y, C=100.0, weight=None, intercept=True, theta=None, threads=1, tol=1e-8):
    data = Memory(X, y, None, weight, n_threads=threads)
    run = Run(Problem(SquaredHinge(), ElasticNet(C), data, intercept), Stop(tol))
    start = np.zeros(X.shape[1] + 1) if theta is None else theta
    closed = slack_path.finish(run, start)
    return closed, run


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("far", [0.0, 3.0])
def test_certified_from_anywhere(C, intercept, far):
    X, y = nearly_separable()
    theta = far * np.random.default_rng(1).normal(size=X.shape[1] + 1)
    if not intercept:
        theta[-1] = 0.0
    closed, run = finished(X, y, C, intercept=intercept, theta=theta)
    assert closed
    gap, at, dual, _ = run.best
    active = np.maximum(1.0 - y * (X @ at[:-1] + at[-1]), 0.0)
    primal = 0.5 / C * at[:-1] @ at[:-1] + active @ active
    u = dual.u
    assert (u >= 0.0).all()
    side = np.array([(u * (y > 0)).sum(), (u * (y < 0)).sum()])
    if intercept:  # shrink the heavier side: sum y u = 0
        u = u * np.where(y > 0, min(1.0, side[1] / side[0]), min(1.0, side[0] / side[1]))
    v = X.T @ (y * u)
    lower = (u - u * u / 4).sum() - 0.5 * C * v @ v
    assert primal - lower <= 1e-8 * primal
    assert gap == pytest.approx(primal - lower, abs=1e-12 * primal)
    assert run.problem.passes < 250


@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("width", [0.1, 1.0, 2.5])
@pytest.mark.parametrize("far", [0.0, 3.0])
def test_huberised_hinges_of_any_width(C, width, far):
    X, y = nearly_separable()
    theta = far * np.random.default_rng(1).normal(size=X.shape[1] + 1)
    problem = Problem(HuberisedHinge(width), ElasticNet(C), Memory(X, y), True)
    run = Run(problem, Stop(1e-8))
    assert slack_path.applies(problem) and slack_path.finish(run, theta)
    (low, high), u = problem.loss.domain, run.best[2].u
    assert ((low <= u) & (u <= high)).all()
    assert problem.passes < 250


def test_separated_skewed_rows_of_the_huberised_hinge():
    rng = np.random.default_rng(0)
    X = np.exp(1.2 * rng.normal(size=(3_000, 150)))
    z = X @ rng.normal(size=150)
    y = np.where(z > np.median(z), 1.0, -1.0)
    for solver in ("auto", "newton", "newton-pilot"):
        model = LinearClassifier("huberised_hinge", C=1e3, solver=solver).fit(X, y)
        assert model.certificate_.certified


def test_weight_two_is_the_row_twice():
    X, y = nearly_separable()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    weight[5] = 0.0
    often = np.repeat(np.arange(len(y)), weight.astype(int))
    _, once = finished(X, y, weight=weight, tol=1e-11)
    _, twice = finished(X[often], y[often], tol=1e-11)
    np.testing.assert_allclose(once.best[1], twice.best[1], rtol=0, atol=1e-6)


def test_any_thread_count_gives_the_same_bits():
    X, y = nearly_separable(n=4000, d=60)
    one, two = (finished(X, y, threads=k, tol=1e-6)[1].best for k in (1, 2))
    np.testing.assert_array_equal(one[1], two[1])
    np.testing.assert_array_equal(one[2].u, two[2].u)


@pytest.mark.parametrize("solver", ["auto", "newton", "newton-pilot"])
def test_newton_hands_over_where_its_steps_are_short(solver):
    X, y = nearly_separable(n=600, d=250)
    model = LinearClassifier("squared_hinge", C=1e4, solver=solver).fit(X, y)
    assert model.certificate_.certified
    assert model.n_passes_ < 320  # Newton's method alone takes five hundred and more
    assert verify(model, X, y).certified


@pytest.mark.parametrize("solver", ["newton", "newton-cg"])
def test_newton_on_sparse_rows_hands_over(solver):
    X, y = nearly_separable(n=600, d=250)
    X = sp.csr_matrix(np.where(np.abs(X) > 1.3, X, 0.0))
    model = LinearClassifier("squared_hinge", C=1e6, solver=solver).fit(X, y)
    assert model.certificate_.certified
    assert model.n_passes_ < (400 if solver == "newton" else 6000)
    assert verify(model, X, y).certified


def test_rows_far_beyond_the_kink_keep_their_multipliers_positive():
    X, y = nearly_separable()
    X[7], y[7] = 1e9, 1.0
    theta = np.full(X.shape[1] + 1, 1.0)  # its margin is 9e10: t + sqrt(t^2 + 2 mu) is 0 there
    with np.errstate(divide="raise", invalid="raise", over="raise"):
        finished(X, y, C=1.0, theta=theta, tol=1e-6)
        path = slack_path._Path(
            Problem(SquaredHinge(), ElasticNet(1.0), Memory(X, y)), 1e-3 * theta
        )
    assert (path.rows.u > 0.0).all()
    np.testing.assert_allclose(path.rows.r, path.rows.u / 2 - path.t, rtol=1e-9)


def test_a_limit_ends_it():
    X, y = nearly_separable(n=600, d=250)
    with pytest.warns(UserWarning, match="max_passes"):
        model = LinearClassifier("squared_hinge", C=100.0, solver="newton", max_passes=60).fit(X, y)
    assert model.n_passes_ < 80


def test_where_it_applies():
    X, y = nearly_separable()
    data = Memory(X, y)
    assert slack_path.applies(Problem(SquaredHinge(), ElasticNet(1.0), data))
    assert not slack_path.applies(Problem(SquaredHinge(), ElasticNet(np.inf), data))
    assert not slack_path.applies(Problem(Logistic(), ElasticNet(1.0), data))
