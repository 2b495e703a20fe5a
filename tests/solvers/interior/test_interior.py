"""The interior point method for losses with a kink: laws of its answers, checked by a numpy text of their own."""

import warnings
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from catalogue import (
    KINKED,
    MAKERS,
    Sample,
    dense,
    fit,
    labels,
    makers,
    naming,
    plain,
    weighted,
)
from duality import BOX, assert_optimal
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.svm import SVC

from linsep import LinearClassifier, LinearRegressor, _kernels, verify
from linsep.errors import ConvergenceWarning, NonFinite, Refused
from linsep.losses import get
from linsep.solution import Status, Stop
from linsep.solvers.interior.central_path import Path, feasible
from linsep.solvers.interior.start import null_directions
from linsep.solvers.run import Run

each_kinked = pytest.mark.parametrize("loss", KINKED, ids=naming)


@pytest.fixture(params=["native", "blocks"])
def route(request, tuned):
    """The whole fit in one call, or driven over blocks of rows."""
    if request.param == "blocks":
        tuned(native_entries=-1, block_bytes=3000)
    return request.param


@each_kinked
@pytest.mark.parametrize("C", [1e-3, 1.0, 1e4])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_every_answer_is_proven_by_its_own_dual_point(loss, C, fit_intercept, route):
    for name in makers(loss):
        sample = MAKERS[name]()
        found = fit(sample, loss, C, "interior", fit_intercept=fit_intercept)
        assert_optimal(found, loss, C, sample, 1e-6, fit_intercept)


def hostile():
    """Problems that stall other methods."""
    rng = np.random.default_rng(0)
    base = plain(60, 3)
    grid = rng.integers(-2, 3, size=(300, 4)).astype(float)
    onehot = np.hstack([np.eye(k)[rng.integers(0, k, 300)] for k in (6, 4)])
    rare = -np.ones(2000)
    rare[[5, 1300]] = 1.0
    yield "both labels", Sample(np.vstack([base.X, base.X]), np.repeat([1.0, -1.0], 60))
    yield "repeated rows", Sample(np.repeat(base.X, 5, axis=0), np.repeat(base.sign, 5))
    yield "integer grid", Sample(grid, labels(grid, rng, 1.0))
    yield "one-hot", Sample(onehot, labels(onehot, rng, 0.5))
    yield "one feature", plain(50, 1)
    yield "two rows", Sample(np.array([[0.0], [1.0]]), np.array([-1.0, 1.0]))
    yield "touching", Sample(np.array([[0.0], [1.0], [1.0], [2.0]]), np.array([-1.0, -1, 1, 1]))
    yield "no features that vary", Sample(np.full((10, 2), 3.0), np.tile([1.0, -1.0], 5))
    yield "0.1 % positive", Sample(plain(2000, 4).X, rare)
    yield "one class", Sample(base.X, np.ones(60))
    yield "more features than rows", plain(12, 40)


@each_kinked
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_hostile_problems_end_certified_or_honest(loss, storage):
    for name, sample in hostile():
        for C in (1e-6, 1.0, 1e8):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore", ConvergenceWarning)
                found = fit(sample.in_storage(storage), loss, C)
            if name == "more features than rows" and loss.name == "absolute" and C == 1e8:
                # u of size 1e-8 in a box of size 1: its rounding alone is this large
                assert found.status in (Status.CERTIFIED, Status.WORKING_PRECISION)
                continue
            assert found.certificate.certified, (name, C, str(found.certificate))
            assert_optimal(found, loss, C, sample, 1e-6)


def test_agrees_with_libsvm():
    cancer, flowers = load_breast_cancer(), load_iris()
    sets = [
        (cancer.data / cancer.data.std(axis=0), np.where(cancer.target == 1, 1.0, -1.0)),
        (flowers.data, np.where(flowers.target == 2, 1.0, -1.0)),
    ]
    for X, y in sets:
        for C in (0.01, 1.0, 10.0):
            # It keeps its kernel in float32, so its w is off; its dual point is feasible and near the best.
            model = SVC(kernel="linear", C=C, tol=1e-9).fit(X, y)
            alpha = model.dual_coef_.ravel()
            w = X[model.support_].T @ alpha
            lower = np.abs(alpha).sum() - w @ w / 2
            found = fit(Sample(X, y), "hinge", C).certificate
            assert lower <= found.primal * (1 + 1e-12)
            np.testing.assert_allclose(found.dual, lower, rtol=1e-6)


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_absolute_loss_agrees_with_linear_programming(fit_intercept):
    sample = MAKERS["regression"]()
    n, d = sample.X.shape
    t = 1.0 - sample.offset
    A = np.hstack([sample.X, np.full((n, 1), float(fit_intercept))])
    rows = np.block([[A, -np.eye(n)], [-A, -np.eye(n)]])
    cost = np.concatenate([np.zeros(d + 1), sample.weight])
    bounds = [(None, None)] * (d + 1) + [(0, None)] * n
    best = scipy.optimize.linprog(cost, rows, np.concatenate([t, -t]), bounds=bounds).fun
    model = LinearRegressor("absolute", C=1e8, fit_intercept=fit_intercept)
    model.fit(sample.X, t, sample_weight=sample.weight)
    residuals = np.abs(t - model.predict(sample.X))
    np.testing.assert_allclose(residuals @ sample.weight, best, rtol=1e-7)
    assert np.sum(residuals < 1e-9) >= d + fit_intercept  # a vertex
    assert verify(model, sample.X, t, sample_weight=sample.weight).certified


@each_kinked
def test_complementarity(loss, route):
    """Rows beyond the kink are at one end of the box, rows before it at the other; on it, anywhere."""
    for name in ("plain", "weighted", "offsets", "tall"):
        sample = MAKERS[name]()
        found = fit(sample, loss, 1.0, "interior")
        low, high, kink = BOX[loss.name]
        o = 0.0 if sample.offset is None else sample.offset
        v = sample.sign * (sample.X @ found.W[:-1, 0] + found.W[-1, 0]) + o - kink
        live = np.ones(len(v), bool) if sample.weight is None else sample.weight > 0
        u, far = found.dual.u[live], v[live]
        assert (u[far > 1e-7] == low).all() and (u[far < -1e-7] == high).all()
        if found.certificate.primal > 0:
            assert np.sum(np.abs(far) <= 1e-7) <= sample.X.shape[1] + 1


@each_kinked
def test_weight_two_is_the_row_twice(loss, route):
    rng = np.random.default_rng(5)
    base = replace(MAKERS["offsets"](), weight=rng.integers(0, 3, 60).astype(float))
    times = base.weight.astype(int)
    twice = Sample(*(np.repeat(a, times, axis=0) for a in (base.X, base.sign, base.offset)))
    a, b = (fit(sample, loss, 0.5, "interior", tol=1e-9) for sample in (base, twice))
    np.testing.assert_allclose(a.certificate.primal, b.certificate.primal, rtol=1e-9)
    np.testing.assert_allclose(a.W[:-1], b.W[:-1], rtol=1e-6, atol=1e-8)


@each_kinked
@pytest.mark.parametrize("storage", ["dense32", "csr64-int32", "csr32-int64", "csr64-unsorted"])
def test_storage_does_not_matter(loss, storage, route):
    sample = weighted()
    sample = replace(sample, X=sample.X.astype(np.float32).astype(float))
    a, b = (fit(s, loss, 2.0, "interior") for s in (sample, sample.in_storage(storage)))
    np.testing.assert_allclose(a.certificate.primal, b.certificate.primal, rtol=1e-9, atol=1e-12)
    assert np.linalg.norm(a.W[:-1] - b.W[:-1]) <= (
        a.certificate.coef_error + b.certificate.coef_error
    )


@pytest.mark.parametrize("storage", ["dense64", "csr64-int32", "fortran64"])
def test_the_number_of_threads_does_not_change_a_bit(storage, tuned):
    tuned(native_entries=-1, block_bytes=4000, converted_bytes=0)
    sample = plain(3000, 5).in_storage(storage)
    first, *others = (fit(sample, "hinge", 1.0, "interior", n_threads=k) for k in (1, 2, 8))
    for other in others:
        assert (first.W == other.W).all() and (first.dual.u == other.dual.u).all()
        assert first.certificate == other.certificate and first.n_passes == other.n_passes


@pytest.mark.usefixtures("instructions")
def test_every_instruction_set():
    for d in (1, 3, 4, 7, 8, 9, 17):
        sample = plain(90, d, seed=d)
        for loss in KINKED:
            assert_optimal(fit(sample, loss, 1.0), loss, 1.0, sample, 1e-6)


@pytest.mark.parametrize("tol", [1e-3, 1e-9, 1e-11])
def test_tol_is_met(tol, route):
    sample = plain(200, 6)
    found = fit(sample, "hinge", 1.0, "interior", tol=tol)
    assert found.certificate.relative_gap <= tol
    assert_optimal(found, get("hinge"), 1.0, sample, tol)


@pytest.mark.parametrize("limit", [{"max_passes": 5}, {"max_passes": 40}, {"time_limit": 1e-9}])
def test_limits_end_with_the_gap_so_far(limit):
    sample = plain(400, 5)
    with pytest.warns(ConvergenceWarning):
        found = fit(sample, "hinge", 1.0, **limit)
    assert found.status in (Status.PASS_LIMIT, Status.TIME_LIMIT)
    assert not found.certificate.certified
    best = fit(sample, "hinge", 1.0).certificate.primal
    assert found.certificate.dual <= best <= found.certificate.primal
    if limit == {"max_passes": 40}:
        assert found.certificate.dual > 0.0


def test_a_warm_start_helps_and_a_bad_one_does_no_harm(route):
    sample = plain(300, 5)
    cold = fit(sample, "hinge", 1.0, "interior")
    warm = fit(sample, "hinge", 1.0, "interior", start=cold.W)
    wild = fit(sample, "hinge", 1.0, "interior", start=1e6 * np.ones((6, 1)))
    assert warm.certificate.certified and wild.certificate.certified
    np.testing.assert_allclose(wild.W, cold.W, rtol=1e-6, atol=1e-8)


def test_verify_agrees_also_in_exact_arithmetic():
    X, y = load_iris(return_X_y=True)
    y = y == 2
    for loss in ("hinge", "absolute", "perceptron"):
        model = LinearClassifier(loss).fit(X, y)
        exact = verify(model, X, y, exact=True)
        assert verify(model, X, y).certified and exact.certified
        np.testing.assert_allclose(exact.primal, model.certificate_.primal, rtol=1e-12)


def test_numbers_that_are_not_finite_are_refused(route):
    sample = plain(50, 3)
    X = sample.X.copy()
    X[7, 1] = np.nan
    with pytest.raises(NonFinite):
        fit(replace(sample, X=X), "hinge")


def test_what_is_refused():
    sample = plain(50, 3)
    with pytest.raises(Refused, match="finite C"):
        fit(sample, "hinge", np.inf, "interior")
    with pytest.raises(Refused, match="one of the losses absolute, hinge, perceptron"):
        fit(sample, "logistic", 1.0, "interior")


def test_null_directions_of_one_hot_columns():
    rng = np.random.default_rng(1)
    X = np.hstack([np.eye(3)[rng.integers(0, 3, 100)], rng.normal(size=(100, 2))])
    X = np.hstack([X, X[:, 3:4] - 2 * X[:, 4:]])
    problem = Sample(X, np.ones(100)).problem(get("hinge"))
    found = null_directions(problem)
    assert found.shape == (2, 6)
    np.testing.assert_allclose(found @ found.T, np.eye(2), atol=1e-12)
    np.testing.assert_allclose(np.ptp(X @ found.T, axis=0), 0.0, atol=1e-10)
    assert null_directions(plain(50, 3).problem(get("hinge"))) is None


@each_kinked
def test_the_crossover_solves_the_equations_of_its_guess(loss):
    """From a point near the optimum: stationary, free rows on the kink, u in the box."""
    sample = plain(40, 3)
    low, high, kink = BOX[loss.name]
    block = sample.memory().whole
    near = fit(sample, loss, 1.0, "interior", tol=1e-4)
    theta, u, v = near.W[:, 0].copy(), near.dual.u.copy(), np.zeros(40)
    kernel = _kernels.Loss(loss.name)
    out = np.zeros(1)
    _kernels.kink_margins(block.rows, block.targets, kernel, 0, 40, theta, v, out)
    np.testing.assert_allclose(
        v, sample.sign * (sample.X @ theta[:-1] + theta[-1]) - kink, atol=1e-12
    )
    np.testing.assert_allclose(out[0], loss.value(v + kink).sum(), atol=1e-12)
    if near.certificate.primal == 0.0:
        return  # no row is free
    right = _kernels.crossover(block.rows, block.targets, kernel, 1.0, True, None, 40, theta, u, v)
    assert right and (u >= low - 1e-9).all() and (u <= high + 1e-9).all()
    # u is found to about 1e5 times the rounding of a margin
    np.testing.assert_allclose(theta[:-1], sample.X.T @ (sample.sign * u), atol=1e-9)
    free = (u > low) & (u < high)
    np.testing.assert_allclose(v[free], 0.0, atol=1e-10)


def test_beyond_the_last_digit_the_best_iterate_is_kept():
    """One-hot rows whose Gram matrix runs out of digits; no iterate after the best one may spoil the answer."""
    rng = np.random.default_rng(4)
    codes = rng.integers(0, 4, (200, 3))
    X = np.concatenate([np.eye(4)[codes[:, j]] for j in range(3)], axis=1)
    sign = np.where(codes[:, 0] + codes[:, 1] > 2, 1.0, -1.0)
    sample = Sample(X, sign)
    problem = sample.problem(get("hinge"), 1.0)
    path = Path(Run(problem, Stop(1e-6)), problem)
    path.place(np.zeros(problem.order))
    assert not path.descend(0.0)
    assert path.gap <= 1e-6 * path.value
    u = feasible(problem, path.dual())
    w, b = path.theta[:-1], path.theta[-1]
    v = X.T @ (sign * u)
    primal = 0.5 * w @ w + np.maximum(0.0, 1.0 - sign * (X @ w + b)).sum()
    assert primal - (u.sum() - 0.5 * v @ v) <= 1e-6 * primal


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_few_digits_cost_fewer_passes(loss, C, route):
    """The first iterate that has them is taken, and its support is nearly that of the optimum."""
    sample = plain(300, 5)
    rough, fine = (fit(sample, loss, C, "interior", tol=tol) for tol in (1e-3, 1e-6))
    assert_optimal(rough, get(loss), C, sample, 1e-3)
    assert rough.n_passes < fine.n_passes
    low, high, _ = BOX[loss]
    inside = [np.count_nonzero((f.dual.u > low) & (f.dual.u < high)) for f in (rough, fine)]
    assert inside[0] <= inside[1] + 60


@each_kinked
@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_a_centrality_corrector_is_what_a_numpy_text_makes_of_it(loss, storage):
    rng = np.random.default_rng(0)
    sample = plain(101, 4).in_storage(storage)
    sample = replace(sample, weight=rng.integers(0, 3, 101) / 2.0)
    block = sample.memory().whole
    state = rng.uniform(0.1, 2.0, size=(10, 101))
    state[5:] = rng.normal(size=(5, 101)) * (sample.weight > 0)
    a, t, p, q, _, dv, du, dp, dq, _ = state.copy()
    goal, mu, delta = 0.4, 0.3, rng.normal(size=5)

    def towards(w):
        r = np.where(w < mu / 10, mu / 10 - w, np.where(w > 10 * mu, 10 * mu - w, 0.0))
        return np.maximum(r, -10 * mu)

    r1 = towards((a + goal * du) * (p + goal * dp))
    r2 = towards((t - goal * du) * (q + goal * dq))
    assert (r1 != 0).any() and (r1 == 0).any()
    D = 1.0 / (p / a + q / t)
    A = np.column_stack([dense(sample.X), np.ones(101)])
    out = np.zeros(5)
    where = block.rows, block.targets, 0, 101
    _kernels.ipm_recentre(*where, goal, mu, state, 0, out)
    push = sample.weight * sample.sign * D * (r1 / a - r2 / t)
    np.testing.assert_allclose(out, A.T @ push, rtol=1e-12, atol=1e-12)

    more = sample.sign * (A @ delta)
    live = sample.weight > 0
    ddu = np.where(live, D * (r1 / a - r2 / t - more), 0.0)
    new_du = du + ddu
    new_dp = dp + np.where(live, (r1 - p * ddu) / a, 0.0)
    new_dq = dq + np.where(live, (r2 + q * ddu) / t, 0.0)
    far = _kernels.ipm_attempt(*where, delta, goal, mu, state, 0)
    ratios = np.concatenate([new_du / t, -new_du / a, -new_dp / p, -new_dq / q])
    assert far == pytest.approx(ratios.max(), rel=1e-12)
    np.testing.assert_array_equal(state[6], du)  # not adopted yet
    _kernels.ipm_adopt(*where, goal, mu, state, 0)
    for plane, expected in zip(state[5:9], (dv + more, new_du, new_dp, new_dq), strict=True):
        np.testing.assert_allclose(plane, expected, rtol=1e-11, atol=1e-12)


def test_an_exact_fit_without_a_penalty_is_short_and_does_not_depend_on_how_rows_are_counted():
    rng = np.random.default_rng(0)
    X, y, count = rng.normal(size=(12, 30)), rng.normal(size=12), rng.integers(1, 4, 12)
    weighted = LinearRegressor("absolute").fit(X, y, sample_weight=count)
    repeated = LinearRegressor("absolute").fit(X.repeat(count, axis=0), y.repeat(count))
    np.testing.assert_allclose(weighted.coef_, repeated.coef_, rtol=0, atol=1e-9)
    shortest = np.linalg.pinv(X - X.mean(axis=0)) @ (y - y.mean())
    assert np.linalg.norm(weighted.coef_) < 1.5 * np.linalg.norm(shortest)


def test_start_takes_few_passes_where_rows_are_nearly_separable():
    rng = np.random.default_rng(0)
    n, d, per_row = 900, 400, 25
    share = 1.0 / np.arange(1.0, d + 1.0)
    columns = rng.choice(d, (n, per_row), p=share / share.sum()).ravel()
    X = sp.csr_array(
        (np.ones(n * per_row), columns, np.arange(0, n * per_row + 1, per_row)), shape=(n, d)
    )
    X.sum_duplicates()
    z = X @ rng.standard_normal(d)
    y = z + 0.5 * z.std() * rng.standard_normal(n) > z.mean()
    model = LinearClassifier("hinge", C=300.0, solver="interior").fit(X, y)
    assert model.certificate_.certified
    assert model.n_passes_ <= 150  # the start alone took 180 of 270 when it had no limit
