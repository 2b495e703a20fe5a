"""One rule for every estimator: rows that fit into memory are fitted in memory, wherever they are stored.

The same table is fitted as an array, from files of every kind and from partitions on 1, 2, 4 and 8 workers. Below the
limit every model has the bits of the array. Above it (``memory_limit=0``) the exceptions are those that
docs/scaling-details.md names.
"""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone
from sklearn.datasets import dump_svmlight_file

import linsep
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
    checkpoint,
    scan,
    separate,
    tune,
)

pytest.importorskip("pyarrow")
pytest.importorskip("cloudpickle")

import pyarrow as pa
import pyarrow.csv
import pyarrow.parquet
from scattered import Scattered

from linsep.data.cluster.opening import PersistedRows
from linsep.errors import BadInput, Refused

N, D = 3000, 8
ANY = 1 << 30  # more bytes than any table of these tests
LASSO = {"C": 0.05, "l1_ratio": 1.0}
SOME = np.arange(D) % 3
CASES = {
    "logistic": (LogisticRegression(), "two"),
    "logistic, easy": (LogisticRegression(C=1e-4), "two"),
    "logistic, C=inf": (LogisticRegression(C=np.inf), "two"),
    "softmax": (LogisticRegression(), "three"),
    "softmax, lasso": (LogisticRegression(**LASSO), "three"),
    "one against the rest": (LogisticRegression(multiclass="ovr"), "three"),
    "hinge": (LinearSVC(), "two"),
    "hinge, easy": (LinearSVC(C=1e-3), "two"),
    "hinge, several classes": (LinearSVC(), "three"),
    "Crammer and Singer": (LinearSVC(C=0.1, multiclass="crammer_singer"), "three"),
    "hard margin": (LinearSVC(C=np.inf), "separable"),
    "balanced": (LogisticRegression(class_weight="balanced"), "two"),
    "lasso": (LogisticRegression(**LASSO), "two"),
    "elastic net": (LogisticRegression(C=0.05, l1_ratio=0.5), "two"),
    "lasso, squares": (LinearRegressor("squared", **LASSO), "numbers"),
    "lasso, absolute": (LinearRegressor("absolute", **LASSO), "numbers"),
    "group lasso": (LogisticRegression(**LASSO, feature_groups=np.arange(D) // 2), "two"),
    "penalty factors": (LogisticRegression(**LASSO, penalty_factor=SOME), "two"),
    "logistic, chooses C": (LogisticRegressionCV(Cs=3, cv=3), "two"),
    "softmax, chooses C": (LogisticRegressionCV(Cs=3, cv=3), "three"),
    "hinge, chooses C": (LinearSVCCV(Cs=3, cv=3), "two"),
    "hinge, several classes, chooses C": (LinearSVCCV(Cs=3, cv=3), "three"),
    "perceptron": (Perceptron(), "separable"),
    "stochastic descent": (SGDClassifier(epochs=3, random_state=0), "two"),
    **{
        f"classifier, {name}": (LinearClassifier(name, C=0.1), "two")
        for name in linsep.losses.NAMES
        if linsep.losses.get(name).convex and linsep.losses.get(name).classification
    },
    **{
        f"regressor, {name}": (LinearRegressor(name, C=0.1), "numbers")
        for name in linsep.losses.NAMES
        if linsep.losses.get(name).convex and linsep.losses.get(name).regression
    },
}
#: Methods that read single rows, so that more rows than fit into memory are refused.
SINGLE_ROWS = ("perceptron", "stochastic descent")


@pytest.fixture(scope="module")
def tables(tmp_path_factory):
    """Dense rows in .npy, CSV and Parquet files, sparse rows in LIBSVM files, with their targets."""
    folder = tmp_path_factory.mktemp("tables")
    rng = np.random.default_rng(3)
    X = np.round(rng.normal(size=(N, D)) * (rng.random((N, D)) < 0.6), 3)
    z = X[:, :4].sum(axis=1)
    noisy = z + rng.logistic(size=N)
    targets = {
        "two": np.where(noisy > 0, 1, -1),
        "three": np.digitize(noisy, [-1.0, 1.0]),
        "separable": np.where(z > 0.001, 1, -1),
        "numbers": np.round(noisy, 3),
    }
    np.save(folder / "X.npy", X)
    for name, y in targets.items():
        table = pa.table({**{f"x{j}": X[:, j] for j in range(D)}, "y": y})
        pyarrow.csv.write_csv(table, folder / f"{name}.csv")
        pyarrow.parquet.write_table(table, folder / f"{name}.parquet")
        dump_svmlight_file(X, y, str(folder / f"{name}.libsvm"), zero_based=False)
    return folder, X, targets


def rows_of(tables, ending, kind, **limits):
    folder, _, targets = tables
    if ending == "npy":
        return scan(folder / "X.npy", target=targets[kind], **limits)
    column = {} if ending == "libsvm" else {"target": "y"}
    return scan(folder / f"{kind}.{ending}", **column, **limits)


def same(here, there):
    assert np.array_equal(here.coef_, there.coef_)
    assert np.array_equal(here.intercept_, there.intercept_)
    assert repr(here.certificate_) == repr(there.certificate_)


class Roomy(Scattered):
    """A cluster whose client fetches any number of rows."""

    def setting(self, name):
        return ANY if name == "memory-limit" else None

    def restart(self):
        return Roomy(self.count, self.workers)


def partitioned(X, workers):
    edges = [0, 1, 700, 701, 1600, N]
    parts = [X[lo:hi] for lo, hi in pairwise(edges)]
    return PersistedRows(Roomy(len(parts), workers), parts, len(parts))


def test_every_estimator_and_every_convex_loss_is_among_the_cases():
    """ZeroOneClassifier has a test of its own, because its work grows fast with the rows."""
    models = [model for model, _ in CASES.values()]
    fitted = {type(model).__name__ for model in models} | {"ZeroOneClassifier"}
    public = {name for name in linsep.__all__ if hasattr(getattr(linsep, name), "fit")}
    assert fitted == public - {"Encoder"}
    convex = {name for name in linsep.losses.NAMES if linsep.losses.get(name).convex}
    assert convex <= {getattr(model, "loss", "") for model in models}


@pytest.mark.sampled(12)
@pytest.mark.filterwarnings("ignore::linsep.errors.ConvergenceWarning")
@pytest.mark.parametrize("name", CASES)
def test_rows_that_fit_into_memory_are_fitted_there(name, tables):
    """Wherever they are stored: in files of any kind, or in any partitions on any number of workers."""
    model, kind = CASES[name]
    _, X, targets = tables
    y = targets[kind]
    here, sparse = clone(model).fit(X, y), clone(model).fit(sp.csr_matrix(X), y)
    for ending in ("npy", "csv", "parquet", "libsvm"):
        with rows_of(tables, ending, kind, memory_limit=ANY) as rows:
            same(sparse if ending == "libsvm" else here, clone(model).fit(rows))
    for workers in (1, 2, 4, 8):
        same(here, clone(model).fit(partitioned(X, workers), y))
    same(sparse, clone(model).fit(partitioned(sp.csr_matrix(X), 2), y))


def test_fewest_errors_of_rows_that_fit_into_memory(tmp_path):
    rng = np.random.default_rng(0)
    X = rng.normal(size=(40, 2))
    y = X[:, 0] + 0.3 * rng.normal(size=40) > 0
    np.save(tmp_path / "X.npy", X)
    here = ZeroOneClassifier().fit(X, y)
    with scan(tmp_path / "X.npy", target=y, memory_limit=ANY) as rows:
        assert np.array_equal(here.coef_, ZeroOneClassifier().fit(rows).coef_)


@pytest.mark.parametrize("model", [LinearSVC(), LogisticRegression(), LinearSVC(C=0.1)])
def test_tune_and_separate_rows_that_fit_into_memory(model, tables):
    _, X, targets = tables
    y = targets["two"]
    options = {"Cs": 3, "cv": 3, "keep": True, "test": 0.2, "random_state": 1}
    here, answer = tune(model, X, y, **options), separate(X, y)
    with rows_of(tables, "parquet", "two", memory_limit=ANY) as rows:
        found = [tune(model, rows, None, **options), tune(model, partitioned(X, 4), y, **options)]
        answers = [separate(rows), separate(partitioned(X, 4), y)]
        assert list(found[0].best_estimator_.feature_names_in_) == [f"x{j}" for j in range(D)]
    for there in found:
        assert np.array_equal(here.curve.scores, there.curve.scores)
        assert np.array_equal(here.coefs, there.coefs)
        assert here.test_score == there.test_score
        same(here.best_estimator_, there.best_estimator_)
    assert found[1].best_estimator_.traffic_.rounds == 2
    assert all(np.array_equal(answer.weights, other.weights) for other in answers)


@pytest.mark.filterwarnings("ignore:Sending large graph")
@pytest.mark.parametrize("name", ["softmax", "hinge", "hinge, chooses C"])
def test_dask_fetches_rows_up_to_its_memory_limit(name, tables, client):
    dask, da = pytest.importorskip("dask"), pytest.importorskip("dask.array")
    model, kind = CASES[name]
    _, X, targets = tables
    here = clone(model).fit(X, targets[kind])
    lazy = da.from_array(X, chunks=(701, D)), da.from_array(targets[kind], chunks=701)
    with dask.config.set({"linsep.memory-limit": "1 GiB"}):
        there = clone(model).fit(*lazy)
    same(here, there)
    assert there.traffic_.rounds <= 2 and there.traffic_.received > X.nbytes
    with dask.config.set({"linsep.memory-limit": X.nbytes - 1}):
        there = clone(model).fit(*lazy)
    assert there.certificate_.certified and there.traffic_.rounds > 2


#: Larger rows stay on disk. What differs from memory then, by the words of docs/scaling-details.md.
EXCEPTIONS = {
    "dual-cd": "`dual-cd` and `interior` need rows in memory",
    "classes": "the multinomial loss may use its whole Hessian for several classes",
    "sparse": "**Pilots of sparse rows** with few rows per feature",
    "refused": "an L1 penalty with the hinge or the absolute loss",
}


def exception(name, ending, here):
    """Return which exception a fit is, or None."""
    if {"dual-cd", "interior"} & set(here.solver_.split(", ")):
        return "dual-cd"
    if name.startswith("softmax") and here.solver_ == "newton":
        return "classes"
    if name == "lasso, absolute":
        return "refused"
    return "sparse" if ending == "libsvm" and here.solver_ == "newton" else None


def test_the_documentation_names_the_exceptions():
    page = (Path(__file__).parents[2] / "docs" / "scaling-details.md").read_text()
    section = page.partition("## Same result as in memory")[2].partition("\n## ")[0]
    words = " ".join(section.split())
    assert all(text in words for text in EXCEPTIONS.values())
    assert section.count("\n- **") == len(EXCEPTIONS)


@pytest.mark.sampled(12)
@pytest.mark.parametrize("name", [name for name in CASES if name not in SINGLE_ROWS])
def test_rows_above_the_limit_stay_on_disk(name, tables, tuned):
    """They give the same bits there, except for what the documentation names. In memory they would be many blocks."""
    tuned(native_entries=0, native_pilot_entries=0, native_l1_entries=0, block_bytes=20_000)
    model, kind = CASES[name]
    _, X, targets = tables
    for ending, here in (("npy", X), ("libsvm", sp.csr_matrix(X))):
        near = clone(model).fit(here, targets[kind])
        why = exception(name, ending, near)
        with rows_of(tables, ending, kind, memory_limit=0) as rows:
            if why == "refused":
                with pytest.raises(Refused, match="needs rows in memory"):
                    clone(model).fit(rows)
                continue
            far = clone(model).fit(rows)
            assert rows.reads >= 1.0
        if why is None:
            same(near, far)
        assert far.certificate_.certified


@pytest.mark.parametrize("model", [Perceptron(), SGDClassifier(), ZeroOneClassifier()])
def test_what_reads_single_rows_refuses_more_than_fit_into_memory(model, tables):
    _, X, _ = tables
    with rows_of(tables, "npy", "two", memory_limit=X.nbytes - 1) as rows:
        with pytest.raises(BadInput, match=r"too many; if there is room, raise scan\(memory_limit"):
            model.fit(rows)


@pytest.mark.parametrize("limit", [-1, "many", float("nan")])
def test_limits_that_are_none(limit, tables):
    with pytest.raises(BadInput, match="memory_limit"):
        rows_of(tables, "npy", "two", memory_limit=limit)


def test_memory_that_is_short_keeps_rows_on_disk(tables, tuned, monkeypatch):
    """By default rows are read into memory if a quarter of the free memory has room."""
    tuned(few_on_disk=ANY)
    _, X, _ = tables
    for free, few in ((4 * X.nbytes, True), (4 * X.nbytes - 1, False)):
        monkeypatch.setattr("linsep.data.memory_rows.available_memory", lambda free=free: free)
        with rows_of(tables, "npy", "two") as rows:
            assert rows.few() is few


def test_few_rows_are_read_whatever_the_limit(tables, tuned):
    """Rows no larger than the buffers that would read them stay on disk only at ``memory_limit=0``."""
    _, X, _ = tables
    tuned(few_always=X.nbytes)
    for limit, few in ((1, True), (0, False)):
        with rows_of(tables, "npy", "two", memory_limit=limit) as rows:
            assert rows.few() is few


def test_a_checkpoint_keeps_rows_where_their_passes_are_recorded(tables, tuned, tmp_path):
    tuned(few_on_disk=ANY)
    _, X, _ = tables
    with rows_of(tables, "npy", "two") as rows:
        assert rows.few()
        with checkpoint(tmp_path / "fit.checkpoint"):
            assert not rows.few()
            tuned(few_always=X.nbytes)
            assert rows.few()
    with rows_of(tables, "npy", "two", memory_limit=ANY) as rows, checkpoint(tmp_path / "other"):
        assert rows.few()  # as asked for
