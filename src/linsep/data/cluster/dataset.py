"""A data set on a cluster: each pass is one round, and the rows stay where they are."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import _kernels
from linsep.data.block import Block, FloatArray
from linsep.data.cluster import partition as on_worker
from linsep.data.cluster.asking import Asking
from linsep.data.cluster.at_hand import bytes_of
from linsep.data.cluster.partition import Target
from linsep.data.cluster.rows import ClusterRows, Facts, RowVector
from linsep.data.dataset import Dataset, Notes, Sum
from linsep.data.layout import FAN, dense_edges, longest_ordered, longest_sum
from linsep.data.memory import Memory, kernel_rows

if TYPE_CHECKING:
    from typing import Unpack

IntArray = npt.NDArray[np.int64]

LARGE = 4096  # bytes of a function that had better not be in every task


class Cluster(Dataset):
    """Rows on the workers of a Dask cluster, with their targets."""

    remote = far = True
    X: ClusterRows

    def __init__(
        self,
        X: ClusterRows,
        sign: RowVector | None = None,
        offset: RowVector | None = None,
        weight: RowVector | None = None,
        labels: RowVector | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.X, self.rounds = X, X.rounds
        self.n, self.d = X.shape
        self.n_threads = n_threads or 1
        self._vectors = {"sign": sign, "offset": offset, "weight": weight, "labels": labels}
        self._kept: dict[str, list[Any]] = {}
        self._fetched: dict[str, FloatArray] = {}  # of what is kept, what has come here
        self._tasks = X.tasks(self.n_threads)
        self._numbers = range(len(X.parts))
        self._counts: IntArray | None = None  # rows of each class in each partition
        target = self._target(sign, offset, weight, labels)
        self._aims = self._aimed(target)
        self._asking = Asking(X, target, self._aims)

    @staticmethod
    def _target(sign: Any, offset: Any, weight: Any, labels: Any) -> Target:
        chosen = labels if labels is not None else sign
        factors = None if weight is None else weight.target.factors
        return Target(
            None if chosen is None else chosen.target.positive,
            labels is not None,
            factors,
            weight is not None and weight.target.weighted,
            *(() if offset is None else (True, offset.target.centre, offset.target.exponent)),
        )

    def _aimed(self, target: Target) -> Any:
        count = len(self.X.parts)
        return self.rounds.client.map(
            on_worker.aim,
            self.X.parts,
            [target] * count,
            self.X.places,
            key=[f"linsep-aim-{uuid.uuid4().hex[:12]}-{i}" for i in self._numbers],
            pure=False,
        )

    def __reduce__(self) -> Any:
        raise TypeError("Rows on a cluster stay there: a function sent to them must not hold them.")

    @property
    def n_entries(self) -> int:
        return self.X.n_entries

    @property
    def sparse(self) -> bool:
        return self.X.sparse

    @property
    def sign(self) -> FloatArray:
        found = self._vector("sign")
        return np.ones(self.n) if found is None else found

    @property
    def weight(self) -> FloatArray | None:
        weight: FloatArray | None = self._vector("weight")
        return weight

    @property
    def offset(self) -> FloatArray | None:  # type: ignore[override]
        offset: FloatArray | None = self._vector("offset")
        return offset

    @property
    def labels(self) -> IntArray | None:  # type: ignore[override]
        labels: IntArray | None = self._vector("labels")
        return labels

    def _vector(self, name: str) -> Any:
        """One of the vectors, for all rows; the first to be asked for brings the others along (one round)."""
        vector = self._vectors[name]
        if vector is None:
            return None
        if not vector.here:
            self.rounds.traffic.rounds += 1
            self._gather()
        return np.asarray(vector)

    @property
    def whole(self) -> Block | None:
        return None

    def first_rows(self) -> _kernels.Rows:
        one: Any = np.zeros(
            (1, self.d), dtype=self.X.dtype
        )  # all that is asked is how rows are stored
        return kernel_rows(sp.csr_matrix(one) if self.sparse else one)

    def planes(self, k: int) -> FloatArray:
        return np.empty((k, self.n))

    def longest_sum(self, size: int) -> int:
        longest = max(_longest(fact, size) for fact in self.X.facts)
        return longest_ordered(longest, len(self.X.parts))

    def sum(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> FloatArray:
        """One round."""
        return self.sums([(fn, size)], **notes)[0]

    def sums(self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]) -> list[FloatArray]:
        """One round for all of them."""
        plain = not notes.get("fills")
        made = self._round(wanted, notes, plain=plain)
        return self._collected(made if plain else self._keep(made, notes), wanted)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """One round; what the last returns comes here, and so do rows and vectors that are asked for next."""
        made = self._round(wanted, notes, plain=False)
        found = self._picked(made, 1)
        totals = self._collected(self._keep(made, notes), wanted)
        parts = self.rounds.results(found)
        self.rounds.traffic.received += bytes_of(parts)
        for _, brought in parts:
            if brought is not None:
                self._asking.at_hand.add(*brought)
        for name in notes.get("soon", ()):
            self._fetched[name] = self._gathered(name)
        return totals, [one for part, _ in parts for one in part]

    def _round(self, wanted: Sequence[tuple[Sum, int]], notes: Notes, plain: bool) -> Any:
        blob = self._sent(([fn for fn, _ in wanted], notes.get("bring"), notes.get("joined")))
        uses = notes.get("uses") or ()
        kept = [self._kept[name] for name in uses]
        return self.rounds.map(
            *("sum", on_worker.visit, self._numbers),
            *(self.X.parts, self._aims, self._tasks, blob, *kept),
            sizes=tuple(size for _, size in wanted),
            uses=tuple(uses),
            fills=tuple(notes.get("fills", ())),
            plain=plain,
        )

    def _sent(self, fn: Any) -> list[Any]:
        """A function on its way to all partitions; a large one travels once, then from worker to worker."""
        import cloudpickle  # type: ignore[import-untyped] # noqa: PLC0415 - comes with Dask

        blob: Any = cloudpickle.dumps(fn)
        traffic, count = self.rounds.traffic, len(self.X.parts)
        traffic.rounds += 1
        traffic.sent += len(blob) * count
        if len(blob) > LARGE:
            (key,) = self.rounds.keys("function", [0])
            blob = self.rounds.client.submit(on_worker.same, blob, key=key, pure=False)
        return [blob] * count

    def _picked(self, made: Any, at: int) -> Any:
        return self.rounds.map(f"pick{at}", on_worker.pick, self._numbers, made, at=at)

    def _keep(self, made: Any, notes: Notes) -> Any:
        """Note what the round keeps on the workers; its sums."""
        for at, name in enumerate(notes.get("fills", ())):
            self._kept[name] = self._picked(made, 2 + at)
            self._fetched.pop(name, None)
        return self._picked(made, 0)

    def _collected(self, sums: Any, wanted: Sequence[tuple[Any, int]]) -> list[FloatArray]:
        """The tree of sums (``layout.ordered``), a task for each node."""
        level, sizes = 0, [size for _, size in wanted]
        self.rounds.traffic.received += 8 * sum(sizes) * len(sums)
        while len(sums) > 1:
            level += 1
            groups = [list(sums[at : at + FAN]) for at in range(0, len(sums), FAN)]
            keys = self.rounds.keys(f"tree{level}", range(len(groups)))
            submit = self.rounds.client.submit
            sums = [
                submit(on_worker.total, group, key=key, pure=False)
                for group, key in zip(groups, keys, strict=True)
            ]
        total: FloatArray = np.array(self.rounds.results(sums)[0])
        return np.split(total, np.cumsum(sizes)[:-1])

    def fingerprint(self) -> list[Any]:
        """What tells these rows and targets from any others (one round)."""
        return [self.X.starts.tolist(), self.apply(on_worker.checksums)]

    def apply(self, fn: Callable[..., Any], uses: Sequence[str] = ()) -> list[Any]:
        """``fn(X, sign, offset, weight, labels, *kept)`` of every partition (one round)."""
        blob = self._sent(fn)
        kept = [self._kept[name] for name in uses]
        futures = self.rounds.map(
            *("map", on_worker.apply, self._numbers),
            *(self.X.parts, self._aims, self._tasks, blob, *kept),
        )
        found = self.rounds.results(futures)
        self.rounds.traffic.received += bytes_of(found)
        return found

    def place(self, name: str, values: FloatArray) -> None:
        """Send every partition its part, by way of the graph, so that it can be had again."""
        starts = self.X.starts
        parts = [
            np.ascontiguousarray(values[..., starts[i] : starts[i + 1]]) for i in self._numbers
        ]
        self.rounds.traffic.sent += values.nbytes
        self._fetched.pop(name, None)
        what = f"{name}-{uuid.uuid4().hex[:8]}"
        self._kept[name] = [
            self.rounds.client.submit(on_worker.same, part, key=key, pure=False)
            for part, key in zip(parts, self.rounds.keys(what, self._numbers), strict=True)
        ]

    def fetch(self, name: str) -> FloatArray:
        found = self._fetched.get(name)
        if found is None:
            self.rounds.traffic.rounds += 1
            found = self._gathered(name)
        return found

    def _gathered(self, name: str) -> FloatArray:
        """Whoever wants it wants the signs and weights too, mostly: all come together."""
        self._gather()
        parts = self.rounds.results(self._kept[name])
        self.rounds.traffic.received += bytes_of(parts)
        return np.concatenate(parts, axis=-1)

    def to_memory(self) -> Dataset:
        """Here in memory, or on the client's disk if they are too many."""
        if self.at_hand:
            return self.sample(np.arange(self.n))
        from linsep.data.cluster.spilling import spilled  # noqa: PLC0415 - which knows this class

        return spilled(self)

    def columns(self, chosen: IntArray) -> Memory:
        """Brought here: methods that ask for columns work on rows at hand."""
        return self.sample(np.arange(self.n)).columns(chosen)

    def sample(self, rows: IntArray, share: FloatArray | None = None) -> Memory:
        """The given rows, brought here (one round, unless they are here already)."""
        X, sign, offset, weight, labels = self._asking.rows(np.asarray(rows, dtype=np.int64))
        if share is not None:
            weight = share if weight is None else weight * share
        return Memory(X, sign, offset, weight, labels)

    @property
    def shifted(self) -> bool:
        return self._vectors["offset"] is not None

    @property
    def largest_part(self) -> int:
        return max(fact.n for fact in self.X.facts)

    def total_weight(self) -> float:
        """From what the partitions said when they were opened."""
        weight = self._vectors["weight"]
        if weight is None:
            return float(self.n)
        if weight.target.factors is None:
            return sum(fact.n if fact.weight is None else fact.weight[2] for fact in self.X.facts)
        factors = np.array(weight.target.factors)
        facts = zip(self.X.facts, self.X.places, strict=True)
        return float(sum(factors[place] @ fact.totals for fact, place in facts))

    def counts(self, k: int = 2) -> IntArray:
        """Rows of each class, from what the partitions said when they were opened."""
        counts: IntArray = self._asking.counts(k).sum(axis=0)
        return counts

    def find(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """As of rows in memory: every partition is asked for those that it has, and sends them along (one round)."""
        return self._asking.find(ranks)

    def _gather(self) -> None:
        """Bring the vectors of all rows here that are not yet."""
        missing = [v for v in self._vectors.values() if v is not None and not v.here]
        if missing:
            futures = self.rounds.map("vectors", on_worker.vectors, self._numbers, self._aims)
            columns = dict(
                zip(self._vectors, zip(*self.rounds.results(futures), strict=True), strict=True)
            )
            for name, vector in self._vectors.items():
                if vector is not None and not vector.here:
                    vector.set(np.concatenate(columns[name]))
                    self.rounds.traffic.received += 8 * self.n

    def close(self) -> None:
        """Let the workers forget what was kept; the rows stay for whoever opened them."""
        self._kept.clear()
        self._fetched.clear()
        self._asking.at_hand.forget()


def _longest(fact: Facts, size: int) -> int:
    """Bound on the terms added one after another within a partition."""
    if fact.sparse:
        return fact.n
    return longest_sum(
        dense_edges(fact.n, fact.d, np.dtype(fact.dtype).itemsize), fact.entries, size
    )
