"""Checks that scikit-learn applies to its own estimators, without its list of expected failures."""

import warnings

import pytest
from sklearn.utils.estimator_checks import check_estimator

import linsep.sklearn as ours

#: n_iter_ is None where scikit-learn's solver has no iterations.
N_ITER = {"check_non_transformer_estimators_n_iter": "n_iter_ of a direct solver is None"}
#: At the minimum of the hinge, support vectors of two classes have equal scores, which rounding tells apart.
TIES = {"check_methods_subset_invariance": "equal scores of two classes at the exact minimum"}


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
