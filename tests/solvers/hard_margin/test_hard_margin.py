"""The hard margin: against other solvers, brute force, the geometry of the hulls, and its own certificate."""

import copy
import itertools
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.optimize
import scipy.sparse as sp
from sklearn.svm import SVC

from linsep import Hyperplane, LinearClassifier, verify
from linsep.errors import CertificateError, InseparableData, Refused
from linsep.solution import Explicit
from linsep.solvers.hard_margin import soft_margin


def two_classes(seed=0, n=60, d=4, gap=0.1):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, d))
    w = rng.normal(size=d)
    y = np.where(X @ w > 0.2, 1, -1)
    return X + gap * np.outer(y, w) / np.linalg.norm(w), y


def hard(X, y, weight=None, **options):
    return LinearClassifier("hinge", C=np.inf, **options).fit(X, y, sample_weight=weight)


def alphas(model):
    return model._fits[0].dual.u


@pytest.mark.parametrize("shape", [(2, 1), (12, 2), (60, 4), (150, 12), (40, 90)])
@pytest.mark.parametrize("seed", range(4))
def test_optimality_conditions(shape, seed):
    """Feasible, stationary, complementary; and the objective of libsvm at a huge C."""
    X, y = two_classes(seed, *shape)
    y[:2] = -1, 1
    X[:2] += 5 * np.outer([-1, 1], np.ones(shape[1])) if shape[0] == 2 else 0
    try:
        model = hard(X, y)
    except InseparableData:
        assert shape[0] > shape[1]  # the relabelled rows
        return
    w, b, a = model.coef_[0], model.intercept_[0], alphas(model)
    m = y * (X @ w + b)
    assert model.certificate_.certified and model.certificate_.relative_gap < 1e-9
    assert m.min() == pytest.approx(1, abs=1e-9)
    assert (a >= 0).all() and a @ y == pytest.approx(0, abs=1e-9 * a.sum())
    np.testing.assert_allclose(X.T @ (a * y), w, atol=1e-6 * np.abs(w).max())
    assert (m[a > 0] <= 1 + 1e-6).all()
    peer = SVC(kernel="linear", C=1e10, tol=1e-9).fit(X, y)
    assert model.certificate_.primal <= 0.5 * (peer.coef_**2).sum() * (1 + 1e-3)
    np.testing.assert_allclose(w, peer.coef_[0], atol=1e-3 * np.abs(w).max())


def test_brute_force_in_the_plane():
    """Every pair and triple of rows that may bind is tried."""
    rng = np.random.default_rng(1)
    for _ in range(10):
        X = rng.integers(-5, 6, (9, 2)).astype(float)
        y = np.where(X @ rng.normal(size=2) + 0.3 > 0, 1, -1)
        if abs(y.sum()) == len(y):
            continue
        A = y[:, None] * np.column_stack([X, np.ones(9)])
        best = np.inf
        for size in (2, 3):
            for rows in itertools.combinations(range(9), size):
                # shortest w with equality on these rows
                M = A[list(rows)]
                K = np.block([[np.diag([1.0, 1.0, 0.0]), -M.T], [M, np.zeros((size, size))]])
                theta = np.linalg.lstsq(K, np.append(np.zeros(3), np.ones(size)), rcond=None)[0][:3]
                if (A @ theta >= 1 - 1e-9).all():
                    best = min(best, 0.5 * theta[:2] @ theta[:2])
        assert hard(X, y).certificate_.primal == pytest.approx(best, rel=1e-9)


def test_the_margin_is_half_the_distance_of_the_hulls():
    X, y = two_classes(3, 30, 3)
    model = hard(X, y)
    plus, minus = X[y > 0], X[y < 0]

    def distance(weights):
        p, q = weights[: len(plus)], weights[len(plus) :]
        return ((p @ plus - q @ minus) ** 2).sum()

    start = np.concatenate([np.full(len(s), 1 / len(s)) for s in (plus, minus)])
    sums = [
        {"type": "eq", "fun": lambda t, s=s: t[s].sum() - 1}
        for s in (slice(None, len(plus)), slice(len(plus), None))
    ]
    nearest = scipy.optimize.minimize(
        distance, start, bounds=[(0, 1)] * len(y), constraints=sums, options={"maxiter": 500}
    )
    width = 2 / np.linalg.norm(model.coef_)
    assert width == pytest.approx(np.sqrt(nearest.fun), rel=1e-3)
    plane = Hyperplane(model.coef_, model.intercept_)
    assert plane.margin(X, y) == pytest.approx(width / 2, rel=1e-8)
    assert plane.canonical(X).norm == pytest.approx(plane.norm, rel=1e-8)


def test_through_the_origin_it_is_the_norm_b_of_the_perceptron():
    """B = min |w| with y w.x >= 1: the least norm, by a general solver."""
    X, y = two_classes(4, 25, 3)
    y = np.where(X @ [1.0, 2.0, -1.0] > 0, 1, -1)
    model = hard(X, y, fit_intercept=False)
    assert model.intercept_[0] == 0.0 and model.certificate_.certified
    A = y[:, None] * X
    peer = scipy.optimize.minimize(
        lambda w: w @ w,
        model.coef_[0] * 2,
        constraints={"type": "ineq", "fun": lambda w: A @ w - 1},
        options={"ftol": 1e-12, "maxiter": 500},
    )
    assert np.linalg.norm(model.coef_) == pytest.approx(np.sqrt(peer.fun), rel=1e-5)
    verify(model, X, y, exact=True)


def test_translation_and_rotation():
    X, y = two_classes(5, 80, 4)
    w = hard(X, y).coef_[0]
    np.testing.assert_allclose(hard(X + 100.0, y).coef_[0], w, rtol=1e-6)
    Q, _ = np.linalg.qr(np.random.default_rng(0).normal(size=(4, 4)))
    np.testing.assert_allclose(hard(X @ Q, y).coef_[0], w @ Q, rtol=1e-6)
    np.testing.assert_allclose(hard(1e-3 * X, y).coef_[0], 1e3 * w, rtol=1e-6)


@pytest.mark.parametrize("kind", [sp.csr_matrix, np.asfortranarray, np.float32])
def test_storage_does_not_matter(kind):
    X, y = two_classes(6)
    X = X.astype(np.float32).astype(float)
    w = hard(X, y).coef_[0]
    model = hard(kind(X), y)
    np.testing.assert_allclose(model.coef_[0], w, rtol=1e-7)
    assert verify(model, X, y).certified


def test_features_of_any_size():
    """The terms of sum alpha sigma x cancel, yet the gap closes."""
    X, y = two_classes(16, 80, 5)
    for scale in ([1e-5, 1.0, 1e4, 1e-3, 10.0], [1e3, 1e-4, 1.0, 1.0, 1.0]):
        model = hard((X * scale).astype(np.float32), y)
        assert model.certificate_.certified
        assert verify(model, (X * scale).astype(np.float32), y, exact=True).certified
    shifted = hard(X + 1e5, y)
    assert shifted.certificate_.primal == pytest.approx(hard(X, y).certificate_.primal, rel=1e-6)


def test_only_whether_a_weight_is_zero_matters():
    X, y = two_classes(7)
    weight = np.random.default_rng(0).choice([0.5, 1.0, 3.0], len(y))
    np.testing.assert_array_equal(hard(X, y, weight).coef_, hard(X, y).coef_)
    wrong = np.vstack([X, X[:1]]), np.append(y, -y[0])
    with pytest.raises(InseparableData):
        hard(*wrong)
    model = hard(*wrong, weight=np.append(weight, 0.0))
    np.testing.assert_allclose(model.coef_, hard(X, y).coef_, rtol=1e-9)
    assert verify(model, *wrong, sample_weight=np.append(weight, 0.0), exact=True).certified


def test_inseparable_classes_carry_the_witness():
    X, y = two_classes(8)
    y[3] = -y[3]
    with pytest.raises(InseparableData, match="not separable") as found:
        hard(X, y)
    witness = found.value.witness
    assert witness.separable is False and witness.check(X, y, exact=True)
    again = pickle.loads(pickle.dumps(InseparableData("text", witness=None)))
    assert str(again) == "text"


def test_three_classes_one_against_the_others():
    rng = np.random.default_rng(9)
    y = np.arange(60) % 3
    X = 6 * np.array([[0, 0], [1, 0], [0.4, 1]])[y] + rng.uniform(-1, 1, (60, 2))
    model = hard(X, y)
    assert (model.predict(X) == y).all() and verify(model, X, y, exact=True).certified
    line = np.arange(9.0)[:, None]
    with pytest.raises(InseparableData, match="class 1 against the others"):
        hard(line, np.repeat([0, 1, 2], 3))


@pytest.mark.parametrize("exact", [False, True])
def test_a_tampered_model_fails(exact):
    X, y = two_classes(10)
    model = hard(X, y)
    assert verify(model, X, y, exact=exact).certified
    for factor in (0.999, 1.001):
        forged = copy.deepcopy(model)
        forged.coef_ *= factor
        forged.intercept_ *= factor
        with pytest.raises(CertificateError):
            verify(forged, X, y, exact=exact)
    moved = copy.deepcopy(model)
    moved.intercept_ += 0.01
    with pytest.raises(CertificateError):
        verify(moved, X, y, exact=exact)
    weak = copy.deepcopy(model)
    weak._fits[0] = replace(weak._fits[0], dual=Explicit(np.ones(len(y))))
    with pytest.raises(CertificateError):
        verify(weak, X, y, exact=exact)
    flipped = y.copy()
    flipped[0] = -flipped[0]
    with pytest.raises(CertificateError):
        verify(model, X, flipped, exact=exact)


def test_any_alpha_proves_a_bound():
    """Random, unbalanced, absurd: never above the minimum."""
    rng = np.random.default_rng(11)
    X, y = two_classes(11)
    model = hard(X, y)
    for alpha in (rng.random(60), rng.normal(size=60) * 1e9, np.full(60, np.nan), np.eye(60)[3]):
        loose = copy.deepcopy(model)
        loose._fits[0] = replace(loose._fits[0], dual=Explicit(alpha))
        with pytest.raises(CertificateError) as found:
            verify(loose, X, y)
        assert 0 <= found.value.certificate.dual <= model.certificate_.primal


def test_many_rows_few_passes_same_bits():
    rng = np.random.default_rng(12)
    X = rng.normal(size=(150_000, 12))
    w = rng.normal(size=12)
    y = np.where(X @ w > 0, 1, -1)
    X += 0.05 * np.outer(y, w)
    one, two = (hard(X, y, n_threads=k) for k in (1, 2))
    assert one.certificate_.certified and one.n_passes_ <= 12
    np.testing.assert_array_equal(one.coef_, two.coef_)
    np.testing.assert_array_equal(alphas(one), alphas(two))


def test_many_sparse_features():
    rng = np.random.default_rng(13)
    X = sp.random(250, 4000, density=0.01, format="csr", random_state=1)
    y = rng.choice([-1, 1], 250)
    model = hard(X, y)
    assert model.certificate_.certified
    peer = SVC(kernel="linear", C=1e10, tol=1e-8).fit(X, y)
    assert model.certificate_.primal == pytest.approx(
        0.5 * (peer.coef_.toarray() ** 2).sum(), rel=1e-5
    )


@pytest.mark.parametrize("fit_intercept", [True, False])
def test_soft_margins_and_working_sets_agree_on_many_features(fit_intercept, monkeypatch):
    rng = np.random.default_rng(4)
    X = sp.random(250, 2000, density=0.01, format="csr", random_state=2)
    y = np.where(X @ rng.normal(size=2000) > 0.0, 1, -1)
    weight = np.where(np.arange(250) % 7 == 0, 0.0, rng.uniform(0.5, 2.0, 250))
    soft = [hard(X, y, w, fit_intercept=fit_intercept) for w in (None, weight)]
    monkeypatch.setattr(soft_margin, "points", lambda run, seed: iter(()))
    working = [hard(X, y, w, fit_intercept=fit_intercept) for w in (None, weight)]
    for one, other, w in zip(soft, working, (None, weight), strict=True):
        assert verify(one, X, y, sample_weight=w).certified
        assert one.n_passes_ <= 120 and (alphas(one) >= 0.0).all()
        near = pytest.approx(other.certificate_.primal, rel=2e-6)
        assert one.certificate_.primal == near and not alphas(one)[w == 0.0].any()


def test_a_soft_margin_that_is_not_enough_is_a_start(tuned):
    """Multipliers at their bound prove a bound, too; working sets go on from there."""
    rng = np.random.default_rng(5)
    X = sp.random(120, 1600, density=0.02, format="csr", random_state=3)
    y = np.where(X @ rng.normal(size=1600) > 0.0, 1, -1)
    tuned(soft_margin_bound=1e-3)
    model = hard(X, y)
    first = [record.dual for record in model.trace_[:3]]
    assert 0.0 < first[0] < 0.99 * model.certificate_.primal
    assert model.certificate_.certified and verify(model, X, y).certified


def test_limits_end_in_a_certified_gap():
    X, y = two_classes(14, 40_000, 30, gap=0.3)
    with pytest.warns(Warning, match="max_passes"):
        model = hard(X, y, max_passes=1)
    proof = model.certificate_
    best = hard(X, y).certificate_
    assert proof.dual <= best.primal and proof.primal >= best.dual
    assert (y * (X @ model.coef_[0] + model.intercept_[0])).min() >= 1 - 1e-9


def test_refusals():
    X, y = two_classes(15)
    with pytest.raises(Refused, match="l1_ratio=0"):
        hard(X, y, l1_ratio=0.5)
    with pytest.raises(Refused, match="hinge loss with C=inf"):
        LinearClassifier("logistic", C=1.0, solver="hard-margin").fit(X, y)
    assert hard(X, y, solver="hard-margin").certificate_.certified
