"""Checks that scikit-learn applies to its own estimators, without its list of expected failures."""

import warnings

import numpy as np
import pytest
import sklearn.linear_model as theirs
import sklearn.utils.validation
from sklearn.base import clone
from sklearn.datasets import load_breast_cancer
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import linsep
import linsep.sklearn as ours
from linsep.errors import BadInput

#: n_iter_ is None where scikit-learn's solver has no iterations.
N_ITER = {"check_non_transformer_estimators_n_iter": "n_iter_ of a direct solver is None"}
#: At the minimum of the hinge, support vectors of two classes have equal scores, which rounding tells apart.
TIES = {"check_methods_subset_invariance": "equal scores of two classes at the exact minimum"}


@pytest.mark.sampled(1)
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("LogisticRegression", {}),
        ("LinearSVC", {}),
        ("SGDClassifier", TIES),
        ("RidgeClassifier", N_ITER),
    ],
)
def test_estimator_checks_pass(name, expected):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        check_estimator(getattr(ours, name)(), expected_failed_checks=expected)


@pytest.mark.parametrize(
    "model",
    [
        ours.LogisticRegression(C=0.5),
        ours.LogisticRegression(solver="liblinear"),
        ours.LinearSVC(),
        ours.LinearSVC(loss="hinge"),
        ours.RidgeClassifier(),
        ours.Ridge(),
        ours.LinearRegression(),
        ours.Lasso(alpha=0.1),
        ours.ElasticNet(alpha=0.1),
        ours.LinearSVR(),
        ours.QuantileRegressor(quantile=0.3, alpha=0.01),
        ours.HuberRegressor(),
    ],
    ids=str,
)
def test_small_tables_of_ordinary_types_skip_the_checks_of_scikit_learn(model, monkeypatch):
    """The checks take several times as long as the fit; a list goes through them, to the same model."""
    X, y = load_breast_cancer(return_X_y=True)
    X = StandardScaler().fit_transform(X[::4, :4])
    y = y[::4] if hasattr(model, "decision_function") else X @ [1.0, 2.0, 0.0, -1.0] + y[::4]
    checked = clone(model).fit(X.tolist(), y)
    monkeypatch.setattr(sklearn.utils.validation, "check_array", None)
    found = model.fit(X, y)
    np.testing.assert_allclose(found.coef_, checked.coef_, rtol=1e-6, atol=1e-9)
    np.testing.assert_allclose(found.intercept_, checked.intercept_, rtol=1e-6, atol=1e-9)
    assert found.certificate_.certified
    assert np.shape(getattr(found, "n_iter_", 0)) == np.shape(getattr(checked, "n_iter_", 0))
    assert type(found.intercept_) is type(checked.intercept_)


def test_functions_of_linsep_take_the_classes_or_say_what_to_use(tmp_path):
    X, y = load_breast_cancer(return_X_y=True)
    model = ours.LogisticRegression().fit(X, y)
    with pytest.raises(BadInput, match=r"linsep\.audit"):
        linsep.verify(model, X, y)
    assert linsep.audit(model, X, y).optimal
    assert linsep.tune(ours.LogisticRegression(), X, y, [0.1, 1.0], cv=2).certified
    page = linsep.write_report(model, X, y, tmp_path / "report.html").read_text()
    assert "lower bound" in page
    with pytest.raises(BadInput, match="left no certificate"):
        linsep.tune(theirs.LogisticRegression(solver="newton-cholesky"), X, y, [0.1, 1.0], cv=2)
