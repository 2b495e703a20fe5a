"""What happens on a worker of a cluster: a partition of the rows, and the tasks that visit it.

Every task is a plain function of its arguments. The scheduler therefore can run it again, on any worker, when
what it made is lost, and gets the same bits.
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


@dataclass(frozen=True, eq=False)
class Partition:
    """Some rows on a worker, in a layout the kernels read, with labels (positions in ``classes``) or targets."""

    X: Any
    codes: IntArray | None
    classes: npt.NDArray[Any] | None
    target: FloatArray | None
    weight: FloatArray | None

    def __setstate__(self, state: dict[str, Any]) -> None:
        """Copy rows that a message has put at any address once, here, and not in every pass."""
        vars(self).update(state, X=aligned(state["X"]))

    def __sizeof__(self) -> int:
        """Bytes, so that the scheduler knows what moving it would cost."""
        X = self.X
        rows = X.data.nbytes + X.indices.nbytes + X.indptr.nbytes if sp.issparse(X) else X.nbytes
        vectors = (self.codes, self.target, self.weight)
        return int(rows + sum(0 if v is None else v.nbytes for v in vectors)) + 64


class Vectors(NamedTuple):
    """``Targets`` of the rows of a partition; None stands for ones, zeros, ones, and no labels."""

    sign: FloatArray | None
    offset: FloatArray | None
    weight: FloatArray | None
    labels: IntArray | None


@dataclass(frozen=True)
class Target:
    """What is learnt: the class numbered ``positive``, all classes (``coupled``), or the numbers.

    ``factors`` are the weights of the classes; ``weighted`` is false where no row has a weight.
    """

    positive: int | None = None
    coupled: bool = False
    factors: tuple[float, ...] | None = None
    weighted: bool = False
    numbers: bool = False
    centre: float = 1.0  # of the residuals, if the numbers are learnt
    exponent: int = 0  # these are divided by 2^exponent


def vectors_of(part: Partition, place: IntArray | None, target: Target) -> Vectors:
    """Targets of a partition; ``place`` says where its classes are among those of all partitions."""
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
    """Which partition a task is about, for its messages, and what its client is."""

    number: int
    first: int
    version: str
    threads: int = 1


def memory(part: Partition, vectors: Vectors, task: Task) -> Memory:
    """The partition as a data set of its own."""
    return Memory(part.X, *vectors, n_threads=task.threads, origin=task.first)


def visit(
    part: Partition,
    vectors: Vectors,
    task: Task,
    blob: bytes,
    *state: FloatArray,
    sizes: Sequence[int],
    reads: Sequence[str],
    writes: Sequence[str],
    plain: bool,
) -> Any:
    """Sums over the blocks of a partition, end to end; unless it is ``plain``, results and written state as well.

    The results come with the rows that they ask to prefetch, and the numbers of these rows.
    """
    refuse_other_version(task)
    with naming(task.number):
        data = memory(part, vectors, task)
        for name, values in zip(reads, state, strict=True):
            data.set_row_state(name, values.copy() if name in writes else values)
        functions, prefetch, merge = pickle.loads(blob)
        made = [data.visit(fn, size) for fn, size in zip(functions, sizes, strict=True)]
        data.close()
        total, found = np.concatenate([sums for sums, _ in made]), made[-1][1]
        if plain:
            return total
        rows = np.zeros(0, dtype=np.int64) if prefetch is None else np.unique(prefetch(found))
        prefetched = (rows, take(part, vectors, rows - task.first)) if len(rows) else None
        if merge is not None:
            found = [merge(found)]
        return total, (found, prefetched), *(data.row_state(name) for name in writes)


def take(part: Partition, vectors: Vectors, rows: IntArray) -> tuple[Any, ...]:
    """Some rows of a partition with their targets."""
    return part.X[rows], *(None if v is None else v[rows] for v in vectors)


def between(part: Partition, lo: int, hi: int) -> Any:
    """Rows lo .. hi of a partition, without their targets."""
    return part.X[lo:hi]


def take_columns(part: Partition, chosen: IntArray) -> Partition:
    """Some features of all rows of a partition, in a layout the kernels read."""
    return replace(part, X=readable(part.X[:, chosen]))


def find(
    part: Partition, vectors: Vectors, ranks: Sequence[IntArray]
) -> tuple[list[IntArray], IntArray, tuple[Any, ...]]:
    """Rows of the partition that are the ``ranks[c]``-th of class c in it; all in rising order, with their data."""
    labels, found = vectors.labels, list(ranks)
    if labels is None and vectors.sign is not None:
        labels = (vectors.sign > 0.0).astype(np.int64)
    if labels is not None:
        found = [np.flatnonzero(labels == c)[wanted] for c, wanted in enumerate(ranks)]
    rows = np.unique(np.concatenate(found))
    return found, rows, take(part, vectors, rows)


def apply(part: Partition, vectors: Vectors, task: Task, blob: bytes, *state: FloatArray) -> Any:
    """``fn(X, sign, offset, weight, labels, *state)`` of a partition."""
    refuse_other_version(task)
    with naming(task.number):
        sign = np.ones(part.X.shape[0]) if vectors.sign is None else vectors.sign
        fn = pickle.loads(blob)
        return fn(part.X, sign, *vectors[1:], *state)


def checksums(X: Any, *vectors: Any) -> list[int]:
    """CRC-32 of the rows of a partition and of their targets."""
    rows = (X.data, X.indices, X.indptr) if sp.issparse(X) else (X,)
    return [0 if v is None else zlib.crc32(np.ascontiguousarray(v).data) for v in (*rows, *vectors)]


def refuse_other_version(task: Task) -> None:
    """Raise if this worker runs another linsep than the client."""
    from linsep import __version__  # noqa: PLC0415 - the package imports this module

    if __version__ != task.version:
        raise ClusterError(
            f"A worker has linsep {__version__}, the client {task.version}: their answers may differ. Install "
            "the same version on every worker."
        )


class naming:  # noqa: N801 - reads as a statement
    """Errors raised inside say which partition they are about."""

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
