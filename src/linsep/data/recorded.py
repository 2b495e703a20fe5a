"""A data set whose passes are written to a journal, or answered from it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray
from linsep.data.cluster import Cluster
from linsep.data.dataset import Dataset, Notes, Sum
from linsep.data.journal import Journal, Vector, current, fingerprint
from linsep.data.stream import Stream
from linsep.errors import BadInput

if TYPE_CHECKING:
    from typing import Unpack


def recorded(data: Dataset, *facts: Any) -> Dataset:
    """``data``, recorded if a checkpoint is in use and they are on disk or a cluster; ``facts`` tell the fit."""
    journal = current()
    if journal is None or not isinstance(data, Stream | Cluster):
        return data
    vectors = [fact for fact in facts if isinstance(fact, np.ndarray)]
    if isinstance(data, Stream):
        content = data.X.fingerprint()
        vectors += [v for v in (data.sign, data.offset, data.weight, data.labels) if v is not None]
    else:
        content = data.fingerprint()
    known = (
        _version(),
        _kernels.instruction_set(),
        (data.n, data.d, data.sparse, data.n_entries),
        content,
        [fact for fact in facts if not isinstance(fact, np.ndarray)],
    )
    journal.begin(fingerprint(known, vectors))
    return Recorded(data, journal)


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return version("linsep")


class Pass(NamedTuple):
    """A pass that was answered from the journal."""

    make: Callable[[], list[Vector]]
    fills: frozenset[str]
    uses: frozenset[str]
    known: list[Vector]


class Recorded(Dataset):
    """Another data set, and the journal of its passes.

    A pass that fills kept vectors and is answered from the journal leaves them unfilled. It is *owed*: it is made
    after all, once, before the first pass that is not in the journal, and must find what it found before.
    """

    def __init__(self, data: Dataset, journal: Journal) -> None:
        self._data, self._journal = data, journal
        self.n, self.d, self.X = data.n, data.d, data.X
        self.remote, self.far = data.remote, data.far
        self._owed: list[Pass] = []

    def sum(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> FloatArray:
        if not _recordable(notes):
            self.settle()
            return self._data.sum(fn, size, **notes)
        return self.sums([(fn, size)], **notes)[0]

    def sums(self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]) -> list[FloatArray]:
        def make() -> list[Vector]:
            return list(self._data.sums(wanted, **notes))

        if not _recordable(notes):
            self.settle()
            return self._data.sums(wanted, **notes)
        found = self._answer(make, notes)
        self._refuse_other([len(sums) for sums in found], [size for _, size in wanted])
        return cast("list[FloatArray]", found)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]
    ) -> tuple[list[FloatArray], list[Any]]:
        def make() -> list[Vector]:
            return _flat(*self._data.visits(wanted, **notes))

        if not _recordable(notes):
            self.settle()
            return self._data.visits(wanted, **notes)
        found = self._answer(make, notes)
        totals = found[: len(wanted)]
        self._refuse_other([len(sums) for sums in totals], [size for _, size in wanted])
        return cast("list[FloatArray]", totals), _by_block(found[len(wanted) :])

    def place(self, name: str, values: FloatArray) -> None:
        self._owed = _needed(self._owed, frozenset([name]))
        if any(name in owed.fills | owed.uses for owed in self._owed):
            self.settle()
        self._data.place(name, values)

    def fetch(self, name: str) -> FloatArray:
        self.settle()
        return self._data.fetch(name)

    def _answer(self, make: Callable[[], list[Vector]], notes: Notes) -> list[Vector]:
        """What the pass finds, from the journal if it is there."""
        fills, uses = notes.get("fills", ()), notes.get("uses") or ()
        found = self._journal.recorded()
        if found is None:
            self._owed = _needed(self._owed, frozenset(fills) - frozenset(uses))
            self.settle()
            found = make()
            self._journal.record(found)
        elif fills:
            known = [part.copy() for part in found]
            self._owed.append(Pass(make, frozenset(fills), frozenset(uses), known))
            self._owed = _needed(self._owed)
        return found

    def _refuse_other(self, sizes: list[int], wanted: list[int]) -> None:
        if sizes != wanted:
            raise BadInput(
                f"The checkpoint {self._journal.path} was made by other passes than these; remove it."
            )

    def settle(self) -> None:
        owed, self._owed = self._owed, []
        for one in owed:
            found = one.make()
            if [part.tobytes() for part in found] != [part.tobytes() for part in one.known]:
                raise BadInput(
                    f"The rows are not those that the checkpoint {self._journal.path} was made with: a pass "
                    "over them finds other sums. Remove it, and fit again."
                )

    def to_memory(self) -> Dataset:
        found = self._data.to_memory()
        return Recorded(found, self._journal) if isinstance(found, Stream) else found

    def columns(self, chosen: npt.NDArray[np.int64]) -> Dataset:
        return Recorded(self._data.columns(chosen), self._journal)

    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Dataset:
        return self._data.sample(rows, share)

    @property
    def whole(self) -> Block | None:
        return self._data.whole

    def first_rows(self) -> _kernels.Rows:
        return self._data.first_rows()

    def planes(self, k: int) -> FloatArray:
        return self._data.planes(k)

    @property
    def shifted(self) -> bool:
        return self._data.shifted

    @property
    def largest_part(self) -> int:
        return self._data.largest_part

    def total_weight(self) -> float:
        return self._data.total_weight()

    def counts(self, k: int = 2) -> npt.NDArray[np.int64]:
        return self._data.counts(k)

    def find(self, ranks: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
        return self._data.find(ranks)

    @property
    def offset(self) -> FloatArray | None:  # type: ignore[override]
        return self._data.offset

    @property
    def labels(self) -> npt.NDArray[np.int64] | None:  # type: ignore[override]
        return self._data.labels

    @property
    def sign(self) -> FloatArray:
        return self._data.sign

    @property
    def weight(self) -> FloatArray | None:
        return self._data.weight

    @property
    def sparse(self) -> bool:
        return self._data.sparse

    @property
    def n_entries(self) -> int:
        return self._data.n_entries

    def longest_sum(self, size: int) -> int:
        return self._data.longest_sum(size)

    def close(self) -> None:
        self._data.close()


def _recordable(notes: Notes) -> bool:
    """Whether the pass says what else it does, and is worth recording."""
    known = notes.get("uses") is not None or bool(notes.get("fills"))
    return known and notes.get("features", True)


def _needed(owed: list[Pass], overwritten: frozenset[str] = frozenset()) -> list[Pass]:
    """Those of the passes, first to last, that fill something which is read before it is ``overwritten``."""
    kept: list[Pass] = []
    dead = set(overwritten)
    for one in reversed(owed):
        if one.fills - dead:
            dead = (dead | one.fills) - one.uses
            kept.append(one)
    return kept[::-1]


def _flat(totals: list[FloatArray], found: list[tuple[Vector, ...]]) -> list[Vector]:
    """The result of visits as a few vectors: totals, lengths of the parts, and the parts end to end."""
    columns = [list(column) for column in zip(*found, strict=True)]
    lengths = np.array([[len(part) for part in column] for column in columns], dtype=np.int64)
    ends = [np.concatenate(column) for column in columns]
    return [*totals, lengths.ravel(), *ends]


def _by_block(flat: list[Vector]) -> list[Any]:
    """What was found in each block, from the vectors after the totals."""
    lengths, *ends = flat
    cuts = np.cumsum(lengths.reshape(len(ends), -1), axis=1)[:, :-1]
    columns = [np.split(end, cut) for end, cut in zip(ends, cuts, strict=True)]
    return list(zip(*columns, strict=True))
