"""The interior point method for the squared hinge with an absolute penalty, where Newton's method stalled."""

import numpy as np
import pytest
import scipy.sparse as sp

from linsep import ConvergenceWarning, LinearClassifier, LinearRegressor, _kernels, verify
from linsep.certificates import Part, recheck_part
from linsep.data import Memory
from linsep.losses import Logistic, Squared, SquaredHinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers.interior import l1 as column_path
from linsep.solvers.l1.coordinate import Columns
from linsep.solvers.linalg import schur_cg as column_system
from linsep.solvers.run import Run


def separable(n=90, d=400, seed=0, share=1.0):
    """Correlated columns of unlike scales, most of which say nothing."""
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d)) + rng.normal(size=(n, 1))
    X *= np.exp(rng.normal(size=d)) * (rng.random((n, d)) < share)
    y = np.where(X[:, :12] @ rng.normal(size=12) > 0, 1.0, -1.0)
    return X, y


def finished(X, y, C=1e3, l1_ratio=1.0, weight=None, intercept=True, threads=1, tol=1e-8):
    """The path from w = 0."""
    data = Memory(X, y, None, weight, n_threads=threads)
    run = Run(Problem(SquaredHinge(), ElasticNet(C, l1_ratio), data, intercept), Stop(tol))
    columns = Columns(run.problem, np.zeros(X.shape[1] + 1))
    columns.times = 1e3
    return column_path.finish(run, columns), run


@pytest.mark.parametrize("C", [1.0, 1e4])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("shape", [(90, 400), (240, 60)])
def test_closes_the_gap(C, l1_ratio, intercept, shape):
    X, y = separable(*shape)
    y[:2] *= -1
    closed, run = finished(X, y, C, l1_ratio, intercept=intercept)
    assert closed
    _, theta, dual, _ = run.best
    assert intercept or theta[-1] == 0.0
    loss, penalty = SquaredHinge(), ElasticNet(C, l1_ratio)
    W = theta.reshape(-1, 1)
    given = (loss, penalty, intercept, X, y, None, None, None, W, dual, 1e-8)
    assert recheck_part(Part(*given)).relative_gap <= 1e-8


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.7, 1.0])
def test_estimators_hand_over(monkeypatch, sparse, l1_ratio):
    calls = []
    finish = column_path.finish
    monkeypatch.setattr(column_path, "finish", lambda *given: calls.append(1) or finish(*given))
    X, y = separable(300, 700, share=0.1 if sparse else 1.0)
    y[::20] *= -1
    rows = sp.csr_matrix(X) if sparse else X
    model = LinearClassifier("squared_hinge", C=1e4, l1_ratio=l1_ratio).fit(rows, y)
    assert calls
    assert model.certificate_.certified
    assert verify(model, rows, y).certified
    assert 0 < np.count_nonzero(model.coef_) <= (len(y) + 1 if l1_ratio == 1.0 else X.shape[1])


@pytest.mark.parametrize("intercept", [False, True])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_the_squared_loss(intercept, l1_ratio):
    X, _ = separable(80, 300)
    target = X[:, :9] @ np.arange(1.0, 10.0) + np.random.default_rng(1).normal(size=80)
    data = Memory(X, np.ones(80), 1.0 - target)
    loss, penalty = Squared(), ElasticNet(100.0, l1_ratio)
    run = Run(Problem(loss, penalty, data, intercept), Stop(1e-8))
    columns = Columns(run.problem, np.zeros(301))
    columns.times = 1e4
    assert column_path.finish(run, columns)
    _, theta, dual, _ = run.best
    W, one = theta.reshape(-1, 1), np.ones(80)
    given = (loss, penalty, intercept, X, one, 1.0 - target, None, None, W, dual, 1e-8)
    assert recheck_part(Part(*given)).relative_gap <= 1e-8


def test_a_regressor_hands_over(monkeypatch):
    calls = []
    finish = column_path.finish
    monkeypatch.setattr(column_path, "finish", lambda *given: calls.append(1) or finish(*given))
    rng = np.random.default_rng(0)
    X = rng.normal(size=(150, 1200)) + 2.0 * rng.normal(size=(150, 1))
    X[:, 1::2] = 0.95 * X[:, :-1:2] + 0.1 * X[:, 1::2]
    target = X[:, :20] @ rng.normal(size=20) + 3.0 * rng.normal(size=150)
    model = LinearRegressor("squared", C=100.0, l1_ratio=1.0).fit(X, target)
    assert calls and verify(model, X, target).certified


def test_weight_two_is_the_row_twice():
    X, y = separable()
    weight = np.where(np.arange(len(y)) % 3 == 0, 2.0, 1.0)
    weight[5] = 0.0
    twice = np.repeat(np.arange(len(y)), weight.astype(int))
    (one, first), (two, second) = finished(X, y, weight=weight), finished(X[twice], y[twice])
    assert one and two
    least = [run.trace[-1].primal for run in (first, second)]
    assert least[0] == pytest.approx(least[1], rel=2e-8)


def test_storage_and_threads():
    X, y = separable(share=0.3)
    found = [
        finished(rows, y, threads=threads)
        for rows, threads in ((X, 1), (X, 2), (sp.csr_matrix(X), 1), (sp.csr_matrix(X), 2))
    ]
    assert all(closed for closed, _ in found)
    runs = [run for _, run in found]
    assert np.array_equal(runs[0].best[1], runs[1].best[1])
    assert np.array_equal(runs[2].best[1], runs[3].best[1])
    assert runs[0].trace[-1].primal == pytest.approx(runs[2].trace[-1].primal, rel=2e-8)


def test_single_precision_rows():
    X, y = separable()
    closed, run = finished(X.astype(np.float32), y, tol=1e-6)
    assert closed and run.best[0] <= 1e-6 * run.trace[-1].primal


def test_a_limit_leaves_what_there_is():
    X, y = separable(300, 700)
    y[::20] *= -1
    with pytest.warns(ConvergenceWarning):
        model = LinearClassifier("squared_hinge", C=1e4, l1_ratio=1.0, max_passes=160).fit(X, y)
    found = model.certificate_
    assert not found.certified and 0.0 <= found.dual <= found.primal < 1e4 * len(y)


def test_what_it_takes():
    X, y = separable(20, 15)
    data = Memory(X, y)
    assert column_path.applies(Problem(SquaredHinge(), ElasticNet(1.0, 1.0), data, True))
    assert not column_path.applies(Problem(Logistic(), ElasticNet(1.0, 1.0), data, True))


@pytest.mark.parametrize("shape", [(60, 300), (300, 60)])
@pytest.mark.parametrize("free", [False, True])
@pytest.mark.parametrize("sparse", [False, True])
def test_systems_are_solved(shape, free, sparse):
    rng = np.random.default_rng(3)
    X = rng.normal(size=shape) * (rng.random(shape) < 0.4)
    D, h = np.exp(3 * rng.normal(size=shape[1])), np.exp(4 * rng.normal(size=shape[0]))
    part = column_system.Part(sp.csc_matrix(X) if sparse else X)
    rhs = rng.normal(size=shape[1] + 1)
    whole = np.column_stack([X, np.ones(shape[0])])
    H = whole.T @ (h[:, None] * whole) + np.diag(np.append(D, 0.0))
    if not free:
        rhs[-1], H[-1], H[:, -1] = 0.0, 0.0, 0.0
        H[-1, -1] = 1.0
    system = column_system.System(part, D, h, free)
    x = system.solve(rhs, 1e-11)
    assert np.abs(H @ x - rhs).max() <= 1e-8 * np.abs(rhs).max()
    assert system.gradients < 60


def test_without_a_factor_gradients_get_there(tuned):
    tuned(schur_largest=20)
    X, y = separable()
    closed, run = finished(X, y, C=10.0, tol=1e-6)
    assert closed and run.best[0] <= 1e-6 * run.trace[-1].primal


def test_factors_in_blocks():
    rng = np.random.default_rng(4)
    A = rng.normal(size=(300, 320))
    A = A @ A.T * np.outer(*[np.exp(rng.normal(size=300))] * 2)
    A = (A + A.T) / 2 + np.diag(np.exp(rng.normal(size=300)))
    U, scale, x = np.empty_like(A), np.empty(300), np.empty(300)
    b = rng.normal(size=300)
    assert 0.0 < _kernels.spd_factor(A, False, U, scale) <= 1.0
    _kernels.spd_apply(U, scale, b, x)
    assert np.abs(A @ x - b).max() <= 1e-8
