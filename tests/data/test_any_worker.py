"""Every class of problem that workers fit: their number, and the order in which they finish, change no bit.

A cluster enters a fit by an ``Engine`` alone. The engine of these tests runs the tasks of 1, 2, 4 or 8 workers in
random order on copies of their arguments, so nothing but the order of the partitions is left to depend on.
test_cluster.py and test_spark.py compare the bits of both libraries with those of the same partitions in memory, and
test_cluster_processes.py has clusters of real processes.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
import scipy.sparse as sp

import linsep
from linsep import (
    LinearClassifier,
    LinearRegressor,
    LinearSVC,
    LinearSVCCV,
    LogisticRegression,
    LogisticRegressionCV,
    separate,
)

pytest.importorskip("cloudpickle")

from scattered import Scattered

from linsep.data.cluster.opening import PersistedRows

# More partitions than a node of the tree of sums has.
EDGES = np.cumsum([0, 300, 1, 299, *[25] * 24])
N = int(EDGES[-1])
LASSO = {"l1_ratio": 1.0, "C": 0.05}
CASES = {
    "logistic": (LogisticRegression(), 5, 2),
    "logistic, conjugate gradients": (LogisticRegression(solver="newton-cg"), 5, 2),
    "logistic, pilot": (LogisticRegression(solver="newton-pilot"), 5, 2),
    "logistic, sparse": (LogisticRegression(C=0.1), -200, 2),
    "logistic, wide": (LogisticRegression(C=0.1), 1210, 2),
    "squared hinge": (LinearClassifier("squared_hinge"), 5, 2),
    "huberised hinge": (LinearClassifier("huberised_hinge"), 5, 2),
    "hinge": (LinearSVC(C=0.1), 3, 2),
    "softmax": (LogisticRegression(), 5, 3),
    "softmax, sparse": (LogisticRegression(C=0.1), -60, 3),
    "one against the rest": (LinearSVC(C=0.1), 3, 3),
    "lasso": (LogisticRegression(**LASSO), 8, 2),
    "weak lasso": (LogisticRegression(C=1e4, l1_ratio=1.0), 8, 2),
    "lasso, sparse": (LogisticRegression(**LASSO), -550, 2),
    "lasso, softmax": (LogisticRegression(**LASSO), 8, 3),
    "squares": (LinearRegressor("squared"), 5, 0),
    "Huber": (LinearRegressor("huber", C=0.1), 5, 0),
    "absolute": (LinearRegressor("absolute", C=0.1), 3, 0),
    "lasso, squares": (LinearRegressor("squared", **LASSO), 8, 0),
    "elastic net": (LogisticRegression(C=0.05, l1_ratio=0.5), 8, 2),
    "balanced classes": (LogisticRegression(class_weight="balanced"), 5, 2),
    "exponential": (LinearClassifier("exponential", C=0.1), 5, 2),
    "perceptron loss": (LinearClassifier("perceptron", C=0.1), 3, 2),
    "squared epsilon": (LinearRegressor("squared_epsilon_insensitive", C=0.1), 5, 0),
    "epsilon": (LinearRegressor("epsilon_insensitive", C=0.1), 3, 0),
    "quantile": (LinearRegressor("pinball", C=0.1), 3, 0),
    "Crammer and Singer": (LinearSVC(C=0.1, multiclass="crammer_singer"), 3, 3),
    "hard margin": (LinearSVC(C=np.inf), 3, 1),
    "groups": (LogisticRegression(**LASSO, feature_groups=np.arange(8) // 2), 8, 2),
    "penalty factors": (LogisticRegression(**LASSO, penalty_factor=np.arange(8) % 3), 8, 2),
    "logistic, chooses C": (LogisticRegressionCV(Cs=3, cv=3), 5, 2),
    "hinge, chooses C": (LinearSVCCV(Cs=2, cv=2), 3, 2),
    "no penalty": (LogisticRegression(C=np.inf), 5, 2),
    "no penalty, squares": (LinearRegressor("squared", C=np.inf), 5, 0),
}
#: Fitted by the client: bands of few rows may fail, or it needs all rows.
AT_THE_CLIENT = (
    *("hinge", "one against the rest", "absolute", "perceptron loss", "epsilon", "quantile"),
    *("Crammer and Singer", "hard margin", "groups", "penalty factors", "hinge, chooses C"),
)


def test_every_estimator_and_every_loss_is_among_the_cases():
    """The other estimators need rows in memory."""
    models = [model for model, _, _ in CASES.values()]
    kinds = [LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression]
    assert {type(model) for model in models} == {*kinds, LinearSVCCV, LogisticRegressionCV}
    fitted = {getattr(model, "loss", "logistic") for model in models}
    assert fitted == {name for name in linsep.losses.NAMES if linsep.losses.get(name).convex}


def table(d, classes):
    rng = np.random.default_rng(abs(d))
    X = rng.normal(size=(N, abs(d))) * (rng.random((N, abs(d))) < 0.1 if d < 0 else 1.0)
    z = X[:, :3].sum(axis=1) + rng.logistic(size=N)
    if classes == 1:  # separable
        return X, X[:, 0] > 0
    y = z if not classes else np.digitize(z, [-1.0, 1.0]) if classes > 2 else z > 0
    return (sp.csr_matrix(X) if d < 0 else X), y


def scattered(X, workers):
    parts = [X[lo:hi] for lo, hi in pairwise(EDGES)]
    return PersistedRows(Scattered(len(parts), workers), parts, len(parts))


def answers(model, X, y, workers):
    model.fit(scattered(X, workers), y)
    found = model.certificate_
    numbers = found.primal, found.dual, found.gap, found.rounding
    return np.concatenate([np.ravel(model.coef_), np.ravel(model.intercept_), numbers]), vars(
        model.traffic_
    )


@pytest.mark.sampled(2)
@pytest.mark.parametrize("kind", CASES)
def test_the_number_and_the_order_of_the_workers_change_no_bit(kind, tuned):
    model, d, classes = CASES[kind]
    X, y = table(d, classes)
    tuned(sifting_entries=1000, memory_entries=10**6 if kind in AT_THE_CLIENT else 1000)
    one, traffic = answers(model, X, y, 1)
    assert model.certificate_.certified
    for workers in (2, 4, 8):
        other, sent = answers(model, X, y, workers)
        assert np.array_equal(one, other) and traffic == sent


def test_the_number_of_the_workers_changes_no_bit_of_separability(tuned):
    X, _ = table(5, 2)
    tuned(memory_entries=1000)
    found = [separate(scattered(X, workers), X[:, 0] > 0).hyperplane for workers in (1, 8)]
    assert np.array_equal(found[0].homogeneous(), found[1].homogeneous())
