"""summary: the textbook formulas by another route, coverage by simulation, refusals with their reason."""

from __future__ import annotations

import json
import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from scipy import stats
from sklearn.datasets import load_diabetes, load_iris
from sklearn.exceptions import NotFittedError

from linsep import LinearClassifier, LinearRegressor, LogisticRegression, summary
from linsep.errors import BadInput


def logistic_rows(n=400, seed=0, w=(1.0, -0.5, 0.0), b=0.3):
    rng = np.random.default_rng(seed)
    X = rng.normal(size=(n, len(w)))
    return X, rng.random(n) < 1.0 / (1.0 + np.exp(-(X @ w + b)))


def lines(found, part=""):
    return {line.name: line for line in found.coefficients[part]}


def test_least_squares_by_the_pseudo_inverse():
    X, t = load_diabetes(return_X_y=True, as_frame=True)
    found = summary(LinearRegressor().fit(X, t), X, t)
    A = np.column_stack([X.to_numpy(), np.ones(len(t))])
    inverse = np.linalg.pinv(A)
    theta = inverse @ t.to_numpy()
    freedom = len(t) - A.shape[1]
    sigma2 = np.sum((t - A @ theta) ** 2) / freedom
    errors = np.sqrt(sigma2 * np.sum(inverse**2, axis=1))
    table = lines(found)
    assert list(table) == [*X.columns, "(intercept)"]
    for name, value, error in zip(table, theta, errors, strict=True):
        line = table[name]
        assert np.isclose(line.value, value, rtol=1e-6)
        assert np.isclose(line.standard_error, error, rtol=1e-6)
        assert np.isclose(line.p_value, 2 * stats.t.sf(abs(value / error), freedom), rtol=1e-5)
        low, high = stats.t.interval(0.95, freedom, value, error)
        assert np.allclose([line.low, line.high], [low, high], rtol=1e-6)
        assert line.odds_ratio is None
    assert found.valid and "t intervals" in found.inference
    assert np.isclose(found.facts["R squared"], 0.5177484222)


def test_logistic_by_differences_of_the_likelihood():
    X, y = logistic_rows()
    model = LogisticRegression(C=np.inf).fit(X, y)
    found = summary(model, X, y)
    A, sign = np.column_stack([X, np.ones(len(y))]), np.where(y, 1.0, -1.0)
    theta = np.append(model.coef_[0], model.intercept_)

    def minus_log_likelihood(at):
        return np.logaddexp(0.0, -sign * (A @ at)).sum()

    step = 1e-3 * np.eye(4)
    H = np.array(
        [
            [
                (
                    minus_log_likelihood(theta + a + b)
                    - minus_log_likelihood(theta + a - b)
                    - minus_log_likelihood(theta - a + b)
                    + minus_log_likelihood(theta - a - b)
                )
                / 4e-6
                for b in step
            ]
            for a in step
        ]
    )
    errors = np.sqrt(np.diag(np.linalg.inv(H)))
    table = lines(found)
    for name, value, error in zip(table, theta, errors, strict=True):
        assert np.isclose(table[name].standard_error, error, rtol=1e-4)
        assert np.isclose(table[name].statistic, value / error, rtol=1e-4)
    assert np.isclose(table["x0"].odds_ratio, np.exp(theta[0]))
    assert np.isclose(table["x0"].odds_high, np.exp(table["x0"].high))
    assert table["(intercept)"].odds_ratio is None
    assert np.isclose(found.facts["log-likelihood"], -minus_log_likelihood(theta))


@pytest.mark.slow
def test_intervals_cover_the_truth_as_often_as_they_say():
    inside = 0
    for seed in range(300):
        X, y = logistic_rows(n=200, seed=seed)
        line = lines(summary(LogisticRegression(C=np.inf).fit(X, y), X, y, level=0.9))["x1"]
        inside += line.low <= -0.5 <= line.high
    # 300 draws of probability 0.9: between these with probability 0.9999
    assert stats.binom.ppf(5e-5, 300, 0.9) <= inside <= stats.binom.ppf(1 - 5e-5, 300, 0.9)


def test_weight_two_is_the_row_twice():
    X, y = logistic_rows(n=120)
    weight = np.where(np.arange(120) % 3 == 0, 2.0, 1.0)
    twice = np.repeat(np.arange(120), weight.astype(int))
    a = summary(LogisticRegression(C=np.inf).fit(X, y, weight), X, y, weight)
    b = summary(LogisticRegression(C=np.inf).fit(X[twice], y[twice]), X[twice], y[twice])
    assert a.rows == b.rows == 160
    for left, right in zip(a.coefficients[""], b.coefficients[""], strict=True):
        assert np.isclose(left.standard_error, right.standard_error, rtol=1e-8)


def test_sparse_rows_and_no_intercept():
    X, y = logistic_rows()
    full = summary(LogisticRegression(C=np.inf, fit_intercept=False).fit(X, y), X, y)
    S = sp.csr_matrix(X)
    thin = summary(LogisticRegression(C=np.inf, fit_intercept=False).fit(S, y), S, y)
    assert [line.name for line in full.coefficients[""]] == ["x0", "x1", "x2"]
    for left, right in zip(full.coefficients[""], thin.coefficients[""], strict=True):
        assert np.isclose(left.standard_error, right.standard_error)


def test_one_table_for_each_class_against_the_others():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(300, 2))
    y = np.argmax(X @ rng.normal(size=(2, 3)) + 2 * rng.gumbel(size=(300, 3)), axis=1)
    model = LogisticRegression(C=np.inf, multiclass="ovr").fit(X, y)
    found = summary(model, X, y)
    assert list(found.coefficients) == [f"class {c} against the others" for c in range(3)]
    for c in range(3):
        alone = summary(LogisticRegression(C=np.inf).fit(X, y == c), X, y == c)
        expected = [line.standard_error for line in alone.coefficients[""]]
        got = [line.standard_error for line in found.coefficients[f"class {c} against the others"]]
        assert np.allclose(got, expected)


@pytest.mark.parametrize(
    ("model", "words"),
    [
        (LogisticRegression(), "penalised, which biases"),
        (LinearClassifier("squared_hinge", C=np.inf), "not a likelihood"),
        (LinearClassifier("hinge"), "hinge loss is not a likelihood"),
        (LinearClassifier("squared", C=np.inf), "squared loss of class labels"),
    ],
    ids=["penalised", "margin loss", "penalised margin loss", "labels"],
)
def test_refusals_say_why_and_still_show_the_coefficients(model, words):
    X, y = logistic_rows()
    found = summary(model.fit(X, y), X, y)
    assert not found.valid and words in found.inference
    assert [line.value for line in found.coefficients[""]][:3] == model.coef_[0].tolist()
    assert all(line.standard_error is None for line in found.coefficients[""])
    assert "std. error" not in str(found)


def test_dependent_columns_and_too_few_rows_are_refused():
    X, y = logistic_rows()
    constant = np.column_stack([X, np.ones(len(X))])
    found = summary(LogisticRegression(C=np.inf).fit(constant, y), constant, y)
    assert not found.valid and "linearly dependent" in found.inference
    few = X[:4]
    found = summary(LinearRegressor().fit(few, [0.0, 1.0, 0.5, 2.0]), few, [0.0, 1.0, 0.5, 2.0])
    assert not found.valid and "not more rows than coefficients" in found.inference


def test_several_coupled_classes_are_refused():
    X, y = load_iris(return_X_y=True)
    found = summary(LogisticRegression(C=1.0).fit(X, y), X, y)
    assert not found.valid
    assert list(found.coefficients) == ["class 0", "class 1", "class 2"]


def test_held_out_error_has_the_exact_binomial_bound():
    X, y = logistic_rows()
    model = LogisticRegression().fit(X[:300], y[:300])
    found = summary(model, X[:300], y[:300], held_out=(X[300:], y[300:]))
    wrong = np.count_nonzero(model.predict(X[300:]) != y[300:])
    assert found.facts["held-out error"] == wrong / 100
    bound = found.facts["its upper bound, level 0.95"]
    assert np.isclose(stats.binom.cdf(wrong, 100, bound), 0.05)


def test_likelihood_facts_agree_with_statsmodels():
    sm = pytest.importorskip("statsmodels.api")
    X, y = logistic_rows()
    ours = summary(LogisticRegression(C=np.inf, tol=1e-10).fit(X, y), X, y).facts
    theirs = sm.Logit(y, sm.add_constant(X)).fit(disp=0)
    for name, value in (("log-likelihood", theirs.llf), ("AIC", theirs.aic), ("BIC", theirs.bic)):
        assert ours[name] == pytest.approx(value, rel=1e-8)
    t = X[:, 0] + np.cos(np.arange(len(X)))
    least = summary(LinearRegressor().fit(X, t), X, t).facts
    other = sm.OLS(t, sm.add_constant(X)).fit()
    for name, value in (("log-likelihood", other.llf), ("AIC", other.aic), ("BIC", other.bic)):
        assert least[name] == pytest.approx(value, rel=1e-8)
    assert least["residual standard error"] == pytest.approx(np.sqrt(other.scale), rel=1e-10)
    exact = summary(LinearRegressor().fit(X, X[:, 0] * 0.0), X, X[:, 0] * 0.0).facts
    assert (
        "residual standard error" not in exact and "AIC" not in exact
    )  # residuals are rounding errors
    assert "AIC" not in summary(LogisticRegression().fit(X, y), X, y).facts  # penalised


def test_text_values_and_page():
    pd = pytest.importorskip("pandas")
    X, y = logistic_rows()
    frame = pd.DataFrame(X, columns=["<script>", "a & b", "plain"])
    found = summary(LogisticRegression(C=np.inf).fit(frame, y), frame, y)
    page = found.to_html()
    assert "<script>" not in page and "&lt;script&gt;" in page and "a &amp; b" in page
    assert page == found._repr_html_()
    assert "<h" not in page and "padding" in page  # no heading of the page around it, cells apart
    values = json.loads(json.dumps(found.to_dict()))
    assert values["coefficients"][""][0]["name"] == "<script>"
    assert values["valid"] is True
    text = str(found)
    assert "std. error" in text and "odds ratio" in text and "plain" in text


def test_bad_requests():
    X, y = logistic_rows()
    with pytest.raises(NotFittedError, match="not fitted"):
        summary(LogisticRegression(), X, y)
    with pytest.raises(BadInput, match="level must lie"):
        summary(LogisticRegression().fit(X, y), X, y, level=1.5)


def test_an_exact_fit_has_no_standard_errors():
    """Its residuals are rounding errors: their variance says nothing."""
    rng = np.random.default_rng(0)
    X = rng.normal(size=(30, 3))
    y = X @ [1.0, -2.0, 0.5] + 1.0
    found = summary(LinearRegressor().fit(X, y), X, y)
    assert not found.valid
    assert "exactly" in found.inference


@pytest.mark.parametrize("scale", [1e-155, 1e160])
def test_squares_out_of_range_have_no_standard_errors(scale):
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 3)), scale * rng.normal(size=30)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        found = summary(LinearRegressor().fit(X, y), X, y)
    assert not found.valid
    assert "out of range" in found.inference
