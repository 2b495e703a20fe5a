"""Softmax regression on embeddings: packed products, the Kronecker preconditioner, half precision, memory."""

import tracemalloc

import ml_dtypes
import numpy as np
import pytest
from scipy.special import softmax

from linsep import LogisticRegression, _kernels, path, scan
from linsep.data import Memory
from linsep.losses import Multinomial
from linsep.penalties import ElasticNet
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Stop
from linsep.solvers.multiclass import softmax as solver
from linsep.solvers.multiclass.softmax_directions import zero_sum
from linsep.solvers.multiclass.softmax_kronecker import Covariance, Kronecker


def embeddings(n, d, k, seed=0):
    rng = np.random.default_rng(seed)
    scale = (1.0 + np.arange(d)) ** -0.5
    means = 0.25 * rng.standard_normal((k, d)) * scale
    y = rng.integers(0, k, n)
    y[:k] = np.arange(k)
    X = means[y] + rng.standard_normal((n, d)) * scale
    return (X / np.linalg.norm(X, axis=1, keepdims=True)).astype(np.float32), y.astype(np.int64)


@pytest.fixture(autouse=True)
def take_small_problems(tuned):
    tuned(softmax_packed_work=0)


def padded(W):
    out = np.zeros((len(W), -(-W.shape[1] // 8) * 8))
    out[:, : W.shape[1]] = W
    return out


def problem_of(X, y, C=1.0, weight=None, **how):
    data = Memory(X, weight=weight, labels=y, **how)
    return CoupledProblem(Multinomial(int(y.max()) + 1), ElasticNet(C), data, True)


@pytest.mark.parametrize("single", [False, True])
@pytest.mark.parametrize(("n", "d", "k"), [(300, 64, 8), (171, 100, 20), (145, 307, 33)])
@pytest.mark.parametrize("kind", [np.float32, np.float64])
def test_product_is_that_of_numpy(kind, n, d, k, single):
    X, y = embeddings(n, d, k)
    rng = np.random.default_rng(1)
    W, V, s = rng.standard_normal((d + 1, k)), rng.standard_normal((d + 1, k)), rng.random(n)
    x1 = np.hstack([X.astype(np.float64), np.ones((n, 1))])
    p = softmax(x1 @ W, axis=1)
    q = x1 @ V
    promised = x1.T @ (s[:, None] * p * (q - (p * q).sum(axis=1, keepdims=True)))
    rows, classes = _kernels.Rows(X.astype(kind)), _kernels.Classes(y, s, k)
    assert _kernels.softmax_is_packed(rows, k)
    for known in (None, np.ascontiguousarray(p.T)):
        out = np.zeros((d + 1, padded(W).shape[1]))
        for lo, hi in ((0, 7), (7, n)):
            args = (rows, classes, lo, hi, known, padded(W), padded(V), single)
            _kernels.softmax_product(*args, out.ravel())
        scale = np.abs(promised).max()
        assert np.abs(out[:, :k] - promised).max() <= (1e-5 if single else 1e-12) * scale
        assert not out[:, k:].any()


def test_sweep_adds_up_second_moments_of_probabilities():
    X, y = embeddings(500, 70, 19)
    s = np.random.default_rng(2).random(500)
    problem = problem_of(X, y, weight=s)
    W = zero_sum(np.random.default_rng(3).standard_normal((71, 19)))
    value, g = problem.value_gradient(W)
    exact = problem.intercept_hessian()
    problem.sums_cross, problem.keeps_probabilities = True, False
    again, g_again = problem.value_gradient(W)
    assert value == again
    assert np.array_equal(g, g_again)
    np.testing.assert_allclose(
        problem.intercept_hessian(), exact, atol=1e-6 * np.abs(exact).max(), rtol=0.0
    )


def test_kronecker_product_inverts_the_hessian_at_zero():
    X, y = embeddings(2000, 80, 12)
    problem = problem_of(X, y, C=10.0)
    problem.value_gradient(np.zeros((81, 12)))
    rows = Covariance(problem)
    M = Kronecker(rows, problem.lam, problem.intercept_hessian())
    R = zero_sum(np.random.default_rng(0).standard_normal((81, 12)))
    back = problem.hess_vec(zero_sum(M(R)))
    assert np.abs(zero_sum(back) - R).max() <= 1e-5 * np.abs(R).max()


@pytest.mark.parametrize("weighted", [False, True])
def test_kronecker_product_of_few_rows_inverts_the_hessian_at_zero(weighted):
    X, y = embeddings(60, 200, 12)
    weight = np.random.default_rng(1).uniform(0.5, 2.0, 60) if weighted else None
    problem = problem_of(X, y, 10.0, weight)
    problem.value_gradient(np.zeros((201, 12)))
    rows = Covariance(problem)
    assert rows.vectors.shape[1] <= 60
    M = Kronecker(rows, problem.lam, problem.intercept_hessian())
    R = zero_sum(np.random.default_rng(0).standard_normal((201, 12)))
    back = zero_sum(problem.hess_vec(zero_sum(M(R))))
    assert np.abs(back - R).max() <= 1e-9 * np.abs(R).max()


def test_few_rows_and_what_they_leave_out_stand_for_many_features(tuned):
    """More features than the covariance of all rows is decomposed for."""
    X, y = embeddings(900, 300, 30)
    tuned(softmax_packed_work=0)
    exact = LogisticRegression(C=100.0).fit(X, y)
    tuned(softmax_most_features=100)
    lean = LogisticRegression(C=100.0).fit(X, y)
    assert exact.certificate_.certified and lean.certificate_.certified
    assert lean.certificate_.primal == pytest.approx(exact.certificate_.primal, rel=2e-6)
    assert lean.n_iter_[0] <= 2 * exact.n_iter_[0]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_answer_is_certified_without_n_times_k_numbers(tuned, C):
    X, y = embeddings(3000, 130, 30)
    kept = LogisticRegression(C=C).fit(X, y)
    tuned(softmax_kept=0)
    lean = LogisticRegression(C=C).fit(X, y)
    assert kept.certificate_.certified
    assert lean.certificate_.certified
    assert lean.certificate_.primal == pytest.approx(kept.certificate_.primal, rel=2e-6)
    # Newton's method goes over to double precision where single precision no longer helps.
    fine = LogisticRegression(C=C, tol=1e-10).fit(X, y)
    assert fine.certificate_.certified


@pytest.mark.parametrize("kind", [np.float16, ml_dtypes.bfloat16])
def test_half_precision_features_are_the_same_numbers(kind):
    X, y = embeddings(2500, 128, 16)
    half = X.astype(kind)
    model = LogisticRegression(C=10.0).fit(half, y)
    same = LogisticRegression(C=10.0).fit(half.astype(np.float64), y)
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(same.certificate_.primal, rel=2e-6)
    assert np.array_equal(model.predict(half), model.predict(half.astype(np.float64)))


def test_bits_do_not_depend_on_threads_or_place(tmp_path):
    X, y = embeddings(6000, 128, 24)
    half = X.astype(np.float16)
    one, two = (LogisticRegression(C=10.0, n_threads=t).fit(half, y) for t in (1, 2))
    assert np.array_equal(one.coef_, two.coef_)
    np.save(tmp_path / "X.npy", X)
    stored = LogisticRegression(C=10.0).fit(scan(tmp_path / "X.npy"), y)
    here = LogisticRegression(C=10.0).fit(X, y)
    assert np.array_equal(stored.coef_, here.coef_)
    assert np.array_equal(stored.intercept_, here.intercept_)


def test_memory_holds_no_n_times_k_numbers(tuned):
    """Beside the rows: less than a third of the n x k numbers in double precision that scores would take."""
    n, d, k = 20_000, 64, 60
    X, y = embeddings(n, d, k)
    tuned(softmax_kept=0)
    problem = problem_of(X, y, C=0.1, n_threads=1)
    tracemalloc.start()
    try:
        solution = solver.solve(problem, np.zeros((d + 1, k)), Stop(1e-4))
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert solution.status.name == "CERTIFIED"
    assert peak < n * k * 8 / 3


def test_sweep_over_c_is_certified_everywhere():
    X, y = embeddings(2000, 100, 10)
    found = path(LogisticRegression(), X, y, np.logspace(-2, 2, 5))
    assert all(proof.certified for proof in found.certificates)
