"""L-BFGS steps: the compact form is the recursion, and well-conditioned tables take few passes."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import LinearClassifier, verify
from linsep.data import Memory
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers.newton import directions, quasi_newton, subsampled
from linsep.solvers.newton import solve as newton
from linsep.solvers.newton.directions import Cholesky
from linsep.solvers.newton.quasi_newton import _Pairs
from linsep.solvers.newton.recent_vectors import RecentVectors


def _recursion(pairs, M, g, gamma):
    """B g by the two loops of Liu and Nocedal."""
    q, weights = g.copy(), []
    for s, y in reversed(pairs):
        weights.append((s @ q) / (s @ y))
        q = q - weights[-1] * y
    q = gamma * q / M
    for (s, y), a in zip(pairs, reversed(weights), strict=True):
        q = q + s * (a - (y @ q) / (s @ y))
    return q


@pytest.mark.parametrize("count", [0, 1, 4, 11])
def test_compact_form_is_the_two_loop_recursion(count):
    rng = np.random.default_rng(count)
    d, most = 30, 6
    A = rng.standard_normal((d, d))
    A = A @ A.T / d + np.eye(d)
    M = np.diag(A).copy()
    pairs, kept = _Pairs(d, most), []
    for s in rng.standard_normal((count, d)):
        y = A @ s
        pairs.add(s, y, y / M)
        kept.append((s, y))
    g = rng.standard_normal(d)
    gamma = pairs.gamma if count else 0.7
    want = _recursion(kept[-most:], M, g, gamma)
    found = pairs.times(g, g / M, gamma, lambda v: v / M)
    np.testing.assert_allclose(found, want, rtol=1e-8, atol=1e-10)


def test_pairs_follow_another_metric():
    rng = np.random.default_rng(1)
    d, M, other = 30, rng.random(30) + 1.0, rng.random(30) + 1.0
    changed, fresh = _Pairs(d, 4), _Pairs(d, 4)
    for s in rng.standard_normal((6, d)):
        y = s * (1.0 + np.arange(d))
        changed.add(s, y, y / M)
        fresh.add(s, y, y / other)
    changed.change_metric(lambda v: v / other)
    g = rng.standard_normal(d)
    found, want = (
        pairs.times(g, g / other, pairs.gamma, lambda v: v / other) for pairs in (changed, fresh)
    )
    np.testing.assert_allclose(found, want, rtol=1e-12)


@pytest.mark.parametrize("length", [3, 1_001, 60_000])  # the last ones would be in a mapped file
@pytest.mark.parametrize("count", [0, 2, 7])
def test_recent_vectors_have_the_same_bits_on_disk(length, count):
    rng = np.random.default_rng(length)
    given, v, a = (
        rng.standard_normal((count, length)),
        rng.standard_normal(length),
        rng.standard_normal(4),
    )
    memory, disk = (RecentVectors(4, length, on_disk) for on_disk in (False, True))
    for some in given:
        memory.append(some)
        disk.append(some)
    last = given[-4:]
    np.testing.assert_array_equal(np.array(list(disk)).reshape(-1, length), last)
    np.testing.assert_allclose(memory.dots(v), last @ v, rtol=1e-10)
    np.testing.assert_array_equal(disk.dots(v), memory.dots(v))
    weights = a[: len(memory)]
    np.testing.assert_allclose(memory.combine(weights), weights @ last, rtol=1e-10, atol=1e-12)
    np.testing.assert_array_equal(disk.combine(weights), memory.combine(weights))
    memory.clear()
    assert len(memory) == 0
    for some in given:  # the storage is used again
        memory.append(some)
    np.testing.assert_array_equal(memory.dots(v), disk.dots(v))


def _table(n, d, power, seed=0):
    rng = np.random.default_rng(seed)
    turned = np.linalg.qr(rng.standard_normal((d, d)))[0]
    X = (rng.standard_normal((n, d)) * np.arange(1.0, d + 1.0) ** -power) @ turned
    z = X @ rng.standard_normal(d)
    return X, z / z.std() + 0.5 * rng.standard_normal(n) > 0


@pytest.mark.parametrize("solver", ["newton-cg", "newton-pilot"])
@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
def test_independent_columns_take_few_passes(solver, loss):
    X, y = _table(3_000, 60, 0.0)
    for C in (0.01, 1.0):
        model = LinearClassifier(loss, C=C, solver=solver, tol=1e-6).fit(X, y)
        assert model.certificate_.certified
        assert model.n_passes_ <= 25


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
def test_hessian_of_a_pilot_serves_correlated_columns(loss):
    X, y = _table(4_000, 40, 1.0)
    plain = LinearClassifier(loss, C=100.0, solver="newton-cg").fit(X, y)
    pilot = LinearClassifier(loss, C=100.0, solver="newton-pilot").fit(X, y)
    assert plain.certificate_.certified
    assert pilot.certificate_.certified
    assert pilot.n_passes_ <= 30 < plain.n_passes_


def test_independent_columns_need_no_hessian_of_a_pilot():
    """A sample of a tenth of the rows would count as a tenth of a pass or more."""
    X, y = _table(12_000, 60, 0.0)
    for intercept in (False, True):
        for C in (0.01, 1.0, 100.0):
            plain, pilot = (
                LinearClassifier("logistic", C=C, solver=solver, fit_intercept=intercept).fit(X, y)
                for solver in ("newton-cg", "newton-pilot")
            )
            assert pilot.certificate_.certified
            assert pilot.n_passes_ == plain.n_passes_ <= 16


@pytest.mark.parametrize("n, starts", [(100, 0), (2_000, 1)])
def test_features_with_few_entries_take_conjugate_gradients(n, starts, monkeypatch):
    """Products with a pair would cost more than a sweep."""
    start, calls = quasi_newton._start, []
    monkeypatch.setattr(quasi_newton, "_start", lambda *given: calls.append(1) or start(*given))
    X = sp.random(n, 500, 0.1, random_state=0, format="csr")
    model = LinearClassifier("logistic", solver="newton-cg").fit(X, np.arange(n) % 2)
    assert model.certificate_.certified and len(calls) == starts


@pytest.mark.parametrize("solver", ["newton-cg", "newton-pilot"])
def test_bits_do_not_depend_on_threads(solver):
    X, y = _table(1_500, 500, 0.3)
    one = LinearClassifier("logistic", solver=solver, n_threads=1).fit(X, y)
    two = LinearClassifier("logistic", solver=solver, n_threads=2).fit(X, y)
    np.testing.assert_array_equal(one.coef_, two.coef_)


@pytest.mark.parametrize("fit_intercept", [False, True])
def test_shifted_columns_of_all_sizes(fit_intercept):
    X, y = _table(2_000, 80, 0.5)
    X = (X + 30.0) * 10.0 ** np.linspace(-3, 3, 80)
    model = LinearClassifier("logistic", solver="newton-cg", fit_intercept=fit_intercept).fit(X, y)
    other = LinearClassifier("logistic", solver="newton", fit_intercept=fit_intercept).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(other.certificate_.primal, rel=2e-6)


def _dependent(n, d, seed=0):
    """Standardised columns, a tenth of them linear combinations of the others."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    spare = max(2, d // 10)
    X[:, :spare] = X[:, -10:] @ rng.standard_normal((10, spare))
    X /= X.std(axis=0)
    z = X @ rng.standard_normal(d)
    return X, np.where(z / z.std() + 0.5 * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "huberised_hinge"])
@pytest.mark.parametrize("C", [100.0, 1e4, 1e6])
def test_dependent_columns_with_a_weak_penalty(loss, C):
    X, y = _dependent(20_000, 40)
    for solver in ("auto", "newton-pilot"):
        model = LinearClassifier(loss, C=C, solver=solver).fit(X, y)
        assert model.certificate_.certified, solver


def test_hessian_of_a_pilot_is_made_in_double_precision_where_pivots_are_small():
    X, y = _dependent(20_000, 40)
    problem = Problem(get("squared_hinge"), ElasticNet(1e4), Memory(X, y), True)
    hessian = subsampled.PilotHessian(problem, 0)
    hessian.refresh(np.zeros(problem.order))
    assert 0.0 < hessian._factor.least < 1e-8
    apply = hessian(problem)
    rng = np.random.default_rng(0)
    for v in rng.standard_normal((5, problem.data.d)):
        assert v @ apply(v) > 0.0


class _Nonsense:
    """A Hessian of a sample that leads uphill."""

    price = 0.0

    def __init__(self, factor):
        self._factor = factor

    def promises(self, some, mu):
        return True

    def refresh(self, theta):
        pass

    def __call__(self, problem):
        return lambda v: self._factor * v


@pytest.mark.parametrize("factor", [-1.0, 1e30, np.nan])
def test_fallback_takes_over_where_no_step_descends(factor):
    X, y = _table(3_000, 40, 0.5)
    problem = Problem(get("logistic"), ElasticNet(1.0), Memory(X, np.where(y, 1.0, -1.0)), True)
    direction = quasi_newton.QuasiNewton(Cholesky(problem.centre()), 0, 30.0, _Nonsense(factor))
    found = newton.solve(problem, np.zeros(problem.order), Stop(1e-6), direction)
    assert found.status is Status.CERTIFIED


def test_dependent_columns_of_equal_size_take_no_more_passes_than_independent_ones():
    X, y = _dependent(2_000, 300)
    passes = LinearClassifier("logistic", C=1.0, solver="newton-cg").fit(X, y).n_passes_
    uneven = X * np.random.default_rng(1).uniform(1.0, 5.0, X.shape[1])
    more = LinearClassifier("logistic", C=1.0, solver="newton-cg").fit(uneven, y).n_passes_
    assert passes < 40 < more  # uneven steps leave the span of the rows


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge"])
@pytest.mark.parametrize("method", ["L-BFGS", "conjugate gradients"])
def test_mean_of_the_rows_is_part_of_the_preconditioner_without_an_intercept(loss, method, tuned):
    rng = np.random.default_rng(4)
    X = sp.random_array((2_000, 500), density=0.03, rng=rng, format="csr")
    y = X @ rng.standard_normal(500) + 0.5 * rng.standard_normal(2_000) > 0.0
    X = sp.hstack([X, np.ones((2_000, 1))], format="csr")  # a penalised intercept
    if method == "conjugate gradients":
        tuned(lbfgs_pair_price=10**9)
    model = LinearClassifier(loss, C=1.0, fit_intercept=False, tol=1e-7, solver="newton-cg").fit(
        X, y
    )
    assert verify(model, X, y).certified and verify(model, X, y, exact=True).certified
    tuned(clear_mean=np.inf)
    without = LinearClassifier(**model.get_params()).fit(X, y)
    assert model.n_passes_ < 0.9 * without.n_passes_
    assert model.certificate_.primal == pytest.approx(without.certificate_.primal, rel=2e-7)


def test_mean_of_rows_around_zero_stays_out_of_the_preconditioner():
    rng = np.random.default_rng(5)
    data = Memory(rng.standard_normal((60, 400)), np.where(rng.random(60) < 0.5, 1.0, -1.0))
    problem = Problem(get("logistic"), ElasticNet(1.0), data, fit_intercept=False)
    problem.value_gradient(np.zeros(401))
    assert directions.diagonal_inverse(problem, problem.moments()).p is None
