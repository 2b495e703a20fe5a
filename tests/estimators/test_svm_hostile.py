"""LinearSVC on rows that break solvers: certified, or honest about the gap; and LIBSVM's objective on real rows."""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given
from hypothesis import strategies as st
from sklearn.datasets import load_breast_cancer, load_digits, load_iris, load_wine
from sklearn.preprocessing import scale
from sklearn.svm import SVC

from linsep import LinearSVC, verify
from linsep.errors import ConvergenceWarning

LOSSES = ["hinge", "squared_hinge"]


# --- hostile rows


def nearly_separable(rng):
    """Parted by a plane, but for one row just beyond it."""
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    worst = np.argmin(np.abs(X[:, 0]))
    y[worst] = -y[worst]
    return X, y


def barely_separable(rng):
    """A gap between the classes of a millionth of their size."""
    X = rng.standard_normal((60, 3))
    y = np.where(X[:, 0] > 0.0, 1.0, -1.0)
    X[:, 0] += 1e-6 * y
    return X, y


def touching_hulls(rng):
    """One point belongs to both hulls, and is a row of neither class alone."""
    left, right = rng.uniform(-1.0, 0.0, (20, 2)), rng.uniform(0.0, 1.0, (20, 2))
    X = np.vstack([left, right, [[0.0, -1.0], [0.0, 1.0], [0.0, 0.0]]])
    return X, np.r_[-np.ones(20), np.ones(20), 1.0, 1.0, -1.0]


def same_rows_both_ways(rng):
    """Every row is there twice, once for each class."""
    X = rng.standard_normal((25, 3))
    return np.vstack([X, X]), np.r_[np.ones(25), -np.ones(25)]


def rare_positives(rng):
    """0.1 % of one class."""
    X = rng.standard_normal((2000, 4))
    return X, np.where(np.arange(2000) < 2, 1.0, -1.0)


def duplicates(rng):
    """Few different rows, many times."""
    X = rng.integers(0, 2, (200, 3)).astype(float)
    return X, np.where(X[:, 0] + 0.5 * rng.standard_normal(200) > 0.5, 1.0, -1.0)


def lone_rows(rng):
    """One row of each class."""
    return rng.standard_normal((2, 5)), np.array([-1.0, 1.0])


def far_and_near(rng):
    """Columns and rows of very different sizes."""
    X = rng.standard_normal((80, 4)) * [1e4, 1.0, 1e-4, 0.0]
    X[0] *= 1e3
    y = np.where(X[:, 1] + rng.standard_normal(80) > 0.0, 1.0, -1.0)
    y[:2] = 1.0, -1.0
    return X, y


KINDS = [
    nearly_separable,
    barely_separable,
    touching_hulls,
    same_rows_both_ways,
    rare_positives,
    duplicates,
    lone_rows,
    far_and_near,
]


def value(w, b, loss, C, X, y):
    """1/2 |w|^2 + C sum of the losses, from its definition."""
    slack = np.maximum(0.0, 1.0 - y * (X @ w + b))
    return 0.5 * w @ w + C * np.sum(slack if loss == "hinge" else slack**2)


def bound(alpha, loss, C, X, y):
    """The dual objective: a floor under all values, if alpha is feasible."""
    v = X.T @ (y * alpha)
    curved = 0.0 if loss == "hinge" else alpha @ alpha / (4.0 * C)
    return alpha.sum() - curved - 0.5 * v @ v


@given(
    kind=st.sampled_from(KINDS),
    exponent=st.integers(-6, 8),
    loss=st.sampled_from(LOSSES),
    sparse=st.booleans(),
    fit_intercept=st.booleans(),
    seed=st.integers(0, 1000),
)
def test_certified_or_honest(kind, exponent, loss, sparse, fit_intercept, seed):
    rng = np.random.default_rng(seed)
    X, y = kind(rng)
    C = 10.0**exponent
    rows = sp.csr_array(X) if sparse else X
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        model = LinearSVC(C, loss=loss, fit_intercept=fit_intercept).fit(rows, y)
    proof, w, b = model.certificate_, model.coef_[0], float(model.intercept_[0])
    warned = any(issubclass(found.category, ConvergenceWarning) for found in caught)
    assert proof.certified != warned  # never a silent miss
    here = value(w, b, loss, C, X, y)
    assert proof.primal == pytest.approx(here, rel=1e-7)
    alpha = model.alpha_
    assert (alpha >= 0.0).all()
    assert loss == "squared_hinge" or (alpha <= C).all()
    if fit_intercept:
        assert abs(y @ alpha) <= 1e-12 * max(alpha.sum(), 1e-300)
    # The bound that is claimed holds at every point, whatever was found: here, at 0, nearby.
    shift = rng.standard_normal(len(w)) * (1e-3 * np.abs(w).max() + 1e-12)
    zero = min(
        value(0.0 * w, t, loss, C, X, y) for t in ((-1.0, 0.0, 1.0) if fit_intercept else (0.0,))
    )
    for other in (here, zero, value(w + shift, b, loss, C, X, y)):
        assert proof.dual <= other * (1.0 + 1e-12)
    assert bound(alpha, loss, C, X, y) <= here * (1.0 + 1e-9)
    assert proof.primal - proof.dual <= proof.gap * (1.0 + 1e-9)
    if exponent <= 3:
        assert proof.certified


# --- LIBSVM, whose intercept is free too


def _standardised(load, positive):
    X, y = load(return_X_y=True)
    return scale(X), np.where(positive(y), 1.0, -1.0)


REAL = {
    "iris": (load_iris()["data"], np.where(load_iris()["target"] == 2, 1.0, -1.0)),
    "iris, separable": _standardised(load_iris, lambda y: y == 0),
    "wine": _standardised(load_wine, lambda y: y == 1),
    "cancer": _standardised(load_breast_cancer, lambda y: y == 1),
    "digits": (load_digits()["data"] / 16.0, np.where(load_digits()["target"] % 2, 1.0, -1.0)),
}


CASES = [(name, C) for name in REAL for C in (0.01, 1.0, 100.0)]
SLOW = pytest.param("digits", 100.0, marks=pytest.mark.slow)  # for LIBSVM


@pytest.mark.parametrize(
    ("name", "C"), [SLOW if case == ("digits", 100.0) else case for case in CASES]
)
def test_the_objective_is_that_of_libsvm(name, C):
    """LIBSVM's objective is its dual one, whose error is of second order in its tolerance; that of its w is not."""
    X, y = REAL[name]
    model = LinearSVC(C).fit(X, y)
    peer = SVC(C=C, kernel="linear", tol=1e-7).fit(X, y)
    theirs = np.abs(peer.dual_coef_).sum() - 0.5 * np.sum(peer.coef_**2)
    ours = value(model.coef_[0], model.intercept_[0], "hinge", C, X, y)
    assert ours == pytest.approx(theirs, rel=1e-6)
    alpha = model.alpha_
    assert ((alpha >= 0.0) & (alpha <= C)).all()
    assert abs(y @ alpha) <= 1e-12 * alpha.sum()
    assert bound(alpha, "hinge", C, X, y) == pytest.approx(ours, rel=1e-6)
    m = y * model.decision_function(X)
    slack, beyond = np.maximum(0.0, 1.0 - m), np.maximum(0.0, m - 1.0)
    assert (C - alpha) @ slack + alpha @ beyond <= 1e-6 * ours  # complementarity
    assert verify(model, X, y).certified
