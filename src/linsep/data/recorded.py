"""A data set that records the results of its passes in a journal, or replays them from it, for ``checkpoint``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple, cast

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.cluster import Cluster
from linsep.data.dataset import Dataset, PassNotes, Sum
from linsep.data.disk import Disk
from linsep.data.journal import Journal, Vector, current, fingerprint
from linsep.data.location import Location
from linsep.errors import BadInput

if TYPE_CHECKING:
    from typing import Unpack

    from linsep.data.memory import Memory


def recorded(data: Dataset, *facts: Any) -> Dataset:
    """Return ``data``, wrapped in ``Recorded`` if a checkpoint is in use and the rows are on disk or on a cluster.

    ``facts`` identify the fit.
    """
    journal = current()
    if journal is None or not isinstance(data, Disk | Cluster):
        return data
    vectors = [fact for fact in facts if isinstance(fact, np.ndarray)]
    content, own = data.fingerprint()
    known = (
        _version(),
        _kernels.instruction_set(),
        (data.n, data.d, data.sparse, data.n_entries),
        content,
        [fact for fact in facts if not isinstance(fact, np.ndarray)],
    )
    journal.begin(fingerprint(known, [*vectors, *own]))
    return Recorded(data, journal)


def _version() -> str:
    from importlib.metadata import version  # noqa: PLC0415

    return version("linsep")


class Pass(NamedTuple):
    """A pass whose result was read from the journal, and how to execute it."""

    make: Callable[[], list[Vector]]
    writes: frozenset[str]
    reads: frozenset[str]
    known: list[Vector]


class Recorded(Dataset):
    """Wrapper of a data set that records its passes in a journal, or replays them from it.

    Replaying a pass that writes row state does not restore the state. The pass is *pending*: it is executed once,
    before the first pass that is not in the journal, and must reproduce the recorded result.
    """

    def __init__(self, data: Dataset, journal: Journal) -> None:
        self._data, self._journal = data, journal
        self.n, self.d, self.X, self.targets = data.n, data.d, data.X, data.targets
        self.location, self.n_threads = data.location, data.n_threads
        self.sparse, self.n_entries = data.sparse, data.n_entries
        self._pending: list[Pass] = []

    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        def make() -> list[Vector]:
            return list(self._data.sums(wanted, **notes))

        if not _recordable(notes):
            self._make_pending()
            return self._data.sums(wanted, **notes)
        found = self._answer(make, notes)
        self._refuse_other([len(sums) for sums in found], [size for _, size in wanted])
        return cast("list[FloatArray]", found)

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        def make() -> list[Vector]:
            return _flat(*self._data.visits(wanted, **notes))

        if not _recordable(notes):
            self._make_pending()
            return self._data.visits(wanted, **notes)
        found = self._answer(make, notes)
        totals = found[: len(wanted)]
        self._refuse_other([len(sums) for sums in totals], [size for _, size in wanted])
        return cast("list[FloatArray]", totals), _by_block(found[len(wanted) :])

    def row_state(self, name: str) -> FloatArray:
        self._make_pending()
        return self._data.row_state(name)

    def set_row_state(self, name: str, values: FloatArray) -> None:
        self._pending = _needed(self._pending, frozenset([name]))
        if any(name in one.writes | one.reads for one in self._pending):
            self._make_pending()
        self._data.set_row_state(name, values)

    def _answer(self, make: Callable[[], list[Vector]], notes: PassNotes) -> list[Vector]:
        """Return the result of the pass, from the journal if it is there."""
        writes, reads = notes.get("writes", ()), notes.get("reads") or ()
        found = self._journal.recorded()
        if found is None:
            self._pending = _needed(self._pending, frozenset(writes) - frozenset(reads))
            self._make_pending()
            found = make()
            self._journal.record(found)
        elif writes:
            known = [part.copy() for part in found]
            self._pending.append(Pass(make, frozenset(writes), frozenset(reads), known))
            self._pending = _needed(self._pending)
        return found

    def _refuse_other(self, sizes: list[int], wanted: list[int]) -> None:
        if sizes != wanted:
            raise BadInput(
                f"The checkpoint {self._journal.path} was written by another computation; remove it."
            )

    def _make_pending(self) -> None:
        pending, self._pending = self._pending, []
        for one in pending:
            found = one.make()
            if [part.tobytes() for part in found] != [part.tobytes() for part in one.known]:
                raise BadInput(
                    f"The rows are not those that the checkpoint {self._journal.path} was made with: a pass "
                    "over them gives other sums. Remove it, and fit again."
                )

    def _copy(self, found: Dataset) -> Dataset:
        """Return a copy of rows, recorded unless it is in memory, where passes are cheap."""
        return found if found.location is Location.MEMORY else Recorded(found, self._journal)

    def stays_remote(self) -> bool:
        return self._data.stays_remote()

    def to_local(self) -> Dataset:
        return self._copy(self._data.to_local())

    def columns(self, chosen: IntArray) -> Dataset:
        return self._copy(self._data.columns(chosen))

    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        return self._data.sample(rows, factor)

    def allocate_state(self, k: int) -> FloatArray:
        return self._data.allocate_state(k)

    @property
    def largest_part(self) -> int:
        return self._data.largest_part

    def longest_sum(self, size: int) -> int:
        return self._data.longest_sum(size)

    def close(self) -> None:
        self._data.close()


def _recordable(notes: PassNotes) -> bool:
    """Return whether the pass declares the row state it uses and reads features, so that recording saves time."""
    known = notes.get("reads") is not None or bool(notes.get("writes"))
    return known and notes.get("features", True)


def _needed(pending: list[Pass], overwritten: frozenset[str] = frozenset()) -> list[Pass]:
    """Return the pending passes, in order, whose state is not overwritten before it is read.

    ``overwritten`` names state that the next pass overwrites.
    """
    kept: list[Pass] = []
    dead = set(overwritten)
    for one in reversed(pending):
        if one.writes - dead:
            dead = (dead | one.writes) - one.reads
            kept.append(one)
    return kept[::-1]


def _flat(totals: list[FloatArray], found: list[tuple[Vector, ...]]) -> list[Vector]:
    """Flatten the result of ``visits`` to a few vectors: totals, lengths of the parts, and concatenated parts."""
    columns = [list(column) for column in zip(*found, strict=True)]
    lengths = np.array([[len(part) for part in column] for column in columns], dtype=np.int64)
    ends = [np.concatenate(column) for column in columns]
    return [*totals, lengths.ravel(), *ends]


def _by_block(flat: list[Vector]) -> list[Any]:
    """Return the results of the blocks from the vectors after the totals; the inverse of ``_flat``."""
    lengths, *ends = flat
    cuts = np.cumsum(lengths.reshape(len(ends), -1), axis=1)[:, :-1]
    columns = [np.split(end, cut) for end, cut in zip(ends, cuts, strict=True)]
    return list(zip(*columns, strict=True))
