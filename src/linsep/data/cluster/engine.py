"""What a cluster must be able to do: a map over partitions, an ordered sum, and results that stay on the workers.

Everything else in this package is written in these terms, so that a library for clusters is one module
(``engines``). Partitions are numbered from 0. A *column* holds one value for each of them: a list of values of the
client, or whatever an engine returns for values that live on the workers.
"""

from __future__ import annotations

import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import BadInput

Column = Any


@dataclass
class Traffic:
    """What a fit has cost the network.

    ``rounds`` counts the times that all partitions, or those concerned, were asked; ``sent`` and ``received`` are
    bytes of functions and vectors to the partitions, and of sums, rows and vectors from them.
    """

    rounds: int = 0
    sent: int = 0
    received: int = 0


class Engine(ABC):
    """Tasks on the partitions of one data set.

    Tasks are plain functions of their arguments, so that the cluster can run them again when a worker is lost. Values
    on the workers are released when nothing refers to their column any more.
    """

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
        """``fn(*values, **common)`` for every partition, or for those ``among``, which the result is a column of.

        ``what`` names the tasks. ``persist``: later tasks read the results, so the workers keep them.
        """

    @abstractmethod
    def collect(self, column: Column) -> list[Any]:
        """The values at the client, in the order of the partitions."""

    @abstractmethod
    def total(self, column: Column, size: int) -> FloatArray:
        """Sum of the vectors, of ``size`` numbers, of all partitions in the tree of ``layout.ordered``."""

    @abstractmethod
    def send(self, what: str, values: Sequence[Any]) -> Column:
        """Values of the client, each on the worker of its partition, and again after that is lost."""

    @abstractmethod
    def share(self, what: str, value: Any) -> Column:
        """One value for all partitions, sent to each worker once."""

    @abstractmethod
    def keep(self, column: Column, numbers: Sequence[int]) -> Column:
        """The column of these partitions only; they are numbered anew in all that follows."""

    @abstractmethod
    def restart(self) -> Engine:
        """An engine for the same partitions that counts its traffic from 0."""

    @abstractmethod
    def dumps(self, fn: Any) -> bytes:
        """A function, closures included, in bytes that ``pickle.loads`` reads on a worker."""

    @abstractmethod
    def setting(self, name: str) -> Any:
        """The user's setting ``linsep.<name>`` in the configuration of the library; None if there is none."""

    @abstractmethod
    def how_to_set(self, name: str, value: str) -> str:
        """Text of the call that makes this setting."""

    def pick(self, column: Column, at: int) -> Column:
        """The ``at``-th entry of the tuples in a column."""
        return self.map(f"pick{at}", pick, column, at=at)


def pick(values: tuple[Any, ...], at: int) -> Any:
    """One of several results of a task."""
    return values[at]


@dataclass(frozen=True, eq=False)
class Source:
    """Raw rows, targets and weights of every partition, as the user gave them."""

    engine: Engine
    x: Column
    count: int  #: partitions
    y: Column | None
    weight: Column | None
    sizes: tuple[int, ...] | None = None  #: rows of each, where that is known
    width: int | None = None  #: columns of dense arrays, where that is known


def cut(v: Any, sizes: Sequence[int], name: str) -> list[Any]:
    """A vector of the client in pieces of these sizes."""
    v = np.asarray(v)
    if v.ndim == 0:
        v = np.full(sum(sizes), v)
    if len(v) != sum(sizes):
        raise BadInput(
            f"X has {sum(sizes)} rows, {name} has {len(v)}; give one {name} for each row."
        )
    return list(np.split(v, np.cumsum(sizes)[:-1]))


def lengths(engine: Engine, x: Column) -> tuple[int, ...]:
    """Rows of each partition (one round)."""
    engine.traffic.rounds += 1
    return tuple(engine.collect(engine.map("length", length, x)))


def length(x: Any) -> int:
    """Number of rows."""
    return int(x.shape[0]) if hasattr(x, "shape") else len(x)


def parse_bytes(given: Any) -> int:
    """Bytes of a setting such as 1000000, "100 GB" or "64 MiB"."""
    found = re.fullmatch(r"\s*([0-9.e+]+)\s*([kmgtp]?)(i?)b?\s*", str(given).lower())
    if found is None:
        raise BadInput(f"{given!r} is no number of bytes; write for instance '100 GB'.")
    number, prefix, binary = found.groups()
    return int(float(number) * (1024 if binary else 1000) ** (" kmgtp".index(prefix or " ")))
