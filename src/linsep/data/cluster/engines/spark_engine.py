"""The Spark engine: a column is a lazy expression over RDDs with one value per partition.

``map`` only builds the expression. ``collect`` and ``total`` run it as one job: the stored RDDs that the
expression reads are zipped, and a task evaluates all its steps on the values of its partition. ``persist`` stores a
result (``MEMORY_AND_DISK``) when a job first needs it. If an executor is lost, Spark recomputes its values from the
lineage, which starts with the user's data frame.
"""

from __future__ import annotations

import importlib
import re
import threading
import weakref
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.data.cluster.engine import Column, Engine, Source, cut, lengths, pick
from linsep.data.cluster.engines.spark_columns import (
    count_entries,
    expression_of,
    features_table,
    holds_vectors,
    names_column,
    quoted,
    raw_tables,
    rows_of_vectors,
    vector_of,
)
from linsep.data.cluster.engines.spark_predictions import predict, predict_files
from linsep.data.layout import FAN, one_after_another, ordered
from linsep.errors import BadInput, ClusterError, LinsepError

__all__ = ["SparkEngine", "files", "predict", "predict_files", "source"]

INLINE = 1 << 16  # lists of values up to this many bytes are copied into every task
SPARSE = 1 / 3  # vectors with a smaller fraction of nonzeros are read as sparse rows


@dataclass(eq=False)
class Stored:
    """Values on the executors: an RDD with one element for each partition."""

    rdd: Any
    released: Any = field(default=None, repr=False)


@dataclass(frozen=True, eq=False)
class Call:
    """Column of ``fn(*columns, **common)`` for every partition, not yet computed."""

    fn: Callable[..., Any]
    columns: tuple[Column, ...]
    common: dict[str, Any]
    among: tuple[int, ...] | None


class Shared:
    """Column with the same value for all partitions."""

    def __init__(self, value: Any) -> None:
        self.value = value


class SparkEngine(Engine):
    """Engine that runs jobs in a Spark session."""

    collected_bytes = 1 << 26

    def __init__(self, session: Any, count: int) -> None:
        super().__init__()
        self.session, self.context, self.count = session, session.sparkContext, count
        self.numbers = list(range(count))  # number of the RDD partition for each partition in use

    def restart(self) -> SparkEngine:
        again = SparkEngine(self.session, self.count)
        again.numbers = list(self.numbers)
        return again

    def map(
        self,
        what: str,
        fn: Callable[..., Any],
        /,
        *columns: Column,
        among: Sequence[int] | None = None,
        persist: bool = False,
        **common: Any,
    ) -> Column:
        call = Call(fn, columns, common, None if among is None else tuple(among))
        return self._stored(call) if persist else call

    def _stored(self, call: Call) -> Stored:
        """Return the results as a persisted RDD, released when there are no more references to it."""
        level = importlib.import_module("pyspark").StorageLevel.MEMORY_AND_DISK
        rdd = self._rdd(call).persist(level)
        stored = Stored(rdd)
        stored.released = weakref.finalize(stored, _release, rdd, self.context)
        stored.released.atexit = False
        return stored

    def _rdd(self, column: Column) -> Any:
        """Return the values of a column as an RDD with one element per partition."""
        programme = Programme(self)
        programme.compile(column)
        sources = programme.sources or [self.context.parallelize([None] * self.count, self.count)]
        rdd = sources[0]
        for other in sources[1:]:
            rdd = rdd.zip(other)
        return rdd.mapPartitionsWithIndex(programme.task())

    def distribute(self, values: Sequence[Any]) -> Any:
        """Return values of the client as an RDD with one element per partition."""
        everywhere: list[Any] = [None] * self.count
        for number, value in zip(self.numbers, values, strict=True):
            everywhere[number] = value
        return self.context.parallelize(everywhere, self.count)

    def send(self, what: str, values: Sequence[Any]) -> Stored:
        return Stored(self.distribute(values))

    def share(self, what: str, value: Any) -> Shared:
        return Shared(value)

    def keep(self, column: Column, numbers: Sequence[int]) -> Column:
        self.numbers = [self.numbers[i] for i in numbers]
        return column

    def collect(self, column: Column) -> list[Any]:
        if isinstance(column, list):
            return column
        numbers = self.numbers
        if isinstance(column, Call) and column.among is not None:
            numbers = [numbers[i] for i in column.among]
        return self._run(self._rdd(column), numbers)

    def _run(self, rdd: Any, numbers: list[int]) -> list[Any]:
        errors = (
            importlib.import_module("py4j.protocol").Py4JError,
            importlib.import_module("pyspark.errors").PySparkException,
        )
        try:
            found = list(self.context.runJob(rdd, list, numbers))
        except errors as error:
            raise self._explained(error, numbers) from error
        for value in found:
            if isinstance(value, Failure):
                raise value.error
        return found

    def collects(self, size: int) -> bool:
        return len(self.numbers) <= FAN or super().collects(size)

    def _tree(self, column: Column) -> FloatArray:
        """Return the ordered sum, added level by level."""
        rdd, count = self._rdd(column), len(self.numbers)
        rdd = rdd.mapPartitionsWithIndex(_Placed({n: i for i, n in enumerate(self.numbers)}))
        while count > FAN:
            count = -(-count // FAN)
            rdd = rdd.map(_in_group).partitionBy(count, _identity).mapPartitions(_add)
        return ordered(self._run(rdd.sortByKey(numPartitions=1).values(), [0]))

    def dumps(self, fn: Any) -> bytes:
        blob: bytes = importlib.import_module("pyspark.cloudpickle").dumps(fn)
        return blob

    def setting(self, name: str) -> Any:
        return self.session.conf.get(f"spark.linsep.{name}", None)

    def how_to_set(self, name: str, value: str) -> str:
        return f"spark.conf.set('spark.linsep.{name}', {value!r})"

    def _explained(self, error: Exception, numbers: Sequence[int]) -> ClusterError:
        """Convert an error of Spark to a ClusterError that names the partition and the remedy."""
        if self.context._jsc is None:
            return ClusterError(
                "The Spark session was stopped during the fit: start one and fit again."
            )
        text = str(getattr(error, "java_exception", error))
        found = re.search(r"Task (\d+) in stage [\d.]+ failed (\d+) times", text)
        if found is None or int(found[1]) >= len(numbers):
            return ClusterError(f"The cluster failed: {_first_lines(text)}")
        number, times = self.numbers.index(numbers[int(found[1])]), int(found[2])
        return ClusterError(
            f"Partition {number} (counting from 0): its task failed {times} times. It is too large for the memory of "
            "an executor, or its data bring the workers down. Look at it, repartition the data frame into smaller "
            f"partitions, or give the executors more memory (spark.executor.memoryOverhead). Spark says: "
            f"{_first_lines(text)}",
            (number,),
        )


def _first_lines(text: str) -> str:
    """Return the beginning of an error message of the JVM, without the stack trace."""
    lines = [line.strip() for line in text.splitlines()]
    return " ".join(line for line in lines if line and not line.startswith("at "))[:600]


def _release(rdd: Any, context: Any) -> None:
    """Unpersist an RDD in a separate thread, because a finaliser may run in the middle of another call to the JVM."""

    def drop() -> None:
        try:
            rdd.unpersist()
        except Exception:  # the session has ended and its RDDs no longer exist
            return

    if context._jsc is not None:
        threading.Thread(target=drop, daemon=True).start()


# tasks


class Programme:
    """Compiler of a column into steps of a task and the stored RDDs that they read."""

    def __init__(self, engine: SparkEngine) -> None:
        self._engine = engine
        self.sources: list[Any] = []
        self._steps: list[tuple[Any, list[tuple[str, Any]], dict[str, Any]]] = []
        self._known: dict[int, tuple[str, Any]] = {}  # by id(), which `_held` keeps valid
        self._held: list[Any] = []

    def compile(self, column: Column) -> tuple[str, Any]:
        """Return where a task finds the value of a column: ("source" | "step" | "shared" | "value", ...)."""
        found = self._known.get(id(column))
        if found is None:
            found = self._known[id(column)] = self._compile(column)
            self._held.append(column)
        return found

    def _compile(self, column: Column) -> tuple[str, Any]:
        if isinstance(column, Shared):
            return "shared", column.value
        if isinstance(column, Call):
            inputs = [self.compile(one) for one in column.columns]
            self._steps.append((column.fn, inputs, column.common))
            return "step", len(self._steps) - 1
        if isinstance(column, Stored):
            return self._source(column.rdd)
        values = dict(zip(self._engine.numbers, column, strict=True))
        if len(self._engine.dumps(values)) > INLINE:
            return self._source(self._engine.distribute(column))
        return "value", values

    def _source(self, rdd: Any) -> tuple[str, Any]:
        self.sources.append(rdd)
        return "source", len(self.sources) - 1

    def task(self) -> Task:
        """Return the task that executes the steps on a partition; its result is that of the last step."""
        answer = ("step", len(self._steps) - 1) if self._steps else ("source", 0)
        return Task(self._steps, max(1, len(self.sources)), answer)


@dataclass
class Task:
    """Function that executes all steps on the values of one partition, on an executor."""

    steps: list[tuple[Any, list[tuple[str, Any]], dict[str, Any]]]
    sources: int
    answer: tuple[str, Any]

    def __call__(self, number: int, elements: Iterator[Any]) -> Iterator[Any]:
        """Yield the value of partition ``number``; each element contains its stored values as nested pairs."""
        for element in elements:
            yield self._evaluate(number, _flat(element, self.sources))

    def _evaluate(self, number: int, stored: list[Any]) -> Any:
        made: list[Any] = []

        def value(place: tuple[str, Any]) -> Any:
            kind, at = place
            if kind == "shared":
                return at
            return {"source": stored, "step": made}[kind][at] if kind != "value" else at.get(number)

        for fn, inputs, common in self.steps:
            values = [value(place) for place in inputs]
            failed = next((one for one in values if isinstance(one, Failure)), None)
            made.append(failed if failed is not None else _attempt(fn, values, common))
        return value(self.answer)


def _flat(element: Any, count: int) -> list[Any]:
    """Flatten nested pairs: ((a, b), c) becomes [a, b, c]."""
    if count == 1:
        return [element]
    return [*_flat(element[0], count - 1), element[1]]


@dataclass
class Failure:
    """Error of linsep on an executor, returned as a result so that Spark does not retry a task that must fail."""

    error: LinsepError


def _attempt(fn: Any, values: list[Any], common: dict[str, Any]) -> Any:
    try:
        return fn(*values, **common)
    except LinsepError as error:
        return Failure(error)


@dataclass
class _Placed:
    """Function that yields (partition number, value) for the partitions in use."""

    place: dict[int, int]

    def __call__(self, number: int, elements: Iterator[Any]) -> Iterator[Any]:
        if number in self.place:
            for value in elements:
                yield self.place[number], value


def _in_group(pair: tuple[int, Any]) -> tuple[int, tuple[int, Any]]:
    return pair[0] // FAN, pair


def _identity(group: int) -> int:
    return group


def _add(pairs: Iterator[tuple[int, tuple[int, Any]]]) -> Iterator[tuple[int, Any]]:
    """Yield the sum of a group of partitions, added in their order."""
    found = sorted((pair for _, pair in pairs), key=_place)
    values = [value for _, value in found]
    failed = next((value for value in values if isinstance(value, Failure)), None)
    if found:
        yield found[0][0] // FAN, one_after_another(values) if failed is None else failed


def _place(pair: tuple[int, Any]) -> int:
    return pair[0]


def source(X: Any, y: Any, weight: Any) -> Source:
    """Return a Spark data frame as columns of an engine; y and weights are columns, expressions or local vectors."""
    if not hasattr(X, "mapInArrow"):
        raise BadInput(f"X is a {type(X).__module__}.{type(X).__name__}; give a Spark data frame.")
    session = X.sparkSession
    if type(session).__module__.startswith("pyspark.sql.connect"):
        raise BadInput(
            "X belongs to a session of Spark Connect, which has no RDDs: run the program on the driver."
        )
    vectors, frame, features = [], X, list(X.columns)
    for v, name in ((y, "y"), (weight, "sample_weight")):
        column = None if v is None or not names_column(v) else f"linsep_{name}"
        if column is not None:
            expression = expression_of(X, v, name)
            features = [one for one in features if one not in X.select(expression).columns]
            frame = frame.withColumn(column, expression)
        vectors.append(column)
    if not features:
        raise BadInput(f"X has no columns beside y and the weights: {X.columns}.")
    added = [column for column in vectors if column is not None]
    raw = Stored(raw_tables(frame.select(*map(quoted, [*features, *added]))))
    engine = SparkEngine(session, raw.rdd.getNumPartitions())
    x = _features_of(engine, raw, X.select(*map(quoted, features)).schema)
    columns = []
    for v, name, column in zip((y, weight), ("y", "sample_weight"), vectors, strict=True):
        if column is not None:
            columns.append(engine.map(name, vector_of, raw, name=column))
        elif v is None:
            columns.append(None)
        else:
            columns.append(engine.send(name, cut(v, lengths(engine, x), name)))
    return Source(engine, x, engine.count, columns[0], columns[1])


def _features_of(engine: SparkEngine, raw: Stored, schema: Any) -> Column:
    """Return the column of rows: tables with names, or matrices if the only column of the frame holds vectors."""
    names = tuple(schema.names)
    wide = [field.name for field in schema.fields if holds_vectors(field.dataType)]
    if not wide:
        return engine.map("x", features_table, raw, names=names)
    if len(names) > 1:
        raise BadInput(
            f"Column {wide[0]!r} holds vectors and there are others beside it: {', '.join(names)}. Select it alone, "
            "or assemble all features into one vector."
        )
    engine.traffic.rounds += 1
    found = engine.collect(engine.map("entries", count_entries, raw, name=wide[0]))
    stored, size = np.sum(found, axis=0)
    return engine.map("x", rows_of_vectors, raw, name=wide[0], sparse=bool(stored < SPARSE * size))


def files(client: Any, paths: Sequence[Any], read: Callable[[Any], Any]) -> tuple[Any, ...]:
    """Return an engine, and the three columns of the tuples that ``read(file)`` returns for each file."""
    engine = SparkEngine(client, len(paths))
    found = engine.map("read", read, engine.send("path", paths))
    return engine, *(engine.map("part", pick, found, at=at) for at in range(3))
