"""What the estimators promise: what comes out of a fit, and the laws it obeys."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone, is_regressor
from sklearn.datasets import load_breast_cancer, load_iris
from sklearn.multiclass import OneVsRestClassifier
from sklearn.preprocessing import StandardScaler

import linsep
from linsep import (
    ConvergenceWarning,
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    _kernels,
)
from linsep.errors import LinsepError, NonFinite, SeparableData
from linsep.losses import Exponential, HuberisedHinge, Logistic, Multinomial

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[IRIS_Y]
X = np.ascontiguousarray(StandardScaler().fit_transform(IRIS_X)[50:])
Y = IRIS_Y[50:]
T = IRIS_X[:, 3] + IRIS_X[:, 0] ** 2
RNG = np.random.default_rng(0)
WEIGHT = RNG.integers(0, 4, size=len(Y)).astype(float)

TWO_CLASSES = [
    LogisticRegression(),
    LogisticRegression(fit_intercept=False),
    *(LinearClassifier(loss) for loss in ("squared_hinge", "squared", "exponential")),
    LinearClassifier(HuberisedHinge(0.5)),
]
THREE_CLASSES = [
    LogisticRegression(),
    LogisticRegression(multiclass="ovr"),
    LinearClassifier("squared_hinge"),
]


def close(one, other, rtol=1e-8):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=1e-9)


# --- what comes out


def test_two_classes():
    model = LogisticRegression().fit(X, Y)
    assert model.coef_.shape == (1, 4)
    assert model.intercept_.shape == (1,)
    assert model.coef_.dtype == model.intercept_.dtype == np.float64
    assert model.n_features_in_ == 4
    assert not hasattr(model, "feature_names_in_")
    np.testing.assert_array_equal(model.classes_, [1, 2])
    assert model.certificate_.certified
    assert "certified" in str(model.certificate_)
    assert model.n_passes_ > 0
    assert model.n_iter_.tolist() == [np.ceil(model.n_passes_)]
    z = model.decision_function(X)
    assert z.shape == (100,)
    np.testing.assert_allclose(z, X @ model.coef_[0] + model.intercept_[0], rtol=1e-12)
    np.testing.assert_array_equal(model.predict(X), np.where(z >= 0, 2, 1))
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], Logistic().proba(z), rtol=1e-12)
    assert model.score(X, Y) > 0.9


@pytest.mark.parametrize("multiclass", ["multinomial", "ovr"])
def test_three_classes(multiclass):
    model = LogisticRegression(multiclass=multiclass).fit(IRIS_X, NAMES)
    assert model.coef_.shape == (3, 4)
    assert model.intercept_.shape == (3,)
    Z = model.decision_function(IRIS_X)
    P = model.predict_proba(IRIS_X)
    assert Z.shape == P.shape == (150, 3)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-12)
    np.testing.assert_allclose(np.log(P), model.predict_log_proba(IRIS_X), rtol=1e-9, atol=1e-14)
    np.testing.assert_array_equal(model.predict(IRIS_X), model.classes_[P.argmax(axis=1)])
    assert model.certificate_.certified
    assert model.score(IRIS_X, NAMES) > 0.93
    if multiclass == "ovr":
        assert len(model.certificate_.parts) == 3
        assert model.n_passes_ == sum(fit.n_passes for fit in model._fits)
        passes = [line.passes for line in model.trace_]
        assert passes == sorted(passes)
    else:
        np.testing.assert_allclose(P, Multinomial(3).proba(Z), rtol=1e-12)


def test_one_vs_rest_is_three_fits():
    ours = LogisticRegression(multiclass="ovr").fit(IRIS_X, NAMES)
    theirs = OneVsRestClassifier(LogisticRegression()).fit(IRIS_X, NAMES)
    for c, part in enumerate(theirs.estimators_):
        np.testing.assert_allclose(ours.coef_[c], part.coef_[0], rtol=1e-8)
        assert ours.certificate_.parts[c].primal == pytest.approx(part.certificate_.primal)
    np.testing.assert_allclose(
        ours.predict_proba(IRIS_X), theirs.predict_proba(IRIS_X), rtol=1e-7, atol=1e-12
    )


def test_multinomial_coefficients_of_the_classes_add_up_to_zero():
    """The penalty picks this one of the equivalent answers; it does not see the intercepts."""
    model = LogisticRegression(tol=1e-10).fit(IRIS_X, IRIS_Y)
    np.testing.assert_allclose(model.coef_.sum(axis=0), 0.0, atol=1e-5)


def test_regression_of_least_squares():
    model = LinearRegressor().fit(X, T[50:])
    assert model.coef_.shape == (4,)
    assert np.ndim(model.intercept_) == 0
    A = np.column_stack([X, np.ones(100)])
    truth = np.linalg.lstsq(A, T[50:], rcond=None)[0]
    found = np.append(model.coef_, model.intercept_)
    np.testing.assert_allclose(found, truth, rtol=1e-9, atol=1e-12)
    np.testing.assert_allclose(model.predict(X), A @ truth, rtol=1e-9)
    assert model.certificate_.certified
    assert model.certificate_.primal == pytest.approx(((A @ truth - T[50:]) ** 2).sum())


def test_regression_with_a_penalty():
    """1/2 |w|^2 + C |t - Xw - b|^2: ridge of strength 1/(2C) on centred columns."""
    model = LinearRegressor(C=0.3).fit(X, T[50:])
    A, t = X - X.mean(axis=0), T[50:] - T[50:].mean()
    truth = np.linalg.solve(A.T @ A + np.eye(4) / 0.6, A.T @ t)
    np.testing.assert_allclose(model.coef_, truth, rtol=1e-9)


def test_minimum_norm_when_there_are_many_minimisers():
    A = RNG.normal(size=(10, 30))
    t = RNG.normal(size=10)
    model = LinearRegressor(fit_intercept=False).fit(A, t)
    np.testing.assert_allclose(model.coef_, np.linalg.pinv(A) @ t, rtol=1e-7, atol=1e-10)


def test_huber_regression_resists_an_outlier():
    t = X @ [1.0, 2.0, 3.0, 4.0]
    t[7] += 1e3
    model = LinearRegressor("huber").fit(X, t)
    np.testing.assert_allclose(model.coef_, [1.0, 2.0, 3.0, 4.0], atol=0.1)


def test_a_score_of_zero_is_the_second_class():
    model = LogisticRegression(fit_intercept=False).fit([[-1.0], [1.0]], ["no", "yes"])
    assert model.predict([[0.0]]) == ["yes"]
    assert model.predict([[-0.0]]) == ["yes"]
    assert model.intercept_ == [0.0]


def test_probabilities_of_extreme_scores():
    model = LogisticRegression(fit_intercept=False).fit([[-1.0], [1.0]], [0, 1])
    model.coef_ = np.array([[1.0]])
    far = np.array([[-800.0], [800.0], [-40.0]])
    P = model.predict_proba(far)
    np.testing.assert_array_equal(P[:2], [[1.0, 0.0], [0.0, 1.0]])
    assert P[2, 1] == pytest.approx(np.exp(-40.0), rel=1e-12)
    np.testing.assert_allclose(model.predict_log_proba(far)[:2], [[0, -800], [-800, 0]])
    rest = LogisticRegression(multiclass="ovr", fit_intercept=False).fit(IRIS_X, IRIS_Y)
    rest.coef_ = np.array([[1.0, 0, 0, 0], [1.1, 0, 0, 0], [1.2, 0, 0, 0]])
    P = rest.predict_proba([[-1e4, 0, 0, 0]])
    np.testing.assert_array_equal(P, [[1.0, 0.0, 0.0]])
    assert np.isfinite(rest.predict_log_proba([[-1e4, 0, 0, 0]])).all()


def test_probabilities_only_where_the_loss_has_them():
    assert hasattr(LinearClassifier("logistic"), "predict_proba")
    assert not hasattr(LinearClassifier("squared_hinge"), "predict_proba")
    assert not hasattr(LinearClassifier("squared_hinge"), "predict_log_proba")
    model = LinearClassifier("exponential").fit(X, Y)
    z = model.decision_function(X)
    np.testing.assert_allclose(model.predict_proba(X)[:, 1], Exponential().proba(z))
    np.testing.assert_allclose(
        model.predict_log_proba(X), np.log(model.predict_proba(X)), rtol=1e-12
    )


def test_the_logistic_classifier_is_logistic_regression():
    close(LinearClassifier("logistic").fit(X, Y), LogisticRegression().fit(X, Y), rtol=1e-12)
    close(LinearClassifier(Logistic()).fit(X, Y), LogisticRegression().fit(X, Y), rtol=1e-12)


# --- laws


@pytest.mark.parametrize("model", TWO_CLASSES)
def test_weight_two_is_the_row_twice(model):
    twice = np.repeat(np.arange(100), WEIGHT.astype(int))
    weighted = clone(model).fit(X, Y, sample_weight=WEIGHT)
    repeated = clone(model).fit(X[twice], Y[twice])
    close(weighted, repeated)
    assert weighted.certificate_.primal == pytest.approx(repeated.certificate_.primal, rel=1e-12)


@pytest.mark.parametrize("model", THREE_CLASSES)
def test_weight_two_is_the_row_twice_with_three_classes(model):
    s = RNG.integers(0, 3, size=150)
    twice = np.repeat(np.arange(150), s)
    close(
        clone(model).fit(IRIS_X, IRIS_Y, sample_weight=s),
        clone(model).fit(IRIS_X[twice], IRIS_Y[twice]),
    )


def test_weight_two_is_the_row_twice_in_regression():
    twice = np.repeat(np.arange(100), WEIGHT.astype(int))
    for model in (LinearRegressor(), LinearRegressor(C=0.1), LinearRegressor("huber", C=1.0)):
        close(
            clone(model).fit(X, T[50:], sample_weight=WEIGHT),
            clone(model).fit(X[twice], T[50:][twice]),
        )


def test_a_number_as_weight_counts_for_every_row():
    close(LogisticRegression().fit(X, Y, 2.0), LogisticRegression(C=2.0).fit(X, Y))


@pytest.mark.parametrize("model", THREE_CLASSES)
def test_class_weight_is_sample_weight(model):
    factor = {0: 2.0, 2: 0.5}
    by_class = clone(model).set_params(class_weight=factor).fit(IRIS_X, IRIS_Y)
    by_row = clone(model).fit(
        IRIS_X, IRIS_Y, sample_weight=np.array([factor.get(c, 1.0) for c in IRIS_Y])
    )
    close(by_class, by_row, rtol=1e-10)


def test_balanced_class_weight():
    few = slice(30, 100)  # 20 of one class, 50 of the other
    balanced = LogisticRegression(class_weight="balanced").fit(X[few], Y[few])
    factor = {1: 70 / (2 * 20), 2: 70 / (2 * 50)}
    close(balanced, LogisticRegression(class_weight=factor).fit(X[few], Y[few]), rtol=1e-10)


def test_balanced_class_weight_counts_weights():
    """Weight 2 is the row twice here too."""
    model = LogisticRegression(class_weight="balanced")
    twice = np.repeat(np.arange(100), WEIGHT.astype(int))
    close(
        clone(model).fit(X, Y, sample_weight=WEIGHT),
        clone(model).fit(X[twice], Y[twice]),
    )


@pytest.mark.parametrize("model", THREE_CLASSES)
def test_names_of_classes_do_not_matter(model):
    by_name = clone(model).fit(IRIS_X, NAMES)
    by_number = clone(model).fit(IRIS_X, IRIS_Y)
    np.testing.assert_array_equal(by_name.coef_, by_number.coef_)
    np.testing.assert_array_equal(by_name.classes_, ["setosa", "versicolor", "virginica"])
    predicted = np.array(["setosa", "versicolor", "virginica"])[by_number.predict(IRIS_X)]
    np.testing.assert_array_equal(by_name.predict(IRIS_X), predicted)


@pytest.mark.parametrize("make", [sp.csr_matrix, sp.csr_array, sp.csc_matrix])
@pytest.mark.parametrize("model", TWO_CLASSES)
def test_sparse_is_dense(model, make):
    dense = clone(model).fit(X, Y)
    sparse = clone(model).fit(make(X), Y)
    close(sparse, dense)
    np.testing.assert_allclose(
        sparse.decision_function(make(X)), dense.decision_function(X), rtol=1e-7, atol=1e-9
    )


@pytest.mark.parametrize("model", THREE_CLASSES)
def test_sparse_is_dense_with_three_classes(model):
    close(
        clone(model).fit(sp.csr_matrix(IRIS_X), IRIS_Y),
        clone(model).fit(IRIS_X, IRIS_Y),
    )


def test_single_precision_rows():
    rows = X.astype(np.float32)
    single = LogisticRegression().fit(rows, Y)
    close(single, LogisticRegression().fit(rows.astype(np.float64), Y), rtol=1e-6)
    assert single.coef_.dtype == single.decision_function(rows).dtype == np.float64


@pytest.mark.parametrize("sparse", [False, True])
@pytest.mark.parametrize("n", [1000, 5000, 40_000])  # one native piece, two halves, many blocks
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC(loss="squared_hinge")])
def test_threads_do_not_change_a_bit(model, n, sparse):
    rng = np.random.default_rng(n)
    rows = rng.normal(size=(n, 30))
    labels = rows[:, 0] + rng.normal(size=n) > 0
    if sparse:
        rows = sp.csr_array(np.where(np.abs(rows) > 1.0, rows, 0.0))
    one, *others = (clone(model).set_params(n_threads=k).fit(rows, labels) for k in (1, 2, 3))
    for other in others:
        np.testing.assert_array_equal(one.coef_, other.coef_)
        assert one.certificate_ == other.certificate_
        if isinstance(model, LinearSVC):
            np.testing.assert_array_equal(one.alpha_, other.alpha_)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("model", [*TWO_CLASSES, LinearRegressor(), LinearRegressor(C=1.0)])
def test_verify(model):
    y = T[50:] if is_regressor(model) else Y
    model = clone(model).fit(X, y, sample_weight=1.0 + WEIGHT)
    verified = linsep.verify(model, X, y, sample_weight=1.0 + WEIGHT)
    assert verified.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    model.coef_ = model.coef_ + 0.1
    with pytest.raises(LinsepError):
        linsep.verify(model, X, y, sample_weight=1.0 + WEIGHT)


@pytest.mark.parametrize("model", THREE_CLASSES)
def test_verify_with_three_classes_and_class_weights(model):
    model = clone(model).set_params(class_weight="balanced").fit(IRIS_X, NAMES)
    verified = linsep.verify(model, IRIS_X, NAMES)
    assert verified.primal == pytest.approx(model.certificate_.primal, rel=1e-9)
    with pytest.raises(LinsepError):
        linsep.verify(model, IRIS_X, NAMES[::-1])
    with pytest.raises(LinsepError, match="not one of the classes"):
        linsep.verify(model, IRIS_X, IRIS_Y)


def test_no_minimiser_no_model():
    """Separable classes and no penalty: the error carries a separating direction."""
    model = LogisticRegression(C=np.inf)
    apart = X[:, 0] > 0
    with pytest.raises(SeparableData) as error:
        model.fit(X, apart)
    assert not hasattr(model, "coef_")
    w, b = error.value.direction
    assert ((X @ w + b > 0) == apart).all()


@pytest.mark.parametrize("multiclass", ["multinomial", "ovr"])
def test_no_minimiser_no_model_of_three_classes(multiclass):
    model = LogisticRegression(C=np.inf, multiclass=multiclass)
    with pytest.raises(SeparableData, match="setosa" if multiclass == "ovr" else "separable"):
        model.fit(IRIS_X, NAMES)
    assert not hasattr(model, "coef_")


def test_verification_parts_describe_the_problem():
    model = LinearRegressor(C=2.0).fit(X, T[50:])
    (part,) = model._verification_parts(X, T[50:], None)
    loss, penalty, fit_intercept, rows, sigma, offset, weight, labels, W, _, tol = part
    assert (loss.name, penalty.C, fit_intercept, tol) == ("squared", 2.0, True, 1e-6)
    assert rows is X
    assert weight is None
    assert labels is None
    assert loss.centre == 0.0
    np.testing.assert_allclose(
        sigma * (X @ W[:-1, 0] + W[-1, 0]) + offset, model.predict(X) - T[50:]
    )


# --- fitting again


@pytest.mark.parametrize("model", [*TWO_CLASSES, *THREE_CLASSES])
def test_warm_start_reaches_the_same_optimum_sooner(model):
    cold = clone(model).set_params(C=1.1, tol=1e-9).fit(IRIS_X, IRIS_Y)
    warm = clone(model).set_params(warm_start=True, tol=1e-9).fit(IRIS_X, IRIS_Y)
    warm.set_params(C=1.1).fit(IRIS_X, IRIS_Y)
    np.testing.assert_allclose(warm.coef_, cold.coef_, rtol=1e-3, atol=1e-4)
    assert warm.certificate_.certified
    if getattr(model, "loss", None) != "squared":  # which takes one step from anywhere
        assert warm.n_passes_ <= cold.n_passes_


def test_warm_start_with_other_classes_or_columns_starts_afresh():
    model = LogisticRegression(warm_start=True).fit(IRIS_X, IRIS_Y)
    close(model.fit(X, Y), LogisticRegression().fit(X, Y))
    close(model.fit(X[:, :2], Y), LogisticRegression().fit(X[:, :2], Y))
    close(model.fit(X[:, :2], Y == 2), LogisticRegression().fit(X[:, :2], Y == 2))


def test_a_limit_ends_in_a_warning_that_carries_the_certificate():
    model = LogisticRegression(max_passes=1, tol=1e-12)
    rows, labels = load_breast_cancer(return_X_y=True)
    with pytest.warns(ConvergenceWarning, match="max_passes") as caught:
        model.fit(rows, labels)
    assert len(caught) == 1
    assert caught[0].message.certificate == model.certificate_
    assert not model.certificate_.certified
    assert 0 < model.certificate_.gap < np.inf
    assert np.isfinite(model.coef_).all()


def test_limits_hold_for_all_parts_together():
    model = LogisticRegression(multiclass="ovr", max_passes=6, tol=1e-14)
    with pytest.warns(ConvergenceWarning) as caught:
        model.fit(IRIS_X, IRIS_Y)
    assert len(caught) == 1
    assert caught[0].message.certificate == model.certificate_
    assert len(model.certificate_.parts) == 3
    assert model.n_passes_ < 20


def test_a_time_limit():
    rows = RNG.normal(size=(20_000, 40))
    labels = rows[:, 0] + RNG.normal(size=20_000) > 0
    with pytest.warns(ConvergenceWarning, match="time_limit"):
        model = LogisticRegression(time_limit=1e-9, tol=1e-12).fit(rows, labels)
    assert np.isfinite(model.coef_).all()


@pytest.mark.parametrize("seed", [None, 0, np.int64(3), np.random.RandomState(0)])
def test_seeds(seed):
    assert LogisticRegression(random_state=seed).fit(X, Y).certificate_.certified


# --- the package


def test_public_names():
    for name in linsep.__all__:
        assert getattr(linsep, name) is not None
        assert name in dir(linsep)
    with pytest.raises(AttributeError, match="no attribute 'Perceptrons'"):
        _ = linsep.Perceptrons


def test_import_is_cheap():
    code = (
        "import sys, linsep; print([m for m in ('numpy', 'scipy', 'sklearn') if m in sys.modules])"
    )
    out = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert out.stdout.strip() == "[]"


@pytest.mark.parametrize("k", [2, 3])
@pytest.mark.parametrize("kind", ["C", "F", "float32", "csr", "int"])
def test_many_rows_are_predicted_as_one_by_one(k, kind):
    """Threads, pieces and layouts change nothing, and the numpy text agrees."""
    rng = np.random.default_rng(0)
    X = rng.integers(-3, 4, size=(9000, 40)).astype(float)
    y = (X[:, 0] + X[:, 1] > rng.normal(size=9000)).astype(int) + (k - 2) * (X[:, 2] > 1)
    model = LogisticRegression(C=0.01, n_threads=2).fit(X[:500], y[:500])
    make = {
        "C": lambda A: A,
        "F": np.asfortranarray,
        "float32": lambda A: A.astype(np.float32),
        "csr": sp.csr_matrix,
        "int": lambda A: A.astype(np.int64),
    }[kind]
    Z = X @ model.coef_.T + model.intercept_
    scores = model.decision_function(make(X))
    np.testing.assert_allclose(scores.reshape(Z.shape), Z, rtol=1e-12, atol=1e-12)
    P = model.predict_proba(make(X))
    want = np.exp(model.predict_log_proba(make(X)))
    np.testing.assert_allclose(P, want, rtol=1e-12)
    np.testing.assert_allclose(P.sum(axis=1), 1.0, rtol=1e-14)
    np.testing.assert_array_equal(model.predict(make(X)), model.classes_[P.argmax(axis=1)])
    few = make(X[5:9])
    np.testing.assert_allclose(model.predict_proba(few), P[5:9], rtol=1e-12)
    model.n_threads = 1
    np.testing.assert_array_equal(model.predict_proba(make(X)), P)


def test_the_first_bad_row_of_many_is_named():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(9000, 40))
    model = LogisticRegression().fit(X[:200], X[:200, 0] > 0)
    X[8123, 7] = np.inf
    for call in (model.predict, model.decision_function, model.predict_proba):
        with pytest.raises(NonFinite, match="row 8123, column 7"):
            call(X)


def test_rows_with_many_columns_need_not_be_sorted():
    """They are read as they are, unless a column comes twice; few columns are sorted, for their Gram matrices."""
    rng = np.random.default_rng(0)
    for d in (60, 5000):
        X = sp.random(300, d, density=20 / d, format="csr", random_state=1)
        y = np.where(X @ rng.normal(size=d) > 0.0, 1, 0)
        want = LogisticRegression(0.5, tol=1e-9).fit(X, y)
        mixed = X.copy()
        for i in range(300):
            part = slice(X.indptr[i], X.indptr[i + 1])
            order = rng.permutation(X.indptr[i + 1] - X.indptr[i])
            mixed.indices[part], mixed.data[part] = X.indices[part][order], X.data[part][order]
        mixed.has_sorted_indices = mixed.has_canonical_format = False
        before = mixed.indices.copy()
        found = LogisticRegression(0.5, tol=1e-9).fit(mixed, y)
        assert np.array_equal(mixed.indices, before)
        assert found.coef_ == pytest.approx(want.coef_, abs=1e-4)
        assert linsep.verify(found, mixed, y).certified
        lasso = LogisticRegression(5.0, l1_ratio=1.0).fit(mixed, y)
        assert lasso.certificate_.certified and linsep.verify(lasso, mixed, y).certified
        twice = sp.csr_matrix(
            (
                np.column_stack([0.5 * mixed.data, 0.5 * mixed.data]).ravel(),
                np.repeat(mixed.indices, 2),
                2 * mixed.indptr,
            ),
            shape=X.shape,
        )
        again = LogisticRegression(0.5, tol=1e-9).fit(twice, y)
        assert again.coef_ == pytest.approx(want.coef_, abs=1e-4) and twice.nnz == 2 * X.nnz
        for wide in (np.int32, np.int64):
            indices, indptr = mixed.indices.astype(wide), mixed.indptr.astype(wide)
            assert not _kernels.csr_repeats(indices, indptr, d)
            assert _kernels.csr_repeats(twice.indices.astype(wide), twice.indptr.astype(wide), d)
    for indices, indptr in (([0, 9], [0, 2]), ([0, -1], [0, 2]), ([0, 1], [0, 3]), ([0], [1, 0])):
        with pytest.raises(
            ValueError, match=r"out of range|decrease|begin with 0|beyond the stored"
        ):
            _kernels.csr_repeats(np.array(indices), np.array(indptr), 5)


@pytest.mark.parametrize("y", [Y, np.repeat([0, 1, 2, 3], 25)], ids=["two", "four"])
@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=0.1, l1_ratio=1.0),
        linsep.LinearSVC(),
        linsep.LinearClassifier("modified_huber"),
        linsep.Perceptron(max_passes=5),
        linsep.SGDClassifier(epochs=2),
    ],
    ids=lambda model: type(model).__name__,
)
def test_sparse_coefficients_predict_the_same(model, y, tmp_path):
    model = clone(model).fit(X, y)
    dense, scores = model.coef_, model.decision_function(X)
    assert sp.issparse(model.sparsify().coef_)
    np.testing.assert_array_equal(model.decision_function(X), scores)
    if hasattr(model, "predict_proba"):
        assert model.predict_proba(X).shape == (len(X), len(model.classes_))
    linsep.save(model, tmp_path / "model.linsep")
    np.testing.assert_array_equal(linsep.load(tmp_path / "model.linsep").coef_, dense)
    if isinstance(model, LogisticRegression):
        assert linsep.verify(model, X, y).certified
    np.testing.assert_array_equal(model.densify().coef_, dense)
