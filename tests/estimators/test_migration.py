"""The tables of docs/migrating.md, line by line: what differs from scikit-learn on purpose, and what does not."""

import pickle
import warnings
from pathlib import Path

import numpy as np
import pandas as pd
import pytest
from sklearn import config_context, linear_model
from sklearn.base import clone
from sklearn.ensemble import AdaBoostClassifier
from sklearn.model_selection import GridSearchCV
from versions import construct

import linsep
import linsep.sklearn as ours
from linsep import LinearRegressor, LinearSVC, LogisticRegression, LogisticRegressionCV, Perceptron
from linsep.basis import Polynomial
from linsep.errors import BadInput, CertificateError, LinsepError, Refused, SeparableData

PAGE = Path(__file__).parents[2] / "docs" / "migrating.md"
RNG = np.random.default_rng(0)
X = RNG.normal(size=(60, 3))
Y = (X[:, 0] + 0.5 * RNG.normal(size=60) > 0).astype(int)


def default_loss():
    assert LinearSVC().loss == "hinge" and ours.LinearSVC().loss == "squared_hinge"


def seed():
    first, second = (linsep.SGDClassifier(epochs=2).fit(X, Y) for _ in range(2))
    np.testing.assert_array_equal(first.coef_, second.coef_)


def separable():
    with pytest.raises(SeparableData) as error:
        LogisticRegression(C=np.inf).fit(X, X[:, 0] > 0)
    assert error.value.direction is not None


def limited():
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return LogisticRegression(tol=1e-13, max_passes=1, solver="newton-cg").fit(X, Y)


def stopped():
    model = limited()
    assert not model.certificate_.certified
    for same in (model, pickle.loads(pickle.dumps(model))):
        with pytest.raises(CertificateError) as error:
            linsep.verify(same, X, Y)
        assert error.value.certificate is not None


def perceptron_weights():
    twice = np.where(np.arange(60) < 30, 2.0, 1.0)
    model = Perceptron(max_passes=3).fit(X, Y, sample_weight=twice)
    rows = np.r_[:30, :60]
    other = Perceptron(max_passes=3).fit(X[rows], Y[rows])
    assert not np.array_equal(model.coef_, other.coef_)


def single_precision():
    rows = X.astype(np.float32)
    assert LogisticRegression().fit(rows, Y).coef_.dtype == np.float64
    assert ours.Ridge().fit(rows, rows[:, 0]).coef_.dtype == np.float32


def strange_tables():
    twice = pd.DataFrame(X, columns=["a", "a", "b"])
    with pytest.raises(LinsepError):
        LogisticRegression().fit(twice, Y)
    with pytest.raises((LinsepError, TypeError), match="matrix"):
        LogisticRegression().fit(np.matrix(X), Y)
    pl = pytest.importorskip("polars")
    with pytest.raises((LinsepError, TypeError), match="collect"):
        LogisticRegression().fit(pl.LazyFrame(X, schema=["a", "b", "c"]), Y)
    duckdb = pytest.importorskip("duckdb")
    with pytest.raises((LinsepError, TypeError, ValueError)):
        LogisticRegression().fit(duckdb.sql("SELECT 1.0 AS a, 2.0 AS b"), [1])


def several_targets():
    with pytest.raises(BadInput):
        LinearRegressor().fit(X, np.column_stack([Y, Y]))
    assert len(ours.Ridge().fit(X, np.column_stack([Y, 1 - Y])).certificate_.parts) == 2


def threshold():
    with pytest.raises(TypeError):
        LogisticRegression().fit(X, Y).predict(X, threshold=0.3)


def saving():
    with pytest.raises(Refused, match="skops"):
        linsep.save(ours.LogisticRegression().fit(X, Y), "m.linsep")


def verifying():
    with pytest.raises(LinsepError, match="audit"):
        linsep.verify(ours.LogisticRegression().fit(X, Y), X, Y)


def nothing_proven():
    with pytest.raises(BadInput, match="between 0 and 1"):
        LogisticRegression(tol=2).fit(X, Y)
    assert ours.LogisticRegression(tol=2.0).fit(X, Y).certificate_.certified


ON_PURPOSE = {
    "`LinearSVC()`": default_loss,
    "`random_state=None`": seed,
    "`C=np.inf` on separable classes": separable,
    "`verify` of a model that stopped at a limit": stopped,
    "sample weights of `Perceptron`": perceptron_weights,
    "float32 rows": single_precision,
    "`np.matrix`, duplicate column names, lazy frames, DuckDB relations": strange_tables,
    "several targets in `LinearRegressor`": several_targets,
    "`predict(X, threshold=)`": threshold,
    "`save` of `linsep.sklearn` models": saving,
    "`verify` of `linsep.sklearn` models": verifying,
    "`tol` of 1 or more": nothing_proven,
}


def keywords():
    for word in ("penalty", "max_iter", "dual", "n_jobs", "verbose", "intercept_scaling"):
        with pytest.raises(TypeError, match=word):
            LogisticRegression(**{word: 1})
        assert word in ours.LogisticRegression().get_params()
    with pytest.raises(BadInput, match="a solver of scikit-learn"):
        LogisticRegression(solver="lbfgs").fit(X, Y)


def attributes():
    model = LogisticRegression().fit(X, Y)
    assert model.n_iter_.shape == (1,) and model.n_iter_.dtype == np.int32
    chosen = LogisticRegressionCV(Cs=3, cv=3).fit(X, Y)
    assert np.size(chosen.C_) == 1 and chosen.cv_results_
    descent = ours.SGDClassifier().fit(X, Y)
    assert descent.t_ > 1 and descent.n_iter_ >= 1
    names = {"coefs_paths_", "scores_", "C_", "n_iter_", "Cs_"}
    options = {"l1_ratios": (0.0,), "use_legacy_attributes": True}
    cv = construct(ours.LogisticRegressionCV, Cs=3, cv=3, scoring="accuracy", **options)
    theirs = linear_model.LogisticRegressionCV(**cv.get_params()).fit(X, Y)
    cv.fit(X, Y)
    for name in names:
        assert type(getattr(cv, name)) is type(getattr(theirs, name)), name


def skops_files():
    sio = pytest.importorskip("skops.io")
    model = LogisticRegression().fit(X, Y)
    data = sio.dumps(model)
    trusted = sio.get_untrusted_types(data=data)
    assert sio.loads(data, trusted=trusted).certificate_ == model.certificate_


def boosting():
    model = AdaBoostClassifier(Perceptron(max_passes=5), n_estimators=3).fit(X, Y)
    assert model.score(X, Y) > 0.6


def copies():
    model = limited()
    assert pickle.loads(pickle.dumps(model)).certificate_ == model.certificate_
    assert not hasattr(clone(model), "certificate_")


def pandas_output():
    frame = pd.DataFrame(X, columns=["a", "b", "c"], index=np.arange(60) + 100)
    with config_context(transform_output="pandas"):
        made = Polynomial(2).fit_transform(frame)
    assert list(made.index) == list(frame.index)


def searches():
    search = GridSearchCV(ours.Lasso(), {"alpha": [0.01, 0.1]}, cv=3).fit(X, X[:, 0])
    assert search.best_estimator_.certificate_.certified


SETTLED = {
    "scikit-learn's keywords and solver names": keywords,
    "`n_iter_`, `C_`, `t_`, `scores_`, `coefs_paths_`": attributes,
    "skops": skops_files,
    "`AdaBoostClassifier(Perceptron())`": boosting,
    "`pickle` and `clone` of a model that stopped at a limit": copies,
    '`set_config(transform_output="pandas")`': pandas_output,
    "grid and random search": searches,
}


def listed(title):
    """First column of the table below a title."""
    part = PAGE.read_text().partition(f"## {title}\n")[2].partition("\n## ")[0]
    lines = [line for line in part.splitlines() if line.startswith("|")]
    return [line.strip("|").split(" | ")[0].strip() for line in lines[2:]]


@pytest.mark.filterwarnings("ignore:the matrix subclass:PendingDeprecationWarning")
@pytest.mark.parametrize("case", ON_PURPOSE)
def test_what_differs_on_purpose(case):
    ON_PURPOSE[case]()


@pytest.mark.parametrize("case", SETTLED)
def test_what_stays_the_same(case):
    SETTLED[case]()


def test_every_line_of_the_page_has_a_test():
    assert listed("What differs on purpose") == list(ON_PURPOSE)
    assert listed("What stays the same") == list(SETTLED)
