"""Rows on Spark: the same bits as on Dask and in memory, and predictions as columns.

One session in local mode serves all tests; it takes most of the time.
"""

from __future__ import annotations

import os
import sys
from itertools import pairwise

import numpy as np
import pyarrow as pa
import pytest
from partitioned import Partitioned
from scattered import Scattered
from sklearn.base import clone
from sklearn.pipeline import make_pipeline

import linsep
from linsep import LinearClassifier, LinearRegressor, LinearSVC, LogisticRegression
from linsep.data import Location, location_of
from linsep.data.cluster.opening import PersistedRows
from linsep.errors import BadInput
from linsep.losses import get
from linsep.penalties import ElasticNet
from linsep.train import Recipe, train

pytestmark = [
    pytest.mark.spark,
    pytest.mark.filterwarnings("ignore::FutureWarning"),
    pytest.mark.filterwarnings("ignore::ResourceWarning"),
    pytest.mark.filterwarnings("ignore::DeprecationWarning"),
]

N, D = 6000, 4
CUTS = (1000, 1, 0, 2499, 2500)
NAMES = [f"x{j}" for j in range(D)]


@pytest.fixture(scope="module")
def spark():
    os.environ["PYSPARK_PYTHON"] = sys.executable
    os.environ.setdefault("SPARK_LOCAL_IP", "127.0.0.1")
    os.environ.setdefault("SPARK_LOCAL_HOSTNAME", "localhost")
    from pyspark.sql import SparkSession

    options = {
        "spark.ui.enabled": "false",
        "spark.ui.showConsoleProgress": "false",
        "spark.log.level": "OFF",
        "spark.sql.shuffle.partitions": "2",
        "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    }
    builder = SparkSession.builder.master("local[2]")
    for name, value in options.items():
        builder = builder.config(name, value)
    session = builder.getOrCreate()
    yield session
    session.stop()


@pytest.fixture(scope="module")
def table():
    rng = np.random.default_rng(0)
    X = rng.normal(size=(N, D)) * np.arange(1, D + 1)
    z = X @ rng.normal(size=D)
    return X, z, np.where(z + 3.0 * rng.logistic(size=N) > 0, "yes", "no"), rng.random(N)


def frame_of(spark, cuts=CUTS, **columns):
    """A data frame whose partitions are these rows of the columns, in batches of 700."""
    batch = pa.RecordBatch.from_pydict(columns)
    edges = list(pairwise(np.cumsum([0, *cuts]).tolist()))

    def make(batches):
        for given in batches:
            for i in given.column(0).to_pylist():
                lo, hi = edges[i]
                for at in range(lo, hi, 700):
                    yield batch.slice(at, min(700, hi - at))

    from pyspark.sql.pandas.types import from_arrow_schema

    return spark.range(0, len(cuts), 1, len(cuts)).mapInArrow(make, from_arrow_schema(batch.schema))


@pytest.fixture(scope="module")
def frame(spark, table):
    X, z, y, w = table
    targets = {"y": y, "z": z, "w": w, "k": np.digitize(z, [-2.0, 2.0])}
    return frame_of(spark, **dict(zip(NAMES, X.T, strict=True)), **targets).cache()


def there(frame, *names):
    return frame.select(*NAMES, *names)


def named(X):
    return pa.table(dict(zip(NAMES, X.T, strict=True)))


def partitioned(X, **vectors):
    return Partitioned(X, [size for size in CUTS if size], **vectors)


FITS = [
    ("logistic", LogisticRegression(C=0.5, tol=1e-6)),
    ("hinge", LinearSVC(C=0.05, tol=1e-6)),
    ("squared_hinge", LinearClassifier("squared_hinge", C=0.5, tol=1e-6, solver="newton")),
]


@pytest.mark.parametrize("loss, model", FITS, ids=[loss for loss, _ in FITS])
def test_fits_have_the_bits_of_the_same_partitions_in_memory(frame, table, loss, model):
    X, _, y, w = table
    model.fit(there(frame, "y", "w"), "y", sample_weight="w")
    data = partitioned(X, sign=np.where(y == "yes", 1.0, -1.0), weight=w)
    recipe = Recipe(get(loss), ElasticNet(model.C), solver=model.solver, tol=model.tol)
    here = train(recipe, data)
    assert (np.append(model.coef_, model.intercept_) == here.W[:, 0]).all()
    assert model.certificate_.primal == here.certificate.primal and model.certificate_.certified
    assert list(model.feature_names_in_) == NAMES and list(model.classes_) == ["no", "yes"]
    assert 3 <= model.traffic_.rounds <= 8
    linsep.verify(model, named(X), y, w)


def test_dask_and_spark_agree(frame, table, client):
    import dask.array as da

    X, z, *_ = table
    cut = [da.from_array(a, chunks=(CUTS, *a.shape[1:])) for a in (X, np.digitize(z, [-2.0, 2.0]))]
    ours, theirs = LogisticRegression().fit(there(frame, "k"), "k"), LogisticRegression().fit(*cut)
    assert (ours.coef_ == theirs.coef_).all() and ours.certificate_.certified
    line = LinearRegressor("huber", C=1.0).fit(there(frame, "z"), "z")
    other = LinearRegressor("huber", C=1.0).fit(cut[0], da.from_array(z, chunks=(CUTS,)))
    assert (line.coef_ == other.coef_).all()
    assert np.isclose(line.score(there(frame, "z"), "z"), line.score(named(X), z), rtol=1e-10)


LASSO = {"l1_ratio": 1.0, "C": 0.05}
CLASSES = {
    "lasso": (LogisticRegression(**LASSO), "y"),
    "lasso, squares": (LinearRegressor("squared", **LASSO), "z"),
    "lasso, softmax": (LogisticRegression(**LASSO), "k"),
    "elastic net": (LogisticRegression(C=0.05, l1_ratio=0.5), "y"),
    "huberised hinge": (LinearClassifier("huberised_hinge"), "y"),
    "squares": (LinearRegressor("squared"), "w"),
    "one against the rest": (LinearSVC(C=0.05), "k"),
    "absolute": (LinearRegressor("absolute", C=0.05), "w"),
    "quantile": (LinearRegressor("pinball", C=0.05), "w"),
    "Crammer and Singer": (LinearSVC(C=0.05, multiclass="crammer_singer"), "k"),
    "groups": (LogisticRegression(**LASSO, feature_groups=[0, 0, 1, 1]), "y"),
    "no penalty": (LogisticRegression(C=np.inf), "y"),
    "no penalty, squares": (LinearRegressor("squared", C=np.inf), "w"),
}


#: The bands of a hinge may fail, and the other problems need all rows.
AT_THE_CLIENT = ("one against the rest", "absolute", "quantile", "Crammer and Singer", "groups")


@pytest.mark.parametrize("kind", CLASSES)
def test_every_class_of_problem_has_the_bits_of_the_same_partitions(frame, table, kind, tuned):
    """test_any_worker.py has the same engine for 1, 2, 4 and 8 workers."""
    X, z, y, w = table
    model, target = CLASSES[kind]
    tuned(memory_entries=10**6 if kind in AT_THE_CLIENT else 1000)
    edges = np.cumsum([0, *filter(None, CUTS)])
    parts = [X[lo:hi] for lo, hi in pairwise(edges)]
    there_fitted = clone(model).fit(there(frame, target), target)
    targets = {"y": y, "z": z, "w": w, "k": np.digitize(z, [-2.0, 2.0])}
    rows = PersistedRows(Scattered(len(parts), 2), parts, len(parts))
    model = clone(model).fit(rows, targets[target])
    assert there_fitted.certificate_.certified
    assert np.array_equal(there_fitted.coef_, model.coef_)
    assert np.array_equal(there_fitted.intercept_, model.intercept_)


def test_verify_score_and_predict(frame, table):
    X, z, y, _ = table
    plain, model = LogisticRegression().fit(X, y), LogisticRegression().fit(named(X), y)
    assert linsep.verify(model, there(frame, "y"), "y").certified
    assert np.isclose(model.score(there(frame, "y"), "y"), plain.score(X, y), rtol=1e-12)
    found = model.predict(frame).select("prediction", "z").collect()  # other columns stay
    assert [row["prediction"] for row in found] == plain.predict(X).tolist()
    assert [row["z"] for row in found] == z.tolist()
    chances = [row["probability"] for row in model.predict_proba(there(frame)).collect()]
    np.testing.assert_allclose(chances, plain.predict_proba(X), rtol=1e-12)
    with pytest.raises(BadInput, match="fitted to: x3"):
        model.predict(frame.drop("x3"))
    with pytest.raises(BadInput, match="'prediction' already"):
        model.predict(model.predict(frame))
    with pytest.raises(BadInput, match="'label' is not a column"):
        LogisticRegression().fit(frame, "label")
    assert location_of(frame) is Location.CLUSTER


def test_a_poisoned_partition_is_named(spark, table):
    """By the encoder and by a fit; the empty partition before it is none of theirs."""
    X, _, y, _ = table
    X = X.copy()
    X[1001 + 100, 2] = np.inf  # in partition 3
    bad = frame_of(spark, **dict(zip(NAMES, X.T, strict=True)), y=y)
    with pytest.raises(BadInput, match=r"Partition 3 \(counting from 0\).*'x2'.*infinite"):
        linsep.Encoder().fit(bad, "y")
    with pytest.raises(BadInput, match=r"Partition 3 \(counting from 0\)"):
        LogisticRegression().fit(bad, "y")
    none = frame_of(spark, (0, 0), **dict(zip(NAMES, X.T, strict=True)), y=y)
    with pytest.raises(BadInput, match="no rows"):
        make_pipeline(linsep.Encoder(), LogisticRegression()).fit(none, "y")
