"""Whatever is wrong with the input: a typed error that says what, where and what to do.

Each case is one line: what is given and the words the message must contain. After every refusal
the estimator is as it was before.
"""

from __future__ import annotations

import warnings

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.exceptions import DataConversionWarning, NotFittedError

from linsep import LinearClassifier, LinearRegressor, LogisticRegression, verify
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


def with_value(value, row, col, dtype=np.float64):
    bad = X.astype(dtype)
    bad[row, col] = value
    return bad


def csr(data=None, indices=None, indptr=None):
    """The rows X as a CSR matrix with a damaged part."""
    good = sp.csr_matrix(X)
    for name, part in (("data", data), ("indices", indices), ("indptr", indptr)):
        if part is not None:
            setattr(good, name, part)
    return good


def replaced(array, at, value):
    array = np.array(array)
    array[at] = value
    return array


GOOD = sp.csr_matrix(X)
ROWS = {
    "NaN first": (with_value(np.nan, 0, 0), ["Input X contains NaN", "row 0, column 0", "impute"]),
    "NaN middle": (with_value(np.nan, 17, 1), ["Input X contains NaN", "row 17, column 1"]),
    "NaN last": (with_value(np.nan, 29, 2), ["Input X contains NaN", "row 29, column 2"]),
    "inf": (with_value(np.inf, 4, 2), ["Input X contains infinity", "row 4, column 2", "float64"]),
    "-inf": (with_value(-np.inf, 4, 2), ["Input X contains infinity", "row 4, column 2"]),
    "NaN float32": (with_value(np.nan, 3, 1, np.float32), ["NaN", "row 3, column 1"]),
    "inf float16": (with_value(np.inf, 3, 1, np.float16), ["infinity", "float16", "row 3"]),
    "NaN in Fortran order": (np.asfortranarray(with_value(np.nan, 3, 1)), ["row 3, column 1"]),
    "NaN in CSR": (sp.csr_matrix(with_value(np.nan, 17, 1)), ["NaN", "row 17, column 1"]),
    "inf in CSC": (sp.csc_matrix(with_value(np.inf, 17, 1)), ["infinity", "row 17, column 1"]),
    "NaN object": (with_value(np.nan, 3, 1, object), ["NaN", "row 3, column 1"]),
    "longdouble too large": (
        with_value(np.longdouble("1e4000"), 3, 1, np.longdouble),
        ["infinity or a value too large", "row 3, column 1"],
    ),
    "text": (np.full((N, D), "1.5"), ["numbers", "<U3", "astype(float)"]),
    "text in object": (with_value("red", 6, 2, object), ["'red'", "row 6, column 2", "encode"]),
    "bytes": (np.full((N, D), b"1"), ["numbers", "astype(float)"]),
    "dates": (np.full((N, D), np.datetime64("2020-01-01")), ["numbers", "datetime64"]),
    "complex": (X + 1j, ["Complex data not supported"]),
    "no rows": (X[:0], ["0 sample(s)", "minimum of 1"]),
    "no columns": (X[:, :0], ["0 feature(s)", "minimum of 1"]),
    "one dimension": (X[:, 0], ["Expected 2D array", "Reshape your data"]),
    "three dimensions": (X[:, :, None], ["dim 3", "dim <= 2"]),
    "ragged list": ([[1.0], [2.0, 3.0]] * (N // 2), ["inhomogeneous", "same number of columns"]),
    "masked": (np.ma.array(X, mask=X > 2), ["masked", "fill"]),
    "too few rows": (X[:5], ["X has 5 rows, y has 30", "each row"]),
    "complex CSR": (sp.csr_matrix(X + 1j), ["Complex data not supported"]),
    "index too large": (
        csr(indices=replaced(GOOD.indices, 7, 3)),
        ["CSR", "indices[7] is 3", "0..2"],
    ),
    "index negative": (csr(indices=replaced(GOOD.indices, 7, -1)), ["CSR", "indices[7] is -1"]),
    "indptr falls": (csr(indptr=replaced(GOOD.indptr, 4, 2)), ["CSR", "falls", "from 9 to 2"]),
    "indptr too short": (csr(indptr=GOOD.indptr[:-1]), ["CSR", "30 entries, 31"]),
    "indptr past the end": (csr(indptr=replaced(GOOD.indptr, -1, 999)), ["999", "90 entries"]),
    "indptr begins late": (csr(indptr=replaced(GOOD.indptr, 0, 1)), ["begin with 0", "1"]),
    "data too short": (csr(data=GOOD.data[:-5]), ["CSR", "85 entries"]),
}
if sp.coo_array(X[0]).ndim == 1:  # older scipy made it a matrix of one row
    ROWS["1-D sparse"] = (sp.coo_array(X[0]), ["Expected 2D", "Reshape your data"])


@pytest.mark.parametrize("name", ROWS)
def test_rows(model, name):
    refused(model, ROWS[name][0], Y, ROWS[name][1])


@pytest.mark.parametrize(
    "name", sorted(ROWS.keys() - {"too few rows"})
)  # any number can be predicted
def test_rows_to_be_predicted(name):
    model = LogisticRegression().fit(X, Y)
    bad, words = ROWS[name]
    for method in (model.predict, model.predict_proba, model.decision_function):
        with pytest.raises(ValueError) as error:
            method(bad)
        for word in words:
            assert word in str(error.value)


def test_damaged_matrices_of_other_formats():
    coo = sp.coo_matrix(X)
    coo.col = replaced(coo.col, 7, 5)
    refused(LogisticRegression(), coo, Y, ["COO", "col[7] is 5"])
    csc = sp.csc_matrix(X)
    csc.indices = replaced(csc.indices, 7, N)
    refused(LogisticRegression(), csc, Y, ["CSC", "indices[7] is 30"])
    bsr = sp.bsr_matrix(X, blocksize=(2, 3))
    bsr.indices = replaced(bsr.indices, 7, 4)
    refused(LogisticRegression(), bsr, Y, ["BSR"])


@pytest.mark.parametrize("value", [np.nan, np.inf])
@pytest.mark.parametrize("make", [np.asarray, sp.csr_matrix])
def test_large_rows_are_searched_only_when_the_first_pass_finds_something(make, value):
    n = _SCAN_LIMIT // D + 1
    big = np.resize(X, (n, D))
    big[n - 2, 1] = value
    refused(LogisticRegression(), make(big), np.resize(Y, n), [f"row {n - 2}, column 1"], NonFinite)


LABELS = {
    "one class": (np.ones(N), ["one class only", "1.0", "another class"]),
    "fractions": (T, ["Unknown label type: continuous", "row 0", "regressor"]),
    "NaN": (replaced(Y.astype(float), 5, np.nan), ["Input y contains NaN", "row 5"]),
    "inf": (replaced(Y.astype(float), 5, np.inf), ["Input y contains infinity", "row 5"]),
    "None": (replaced(Y.astype(object), 5, None), ["missing", "row 5"]),
    "mixed": (replaced(Y.astype(object), 5, "a"), ["int, str", "astype(str)"]),
    "bytes": (Y.astype("S1"), ["bytes", "decode"]),
    "complex": (Y + 1j, ["Complex data not supported"]),
    "missing": (None, ["requires y to be passed"]),
    "too short": (Y[:-1], ["X has 30 rows, y has 29"]),
    "two columns": (np.column_stack([Y, Y]), ["1d array", "(30, 2)"]),
    "scalar": (1, ["y"]),
}


@pytest.mark.parametrize("name", LABELS)
def test_labels(model, name):
    refused(model, X, LABELS[name][0], LABELS[name][1], ValueError)


TARGETS = {
    "NaN": (replaced(T, 5, np.nan), ["Input y contains NaN", "row 5"]),
    "inf": (replaced(T, 5, np.inf), ["Input y contains infinity", "row 5"]),
    "text": (np.full(N, "a"), ["numbers", "'a'", "classifier"]),
    "text among objects": (replaced(T.astype(object), 3, "a"), ["numbers", "'a'", "row 3"]),
    "None": (replaced(T.astype(object), 3, None), ["numbers", "row 3"]),
    "two columns": (np.column_stack([T, T]), ["1d array", "(30, 2)", "one model each"]),
    "complex": (T + 1j, ["Complex data not supported"]),
    "missing": (None, ["requires y to be passed"]),
    "too long": (np.append(T, 1.0), ["X has 30 rows, y has 31"]),
}


@pytest.mark.parametrize("name", TARGETS)
def test_targets(name):
    refused(LinearRegressor(), X, TARGETS[name][0], TARGETS[name][1])


ONES = np.ones(N)
WEIGHTS = {
    "negative": (replaced(ONES, 9, -1.0), ["must not be negative", "-1.0", "row 9"]),
    "NaN": (replaced(ONES, 9, np.nan), ["sample_weight contains NaN", "row 9"]),
    "inf": (replaced(ONES, 9, np.inf), ["sample_weight contains infinity", "row 9"]),
    "all zero": (0 * ONES, ["zero in every row", "positive weight"]),
    "a class of zeros": (Y.astype(float), ["class 0", "zero", "leave those rows out"]),
    "too large": (1e308 * ONES, ["overflow", "1e+308", "multiply C"]),
    "too short": (ONES[:-1], ["(29,)", "(30,)"]),
    "two columns": (np.ones((N, 2)), ["(30, 2)", "(30,)"]),
    "text": (np.full(N, "1"), ["numbers", "<U1"]),
    "objects": (np.full(N, {}), ["numbers"]),
    "complex": (ONES + 1j, ["numbers", "complex128"]),
    "masked": (np.ma.array(ONES, mask=Y), ["masked", "sample_weight"]),
}


@pytest.mark.parametrize("name", WEIGHTS)
def test_weights(model, name):
    refused(model, X, Y, WEIGHTS[name][1], sample_weight=WEIGHTS[name][0])


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
    "tol zero": ({"tol": 0.0}, ["tol", "positive", "0.0", "duality gap"]),
    "tol negative": ({"tol": -1e-3}, ["tol", "positive", "-0.001"]),
    "tol NaN": ({"tol": np.nan}, ["tol", "positive", "nan"]),
    "tol text": ({"tol": "1e-6"}, ["tol must be a number", "'1e-6'"]),
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


ACCEPTED = {
    "list": X.tolist(),
    "tuple of rows": tuple(map(tuple, X)),
    "Fortran order": np.asfortranarray(X),
    "negative stride": X[::-1][::-1],
    "every other column": np.repeat(X, 2, axis=1)[:, ::2],
    "read-only": np.frombuffer(X.tobytes()).reshape(N, D),
    "big-endian": X.astype(">f8"),
    "not aligned": np.frombuffer(b"\0" + X.tobytes(), offset=1).reshape(N, D),
    "object": X.astype(object),
    "longdouble": X.astype(np.longdouble),
    "nothing masked": np.ma.array(X),
    "subclass": X.view(np.memmap),
    "CSR": sp.csr_matrix(X),
    "CSR array": sp.csr_array(X),
    "CSC": sp.csc_matrix(X),
    "COO": sp.coo_matrix(X),
    "BSR": sp.bsr_matrix(X, blocksize=(2, 3)),
    "DIA": sp.dia_matrix(X),
    "LIL": sp.lil_matrix(X),
    "DOK": sp.dok_matrix(X),
    "unsorted": csr(GOOD.data.reshape(N, D)[:, ::-1].ravel(), np.tile([2, 1, 0], N).astype("i4")),
    "int64 indices": csr(indices=GOOD.indices.astype("i8"), indptr=GOOD.indptr.astype("i8")),
    "mixed index types": csr(indptr=GOOD.indptr.astype("i8")),
    "longer than needed": csr(
        np.append(GOOD.data, np.nan), np.append(GOOD.indices, 99).astype("i4")
    ),
    "stored twice": sp.csr_matrix(
        (np.repeat(GOOD.data / 2, 2), np.repeat(GOOD.indices, 2), 2 * GOOD.indptr), (N, D)
    ),
    "explicit zeros": sp.csr_matrix(
        (np.where(GOOD.data > 9, 0, GOOD.data), GOOD.indices, GOOD.indptr), (N, D)
    ),
}


@pytest.mark.parametrize("name", ACCEPTED)
def test_accepted_layouts(name):
    """Every layout of the same numbers gives the same model and the same predictions."""
    given = ACCEPTED[name]
    truth = LogisticRegression().fit(X, Y)
    model = LogisticRegression().fit(given, Y)
    assert model.certificate_.certified
    assert model.coef_.dtype == np.float64
    np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-9)
    np.testing.assert_allclose(
        model.decision_function(given), truth.decision_function(X), rtol=1e-8, atol=1e-12
    )
    np.testing.assert_array_equal(model.predict(given), truth.predict(X))


def test_the_caller_s_matrix_is_left_alone():
    given = ACCEPTED["stored twice"].copy()
    parts = given.data.copy(), given.indices.copy(), given.indptr.copy()
    LogisticRegression().fit(given, Y)
    for now, before in zip((given.data, given.indices, given.indptr), parts, strict=True):
        np.testing.assert_array_equal(now, before)


@pytest.mark.parametrize(
    "dtype", ["bool", "i1", "u1", "i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4"]
)
def test_accepted_types(dtype):
    given = (RNG.random(size=(N, D)) * 2).astype(dtype)
    model = LogisticRegression().fit(given, Y)
    truth = LogisticRegression().fit(given.astype(np.float64), Y)
    assert model.certificate_.certified
    np.testing.assert_allclose(model.coef_, truth.coef_, rtol=1e-6, atol=1e-9)
    assert model.decision_function(given).dtype == np.float64
    np.testing.assert_allclose(
        model.decision_function(given), truth.decision_function(given), rtol=1e-5, atol=1e-8
    )


@pytest.mark.parametrize("value", [1e-308, 1e-300, 1e-150, 1e100])
def test_weights_of_extreme_size(value):
    """Weights and C only matter as a product."""
    weighted = LogisticRegression(C=1.0 / value)
    weighted.fit(X, Y, sample_weight=np.full(N, value))
    plain = LogisticRegression().fit(X, Y)
    assert weighted.certificate_.certified
    weight = np.full(N, value)
    assert verify(weighted, X, Y, weight).certified
    assert verify(weighted, X, Y, weight, exact=True).certified
    np.testing.assert_allclose(weighted.coef_, plain.coef_, rtol=1e-6)


@pytest.mark.parametrize("C", [1e-12, 1e-6, 1e6, 1e12])
def test_every_strength_ends_certified(C):
    model = LogisticRegression(C=C).fit(X, Y)
    assert model.certificate_.certified
    assert np.isfinite(model.coef_).all()


COLUMNS = {
    "constant": np.column_stack([X, np.ones(N)]),
    "zero": np.column_stack([X, np.zeros(N)]),
    "duplicated": np.column_stack([X, X]),
    "collinear": np.column_stack([X, X.sum(axis=1)]),
    "large": X * [1.0, 1e6, 1.0],
    "small": X * [1.0, 1e-6, 1.0],
    "tiny": X * [1.0, 1e-300, 1.0],
    "denormal": X * [1.0, 1e-310, 1.0],
    "one outlier": with_value(1e6, 3, 1),
    "d >> n": RNG.normal(size=(N, 200)),
    "one column": X[:, :1],
    "identical rows": np.ones((N, D)),
}


@pytest.mark.parametrize("name", COLUMNS)
def test_columns_of_every_size_end_certified(name):
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        model = LogisticRegression().fit(COLUMNS[name], Y)
    assert model.certificate_.certified
    assert np.isfinite(model.coef_).all()
    assert np.isfinite(model.predict_proba(COLUMNS[name])).all()
