"""scikit-learn's own estimator checks, all of them, with no expected failure."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest
from sklearn.utils.estimator_checks import parametrize_with_checks

from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    Perceptron,
    SGDClassifier,
    ZeroOneClassifier,
)
from linsep.losses import NAMES, get

SMOOTH = [name for name in NAMES if get(name).smooth and get(name).classification]

ESTIMATORS = [
    LogisticRegression(),
    LogisticRegression(multiclass="ovr"),
    *(LinearClassifier(loss) for loss in SMOOTH),
    LinearSVC(),
    LinearSVC(loss="squared_hinge"),
    LinearSVC(multiclass="crammer_singer"),
    LinearRegressor(),
    LinearRegressor(C=1.0),
    LinearRegressor("huber", C=1.0),
    LinearRegressor("absolute"),
    LogisticRegressionCV([0.1, 10.0], cv=2),
    Perceptron(),
    Perceptron(update="normalised", order="random", average=True),
    SGDClassifier(),
    SGDClassifier("squared_hinge", replacement=False),
    SGDClassifier("logistic", keep="average", schedule="inverse"),
    LinearSVCCV([0.1, 10.0], cv=2),
    ZeroOneClassifier(None, max_rounds=1),  # no clock: the same answer on any machine
]


def exceptions(estimator):
    """Checks that a perceptron cannot pass: it ends at the first hyperplane without a mistake.

    A weight multiplies its updates, as in scikit-learn's, which is not the row repeated.
    """
    if not isinstance(estimator, Perceptron):
        return {}
    reason = "the weight of a row multiplies its updates"
    found = {
        "check_sample_weight_equivalence_on_dense_data": reason,
        "check_sample_weight_equivalence_on_sparse_data": reason,
    }
    if not estimator.average:
        found["check_class_weight_classifiers"] = "no mistake on the heavy class, no update for it"
    return found


# Some checks warn on purpose, for instance by passing a column for y.
@pytest.mark.sampled(450)
@pytest.mark.filterwarnings("default")
@parametrize_with_checks(ESTIMATORS, expected_failed_checks=exceptions)
def test_scikit_learn_check(estimator, check):
    check(estimator)


@pytest.mark.slow
def test_scikit_learn_checks_of_other_arrays():
    command = [
        sys.executable,
        "-m",
        "pytest",
        "-q",
        "-p",
        "no:cacheprovider",
        "-k",
        "array_api",
        __file__,
    ]
    done = subprocess.run(
        command,
        env=os.environ | {"SCIPY_ARRAY_API": "1"},
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout
    assert "passed" in done.stdout
    assert "skipped" not in done.stdout
