"""Good manners among scikit-learn's tools."""

from __future__ import annotations

import pickle
import threading

import numpy as np
import pytest
from sklearn import config_context
from sklearn.base import clone, is_classifier, is_regressor
from sklearn.calibration import CalibratedClassifierCV
from sklearn.compose import ColumnTransformer
from sklearn.datasets import load_iris
from sklearn.ensemble import StackingClassifier, VotingClassifier
from sklearn.exceptions import FitFailedWarning
from sklearn.feature_selection import SelectFromModel
from sklearn.model_selection import GridSearchCV, cross_val_score
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import OneHotEncoder, StandardScaler
from sklearn.utils import get_tags

import linsep
import linsep.sklearn
from linsep import LinearClassifier, LinearRegressor, LogisticRegression

IRIS_X, IRIS_Y = load_iris(return_X_y=True)
NAMES = np.array(["setosa", "versicolor", "virginica"])[IRIS_Y]
X, Y = IRIS_X[50:], IRIS_Y[50:]
T = IRIS_X[:, 3] + IRIS_X[:, 0] ** 2
THREE_CLASSES = [
    LogisticRegression(),
    LogisticRegression(multiclass="ovr"),
    LinearClassifier("squared_hinge"),
]


def test_tags():
    assert is_classifier(LogisticRegression())
    assert is_regressor(LinearRegressor())
    for model in (LogisticRegression(), LinearClassifier(), LinearRegressor()):
        assert get_tags(model).input_tags.sparse
        assert not get_tags(model).input_tags.allow_nan


@pytest.mark.parametrize("model", [*THREE_CLASSES, LinearRegressor(C=1.0)])
def test_pickle_and_clone(model):
    y = T if is_regressor(model) else IRIS_Y
    fitted = clone(model).fit(IRIS_X, y)
    copy = pickle.loads(pickle.dumps(fitted))
    np.testing.assert_array_equal(copy.coef_, fitted.coef_)
    np.testing.assert_array_equal(copy.predict(IRIS_X), fitted.predict(IRIS_X))
    assert copy.certificate_ == fitted.certificate_
    assert not hasattr(clone(fitted), "coef_")
    assert repr(model) == repr(clone(model))
    assert "LogisticRegression" in LogisticRegression(C=3.0)._repr_html_()


def test_pipeline_and_grid_search():
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    search = GridSearchCV(pipeline, {"logisticregression__C": [0.01, 1.0, 100.0]}, cv=3)
    search.fit(IRIS_X, NAMES)
    assert search.best_score_ > 0.9
    assert search.best_estimator_[-1].certificate_.certified


@pytest.mark.filterwarnings("ignore:One or more of the test scores are non-finite")
def test_grid_search_reports_failures():
    search = GridSearchCV(LogisticRegression(), {"C": [-1.0, 1.0]}, cv=3, error_score=np.nan)
    with pytest.warns(FitFailedWarning, match="C must lie in"):
        search.fit(IRIS_X, IRIS_Y)
    assert search.best_params_ == {"C": 1.0}


@pytest.mark.slow
def test_cross_validation_in_processes():
    assert cross_val_score(LogisticRegression(), IRIS_X, NAMES, cv=3, n_jobs=2).mean() > 0.9


def test_calibration_selection_voting_stacking():
    for loss in ("squared_hinge", "logistic"):
        calibrated = CalibratedClassifierCV(LinearClassifier(loss), cv=3).fit(IRIS_X, NAMES)
        assert calibrated.score(IRIS_X, NAMES) > 0.9
    assert SelectFromModel(LogisticRegression()).fit(IRIS_X, NAMES).get_support().any()
    assert SelectFromModel(LinearRegressor()).fit(IRIS_X, T).get_support().any()
    voters = [("a", LogisticRegression()), ("b", LogisticRegression(multiclass="ovr"))]
    assert VotingClassifier(voters, voting="soft").fit(IRIS_X, NAMES).score(IRIS_X, NAMES) > 0.9
    stack = StackingClassifier(voters, LogisticRegression(), cv=3).fit(IRIS_X, NAMES)
    assert stack.score(IRIS_X, NAMES) > 0.9


def test_columns_of_different_kinds():
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"size": X[:, 0], "city": np.where(X[:, 1] > 3, "x", "y")})
    encode = ColumnTransformer([("city", OneHotEncoder(), ["city"])], remainder="passthrough")
    assert make_pipeline(encode, LogisticRegression()).fit(frame, Y).score(frame, Y) > 0.6


def test_metadata_routing():
    weight = np.linspace(0.5, 2.0, 100)
    with config_context(enable_metadata_routing=True):
        model = LogisticRegression().set_fit_request(sample_weight=True)
        scaler = StandardScaler().set_fit_request(sample_weight=False)
        pipeline = make_pipeline(scaler, model).fit(X, Y, sample_weight=weight)
    rows = StandardScaler().fit_transform(X)
    truth = LogisticRegression().fit(rows, Y, sample_weight=weight)
    np.testing.assert_allclose(pipeline[-1].coef_, truth.coef_, rtol=1e-12)


def test_many_threads_may_predict_at_once():
    model = LogisticRegression().fit(IRIS_X, IRIS_Y)
    truth, wrong = model.predict(IRIS_X), []

    def work():
        for _ in range(50):
            if not np.array_equal(model.predict(IRIS_X), truth):
                wrong.append(1)

    threads = [threading.Thread(target=work) for _ in range(8)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


@pytest.mark.parametrize(
    "model",
    [
        linsep.LogisticRegression(),
        linsep.LinearSVC(),
        linsep.Perceptron(max_passes=5),
        linsep.SGDClassifier(epochs=2),
        linsep.sklearn.LogisticRegression(),
    ],
    ids=lambda model: type(model).__name__,
)
def test_skops_stores_models(model):
    sio = pytest.importorskip("skops.io")
    A, label = load_iris(return_X_y=True)
    model = clone(model).fit(A, label)
    stored = sio.dumps(model)
    again = sio.loads(stored, trusted=sio.get_untrusted_types(data=stored))
    np.testing.assert_array_equal(again.predict(A), model.predict(A))
    assert str(again.certificate_) == str(model.certificate_)


@pytest.mark.parametrize("kind", ["Polynomial", "Interactions", "RadialBasis"])
def test_frames_keep_their_index_under_the_global_configuration(kind):
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame({"a": [1.0, 2.0, 4.0], "b": [3.0, 5.0, 1.0]}, index=[7, 8, 9])
    with config_context(transform_output="pandas"):
        found = getattr(linsep.basis, kind)().fit(frame).transform(frame)
    assert found.index.tolist() == [7, 8, 9]


def test_mistakes_are_answered(tmp_path):
    A, label = load_iris(return_X_y=True)
    with pytest.raises(linsep.errors.BadInput, match="C=inf means no penalty"):
        linsep.LogisticRegression(C=None).fit(A, label)
    with pytest.raises(linsep.errors.Refused, match="skops"):
        linsep.save(linsep.sklearn.Ridge().fit(A, label), tmp_path / "model.linsep")
