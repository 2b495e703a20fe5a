"""Softmax regression on embeddings: packed products, the Kronecker preconditioner, half precision, memory."""

import tracemalloc
from contextlib import nullcontext

import ml_dtypes
import numpy as np
import pytest
from scipy.special import softmax

from linsep import LogisticRegression, _kernels, path, scan
from linsep.data import Memory
from linsep.losses import Multinomial
from linsep.penalties import ElasticNet
from linsep.problem.coupled import CoupledProblem
from linsep.solution import Linearised, Stop
from linsep.solvers.linalg import cg
from linsep.solvers.linalg.curvature_pairs import CurvaturePairs
from linsep.solvers.multiclass import softmax as solver
from linsep.solvers.multiclass import softmax_path
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


@pytest.mark.parametrize("weighted", [False, True])
def test_sweep_at_zero_is_that_of_numpy(weighted):
    """At W = 0 the gradient comes from the sums of the rows of each class, without a matrix product."""
    X, y = embeddings(500, 70, 19)
    s = np.random.default_rng(2).random(500) if weighted else np.ones(500)
    problem = problem_of(X, y, weight=s if weighted else None)
    problem.sums_cross = True
    value, g = problem.value_gradient(np.zeros((71, 19)))
    assert value == pytest.approx(s.sum() * np.log(19), rel=1e-12)
    x1 = np.hstack([X.astype(np.float64), np.ones((500, 1))])
    U = 1 / 19 - np.eye(19)[y]
    np.testing.assert_allclose(g, x1.T @ (s[:, None] * U), atol=1e-10, rtol=0.0)
    share = s.sum() / 19
    np.testing.assert_allclose(
        problem.intercept_hessian(), share * (np.eye(19) - 1 / 19), rtol=1e-10
    )
    V = np.random.default_rng(3).standard_normal((71, 19))
    near, _ = problem_of(X, y, weight=s if weighted else None).value_gradient(1e-6 * V)
    assert near == pytest.approx(value, rel=1e-4)
    product = problem.hess_vec(V)
    q = x1 @ V
    wanted = x1.T @ (s[:, None] / 19 * (q - q.mean(axis=1, keepdims=True)))
    wanted[:-1] += problem.lam * V[:-1]
    np.testing.assert_allclose(product, wanted, atol=1e-9, rtol=0.0)


@pytest.mark.parametrize("kind", [np.float16, np.float32, np.float64])
def test_sweep_in_single_precision_is_near_that_in_double(kind):
    X, y = embeddings(500, 130, 19)
    problem = problem_of(X.astype(kind), y)
    W = zero_sum(3.0 * np.random.default_rng(3).standard_normal((131, 19)))
    value, g = problem.value_gradient(W)
    near, g_near = problem.value_gradient(W, single=True)
    assert near != value
    assert near == pytest.approx(value, rel=1e-5)
    assert np.abs(g_near - g).max() <= 1e-5 * np.abs(g).max()


def recorded_passes(monkeypatch):
    """Return a list that gets, for each pass of CoupledProblem, its name and whether it was in single precision."""
    seen = []

    def record(name):
        make = getattr(CoupledProblem, name)

        def recording(self, *args):
            seen.append((name, bool(args[1:] and args[1] is True)))
            return make(self, *args)

        monkeypatch.setattr(CoupledProblem, name, recording)

    for name in ("value_gradient", "hess_vec", "closing"):
        record(name)
    return seen


def test_first_step_from_zero_needs_no_product(monkeypatch):
    X, y = embeddings(4000, 100, 20)
    seen = recorded_passes(monkeypatch)
    assert LogisticRegression(C=100.0).fit(X, y).certificate_.certified
    assert [name for name, _ in seen[:3]] == ["value_gradient", "value_gradient", "hess_vec"]


def test_gap_is_closed_from_a_gradient_in_double_precision(monkeypatch):
    X, y = embeddings(4000, 100, 20)
    seen = recorded_passes(monkeypatch)
    for C in (0.01, 1.0, 100.0):
        assert LogisticRegression(C=C).fit(X, y).certificate_.certified
    assert ("value_gradient", True) in seen
    sweeps = [single for name, single in seen if name != "hess_vec"]
    closings = [
        at
        for at, (name, _) in enumerate(p for p in seen if p[0] != "hess_vec")
        if name == "closing"
    ]
    assert len(closings) >= 3
    assert not any(sweeps[at - 1] for at in closings)


def test_values_too_rough_to_compare_are_computed_again(monkeypatch):
    """Offsets of 1e5 leave single precision no digit of the scores: the fit goes over to double precision."""
    X, y = embeddings(3000, 100, 20)
    seen = recorded_passes(monkeypatch)
    model = LogisticRegression(C=1.0).fit(X.astype(np.float64) + 1e5, y)
    assert model.certificate_.relative_gap <= 1e-5
    first = next(
        at for at, (name, single) in enumerate(seen) if name == "value_gradient" and single
    )
    assert ("value_gradient", False) in seen[first:]


def test_pairs_tell_the_next_system_how_the_matrix_acts():
    rng = np.random.default_rng(0)
    A = rng.standard_normal((40, 40))
    A = A @ A.T + np.eye(40)
    pairs = CurvaturePairs(30)

    def solve(b):
        def times(p):
            q = A @ p
            pairs.add(p, q)
            return q

        def ends(at):
            return at.rho <= 1e-16 * at.rho_first

        at = cg.solve(times, pairs.update(lambda r: r.copy()), b, ends, 200)
        pairs.commit()
        return at

    first, second = (solve(rng.standard_normal(40)) for _ in range(2))
    assert second.products <= 0.7 * first.products
    assert np.abs(second.r).max() <= 1e-6
    M = np.array([pairs.update(lambda r: r.copy())(e) for e in np.eye(40)])
    np.testing.assert_allclose(M, M.T, atol=1e-9 * np.abs(M).max())
    assert np.linalg.eigvalsh((M + M.T) / 2)[0] > 0.0
    p, q, _ = pairs._pairs[-1]
    np.testing.assert_allclose(M @ q, p, atol=1e-9 * np.abs(p).max())


def test_pairs_follow_the_penalty_and_are_limited():
    pairs = CurvaturePairs(2)
    pairs.set_ridge(1.0)
    for p in np.eye(3):
        pairs.add(p, 2.0 * p)
    pairs.commit()
    pairs.set_ridge(3.0)
    apply = pairs.update(lambda r: r.copy())
    # The first pair made room for the last, and the last entry is an intercept.
    np.testing.assert_allclose(apply(np.ones(3)), [1.0, 1 / 4, 1 / 2])
    none = CurvaturePairs(0)
    none.add(np.ones(3), np.ones(3))
    none.commit()
    np.testing.assert_array_equal(none.update(lambda r: 2.0 * r)(np.ones(3)), np.full(3, 2.0))


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


def test_fits_of_a_path_share_what_they_computed(monkeypatch):
    X, y = embeddings(6000, 100, 20)
    Cs = np.logspace(-2, 2, 9)
    made = []
    covariance = solver._covariance
    monkeypatch.setattr(solver, "_covariance", lambda *args: made.append(1) or covariance(*args))
    shared = path(LogisticRegression(), X, y, Cs)
    assert len(made) == 1
    again = path(LogisticRegression(n_threads=1), X, y, Cs)
    assert np.array_equal(shared.coefs, again.coefs)
    monkeypatch.setattr(softmax_path.SoftmaxPath, "use", lambda self: nullcontext())
    alone = path(LogisticRegression(), X, y, Cs)
    assert all(proof.certified for found in (shared, alone) for proof in found.certificates)
    assert shared.n_passes <= 0.9 * alone.n_passes
    for one, other in zip(shared.certificates, alone.certificates, strict=True):
        assert one.primal == pytest.approx(other.primal, rel=2e-6)


def test_state_of_a_path_belongs_to_its_rows():
    X, y = embeddings(300, 64, 8)
    problem, other = problem_of(X, y), problem_of(X.copy(), y)
    own = softmax_path.SoftmaxPath()
    W = np.ones((65, 8))
    with own.use():
        assert softmax_path.current(problem) is own
        own.remember(4.0, W)
        own.remember(2.0, 2.0 * W)
        assert np.array_equal(own.extrapolate(2.0 * W, 1.0), 3.0 * W)
        assert np.array_equal(
            own.extrapolate(2.0 * W, 1e-9), 4.0 * W
        )  # no farther than twice the last change
        assert np.array_equal(
            own.extrapolate(np.zeros_like(W), 1.0), np.zeros_like(W)
        )  # no warm start
        assert np.array_equal(own.extrapolate(W, 3.0), W)  # C decreases
        softmax_path.current(problem)
        assert np.array_equal(own.extrapolate(2.0 * W, 1.0), 3.0 * W)
        softmax_path.current(other)
        assert np.array_equal(own.extrapolate(W, 1.0), W)
    assert softmax_path.current(problem) is not own


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize(("d", "k"), [(5, 3), (70, 19), (300, 210)])
def test_closing_pass_derives_the_scores_of_the_base(d, k, weighted):
    """If the point is base + step, the sums agree with those from three products."""
    X, y = embeddings(450, d, k)
    rng = np.random.default_rng(4)
    s = rng.random(450) if weighted else None
    W, step = rng.standard_normal((d + 1, k)), 0.1 * rng.standard_normal((d + 1, k))
    base, bound = W - step, np.abs(W).max(axis=1)
    rows, classes = _kernels.Rows(X), _kernels.Classes(y, s, k)
    size = 7 + padded(W).shape[1] * (d + 2) + k * d
    found = []
    for given in (padded(base), None):
        out = np.zeros(size)
        args = (rows, classes, 0, 450, given, padded(step), padded(W), bound, None, out)
        _kernels.softmax_closing(*args)
        found.append(out)
    np.testing.assert_allclose(found[1], found[0], rtol=1e-11, atol=1e-11)


def test_problem_asks_for_the_base_only_if_it_is_not_point_minus_step():
    X, y = embeddings(300, 70, 9)
    problem = problem_of(X, y)
    rng = np.random.default_rng(5)
    base, step = rng.standard_normal((71, 9)), 0.1 * rng.standard_normal((71, 9))
    dual = Linearised(base, step)
    together = problem.closing(base + step, dual)
    apart = problem.closing(np.nextafter(base + step, np.inf), dual)
    np.testing.assert_allclose(together, apart, rtol=1e-11, atol=1e-11)
    assert not np.array_equal(together, problem.closing(base, dual))


def test_kronecker_preconditioner_at_zero_needs_no_eigenvectors():
    X, y = embeddings(600, 64, 12)
    problem = problem_of(X, y)
    problem.sums_cross = True
    W = np.zeros((65, 12))
    problem.value_gradient(W)
    rows, S = Covariance(problem), problem.intercept_hessian()
    R = zero_sum(np.random.default_rng(6).standard_normal((65, 12)))
    np.testing.assert_allclose(
        zero_sum(Kronecker(rows, 0.5, S, at_zero=True)(R)),
        zero_sum(Kronecker(rows, 0.5, S)(R)),
        rtol=1e-6,
        atol=1e-9,
    )
