"""Dataframes of any make, as rows, labels and weights."""

from __future__ import annotations

import numpy as np
import pytest
from sklearn.datasets import load_iris
from sklearn.preprocessing import StandardScaler

import linsep
from linsep import LogisticRegression
from linsep.errors import LinsepError

X = np.ascontiguousarray(StandardScaler().fit_transform(load_iris().data)[50:])
Y = load_iris().target[50:]
WEIGHT = np.random.default_rng(0).integers(0, 4, size=len(Y)).astype(float)


def close(one, other, rtol=1e-8):
    np.testing.assert_allclose(one.coef_, other.coef_, rtol=rtol, atol=1e-9)
    np.testing.assert_allclose(one.intercept_, other.intercept_, rtol=rtol, atol=1e-9)


def pandas_frame(X, columns):
    return pytest.importorskip("pandas").DataFrame(X, columns=columns)


def polars_frame(X, columns):
    return pytest.importorskip("polars").DataFrame(X, schema=columns)


def arrow_table(X, columns):
    return pytest.importorskip("pyarrow").table(dict(zip(columns, np.asarray(X).T, strict=True)))


FRAMES = [pandas_frame, polars_frame, arrow_table]
LETTERS = ["a", "b", "c", "d"]


@pytest.mark.parametrize("frame", FRAMES)
def test_frames(frame):
    model = LogisticRegression().fit(frame(X, LETTERS), Y)
    np.testing.assert_array_equal(model.feature_names_in_, LETTERS)
    close(model, LogisticRegression().fit(X, Y), rtol=1e-12)
    np.testing.assert_array_equal(
        model.predict(frame(X, LETTERS)), LogisticRegression().fit(X, Y).predict(X)
    )
    with pytest.raises(ValueError, match="same order"):
        model.predict(frame(X, LETTERS[::-1]))
    with pytest.raises(ValueError, match="yet now missing"):
        model.predict(frame(X[:, :3], LETTERS[:3]))
    with pytest.raises(ValueError, match="unseen at fit time"):
        model.predict(frame(X, [*LETTERS[:3], "e"]))
    with pytest.warns(UserWarning, match="does not have valid feature names"):
        model.predict(X)


@pytest.mark.parametrize("frame", FRAMES)
def test_frames_with_names_unknown_to_the_model(frame):
    with pytest.warns(UserWarning, match="fitted without feature names"):
        LogisticRegression().fit(X, Y).predict(frame(X, LETTERS))


@pytest.mark.parametrize("frame", FRAMES)
def test_bad_values_in_frames_are_named(frame):
    bad = X.copy()
    bad[7, 2] = np.nan
    with pytest.raises(LinsepError, match=r"row 7, column 2 \('c'\)"):
        LogisticRegression().fit(frame(bad, LETTERS), Y)
    with pytest.raises(LinsepError, match=r"row 7, column 2 \('c'\)"):
        LogisticRegression().fit(frame(X, LETTERS), Y).predict(frame(bad, LETTERS))


def test_text_columns_are_named():
    for module in ("pandas", "polars"):
        frame = pytest.importorskip(module).DataFrame({"size": [1.0, 2.0], "city": ["x", "y"]})
        with pytest.raises(LinsepError, match="'city'") as error:
            LogisticRegression().fit(frame, [0, 1])
        assert "linsep.Encoder" in str(error.value)
        assert "size" not in str(error.value)


def test_missing_entries_of_frames():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    frames = [
        pd.DataFrame({"n": pd.array([1, None, 3], dtype="Int64"), "m": [1.0, 2.0, 3.0]}),
        pl.DataFrame({"n": [1, None, 3], "m": [1.0, 2.0, 3.0]}),
    ]
    for frame in frames:
        with pytest.raises(LinsepError, match=r"NaN.*\n.*row 1, column 0 \('n'\)"):
            LogisticRegression().fit(frame, [0, 1, 1])


def test_frames_of_single_precision_and_of_integers():
    pl = pytest.importorskip("polars")
    frame = pl.DataFrame(X.astype(np.float32), schema=LETTERS)
    close(LogisticRegression().fit(frame, Y), LogisticRegression().fit(X.astype("f4"), Y), 1e-7)
    whole = np.round(10 * X).astype(int)
    frame = pl.DataFrame(whole, schema=LETTERS)
    close(LogisticRegression().fit(frame, Y), LogisticRegression().fit(whole, Y), 1e-7)


def test_columns_of_the_same_name_are_refused():
    pd = pytest.importorskip("pandas")
    with pytest.raises(LinsepError, match="same name"):
        LogisticRegression().fit(pd.DataFrame(X, columns=list("aacd")), Y)


def test_a_series_is_not_a_table():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    for series in (pd.Series, pl.Series):
        with pytest.raises(LinsepError, match=r"Expected (a 2-dimensional|2D)"):
            LogisticRegression().fit(series(X[:, 0]), Y)


def test_lazy_frames_are_refused():
    pl = pytest.importorskip("polars")
    with pytest.raises(LinsepError, match="collect"):
        LogisticRegression().fit(pl.LazyFrame(X, schema=LETTERS), Y)


def test_series_as_labels_and_weights():
    pd, pl = pytest.importorskip("pandas"), pytest.importorskip("polars")
    truth = LogisticRegression().fit(X, Y, sample_weight=1.0 + WEIGHT)
    for series in (pd.Series, pl.Series):
        model = LogisticRegression().fit(X, series(Y), sample_weight=series(1.0 + WEIGHT))
        close(model, truth, rtol=1e-12)
    for dtype in ("category", "string", object):
        y = pd.Series(np.where(Y == 2, "yes", "no"), dtype=dtype)
        np.testing.assert_array_equal(LogisticRegression().fit(X, y).classes_, ["no", "yes"])
    y = pd.Series(Y, dtype="Int64").mask(np.arange(100) == 4)
    with pytest.raises(ValueError, match="NaN"):
        LogisticRegression().fit(X, y)


def test_columns_that_are_not_called_by_strings():
    pd = pytest.importorskip("pandas")
    model = LogisticRegression().fit(pd.DataFrame(X), Y)
    assert not hasattr(model, "feature_names_in_")
    with pytest.raises(TypeError, match="string names"):
        LogisticRegression().fit(pd.DataFrame(X, columns=["a", "b", "c", 3]), Y)


def test_fitting_again_forgets_the_names_of_columns():
    pd = pytest.importorskip("pandas")
    model = LogisticRegression().fit(pd.DataFrame(X, columns=list("abcd")), Y)
    assert hasattr(model, "feature_names_in_")
    assert not hasattr(model.fit(X, Y), "feature_names_in_")


def test_verify_wants_the_columns_of_the_fit():
    model = LogisticRegression().fit(X, Y)
    with pytest.raises(ValueError, match="X has 3 features"):
        linsep.verify(model, X[:, :3], Y)
    frame = pytest.importorskip("pandas").DataFrame(X, columns=list("abcd"))
    model = LogisticRegression().fit(frame, Y)
    assert linsep.verify(model, frame, Y).certified
    with pytest.raises(ValueError, match="same order"):
        linsep.verify(model, frame[list("dcba")], Y)
