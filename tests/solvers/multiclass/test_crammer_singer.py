"""The multiclass hinge of Crammer and Singer: loss, kernels, solver, certificate, and its laws."""

from __future__ import annotations

import copy
import math

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from catalogue import STORAGES, dense
from hypothesis import given, settings
from hypothesis import strategies as st
from sklearn.datasets import load_digits, load_iris, load_wine
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from linsep import ConvergenceWarning, LinearSVC, verify
from linsep.certificates import CoupledSums, softmax_sums_numpy
from linsep.data import Memory
from linsep.errors import BadInput, CertificateError, LinsepError, Refused
from linsep.losses import CrammerSinger, Hinge
from linsep.penalties import ElasticNet
from linsep.problem import MaxMarginProblem
from linsep.solution import Explicit, Stop
from linsep.solvers.multiclass import crammer_singer
from linsep.solvers.multiclass import crammer_singer_directions as max_margin_steps
from linsep.train import Recipe, train

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
WINE_X, WINE_Y = load_wine(return_X_y=True)
WINE_X = StandardScaler().fit_transform(WINE_X)
RNG = np.random.default_rng(0)
WEIGHT = RNG.integers(0, 4, size=len(IRIS_Y)).astype(float)


def coupled(C=1.0, **settings):
    return LinearSVC(C, multiclass="crammer_singer", **settings)


def objective(model, X, y, C, weight=None):
    """The objective from its definition."""
    Z = X @ model.coef_.T + model.intercept_
    rows = np.arange(len(y))
    lead = Z + 1.0
    lead[rows, y] -= 1.0
    losses = lead.max(axis=1) - Z[rows, y]
    return 0.5 * (model.coef_**2).sum() + C * ((1.0 if weight is None else weight) * losses).sum()


def draw(n, d, k, seed=0, noise=1.0):
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((n, d))
    y = (X @ rng.standard_normal((d, k)) + noise * rng.standard_normal((n, k))).argmax(axis=1)
    return X, y


def problem_of(X, y, k, C=1.0, weight=None, **settings):
    data = Memory(X, weight=weight, labels=np.asarray(y, np.int64), **settings)
    return MaxMarginProblem(CrammerSinger(k), ElasticNet(C), data)


def simplex_points(rng, n, k):
    """Corners, edges and inner points."""
    P = rng.dirichlet(np.ones(k), size=n)
    P[::3] = np.eye(k)[rng.integers(k, size=len(P[::3]))]
    P[1::3, 0] = 0.0
    return P / P.sum(axis=1, keepdims=True)


# --- the loss


def test_value_and_slope_by_their_definitions():
    loss, rng = CrammerSinger(4), np.random.default_rng(1)
    Z, y = 2 * rng.standard_normal((200, 4)), rng.integers(4, size=200)
    rivals = Z + 1.0
    rivals[np.arange(200), y] -= 1.0
    np.testing.assert_allclose(
        loss.value(Z, y), rivals.max(axis=1) - Z[np.arange(200), y], atol=1e-14
    )
    step = 1e-6 * rng.standard_normal(Z.shape)
    change = loss.value(Z + step, y) - loss.value(Z - step, y)
    np.testing.assert_allclose(change, 2 * (loss.slope(Z, y) * step).sum(axis=1), atol=1e-12)


def test_fenchel_young():
    loss, rng = CrammerSinger(3), np.random.default_rng(2)
    Z, y = 2 * rng.standard_normal((300, 3)), rng.integers(3, size=300)
    U = np.eye(3)[y] - simplex_points(rng, 300, 3)
    slack = loss.value(Z, y) + loss.conjugate(-U, y) + (U * Z).sum(axis=1)
    assert slack.min() >= -1e-14
    at = loss.slope(Z, y)
    tight = loss.value(Z, y) + loss.conjugate(at, y) - (at * Z).sum(axis=1)
    np.testing.assert_allclose(tight, 0.0, atol=1e-14)


def test_the_conjugate_is_infinite_outside_the_simplex():
    loss, y = CrammerSinger(3), np.array([0, 0, 0])
    Q = np.array([[-0.5, 0.7, -0.2], [-1.5, 1.0, 0.5], [-1.0, 0.5, 0.6]])
    assert np.isinf(loss.conjugate(Q, y)).all()


def test_two_classes_are_the_hinge():
    Z, y = np.random.default_rng(3).standard_normal((50, 2)), np.arange(50) % 2
    margin = Z[np.arange(50), y] - Z[np.arange(50), 1 - y]
    np.testing.assert_allclose(CrammerSinger(2).value(Z, y), Hinge().value(margin), atol=1e-15)


def test_at_least_two_classes():
    with pytest.raises(BadInput, match="at least 2 classes"):
        CrammerSinger(1)


# --- the kernels, on every instruction set and storage


def projected(V):
    """Projection on the simplex by sorting."""
    top = -np.sort(-V, axis=1)
    sums = np.cumsum(top, axis=1) - 1.0
    count = (top > sums / np.arange(1, V.shape[1] + 1)).sum(axis=1)
    threshold = sums[np.arange(len(V)), count - 1] / count
    return np.maximum(V - threshold[:, None], 0.0)


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("k", [2, 3, 8, 11])
def test_the_smoothed_loss_and_its_points(k):
    rng = np.random.default_rng(k)
    X, y = draw(300, 4, k, seed=k)
    s = rng.integers(0, 3, size=300).astype(float)
    problem = problem_of(X, y, k, weight=s)
    Z, dZ, before, P = (problem.allocate_zeros() for _ in range(4))
    Z[:, :k], dZ[:, :k] = rng.standard_normal((2, 300, k))
    before[:, :k] = simplex_points(rng, 300, k)
    for sigma, t in ((0.3, 0.0), (2.0, 0.7), (100.0, -0.2)):
        value, slope, moved, slack = problem.smooth(Z, dZ, t, before, sigma, P)
        lead = (Z + t * dZ)[:, :k]
        lead = 1.0 + lead - lead[np.arange(300), y][:, None]
        lead[np.arange(300), y] = 0.0
        expected = projected(before[:, :k] + sigma * lead)
        prox = ((expected - before[:, :k]) ** 2).sum(axis=1) / (2 * sigma)
        gain = (expected * lead).sum(axis=1)
        np.testing.assert_allclose(P[:, :k], expected, atol=1e-11)
        assert not P[:, k:].any()
        move = dZ[:, :k] - dZ[np.arange(300), y][:, None]
        np.testing.assert_allclose(
            [value, slope, moved, slack],
            [
                s @ (gain - prox),
                s @ (expected * move).sum(axis=1),
                s @ prox,
                s @ (lead.max(axis=1) - gain),
            ],
            rtol=1e-10,
            atol=1e-9,
        )
        still = problem.smooth(Z + t * dZ, None, 0.0, before, sigma, P)
        np.testing.assert_allclose([still[0], still[2]], [value, moved], rtol=1e-12)


def project_by_kernel(V, own):
    """The vectors 1 + V - V[own], and what the kernel makes of them: it begins with all of p on the label."""
    n, k = V.shape
    y = np.full(n, own)
    problem = problem_of(np.zeros((n, 1)), y, k)
    Z, P = problem.allocate_zeros(), problem.allocate_zeros()
    Z[:, :k] = V
    problem.smooth(Z, None, 0.0, problem.label_distribution(), 1.0, P)
    given = 1.0 + (V - V[:, own][:, None])
    return given, P[:, :k]


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("own", range(6))
def test_the_projection_ends_where_a_rounded_threshold_falls_back(own):
    """The threshold -0.2 and the smallest entry differ by the last bit, so that this entry comes and goes."""
    V = np.zeros((1, 6))
    V[0, -1] = -float.fromhex("0x1.9999999999999p-3")
    given, p = project_by_kernel(V, own)
    np.testing.assert_allclose(p, projected(given), atol=1e-15)


@given(
    st.lists(
        st.one_of(
            st.floats(-2.0, 2.0),
            st.floats(-1e18, 1e18),
            st.sampled_from([0.0, -0.2, -1.0 / 3.0, -1.0, 0.1, 1e16]),
        ),
        min_size=2,
        max_size=17,
    ),
    st.integers(0, 16),
    st.integers(-3, 3),
)
@settings(max_examples=300, deadline=None)
def test_the_projection_is_the_nearest_point_of_the_simplex(entries, own, ulps):
    """p is in the simplex, and v - p is largest where p > 0: no point of the simplex is nearer."""
    V = np.array([entries])
    V[0, -1] += ulps * np.spacing(V[0, -1])
    given, P = project_by_kernel(V, own % len(entries))
    p, v, k = P[0], given[0] - given.max(), len(entries)
    assert (p >= 0.0).all()
    assert abs(math.fsum(p) - 1.0) <= 4 * k * 2.0**-53
    away = v - p
    assert away.max() - away[p > 0.0].min() <= 8 * k * 2.0**-53


@pytest.mark.usefixtures("instructions")
def test_tiny_points_keep_their_relative_accuracy():
    """With a large C and separable classes the p off the labels are far below the rounding of the label's 1 - p."""
    problem = problem_of(np.zeros((1, 1)), [1], 4)
    Z, P = problem.allocate_zeros(), problem.allocate_zeros()
    Z[0, :4] = [0.5, 0.0, 0.75, -3.0]
    problem.smooth(Z, None, 0.0, problem.label_distribution(), 2.0**-60, P)
    # The last class is out: p_c = sigma (lead_c - mean of the leads).
    lead = np.array([1.5, 0.0, 1.75])
    expected = 2.0**-60 * (lead - lead.mean())
    np.testing.assert_allclose(P[0, [0, 2]], expected[[0, 2]], rtol=1e-14)
    assert P[0, 3] == 0.0 and P[0, 1] == 1.0


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("storage", STORAGES)
def test_the_passes_over_the_rows(storage):
    rng = np.random.default_rng(5)
    X, y = draw(200, 9, 5, seed=5)
    X[np.abs(X) < 0.5] = 0.0
    X = STORAGES[storage](X)
    plain, s = dense(X), rng.integers(0, 3, size=200).astype(float)
    problem = problem_of(X, y, 5, C=0.5, weight=s)
    W = rng.standard_normal((10, 5))
    Z = problem.scores(W)
    np.testing.assert_allclose(Z[:, :5], plain @ W[:-1] + W[-1], rtol=1e-12, atol=1e-12)
    P = problem.allocate_zeros()
    P[:, :5] = simplex_points(rng, 200, 5)
    slopes = s[:, None] * (P[:, :5] - np.eye(5)[y])
    expected = np.vstack([plain.T @ slopes, slopes.sum(axis=0)])
    np.testing.assert_allclose(problem.gradient(P), expected, atol=1e-11)
    U = np.eye(5)[y] - P[:, :5]
    U[::7] *= 3.0  # outside the simplex
    got = CoupledSums.from_flat(problem.closing(W, Explicit(U)), 9, 5)
    want = softmax_sums_numpy(CrammerSinger(5), X, y, s, W, Explicit(U))
    for name in ("loss", "entropy", "absolute", "mass", "residual", "v", "features", "spread"):
        np.testing.assert_allclose(
            getattr(got, name), getattr(want, name), rtol=1e-10, atol=1e-10, err_msg=name
        )
    assert got.magnitude >= 0.999 * want.magnitude


@pytest.mark.usefixtures("instructions")
@pytest.mark.parametrize("storage", ["dense64", "dense32", "csr64-int32", "csr32-int64"])
def test_an_epoch_of_ascent(storage):
    """Against the same loop in numpy: a projection for each row, W and the class sums kept in step."""
    X, y = draw(60, 5, 3, seed=14)
    X[np.abs(X) < 0.4] = 0.0
    X[7] = 0.0
    X = STORAGES[storage](X)
    plain, s = dense(X), RNG.integers(0, 3, size=60).astype(float)
    problem = problem_of(X, y, 3, C=2.0, weight=s)
    P, W, state = problem.label_distribution(), np.zeros((6, 8)), np.zeros(9)
    W[-1, :3] = [0.1, -0.3, 0.2]
    p, w, e, slack = np.eye(3)[y], np.zeros((5, 3)), np.zeros(3), 0.0
    b, r, norms = W[-1, :3].copy(), 0.3, (plain**2).sum(axis=1)
    order = np.random.default_rng(15).permutation(30)
    for i in (j for bucket in order for j in (2 * bucket, 2 * bucket + 1) if s[j] > 0):
        lead = plain[i] @ w + b + r * e
        lead = 1.0 + lead - lead[y[i]]
        lead[y[i]] = 0.0
        slack += s[i] * (lead.max() - p[i] @ lead)
        moved = projected((p[i] + lead / (s[i] * (2.0 * norms[i] + r)))[None])[0]
        change, p[i] = s[i] * (p[i] - moved), moved
        e += change
        w += 2.0 * np.outer(plain[i], change)
    problem.ascend(order.astype(np.int64), 2, r, norms, P, W, state)
    np.testing.assert_allclose(P[:, :3], p, atol=1e-10)
    np.testing.assert_allclose(W[:-1, :3], w, atol=1e-9)
    np.testing.assert_allclose(state, [*e, *np.zeros(5), slack], atol=1e-9)
    assert not W[:, 3:].any()


# --- Newton's systems


@pytest.mark.parametrize(("d", "k"), [(6, 4), (64, 8)])  # the second goes through packed panels
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_three_ways_to_the_same_newton_step(fit_intercept, d, k):
    X, y = draw(120, d, k, seed=6)
    data = Memory(X + 3.0, labels=y, weight=RNG.uniform(0.5, 2.0, 120))
    problem = MaxMarginProblem(CrammerSinger(k), ElasticNet(0.7), data, fit_intercept)
    assert problem.packed == (d == 64)
    Z, P, before = problem.allocate_zeros(), problem.allocate_zeros(), problem.allocate_zeros()
    before[:, :k] = 1.0 / k
    Z[:, :k] = np.random.default_rng(7).standard_normal((120, k))
    problem.smooth(Z, None, 0.0, before, 2.0, P)
    active = P[:, :k] > 0.0
    rows = np.flatnonzero(active.sum(axis=1) > 1)
    g = problem.gradient(P)
    lent = 1e-9 if fit_intercept else 1.0
    curved = problem.curved_subproblem(rows, active[rows], 2.0)
    one = max_margin_steps.Whole(curved, curved.centre(), lent)(-g)
    two = max_margin_steps._in_p(problem, curved, active[rows], g, lent)
    np.testing.assert_allclose(two, one, rtol=1e-6, atol=1e-9)
    three = max_margin_steps._by_conjugate_gradients(problem, curved, g, lent, lambda: None)
    H = curved.hess_vec(three) + g
    assert np.linalg.norm(H[:-1]) < 0.02 * np.linalg.norm(g)


# --- optima


def slack_form(X, y, k, C):
    """The quadratic programme with one slack per row, by scipy's SLSQP."""
    n, d = X.shape
    size = k * (d + 1)

    def split(v):
        return v[: k * d].reshape(k, d), v[k * d : size], v[size:]

    def value(v):
        W, _, xi = split(v)
        return 0.5 * (W**2).sum() + C * xi.sum()

    def gradient(v):
        W, _, _ = split(v)
        return np.concatenate([W.ravel(), np.zeros(k), np.full(n, C)])

    rows = []
    for i in range(n):
        for c in range(k):
            if c != y[i]:
                row = np.zeros(size + n)
                row[y[i] * d : (y[i] + 1) * d] = X[i]
                row[c * d : (c + 1) * d] = -X[i]
                row[k * d + y[i]], row[k * d + c] = 1.0, -1.0
                row[size + i] = 1.0
                rows.append(row)
    A = np.array(rows)
    start = np.concatenate([np.zeros(size), np.ones(n)])
    constraints = {"type": "ineq", "fun": lambda v: A @ v - 1.0, "jac": lambda v: A}
    bounds = [(None, None)] * size + [(0.0, None)] * n
    found = scipy.optimize.minimize(
        value,
        start,
        jac=gradient,
        constraints=constraints,
        bounds=bounds,
        method="SLSQP",
        options={"maxiter": 300, "ftol": 1e-12},
    )
    assert found.success
    return found.fun


@pytest.mark.parametrize("C", [0.05, 3.0])
def test_the_quadratic_programme_has_the_same_minimum(C):
    X, y = draw(24, 2, 3, seed=8, noise=2.0)
    model = coupled(C).fit(X, y)
    assert model.certificate_.primal == pytest.approx(slack_form(X, y, 3, C), rel=1e-6)
    assert model.certificate_.certified


@pytest.mark.parametrize("C", [0.01, 1.0, 100.0])
def test_liblinear_without_intercepts_is_not_better(C):
    model = coupled(C, fit_intercept=False).fit(WINE_X, WINE_Y)
    peer = Liblinear(
        C=C,
        multi_class="crammer_singer",
        fit_intercept=False,
        tol=1e-8,
        max_iter=1_000_000,
        random_state=0,
    ).fit(WINE_X, WINE_Y)
    best = objective(peer, WINE_X, WINE_Y, C)
    assert model.certificate_.primal <= best * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(best, rel=1e-5)
    assert model.certificate_.dual <= best


@pytest.mark.parametrize("C", [0.1, 10.0])
def test_two_classes_are_the_binary_machine_with_twice_the_strength(C):
    """With w_1 = -w_2 = v/2 the penalty is |v|^2/4: C here is 2 C there, and half the objective."""
    X, y = IRIS_X[50:], IRIS_Y[50:] - 1
    fit = train(
        Recipe(CrammerSinger(2), ElasticNet(C)), Memory(X, labels=np.ascontiguousarray(y, np.int64))
    )
    libsvm = SVC(kernel="linear", C=2 * C, tol=1e-10).fit(X, y)
    w = libsvm.coef_[0]
    theirs = 0.5 * (np.abs(libsvm.dual_coef_).sum() - 0.5 * w @ w)
    assert fit.certificate.primal == pytest.approx(theirs, rel=1e-6)
    np.testing.assert_allclose(fit.W[:-1, 1] - fit.W[:-1, 0], w, rtol=0.02)
    np.testing.assert_allclose(fit.W[:, 0], -fit.W[:, 1], rtol=1e-8, atol=1e-12)


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [1e-6, 1e-2, 1.0, 1e3, 1e8])
def test_any_strength_is_certified(C, fit_intercept):
    for X, y in ((IRIS_X, IRIS_Y), (WINE_X, WINE_Y), (1e3 * WINE_X + 1e4, WINE_Y)):
        if C > 1.0 and X.max() > 1e3:  # as large as C = 1e9 on scaled rows: certified too, but slow
            continue
        model = coupled(C, fit_intercept=fit_intercept, tol=1e-5).fit(X, y)
        assert model.certificate_.certified
        assert model.certificate_.primal == pytest.approx(objective(model, X, y, C), rel=1e-6)
        assert verify(model, X, y).certified


@pytest.mark.parametrize("C", [1.0, 100.0, 1e4])
@pytest.mark.parametrize(("offset", "scale"), [(0.0, 1e4), (0.0, 1e8), (100.0, 1.0), (1e4, 1.0)])
def test_separable_rows_are_certified_far_from_the_origin_and_in_any_unit(C, offset, scale):
    """All rows end on the margin: neither tiny dual points nor the rounding of their scores may cost the proof."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((50, 200))
    y = (X[:, :4] + rng.standard_normal((50, 4))).argmax(axis=1)
    model = coupled(C).fit(scale * X + offset, y)
    assert model.certificate_.certified
    assert model.certificate_.relative_gap < 1e-7


def test_digits_more_unknowns_than_active_rows():
    X, y = load_digits(return_X_y=True)
    model = coupled(1e-3).fit(X[:500], y[:500])
    assert model.certificate_.certified
    assert model.score(X[:500], y[:500]) > 0.98


# --- the multipliers


@pytest.mark.parametrize("fit_intercept", [True, False])
@pytest.mark.parametrize("C", [0.01, 1.0, 1e4])
def test_multipliers(C, fit_intercept):
    model = coupled(C, fit_intercept=fit_intercept).fit(IRIS_X, IRIS_Y, WEIGHT)
    alpha, cap, rows = model.alpha_, C * WEIGHT, np.arange(150)
    off = alpha.copy()
    off[rows, IRIS_Y] = 0.0
    total = np.abs(alpha).sum()
    assert off.max() <= 0.0
    assert (alpha[rows, IRIS_Y] - cap).max() <= 1e-12 * C
    assert np.abs(alpha.sum(axis=1)).max() <= 1e-12 * C
    if fit_intercept:
        assert np.abs(alpha.sum(axis=0)).max() <= 1e-12 * total
    # Terms of the size of C cancel in the sum: its error is relative to all of W, not to each entry.
    distance = np.linalg.norm(alpha.T @ IRIS_X - model.coef_)
    assert distance <= 1e-6 * (1.0 + np.linalg.norm(model.coef_))
    assert 0.5 * distance**2 <= model.certificate_.gap  # the share of the penalty in the gap
    kkt = model.kkt(IRIS_X, IRIS_Y, WEIGHT)
    assert kkt.box <= 1e-12 * C
    assert kkt.complementarity <= model.certificate_.gap
    assert kkt.stationarity <= 1e-6 * (1.0 + np.linalg.norm(model.coef_))
    assert not alpha[WEIGHT == 0].any()
    np.testing.assert_array_equal(model.support_, np.flatnonzero(alpha.any(axis=1)))
    both = np.sort(np.concatenate([model.free_support_, model.bounded_support_]))
    np.testing.assert_array_equal(both, model.support_)
    # On the margin: the label leads its best rival by exactly 1.
    Z = model.decision_function(IRIS_X)
    rival = Z.copy()
    rival[rows, IRIS_Y] = -np.inf
    lead = Z[rows, IRIS_Y] - rival.max(axis=1)
    partial = [i for i in model.free_support_ if 1e-6 < alpha[i, IRIS_Y[i]] / cap[i] < 1 - 1e-6]
    np.testing.assert_allclose(lead[partial], 1.0, atol=1e-5)


def test_margins_of_all_pairs():
    model = coupled().fit(IRIS_X, IRIS_Y)
    assert model.margin_.shape == (3, 3)
    between = 1.0 / np.linalg.norm(model.coef_[0] - model.coef_[2])
    assert model.margin_[0, 2] == pytest.approx(between)
    assert np.isinf(np.diag(model.margin_)).all()
    np.testing.assert_allclose(model.margin_width_, 2 * model.margin_)


# --- laws


def close(one, other, rtol=1e-6):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=1e-7)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=1e-6)


def test_weight_two_is_the_row_twice():
    again = np.repeat(np.arange(150), WEIGHT.astype(int))
    one = coupled().fit(IRIS_X, IRIS_Y, WEIGHT)
    two = coupled().fit(IRIS_X[again], IRIS_Y[again])
    close(one, two)
    assert one.certificate_.primal == pytest.approx(two.certificate_.primal, rel=1e-9)


def test_dense_and_sparse_are_the_same():
    X = np.where(np.abs(WINE_X) < 0.5, 0.0, WINE_X)
    close(coupled().fit(X, WINE_Y), coupled().fit(sp.csr_array(X), WINE_Y))


def test_centring_moves_only_the_intercepts():
    one, two = coupled().fit(IRIS_X, IRIS_Y), coupled().fit(IRIS_X - 5.0, IRIS_Y)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-6, atol=1e-7)


@pytest.mark.parametrize("storage", ["dense64", "csr64-int32"])
def test_the_same_bits_for_any_number_of_threads(tuned, storage):
    tuned(block_bytes=1 << 14)
    X, y = draw(3000, 5, 3, seed=9)
    X = STORAGES[storage](X)
    one, *others = (coupled(0.1, n_threads=count).fit(X, y) for count in (1, 2, 5))
    for other in others:
        assert np.array_equal(one.coef_, other.coef_)
        assert np.array_equal(one.alpha_, other.alpha_)
        assert one.certificate_ == other.certificate_


def test_a_pilot_on_some_rows_leads_to_the_same_optimum(tuned):
    X, y = draw(25_000, 4, 3, seed=10)
    plain = coupled(0.1, tol=1e-9).fit(X, y)
    tuned(crammer_singer_pilot_work=1)
    piloted = coupled(0.1, tol=1e-9).fit(X, y)
    assert piloted.n_passes_ != plain.n_passes_  # another way, which from here is as long
    assert piloted.certificate_.certified
    close(plain, piloted, rtol=1e-4)


def test_conjugate_gradients_serve_where_nothing_can_be_factorised(tuned):
    tuned(crammer_singer_order=0)
    for X in (WINE_X, sp.csr_array(WINE_X)):
        model = coupled(0.1, tol=1e-5).fit(X, WINE_Y)
        assert model.certificate_.certified


@pytest.mark.parametrize("C", [0.01, pytest.param(1.0, marks=pytest.mark.slow)])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_many_features_begin_with_ascent(tuned, C, fit_intercept):
    rng = np.random.default_rng(16)
    X = sp.random_array((300, 2000), density=0.02, rng=rng, format="csr")
    y = (X @ rng.standard_normal((2000, 3)) + 0.1 * rng.standard_normal((300, 3))).argmax(axis=1)
    plain = coupled(C, fit_intercept=fit_intercept).fit(X, y)
    tuned(crammer_singer_polish=0)
    risen = coupled(C, fit_intercept=fit_intercept).fit(X, y)
    assert risen.certificate_.certified
    assert verify(risen, X, y).certified
    assert risen.certificate_.primal == pytest.approx(plain.certificate_.primal, rel=1e-6)
    tuned(crammer_singer_epochs=3)  # handed over
    handed = coupled(C, fit_intercept=fit_intercept).fit(X, y)
    assert handed.certificate_.certified
    with pytest.warns(ConvergenceWarning):
        hasty = coupled(C, fit_intercept=fit_intercept, max_passes=3).fit(X, y)
    assert not hasty.certificate_.certified


def test_short_rows_with_many_features_take_few_passes():
    rng = np.random.default_rng(17)
    X = sp.random_array((400, 1500), density=0.02, rng=rng, format="csr")
    y = (X @ rng.standard_normal((1500, 4)) + 0.1 * rng.standard_normal((400, 4))).argmax(axis=1)
    model = coupled(0.1, tol=1e-4).fit(X, y)
    assert model.certificate_.certified
    assert model.n_passes_ <= 40


@pytest.mark.parametrize("C", [1e-3, pytest.param(10.0, marks=pytest.mark.slow)])
def test_dense_rows_begin_with_ascent(C):
    """Rounds go on from there if it came near the optimum; at a large C they begin at zero."""
    X, y = load_digits(return_X_y=True)
    model = coupled(C, tol=1e-4).fit(X / 16.0, y)
    assert model.certificate_.certified
    assert verify(model, X / 16.0, y).certified
    assert model.n_passes_ <= (40 if C < 1.0 else 250)


def test_warm_start():
    X, y = draw(2000, 5, 4, seed=11)
    model = coupled(1.0, warm_start=True).fit(X, y)
    cold, reached = model.n_passes_, model.certificate_.primal
    model.fit(X, y)
    assert model.n_passes_ < cold
    assert model.certificate_.primal == pytest.approx(reached, rel=1e-9)
    model.coef_ *= 1e200  # a useless start does no harm
    model.fit(X, y)
    assert model.certificate_.primal == pytest.approx(reached, rel=1e-9)


# --- certificates


def test_a_tampered_model_fails():
    model = coupled().fit(IRIS_X, IRIS_Y)
    assert verify(model, IRIS_X, IRIS_Y).certified
    forged = copy.deepcopy(model)
    forged.coef_ = forged.coef_ * 1.001
    with pytest.raises(CertificateError):
        verify(forged, IRIS_X, IRIS_Y)
    forged = copy.deepcopy(model)
    forged._fits[0].dual.u[:] = np.eye(3)[IRIS_Y] - 1 / 3
    with pytest.raises(CertificateError):
        verify(forged, IRIS_X, IRIS_Y)
    with pytest.raises(CertificateError):
        verify(model, IRIS_X, np.roll(IRIS_Y, 1))


def test_every_dual_point_bounds_from_below():
    X, y = draw(40, 3, 3, seed=12)
    least = coupled(0.5).fit(X, y).certificate_
    rng = np.random.default_rng(13)
    problem = problem_of(X, y, 3, C=0.5)
    for _ in range(20):
        W = rng.standard_normal((4, 3))
        U = Explicit(np.eye(3)[y] - simplex_points(rng, 40, 3))
        primal, dual = problem.values(W, problem.closing(W, U))
        assert 0.5 * dual <= least.primal <= 0.5 * primal


def test_exact_arithmetic_confirms_the_fit():
    model = coupled().fit(IRIS_X, IRIS_Y)
    found = verify(model, IRIS_X, IRIS_Y, exact=True)
    assert found.certified and found.kind == "exact" and found.rounding == 0.0


# --- limits and refusals


@pytest.mark.parametrize("limit", [{"max_passes": 10}, {"time_limit": 1e-9}])
def test_a_limit_ends_in_a_warning_with_the_gap(limit):
    with pytest.warns(ConvergenceWarning) as caught:
        model = coupled(**limit).fit(IRIS_X, IRIS_Y)
    assert not model.certificate_.certified
    assert caught[0].message.certificate.gap >= 0.0
    assert np.isfinite(model.coef_).all()


def test_refusals():
    with pytest.raises(Refused, match="finite C"):
        coupled(np.inf).fit(IRIS_X, IRIS_Y)
    with pytest.raises(Refused, match="proximal-newton"):
        coupled(solver="newton").fit(IRIS_X, IRIS_Y)
    with pytest.raises(BadInput, match="Unknown solver"):
        coupled(solver="simplex").fit(IRIS_X, IRIS_Y)
    assert coupled(solver="proximal-newton").fit(IRIS_X, IRIS_Y).certificate_.certified
    with pytest.raises(BadInput, match="hinge of its own"):
        coupled(loss="squared_hinge").fit(IRIS_X, IRIS_Y)
    with pytest.raises(LinsepError, match="row 3, column 1"):
        bad = IRIS_X.copy()
        bad[3, 1] = np.nan
        coupled().fit(bad, IRIS_Y)


def test_numbers_that_are_not_finite_are_found_without_a_scan():
    X, y = draw(100, 3, 3)
    X[5, 1] = np.inf
    problem = problem_of(X, y, 3)
    with pytest.raises(LinsepError, match="not finite"):
        crammer_singer.solve(problem, np.zeros((4, 3)), Stop())
