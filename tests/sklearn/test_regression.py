"""scikit-learn's regressions by linsep: their own objective at its minimum, their own shapes, and what is delegated."""

import logging
import pickle
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn import linear_model, svm
from sklearn.base import clone
from sklearn.datasets import load_diabetes
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.utils._test_common.instance_generator import _get_expected_failed_checks
from sklearn.utils.estimator_checks import check_estimator
from versions import needs_sklearn

import linsep.sklearn as ours
from linsep import audit
from linsep.penalties import ElasticNet as ElasticNetPenalty
from linsep.sklearn import fitting, huber, huber_newton, least_squares, ordinary
from linsep.sklearn.fitting import Delegated
from linsep.solvers.linalg import cg

X, Y = load_diabetes(return_X_y=True)
RAW, TARGET = load_diabetes(return_X_y=True, scaled=False)
RNG = np.random.default_rng(0)
COUNTS = RNG.integers(0, 4, len(Y)).astype(float)

#: Class, parameters, and what makes scikit-learn's own solver precise.
CASES = {
    "ridge": ("Ridge", {"alpha": 0.3}, {"solver": "svd"}),
    "ridge-no-intercept": ("Ridge", {"fit_intercept": False}, {"solver": "svd"}),
    "ridge-unpenalised": ("Ridge", {"alpha": 0.0}, {"solver": "svd"}),
    "least-squares": ("LinearRegression", {}, {}),
    "least-squares-no-intercept": ("LinearRegression", {"fit_intercept": False}, {}),
    "lasso": ("Lasso", {"alpha": 0.1}, {"tol": 1e-10, "max_iter": 100_000}),
    "elastic-net": ("ElasticNet", {"alpha": 0.01, "l1_ratio": 0.3}, {"tol": 1e-10}),
    "enet-no-intercept": ("ElasticNet", {"alpha": 0.01, "fit_intercept": False}, {"tol": 1e-10}),
    "median": ("QuantileRegressor", {"alpha": 0.0}, {}),
    "quantile": ("QuantileRegressor", {"quantile": 0.2, "alpha": 0.0}, {}),
    "quantile-l1": ("QuantileRegressor", {"quantile": 0.9, "alpha": 0.01}, {}),
    "median-default": ("QuantileRegressor", {}, {}),
    "quantile-no-intercept": ("QuantileRegressor", {"quantile": 0.7, "fit_intercept": False}, {}),
    "svr": ("LinearSVR", {}, {"tol": 1e-9, "max_iter": 10**6}),
    "svr-epsilon": (
        "LinearSVR",
        {"epsilon": 5.0, "C": 3.0, "intercept_scaling": 3.0},
        {"tol": 1e-9, "max_iter": 10**6},
    ),
    "svr-squared": (
        "LinearSVR",
        {"loss": "squared_epsilon_insensitive", "epsilon": 5.0, "dual": False, "tol": 1e-9},
        {},
    ),
    "sgd": ("SGDRegressor", {}, {}),
    "sgd-lasso": ("SGDRegressor", {"penalty": "l1", "alpha": 0.1}, {}),
    "sgd-huber": ("SGDRegressor", {"loss": "huber", "epsilon": 10.0}, {}),
    "sgd-epsilon": (
        "SGDRegressor",
        {"loss": "epsilon_insensitive", "epsilon": 3.0, "penalty": "elasticnet"},
        {},
    ),
    "sgd-squared-epsilon": ("SGDRegressor", {"loss": "squared_epsilon_insensitive"}, {}),
    "huber": ("HuberRegressor", {}, {"max_iter": 10**5, "tol": 1e-9}),
    "huber-unpenalised": ("HuberRegressor", {"alpha": 0.0, "epsilon": 2.0}, {"max_iter": 10**5}),
}
each = pytest.mark.parametrize("case", CASES)
REGRESSORS = sorted({name for name, _, _ in CASES.values()})


def theirs(name):
    return getattr(linear_model, name, None) or getattr(svm, name)


def pair(case):
    """Our model and scikit-learn's, the latter as precise as it can be."""
    name, parameters, precise = CASES[case]
    return getattr(ours, name)(**parameters), theirs(name)(**parameters, **precise)


def fitted(model, *data):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        return model.fit(*data)


def joint_huber(model, X, y, weight=None):
    """The objective of HuberRegressor as its documentation writes it."""
    s = np.ones(len(y)) if weight is None else weight
    z = np.abs(y - X @ model.coef_ - model.intercept_) / model.scale_
    H = np.where(z < model.epsilon, z**2, 2 * model.epsilon * z - model.epsilon**2)
    return s @ (model.scale_ + H * model.scale_) + model.alpha * model.coef_ @ model.coef_


@pytest.mark.sampled(23)
@each
@pytest.mark.parametrize("weighted", [False, True])
def test_no_objective_of_scikit_learn_is_lower(case, weighted):
    mine, other = pair(case)
    weight = COUNTS if weighted else None
    mine.fit(X, Y, sample_weight=weight)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", ConvergenceWarning)
        other.fit(X, Y, sample_weight=weight)
    proof = mine.certificate_
    assert proof.certified and proof.relative_gap <= 1e-6
    if case.startswith("huber"):
        value, reference = (joint_huber(model, X, Y, weight) for model in (mine, other))
    else:
        found, reference = (audit(model, X, Y, weight) for model in (mine, other))
        assert found.optimal
        value, reference = found.objective, reference.objective
    assert proof.primal == pytest.approx(value, rel=1e-10)
    assert proof.dual <= reference * (1 + 1e-12)
    assert value <= reference * (1 + 1e-9)


@each
def test_attributes_are_those_of_scikit_learn(case):
    mine, other = (fitted(model, X, Y) for model in pair(case))
    missing = {name for name in vars(other) if name not in vars(mine)}
    assert not missing
    assert {name for name in vars(mine) if name not in vars(other)} == {"certificate_"}
    for name, value in vars(other).items():
        if name.endswith("_"):
            assert np.shape(getattr(mine, name)) == np.shape(value), name
            assert np.asarray(getattr(mine, name)).dtype.kind == np.asarray(value).dtype.kind, name
            # scipy 1.18 counts rank_, documented as an int, in np.int64
            kind = int if isinstance(value, np.integer) else type(value)
            assert type(getattr(mine, name)) is kind, name
    np.testing.assert_array_equal(mine.predict(X[:5]).shape, other.predict(X[:5]).shape)


@each
def test_weights_are_repetitions(case):
    mine = pair(case)[0]
    rows = np.repeat(np.arange(len(Y)), COUNTS.astype(int))
    weighted = clone(mine).fit(X, Y, sample_weight=COUNTS)
    if case.startswith("sgd"):  # its loss is a mean over the rows, whatever they weigh
        mine.set_params(alpha=mine.alpha * len(Y) / len(rows))
    repeated = mine.fit(X[rows], Y[rows])
    a, b = weighted.predict(X), repeated.predict(X)
    assert np.abs(a - b).max() <= 1e-4 * np.abs(b).max()


@pytest.mark.parametrize("tol", [1e-2, 1e-4, 1e-6])
def test_conjugate_gradients_stop_at_the_gap_that_tol_asks_for(tol):
    rng = np.random.default_rng(1)
    rows = np.where(rng.uniform(size=(300, 80)) < 0.1, rng.uniform(size=(300, 80)), 0.0)
    rows[:, 0] += 50.0  # far from 0
    rows = sp.csr_array(rows)
    t, weight = RNG.normal(size=(300, 2)) + 30.0, 1.0 + (np.arange(300) % 3)
    asked = fitting.gap_tolerance(tol)
    for free in (True, False):
        found = least_squares.sparse_ridge(rows, t, weight, np.array([0.5, 3.0]), free, asked, tol)
        dense = ours.Ridge(alpha=np.array([0.5, 3.0]), fit_intercept=free).fit(
            rows.toarray(), t, weight
        )
        for part, column, best in zip(found.certificate.parts, found.W.T, dense.coef_, strict=True):
            assert part.relative_gap <= asked
            assert np.linalg.norm(column[:-1] - best) <= part.coef_error * (1.0 + 1e-6)


def test_conjugate_gradients_of_a_solved_system_end():
    at = cg.solve(lambda v: v, lambda r: r, np.ones(3), lambda at: False, 5)
    assert at.products == 1 and (at.x == 1.0).all() and not at.ended


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.parametrize("form", [sp.csr_matrix, sp.csc_array])
def test_sparse_rows_give_the_same_model(name, form):
    kind = getattr(ours, name)
    few = np.where(np.abs(X) > 0.03, X, 0.0)
    dense, sparse = kind().fit(few, Y), kind().fit(form(few), Y)
    assert sparse.certificate_.certified
    np.testing.assert_allclose(
        sparse.predict(few), dense.predict(few), rtol=1e-4, atol=1e-4 * np.abs(Y).max()
    )


@pytest.mark.parametrize("name", REGRESSORS)
def test_raw_columns_of_very_different_size(name):
    model = getattr(ours, name)().fit(RAW, TARGET)
    assert model.certificate_.certified
    if name != "HuberRegressor":
        assert audit(model, RAW, TARGET).optimal


@pytest.mark.parametrize(
    "name", ["Ridge", "LinearRegression", "Lasso", "ElasticNet", "SGDRegressor"]
)
def test_single_precision_stays_single(name):
    rows, t = X.astype(np.float32), Y.astype(np.float32)
    model, other = fitted(getattr(ours, name)(), rows, t), fitted(theirs(name)(), rows, t)
    assert model.coef_.dtype == np.float32 and model.certificate_.certified
    assert np.asarray(model.intercept_).dtype == np.asarray(other.intercept_).dtype
    assert model.predict(rows).dtype == other.predict(rows).dtype


@pytest.mark.parametrize("name", ["Ridge", "LinearRegression", "Lasso", "ElasticNet"])
@pytest.mark.parametrize("k", [1, 3])
def test_several_targets_have_a_certificate_each(name, k):
    Ys = np.column_stack([Y, Y**2 / 100, X[:, 0]])[:, :k]
    mine, other = getattr(ours, name)(), theirs(name)()
    if name in ("Lasso", "ElasticNet"):
        mine.set_params(alpha=1e-3, tol=1e-6)
        other.set_params(alpha=1e-3, tol=1e-10, max_iter=10**5)
    mine.fit(X, Ys)
    other.fit(X, Ys)
    assert mine.coef_.shape == other.coef_.shape
    assert np.shape(mine.intercept_) == np.shape(other.intercept_)
    np.testing.assert_allclose(mine.coef_, other.coef_, rtol=1e-4, atol=1e-6)
    assert len(mine.certificate_.parts) == (0 if k == 1 else k)


def test_of_several_least_squares_the_shortest():
    wide = RNG.normal(size=(20, 50))
    t = RNG.normal(size=20)
    mine, other = ours.LinearRegression().fit(wide, t), linear_model.LinearRegression().fit(wide, t)
    np.testing.assert_allclose(mine.coef_, other.coef_, atol=1e-10)
    assert mine.certificate_.certified and mine.rank_ == other.rank_ == 19
    np.testing.assert_allclose(mine.singular_, other.singular_, atol=1e-9)


@needs_sklearn("1.8", "keeps small singular values")
def test_collinear_columns_that_scikit_learn_gives_up():
    """Its least squares drop singular values below 1e-6 of the largest, and with them part of the fit."""
    a = RNG.normal(size=200)
    rows = np.column_stack([a, a + 1e-8 * RNG.normal(size=200)])
    t = rows @ [1e8, -1e8] + 0.1 * RNG.normal(size=200)
    mine, other = ours.LinearRegression().fit(rows, t), linear_model.LinearRegression().fit(rows, t)
    assert mine.certificate_.certified
    assert audit(mine, rows, t).objective < 0.1 * audit(other, rows, t).objective


def test_quantiles_hold_their_share_of_the_rows():
    for quantile in (0.1, 0.5, 0.95):
        model = ours.QuantileRegressor(quantile=quantile, alpha=0.0).fit(X, Y)
        assert np.mean(Y <= model.predict(X) + 1e-6) == pytest.approx(quantile, abs=0.03)


def test_strong_penalties_leave_exact_zeros():
    assert not ours.QuantileRegressor(alpha=100.0).fit(X, Y).coef_.any()
    assert not ours.Lasso(alpha=1e4).fit(X, Y).coef_.any()


@pytest.mark.parametrize(
    ("model", "reason"),
    [
        (lambda: ours.Ridge(positive=True), "positive=True"),
        (lambda: ours.Lasso(positive=True), "positive=True"),
        (lambda: ours.LinearRegression(positive=True), "positive=True"),
        (lambda: ours.ElasticNet(alpha=0.0), "alpha=0"),
        (lambda: ours.QuantileRegressor(solver_options={}), "solver_options"),
        (lambda: ours.LinearSVR(max_iter=5), "max_iter=5"),
        (lambda: ours.SGDRegressor(average=True), "average"),
        (lambda: ours.SGDRegressor(early_stopping=True), "early_stopping"),
        (lambda: ours.SGDRegressor(learning_rate="constant"), "constant"),
        (lambda: ours.SGDRegressor(max_iter=5), "max_iter=5"),
    ],
)
@pytest.mark.filterwarnings("ignore:With alpha=0:UserWarning")
def test_what_is_delegated_is_logged_and_fitted(model, reason, caplog):
    with caplog.at_level(logging.INFO, logger="linsep.sklearn"):
        made = fitted(model(), X, Y)
    assert reason in caplog.text and "fitted by scikit-learn" in caplog.text
    assert made.coef_.shape == (X.shape[1],) and not hasattr(made, "certificate_")


@pytest.mark.parametrize("alpha", [0.0, 1e-4, 1.0])
@pytest.mark.parametrize("fit_intercept", [True, False])
def test_no_scale_and_no_coefficients_are_below_the_bound(alpha, fit_intercept):
    for rows in (X, sp.csr_array(X), X.astype(np.float32)):
        model = ours.HuberRegressor(alpha=alpha, fit_intercept=fit_intercept).fit(rows, Y)
        proof, moved = model.certificate_, clone(model)
        assert proof.relative_gap < 1e-7
        rng = np.random.default_rng(0)
        for size in (1e-6, 1e-4, 1e-2):
            moved.coef_ = model.coef_ * (1.0 + size * rng.normal(size=10))
            moved.intercept_ = model.intercept_ * (1.0 + size * rng.normal())
            moved.scale_ = model.scale_ * (1.0 + size * rng.normal())
            exact = np.asarray(X.astype(rows.dtype), np.float64)
            assert joint_huber(moved, exact, Y) >= proof.dual
    problem = huber._Problem(X, Y, np.ones(len(Y)), model)
    at, _ = huber_newton.minimise(problem.regression)
    with pytest.raises(Delegated, match="only a relative gap of"):
        problem.proof(at._replace(scale=1.01 * at.scale))


def test_an_exact_fit_has_no_scale(caplog):
    with caplog.at_level(logging.INFO, logger="linsep.sklearn"):
        fitted(ours.HuberRegressor(), X, X @ np.arange(10.0))
    assert "the scale tends to 0" in caplog.text


def test_a_gram_matrix_and_a_warm_start_make_no_difference():
    plain = ours.ElasticNet(alpha=0.01).fit(X, Y)
    given = ours.ElasticNet(alpha=0.01, precompute=(X - X.mean(axis=0)).T @ (X - X.mean(axis=0)))
    np.testing.assert_array_equal(fitted(given, X, Y).coef_, plain.coef_)
    plain.set_params(warm_start=True).fit(X, Y)
    assert plain.n_iter_ == 0
    np.testing.assert_array_equal(plain.coef_, given.coef_)


@pytest.mark.sampled(3)
@pytest.mark.parametrize("alpha", [0.5, 0.05, 1e-3])
@pytest.mark.parametrize("ratio", [1.0, 0.5])
def test_working_sets_of_dense_columns(alpha, ratio):
    rng = np.random.default_rng(1)
    Z = rng.normal(size=(300, 400)) + 0.5 * rng.normal(size=(300, 1)) + 3.0
    t = Z[:, :9] @ rng.normal(size=9) + rng.normal(size=300)
    assert Z.size > ordinary.SMALL
    mine = ours.ElasticNet(alpha=alpha, l1_ratio=ratio).fit(Z, t)
    proof, audited = mine.certificate_, audit(mine, Z, t)
    assert proof.certified and audited.optimal
    assert proof.primal == pytest.approx(audited.objective, rel=1e-10)
    other = fitted(linear_model.ElasticNet(alpha=alpha, l1_ratio=ratio, tol=1e-6), Z, t)
    assert proof.dual <= audit(other, Z, t).objective * (1 + 1e-12)
    penalty, none = ElasticNetPenalty(1 / (600 * alpha), ratio), np.where(Z == Z.max(), np.nan, Z)
    assert least_squares.elastic_net(none, t, penalty, True, 1e-6) is None


def test_descent_goes_on_from_the_minimum():
    model = ours.SGDRegressor().fit(X, Y)
    before = model.coef_.copy()
    model.partial_fit(X[:20], Y[:20])
    assert not np.array_equal(before, model.coef_) and not hasattr(model, "certificate_")


@pytest.mark.parametrize("name", REGRESSORS)
def test_clones_pickles_and_searches(name):
    model = getattr(ours, name)()
    assert clone(model).get_params() == theirs(name)().get_params()
    assert type(model).__init__ is theirs(name).__init__
    again = pickle.loads(pickle.dumps(fitted(model, X, Y)))
    np.testing.assert_array_equal(again.predict(X), model.predict(X))
    search = GridSearchCV(model, {"fit_intercept": [True, False]}, cv=2).fit(X, Y)
    assert search.best_estimator_.certificate_.certified


@pytest.mark.parametrize("name", REGRESSORS)
@pytest.mark.filterwarnings("ignore")
def test_scikit_learn_accepts_the_estimator(name):
    known = dict(_get_expected_failed_checks(theirs(name)()))
    if (
        name == "HuberRegressor"
    ):  # fewer rows than features: the scale tends to 0, and scikit-learn has to fit
        for kind in ("dense", "sparse"):
            known[f"check_sample_weight_equivalence_on_{kind}_data"] = "fitted by scikit-learn"
    check_estimator(getattr(ours, name)(), on_skip=None, expected_failed_checks=known)
