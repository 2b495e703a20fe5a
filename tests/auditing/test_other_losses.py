"""audit of perceptrons, support vector regression and plain coefficients."""

import math
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import linprog, minimize
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer, load_diabetes, load_iris, load_wine
from sklearn.linear_model import Perceptron, SGDClassifier, SGDRegressor
from sklearn.preprocessing import StandardScaler
from sklearn.svm import SVC, SVR, LinearSVC, LinearSVR

from linsep import audit, losses
from linsep.errors import BadInput


def standardised(load):
    X, y = load(return_X_y=True)
    return StandardScaler().fit_transform(X), y


CANCER, IRIS, WINE, DIABETES = (
    standardised(load) for load in (load_breast_cancer, load_iris, load_wine, load_diabetes)
)


def fitted(model, X, y, **more):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return clone(model).fit(X, y, **more)


def margins(model, X, y):
    sign = np.where(y == model.classes_[1], 1.0, -1.0)
    return sign * model.decision_function(X)


def test_a_perceptron_on_classes_that_overlap():
    X, y = CANCER[0][:, :2], CANCER[1]
    model = fitted(Perceptron(random_state=0), X, y)
    found = audit(model, X, y)
    m = margins(model, X, y)
    assert math.isclose(found.objective, np.maximum(0.0, -m).mean(), rel_tol=1e-9)
    assert found.separable is False and not found.quasi and not found.optimal
    assert found.mistakes == np.count_nonzero(m <= 0) and found.minimum == (0.0, 0.0)
    assert "separable  no, proven: the perceptron never converges" in str(found)
    assert f"not converged: {found.mistakes:,} mistakes in 569 rows" in str(found)
    assert found.to_dict()["mistakes"] == found.mistakes
    with pytest.raises(BadInput, match="no hyperplane to move to"):
        found.improve()


def test_a_perceptron_on_separable_classes():
    X, y = CANCER  # separable, though no perceptron finds it in five epochs
    early = fitted(Perceptron(random_state=0, max_iter=5, tol=None), X, y)
    found = audit(early, X, y)
    assert found.separable is True and not found.optimal and found.mistakes > 0
    better = found.improve()
    assert type(better) is Perceptron and (better.predict(X) == y).all()
    again = audit(better, X, y)
    assert again.optimal and "converged: no mistakes" in str(again)
    assert again.excess[0] == 0.0


def test_a_perceptron_with_three_classes_a_penalty_and_a_tie():
    X, y = IRIS
    found = audit(fitted(Perceptron(random_state=0), X, y), X, y)
    assert found.separable is False and not found.optimal
    wine = audit(fitted(Perceptron(random_state=0, max_iter=2, tol=None), *WINE), *WINE)
    assert wine.separable is True
    assert (wine.improve().predict(WINE[0]) == WINE[1]).all()
    model = fitted(SGDClassifier(loss="perceptron", alpha=0.01, random_state=0), *CANCER)
    penalised = audit(model, *CANCER)
    own = np.maximum(0.0, -margins(model, *CANCER)).mean() + 0.005 * np.sum(model.coef_**2)
    assert math.isclose(penalised.objective, own, rel_tol=1e-9)
    line = np.array([[0.0], [1.0], [1.0], [2.0]])
    touching = audit(fitted(Perceptron(), line, [0, 0, 1, 1]), line, [0, 0, 1, 1])
    assert touching.separable is False and touching.quasi
    assert "no row on the wrong side, but some rows lie on it" in str(touching)


@pytest.mark.parametrize("epsilon", [0.0, 1e-3, 25.0])
@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
@pytest.mark.parametrize("intercept", [{}, {"intercept_scaling": 30.0}, {"fit_intercept": False}])
def test_support_vector_regression(epsilon, loss, intercept):
    X, t = DIABETES
    weight = np.linspace(0.5, 2.0, len(t))
    model = LinearSVR(C=0.1, epsilon=epsilon, loss=loss, tol=1e-8, max_iter=200_000, random_state=0)
    model = fitted(model.set_params(**intercept), X, t, sample_weight=weight)
    found = audit(model, X, t, weight)
    r = np.maximum(0.0, np.abs(t - model.predict(X)) - epsilon)
    own = 0.5 * np.sum(model.coef_**2)
    own += 0.1 * (weight * (r if loss.startswith("e") else r**2)).sum()
    if model.fit_intercept:
        own += 0.5 * float(model.intercept_[0] / model.intercept_scaling) ** 2
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert found.excess[0] <= found.excess[1] and found.relative_excess[1] < 2e-3
    assert audit(found.improve(), X, t, weight).optimal


@pytest.mark.parametrize("loss", ["epsilon_insensitive", "squared_epsilon_insensitive"])
def test_stochastic_support_vector_regression(loss):
    X, t = DIABETES
    model = fitted(SGDRegressor(loss=loss, epsilon=10.0, alpha=0.05, random_state=0), X, t)
    found = audit(model, X, t)
    r = np.maximum(0.0, np.abs(t - model.predict(X)) - 10.0)
    own = 0.025 * np.sum(model.coef_**2) + (r if loss.startswith("e") else r**2).mean()
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert audit(found.improve(), X, t).optimal


VALUES = {
    "logistic": lambda m: np.logaddexp(0.0, -m),
    "squared_hinge": lambda m: np.maximum(0.0, 1.0 - m) ** 2,
    "huberised_hinge": losses.HuberisedHinge().value,
    "exponential": lambda m: np.exp(-m),
    "squared": lambda m: (1.0 - m) ** 2,
}


@pytest.mark.parametrize("ratio", [0.0, 0.3, 1.0])
@pytest.mark.parametrize("loss", VALUES)
def test_plain_coefficients_with_a_smooth_loss(loss, ratio):
    """scipy's L-BFGS-B on w = p - q, p, q >= 0 confirms the minimum."""
    X, y = CANCER[0][:, :4], CANCER[1]
    sign = np.where(y == 1, 1.0, -1.0)
    family = losses.get(loss)

    def objective(theta):
        p, q, b = theta[:4], theta[4:8], theta[8]
        w = p - q
        m = sign * (X @ w + b)
        slope = sign * family.slope(m)
        value = 0.5 * (1 - ratio) * w @ w + ratio * (p + q).sum() + 0.2 * VALUES[loss](m).sum()
        g = (1 - ratio) * w + 0.2 * (X.T @ slope)
        return value, np.concatenate([g + ratio, -g + ratio, [0.2 * slope.sum()]])

    bounds = [(0.0, None)] * 8 + [(None, None)]
    start = np.full(9, 0.01)
    best = minimize(
        objective, start, jac=True, bounds=bounds, options={"ftol": 1e-15, "gtol": 1e-9}
    )
    w = np.array([0.1, -0.2, 0.3, -0.4])
    found = audit((w, 0.5), X, y, loss=loss, C=0.2, l1_ratio=ratio)
    m = sign * (X @ w + 0.5)
    own = 0.5 * (1 - ratio) * w @ w + ratio * np.abs(w).sum() + 0.2 * VALUES[loss](m).sum()
    assert math.isclose(found.objective, own, rel_tol=1e-9)
    assert found.minimum[0] <= best.fun * (1 + 1e-9)
    assert math.isclose(best.fun, found.minimum[1], rel_tol=1e-6)


def test_plain_coefficients_with_kinks():
    X, y = CANCER[0][:, :4], CANCER[1]
    model = fitted(SVC(kernel="linear", C=0.2, tol=1e-9), X, y)
    found = audit((model.coef_, model.intercept_), X, y, loss="hinge", C=0.2)
    assert found.optimal
    assert audit(model, X, y).minimum == found.minimum
    X, t = DIABETES
    n, d = X.shape
    programme = linprog(  # |t - Xw - b| without a penalty
        np.concatenate([np.zeros(2 * d + 2), np.ones(2 * n)]),
        A_eq=np.hstack([X, -X, np.ones((n, 1)), -np.ones((n, 1)), np.eye(n), -np.eye(n)]),
        b_eq=t,
    )
    found = audit((np.zeros(d), 100.0), X, t, loss="absolute", C=np.inf)
    assert found.minimum[0] <= programme.fun * (1 + 1e-9)
    assert programme.fun * (1 - 1e-9) <= found.minimum[1]
    tube = audit((np.zeros(d), 100.0), X, t, loss="epsilon_insensitive", epsilon=20.0, C=0.1)
    again = fitted(SVR(kernel="linear", C=0.1, epsilon=20.0, tol=1e-9), X, t)
    r = np.maximum(0.0, np.abs(t - again.predict(X)) - 20.0)
    value = 0.5 * np.sum(again.coef_**2) + 0.1 * r.sum()
    assert tube.minimum[0] <= value * (1 + 1e-12)
    assert math.isclose(value, tube.minimum[1], rel_tol=1e-7)


def test_plain_coefficients_of_several_classes():
    X, y = WINE
    model = fitted(LinearSVC(C=0.1, fit_intercept=False, tol=1e-9, max_iter=10**6), X, y)
    own = audit(model, X, y)
    found = audit((model.coef_, None), X, y, loss="squared_hinge", C=0.1)
    assert found.minimum == own.minimum and found.objective == own.objective
    joint = clone(model).set_params(multi_class="crammer_singer").fit(X, y)
    found = audit((joint.coef_, None), X, y, loss="crammer_singer", C=0.1)
    assert found.minimum == audit(joint, X, y).minimum
    found = audit((joint.coef_, np.zeros(3)), X, y, loss="multinomial", C=0.1)
    assert not found.optimal
    assert audit(found.optimum, X, y, loss="multinomial", C=0.1).optimal
    weight = {0: 2.0, 1: 1.0, 2: 0.5}
    weighted = audit((joint.coef_, None), X, y, loss="multinomial", class_weight=weight)
    each = np.array([2.0, 1.0, 0.5])[y]
    rows = audit((joint.coef_, None), X, y, each, loss="multinomial")
    assert weighted.objective == rows.objective


def test_bad_coefficients():
    X, y = WINE
    cases = {
        ((1.0,) * 13, 0.0): "have 1 columns, the problem has 3",
        (((1.0,) * 13,) * 3, (0.0, 0.0)): "3 rows of coefficients and 2 intercepts",
        (((np.nan,) * 13,) * 3, 0.0): "finite",
    }
    for (coef, intercept), words in cases.items():
        with pytest.raises(BadInput, match=words):
            audit((coef, intercept), X, y)
    with pytest.raises(BadInput, match="have 2 columns, the problem has 3"):
        audit((np.ones((2, 13)), 0.0), X, y, loss="multinomial")
    with pytest.raises(BadInput, match="have 2 columns, the problem has 1"):
        audit((np.ones((2, 13)), 0.0), X, y.astype(float), loss="squared")
    with pytest.raises(BadInput, match="has 12 features and X has 13 columns"):
        audit((np.ones((3, 12)), 0.0), X, y)
    with pytest.raises(BadInput, match="knows its own alpha"):
        audit((np.ones((3, 13)), 0.0), X, y, alpha=1.0)
    with pytest.raises(BadInput, match="epsilon must be"):
        audit((np.ones(10), 0.0), *DIABETES, loss="epsilon_insensitive", epsilon=-1.0)
    with pytest.raises(BadInput, match="The absolute loss has no epsilon"):
        audit((np.ones(10), 0.0), *DIABETES, loss="absolute", epsilon=1.0)


@pytest.mark.parametrize("sparse", [False, True])
def test_a_mistake_of_a_perceptron_that_rounding_hides(sparse):
    """Its margin is 0: 1e16 + 2 + 1 - 1e16 - 3, but 1 in floating point from left to right."""
    rows = np.array([[1e16 + 2, 1.0, -1e16, -3.0], [0.0, 0.0, 0.0, -1.0]])
    y = np.array([1, 0])
    model = Perceptron().fit(rows, y)
    model.coef_, model.intercept_ = np.ones((1, 4)), np.zeros(1)
    given = sp.csr_array(rows) if sparse else rows
    found = audit(model, given, y)
    assert found.separable and found.mistakes == 1 and not found.optimal
    rows[0, 3] = -2.0  # now it is 1
    given = sp.csr_array(rows) if sparse else rows
    assert audit(model, given, y).mistakes == 0
