"""penalty_factor and feature_groups on the estimators: laws, references, files, refusals."""

import copy
import math
from dataclasses import replace

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize
from sklearn.base import clone
from tampering import alterations

import linsep
from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    verify,
)
from linsep.errors import BadInput, CertificateError, LinsepError, Refused, SeparableData

D = 6


def rows(n=150, seed=0):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, D)) + 0.2
    w = rng.normal(size=D)
    z = X @ w + rng.normal(size=n)
    return X, np.where(z > 0.3, "yes", "no"), z


FACTOR = np.array([0.5, 1.0, 4.0, 2.0, 0.1, 1.0])
FREE = np.array([0.0, 1.0, 4.0, 0.0, 0.1, 1.0])
GROUPS = np.array([0, 0, 1, 1, 1, 2])

MODELS = {
    "logistic": lambda **k: LogisticRegression(C=0.3, **k),
    "logistic-l1": lambda **k: LogisticRegression(C=0.3, l1_ratio=1.0, **k),
    "logistic-net": lambda **k: LogisticRegression(C=0.3, l1_ratio=0.5, **k),
    "svc": lambda **k: LinearSVC(C=0.3, **k),
    "svc-squared": lambda **k: LinearSVC(C=0.3, loss="squared_hinge", **k),
    "classifier-l1": lambda **k: LinearClassifier("squared_hinge", C=0.1, l1_ratio=1.0, **k),
    "regressor": lambda **k: LinearRegressor(C=0.3, **k),
    "regressor-l1": lambda **k: LinearRegressor(C=0.05, l1_ratio=1.0, **k),
    "regressor-absolute": lambda **k: LinearRegressor("absolute", C=0.3, **k),
}


def fitted(name, X=None, **k):
    own, y, z = rows()
    target = z if name.startswith("regressor") else y
    return MODELS[name](**k).fit(own if X is None else X, target), target


@pytest.mark.sampled(14)
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("factor", [FACTOR, FREE], ids=["positive", "some zero"])
@pytest.mark.parametrize("kind", ["dense", "sparse", "float32"])
def test_certified_verified_saved(name, factor, kind, tmp_path):
    """What is certified is confirmed in numpy, in exact arithmetic, and of the model read back."""
    X = rows()[0]
    X = {"dense": X, "sparse": sp.csr_matrix(X), "float32": X.astype(np.float32)}[kind]
    model, target = fitted(name, X, penalty_factor=factor)
    assert model.certificate_.certified
    assert verify(model, X, target).certified
    assert verify(model, X, target, exact=True).certified
    linsep.save(model, tmp_path / "model.linsep")
    read = linsep.load(tmp_path / "model.linsep")
    assert np.array_equal(read.penalty_factor, factor)
    assert np.array_equal(read.coef_, model.coef_)
    assert verify(read, X, target).certified


@pytest.mark.parametrize("name", MODELS)
def test_factors_of_one_are_the_plain_fit(name):
    plain, _ = fitted(name)
    same, _ = fitted(name, penalty_factor=np.ones(D))
    assert np.array_equal(plain.coef_, same.coef_)
    assert same.certificate_ == plain.certificate_


@pytest.mark.parametrize("name", ["logistic", "svc", "svc-squared", "regressor"])
def test_a_factor_of_four_is_the_column_halved(name):
    """p w^2 with p = 4 is the penalty of w' = 2 w, whose column is x/2."""
    X = rows()[0]
    model, _ = fitted(name, penalty_factor=np.full(D, 4.0))
    halved, _ = fitted(name, X / 2)
    assert np.allclose(model.coef_, halved.coef_ / 2, rtol=1e-5, atol=1e-7)
    assert model.certificate_.primal == pytest.approx(halved.certificate_.primal, rel=2e-6)


@pytest.mark.parametrize("name", ["logistic-l1", "classifier-l1", "regressor-l1"])
def test_a_lasso_factor_is_the_column_divided(name):
    X = rows()[0]
    model, _ = fitted(name, penalty_factor=FACTOR)
    divided, _ = fitted(name, X / FACTOR)
    assert model.certificate_.primal == pytest.approx(divided.certificate_.primal, rel=2e-6)
    assert np.allclose(model.coef_, divided.coef_ / FACTOR, atol=1e-4)


@pytest.mark.parametrize("factor", [FACTOR, FREE], ids=["positive", "some zero"])
def test_ridge_against_scipy(factor):
    """Logistic regression by BFGS on the objective as documented."""
    X, y, _ = rows()
    sign = np.where(y == "yes", 1.0, -1.0)

    def objective(theta):
        m = sign * (X @ theta[:-1] + theta[-1])
        value = 0.5 * factor @ theta[:-1] ** 2 + 0.3 * np.logaddexp(0.0, -m).sum()
        push = -0.3 * sign / (1.0 + np.exp(m))
        return value, np.append(X.T @ push + factor * theta[:-1], push.sum())

    best = minimize(objective, np.zeros(D + 1), jac=True, method="BFGS", options={"gtol": 1e-10})
    model, _ = fitted("logistic", penalty_factor=factor)
    assert model.certificate_.dual <= best.fun * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(best.fun, rel=1e-6)
    assert np.allclose(model.coef_[0], best.x[:-1], atol=1e-3)


def test_an_unpenalised_column_has_no_gradient():
    """With the squared loss, residuals are orthogonal to unpenalised columns (in long double)."""
    X, _, z = rows()
    model, _ = fitted("regressor", penalty_factor=FREE)
    residual = (z - X.astype(np.longdouble) @ model.coef_) - model.intercept_
    assert np.abs(X[:, FREE == 0.0].T @ residual).max() < 1e-5
    assert abs(residual.sum()) < 1e-5


def reference(X, sign, C, ratio, factor, group, steps=4000):
    """Group elastic net of the logistic loss by proximal gradient steps, written anew."""
    names = np.unique(group)
    A = np.column_stack([X, np.ones(len(X))])
    step = 4.0 / (C * np.linalg.norm(A, 2) ** 2)
    w = np.zeros(D + 1)
    y, t = w, 1.0

    def value(w):
        m = sign * (A @ w)
        total = C * np.logaddexp(0, -m).sum() + (1 - ratio) / 2 * factor @ w[:-1] ** 2
        return total + ratio * sum(
            factor[group == g][0]
            * math.sqrt((group == g).sum())
            * np.linalg.norm(w[:-1][group == g])
            for g in names
        )

    for _ in range(steps):
        gradient = A.T @ (-C * sign / (1 + np.exp(sign * (A @ y))))
        new = y - step * gradient
        for g in names:
            own = np.flatnonzero(group == g)
            p, norm = factor[own[0]], np.linalg.norm(new[own])
            cut = max(0.0, 1 - step * ratio * p * math.sqrt(len(own)) / norm) if norm else 0.0
            new[own] *= cut / (1 + step * (1 - ratio) * p)
        following = (1 + math.sqrt(1 + 4 * t * t)) / 2
        y, t, w = new + (t - 1) / following * (new - w), following, new
    return w, value(w)


@pytest.mark.sampled(2)
@pytest.mark.parametrize("ratio", [0.4, 1.0])
@pytest.mark.parametrize(
    "group", [GROUPS, np.arange(D), np.zeros(D, dtype=int)], ids=["groups", "alone", "together"]
)
def test_groups_against_proximal_gradient_steps(ratio, group):
    X, y, _ = rows()
    factor = np.where(group == 1, 0.0, 1.0) if len(np.unique(group)) > 1 else np.ones(D)
    w, value = reference(X, np.where(y == "yes", 1.0, -1.0), 0.1, ratio, factor, group)
    model = LogisticRegression(
        C=0.1, l1_ratio=ratio, feature_groups=group, penalty_factor=factor
    ).fit(X, y)
    assert model.certificate_.certified
    assert model.certificate_.dual <= value * (1 + 1e-12)
    assert model.certificate_.primal == pytest.approx(value, rel=2e-6)
    assert np.allclose(model.coef_[0], w[:-1], atol=1e-3)
    assert verify(model, X, y, exact=True).certified


def test_groups_of_one_are_the_lasso():
    X, y, _ = rows()
    plain = LogisticRegression(C=0.1, l1_ratio=1.0).fit(X, y)
    alone = LogisticRegression(C=0.1, l1_ratio=1.0, feature_groups=list("abcdef")).fit(X, y)
    assert np.array_equal(plain.coef_, alone.coef_)
    factor = LogisticRegression(C=0.1, l1_ratio=1.0, penalty_factor=[2.0] * D).fit(X, y)
    other = LogisticRegression(C=0.05, l1_ratio=1.0).fit(X, y)
    assert factor.certificate_.primal == pytest.approx(2 * other.certificate_.primal, rel=2e-6)


def test_groups_enter_and_leave_together():
    X, y, _ = rows(400)
    for C in np.logspace(-3, 0, 8):
        model = LogisticRegression(C=C, l1_ratio=1.0, feature_groups=GROUPS).fit(X, y)
        for g in range(3):
            own = model.coef_[0, GROUPS == g]
            assert own.all() or not own.any()


@pytest.mark.parametrize("spread", [1e-6, 1e6])
@pytest.mark.parametrize("ratio", [0.0, 0.5, 1.0])
def test_factors_over_twelve_powers_of_ten(spread, ratio):
    X, y, _ = rows()
    factor = np.array([1.0, spread, 1.0, 1.0 / spread, 1.0, 1.0])
    model = LogisticRegression(l1_ratio=ratio, penalty_factor=factor).fit(X, y)
    assert model.certificate_.certified and verify(model, X, y, exact=True).certified


@pytest.mark.sampled(2)
@pytest.mark.parametrize("name", ["logistic", "logistic-l1", "svc"])
@pytest.mark.parametrize("factor", [FACTOR, FREE], ids=["positive", "some zero"])
def test_alterations_are_noticed(name, factor):
    X, y, _ = rows(60)
    model = MODELS[name](penalty_factor=factor).fit(X, y)
    assert verify(model, X, y).certified
    for forged in alterations(model, X, y, None):
        if forged.certain:
            with pytest.raises(LinsepError):
                verify(forged.model, forged.X, forged.y, forged.weight)


def test_altered_factors_are_noticed():
    X, y, _ = rows()
    model = LogisticRegression(penalty_factor=FACTOR).fit(X, y)
    forged = copy.deepcopy(model).set_params(penalty_factor=FREE)
    with pytest.raises(CertificateError, match="penalty_factor"):
        verify(forged, X, y)
    forged = copy.deepcopy(model)
    forged._fits = [
        replace(f, recipe=replace(f.recipe, penalty=replace(f.recipe.penalty, factor=2 * FACTOR)))
        for f in model._fits
    ]
    with pytest.raises(CertificateError):
        verify(forged, X, y)


def test_frames_name_their_columns():
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=list("abcdef"))
    named = LogisticRegression(penalty_factor={"a": 0.0, "c": 4.0}).fit(frame, y)
    listed = LogisticRegression(penalty_factor=[0, 1, 4, 1, 1, 1]).fit(X, y)
    assert np.array_equal(named.coef_, listed.coef_)
    assert verify(named, frame, y).certified
    grouped = LogisticRegression(l1_ratio=1.0, feature_groups={"a": 1, "b": 1}).fit(frame, y)
    assert grouped.certificate_.certified


def test_the_estimators_keep_scikit_learns_contract():
    given = {"penalty_factor": FACTOR}
    for kind in (LogisticRegression, LinearSVC, LinearClassifier, LinearRegressor):
        model = kind(**given)
        assert clone(model).get_params()["penalty_factor"] is not None
        assert model.set_params(penalty_factor=None).penalty_factor is None
        with pytest.raises(BadInput, match="6 features"):
            kind(C=1.0, penalty_factor=[1.0, 2.0]).fit(
                rows()[0], rows()[1] if kind is not LinearRegressor else rows()[2]
            )


def test_tune_and_path():
    X, y, z = rows()
    for model, target in (
        (LogisticRegression(penalty_factor=FREE), y),
        (LogisticRegression(l1_ratio=1.0, feature_groups=GROUPS), y),
        (LinearRegressor(C=1.0, penalty_factor=FACTOR), z),
    ):
        tuning = linsep.tune(model, X, target, [0.01, 0.1, 1.0], cv=3)
        assert tuning.certified
        own = clone(model).set_params(C=tuning.best_C).fit(X, target)
        assert own.certificate_.primal == pytest.approx(
            tuning.best_estimator_.certificate_.primal, rel=2e-6
        )
        path = linsep.path(model, X, target, [0.01, 0.1, 1.0])
        last = clone(model).set_params(C=1.0).fit(X, target)
        assert np.allclose(path.coefs[-1], last.coef_, atol=1e-3)


def test_the_estimators_that_choose_their_own_strength():
    X, y, _ = rows()
    model = LogisticRegressionCV([0.1, 1.0], cv=3, penalty_factor=FREE).fit(X, y)
    assert model.tuning_.certified and verify(model, X, y).certified
    model = LinearSVCCV([0.1, 1.0], cv=3, penalty_factor=FACTOR).fit(X, y)
    assert model.tuning_.certified and verify(model, X, y).certified
    model = LogisticRegressionCV([0.1, 1.0], cv=3, l1_ratio=1.0, feature_groups=GROUPS).fit(X, y)
    assert model.tuning_.certified


def test_multipliers_of_the_support_vector_machine():
    X, y, _ = rows()
    model = LinearSVC(penalty_factor=FACTOR).fit(X, y)
    sign = np.where(y == "yes", 1.0, -1.0)
    assert np.allclose(FACTOR * model.coef_[0], (sign * model.alpha_) @ X, atol=1e-4)
    assert model.kkt(X, y).stationarity < 1e-4


def test_several_classes_one_against_the_others():
    X, _, z = rows(200)
    y = np.digitize(z, [-1.0, 1.0])
    model = LogisticRegression(penalty_factor=FREE, multiclass="ovr").fit(X, y)
    assert model.certificate_.certified and verify(model, X, y).certified
    with pytest.raises(Refused, match="ovr"):
        LogisticRegression(penalty_factor=FREE).fit(X, y)


def test_what_unpenalised_columns_separate_has_no_minimum():
    X, y, _ = rows()
    X[:, 0] = np.where(y == "yes", 1.0, -1.0)
    for ratio in (0.0, 1.0):
        with pytest.raises(SeparableData):
            LogisticRegression(penalty_factor=FREE, l1_ratio=ratio).fit(X, y)


def test_refusals():
    X, y, z = rows()
    with pytest.raises(BadInput, match="finite C"):
        LinearRegressor(penalty_factor=FACTOR).fit(X, z)
    with pytest.raises(BadInput, match="l1_ratio"):
        LogisticRegression(feature_groups=GROUPS).fit(X, y)
    with pytest.raises(Refused, match="kink"):
        LinearClassifier("hinge", l1_ratio=1.0, feature_groups=GROUPS).fit(X, y)
    with pytest.raises(Refused, match="block-newton"):
        LogisticRegression(l1_ratio=1.0, feature_groups=GROUPS, solver="newton").fit(X, y)
    with pytest.raises(Refused, match="penalty_factor"):
        linsep.tune(LogisticRegression(penalty_factor=FREE), X, y, [1.0], cv="loo-approximate")


def test_few_rows_on_disk_are_fitted_as_in_memory(tmp_path):
    X, y, _ = rows()
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(y=y)
    frame.to_parquet(tmp_path / "rows.parquet")
    scan = linsep.scan(tmp_path / "rows.parquet", target="y")
    on_disk = LogisticRegression(penalty_factor=FREE).fit(scan)
    in_memory = LogisticRegression(penalty_factor=FREE).fit(X, y)
    assert on_disk.certificate_.certified
    np.testing.assert_array_equal(on_disk.coef_, in_memory.coef_)


def test_limits_end_in_a_proven_gap():
    X, y, _ = rows(1000)
    model = LogisticRegression(l1_ratio=0.5, penalty_factor=FREE, max_passes=2)
    with pytest.warns(linsep.errors.ConvergenceWarning):
        model.fit(X, y)
    assert not model.certificate_.certified and math.isfinite(model.certificate_.primal)


@pytest.mark.parametrize("ratio", [0.5, 1.0])
def test_the_huber_loss_far_from_its_parabola(ratio):
    """Targets many times the width: at the start hardly a row has curvature."""
    X, _, z = rows()
    model = LinearRegressor("huber", C=10.0, l1_ratio=ratio, penalty_factor=FREE)
    model.fit(X, 1000.0 * z)
    assert model.certificate_.certified and verify(model, X, 1000.0 * z, exact=True).certified


def test_unpenalised_columns_of_very_different_size():
    X, y, _ = rows()
    scale = np.array([1e4, 1.0, 1.0, 1e-3, 1.0, 1.0])
    for ratio in (0.0, 0.5, 1.0):
        model = LogisticRegression(C=10.0, l1_ratio=ratio, penalty_factor=FREE).fit(X * scale, y)
        assert model.certificate_.certified and verify(model, X * scale, y, exact=True).certified


def test_exact_arithmetic_proves_what_is_claimed_of_the_hinge():
    """The bound in exact arithmetic is no worse than the one in float64, though rows have little room."""
    X, y, _ = rows(40, seed=4)
    model = LinearSVC(C=100.0, penalty_factor=[0.0, 1e6, 1e6, 1.0, 0.0, 1e6]).fit(X, y)
    assert verify(model, X, y, exact=True).gap <= model.certificate_.gap
