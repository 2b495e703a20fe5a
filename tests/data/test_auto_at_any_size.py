"""``solver="auto"`` knows as much about rows on disk and on a cluster as about rows in memory, and chooses alike."""

from __future__ import annotations

from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
import scipy.sparse as sp
from sklearn.base import clone

from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression, scan, tune
from linsep.data import Location, dataset
from linsep.data.scanning import stored_rows
from linsep.errors import BadInput
from linsep.losses import Logistic
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solvers.cost.shape import shape_of

RNG = np.random.default_rng(7)


def shape(data):
    with closing(data):
        return shape_of(Problem(Logistic(), ElasticNet(2.0), data, True))


ROWS = {
    "few": RNG.normal(size=(300, 5)),
    "many": RNG.normal(size=(5003, 6)) * 10.0 ** RNG.integers(-3, 3, (5003, 1)),
    "single precision": RNG.normal(size=(2111, 7)).astype(np.float32),
    "mostly zeros": RNG.normal(size=(1999, 80)) * (RNG.random((1999, 80)) < 0.1),
    "some zeros": RNG.normal(size=(1999, 80)) * (RNG.random((1999, 80)) < 0.5),
    "sparse": sp.random(3001, 500, 0.02, "csr", random_state=0),
}


@pytest.mark.parametrize("kind", ROWS)
@pytest.mark.parametrize("weighted", [False, True])
def test_rows_on_disk_have_the_shape_of_rows_in_memory(kind, weighted):
    X = ROWS[kind]
    sign = np.where(RNG.random(X.shape[0]) < 0.5, 1.0, -1.0)
    weight = RNG.random(X.shape[0]) if weighted else None
    here = shape(dataset(X, sign, None, weight))
    with stored_rows([X[:100], X[100:]], X.shape[1]) as rows:
        there = shape(dataset(rows.rows, sign, None, weight))
        assert rows.reads < 1.1
    assert there.location is Location.DISK
    assert replace(there, location=here.location) == here
    assert (here.kept < 1.0) == (kind == "mostly zeros")


def test_rows_on_a_cluster_have_the_shape_of_rows_in_memory(client):
    da = pytest.importorskip("dask.array")
    X = RNG.normal(size=(3000, 1200))
    y = X[:, 0] > 0
    lazy = da.from_array(X, chunks=(1000, -1)), da.from_array(y, chunks=1000)
    near, far = LogisticRegression(C=0.01).fit(X, y), LogisticRegression(C=0.01).fit(*lazy)
    assert near.certificate_.certified and far.certificate_.certified


MODELS = {
    "logistic": LogisticRegression(),
    "easy": LogisticRegression(C=1e-4),
    "hinge": LinearSVC(),
    "squared hinge": LinearClassifier("squared_hinge", C=10.0),
    "L1": LogisticRegression(C=0.1, l1_ratio=1.0),
    "absolute": LinearRegressor("absolute"),
}


@pytest.mark.parametrize("name", MODELS)
def test_few_rows_on_disk_are_fitted_as_rows_in_memory(name, tuned):
    """Whatever ``auto`` takes in memory, native solvers among them."""
    tuned(few_on_disk=1 << 20)
    X = RNG.normal(size=(600, 5))
    y = X[:, 0] + RNG.logistic(size=600)
    y = y if name == "absolute" else y > 0
    with stored_rows([X], 5) as rows:
        there = clone(MODELS[name]).fit(rows, y)
        # The check of the numbers, the copy, and for the hinge its support vectors.
        assert rows.reads <= 3.0
    here = clone(MODELS[name]).fit(X, y)
    assert there.solver_ == here.solver_
    assert np.array_equal(there.coef_, here.coef_)
    assert there.certificate_ == here.certificate_


@pytest.mark.parametrize("C", [1.0, 1e4])  # dual ascent, for smaller ones, needs rows in memory
def test_auto_takes_the_same_solver_from_disk(C, tuned):
    """Of rows that are too many for one native call, in memory and on disk."""
    tuned(native_entries=0, native_pilot_entries=0, block_bytes=20_000)
    X = RNG.normal(size=(4000, 20))
    y = X[:, 0] + RNG.logistic(size=4000) > 0
    here = LogisticRegression(C=C).fit(X, y)
    with stored_rows([X], 20) as rows:
        there = LogisticRegression(C=C).fit(rows, y)
    assert there.solver_ == here.solver_ and np.array_equal(there.coef_, here.coef_)
    assert there.certificate_ == here.certificate_


def test_a_small_file_that_has_changed_is_refused(tuned, tmp_path):
    tuned(few_on_disk=1 << 20)
    X = RNG.normal(size=(50, 2))
    np.save(tmp_path / "X.npy", X)
    with scan(tmp_path / "X.npy", target=X[:, 0] > 0) as rows:
        np.save(tmp_path / "X.npy", X + 1)
        with pytest.raises(BadInput, match="has changed since it was scanned"):
            LogisticRegression().fit(rows)


def test_tuning_small_files(tuned, tmp_path):
    tuned(few_on_disk=1 << 20)
    X = RNG.normal(size=(200, 4))
    y = X[:, 0] > RNG.normal(size=200)
    np.save(tmp_path / "X.npy", X)
    with scan(tmp_path / "X.npy", target=y) as rows:
        there = tune(LogisticRegression(), rows, None, Cs=3, cv=2)
    assert there.best_C == tune(LogisticRegression(), X, y, Cs=3, cv=2).best_C
