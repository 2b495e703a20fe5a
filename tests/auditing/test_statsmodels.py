"""audit of statsmodels results: their own objectives, with the constant as a column, on the rows they keep."""

import math
import warnings

import numpy as np
import pytest
import statsmodels.api as sm
from scipy.optimize import linprog
from sklearn.datasets import load_breast_cancer, load_diabetes, load_wine

from linsep import audit
from linsep.errors import BadInput, Refused

CANCER, WINE, DIABETES = (
    load(return_X_y=True) for load in (load_breast_cancer, load_wine, load_diabetes)
)
FEW = sm.add_constant(CANCER[0][:, [1, 4, 8]])
SCALED = (CANCER[0] - CANCER[0].mean(axis=0)) / CANCER[0].std(axis=0)


def fitted(model, method="fit", **how):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return getattr(model, method)(**how)


def test_logit_is_optimal_on_its_own_rows():
    results = fitted(sm.Logit(CANCER[1], FEW), disp=0)
    found = audit(results)
    assert found.optimal and found.changed == 0
    assert math.isclose(found.objective, -results.llf, rel_tol=1e-12)
    assert str(found).startswith("statsmodels Logit: sum log(1 + exp(-m)), free constant")
    again = audit(results, FEW, CANCER[1])
    assert again.minimum == found.minimum


def test_logit_that_stopped_early_is_not():
    results = fitted(sm.Logit(CANCER[1], FEW), disp=0, maxiter=2)
    least = -fitted(sm.Logit(CANCER[1], FEW), disp=0).llf
    found = audit(results)
    assert found.relative_excess[0] > 1e-3
    assert found.minimum[0] <= least * (1 + 1e-12) and least * (1 - 1e-12) <= found.minimum[1]
    coef, intercept = found.optimum
    loss = np.logaddexp(0.0, (1 - 2 * CANCER[1]) * (FEW[:, 1:] @ coef[0] + intercept[0]))
    assert math.isclose(loss.sum(), least, rel_tol=1e-8)
    with pytest.raises(BadInput, match=r"statsmodels Logit.*audit\(...\).optimum"):
        found.improve()


def test_logit_with_offset_and_separable_classes():
    shift = np.linspace(-1.0, 1.0, len(FEW))
    results = fitted(sm.Logit(CANCER[1], FEW, offset=shift), disp=0)
    found = audit(results)
    assert found.optimal and math.isclose(found.objective, -results.llf, rel_tol=1e-12)
    X = sm.add_constant(np.arange(8.0))
    apart = fitted(sm.Logit(np.arange(8) > 3, X), disp=0, maxiter=5)
    assert audit(apart).separable


@pytest.mark.parametrize("alpha", [0.3, 4.0, [0.0, *[2.0] * 30], [0.0, *np.linspace(0.5, 3, 30)]])
def test_logit_with_an_l1_penalty(alpha):
    X = sm.add_constant(SCALED)
    results = fitted(sm.Logit(CANCER[1], X), "fit_regularized", alpha=alpha, disp=0, acc=1e-12)
    found = audit(results)
    own = -results.model.loglike(results.params) + np.sum(np.abs(results.params) * alpha)
    assert math.isclose(found.objective, own, rel_tol=1e-10)
    assert found.relative_excess[1] < 1e-3


def test_least_squares():
    X, t = sm.add_constant(DIABETES[0]), DIABETES[1]
    results = sm.OLS(t, X).fit()
    found = audit(results)
    assert found.optimal and math.isclose(found.objective, results.ssr, rel_tol=1e-10)
    assert found.minimum[0] <= results.ssr * (1 + 1e-12)
    weights = np.linspace(0.1, 3.0, len(t))
    results = sm.WLS(t, X, weights=weights).fit()
    found = audit(results)
    assert found.optimal
    assert math.isclose(found.objective, (weights * results.resid**2).sum(), rel_tol=1e-10)
    gaussian = sm.GLM(t, X).fit()
    assert audit(gaussian).optimal


@pytest.mark.parametrize("ratio", [0.0, 0.4, 1.0])
@pytest.mark.parametrize("kind", ["even", "free constant", "uneven"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.sampled(6)
def test_elastic_net_of_least_squares(ratio, kind, weighted):
    X, t = sm.add_constant(20.0 * DIABETES[0]), DIABETES[1]
    alpha = {
        "even": 0.5,
        "free constant": np.array([0.0, *[0.5] * 10]),
        "uneven": np.array([0.0, *np.linspace(0.1, 1.0, 10)]),
    }[kind]
    weights = np.linspace(0.5, 1.5, len(t))
    model = sm.WLS(t, X, weights=weights) if weighted else sm.OLS(t, X)
    results = fitted(model, "fit_regularized", alpha=alpha, L1_wt=ratio, maxiter=2000)
    found = audit(results, alpha=alpha, l1_ratio=ratio)
    s = weights if weighted else np.ones(len(t))

    def objective(w):
        penalty = alpha * (ratio * np.abs(w) + 0.5 * (1 - ratio) * w**2)
        return 0.5 * (s * (t - X @ w) ** 2).mean() + s.mean() * np.sum(penalty)

    assert math.isclose(found.objective, objective(results.params), rel_tol=1e-10)
    assert found.relative_excess[1] < 2e-3  # a coefficient that was 0 once stays 0 in statsmodels
    coef, intercept = found.optimum
    best = coef[0] if kind == "even" else np.append(intercept, coef[0])
    low, high = found.minimum
    assert low * (1 - 1e-12) <= objective(best) <= high * (1 + 1e-9)
    assert found.coef_distance <= found.coef_error


def test_what_fit_regularized_does_not_keep():
    model = sm.OLS(DIABETES[1], sm.add_constant(DIABETES[0]))
    with pytest.raises(BadInput, match="give alpha=, and l1_ratio= for its L1_wt"):
        audit(model.fit_regularized(alpha=0.1))
    with pytest.raises(Refused, match="refit=True"):
        audit(model.fit_regularized(alpha=0.1, refit=True), alpha=0.1, l1_ratio=1.0)
    with pytest.raises(BadInput, match="not negative"):
        audit(model.fit_regularized(alpha=0.1), alpha=-1.0, l1_ratio=1.0)


def test_generalised_linear_models():
    weights = np.arange(len(FEW)) % 3 + 1.0
    model = sm.GLM(CANCER[1], FEW, family=sm.families.Binomial(), freq_weights=weights)
    found = audit(model.fit())
    assert found.optimal and math.isclose(found.objective, -model.fit().llf, rel_tol=1e-10)
    plain = sm.GLM(CANCER[1], sm.add_constant(SCALED), family=sm.families.Binomial())
    results = fitted(plain, "fit_regularized", alpha=0.05, L1_wt=0.5)
    found = audit(results, alpha=0.05, l1_ratio=0.5)
    size = np.abs(results.params)
    own = -plain.loglike(results.params) / len(FEW)
    own += 0.05 * (0.5 * size + 0.25 * size**2).sum()
    assert math.isclose(found.objective, own, rel_tol=1e-10) and found.relative_excess[1] < 1e-4
    with pytest.raises(Refused, match="got Poisson with link Log"):
        audit(sm.GLM(CANCER[1], FEW, family=sm.families.Poisson()).fit())


def test_multinomial_and_robust():
    few = sm.add_constant(WINE[0][:, [0, 9]])
    results = fitted(sm.MNLogit(WINE[1], few), disp=0)
    found = audit(results)
    assert found.optimal and math.isclose(found.objective, -results.llf, rel_tol=1e-10)
    X, t = sm.add_constant(DIABETES[0]), DIABETES[1]
    robust = sm.RLM(t, X).fit(tol=1e-12, maxiter=500)
    found = audit(robust)
    z = robust.resid / robust.scale
    assert math.isclose(found.objective, sm.robust.norms.HuberT()(z).sum(), rel_tol=1e-10)
    assert found.relative_excess[1] < 1e-5


@pytest.mark.parametrize("q", [0.5, 0.2])
def test_quantiles(q):
    X, t = sm.add_constant(DIABETES[0]), DIABETES[1]
    n, d = X.shape
    programme = linprog(
        np.concatenate([np.zeros(2 * d), np.full(n, q), np.full(n, 1 - q)]),
        A_eq=np.hstack([X, -X, np.eye(n), -np.eye(n)]),
        b_eq=t,
    )
    found = audit(fitted(sm.QuantReg(t, X), q=q))
    assert found.minimum[0] <= programme.fun * (1 + 1e-9)
    assert programme.fun * (1 - 1e-9) <= found.minimum[1]


def test_bad_calls():
    results = fitted(sm.Logit(CANCER[1], FEW), disp=0)
    with pytest.raises(BadInput, match="Give both X and y, or neither"):
        audit(results, FEW)
    with pytest.raises(BadInput, match="4 parameters and X has 3 columns"):
        audit(results, FEW[:, 1:], CANCER[1])
    with pytest.raises(BadInput, match="leave out sample_weight"):
        audit(results, sample_weight=np.ones(len(FEW)))
    with pytest.raises(BadInput, match="knows its own C"):
        audit(results, C=2.0)
    with pytest.raises(Refused, match=r"statsmodels Probit\. It audits QuantReg, OLS"):
        audit(fitted(sm.Probit(CANCER[1], FEW), disp=0))
    with pytest.raises(BadInput, match="audit needs X and y"):
        audit(([1.0], 0.0))
