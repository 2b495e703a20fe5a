"""The interface of a cluster engine: a map over partitions, an ordered sum, and results that stay on the workers.

The rest of this package uses only these operations, so a cluster library needs one module
(``engines``). Partitions are numbered from 0. A *column* has one value per partition: a list of values on the
client, or the engine's own object for values on the workers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.data.layout import ordered
from linsep.errors import BadInput

Column = Any
MEMORY_LIMIT = "memory-limit"  # name of the setting


@dataclass
class Traffic:
    """Network traffic of a fit.

    ``rounds`` is the number of communication rounds with all or some partitions; ``sent`` counts the bytes of functions
    and vectors sent to the partitions, ``received`` those of sums, rows and vectors received from them.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0


class Engine(ABC):
    """Base of the engines, which run tasks on the partitions of one data set.

    Tasks are pure functions of their arguments, so that the cluster can run them again when a worker is lost. Values
    on the workers are released when there are no more references to their column.
    """

    numbers: list[int]  #: numbers of the partitions in use
    collected_bytes: (
        int  #: up to this many bytes of sums are added by the client instead of the workers
    )

    def __init__(self) -> None:
        self.traffic = Traffic()

    @abstractmethod
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
        """Return the column of ``fn(*values, **common)`` for every partition, or only for the partitions ``among``.

        ``what`` names the tasks. With ``persist``, the workers store the results for later tasks.
        """

    @abstractmethod
    def collect(self, column: Column) -> list[Any]:
        """Copy the values of a column to the client, in the order of the partitions."""

    def total(self, column: Column, size: int) -> FloatArray:
        """Return the sum of the partitions' vectors of ``size`` numbers, added in the tree of ``layout.ordered``.

        The client adds the vectors if they are short, the workers if they are long.
        """
        if self.collects(size):
            return np.array(ordered(self.collect(column)))
        return self._tree(column)

    def total_and_rest(self, column: Column, size: int) -> tuple[FloatArray, list[Any]]:
        """Return the ordered sum of the vectors, and the list of the rest, of a column of pairs (vector, rest).

        The column must be persisted unless ``collects(size)``.
        """
        if self.collects(size):
            vectors, rest = zip(*self.collect(column), strict=True)
            return np.array(ordered(list(vectors))), list(rest)
        return self._tree(self.pick(column, 0)), self.collect(self.pick(column, 1))

    def collects(self, size: int) -> bool:
        """Return whether the client collects vectors of ``size`` numbers from all partitions and adds them itself."""
        return 8 * size * len(self.numbers) <= self.collected_bytes

    @abstractmethod
    def _tree(self, column: Column) -> FloatArray:
        """Return the ordered sum of the partitions' vectors, added on the workers."""

    @abstractmethod
    def send(self, what: str, values: Sequence[Any]) -> Column:
        """Send each value to the worker of its partition; it is sent again if the worker is lost."""

    @abstractmethod
    def share(self, what: str, value: Any) -> Column:
        """Return a column with the same value for all partitions, sent to each worker once."""

    @abstractmethod
    def keep(self, column: Column, numbers: Sequence[int]) -> Column:
        """Restrict the column and the engine to the given partitions, which are renumbered from 0."""

    @abstractmethod
    def restart(self) -> Engine:
        """Return an engine for the same partitions that counts its traffic from 0."""

    @abstractmethod
    def dumps(self, fn: Any) -> bytes:
        """Serialise a function with its closures to bytes that ``pickle.loads`` reads on a worker."""

    @abstractmethod
    def setting(self, name: str) -> Any:
        """Return the user's setting ``linsep.<name>`` in the configuration of the cluster library, or None."""

    def memory_limit(self) -> float | None:
        """Return the user's limit on the bytes of rows that a fit fetches, or None for the default."""
        given = self.setting(MEMORY_LIMIT)
        return None if given is None else parse_bytes(given)

    @abstractmethod
    def how_to_set(self, name: str, value: str) -> str:
        """Return the call that makes this setting, as text for a message."""

    def pick(self, column: Column, at: int) -> Column:
        """Return the column of the ``at``-th entries of a column of tuples."""
        return self.map(f"pick{at}", pick, column, at=at)


def pick(values: tuple[Any, ...], at: int) -> Any:
    """Return one of several results of a task."""
    return values[at]


@dataclass(frozen=True, eq=False)
class Source:
    """Raw rows, targets and weights of every partition, before validation."""

    engine: Engine
    x: Column
    count: int  #: number of partitions
    y: Column | None
    weight: Column | None
    sizes: tuple[int, ...] | None = None  #: rows of each partition, if known without computing
    width: int | None = None  #: columns of dense arrays, if known without computing


def cut(v: Any, sizes: Sequence[int], name: str) -> list[Any]:
    """Split a vector on the client into pieces of the given sizes; a scalar is repeated."""
    v = np.asarray(v)
    if v.ndim == 0:
        v = np.full(sum(sizes), v)
    if len(v) != sum(sizes):
        raise BadInput(
            f"X has {sum(sizes)} rows, {name} has {len(v)}; give one {name} for each row."
        )
    return list(np.split(v, np.cumsum(sizes)[:-1]))


def lengths(engine: Engine, x: Column) -> tuple[int, ...]:
    """Return the number of rows of each partition. One round."""
    engine.traffic.rounds += 1
    return tuple(engine.collect(engine.map("length", length, x)))


def length(x: Any) -> int:
    """Return the number of rows of a partition."""
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def parse_bytes(given: Any) -> int:
    """Convert a setting such as 1000000, "100 GB" or "64 MiB" to a number of bytes."""
    found = re.fullmatch(r"\s*([0-9.e+]+)\s*([kmgtp]?)(i?)b?\s*", str(given).lower())
    if found is None:
        raise BadInput(f"{given!r} is not a number of bytes; write for instance '100 GB'.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" kmgtp".index(prefix or " ")))
