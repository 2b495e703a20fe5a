"""The client's view of rows on the workers: their shape and other facts, and access to some of them."""

from __future__ import annotations

import sys
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, IntArray
from linsep.data.cluster.partition import (
    Facts,
    Partition,
    Target,
    Task,
    Vectors,
    take_columns,
)
from linsep.data.location import Location

if TYPE_CHECKING:
    from linsep.data.cluster.engine import Column, Engine, Traffic


class ClusterRows:
    """Matrix (n, d) in partitions on the workers; ``X[a:b]`` and ``X[rows]`` copy some rows to the client."""

    location = Location.CLUSTER
    ndim = 2

    def __init__(
        self, engine: Engine, parts: Column, facts: Sequence[Facts], numbers: Sequence[int]
    ) -> None:
        self.engine, self.parts, self.facts = engine, parts, list(facts)
        self.numbers = list(numbers)  # numbers of the partitions that are not empty
        self.starts = np.cumsum([0, *(fact.n for fact in facts)])
        self.shape = int(self.starts[-1]), facts[0].d
        self.dtype = np.result_type(*(fact.dtype for fact in facts))
        self.sparse = facts[0].sparse
        self.n_entries = sum(fact.entries for fact in facts)
        self.names = facts[0].names
        self.classes: npt.NDArray[Any] | None = None
        self.fetched: dict[Target, npt.NDArray[Any]] = {}  # vectors that were copied to the client
        self.places: list[IntArray | None] = [None] * len(facts)
        #: Rows that the workers sent when the partitions were opened.
        self.prefetched: list[tuple[IntArray, Partition]] | None = None

    @property
    def size(self) -> int:
        """Number of entries n * d, zeros included."""
        return self.shape[0] * self.shape[1]

    @property
    def nbytes(self) -> int:
        """Size of all rows in bytes, as an array or CSR matrix in memory."""
        return self.n_entries * (self.dtype.itemsize + 4 * self.sparse)

    def fetch(self) -> list[Partition]:
        """Copy all partitions with rows to the client. One round, unless they were sent when they were opened."""
        sent = self.prefetched
        if sent is not None and all(
            part.X.shape[0] == fact.n for (_, part), fact in zip(sent, self.facts, strict=True)
        ):
            return [part for _, part in sent]
        self.traffic.rounds += 1
        found: list[Partition] = self.engine.collect(self.parts)
        self.traffic.received += sum(map(sys.getsizeof, found))
        return found

    @property
    def traffic(self) -> Traffic:
        """Number of rounds, and bytes sent and received."""
        return self.engine.traffic

    @property
    def weighted(self) -> bool:
        """Whether rows have weights."""
        return any(fact.weight is not None for fact in self.facts)

    def __len__(self) -> int:
        return self.shape[0]

    def tasks(self, threads: int = 1) -> list[Task]:
        """Return a ``Task`` (number, first row, version, threads) for each partition."""
        from linsep import __version__  # noqa: PLC0415

        first = self.starts[:-1].tolist()
        pairs = zip(self.numbers, first, strict=True)
        return [Task(number, lo, __version__, threads) for number, lo in pairs]

    def columns(self, chosen: IntArray) -> ClusterRows:
        """Copy the chosen features of all rows on the workers.

        The number of entries of sparse rows is estimated by assuming equally many in each column, because counting them
        would take a round.
        """
        engine, facts = self.engine, self.facts
        parts = engine.map(
            "columns", take_columns, self.parts, engine.share("chosen", chosen), persist=True
        )
        kept = [
            replace(fact, d=len(chosen), entries=fact.entries * len(chosen) // fact.d, names=None)
            for fact in facts
        ]
        found = ClusterRows(engine, parts, kept, self.numbers)
        found.classes, found.places, found.fetched = self.classes, self.places, self.fetched
        return found

    def vector(self, **target: Any) -> Any:
        """Return a vector with one number per row, which stays on the workers until it is read."""
        return RowVector(self, Target(weighted=self.weighted, **target))

    def offsets(self, centre: float, exponent: int = 0) -> Any:
        """Return the offsets centre - t/2^exponent of a regression with targets t."""
        return RowVector(self, Target(numbers=True, centre=centre, exponent=exponent))

    @property
    def largest_target(self) -> float:
        """Largest absolute value of a target."""
        return max((fact.largest for fact in self.facts), default=0.0)

    def __getitem__(self, key: Any) -> Any:
        from linsep.data.cluster.row_requests import RowRequests  # noqa: PLC0415 - it imports this class

        rows = np.unique(_wanted(key, self.shape[0]))
        no_targets = [Vectors(None, None, None, None)] * len(self.facts)
        X, *_ = RowRequests(self, Target(), no_targets).rows(rows)
        return X[_order(key, self.shape[0])]

    def apply(
        self,
        fn: Callable[..., Any],
        sigma: Any = None,
        offset: Any = None,
        weight: Any = None,
        labels: Any = None,
        *along: FloatArray,
    ) -> list[Any]:
        """Return ``fn(X, sigma, offset, weight, labels, *along)`` for every partition, in order. One round.

        The vectors are those of this data set (``vector``), or None; ``along`` are arrays with one entry per row.
        """
        from linsep.data.cluster.dataset import Cluster  # noqa: PLC0415

        data = Cluster(self, sigma, offset, weight, labels)
        names = [f"along-{k}" for k in range(len(along))]
        for name, values in zip(names, along, strict=True):
            data.set_row_state(name, values)
        return data.apply(fn, names)


class RowVector:
    """Vector with one entry per row on the workers. ``np.asarray`` copies it to the client, 8 bytes per row."""

    def __init__(self, rows: ClusterRows, target: Target) -> None:
        self.rows, self.target = rows, target

    def __len__(self) -> int:
        return self.rows.shape[0]

    @property
    def shape(self) -> tuple[int]:
        """Shape (n,)."""
        return (len(self),)

    @property
    def fetched(self) -> bool:
        """Whether the client has a copy."""
        return self.target in self.rows.fetched

    def set(self, values: npt.NDArray[Any]) -> None:
        """Store the client's copy."""
        self.rows.fetched[self.target] = values

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        if not self.fetched:
            roles: dict[str, Any] = dict.fromkeys(("sigma", "offset", "weight", "labels"))
            roles[_role(self.target)] = self
            at = 1 + list(roles).index(_role(self.target))
            self.set(np.concatenate(self.rows.apply(_Nth(at), *roles.values())))
        values = self.rows.fetched[self.target]
        return values if dtype is None else values.astype(dtype, copy=False)

    def __getitem__(self, key: Any) -> Any:
        return np.asarray(self)[key]


def _role(target: Target) -> str:
    """Return the name of the target vector that the description stands for."""
    if target.coupled:
        return "labels"
    if target.positive is not None:
        return "sigma"
    return "offset" if target.numbers else "weight"


@dataclass(frozen=True)
class _Nth:
    """Picklable function that returns its n-th argument."""

    n: int

    def __call__(self, *args: Any) -> Any:
        return args[self.n]


def _wanted(key: Any, n: int) -> IntArray:
    if isinstance(key, slice):
        return np.arange(*key.indices(n))
    rows = np.asarray(key)
    return np.flatnonzero(rows) if rows.dtype == np.bool_ else rows.astype(np.int64)


def _order(key: Any, n: int) -> IntArray:
    """Return the position of each requested row among the sorted distinct ones."""
    wanted = _wanted(key, n)
    return np.searchsorted(np.unique(wanted), wanted)
