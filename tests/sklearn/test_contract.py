"""Checks that scikit-learn applies to its own estimators, without its list of expected failures."""

import warnings

import pytest
import sklearn.linear_model as theirs
from sklearn.datasets import load_breast_cancer
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
