"""Hinge and squared hinge by ascent with conjugate gradients on the free rows, and the parts they are made of."""

import ascent
import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import STORAGES, Sample, dense, fit, naming
from sklearn.svm import SVC

from linsep import LinearClassifier
from linsep import _kernels as K  # noqa: N812
from linsep.certificates import certify
from linsep.losses import HuberisedHinge, get
from linsep.solution import Explicit, Status, Stop
from linsep.solvers.dual_ascent import native as ascent_module
from linsep.solvers.dual_ascent import solve as dual_cd

HINGES = [get("hinge"), get("squared_hinge"), HuberisedHinge(0.2)]
each_hinge = pytest.mark.parametrize("loss", HINGES, ids=naming)


def text(n=300, d=700, **options):
    return ascent.text(n, d, **options)


def solve(sample, loss, C, tol=1e-6, fit_intercept=True, **limits):
    problem = sample.problem(loss, C, fit_intercept)
    found = dual_cd.solve(problem, np.zeros(problem.order), Stop(tol, **limits))
    return problem, found


def gap(sample, loss, C, W, u, fit_intercept=True):
    """P, D and the violation of the intercept's condition, by formulas that share nothing with the solver."""
    X, y = dense(sample.X), sample.sign
    s = np.ones(len(y)) if sample.weight is None else sample.weight
    m = y * (X @ W[:-1, 0] + W[-1, 0])
    a = C * s * u
    v = X.T @ (a * y)
    if loss.name == "hinge":
        value, conjugate, top = np.maximum(0, 1 - m), -u, 1.0
    elif loss.name == "squared_hinge":
        value, conjugate, top = np.maximum(0, 1 - m) ** 2, u**2 / 4 - u, np.inf
    else:
        r = np.clip(1 - m, 0, loss.width)
        value = r**2 / (2 * loss.width) + np.maximum(1 - m - loss.width, 0)
        conjugate, top = loss.width * u**2 / 2 - u, 1.0
    assert u.min() >= 0.0 and u.max() <= top, "exactly within the intervals"
    primal = 0.5 * W[:-1, 0] @ W[:-1, 0] + C * s @ value
    return primal, -C * s @ conjugate - 0.5 * v @ v, abs(a @ y) if fit_intercept else 0.0


@pytest.mark.parametrize("kind", STORAGES)
@pytest.mark.parametrize("large", [0.0, 1e9])
def test_rounds_solve_the_system_of_the_free_rows(kind, instructions, large, tuned):
    """Once the set of free rows has settled they are stationary, whether they are copied or lie where they lay."""
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(40, 60)) * (rng.random((40, 60)) < 0.5)).astype(np.float32).astype(float)
    weight = rng.choice([0.0, 1.0, 2.0], size=40)
    sample = Sample(X, np.where(rng.random(40) < 0.5, 1.0, -1.0), weight=weight).in_storage(kind)
    tuned(ascent_large=large)
    problem = sample.problem(get("squared_hinge"), 3.0)
    native = ascent_module.Ascent(problem, np.zeros(problem.order), 0).native
    for _ in range(6):
        native.epoch()
        native.improve()
    u, theta, e = native.u, native.theta, native.e
    c = native.centre if len(native.along) else np.zeros(60)
    w = theta[:-1] - e * 3.0 * c
    z = (X - c) @ w + theta[-1] + native.stiffness * e
    free = (u > 0.0) & (weight > 0.0)
    assert free.sum() > 5
    assert np.abs(1.0 - sample.sign * z - 0.5 * u)[free].max() <= 1e-6


@pytest.mark.parametrize("kind", STORAGES)
def test_products_with_the_rows_of_a_list(kind, instructions):
    rng = np.random.default_rng(1)
    X = (rng.normal(size=(40, 11)) * (rng.random((40, 11)) < 0.7)).astype(np.float32).astype(float)
    rows = Sample(X, np.ones(40)).in_storage(kind).memory().whole.rows
    chosen = np.array([3, 4, 9, 17, 30, 39], np.int64)
    a, v, out = rng.normal(size=6), np.zeros(11), np.zeros(6)
    K.list_add(rows, chosen, a, v)
    K.list_dots(rows, chosen, v, out)
    assert v == pytest.approx(X[chosen].T @ a, rel=1e-12, abs=1e-12)
    assert out == pytest.approx(X[chosen] @ v, rel=1e-12, abs=1e-12)


def test_the_order_statistic():
    rng = np.random.default_rng(0)
    for trial in range(300):
        n = int(rng.integers(1, 30))
        x = rng.integers(0, 6, size=n) + (0.0 if trial % 2 else rng.random(n))
        weight = rng.choice([0.0, 0.5, 1.0, 2.0], size=n)
        for target in (0.25, 0.5 * weight.sum(), weight.sum() - 0.25):
            if not 0.0 < target <= weight.sum():
                continue
            found = K.quantile(x.copy(), weight.copy(), target)
            want = min(t for t in x if weight[x <= t].sum() >= target)
            assert found == want
        assert K.quantile(x.copy(), weight.copy(), 1e9) == x.max()
    assert K.quantile(np.zeros(0), np.zeros(0), 1.0) == 0.0


@pytest.mark.parametrize("name", ["hinge", "absolute"])
def test_the_intercept_of_a_kinked_loss_is_the_best_one(name):
    rng = np.random.default_rng(4)
    loss = get(name)
    for n in (1, 2, 7, 60):
        sign = np.where(rng.random(n) < 0.4, 1.0, -1.0)
        offset, weight = 0.2 * rng.normal(size=n), rng.choice([0.0, 0.5, 1.0, 3.0], size=n)
        sample = Sample(np.ones((n, 1)), sign, offset, weight)
        targets, kernel = sample.memory().whole.targets, K.Loss(name)
        z = rng.normal(size=n).round(1)
        b, value = K.best_intercept(targets, kernel, True, z, 0.0, np.inf, 1e-9)
        points = sign * (1.0 - offset) - z

        def total(b, z=z, sign=sign, offset=offset, weight=weight):
            return weight @ loss.value(sign * (z + b) + offset)

        assert value == pytest.approx(total(b))
        for reach in (0.0, 1e-9, 0.3, 5.0):  # where it is looked for first does not matter
            found = K.best_intercept(targets, kernel, True, z, b + 0.2, reach, 1e-9)
            assert found == (b, value)
        assert value <= min(total(p) for p in points) + 1e-12
        u = rng.choice([*loss.domain, 0.5], size=n)
        balanced = u.copy()
        K.balance(targets, kernel, z, np.zeros(n), balanced)
        low, high = loss.domain
        assert low <= balanced.min() and balanced.max() <= high
        possible = (weight * high)[sign > 0].sum() - (weight * low)[sign < 0].sum()
        reach = min(possible, (weight * high)[sign < 0].sum() - (weight * low)[sign > 0].sum())
        if reach >= abs(weight * sign @ u):
            assert abs((weight * sign) @ balanced) <= 1e-13 * weight.sum()


def test_balance_costs_less_than_shrinking_a_class():
    sample = text()
    problem, found = solve(sample, get("hinge"), 10.0, 1e-8)
    u = np.clip(found.dual.u * (1.0 + 1e-3 * sample.sign), 0.0, 1.0)
    z = sample.X @ found.W[:-1, 0]
    balanced = u.copy()
    K.balance(problem.data.whole.targets, K.Loss("hinge"), z, np.zeros_like(z), balanced)
    e = sample.sign @ u
    heavy = sample.sign * e > 0
    shrunk = np.where(heavy, u * (1.0 - abs(e) / u[heavy].sum()), u)
    W = found.W
    values = [gap(sample, get("hinge"), 10.0, W, each) for each in (balanced, shrunk)]
    assert max(v[2] for v in values) <= 1e-9
    assert values[0][1] > values[1][1]


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
@each_hinge
def test_the_gap_closes(loss, fit_intercept, C):
    # Smooth losses leave that to Newton.
    crowded = [] if loss.smooth else [text(500, 60, noise=1.0)]
    for sample in (text(), text(200, 400, noise=3.0), *crowded):
        problem, found = solve(sample, loss, C, fit_intercept=fit_intercept)
        assert found.status is Status.CERTIFIED and isinstance(found.dual, Explicit)
        P, D, e = gap(sample, loss, C, found.W, found.dual.u, fit_intercept)
        assert -1e-12 * P <= P - D <= 1e-6 * P
        assert e <= 1e-12 * C * len(sample.sign)
        assert certify(problem, found, 1e-6).certified
        assert fit_intercept or found.W[-1, 0] == 0.0


@pytest.mark.parametrize("C", [0.1, 10.0])
@pytest.mark.parametrize("weighted", [False, True])
def test_the_objective_is_that_of_an_exact_svm(C, weighted):
    sample = text(noise=1.0)
    rng = np.random.default_rng(2)
    weight = rng.choice([0.5, 1.0, 2.0], size=len(sample.sign)) if weighted else None
    sample = Sample(sample.X, sample.sign, weight=weight)
    _, found = solve(sample, get("hinge"), C, 1e-8)
    svc = SVC(kernel="linear", C=C, tol=1e-9).fit(dense(sample.X), sample.sign, weight)
    W = np.append(svc.coef_[0], svc.intercept_).reshape(-1, 1)
    ours = gap(sample, get("hinge"), C, found.W, found.dual.u)[0]
    theirs = gap(sample, get("hinge"), C, W, found.dual.u)[0]
    # its kernel values are in single precision, so it may be worse by a little more than 1e-6
    assert ours == pytest.approx(theirs, rel=3e-6) and ours <= theirs * (1 + 1e-8)


def test_complementarity():
    sample, C = text(noise=1.0), 30.0
    _, found = solve(sample, get("hinge"), C, 1e-11)
    m, u = sample.sign * (sample.X @ found.W[:-1, 0] + found.W[-1, 0]), found.dual.u
    assert np.abs(u[m > 1.0 + 1e-3]).max() <= 1e-6
    assert np.abs(1.0 - u[m < 1.0 - 1e-3]).max() <= 1e-6
    assert np.count_nonzero((u > 1e-6) & (u < 1 - 1e-6)) > 20, "the free rows matter here"


@each_hinge
def test_rounds_never_lower_the_augmented_dual(loss):
    sample = text(noise=1.0)
    problem = sample.problem(loss, 100.0)
    ascent = dual_cd.Ascent(problem, np.zeros(problem.order), 0).native
    for _ in range(3):
        ascent.epoch()

    def dual():
        mass = sample.sign * ascent.u
        v, e = sample.X.T @ mass, mass.sum()
        if len(ascent.along):
            v = v - e * ascent.centre
        penalty = 50.0 * v @ v + ascent.theta[-1] * e + 0.5 * ascent.stiffness * e**2
        return -loss.conjugate(-ascent.u).sum() - penalty

    for _ in range(5):
        value = dual()
        ascent.improve()
        assert dual() > value
        v = sample.X.T @ (sample.sign * ascent.u)
        assert np.abs(ascent.theta[:-1] - 100.0 * v).max() <= 1e-10 * np.abs(ascent.theta).max()
        assert ascent.e == pytest.approx(sample.sign @ ascent.u, abs=1e-10)
        ascent.epoch()


@pytest.mark.parametrize("seed", range(4))
def test_a_bent_move_never_goes_backwards(seed):
    """Many free rows in few dimensions: the direction is long, and bent onto the intervals it may point downhill."""
    rng = np.random.default_rng(seed)
    X, sign = rng.normal(size=(300, 2)), np.where(rng.random(300) < 0.5, 1.0, -1.0)
    problem = Sample(X, sign).problem(get("absolute"), 0.01)
    native = dual_cd.Ascent(problem, np.zeros(problem.order), 0).native
    for _ in range(10):
        native.epoch()
        native.improve()
        assert np.abs(native.u).max() <= 1.0
        assert native.e == pytest.approx(sign @ native.u, abs=1e-10)
        assert native.theta[:-1] == pytest.approx(0.01 * X.T @ (sign * native.u), abs=1e-12)


@each_hinge
def test_rows_without_weight_change_nothing(loss):
    sample, rng = text(200, 400), np.random.default_rng(3)
    extra = sp.vstack([sample.X, sample.X[:50]]).tocsr()
    sign = np.append(sample.sign, -sample.sign[:50])
    weight = np.append(np.ones(200), np.zeros(50))
    _, plain = solve(sample, loss, 10.0, 1e-9)
    problem, found = solve(Sample(extra, sign, weight=weight), loss, 10.0, 1e-9)
    proof = certify(problem, found, 1e-9)
    assert np.linalg.norm(plain.W[:-1] - found.W[:-1]) <= 2 * proof.coef_error + 1e-3
    order = rng.permutation(200)
    _, moved = solve(Sample(sample.X[order], sample.sign[order]), loss, 10.0, 1e-9)
    assert np.linalg.norm(plain.W[:-1] - moved.W[:-1]) <= 2 * proof.coef_error + 1e-3


def test_the_number_of_threads_and_the_cuts_do_not_change_a_bit(tuned):
    sample = text(noise=1.0)
    for loss in HINGES:
        answers = []
        for threads, entries in ((1, 10**9), (2, 10**9), (3, 50)):
            tuned(ascent_entries_per_call=entries)
            tuned(ascent_large=0)
            problem = sample.problem(loss, 100.0)
            problem.data.n_threads = threads
            answers.append(dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-6)))
        for other in answers[1:]:
            assert np.array_equal(answers[0].W, other.W)
            assert np.array_equal(answers[0].dual.u, other.dual.u)


@each_hinge
def test_limits_are_kept_in_the_middle_of_a_round(loss):
    sample = text(noise=1.0)
    for most in range(3, 40, 3):
        problem, found = solve(sample, loss, 100.0, 1e-12, max_passes=most)
        assert found.status is Status.PASS_LIMIT and problem.passes <= most + 3.5
        proof = certify(problem, found, 1e-12)
        assert np.isfinite(proof.primal) and 0.0 <= proof.dual <= proof.primal
    problem, found = solve(sample, loss, 100.0, 1e-12, time_limit=1e-9)
    assert found.status is Status.TIME_LIMIT and problem.passes <= 3


@each_hinge
def test_separable_data_at_a_huge_weight_of_the_loss(loss):
    """The penalty alone counts: the largest margin is found, and its gap is small."""
    X = sp.csr_matrix(np.eye(40)[:, :30] + 0.1)
    sample = Sample(X, np.where(np.arange(40) % 3 == 0, 1.0, -1.0))
    sample = Sample(sp.csr_matrix(sp.hstack([X, sp.diags(sample.sign)])), sample.sign)
    _, found = solve(sample, loss, 1e6, 1e-6)
    P, D, _ = gap(sample, loss, 1e6, found.W, found.dual.u)
    assert found.status is Status.CERTIFIED and P - D <= 1e-6 * P
    assert (sample.sign * (sample.X @ found.W[:-1, 0] + found.W[-1, 0])).min() >= 0.99


@each_hinge
def test_the_same_rows_with_both_labels(loss):
    base = text(100, 200)
    sample = Sample(sp.vstack([base.X, base.X]).tocsr(), np.append(base.sign, -base.sign))
    for C in (0.1, 100.0):
        problem, found = solve(sample, loss, C)
        proof = certify(problem, found, 1e-6)
        assert proof.certified and np.linalg.norm(found.W[:-1]) <= proof.coef_error
        assert proof.primal == pytest.approx(200 * C * float(loss.value(np.zeros(1))[0]), rel=1e-5)


def test_free_rows_are_counted():
    problem = text().problem(get("hinge"))
    ascent = dual_cd.Ascent(problem, np.zeros(problem.order), 0).native
    ascent.u[:] = 0.0
    assert ascent.free() == 0
    ascent.u[:7] += 0.5
    assert ascent.free() == 7


def test_a_classifier_with_the_hinge_loss():
    sample = text()
    for storage in (sample.X, dense(sample.X)):
        model = LinearClassifier("hinge", C=10.0, solver="dual-cd").fit(storage, sample.sign)
        assert model.certificate_.certified
        assert np.mean(model.predict(storage) == sample.sign) > 0.95


def test_the_kernels_check_what_they_are_given():
    rows = Sample(np.ones((5, 2)), np.ones(5)).memory().whole.rows
    two = np.array([0, 4], np.int64)
    for wrong in (np.array([0, 5]), np.array([-1, 0])):
        with pytest.raises(ValueError, match="beyond"):
            K.list_dots(rows, wrong, np.zeros(2), np.zeros(2))
        with pytest.raises(ValueError, match="beyond"):
            K.list_add(rows, wrong, np.zeros(2), np.zeros(2))
    with pytest.raises(ValueError, match="v has"):
        K.list_dots(rows, two, np.zeros(1), np.zeros(2))
    with pytest.raises(ValueError, match="out has"):
        K.list_dots(rows, two, np.zeros(2), np.zeros(1))
    with pytest.raises(ValueError, match="a has"):
        K.list_add(rows, two, np.zeros(3), np.zeros(2))
    with pytest.raises(ValueError, match="v has"):
        K.list_add(rows, two, np.zeros(2), np.zeros(1))
    with pytest.raises(ValueError, match="length"):
        K.quantile(np.zeros(2), np.zeros(3), 1.0)
    with pytest.raises(TypeError):
        K.quantile(np.zeros(2, np.float32), np.zeros(2), 1.0)


def test_large_data_are_solved_in_a_copy_of_their_free_rows(monkeypatch, tuned):
    """The same answer by the same iteration, and the same bits for any number of threads."""
    sample = text(noise=1.0)
    for loss in HINGES:
        problem, listed = solve(sample, loss, 100.0, 1e-8)
        tuned(ascent_large=0)
        copies = []
        for threads in (1, 3):
            problem = sample.problem(loss, 100.0)
            problem.data.n_threads = threads
            copies.append(dual_cd.solve(problem, np.zeros(problem.order), Stop(1e-8)))
        monkeypatch.undo()
        assert np.array_equal(copies[0].W, copies[1].W)
        proof = certify(problem, copies[0], 1e-8)
        assert proof.certified
        assert np.linalg.norm(copies[0].W[:-1] - listed.W[:-1]) <= 2.0 * proof.coef_error


@pytest.mark.parametrize("name", ["hinge", "absolute"])
def test_more_free_rows_than_features_of_a_kinked_loss(name):
    """Many noisy rows, few features, a weak penalty: the quadratic on the free rows is singular."""
    sample, loss = text(2000, 40, noise=3.0), get(name)
    problem, found = solve(sample, loss, 100.0, 1e-3)
    assert found.status is Status.CERTIFIED and certify(problem, found, 1e-3).certified
    for most in (5, 8, 12, 20):
        problem, found = solve(sample, loss, 100.0, 1e-9, max_passes=most)
        assert found.status is Status.PASS_LIMIT and problem.passes <= most + 9.5
        assert certify(problem, found, 1e-9).dual >= 0.0


def test_crowded_smooth_problems_are_left_to_newton():
    sample = text(2000, 40, noise=3.0)
    problem, found = solve(sample, get("squared_hinge"), 100.0)
    assert found.status is Status.WORKING_PRECISION and problem.passes <= 10
    model = LinearClassifier("squared_hinge", C=100.0, solver="dual-cd").fit(sample.X, sample.sign)
    assert model.certificate_.certified


def test_progress_that_has_ended_is_noticed():
    def stalled(slacks, asked=0):
        return K.Ascent.stalled(np.array(slacks), len(slacks) - asked)

    assert not stalled([1.0] * 90)
    assert stalled([1.0] * 60 + [0.95] * 60)
    assert not stalled([1.0] * 60 + [0.95] * 60, asked=50), "rows came back not long ago"
    assert stalled([1.0] * 400 + [0.95] * 60, asked=450), "but they cannot come back for ever"
    assert not stalled([0.97**k for k in range(500)])


def test_the_multiplier_is_extrapolated_only_where_its_steps_are_steady():
    for steps, expected in (
        ((1.0, 0.8, 0.64), 0.64 * 4.0),  # the rest of a geometric series
        ((1.0, 0.1, 0.01), 0.0),
        ((1.0, -0.8, 0.64), 0.0),
        ((1.0, 0.9, 0.4), 0.0),
        ((1.0, 0.99, 0.9801), 0.9801 * 8.0),
        ((0.0, 0.0, 0.0), 0.0),
    ):
        assert K.Ascent.jump(*steps) == pytest.approx(expected)


@pytest.mark.parametrize("name", ["logistic", "squared_hinge", "hinge"])
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_dense_rows_of_mostly_zeros_are_visited_without_them(name, dtype):
    """To the same bits as the CSR matrix of what is left, down to a row of zeros and a column of them."""
    rng = np.random.default_rng(2)
    X = (rng.standard_normal((500, 220)) * (rng.random((500, 220)) < 0.15)).astype(dtype)
    X[17], X[:, 3] = 0.0, 0.0
    X[18] = rng.standard_normal(220)
    sign = np.where(X[:, 0] + X[:, 1] + 0.3 * rng.standard_normal(500) > 0.0, 1.0, -1.0)
    weight = rng.choice([1.0, 2.0], size=500)
    found = []
    for rows in (X, sp.csr_matrix(X)):
        problem = Sample(rows, sign, weight=weight).problem(get(name), 0.2)
        share = K.kept_share(problem.data.whole.rows)
        assert share == 1.0 if sp.issparse(rows) else 0.1 < share < 0.2
        native = ascent_module.Ascent(problem, np.zeros(problem.order), 0).native
        for _ in range(4):
            native.epoch()
        native.improve()
        found.append((native.u.copy(), native.theta.copy()))
    assert all(np.array_equal(a, b) for a, b in zip(*found, strict=True))
    full = Sample(np.where(X == 0, dtype(1), X), sign).problem(get(name), 0.2)
    assert K.kept_share(full.data.whole.rows) == 1.0


@pytest.mark.parametrize("loss", ["hinge", "absolute"])
def test_slow_ascent_hands_a_loss_with_a_kink_over_to_the_interior_point_method(loss):
    """Ascent alone would make thousands of epochs here."""
    rng = np.random.default_rng(6)
    X = rng.standard_normal((300, 6)) * [100.0, 10.0, 1.0, 1.0, 1.0, 1.0]
    sign = np.where(X[:, 2] + rng.standard_normal(300) > 0.0, 1.0, -1.0)
    sample = Sample(X, sign)
    found = fit(sample, loss, 1e3, "dual-cd", max_passes=1000)
    other = fit(sample, loss, 1e3, "interior")
    assert found.certificate.certified
    assert found.certificate.primal == pytest.approx(other.certificate.primal, rel=2e-6)
    seconds = [record.seconds for record in found.trace]
    assert seconds == sorted(seconds)
    assert found.trace[-1].dual >= max(record.dual for record in found.trace[:-1])
