"""LinearSVC: the multipliers, support vectors and margin of a fit, and the laws they obey."""

from __future__ import annotations

import copy
import pickle
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from sklearn.calibration import CalibratedClassifierCV
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC
from sklearn.svm import LinearSVC as Liblinear

from linsep import LinearClassifier, LinearSVC, verify
from linsep.certificates import Part, kkt
from linsep.data import Memory
from linsep.errors import BadInput, CertificateError, InseparableData, Refused
from linsep.estimators import support
from linsep.losses import CrammerSinger, Hinge
from linsep.penalties import ElasticNet
from linsep.solution import Explicit
from linsep.train import Recipe, train

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
CANCER_X, CANCER_Y = load_breast_cancer(return_X_y=True)
SCALED = StandardScaler().fit_transform(CANCER_X)
X, Y = np.ascontiguousarray(IRIS_X[50:]), IRIS_Y[50:]
SIGN = 2.0 * Y - 3.0
WEIGHT = np.random.default_rng(0).integers(0, 4, size=len(Y)).astype(float)

LOSSES = ["hinge", "squared_hinge"]
STRENGTHS = [0.01, 1.0, 1e3]


def close(one, other, rtol=1e-7):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=1e-8)


def objective(model, X, sign, C, weight=1.0):
    """The objective from its definition."""
    w, m = model.coef_[0], sign * (X @ model.coef_[0] + model.intercept_[0])
    slack = np.maximum(0.0, 1.0 - m)
    loss = slack if model.loss == "hinge" else slack**2
    return 0.5 * w @ w + C * (weight * loss).sum()


# --- the multipliers


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", STRENGTHS)
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_multipliers_are_feasible_and_make_w(loss, C, fit_intercept):
    model = LinearSVC(C, loss=loss, fit_intercept=fit_intercept).fit(X, Y, WEIGHT)
    alpha = model.alpha_
    assert alpha.shape == Y.shape
    assert alpha.min() >= 0.0
    assert not alpha[WEIGHT == 0].any()
    if loss == "hinge":
        assert (alpha <= C * WEIGHT).all()
    if fit_intercept:
        assert abs(SIGN @ alpha) <= 1e-12 * alpha.sum()
    size = np.linalg.norm(model.coef_)
    assert np.linalg.norm(model.coef_[0] - (SIGN * alpha) @ X) <= 1e-6 * size
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(
        objective(model, X, SIGN, C, WEIGHT), rel=1e-12
    )


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("C", STRENGTHS)
def test_the_conditions_of_optimality_hold(loss, C):
    model = LinearSVC(C, loss=loss).fit(X, Y, WEIGHT)
    kkt = model.kkt(X, Y, WEIGHT)
    size = np.linalg.norm(model.coef_)
    assert kkt.box == 0.0
    assert kkt.intercept <= 1e-12 * model.alpha_.sum()
    assert kkt.stationarity <= 1e-6 * size
    assert kkt.complementarity <= 1e-6 * model.certificate_.primal
    assert "stationarity" in str(kkt)


def test_the_conditions_of_optimality_by_hand():
    """Squared hinge: alpha = 2 C s slack."""
    model = LinearSVC(2.0, loss="squared_hinge").fit(X, Y, WEIGHT)
    slack = np.maximum(0.0, 1.0 - SIGN * model.decision_function(X))
    np.testing.assert_allclose(model.alpha_, 2 * 2.0 * WEIGHT * slack, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_wrong_multipliers_show(loss):
    model = LinearSVC(loss=loss).fit(X, Y)
    good = model.kkt(X, Y)
    model.alpha_ = model.alpha_ * 1.01
    assert model.kkt(X, Y).stationarity > 1e3 * good.stationarity
    model.alpha_ = model.alpha_.copy()
    model.alpha_[0] = -0.5
    assert model.kkt(X, Y).box >= 0.5
    assert model.kkt(X, Y).intercept > 0.1


@pytest.mark.parametrize("loss", LOSSES)
def test_one_vs_rest_has_a_column_for_each_class(loss):
    model = LinearSVC(loss=loss).fit(IRIS_X, IRIS_Y)
    assert model.alpha_.shape == (150, 3)
    assert model.margin_.shape == (3,)
    for c in range(3):
        sign = np.where(IRIS_Y == c, 1.0, -1.0)
        alone = LinearSVC(loss=loss).fit(IRIS_X, sign)
        np.testing.assert_allclose(model.alpha_[:, c], alone.alpha_, rtol=1e-6, atol=1e-9)
        np.testing.assert_allclose((sign * model.alpha_[:, c]) @ IRIS_X, model.coef_[c], rtol=1e-5)
        assert model.margin_[c] == pytest.approx(alone.margin_)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.alpha_.any(axis=1)))
    kkt = model.kkt(IRIS_X, IRIS_Y)
    assert kkt.complementarity <= 1e-6 * model.certificate_.primal


@pytest.mark.parametrize("loss", LOSSES)
def test_large_data_end_with_feasible_multipliers_too(loss):
    """Not polished: the dual point is the linearised one of the last step, or the solver's own."""
    rng = np.random.default_rng(1)
    big = rng.standard_normal((60_000, 12)).astype(np.float32)
    y = big @ rng.standard_normal(12) + rng.logistic(size=len(big)) > 0
    model = LinearSVC(0.1, loss=loss).fit(big, y)
    sign = 2.0 * y - 1.0
    assert model.alpha_.min() >= 0.0
    assert abs(sign @ model.alpha_) <= 1e-12 * model.alpha_.sum()
    kkt = model.kkt(big, y)
    assert kkt.stationarity <= 1e-3 * np.linalg.norm(model.coef_)
    assert kkt.complementarity <= model.certificate_.gap + 1e-9


# --- the multipliers of the hinge, whose dual points are explicit


def hinge_fit(C, weight):
    """The hinge as the two-class case of Crammer and Singer's: half the strength, W = (-v/2, v/2)."""
    data = Memory(X, weight=weight, labels=(SIGN > 0).astype(np.int64))
    fit = train(Recipe(CrammerSinger(2), ElasticNet(C / 2)), data)
    u = np.maximum(fit.dual.u[np.arange(len(Y)), data.labels], 0.0)
    W = fit.W[:, 1:] - fit.W[:, :1]
    return replace(fit, recipe=Recipe(Hinge(), ElasticNet(C)), W=W, dual=Explicit(u))


@pytest.mark.parametrize("weight", [None, WEIGHT])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_the_box_of_the_hinge(C, weight):
    fit = hinge_fit(C, weight)
    cap = C * (np.ones(len(Y)) if weight is None else weight)
    w, b = fit.W[:-1, 0], fit.W[-1, 0]
    m = SIGN * (X @ w + b)
    for noise in (0.0, 1e-5):
        shaken = np.clip(fit.dual.u + noise * np.random.default_rng(3).random(len(Y)), 0.0, 1.0)
        alpha = support.multipliers(replace(fit, dual=Explicit(shaken)), X, SIGN, weight)
        assert (alpha >= 0.0).all()
        assert (alpha <= cap).all()
        assert abs(SIGN @ alpha) <= 1e-12 * alpha.sum()
    alpha = support.multipliers(fit, X, SIGN, weight)
    used, free, bounded = support.support(alpha, cap)
    assert len(free)
    assert len(bounded)
    np.testing.assert_array_equal(np.sort(np.concatenate([free, bounded])), used)
    np.testing.assert_allclose((SIGN * alpha) @ X, w, rtol=1e-6)
    np.testing.assert_allclose(m[free], 1.0, atol=1e-6)
    np.testing.assert_allclose(SIGN[free] - X[free] @ w, b, atol=1e-6)  # b from the free ones
    assert (m[bounded] <= 1.0 + 1e-6).all()
    part = Part(
        Hinge(), ElasticNet(C), True, X, SIGN, None, weight, None, fit.W, fit.dual, tol=1e-6
    )
    residuals = kkt([(part, alpha)])
    assert residuals.box == 0.0
    assert residuals.complementarity <= 1e-8 * C
    # Slack form = hinge form, and LIBSVM's objective.
    slack = np.maximum(0.0, 1.0 - m)
    assert (m >= 1.0 - slack).all()
    libsvm = SVC(kernel="linear", C=C, tol=1e-10).fit(X, Y, weight)
    best = np.abs(libsvm.dual_coef_).sum() - 0.5 * (libsvm.coef_**2).sum()
    assert 0.5 * w @ w + cap @ slack == pytest.approx(best, rel=1e-6)


def test_an_unbalanced_side_without_free_multipliers_shrinks():
    alpha, sign = np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, -1.0])
    support._balance(alpha, sign, np.ones(3))
    np.testing.assert_allclose(alpha, [0.5, 0.5, 1.0])


def test_multipliers_of_an_interior_point_are_sparse():
    """Too many features for the exact solution: the iterate's u are all inside their box, alpha is not."""
    rng = np.random.default_rng(4)
    rows = rng.standard_normal((3000, 340))
    y = rows @ rng.standard_normal(340) + 10.0 * rng.standard_normal(3000) > 0
    model = LinearSVC(0.01, tol=1e-8).fit(rows, y)
    sign = 2.0 * y - 1.0
    m = sign * model.decision_function(rows)
    assert len(model.free_support_) <= 341
    assert np.abs(m[model.free_support_] - 1.0).max() <= 1e-3
    assert (m[model.bounded_support_] <= 1.0 + 1e-3).all()
    assert (m[np.setdiff1d(np.arange(3000), model.support_)] >= 1.0 - 1e-3).all()
    assert abs(sign @ model.alpha_) <= 1e-12 * model.alpha_.sum()
    assert model.kkt(rows, y).stationarity <= 1e-3 * np.linalg.norm(model.coef_)


# --- the hard margin

SEPARABLE_X, SEPARABLE_Y = np.ascontiguousarray(IRIS_X[:100]), IRIS_Y[:100]


def between_hulls(rows, sign):
    """The distance between the convex hulls of the classes, and the nearest points: by quadratic programming."""
    G = (sign[:, None] * rows) @ (sign[:, None] * rows).T
    found = minimize(
        lambda a: 0.5 * a @ G @ a,
        np.where(sign > 0, 1.0 / (sign > 0).sum(), 1.0 / (sign < 0).sum()),
        jac=lambda a: G @ a,
        bounds=[(0.0, None)] * len(sign),
        constraints=[
            {"type": "eq", "fun": lambda a, s=s: a[sign == s].sum() - 1.0} for s in (1.0, -1.0)
        ],
        method="SLSQP",
        options={"ftol": 1e-15, "maxiter": 1000},
    )
    return np.linalg.norm((sign * found.x) @ rows)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_width_of_the_hard_margin_is_the_distance_between_the_hulls(loss):
    model = LinearSVC(np.inf, loss=loss).fit(SEPARABLE_X, SEPARABLE_Y)
    sign = 2.0 * SEPARABLE_Y - 1.0
    assert model.margin_width_ == pytest.approx(between_hulls(SEPARABLE_X, sign), rel=1e-6)
    peer = SVC(kernel="linear", C=1e10, tol=1e-8).fit(SEPARABLE_X, SEPARABLE_Y)
    np.testing.assert_array_equal(model.support_, peer.support_)
    np.testing.assert_allclose(model.alpha_[model.support_], np.abs(peer.dual_coef_[0]), rtol=1e-4)
    m = sign * model.decision_function(SEPARABLE_X)
    assert m.min() >= 1.0 - 1e-12
    np.testing.assert_allclose(m[model.support_], 1.0, rtol=1e-9)
    assert abs(sign @ model.alpha_) <= 1e-12 * model.alpha_.sum()
    np.testing.assert_array_equal(model.free_support_, model.support_)
    kkt = model.kkt(SEPARABLE_X, SEPARABLE_Y)
    assert kkt.box == 0.0
    assert max(kkt.stationarity, kkt.intercept, kkt.complementarity) <= 1e-9
    for exact in (False, True):
        assert verify(model, SEPARABLE_X, SEPARABLE_Y, exact=exact).certified
    model.coef_ *= 0.999
    assert model.kkt(SEPARABLE_X, SEPARABLE_Y).complementarity > 1e-4
    with pytest.raises(CertificateError):
        verify(model, SEPARABLE_X, SEPARABLE_Y)


def test_the_hard_margin_of_rows_without_weight():
    weight = np.ones(100)
    weight[LinearSVC(np.inf).fit(SEPARABLE_X, SEPARABLE_Y).support_] = 0.0
    model = LinearSVC(np.inf).fit(SEPARABLE_X, SEPARABLE_Y, weight)
    kept = weight > 0.0
    other = LinearSVC(np.inf).fit(SEPARABLE_X[kept], SEPARABLE_Y[kept])
    close(model, other, rtol=1e-6)
    assert not model.alpha_[~kept].any()
    assert model.kkt(SEPARABLE_X, SEPARABLE_Y, weight).complementarity <= 1e-9


def test_the_hard_margin_of_inseparable_classes_is_refused_with_a_witness():
    with pytest.raises(InseparableData) as caught:
        LinearSVC(np.inf).fit(X, Y)
    assert caught.value.witness.check(X, Y)
    assert caught.value.witness.check(X, Y, exact=True)
    with pytest.raises(InseparableData, match="class 1 against the others") as caught:
        LinearSVC(np.inf).fit(IRIS_X, IRIS_Y)
    assert caught.value.witness.check(IRIS_X, IRIS_Y == 1)


def test_the_hard_margin_of_several_classes():
    corners = np.array([[0.0, 0.0], [4.0, 0.0], [0.0, 4.0]])
    rows = np.vstack([corners + shift for shift in (-0.5, 0.0, 0.5)])
    y = np.tile([0, 1, 2], 3)
    model = LinearSVC(np.inf).fit(rows, y)
    assert model.alpha_.shape == (9, 3)
    for c in range(3):
        sign = np.where(y == c, 1.0, -1.0)
        width = between_hulls(rows, sign)
        assert model.margin_width_[c] == pytest.approx(width, rel=1e-6)
    assert verify(model, rows, y).certified


# --- support vectors and margin


@pytest.mark.parametrize("loss", LOSSES)
def test_support_vectors(loss):
    model = LinearSVC(loss=loss).fit(X, Y)
    np.testing.assert_array_equal(model.support_, np.flatnonzero(model.alpha_ > 0))
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    both = np.concatenate([model.free_support_, model.bounded_support_])
    np.testing.assert_array_equal(np.sort(both), model.support_)
    m = SIGN * model.decision_function(X)
    outside = np.setdiff1d(np.arange(len(Y)), model.support_)
    assert (m[outside] >= 1.0 - 1e-6).all()
    assert (m[model.support_] <= 1.0 + 1e-6).all()
    if loss == "squared_hinge":
        assert not len(model.bounded_support_)


def test_support_vectors_of_sparse_rows_and_frames():
    pd = pytest.importorskip("pandas")
    rows = sp.csr_array(np.where(SCALED > 0.5, SCALED, 0.0))
    model = LinearSVC(loss="squared_hinge").fit(rows, CANCER_Y)
    assert sp.issparse(model.support_vectors_)
    assert abs(model.support_vectors_ - rows[model.support_]).max() == 0.0
    frame = pd.DataFrame(X, columns=list("abcd"))
    model = LinearSVC(loss="squared_hinge").fit(frame, Y)
    np.testing.assert_array_equal(model.support_vectors_, X[model.support_])
    assert model.feature_names_in_.tolist() == list("abcd")


def test_too_many_support_vectors_are_not_kept(tuned):
    tuned(support_entries=10)
    model = LinearSVC(loss="squared_hinge").fit(X, Y)
    assert len(model.support_)
    with pytest.raises(AttributeError, match=r"X\[model.support_\]"):
        _ = model.support_vectors_


@pytest.mark.parametrize("loss", LOSSES)
def test_margin(loss):
    model = LinearSVC(loss=loss).fit(X, Y)
    assert model.margin_ == pytest.approx(1.0 / np.linalg.norm(model.coef_))
    assert model.margin_width_ == pytest.approx(2.0 * model.margin_)
    assert isinstance(model.margin_, float)
    # The points of score +1 and -1 on a normal are a margin's width apart.
    w, b = model.coef_[0], model.intercept_[0]
    plus, minus = ((t - b) * w / (w @ w) for t in (1.0, -1.0))
    assert np.linalg.norm(plus - minus) == pytest.approx(model.margin_width_)


def test_a_smaller_strength_widens_the_margin():
    margins = [LinearSVC(C, loss="squared_hinge").fit(X, Y).margin_ for C in (1e-3, 1e-1, 10.0)]
    assert margins == sorted(margins, reverse=True)


def test_no_features_no_margin():
    model = LinearSVC(loss="squared_hinge").fit(np.zeros((4, 2)), [0, 1, 0, 1])
    assert model.margin_ == np.inf


# --- laws


@pytest.mark.parametrize("loss", LOSSES)
def test_weight_two_is_the_row_twice(loss):
    again = np.repeat(np.arange(len(Y)), WEIGHT.astype(int))
    one, two = LinearSVC(loss=loss).fit(X, Y, WEIGHT), LinearSVC(loss=loss).fit(X[again], Y[again])
    close(one, two)
    merged = np.bincount(again, weights=two.alpha_, minlength=len(Y))
    np.testing.assert_allclose((SIGN * merged) @ X, (SIGN * one.alpha_) @ X, rtol=1e-6, atol=1e-9)
    if loss == "squared_hinge":  # whose multipliers are unique
        np.testing.assert_allclose(one.alpha_, merged, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
def test_class_weights_are_sample_weights(loss):
    one = LinearSVC(loss=loss, class_weight={1: 3.0, 2: 0.5}).fit(X, Y)
    two = LinearSVC(loss=loss).fit(X, Y, np.where(Y == 1, 3.0, 0.5))
    close(one, two)
    np.testing.assert_allclose(one.alpha_, two.alpha_, rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("loss", LOSSES)
@pytest.mark.parametrize("kind", [sp.csr_matrix, sp.csc_array, np.asfortranarray])
def test_the_layout_of_the_rows_does_not_matter(loss, kind):
    one = LinearSVC(loss=loss, tol=1e-12).fit(SCALED, CANCER_Y)
    two = LinearSVC(loss=loss, tol=1e-12).fit(kind(SCALED), CANCER_Y)
    close(one, two, rtol=1e-5)
    assert two.kkt(kind(SCALED), CANCER_Y).complementarity <= 1e-5


@pytest.mark.parametrize("loss", LOSSES)
def test_centring_leaves_w_unchanged(loss):
    """With an unpenalised intercept, centring the rows moves b alone, by mean.w."""
    one = LinearSVC(loss=loss).fit(X, Y)
    two = LinearSVC(loss=loss).fit(X - X.mean(axis=0), Y)
    np.testing.assert_allclose(one.coef_, two.coef_, rtol=1e-7, atol=1e-9)
    moved = one.intercept_ + X.mean(axis=0) @ one.coef_[0]
    np.testing.assert_allclose(two.intercept_, moved, rtol=1e-6, atol=1e-8)


@pytest.mark.parametrize("loss", LOSSES)
def test_the_same_bits_for_any_number_of_threads(loss, tuned):
    tuned(block_bytes=1 << 14)
    rng = np.random.default_rng(2)
    rows = rng.standard_normal((4000, 6))
    y = rows @ rng.standard_normal(6) + rng.standard_normal(4000) > 0
    one, *others = (LinearSVC(loss=loss, n_threads=count).fit(rows, y) for count in (1, 2, 5))
    for other in others:
        assert np.array_equal(one.coef_, other.coef_)
        assert np.array_equal(one.alpha_, other.alpha_)


@pytest.mark.parametrize("loss", LOSSES)
def test_warm_start(loss):
    model = LinearSVC(loss=loss, warm_start=True).fit(SCALED, CANCER_Y)
    before = model.certificate_.primal
    model.fit(SCALED, CANCER_Y)
    assert model.certificate_.primal == pytest.approx(before, rel=1e-6)
    assert model.certificate_.certified


def test_float32_rows():
    one, two = LinearSVC(loss="squared_hinge"), LinearSVC(loss="squared_hinge")
    close(one.fit(X, Y), two.fit(X.astype(np.float32), Y), rtol=1e-5)
    assert two.support_vectors_.dtype == np.float32


def test_the_same_as_linear_classifier():
    close(
        LinearSVC(loss="squared_hinge").fit(X, Y),
        LinearClassifier("squared_hinge").fit(X, Y),
        1e-12,
    )


# --- the peers


@pytest.mark.parametrize("C", [0.01, 1.0])
def test_liblinear_finds_the_same_without_an_intercept(C):
    model = LinearSVC(C, loss="squared_hinge", fit_intercept=False).fit(SCALED, CANCER_Y)
    peer = Liblinear(
        C=C, loss="squared_hinge", fit_intercept=False, tol=1e-8, max_iter=100_000, random_state=0
    ).fit(SCALED, CANCER_Y)
    sign = 2.0 * CANCER_Y - 1.0
    peer.intercept_ = np.zeros(1)
    assert model.certificate_.primal == pytest.approx(objective(peer, SCALED, sign, C), rel=1e-6)


# --- certificate


@pytest.mark.parametrize("loss", LOSSES)
def test_verify_and_tampering(loss):
    model = LinearSVC(loss=loss).fit(X, Y, WEIGHT)
    assert verify(model, X, Y, WEIGHT).certified
    assert verify(model, X, Y, WEIGHT, exact=True).certified
    forged = copy.deepcopy(model)
    forged.coef_ *= 1.001
    with pytest.raises(CertificateError):
        verify(forged, X, Y, WEIGHT)


# --- the house rules of scikit-learn


def test_labels_of_any_kind():
    names = np.array(["setosa", "versicolor", "virginica"])[IRIS_Y]
    model = LinearSVC(loss="squared_hinge").fit(IRIS_X, names)
    assert set(model.predict(IRIS_X)) <= set(names)
    assert model.score(IRIS_X, names) > 0.9


def test_no_probabilities_but_calibration():
    model = LinearSVC()
    assert not hasattr(model, "predict_proba")
    P = CalibratedClassifierCV(model, cv=3).fit(IRIS_X, IRIS_Y).predict_proba(IRIS_X)
    np.testing.assert_allclose(P.sum(axis=1), 1.0)
    assert (P.argmax(axis=1) == IRIS_Y).mean() > 0.9


def test_pickle_and_clone():
    model = LinearSVC(3.0, loss="squared_hinge").fit(X, Y)
    again = pickle.loads(pickle.dumps(model))
    np.testing.assert_array_equal(again.support_vectors_, model.support_vectors_)
    np.testing.assert_array_equal(again.alpha_, model.alpha_)
    fresh = clone(model)
    assert fresh.C == 3.0
    for name in ("alpha_", "support_", "support_vectors_", "margin_", "margin_width_"):
        assert not hasattr(fresh, name)


def test_bad_parameters():
    with pytest.raises(BadInput, match="'hinge', 'squared_hinge'"):
        LinearSVC(loss="logistic").fit(X, Y)
    with pytest.raises(BadInput, match="crammer_singer"):
        LinearSVC(multiclass="multinomial").fit(X, Y)
    with pytest.raises(BadInput, match="C"):
        LinearSVC(-1.0, loss="squared_hinge").fit(X, Y)
    with pytest.raises(Refused, match="finite C"):
        LinearSVC(np.inf, multiclass="crammer_singer").fit(IRIS_X, IRIS_Y)
    model = LinearSVC(loss="squared_hinge").fit(X, Y)
    with pytest.raises(BadInput, match="there were 100, X has 99"):
        model.kkt(X[1:], Y[1:])


@pytest.mark.parametrize("C", [1e10, 1e15])
def test_multipliers_that_are_a_small_part_of_a_large_box(C):
    X, y = np.array([[0.0], [1.0], [2.0], [3.0]]), np.array([0, 0, 1, 1])
    model = LinearSVC(C).fit(X, y)
    assert model.support_.tolist() == [1, 2]
    assert np.allclose(model.alpha_, [0.0, 2.0, 2.0, 0.0], rtol=1e-5)


class TestNamesOfScikitLearn:
    def test_dual_coefficients_of_two_classes(self):
        X, y = load_breast_cancer(return_X_y=True)
        X = StandardScaler().fit_transform(X)
        model, other = LinearSVC().fit(X, y), SVC(kernel="linear", tol=1e-8).fit(X, y)
        order = np.argsort(other.support_)
        np.testing.assert_array_equal(model.support_, other.support_[order])
        np.testing.assert_array_equal(model.n_support_, other.n_support_)
        np.testing.assert_allclose(model.dual_coef_, other.dual_coef_[:, order], atol=1e-4)
        assert "squared hinge" in (LinearSVC.__doc__ or "").splitlines()[0]

    @pytest.mark.parametrize(
        "options", [{}, {"loss": "squared_hinge"}, {"multiclass": "crammer_singer"}], ids=str
    )
    def test_coefficients_from_support_vectors(self, options):
        model = LinearSVC(**options).fit(IRIS_X, IRIS_Y)
        np.testing.assert_allclose(
            model.dual_coef_ @ model.support_vectors_, model.coef_, atol=1e-8
        )
        counts = np.bincount(IRIS_Y[model.support_], minlength=3)
        np.testing.assert_array_equal(model.n_support_, counts)

    @pytest.mark.parametrize("name", ["dual_coef_", "n_support_"])
    def test_not_before_fit(self, name):
        assert not hasattr(LinearSVC(), name)
