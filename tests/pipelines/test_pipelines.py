"""Pipelines in verify, summary, tune, path and write_report: the answers are those of the last step on its own rows."""

from __future__ import annotations

import numpy as np
import pandas as pd
import pytest
import scipy.sparse as sp
from mixed_columns import SENTIMENT, TEXTS, columns, frame
from sklearn import config_context
from sklearn.base import clone
from sklearn.compose import make_column_transformer
from sklearn.datasets import load_breast_cancer
from sklearn.exceptions import NotFittedError
from sklearn.feature_extraction.text import HashingVectorizer, TfidfVectorizer
from sklearn.impute import SimpleImputer
from sklearn.linear_model import LogisticRegression as Other
from sklearn.model_selection import GridSearchCV, StratifiedKFold
from sklearn.pipeline import Pipeline, make_pipeline, make_union
from sklearn.preprocessing import (
    MaxAbsScaler,
    MinMaxScaler,
    Normalizer,
    PolynomialFeatures,
    RobustScaler,
    StandardScaler,
)

from linsep import (
    LinearRegressor,
    LinearSVC,
    LogisticRegression,
    path,
    scan,
    summary,
    tune,
    verify,
    write_report,
)
from linsep.errors import BadInput, CertificateError
from linsep.pipelines import final_step, stack, take_apart

CS = [0.01, 1.0, 100.0]
STEPS = [
    StandardScaler(),
    MinMaxScaler(),
    MaxAbsScaler(),
    RobustScaler(),
    Normalizer(),
    make_pipeline(StandardScaler(), PolynomialFeatures(2)),
    make_union(StandardScaler(), Normalizer()),
]


@pytest.fixture(scope="module")
def cancer():
    X, y = load_breast_cancer(return_X_y=True)
    return X[:200, :6], y[:200]


@pytest.mark.sampled(3)
@pytest.mark.parametrize("steps", STEPS, ids=lambda step: type(step).__name__)
@pytest.mark.parametrize("model", [LogisticRegression(), LinearSVC()], ids=["logistic", "svm"])
def test_verify_is_that_of_the_last_step(cancer, steps, model):
    X, y = cancer
    pipeline = make_pipeline(clone(steps), clone(model)).fit(X, y)
    found = verify(pipeline, X, y)
    assert found.certified
    assert found == verify(pipeline[-1], pipeline[:-1].transform(X), y)
    with pytest.raises(CertificateError):
        verify(pipeline, X * 1.01 + 0.3, y[::-1])


def test_verify_takes_frames_texts_and_exact_arithmetic():
    X, y = frame()
    assert verify(make_pipeline(columns(), LogisticRegression()).fit(X, y), X, y).certified
    for vectorizer in (TfidfVectorizer(), HashingVectorizer(n_features=64)):
        model = make_pipeline(vectorizer, LinearSVC()).fit(TEXTS, SENTIMENT)
        assert verify(model, TEXTS, SENTIMENT, exact=True).certified


def test_pipelines_within_pipelines_and_steps_that_pass(cancer):
    X, y = cancer
    inner = make_pipeline(StandardScaler(), LogisticRegression())
    nested = Pipeline([("none", "passthrough"), ("first", MinMaxScaler()), ("rest", inner)])
    nested.fit(X, y)
    assert verify(nested, X, y).certified
    assert final_step(nested) == "rest__logisticregression"
    assert [type(step) for _, step in take_apart(nested).steps.steps] == [
        MinMaxScaler,
        StandardScaler,
    ]
    assert tune(nested, X, y, CS).best_estimator_["rest"][-1].C in CS
    alone = make_pipeline(LogisticRegression()).fit(X, y)
    assert take_apart(alone).steps is None
    assert verify(alone, X, y).certified


def test_what_is_no_pipeline_of_ours_is_refused(cancer):
    X, y = cancer
    with pytest.raises(BadInput, match="or a Pipeline that ends in one; got LogisticRegression"):
        verify(make_pipeline(StandardScaler(), Other()).fit(X, y), X, y)
    with pytest.raises(BadInput, match="the pipeline has no model"):
        verify(make_pipeline(StandardScaler(), "passthrough").fit(X, y), X, y)
    with pytest.raises(NotFittedError, match="call fit before summary"):
        summary(make_pipeline(StandardScaler(), LogisticRegression()), X, y)


def test_summary_names_the_features_that_the_steps_make():
    X, y = frame()
    model = make_pipeline(columns(), LogisticRegression(C=np.inf)).fit(X, y)
    found = summary(model, X, y, held_out=(X[::3], y[::3]))
    names = [line.name for line in found.coefficients[""]]
    assert names[:2] == ["pipeline__age", "pipeline__income"]
    assert "onehotencoder__city_Rome" in names
    rows = model[:-1].transform(X)
    assert found.facts["training error"] == 1 - model.score(X, y)
    assert found.facts["held-out error"] == np.mean(model.predict(X[::3]) != y[::3])
    assert [c.value for c in found.coefficients[""]] == [
        c.value for c in summary(model[-1], rows, y).coefficients[""]
    ]


def test_summary_of_a_regression(cancer):
    X, y = cancer
    model = make_pipeline(StandardScaler(), LinearRegressor(C=np.inf)).fit(X, y.astype(float))
    found = summary(model, X, y.astype(float))
    assert found.valid
    assert [line.name for line in found.coefficients[""]][:2] == ["x0", "x1"]


@pytest.mark.parametrize("scoring", [None, "log_loss", "roc_auc"])
def test_tune_agrees_with_a_grid_search(cancer, scoring):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9))
    tuning = tune(pipeline, X, y, CS, cv=4, scoring=scoring)
    usual = {None: "accuracy", "log_loss": "neg_log_loss"}.get(scoring, scoring)
    search = GridSearchCV(pipeline, {"logisticregression__C": CS}, scoring=usual, cv=4).fit(X, y)
    theirs = search.cv_results_["mean_test_score"]
    mine = {None: 1 - tuning.curve.mean, "log_loss": -tuning.curve.mean}.get(
        scoring, tuning.curve.mean
    )
    np.testing.assert_allclose(mine, theirs, rtol=1e-6)
    assert tuning.certified
    assert tuning.best_C == search.best_params_["logisticregression__C"]
    assert tuning.best_estimator_[-1].C == tuning.best_C
    np.testing.assert_allclose(
        tuning.best_estimator_.decision_function(X), search.decision_function(X), rtol=1e-5
    )
    assert not hasattr(pipeline[-1], "coef_")


def test_the_steps_see_the_training_rows_of_a_fold_only():
    class Watching(StandardScaler):
        seen: list = []  # noqa: RUF012

        def fit(self, X, y=None, sample_weight=None):
            Watching.seen.append(np.sort(np.asarray(X)[:, 0]))
            return super().fit(X, y)

    X = np.random.default_rng(0).normal(size=(60, 2))
    X[:, 0] = np.arange(60)
    y = np.arange(60) % 2
    cv = StratifiedKFold(3)
    tune(make_pipeline(Watching(), LogisticRegression()), X, y, CS, cv=cv)
    folds = [np.sort(train) for train, _ in cv.split(X, y)]
    assert len(Watching.seen) == 4  # once in each fold, for all C, and in the refit
    for seen, fold in zip(Watching.seen, folds, strict=False):
        assert np.array_equal(seen, fold)


def test_tune_of_frames_texts_and_sparse_rows(cancer):
    X, y = frame()
    for how in ("default", "pandas"):
        steps = columns()
        if how == "pandas":
            steps = make_column_transformer(
                (SimpleImputer(), ["age", "income"]), verbose_feature_names_out=False
            ).set_output(transform="pandas")
        found = tune(make_pipeline(steps, LogisticRegression()), X, y, CS, cv=3, test=0.2)
        assert found.certified
        assert found.test_bound > found.test_score
    text = tune(make_pipeline(TfidfVectorizer(), LinearSVC()), TEXTS, SENTIMENT, CS, cv=3)
    assert text.best_estimator_.predict(["good film"])[0] == "good"
    sparse = tune(
        make_pipeline(MaxAbsScaler(), LogisticRegression()), sp.csc_matrix(cancer[0]), cancer[1], CS
    )
    assert sparse.certified
    multi = np.array(["a", "b", "c"])[np.arange(len(y)) % 3]
    assert tune(make_pipeline(columns(), LogisticRegression()), X, multi, CS, cv=3).certified
    number = tune(make_pipeline(columns(), LinearRegressor()), X, X["income"], CS, cv=3)
    assert number.curve.scoring == "mean_squared_error"


class CrossFitted(StandardScaler):
    """As TargetEncoder: what it returns of the rows it is fitted to is not what ``transform`` returns of them."""

    def fit_transform(self, X, y=None, **options):
        return 0.5 * self.fit(X, y).transform(X) + 0.1 * np.asarray(y)[:, None]


def test_steps_that_read_the_target_are_fitted_as_in_a_pipeline(cancer):
    X, y = cancer
    pipeline = make_pipeline(CrossFitted(), LogisticRegression(tol=1e-9))
    tuning = tune(pipeline, X, y, [1.0], cv=5, scoring="log_loss")
    search = GridSearchCV(pipeline, {"logisticregression__C": [1.0]}, scoring="neg_log_loss")
    theirs = search.fit(X, y).cv_results_["mean_test_score"]
    np.testing.assert_allclose(-tuning.curve.mean, theirs, rtol=1e-6)


def test_weights_reach_the_model(cancer):
    X, y = cancer
    weight = 1.0 + np.arange(len(y)) % 3
    pipeline = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9))
    found = tune(pipeline, X, y, CS, sample_weight=weight)
    direct = clone(pipeline).set_params(logisticregression__C=found.best_C)
    direct.fit(X, y, logisticregression__sample_weight=weight)
    assert np.array_equal(found.best_estimator_[-1].coef_, direct[-1].coef_)
    assert verify(found.best_estimator_, X, y, weight).certified
    with config_context(enable_metadata_routing=True):
        routed = make_pipeline(StandardScaler(), LogisticRegression(tol=1e-9))
        routed[0].set_fit_request(sample_weight=False)
        routed[-1].set_fit_request(sample_weight=True)
        again = tune(routed, X, y, CS, sample_weight=weight).best_estimator_
    assert np.array_equal(again[-1].coef_, direct[-1].coef_)


def test_path_and_kept_coefficients(cancer):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    rising = path(pipeline, X, y, CS)
    rows = StandardScaler().fit_transform(X)
    assert np.array_equal(rising.coefs, path(LogisticRegression(), rows, y, CS).coefs)
    assert tune(pipeline, X, y, CS, keep=True).coefs.shape == (3, 5, 1, 6)
    X, y = frame(60)
    X["city"] = np.arange(60).astype(str)
    y[:8] = ~y[8:16]
    uneven = make_pipeline(columns(), LogisticRegression())
    folds = [(np.arange(20), np.arange(20, 60)), (np.arange(30), np.arange(30, 60))]
    with pytest.raises(BadInput, match="same number of features in every fold"):
        tune(uneven, X, y, CS, cv=folds, keep=True)


def test_what_tune_refuses(cancer, tmp_path):
    X, y = cancer
    pipeline = make_pipeline(StandardScaler(), LogisticRegression())
    for option in ({"cv": "loo-approximate"}, {"reject": True}):
        with pytest.raises(BadInput, match="steps of a pipeline are fitted anew"):
            tune(pipeline, X, y, CS, **option)
    np.save(tmp_path / "X.npy", X)
    with pytest.raises(BadInput, match="needs the rows in memory"):
        tune(pipeline, scan(tmp_path / "X.npy", target=y), None, CS)


def test_report_of_a_column_transformer(tmp_path, without_figures):
    X, y = frame()
    model = make_pipeline(columns(), LogisticRegression()).fit(X, y)
    tuning = tune(model, X, y, CS)
    page = write_report(model, X, y, tmp_path / "page.html", test=(X[::2], y[::2]), tuning=tuning)
    text = page.read_text()
    assert "onehotencoder__city_Rome" in text
    assert "ColumnTransformer" in text
    texts = make_pipeline(TfidfVectorizer(), LogisticRegression()).fit(TEXTS, SENTIMENT)
    assert "good" in write_report(texts, TEXTS, SENTIMENT, tmp_path / "t.html").read_text()


def test_stacked():
    dense = np.eye(2)
    assert stack(dense, dense).shape == (4, 2)
    assert sp.issparse(stack(sp.csr_array(dense), sp.csr_array(dense)))
    assert list(
        stack(pd.DataFrame(dense, columns=["a", "b"]), pd.DataFrame(dense, columns=["a", "b"]))
    ) == ["a", "b"]
