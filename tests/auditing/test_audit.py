"""audit: the objective is the model's own, the bounds hold, and an improved model is optimal."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine
from sklearn.linear_model import (
    ElasticNet,
    HuberRegressor,
    Lasso,
    LinearRegression,
    LogisticRegression,
    LogisticRegressionCV,
    PoissonRegressor,
    QuantileRegressor,
    Ridge,
    RidgeClassifier,
    SGDClassifier,
    SGDRegressor,
)
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, LinearSVC
from versions import construct

from linsep import audit
from linsep.auditing.verdict import in_words
from linsep.errors import BadInput, Refused


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


CANCER, WINE, DIABETES = (
    standardised(load) for load in (load_breast_cancer, load_wine, load_diabetes)
)

RNG = np.random.default_rng(0)
#: Before scikit-learn 1.8, l1_ratio counts only with penalty="elasticnet".
LASSO = {"l1_ratio": 1.0} if LogisticRegression().penalty == "deprecated" else {"penalty": "l1"}


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y, **more)


def signs(y):
    return np.where(y == np.unique(y)[1], 1.0, -1.0)


def log_loss(m):
    return np.logaddexp(0.0, -m)


def hinge(m):
    return np.maximum(0.0, 1.0 - m)


def modified_huber(m):
    return np.where(m >= -1.0, np.maximum(0.0, 1.0 - m) ** 2, -4.0 * m)


def half_squares(w):
    return 0.5 * float(np.sum(np.square(w)))


# Each model with its objective as scikit-learn's documentation writes it, in numpy: f(model, w, b, m or r, n).
TWO_CLASSES = {
    "logistic": (
        LogisticRegression(C=0.3),
        lambda w, b, m: half_squares(w) + 0.3 * log_loss(m).sum(),
    ),
    "logistic, L1": (
        LogisticRegression(C=0.2, solver="saga", **LASSO),
        lambda w, b, m: np.abs(w).sum() + 0.2 * log_loss(m).sum(),
    ),
    "liblinear": (
        LogisticRegression(C=2.0, solver="liblinear", intercept_scaling=3.0),
        lambda w, b, m: half_squares(w) + half_squares(b / 3.0) + 2.0 * log_loss(m).sum(),
    ),
    "squared hinge": (
        LinearSVC(C=0.1),
        lambda w, b, m: half_squares(w) + half_squares(b) + 0.1 * (hinge(m) ** 2).sum(),
    ),
    "squared hinge, L1": (
        LinearSVC(C=0.1, penalty="l1", dual=False),
        lambda w, b, m: np.abs(w).sum() + np.abs(b).sum() + 0.1 * (hinge(m) ** 2).sum(),
    ),
    "hinge": (
        LinearSVC(C=0.1, loss="hinge", fit_intercept=False),
        lambda w, b, m: half_squares(w) + 0.1 * hinge(m).sum(),
    ),
    "svc": (SVC(kernel="linear", C=0.1), lambda w, b, m: half_squares(w) + 0.1 * hinge(m).sum()),
    "ridge classifier": (
        RidgeClassifier(alpha=2.0),
        lambda w, b, m: 2.0 * 2.0 * half_squares(w) + ((1.0 - m) ** 2).sum(),
    ),
    "sgd hinge": (
        SGDClassifier(alpha=1e-3, random_state=0),
        lambda w, b, m: 1e-3 * half_squares(w) + hinge(m).mean(),
    ),
    "sgd log loss": (
        SGDClassifier(loss="log_loss", alpha=1e-2, penalty="l1", random_state=0),
        lambda w, b, m: 1e-2 * np.abs(w).sum() + log_loss(m).mean(),
    ),
    "sgd modified huber": (
        SGDClassifier(loss="modified_huber", alpha=1e-2, random_state=0),
        lambda w, b, m: 1e-2 * half_squares(w) + modified_huber(m).mean(),
    ),
    "sgd squared error": (
        SGDClassifier(
            loss="squared_error", alpha=1e-1, eta0=1e-3, learning_rate="constant", random_state=0
        ),
        lambda w, b, m: 1e-1 * half_squares(w) + 0.5 * ((1.0 - m) ** 2).mean(),
    ),
}
REGRESSION = {
    "ridge": (Ridge(alpha=3.0), lambda w, r: 6.0 * half_squares(w) + (r**2).sum()),
    "lasso": (Lasso(alpha=0.7), lambda w, r: 0.7 * np.abs(w).sum() + 0.5 * (r**2).mean()),
    "elastic net": (
        ElasticNet(alpha=0.7, l1_ratio=0.3),
        lambda w, r: 0.7 * (0.3 * np.abs(w).sum() + 0.7 * half_squares(w)) + 0.5 * (r**2).mean(),
    ),
    "least squares": (LinearRegression(), lambda w, r: (r**2).sum()),
    "median": (QuantileRegressor(alpha=0.0), lambda w, r: 0.5 * np.abs(r).mean()),
    "quantile": (
        QuantileRegressor(quantile=0.2, alpha=0.05),
        lambda w, r: np.maximum(0.2 * r, -0.8 * r).mean() + 0.05 * np.abs(w).sum(),
    ),
    "sgd": (
        SGDRegressor(alpha=0.1, random_state=0),
        lambda w, r: 0.1 * half_squares(w) + 0.5 * (r**2).mean(),
    ),
}


def assert_consistent(found):
    low, high = found.minimum
    assert 0.0 <= low <= high <= low * (1 + 1e-7) + 1e-9
    assert found.excess[0] <= found.objective - low and found.excess[1] >= found.objective - high
    assert found.excess[0] <= found.excess[1]


@pytest.mark.parametrize("name", TWO_CLASSES)
def test_two_classes(name):
    model, objective = TWO_CLASSES[name]
    X, y = CANCER
    model = fitted(model, X, y)
    w, b = model.coef_.ravel(), np.ravel(model.intercept_)
    found = audit(model, X, y)
    own = objective(w, b, signs(y) * (X @ w + b))
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert_consistent(found)
    if name != "svc":
        better = found.improve()
        w, b = better.coef_.ravel(), np.ravel(better.intercept_)
        least = objective(w, b, signs(y) * (X @ w + b))
        assert math.isclose(least, found.minimum[1], rel_tol=1e-6)
        assert audit(better, X, y).optimal
        changed = np.count_nonzero(better.predict(X) != model.predict(X))
        assert found.changed == changed
        assert np.isclose(found.coef_distance, np.linalg.norm(better.coef_ - model.coef_))
    assert found.coef_distance <= found.coef_error


@pytest.mark.parametrize("name", REGRESSION)
def test_regression(name):
    model, objective = REGRESSION[name]
    X, t = DIABETES
    model = fitted(model, X, t)
    found = audit(model, X, t)
    own = objective(model.coef_, t - model.predict(X))
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert_consistent(found)
    assert found.optimal == (name != "sgd")
    better = found.improve()
    assert objective(better.coef_, t - better.predict(X)) <= own * (1 + 1e-12)
    assert audit(better, X, t).optimal


@pytest.mark.parametrize("size", [1e-6, 1e-3, 1e-1, 10.0])
@pytest.mark.parametrize("name", ["logistic", "liblinear", "squared hinge", "svc"])
def test_the_bounds_enclose_a_known_excess(name, size):
    model, objective = TWO_CLASSES[name]
    X, y = CANCER
    good = fitted(clone(model).set_params(tol=1e-10, max_iter=1_000_000), X, y)
    w, b = good.coef_.ravel(), np.ravel(good.intercept_)
    least = objective(w, b, signs(y) * (X @ w + b))
    moved = w + size * np.random.default_rng(0).normal(size=len(w))
    excess = objective(moved, b, signs(y) * (X @ moved + b)) - least
    if name == "svc":
        found = audit((moved, b), X, y, loss="hinge", C=0.1)
    else:
        good.coef_ = moved.reshape(1, -1)
        found = audit(good, X, y)
    slack = 1e-7 * least
    assert found.excess[0] - slack <= excess <= found.excess[1] + slack


@pytest.mark.parametrize(
    "model",
    [
        LogisticRegression(C=0.5),
        LinearSVC(C=0.1),
        LinearSVC(C=0.1, multi_class="crammer_singer"),
        SVC(kernel="linear"),
        RidgeClassifier(class_weight="balanced"),
        SGDClassifier(random_state=0),
        construct(
            LogisticRegressionCV,
            Cs=3,
            cv=3,
            use_legacy_attributes=False,
            l1_ratios=(0.0,),
        ),
    ],
)
def test_three_classes(model):
    X, y = WINE
    found = audit(fitted(model, X, y), X, y)
    assert_consistent(found)
    assert found.relative_excess[1] < (0.01 if not isinstance(model, SGDClassifier) else math.inf)


@pytest.mark.filterwarnings("ignore::FutureWarning")
def test_the_default_of_logistic_regression_cv_has_no_mixing():
    X, y = WINE
    assert_consistent(audit(fitted(LogisticRegressionCV(Cs=2, cv=2), X, y), X, y))


@pytest.mark.parametrize(
    "model",
    [
        LinearSVC(C=0.01, tol=1e-9, max_iter=1_000_000, dual=False),
        LinearSVC(C=0.01, tol=1e-9, max_iter=1_000_000, multi_class="crammer_singer"),
        LogisticRegression(C=0.01, tol=1e-9),
        RidgeClassifier(),
    ],
)
def test_class_weights_mean_what_each_class_makes_of_them(model):
    X, y = WINE
    weight = np.linspace(0.1, 3.0, len(y))
    model = clone(model).set_params(class_weight={0: 5.0, 1: 1.0, 2: 0.3})
    assert audit(fitted(model, X, y, sample_weight=weight), X, y, weight).optimal


def test_sgd_weighs_the_other_classes_by_one():
    X, y = WINE
    given = {0: 5.0, 1: 1.0, 2: 0.3}
    settings = {"class_weight": given, "alpha": 0.1, "tol": None, "average": True}
    model = fitted(SGDClassifier(max_iter=3000, random_state=0, **settings), X, y)
    found = audit(model, X, y)
    own = 0.0
    for label, w, b in zip(model.classes_, model.coef_, model.intercept_, strict=True):
        each = hinge(np.where(y == label, 1.0, -1.0) * (X @ w + b))
        own += 0.1 * half_squares(w) + (np.where(y == label, given[label], 1.0) * each).mean()
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert found.relative_excess[1] < 1e-2


def test_weights_pipelines_and_sparse_rows():
    X, y = load_breast_cancer(return_X_y=True)
    weight = np.random.default_rng(1).integers(1, 4, len(y)).astype(float)
    plain = fitted(LogisticRegression(class_weight={0: 2.0, 1: 1.0}), *CANCER, sample_weight=weight)
    first = audit(plain, *CANCER, weight)
    again = audit(plain, sp.csr_array(CANCER[0]), CANCER[1], weight)
    assert math.isclose(first.objective, again.objective, rel_tol=1e-12)
    each = weight * np.where(y == 0, 2.0, 1.0)
    own = (
        half_squares(plain.coef_)
        + (each * log_loss(signs(y) * plain.decision_function(CANCER[0]))).sum()
    )
    assert math.isclose(first.objective, own, rel_tol=1e-9)
    pipeline = fitted(
        make_pipeline(StandardScaler(), LogisticRegression(tol=1e-12, max_iter=1000)), X, y
    )
    found = audit(pipeline, X, y)
    assert found.optimal and audit(found.improve(), X, y).optimal


def test_separable_classes_without_a_penalty_have_no_minimum():
    X, y = [[0.0], [1.0], [2.0], [3.0]], [0, 0, 1, 1]
    found = audit(fitted(LogisticRegression(C=np.inf), X, y), X, y)
    assert found.separable and not found.optimal and "no minimum exists" in str(found)
    with pytest.raises(BadInput, match="separable"):
        found.improve()


def test_the_infimum_of_classes_that_are_separable_in_part_is_not_zero():
    """Two rows in one place, of both classes: no hyperplane loses less than 2 log 2."""
    X, y = [[0.0], [1.0], [1.0], [2.0]], [0, 0, 1, 1]
    found = audit(fitted(LogisticRegression(C=np.inf), X, y), X, y)
    assert found.separable
    assert found.minimum[0] <= 2.0 * np.log(2.0) <= found.minimum[1]
    assert found.excess[0] <= found.objective - 2.0 * np.log(2.0)


def test_an_excess_in_words():
    assert in_words(34_356.0) == "34,400 times the minimum"
    assert in_words(9.5, "optimum") == "950 % above the optimum"
    assert in_words(3.6e-12) == "a relative 3.6e-12 above the minimum"
    assert in_words(np.inf) == "any amount above the minimum"


def test_the_words_and_the_numbers():
    X, y = load_breast_cancer(return_X_y=True)
    found = audit(fitted(LogisticRegression(), X, y), X, y)
    text = str(found)
    assert "not optimal: " in text and "above the minimum" in text and "\n" in text
    shown = found._repr_html_()
    assert repr(found) == text and shown.count("<tr>") == 5 and "not optimal: " in shown
    assert "optimal: at most a relative " in str(audit(fitted(Ridge(), X, y), X, y))
    facts = found.to_dict()
    assert facts["relative_excess"][0] > 0.05 and not facts["optimal"] and facts["rows"] == len(y)


def test_an_objective_needs_no_proof_of_optimality(monkeypatch):
    """A bound by curvature takes n d^2 operations, and says nothing of a model that is far from the optimum."""
    X = RNG.normal(size=(600, 600))
    y = (X[:, 0] + RNG.logistic(size=600) > 0.0).astype(int)
    model = fitted(LogisticRegression(max_iter=2), X, y)
    monkeypatch.delattr("linsep.certificates.verification.local_certificate")
    assert audit(model, X, y).relative_excess[0] > 0.01


@pytest.mark.parametrize("form", [np.asarray, sp.csr_array])
@pytest.mark.parametrize("classes", [2, 3])
def test_an_improved_svc_has_the_support_vectors_of_the_optimum(form, classes):
    X, y = WINE[0], np.array(["b", "a", "c"])[np.minimum(WINE[1], classes - 1)]
    X = np.where(np.abs(X) > 0.2, X, 0.0)
    model = fitted(SVC(kernel="linear", C=0.1, tol=0.5, class_weight={"a": 2.0}), form(X), y)
    before = audit(model, form(X), y)
    better = before.improve()
    after = audit(better, form(X), y)
    assert not before.optimal and after.optimal and type(better) is SVC
    tight = fitted(clone(model).set_params(tol=1e-9), form(X), y)
    assert better.n_support_.sum() == len(better.support_)
    for name in ("coef_", "dual_coef_"):
        found, wanted = getattr(better, name), getattr(tight, name)
        if sp.issparse(found):
            found, wanted = found.toarray(), wanted.toarray()
        if found.shape == wanted.shape:
            np.testing.assert_allclose(found, wanted, atol=2e-5)
    scores = better.decision_function(form(X))
    np.testing.assert_allclose(scores, tight.decision_function(form(X)), atol=1e-4)
    assert (better.predict(form(X)) == tight.predict(form(X))).all()


@pytest.mark.parametrize("model", [Ridge(alpha=0.3), LinearRegression(), Lasso(alpha=0.05)])
def test_several_targets_are_audited_together(model):
    X, t = DIABETES
    T = np.column_stack([t, t**2 / 300, X[:, 0] + t])
    found = audit(fitted(model, X, T), X, T)
    each = [audit(fitted(model, X, column), X, column) for column in T.T]
    assert math.isclose(found.objective, sum(one.objective for one in each), rel_tol=1e-9)
    coef = fitted(model, X, T)
    coef.coef_ = coef.coef_ * 1.1
    assert not audit(coef, X, T).optimal and audit(audit(coef, X, T).improve(), X, T).optimal
    with pytest.raises(BadInput, match="one entry for each"):
        audit(fitted(model, X, t), X, T)


@pytest.mark.parametrize(
    ("model", "error", "words"),
    [
        (PoissonRegressor(), Refused, "does not know the objective of PoissonRegressor"),
        (Ridge(positive=True), Refused, "positive=True"),
    ],
)
def test_what_it_cannot_audit(model, error, words):
    X, t = DIABETES
    with pytest.raises(error, match=words):
        audit(fitted(model, X, np.abs(t)), X, np.abs(t))


def test_bad_calls():
    X, y = CANCER
    with pytest.raises(BadInput, match="fitted linear model"):
        audit(LogisticRegression(), X, y)
    model = fitted(LogisticRegression(), X, y)
    with pytest.raises(BadInput, match="one entry for each of the 569 rows"):
        audit(model, X, y[:-1])
    with pytest.raises(BadInput, match="LogisticRegression knows its own"):
        audit(model, X, y, C=2.0)
    with pytest.raises(BadInput, match="this is coefficients"):
        audit((model.coef_, model.intercept_), X, y).improve()
    with pytest.raises(BadInput, match="a tuple of 1"):
        audit((model.coef_,), X, y)
    with pytest.raises(BadInput, match="fitted linear model, got SVC without coef_"):
        audit(fitted(SVC(), X, y), X, y)
    with pytest.raises(BadInput, match="it has none; audit takes kernel='linear'"):
        audit(fitted(SVC(), X, y), X, y)
    with pytest.raises(BadInput, match=r"LogisticRegression without coef_: call fit first\."):
        audit(type(model)(), X, y)


def test_huber_at_its_own_scale():
    X, t = DIABETES
    model = fitted(HuberRegressor(alpha=0.5), X, t)
    found = audit(model, X, t)
    z = (t - model.predict(X)) / model.scale_
    size = np.abs(z)
    each = np.where(size < model.epsilon, size**2, 2 * model.epsilon * size - model.epsilon**2)
    own = model.scale_ * each.sum() + 0.5 * 2 * half_squares(model.coef_)
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert_consistent(found)


@pytest.mark.parametrize("tol", [2, 1.0, 0.0, -1e-6, math.nan, "1e-6", True])
def test_a_tolerance_that_says_nothing_is_refused(tol):
    X, y = np.arange(6.0)[:, None], np.arange(6) > 2
    with pytest.raises(BadInput, match="tol must be a number between 0 and 1"):
        audit(LogisticRegression().fit(X, y), X, y, tol=tol)


def test_an_objective_far_below_the_rounding_of_its_margins():
    """Powers of 2,000: losses are exactly 0, and |w|^2/2 = 4e-67 is less than margins of 1 can be rounded to."""
    X = np.vander(np.arange(2000.0, 2016.0), 13, increasing=True)[:, 1:]
    y = np.where(np.arange(16) < 7, -1, 1)
    model = fitted(LinearSVC(C=1e3, intercept_scaling=0.1, max_iter=50), X, y)
    found = audit(model, X, y)
    assert found.minimum[1] <= found.minimum[0] * (1 + 1e-8)
    assert audit(found.improve(), X, y).optimal
