"""The columns of the Spark engine on RDDs made of lists: what a task computes, without a session."""

# ruff: noqa: N802 - the methods of an RDD have its names
from __future__ import annotations

from functools import partial

import numpy as np
import pytest

from linsep.data.cluster.engines import spark_columns, spark_engine
from linsep.data.layout import ordered
from linsep.errors import BadInput

pa = pytest.importorskip("pyarrow")
pytestmark = pytest.mark.spark


class ListRDD:
    """The methods of an RDD that the engine uses, on functions that return lists: only what is asked is computed."""

    def __init__(self, parts):
        self.parts = list(parts)

    def _each(self, fn):
        made = [
            partial(lambda i, part: list(fn(i, iter(part()))), i, p) for i, p in self._numbered()
        ]
        return ListRDD(made)

    def _numbered(self):
        return list(enumerate(self.parts))

    def _all(self):
        return [value for part in self.parts for value in part()]

    def zip(self, other):
        def pair(i, a):
            return zip(a, other.parts[i](), strict=True)

        return self._each(pair)

    def mapPartitionsWithIndex(self, fn):
        return self._each(fn)

    def mapPartitions(self, fn):
        return self._each(lambda i, part: fn(part))

    def map(self, fn):
        return self._each(lambda i, part: map(fn, part))

    def partitionBy(self, count, place):
        parts = [[] for _ in range(count)]
        for pair in reversed(self._all()):  # in any order
            parts[place(pair[0])].append(pair)
        return ListRDD([partial(list, part) for part in parts])

    def sortByKey(self, numPartitions):
        return ListRDD([lambda: sorted(self._all(), key=lambda pair: pair[0])])

    def values(self):
        return self.map(lambda pair: pair[1])

    def persist(self, level):
        return self


class Session:
    """A context and its session in one."""

    _jsc = None

    def __init__(self):
        self.sparkContext = self

    def parallelize(self, values, count):
        assert len(values) == count
        return ListRDD([partial(list, [value]) for value in values])

    def runJob(self, rdd, fn, numbers):
        return [value for i in numbers for value in fn(iter(rdd.parts[i]()))]


def test_steps_share_what_they_read_and_skip_partitions_without_rows():
    engine = spark_engine.SparkEngine(Session(), 4)
    raw = engine.send("x", [1.0, 2.0, None, 4.0])
    made = engine.map("pair", lambda x, y: (x, y), raw, [10, 20, 30, 40], persist=True)
    first = engine.keep(engine.pick(made, 0), [0, 1, 3])
    sent = engine.send("row state", [5.0, 6.0, 7.0])
    total = engine.map("sum", lambda *v, k: sum(v) * k, first, sent, engine.share("f", 0.5), k=2.0)
    assert engine.collect(total) == [13.0, 17.0, 23.0]
    some = engine.map("some", lambda x, y: x + y, first, engine.pick(made, 1), among=[0, 2])
    assert engine.collect(some) == [11.0, 44.0]
    long = engine.map("take", lambda x, v: x + v[0], first, [np.full(9000, k) for k in range(3)])
    assert engine.collect(long) == [1.0, 3.0, 6.0]  # too long to be part of every task
    assert engine.restart().collect(first) == [1.0, 2.0, 4.0]


@pytest.mark.parametrize("collected", [0, 1 << 26])
def test_totals_have_the_order_of_the_partitions(collected):
    engine = spark_engine.SparkEngine(Session(), 300)
    rng = np.random.default_rng(0)
    parts = [rng.normal(size=5) * 10.0 ** rng.integers(-8, 8) for _ in range(300)]
    column = engine.map("x", np.negative, engine.keep(engine.send("x", parts), range(1, 300)))
    engine.collected_bytes = collected
    assert (engine.total(column, 5) == ordered([-part for part in parts[1:]])).all()


@pytest.mark.parametrize("collected", [0, 1 << 26])
def test_an_error_of_a_task_is_raised_at_the_driver(collected):
    def fail(x):
        if x == 33:
            raise BadInput("Partition 33 (counting from 0): NaN")
        return np.ones(2)

    engine = spark_engine.SparkEngine(Session(), 40)
    made = engine.map("x", fail, list(range(40)), persist=True)
    later = engine.map("later", np.negative, made)
    engine.collected_bytes = collected
    for ask in (lambda: engine.collect(later), lambda: engine.total(later, 2)):
        with pytest.raises(BadInput, match="Partition 33"):
            ask()


def test_vectors_become_rows():
    vectors = pa.array(
        [
            {"type": 1, "size": None, "indices": None, "values": [1.0, 0.0, 2.0]},
            {"type": 0, "size": 3, "indices": [1], "values": [5.0]},
        ]
    )
    table = pa.table({"v": vectors})
    expected = np.array([[1.0, 0.0, 2.0], [0.0, 5.0, 0.0]])
    assert spark_columns.count_entries(table, "v") == (3, 6)
    assert (spark_columns.rows_of_vectors(table, "v", sparse=False) == expected).all()
    assert (spark_columns.rows_of_vectors(table, "v", sparse=True).toarray() == expected).all()
    lists = pa.table({"v": pa.array([[1.0, 2.0], [3.0, 4.0]])})
    assert (spark_columns.rows_of_vectors(lists, "v", sparse=False) == [[1, 2], [3, 4]]).all()
    with pytest.raises(BadInput, match="different lengths"):
        spark_columns.csr_rows(pa.chunked_array([[[1.0], [1.0, 2.0]]]))
    with pytest.raises(BadInput, match="1 of the vectors are null"):
        spark_columns.csr_rows(pa.chunked_array([pa.array([[1.0], None])]))


def test_batches_become_one_table_and_back():
    batch = pa.RecordBatch.from_pydict({"a": [1.0, 2.0], "y": ["no", None]})
    packed = spark_columns.pack([batch, batch[:0], batch])
    rows = [{"linsep_raw": one.column(0)[0].as_py()} for one in packed]
    (table,) = spark_columns.unpack(rows)
    assert table["a"].to_pylist() == [1.0, 2.0, 1.0, 2.0]
    assert spark_columns.vector_of(table, "y").tolist() == ["no", None, "no", None]
    assert list(spark_columns.unpack([])) == [None]
    assert spark_columns.features_table(None, ("a",)).shape == (0, 1)
