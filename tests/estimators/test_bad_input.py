"""Whatever is wrong with the input: a typed error that says what, where and what to do.

``tests/faults`` holds rows, labels and weights; here are parameters, and what needs a look inside. After every refusal
the estimator is as it was before.
"""

from __future__ import annotations

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning, NotFittedError

from linsep import LinearClassifier, LinearRegressor, LogisticRegression
from linsep.errors import BadInput, LinsepError, NonFinite, Refused
from linsep.estimators.fitting import _SCAN_LIMIT

N, D = 30, 3
RNG = np.random.default_rng(0)
X = RNG.normal(size=(N, D))
Y = (X @ [1.0, -2.0, 0.5] + RNG.normal(size=N) > 0).astype(int)
T = X @ [1.0, -2.0, 0.5] + RNG.normal(size=N)


def state_of(model):
    return {key: value for key, value in vars(model).items() if key not in model.get_params()}


def refused(model, X, y, words, kind=LinsepError, **kwargs):
    """Fit must fail with the words in its message, and leave no trace on the model."""
    before = state_of(model)
    with pytest.raises(kind) as error:
        model.fit(X, y, **kwargs)
    for word in words:
        assert word in str(error.value), f"{word!r} not in {error.value!s}"
    after = state_of(model)
    assert after.keys() == before.keys()
    assert all(after[key] is before[key] for key in before)


@pytest.fixture(params=["new", "fitted"])
def model(request):
    model = LogisticRegression()
    return model.fit(X, Y) if request.param == "fitted" else model


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_large_rows_are_searched_only_when_the_first_pass_finds_something(make, value):
    n = _SCAN_LIMIT // D + 1
    big = np.resize(X, (n, D))
    big[n - 2, 1] = value
    refused(LogisticRegression(), make(big), np.resize(Y, n), [f"row {n - 2}, column 1"], NonFinite)


PARAMETERS = {
    "C zero": ({"C": 0}, ["C", "(0, inf]", "0"]),
    "C negative": ({"C": -1.0}, ["C", "(0, inf]", "-1.0"]),
    "C NaN": ({"C": np.nan}, ["C", "(0, inf]", "nan"]),
    "C text": ({"C": "1"}, ["C must be a number", "'1'", "str"]),
    "C None": ({"C": None}, ["C must be a number", "None"]),
    "C bool": ({"C": True}, ["C must be a number", "True"]),
    "C array": ({"C": np.ones(2)}, ["C must be a number"]),
    "l1_ratio": ({"l1_ratio": 1.5}, ["l1_ratio", "[0, 1]", "1.5"]),
    "l1_ratio NaN": ({"l1_ratio": np.nan}, ["l1_ratio", "[0, 1]", "nan"]),
    "tol zero": ({"tol": 0.0}, ["tol must be a number between 0 and 1", "got 0.0"]),
    "tol negative": ({"tol": -1e-3}, ["tol must be a number between 0 and 1", "-0.001"]),
    "tol NaN": ({"tol": np.nan}, ["tol must be a number between 0 and 1", "nan"]),
    "tol text": ({"tol": "1e-6"}, ["tol must be a number", "'1e-6'"]),
    "tol one": ({"tol": 1.0}, ["tol must be a number between 0 and 1", "1.0"]),
    "tol two": ({"tol": 2}, ["tol must be a number between 0 and 1", "got 2.0", "1e-6"]),
    "time_limit": ({"time_limit": 0}, ["time_limit", "positive number of seconds", "0"]),
    "time_limit NaN": ({"time_limit": np.nan}, ["time_limit", "positive"]),
    "max_passes": ({"max_passes": -3}, ["max_passes", "positive number of passes", "-3"]),
    "n_threads": ({"n_threads": 0}, ["n_threads", ">= 1", "0"]),
    "n_threads fraction": ({"n_threads": 1.5}, ["n_threads", "whole number", "1.5"]),
    "fit_intercept": ({"fit_intercept": "no"}, ["fit_intercept", "True or False", "'no'"]),
    "warm_start": ({"warm_start": 1}, ["warm_start", "True or False", "1"]),
    "random_state": ({"random_state": "seed"}, ["random_state", "'seed'"]),
    "random_state negative": ({"random_state": -1}, ["random_state", "-1"]),
    "multiclass": ({"multiclass": "ovo"}, ["multiclass", "'multinomial', 'ovr'", "'ovo'"]),
    "solver": ({"solver": "newtn"}, ["solver", "'newtn'", "newton"]),
    "class_weight": ({"class_weight": {5: 2.0}}, ["class_weight", "5", "0, 1"]),
}


@pytest.mark.parametrize("name", PARAMETERS)
def test_parameters(model, name):
    given, words = PARAMETERS[name]
    refused(model.set_params(**given), X, Y, words)


def test_losses_without_a_solver_are_refused():
    refused(LinearClassifier("zero_one"), X, Y, ["zero_one"], Refused)


def test_unknown_losses():
    words = ["'quadratic'", "squared", "logistic"]
    refused(LinearClassifier("quadratic"), X, Y, words, BadInput)
    refused(LinearClassifier(None), X, Y, ["None", "logistic"], BadInput)
    refused(LinearRegressor("logistic"), X, T, ["'logistic'", "squared", "huber"], BadInput)
    refused(LinearClassifier("huber"), X, Y, ["'huber'", "logistic", "squared_hinge"], BadInput)
    refused(LinearClassifier(multiclass="multinomial"), X, Y, ["'ovr'"], BadInput)
    assert not hasattr(LinearClassifier("quadratic"), "predict_proba")


@pytest.mark.parametrize("estimator", [LogisticRegression(), LinearRegressor()])
def test_not_fitted(estimator):
    with pytest.raises(NotFittedError, match="is not fitted yet"):
        estimator.predict(X)


@pytest.mark.parametrize("make", [np.asarray, np.ndarray.tolist, sp.csr_matrix, np.asfortranarray])
def test_wrong_number_of_columns(make):
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="X has 2 features, but LogisticRegression is expecting 3"):
        model.predict(make(X[:, :2].copy()))


def test_scores_that_overflow():
    model = LinearRegressor().fit(X, T)
    model.coef_ = np.full(D, 1e300)
    with pytest.raises(BadInput, match=r"score of row 1 .* rescale"):
        model.predict(np.array([[0.0, 0.0, 0.0], [1e300, 0.0, 0.0]]))


def test_column_y_is_accepted_with_a_warning():
    with pytest.warns(DataConversionWarning, match="column-vector y"):
        column = LogisticRegression().fit(X, Y[:, None])
    np.testing.assert_array_equal(column.coef_, LogisticRegression().fit(X, Y).coef_)


def test_the_caller_s_matrix_is_left_alone():
    given = _stored_twice()
    parts = given.data.copy(), given.indices.copy(), given.indptr.copy()
    LogisticRegression().fit(given, Y)
    for now, before in zip((given.data, given.indices, given.indptr), parts, strict=True):
        np.testing.assert_array_equal(now, before)


def _stored_twice():
    good = sp.csr_matrix(X)
    parts = np.repeat(good.data / 2, 2), np.repeat(good.indices, 2), 2 * good.indptr
    return sp.csr_matrix(parts, (N, D))


def test_sparse_rows_need_not_be_aligned():
    """Numbers at addresses that are no multiples of their size are copied before they are read."""

    def shifted(a):
        return np.frombuffer(b"\0" + a.tobytes(), a.dtype, offset=1)

    good = sp.csr_matrix(X)
    given = sp.csr_matrix(X)
    for name in ("data", "indices", "indptr"):
        setattr(given, name, shifted(getattr(good, name)))
    model, truth = LogisticRegression().fit(given, Y), LogisticRegression().fit(good, Y)
    np.testing.assert_array_equal(model.coef_, truth.coef_)
    np.testing.assert_array_equal(model.predict_proba(given), truth.predict_proba(good))
