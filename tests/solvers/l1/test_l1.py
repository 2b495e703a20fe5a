"""Absolute penalties: optimality conditions, certificates by other code, supports, limits."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from catalogue import (
    SMOOTH,
    Quartic,
    dense,
    duplicate,
    naming,
    nearly_separable,
    plain,
    unscaled,
    wide,
)
from duality import recheck
from sklearn.datasets import load_breast_cancer, load_diabetes
from sklearn.linear_model import Lasso
from tuned import tuning

from linsep import (
    ConvergenceWarning,
    LinearClassifier,
    LinearRegressor,
    LogisticRegression,
    _kernels,
    losses,
    path,
    tune,
    verify,
)
from linsep.data import Memory
from linsep.errors import CertificateError, Refused
from linsep.interrupts import OutOfTime
from linsep.losses import SquaredHinge
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Linearised, Status, Stop
from linsep.solvers.l1 import coordinate, prox_newton, working_set
from linsep.solvers.null_model import null_model
from linsep.solvers.run import Run, linearised
from linsep.train import Recipe, train


def fit(sample, loss="logistic", C=1.0, l1_ratio=1.0, **options):
    data = sample.memory(n_threads=options.pop("n_threads", None))
    recipe = Recipe(losses.get(loss), ElasticNet(C, l1_ratio), **options)
    return train(recipe, data, warn=False)


def violation(sample, found):
    """Largest violation of the optimality conditions, as a share of the penalty."""
    recipe, theta = found.recipe, found.W[:, 0]
    X = dense(sample.X)
    s = 1.0 if sample.weight is None else sample.weight
    o = 0.0 if sample.offset is None else sample.offset
    slope = s * sample.sign * recipe.loss.slope(sample.sign * (X @ theta[:-1] + theta[-1]) + o)
    g = X.T @ slope + recipe.penalty.l2 * theta[:-1]
    l1 = recipe.penalty.l1
    on = theta[:-1] != 0
    away = np.maximum(np.abs(g) - l1, 0.0)
    away[on] = np.abs(g + l1 * np.sign(theta[:-1]))[on]
    return away.max() / l1, abs(np.sum(slope)) / l1


@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
@pytest.mark.parametrize("C", [0.05, 1.0, 50.0])
@pytest.mark.parametrize("loss", SMOOTH, ids=naming)
def test_optimal_and_proven_by_code_that_shares_nothing(loss, C, l1_ratio):
    sample = plain(n=200, d=6, seed=3)
    if loss.regression and not loss.classification:
        sample = replace(sample, sign=np.ones(200), offset=1.0 - sample.X[:, 0] - sample.sign)
    found = fit(sample, loss, C, l1_ratio, tol=1e-8)
    assert found.certificate.certified, found.certificate
    assert recheck(found, sample).certified
    at_features, at_intercept = violation(sample, found)
    # the objective is known to 1e-8, conditions to its root
    assert at_features <= 1e-3 * max(1.0, C) and at_intercept <= 1e-3 * max(1.0, C)


@pytest.mark.parametrize("maker", [wide, duplicate, unscaled, nearly_separable])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.2])
@pytest.mark.parametrize("C", [0.1, 10.0])
def test_hostile_rows_are_certified(maker, C, l1_ratio):
    sample = maker()
    # columns of size 1e6: rounding of v_j alone may be 2e-5 of the penalty
    tol = 1e-4 if maker is unscaled else 1e-6
    for loss in ("logistic", "squared_hinge"):
        found = fit(sample, loss, C, l1_ratio, tol=tol)
        assert found.certificate.certified, (loss, found.certificate)
        assert recheck(found, sample).certified


def test_the_lasso_of_scikit_learn_has_the_same_minimum():
    X, t = load_diabetes(return_X_y=True)
    alpha = 0.5  # |r|^2 / (2 n) + alpha |w|_1: with loss r^2, C = 1 / (2 n alpha)
    model = LinearRegressor(C=1 / (2 * len(t) * alpha), l1_ratio=1.0, tol=1e-10).fit(X, t)
    other = Lasso(alpha=alpha, tol=1e-12, max_iter=100_000).fit(X, t)
    assert np.allclose(model.coef_, other.coef_, rtol=1e-5, atol=1e-5 * np.abs(other.coef_).max())
    assert np.array_equal(model.coef_ != 0, other.coef_ != 0)
    assert verify(model, X, t).certified


def test_a_strong_penalty_leaves_the_intercept_alone():
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(0)) / X.std(0)
    p = y.mean()
    top = np.abs(X.T @ (y - p)).max()  # |gradient| of the null model
    none = LogisticRegression(C=0.999 / top, l1_ratio=1.0).fit(X, y)
    assert not none.coef_.any()
    assert np.isclose(none.intercept_[0], np.log(p / (1 - p)), rtol=1e-3)
    some = LogisticRegression(C=1.01 / top, l1_ratio=1.0).fit(X, y)
    assert np.count_nonzero(some.coef_) >= 1
    assert none.certificate_.certified and some.certificate_.certified


def text(n=300, d=2_000, seed=0):
    rng = np.random.default_rng(seed)
    X = sp.random(n, d, 0.02, format="csr", random_state=seed)
    w = np.zeros(d)
    w[:30] = rng.normal(size=30) * 10
    return X, np.where(X @ w + 0.3 * rng.normal(size=n) > 0, 1.0, -1.0)


def test_working_sets_on_many_features():
    X, y = text()
    for C, l1_ratio in ((5.0, 1.0), (100.0, 1.0), (20.0, 0.5)):
        model = LogisticRegression(C=C, l1_ratio=l1_ratio).fit(X, y)
        assert model.certificate_.certified
        assert verify(model, X, y).certified
        full = LogisticRegression(C=C, l1_ratio=l1_ratio).fit(X.toarray(), y)
        a, b = model.certificate_, full.certificate_
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-9)
        assert 0 < np.count_nonzero(model.coef_) < 1_000


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "exponential"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_columns_of_many_features_by_code_that_shares_nothing(loss, l1_ratio):
    X, y = text(n=200, d=600, seed=4)
    weight = np.random.default_rng(0).integers(0, 3, size=200).astype(float)
    sample = replace(plain(n=200, d=2), X=X, sign=y, weight=weight)
    found = fit(sample, loss, 3.0, l1_ratio, tol=1e-8)
    assert found.certificate.certified and recheck(found, sample).certified
    at_features, at_intercept = violation(sample, found)
    # the objective is known to 1e-8, conditions to its root
    assert at_features <= 3e-3 and at_intercept <= 3e-3


def test_csr_csc_dense_and_single_precision_have_one_minimum():
    X, y = text(n=200, d=600, seed=5)
    one = LogisticRegression(C=10.0, l1_ratio=1.0, tol=1e-9).fit(X, y)
    long = X.copy()
    long.indices, long.indptr = long.indices.astype(np.int64), long.indptr.astype(np.int64)
    for other in (sp.csc_matrix(X), X.toarray(), np.asfortranarray(X.toarray()), long):
        model = LogisticRegression(C=10.0, l1_ratio=1.0, tol=1e-9).fit(other, y)
        assert np.allclose(model.coef_, one.coef_, atol=1e-4 * np.abs(one.coef_).max())
        assert verify(model, other, y).certified
    for single in (X.astype(np.float32), X.astype(np.float32).toarray()):
        model = LogisticRegression(C=10.0, l1_ratio=1.0).fit(single, y)
        assert verify(model, single, y).certified


def test_a_strong_penalty_on_many_features_is_proven_to_leave_none():
    X, y = text(n=200, d=600, seed=6)
    top = np.abs(X.T @ ((y > 0) - (y > 0).mean())).max()
    none = LogisticRegression(C=0.999 / top, l1_ratio=1.0).fit(X, y)
    assert not none.coef_.any() and verify(none, X, y).certified
    assert LogisticRegression(C=1.02 / top, l1_ratio=1.0).fit(X, y).coef_.any()


@pytest.mark.sampled(3)
@pytest.mark.parametrize("seed", range(6))
def test_a_few_features_are_certified_where_the_gap_rounds_below_zero(seed):
    X, y = text(n=120, d=600, seed=seed)
    top = np.abs(X.T @ (2.0 * y * (1.0 - y * y.mean()))).max()
    for times in (1.1, 1.3, 2.0, 3.0):
        few = LinearClassifier("squared_hinge", C=times / top, l1_ratio=1.0).fit(X, y)
        assert few.coef_.any() and verify(few, X, y).certified


def test_that_no_feature_enters_takes_one_pass():
    X, y = text(n=200, d=600, seed=6)
    top = np.abs(X.T @ ((y > 0) - (y > 0).mean())).max()
    none = LogisticRegression(C=0.5 / top, l1_ratio=1.0).fit(X, y)
    assert none.n_passes_ == 1 and verify(none, X, y).certified


@pytest.mark.parametrize("loss", ["logistic", "squared_hinge", "squared", "exponential"])
@pytest.mark.parametrize("l1_ratio", [1.0, 0.5])
def test_one_native_call_and_the_general_road_have_one_minimum(loss, l1_ratio):
    rng = np.random.default_rng(11)
    sample = plain(n=300, d=20, seed=11)
    sample = replace(sample, weight=rng.integers(0, 3, size=300).astype(float))
    for X in (sample.X, sp.csr_matrix(np.where(np.abs(sample.X) > 1, sample.X, 0.0))):
        for C in (0.02, 2.0, 200.0):
            given = replace(sample, X=X)
            one = fit(given, loss, C, l1_ratio)
            with tuning(native_l1_entries=0):
                other = fit(given, loss, C, l1_ratio)
            assert one.certificate.certified and recheck(one, given).certified
            a, b = one.certificate, other.certificate
            assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-9)


def test_a_weak_penalty_on_many_features_keeps_hundreds_of_them():
    rng = np.random.default_rng(12)
    X = sp.random(400, 3_000, 0.03, format="csr", random_state=12)
    # Noise: the support is as large as the rows allow.
    y = np.where(rng.random(400) < 0.5, 1.0, -1.0)
    for given in (X, X.toarray()):
        model = LogisticRegression(C=3e4, l1_ratio=1.0).fit(given, y)
        assert np.count_nonzero(model.coef_) > 150
        assert verify(model, given, y).certified


@pytest.mark.parametrize("negative", [False, True])
def test_the_spread_bounds_every_sum_of_absolute_terms(negative):
    sample = plain(n=400, d=7)
    X = sample.X if negative else np.abs(sample.X)
    weight = np.random.default_rng(0).random(400)
    for rows in (X, sp.csr_matrix(X)):
        given = replace(sample, X=rows, weight=weight)
        problem = Problem(losses.get("logistic"), ElasticNet(1.0, 1.0), given.memory())
        theta = np.random.default_rng(1).normal(size=8)
        sums = problem.closing(theta, Linearised(theta.reshape(-1, 1), np.zeros((8, 1))))
        u = -losses.get("logistic").slope(sample.sign * (X @ theta[:-1] + theta[-1]))
        terms = np.abs((weight * u) @ np.abs(X))
        assert problem.largest_entry(sums) >= terms.max()


def test_nearly_no_absolute_part_is_the_ridge():
    X, y = text(n=100, d=300, seed=7)
    ridge = LogisticRegression(C=1.0, tol=1e-10).fit(X, y)
    nearly = LogisticRegression(C=1.0, l1_ratio=1e-8, tol=1e-10).fit(X, y)
    assert np.allclose(ridge.coef_, nearly.coef_, atol=1e-4)


def test_threads_and_tampering_on_many_features():
    X, y = text(n=200, d=600, seed=8)
    models = [
        LogisticRegression(C=20.0, l1_ratio=1.0, n_threads=threads).fit(X, y) for threads in (1, 3)
    ]
    assert np.array_equal(models[0].coef_, models[1].coef_)
    models[0].coef_ = np.where(models[0].coef_ != 0, models[0].coef_ + 1e-2, 0.0)
    with pytest.raises(CertificateError):
        verify(models[0], X, y)


def test_a_path_is_certified_at_every_strength():
    X, y = text(n=200, d=600, seed=9)
    Cs = [0.5, 5.0, 50.0]
    found = path(LogisticRegression(l1_ratio=1.0), X, y, Cs)
    assert all(certificate.certified for certificate in found.certificates)
    apart = [LogisticRegression(C=C, l1_ratio=1.0).fit(X, y).certificate_ for C in Cs]
    for a, b in zip(found.certificates, apart, strict=True):
        assert max(a.dual, b.dual) <= min(a.primal, b.primal) * (1 + 1e-9)


def test_rounding_of_long_sums_does_not_stand_in_the_way():
    rng = np.random.default_rng(3)
    X = sp.csr_matrix((rng.random((60_000, 6)) < 0.5).astype(float))
    y = np.where(X @ rng.normal(size=6) + rng.logistic(size=60_000) > 0, 1.0, -1.0)
    model = LogisticRegression(C=300.0, l1_ratio=1.0).fit(X, y)
    assert model.certificate_.certified, model.certificate_
    # the allowance covers the worst case, and verify agrees
    assert 0.0 < model.certificate_.rounding <= 0.9e-6 * model.certificate_.primal
    assert verify(model, X, y).certified


def test_weight_two_is_the_row_twice_and_zero_is_none():
    sample = plain(n=120, d=5)
    weight = np.array([0.0, 1.0, 2.0])[np.arange(120) % 3]
    rows = np.repeat(np.arange(120), weight.astype(int))
    a = fit(replace(sample, weight=weight), tol=1e-11)
    b = fit(replace(sample, X=sample.X[rows], sign=sample.sign[rows]), tol=1e-11)
    assert np.allclose(a.W, b.W, atol=1e-6)
    assert np.isclose(a.certificate.primal, b.certificate.primal, rtol=1e-10)


def test_any_number_of_threads_gives_the_same_bits():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40_000, 30))
    sign = np.where(X[:, 0] - X[:, 1] + rng.normal(size=40_000) > 0, 1.0, -1.0)
    answers = []
    for threads in (1, 2, 5):
        data = Memory(X, sign, n_threads=threads)
        answers.append(
            train(Recipe(losses.get("logistic"), ElasticNet(0.01, 1.0)), data, warn=False).W
        )
        data.close()
    assert all(np.array_equal(answers[0], other) for other in answers[1:])


def test_no_intercept_and_warm_start():
    sample = plain(n=150, d=5)
    data = sample.memory()
    recipe = Recipe(losses.get("logistic"), ElasticNet(1.0, 0.7), fit_intercept=False)
    cold = train(recipe, data)
    assert cold.W[-1, 0] == 0.0 and recheck(cold, sample).certified
    warm = train(recipe, data, cold.W)
    assert warm.n_passes <= cold.n_passes and warm.certificate.certified


def test_limits_end_with_an_honest_gap():
    X, y = text()
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = LogisticRegression(C=100.0, l1_ratio=1.0, max_passes=3.0).fit(X, y)
    assert not model.certificate_.certified
    assert model.certificate_.primal >= model.certificate_.dual >= 0.0


@pytest.mark.parametrize("C", [1e-3, 0.3, 3.0])
@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_straight_tails_on_many_sparse_features(C, l1_ratio):
    rng = np.random.default_rng(1)
    X = sp.random(500, 1500, 0.02, "csr", random_state=1)
    # few of one class: without features all the others lie on the straight tail or beyond the kink
    y = np.where(X @ rng.normal(size=1500) + 0.3 * rng.normal(size=500) > 0.8, 1.0, -1.0)
    model = LinearClassifier("huberised_hinge", C=C, l1_ratio=l1_ratio).fit(X, y)
    assert model.solver_ == "working-set"
    assert verify(model, X, y).certified


@pytest.mark.sampled(1)
@pytest.mark.parametrize("C", [0.3, 1.0, 3.0])
def test_features_whose_rows_are_all_on_straight_tails_may_enter(C):
    rng = np.random.default_rng(0)
    X = sp.random(250, 1_000, 0.02, format="csr", random_state=0)
    # Most rows that are not 0 are far beyond the width.
    target = 20.0 * (X[:, :15] @ rng.normal(size=15))
    model = LinearRegressor("huber", C=C, l1_ratio=1.0).fit(X, target)
    assert model.coef_.any() and verify(model, X, target).certified


def _common_factors(n, d, noise, seed=0):
    """Columns that share three factors, and labels of a linear model."""
    rng = np.random.default_rng(seed)
    X = 0.3 * rng.standard_normal((n, d))
    X += rng.standard_normal((n, 3)) @ rng.standard_normal((3, d))
    z = X @ rng.standard_normal(d)
    return X, np.where(z / z.std() + noise * rng.standard_normal(n) > 0, 1.0, -1.0)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_correlated_features_that_nearly_all_enter_take_few_passes(l1_ratio):
    X, y = _common_factors(2_000, 200, 0.5)
    model = LinearClassifier("logistic", C=1e3, l1_ratio=l1_ratio).fit(X, y)
    assert model.certificate_.certified
    assert np.count_nonzero(model.coef_) > 100
    assert model.n_passes_ < 60  # coordinate descent takes thousands


def test_coordinate_descent_leaves_correlated_features_to_newtons_method_in_time():
    X, y = _common_factors(200, 1_100, 1.0)
    passes = {}
    for budget in (0.5, np.inf):
        problem = Problem(losses.get("logistic"), ElasticNet(30.0, 1.0), Memory(X, y), True)
        run = Run(problem, Stop(1e-6))
        null, _ = null_model(problem)
        run.close(null, linearised(null, np.zeros_like(null)))
        coordinate.solve(run, null, budget)
        passes[budget] = problem.passes
    assert passes[0.5] < 0.5 * passes[np.inf]
    assert LinearClassifier("logistic", C=30.0, l1_ratio=1.0).fit(X, y).certificate_.certified


def test_few_separated_features_take_the_central_path():
    X, y = _common_factors(900, 17, 0.0)
    model = LinearClassifier("squared_hinge", C=1e4, l1_ratio=1.0).fit(X, y)
    assert model.certificate_.certified


def test_giving_up_is_not_called_rounding(tuned):
    X, y = text(n=200, d=600, seed=6)
    tuned(coordinate_rounds=1, working_set_rounds=0, interior_l1_limit=1)
    with pytest.warns(ConvergenceWarning, match="stalled.*Lower C"):
        model = LinearClassifier("squared_hinge", C=1e3, l1_ratio=1.0).fit(X, y)
    assert model.coef_.any() and model.certificate_.relative_gap > 1e-4


def test_a_limit_leaves_the_weights_reached_and_not_those_of_the_start():
    rng = np.random.default_rng(0)
    X = sp.random(400, 2000, 0.02, "csr", random_state=0)
    y = np.where(X @ rng.normal(size=2000) + 0.1 * rng.normal(size=400) > 0, 1.0, -1.0)
    settings = {"C": 1000.0, "l1_ratio": 1.0}
    best = LogisticRegression(**settings).fit(X, y)
    assert best.solver_ == "working-set"
    with pytest.warns(ConvergenceWarning, match="max_passes"):
        model = LogisticRegression(**settings, max_passes=0.5 * best.n_passes_).fit(X, y)
    assert (model.coef_ != 0).any()
    nothing = settings["C"] * 400 * np.log(2.0)  # about what the best intercept alone leaves
    assert best.certificate_.primal <= model.certificate_.primal <= 0.1 * nothing


def test_the_choice_is_refused_where_it_makes_no_sense():
    X, y = load_breast_cancer(return_X_y=True)
    with pytest.raises(Refused, match="l1_ratio=0"):
        LogisticRegression(l1_ratio=0.5, solver="newton").fit(X, y)
    with pytest.raises(Refused, match="l1_ratio > 0"):
        LogisticRegression(solver="working-set").fit(X, y)
    with pytest.raises(Refused, match=r"small-l1.*l1_ratio > 0"):
        LogisticRegression(solver="small-l1").fit(X, y)
    with pytest.raises(Refused, match=r"at most 150 features.*working-set"):
        LogisticRegression(l1_ratio=1.0, solver="small-l1").fit(np.hstack([X] * 6), y)


@pytest.mark.parametrize("l1_ratio", [0.5, 1.0])
def test_the_native_fit_and_working_sets_have_names_of_their_own_and_agree(l1_ratio):
    X, y = load_breast_cancer(return_X_y=True)
    X = (X - X.mean(axis=0)) / X.std(axis=0)
    found = {}
    for solver in ("auto", "small-l1", "working-set"):
        model = LogisticRegression(0.1, l1_ratio=l1_ratio, solver=solver, tol=1e-9).fit(X, y)
        assert model.certificate_.certified
        found[solver] = model
    assert [m.solver_ for m in found.values()] == ["small-l1", "small-l1", "working-set"]
    assert np.array_equal(found["auto"].coef_, found["small-l1"].coef_)
    assert np.allclose(found["auto"].coef_, found["working-set"].coef_, atol=1e-4)
    many = LogisticRegression(0.1, l1_ratio=l1_ratio).fit(np.hstack([X] * 6), y)
    assert many.solver_ == "working-set"


def test_losses_written_in_python_take_it_too():
    sample = plain(n=100, d=4)
    model = LinearClassifier(Quartic(), C=1.0, l1_ratio=0.5).fit(sample.X, sample.sign)
    assert verify(model, sample.X, sample.sign).certified


def test_a_grid_of_strengths_with_an_absolute_penalty():
    X, y = load_breast_cancer(return_X_y=True)
    tuning = tune(LogisticRegression(l1_ratio=1.0), X[:, :6], y, [0.01, 1.0], cv=3)
    assert tuning.certified and tuning.best_C in (0.01, 1.0)


def test_the_quadratic_with_an_absolute_penalty():
    rng = np.random.default_rng(1)
    for k in (1, 3, 8, 40):
        A = rng.normal(size=(k + 5, k))
        S, q, w, l1 = A.T @ A, 3 * rng.normal(size=k), rng.normal(size=k), 1.5

        def value(x, S=S, q=q, w=w, l1=l1):
            return q @ (x - w) + 0.5 * (x - w) @ S @ (x - w) + l1 * np.abs(x).sum()

        x = prox_newton.minimise(S, q, w, l1, exact=True)
        g = q + S @ (x - w)
        assert (np.abs(g[x == 0]) <= l1 * (1 + 1e-8)).all()
        assert np.allclose(g[x != 0], -l1 * np.sign(x[x != 0]), rtol=1e-8)
        rough = prox_newton.minimise(S, q, w, l1, exact=False)
        assert value(x) <= value(rough) < value(w)


def test_coordinate_descent_keeps_the_slope_of_the_quadratic():
    rng = np.random.default_rng(2)
    A = rng.normal(size=(30, 11))
    S = A.T @ A
    x, slope = np.zeros(11), rng.normal(size=11)
    start = slope.copy()
    assert _kernels.quadratic_cd(S, 0.4, 1e-10, 10_000, x, slope) > 0
    assert np.allclose(slope, start + S @ x)
    assert (np.abs(slope) <= 0.4 + 1e-8).all()
    assert _kernels.quadratic_cd(S, 0.4, 0.0, 3, np.zeros(11), start.copy()) < 0


@pytest.mark.parametrize("seed", range(3))
def test_more_prox_newton_steps_never_return_a_higher_point(seed):
    """A point with a smaller gap may have a much larger objective; it must not be the start of the next call."""
    rng = np.random.default_rng(seed)
    X = rng.standard_normal((1500, 120)) * 10.0 ** rng.uniform(-3, 3, 120)
    z = X @ (rng.standard_normal(120) / np.abs(X).mean(axis=0))
    data = Memory(X, np.where(z > 0.0, 1.0, -1.0), None, None)
    values = []
    for steps in (40, 60, 80):
        problem = Problem(SquaredHinge(), ElasticNet(1e4, 1.0), data)
        theta = prox_newton.solve(problem, np.zeros(121), 1e-9, lambda: None, steps).theta
        values.append(prox_newton.total(problem, theta, problem.value_gradient(theta)[0]))
    assert values == sorted(values, reverse=True)


def test_a_time_limit_during_the_central_path_keeps_the_point_of_descent(monkeypatch):
    rng = np.random.default_rng(0)
    X = rng.standard_normal((200, 600))
    data = Memory(X, np.where(X[:, 0] + 0.3 * X[:, 1] > 0.0, 1.0, -1.0), None, None)
    problem = Problem(SquaredHinge(), ElasticNet(10.0, 1.0), data)

    def out_of_time(run, columns):
        raise OutOfTime

    monkeypatch.setattr(coordinate.Columns, "stalled", True)
    monkeypatch.setattr(coordinate.interior_l1, "finish", out_of_time)
    found = working_set.solve(problem, np.zeros(601), Stop(1e-9))
    assert found.status is Status.TIME_LIMIT
    theta = np.ascontiguousarray(found.W[:, 0])
    value = prox_newton.total(problem, theta, problem.value_gradient(theta)[0])
    assert value < 0.5 * null_model(problem)[1]


def test_the_central_path_takes_over_after_two_unfinished_calls(monkeypatch):
    """With a squared hinge on nearly separable rows, prox-Newton may need hundreds of steps."""
    rng = np.random.default_rng(1)
    X = rng.standard_normal((400, 30))
    data = Memory(X, np.where(X @ rng.standard_normal(30) > 0.0, 1.0, -1.0), None, None)
    calls, full = [], prox_newton.solve

    def three_steps(problem, theta, tol, check, steps=3, mu=None):
        calls.append(problem.data.n)
        return full(problem, theta, tol, check, min(steps, 3), mu)

    monkeypatch.setattr(working_set.prox_newton, "solve", three_steps)
    problem = Problem(SquaredHinge(), ElasticNet(1e3, 1.0), data)
    found = working_set.solve(problem, np.zeros(31), Stop(1e-6))
    assert calls.count(400) == working_set.CALLS
    assert found.status is Status.CERTIFIED
