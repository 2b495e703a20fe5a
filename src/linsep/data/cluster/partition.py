"""Code that runs on the workers of a cluster: partitions of the rows, and the tasks on them.

Every task is a pure function of its arguments, so if a result is lost, the scheduler can run the task again on any
worker and obtain a bit-identical result.
"""

from __future__ import annotations

import pickle
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray
from linsep.data.memory import Memory, aligned, readable
from linsep.errors import ClusterError, LinsepError


@dataclass(frozen=True)
class Facts:
    """Facts about a partition, collected when it is opened."""

    n: int
    d: int
    dtype: str
    sparse: bool
    entries: int
    counts: IntArray | None  #: rows of each of its classes
    totals: FloatArray | None  #: total weight of each of its classes
    classes: npt.NDArray[Any] | None
    weight: tuple[float, float, float] | None  #: minimum, maximum, sum
    names: Any = None
    largest: float = 0.0  #: largest absolute value of a target


@dataclass(frozen=True, eq=False)
class Partition:
    """Rows on a worker, in a layout the kernels read, with class numbers (``codes``) or numeric targets."""

    X: Any
    codes: IntArray | None
    classes: npt.NDArray[Any] | None
    target: FloatArray | None
    weight: FloatArray | None
    facts: Facts | None = None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Restore a pickled partition; rows that were received at an unaligned address are copied once, here."""
        vars(self).update(state, X=aligned(state["X"]))

    def __sizeof__(self) -> int:
        """Return the size in bytes, from which the scheduler estimates the cost of a transfer."""
        X = self.X
        rows = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        vectors = (self.codes, self.target, self.weight)
        return int(rows + sum(0 if v is None else v.nbytes for v in vectors)) + 64


class Vectors(NamedTuple):
    """Targets of a partition, with None for signs of 1, offsets of 0, weights of 1, and no labels."""

    sign: FloatArray | None
    offset: FloatArray | None
    weight: FloatArray | None
    labels: IntArray | None


@dataclass(frozen=True)
class Target:
    """Description of the targets: class ``positive`` against the others, all classes (``coupled``), or numbers.

    ``factors`` are the class weights; ``weighted`` is false if no row has a sample weight.
    """

    positive: int | None = None
    coupled: bool = False
    factors: tuple[float, ...] | None = None
    weighted: bool = False
    numbers: bool = False
    centre: float = 1.0  # offsets of numeric targets t are centre - t / 2^exponent
    exponent: int = 0


def vectors_of(part: Partition, place: IntArray | None, target: Target) -> Vectors:
    """Return the targets of a partition; ``place`` maps its class numbers to those of the whole data set."""
    codes = None if part.codes is None or place is None else place[part.codes]
    weight = part.weight if target.weighted else None
    if target.factors is not None:
        of_rows = np.array(target.factors)[codes]
        weight = of_rows if weight is None else of_rows * weight
    elif target.weighted and weight is None:
        weight = np.ones(part.X.shape[0])
    if target.coupled:
        return Vectors(None, None, weight, codes)
    if target.positive is not None:
        return Vectors(np.where(codes == target.positive, 1.0, -1.0), None, weight, None)
    offset = (
        None if part.target is None else target.centre - np.ldexp(part.target, -target.exponent)
    )
    return Vectors(None, offset, weight, None)


@dataclass(frozen=True)
class Task:
    """Number and first row of a partition, version of linsep on the client, and threads of the task."""

    number: int
    first: int
    version: str
    threads: int = 1


def memory(part: Partition, vectors: Vectors, task: Task) -> Memory:
    """Return the partition as a data set in memory."""
    return Memory(part.X, *vectors, n_threads=task.threads, origin=task.first)


def describe(
    part: Partition | None, some: IntArray | None
) -> tuple[Facts | None, Partition | None]:
    """Return the facts of a partition and a partition of the rows ``some``; None for one without rows."""
    if part is None:
        return None, None
    if some is None:
        return part.facts, None
    vectors: Any = (part.codes, part.target, part.weight)
    codes, target, weight = (None if v is None else v[some] for v in vectors)
    return part.facts, Partition(part.X[some], codes, part.classes, target, weight)


@dataclass(frozen=True)
class Visit:
    """Description of a round: sizes of the sums, and names of the row state that it uses.

    ``reads`` pairs each name with the entry of the stored result that holds the state, or None if the result is the
    state itself.
    """

    sizes: tuple[int, ...]
    reads: tuple[tuple[str, int | None], ...] = ()
    writes: tuple[str, ...] = ()
    stores: bool = False  #: append the state that it writes to the result
    sums_only: bool = False  #: return the sums without the results of the blocks
    fetches: tuple[str, ...] = ()  #: state to send to the client
    fetches_targets: bool = False


class Found(NamedTuple):
    """Results of a round on one partition that are sent to the client besides the sums."""

    blocks: list[Any]
    rows: tuple[IntArray, tuple[Any, ...]] | None  #: numbers and data of the rows to prefetch
    state: list[FloatArray]
    targets: Vectors | None


def visit(
    part: Partition,
    vectors: Vectors,
    task: Task,
    blob: bytes,
    *state: Any,
    what: Visit,
) -> Any:
    """Return the concatenated sums over the blocks of a partition: alone, or in a pair with ``Found``.

    If the round stores row state, the result is a tuple of this and the state.
    """
    refuse_other_version(task)
    with with_partition_number(task.number):
        data = memory(part, vectors, task)
        for (name, at), stored in zip(what.reads, state, strict=True):
            values = entry(stored, at)
            data.set_row_state(name, values.copy() if name in what.writes else values)
        functions, prefetch, merge = pickle.loads(blob)
        made, blocks = data.visits(list(zip(functions, what.sizes, strict=True)))
        data.close()
        answer: Any = np.concatenate(made)
        if not what.sums_only:
            rows = np.zeros(0, dtype=np.int64) if prefetch is None else np.unique(prefetch(blocks))
            found = Found(
                blocks if merge is None else [merge(blocks)],
                (rows, take(part, vectors, rows - task.first)) if len(rows) else None,
                [data.row_state(name) for name in what.fetches],
                vectors if what.fetches_targets else None,
            )
            answer = answer, found
        return (answer, *(data.row_state(name) for name in what.writes)) if what.stores else answer


def entry(stored: Any, at: int | None) -> Any:
    """Return the ``at``-th entry of a stored result, or the result itself if ``at`` is None."""
    return stored if at is None else stored[at]


def take(part: Partition, vectors: Vectors, rows: IntArray) -> tuple[Any, ...]:
    """Return some rows of a partition with their targets."""
    return part.X[rows], *(None if v is None else v[rows] for v in vectors)


def between(part: Partition, lo: int, hi: int) -> Any:
    """Return rows lo .. hi of a partition, without their targets."""
    return part.X[lo:hi]


def take_columns(part: Partition, chosen: IntArray) -> Partition:
    """Return a partition with some of the features, in a layout the kernels read."""
    return replace(part, X=readable(part.X[:, chosen]), facts=None)


def find(
    part: Partition, vectors: Vectors, ranks: Sequence[IntArray]
) -> tuple[list[IntArray], IntArray, tuple[Any, ...]]:
    """Return the numbers of the ``ranks[c]``-th rows of each class c; also all these rows, sorted, with their data."""
    labels, found = vectors.labels, list(ranks)
    if labels is None and vectors.sign is not None:
        labels = (vectors.sign > 0.0).astype(np.int64)
    if labels is not None:
        found = [np.flatnonzero(labels == c)[wanted] for c, wanted in enumerate(ranks)]
    rows = np.unique(np.concatenate(found))
    return found, rows, take(part, vectors, rows)


def apply(
    part: Partition,
    vectors: Vectors,
    task: Task,
    blob: bytes,
    *state: Any,
    entries: Sequence[int | None],
) -> Any:
    """Return ``fn(X, sign, offset, weight, labels, *state)`` of a partition; ``blob`` is the pickled function.

    The state is the ``entries``-th entry of each stored result.
    """
    refuse_other_version(task)
    with with_partition_number(task.number):
        sign = np.ones(part.X.shape[0]) if vectors.sign is None else vectors.sign
        fn = pickle.loads(blob)
        values = (entry(stored, at) for stored, at in zip(state, entries, strict=True))
        return fn(part.X, sign, *vectors[1:], *values)


def checksums(X: Any, *vectors: Any) -> list[int]:
    """Return the CRC-32 of the rows of a partition and of their targets."""
    rows = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return [0 if v is None else zlib.crc32(np.ascontiguousarray(v).data) for v in (*rows, *vectors)]


def refuse_other_version(task: Task) -> None:
    """Raise if the version of linsep on this worker differs from that of the client."""
    from linsep import __version__  # noqa: PLC0415 - the package imports this module

    if __version__ != task.version:
        raise ClusterError(
            f"A worker has linsep {__version__}, the client {task.version}: their answers may differ. Install "
            "the same version on every worker."
        )


class with_partition_number:  # noqa: N801 - reads as a statement
    """Context manager that adds the number of the partition to errors raised inside."""

    def __init__(self, number: int) -> None:
        self._number = number

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: object, error: BaseException | None, trace: object) -> None:
        if error is None or isinstance(error, ClusterError) or not isinstance(error, Exception):
            return
        number = self._number
        text = f"Partition {number} (counting from 0): {error}"
        if isinstance(error, LinsepError):
            raise type(error)(text) from error
        raise ClusterError(f"{text} [{type(error).__name__}]", (number,)) from error
