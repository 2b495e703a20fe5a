"""Known parts of the scores: ``fit(X, y, offset=...)``."""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from scipy.optimize import minimize

import linsep
from linsep import LinearClassifier, LinearRegressor, LogisticRegression, losses
from linsep.errors import BadInput

RNG = np.random.default_rng(5)
X = RNG.normal(size=(120, 4))
OFFSET = RNG.normal(size=120) + 0.5
Y = (X @ [1.0, -1.0, 0.5, 0.0] + OFFSET + RNG.logistic(size=120) > 0).astype(int)
T = X @ [1.0, -1.0, 0.5, 0.0] + OFFSET + 0.1 * RNG.normal(size=120)


def objective(loss, C, l1_ratio, X, model):
    w, b = model.coef_.ravel(), float(np.ravel(model.intercept_)[0])
    loss_sum = loss.value((2 * Y - 1) * (X @ w + b + OFFSET)).sum()
    penalty = (1 - l1_ratio) / 2 * w @ w + l1_ratio * np.abs(w).sum()
    return penalty + C * loss_sum if np.isfinite(C) else loss_sum


@pytest.mark.parametrize("l1_ratio", [0.0, 1.0])
@pytest.mark.parametrize("storage", [np.asarray, sp.csr_array], ids=["dense", "sparse"])
@pytest.mark.parametrize(
    "name", ["logistic", "hinge", "squared_hinge", "modified_huber", "squared"]
)
def test_the_objective_with_offsets_is_certified(name, storage, l1_ratio):
    loss = losses.get(name)
    model = LinearClassifier(name, C=0.7, l1_ratio=l1_ratio).fit(storage(X), Y, offset=OFFSET)
    proof = linsep.verify(model, storage(X), Y, offset=OFFSET)
    assert proof.certified and model.certificate_.certified
    P = objective(loss, 0.7, l1_ratio, X, model)
    assert model.certificate_.primal == pytest.approx(P, rel=1e-9)
    assert linsep.verify(model, storage(X), Y, offset=OFFSET, exact=name != "logistic").certified


@pytest.mark.parametrize("C", [1.0, np.inf])
def test_another_optimiser_finds_the_same(C):
    model = LogisticRegression(C=C, tol=1e-10).fit(X, Y, offset=OFFSET)
    sign = 2 * Y - 1

    def value(theta):
        w, b = theta[:-1], theta[-1]
        total = np.logaddexp(0.0, -sign * (X @ w + b + OFFSET)).sum()
        return total if np.isinf(C) else total + w @ w / 2

    found = minimize(value, np.zeros(5), method="BFGS", options={"gtol": 1e-7})
    np.testing.assert_allclose(np.append(model.coef_, model.intercept_), found.x, atol=1e-4)
    assert linsep.verify(model, X, Y, offset=OFFSET).certified


def test_statsmodels_agrees_on_the_table():
    sm = pytest.importorskip("statsmodels.api")
    model = LogisticRegression(C=np.inf, tol=1e-10).fit(X, Y, offset=OFFSET)
    table = linsep.summary(model, X, Y, offset=OFFSET)
    family = sm.families.Binomial()
    other = sm.GLM(Y, sm.add_constant(X, prepend=False), family=family, offset=OFFSET).fit(
        tol=1e-12
    )
    ours = [line.standard_error for line in table.coefficients[""]]
    np.testing.assert_allclose(ours, other.bse, rtol=1e-5)
    assert table.facts["log-likelihood"] == pytest.approx(other.llf, rel=1e-8)


@pytest.mark.parametrize("loss", ["squared", "absolute", "huber"])
def test_regression_on_what_the_offset_leaves(loss):
    model = LinearRegressor(loss, C=1.0).fit(X, T, offset=OFFSET)
    other = LinearRegressor(loss, C=1.0).fit(X, T - OFFSET)
    np.testing.assert_array_equal(model.coef_, other.coef_)
    assert linsep.verify(model, X, T, offset=OFFSET).certified


def test_many_rows():
    many = RNG.normal(size=(20_000, 12))
    offset = RNG.normal(size=len(many))
    y = many[:, 0] + offset + RNG.normal(size=len(many)) > 0
    for name in ("logistic", "hinge", "squared_hinge"):
        model = LinearClassifier(name).fit(many, y, offset=offset)
        assert linsep.verify(model, many, y, offset=offset).certified


def test_it_is_needed_again(tmp_path):
    model = LogisticRegression().fit(X, Y, offset=OFFSET)
    linsep.save(model, tmp_path / "model.linsep")
    again = linsep.load(tmp_path / "model.linsep")
    assert linsep.verify(again, X, Y, offset=OFFSET).certified
    for call in (linsep.verify, linsep.summary):
        with pytest.raises(BadInput, match="fitted with offset"):
            call(again, X, Y)
        with pytest.raises(BadInput, match="fitted without offset"):
            call(LogisticRegression().fit(X, Y), X, Y, offset=OFFSET)
    with pytest.raises(linsep.errors.CertificateError):
        linsep.verify(again, X, Y, offset=OFFSET + 0.1)


@pytest.mark.parametrize(
    ("model", "y", "offset", "message"),
    [
        (LogisticRegression(), np.arange(120) % 3, OFFSET, "y has 3"),
        (LogisticRegression(), Y, OFFSET[:-1], "one number for each row"),
        (LogisticRegression(), Y, np.where(OFFSET > 2, np.nan, OFFSET), "offset"),
        (LogisticRegression(), Y, ["a"] * 120, "numbers"),
        (linsep.LinearSVC(), Y, OFFSET, "LinearClassifier"),
        (linsep.LogisticRegressionCV(), Y, OFFSET, "LogisticRegression"),
        (LinearRegressor(), T, OFFSET[:-1], "one number for each row"),
    ],
)
def test_refusals(model, y, offset, message):
    with pytest.raises(BadInput, match=message):
        model.fit(X, y, offset=offset)


@pytest.mark.parametrize("loss", ["hinge", losses.Scaled(losses.Hinge(), 2.0)])
def test_the_hard_margin_takes_no_offset(loss):
    with pytest.raises(BadInput, match="hard margin"):
        LinearClassifier(loss, C=np.inf).fit(X + 5 * Y[:, None], Y, offset=OFFSET)
