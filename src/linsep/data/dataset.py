"""A data set: blocks of rows, and their ordered sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypedDict

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data.block import Block
from linsep.data.location import Location

if TYPE_CHECKING:
    from typing import Unpack

    from linsep.data.memory import Memory

MEMORY_ENTRIES = 1 << 27  # entries of rows on a cluster that may be copied to memory: 1 GiB


def may_be_copied(entries: float) -> bool:
    """Whether so many entries of rows on a cluster may be copied to memory."""
    return entries <= MEMORY_ENTRIES


Sum = Callable[[Block, FloatArray], Any]


class PassNotes(TypedDict, total=False):
    """What a pass declares about itself, so that a recorded result can stand for it.

    A pass that declares nothing may do anything.
    """

    writes: Sequence[str]  #: row state that it leaves for later passes
    reads: Sequence[str] | None  #: row state that it reads; an empty tuple: none
    features: bool  #: False: it reads targets and row state only, so rows need not be loaded
    prefetch_rows: Callable[[list[Any]], IntArray]
    """From the results of the blocks of a partition: row numbers that ``sample`` will ask for next. A cluster sends
    these rows along with the sums."""
    merge: Callable[[list[Any]], Any]
    """From the results of the blocks of a partition: one result for all of them, to send less."""
    prefetch_state: Sequence[str]  #: row state that will be read next; a cluster sends it along


class RowTargets(Protocol):
    """``Targets``, or the same vectors on the workers of a cluster, fetched on first use."""

    @property
    def sign(self) -> FloatArray: ...
    @property
    def offset(self) -> FloatArray | None: ...
    @property
    def weight(self) -> FloatArray | None: ...
    @property
    def labels(self) -> IntArray | None: ...
    @property
    def has_offset(self) -> bool: ...
    def total_weight(self) -> float: ...
    def class_counts(self, k: int) -> IntArray: ...
    def rows_of_rank(self, ranks: Sequence[IntArray]) -> list[IntArray]: ...


class Dataset(ABC):
    """n rows of d features with their targets: facts, ordered sums, row state, and copies of a part.

    Loss, gradient, Hessian, dual value, column statistics are all sums over rows, so one method
    serves every solver. Blocks and the order of the additions depend on the data alone, never on
    the number of threads or workers: the answer has the same bits for 1 or 64 of them.

    *Row state* is what a pass leaves behind for each row under a name, stored where the rows are. ``writes`` and
    ``reads`` declare which state a pass writes and reads. A worker of a cluster that lost its state, and a fit that
    resumes from a checkpoint, recompute it from these declarations; rows in this process need none.
    """

    location: Location
    n: int
    d: int
    X: Any  #: the rows as they were given
    sparse: bool  #: whether rows are stored by their nonzero entries
    n_entries: int  #: stored numbers: n * d when dense, nonzeros when sparse
    n_threads: int
    targets: RowTargets

    # sums

    @abstractmethod
    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        """Sums over the blocks of what each ``fn(block, out)`` adds to ``out``, a vector of its size. One pass.

        The functions visit each block one after another; later ones may read state that earlier ones write.
        """

    def sum(self, fn: Sum, size: int, **notes: Unpack[PassNotes]) -> FloatArray:
        """Sum over the blocks of what ``fn(block, out)`` adds to ``out``, a vector of ``size``. One pass."""
        return self.sums([(fn, size)], **notes)[0]

    def visit(self, fn: Sum, size: int, **notes: Unpack[PassNotes]) -> tuple[FloatArray, list[Any]]:
        """Sum over the blocks, and what ``fn`` returned for each block, in block order.

        A pass that declares ``writes`` or ``reads`` and reads features returns tuples of vectors, so that these
        can be recorded.
        """
        totals, found = self.visits([(fn, size)], **notes)
        return totals[0], found

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """Several sums, and what the last function returned for each block."""
        found: dict[int, Any] = {}
        *others, (fn, size) = wanted

        def add(block: Block, out: FloatArray) -> None:
            found[block.first + block.lo] = fn(block, out)

        totals = self.sums([*others, (add, size)], **notes)
        return totals, [found[at] for at in sorted(found)]

    @abstractmethod
    def longest_sum(self, size: int) -> int:
        """Bound on the number of terms added one after another in a sum of ``size`` numbers."""

    # row state

    @abstractmethod
    def row_state(self, name: str) -> FloatArray:
        """State of all rows under a name, (n,) or (k, n); not to be written to."""

    @abstractmethod
    def set_row_state(self, name: str, values: FloatArray) -> None:
        """Store ``values``, (n,) or (k, n), under a name."""

    def allocate_state(self, k: int) -> FloatArray:
        """Uninitialised array of k numbers per row, (k, n), in memory or in a mapped file."""
        return np.empty((k, self.n))

    # copies of a part

    @abstractmethod
    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        """Copy the given rows (ascending) to memory, their weights multiplied by ``factor``."""

    @abstractmethod
    def columns(self, chosen: IntArray) -> Dataset:
        """Copy the chosen features of all rows. The caller closes the copy."""

    def stays_remote(self) -> bool:
        """Whether all rows are elsewhere and cannot be copied to this machine."""
        return False

    def to_memory(self) -> Dataset:
        """Copy all rows to where a method that is not made of sums alone can work on them. The caller closes it."""
        return self.sample(np.arange(self.n))

    @abstractmethod
    def close(self) -> None:
        """Release threads, files and row state."""

    # facts that follow from others

    whole: Block | None = (
        None  #: all rows as one block, if they lie in memory in a layout the kernels read
    )

    one_block = False  #: whether rows in memory are visited as a single block

    @property
    def largest_part(self) -> int:
        """Rows of the largest part that is processed in one place."""
        return self.n

    def fits_memory(self, count: int | None = None) -> bool:
        """Whether so many of the rows (all of them by default) are in this process or may be copied to its memory."""
        if count is None:
            return self.location is not Location.CLUSTER or self.fits_memory(self.n)
        return may_be_copied(count * self.n_entries / max(1, self.n))

    def example_row(self) -> _kernels.Rows:
        """One row of zeros, stored as all rows are."""
        from linsep.data.memory import kernel_rows, readable  # noqa: PLC0415 - which builds on this module

        zeros: Any = np.zeros((1, self.d), dtype=self.X.dtype)
        return kernel_rows(readable(sp.csr_matrix(zeros) if self.sparse else zeros))

    @property
    def sign(self) -> FloatArray:
        """Per row: the label -1 or +1 (classification) or 1 (regression)."""
        return self.targets.sign

    @property
    def offset(self) -> FloatArray | None:
        """Per row: the offset of the margin, or None for zeros."""
        return self.targets.offset

    @property
    def weight(self) -> FloatArray | None:
        """Per row: the sample weight, or None for ones."""
        return self.targets.weight

    @property
    def labels(self) -> IntArray | None:
        """Per row: the position of its class, or None."""
        return self.targets.labels

    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return self.targets.total_weight()

    def counts(self, k: int = 2) -> IntArray:
        """Number of rows of each of k classes; of two without labels, of sign -1 and of sign +1."""
        return self.targets.class_counts(k)

    def find(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """For each class c the numbers of the rows that are the ``ranks[c]``-th of it, counting from 0."""
        return self.targets.rows_of_rank(ranks)
