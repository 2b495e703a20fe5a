"""The abstract data set that solvers work on: rows in blocks, with sums that are added in block order."""

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

MEMORY_ENTRIES = 1 << 27  # largest number of entries that may be copied from a cluster: 1 GiB


def may_be_copied(entries: float) -> bool:
    """Return whether that many entries of rows on a cluster may be copied to memory."""
    return entries <= MEMORY_ENTRIES


Sum = Callable[[Block, FloatArray], Any]


class PassNotes(TypedDict, total=False):
    """What a pass declares about its effects, so that its result can be recorded and replayed from a checkpoint.

    A pass that declares nothing may have any effect and is not recorded.
    """

    writes: Sequence[str]  #: row state that it stores for later passes
    reads: Sequence[str] | None  #: row state that it reads; an empty tuple: none
    features: bool  #: False: it reads targets and row state only, so rows need not be loaded
    prefetch_rows: Callable[[list[Any]], IntArray]
    """From the results of the blocks of a partition: row numbers that ``sample`` will ask for next. A cluster sends
    these rows along with the sums."""
    merge: Callable[[list[Any]], Any]
    """From the results of the blocks of a partition: one result for all of them, to send less."""
    prefetch_state: Sequence[str]  #: row state that is read next; a cluster sends it with the sums
    rarely_read: bool
    """Whether later passes rarely read the state that it stores. A cluster then repeats the pass when they do."""


class RowTargets(Protocol):
    """Protocol of ``Targets`` and of target vectors on the workers of a cluster, which are fetched on first use."""

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
    def vectors(self) -> tuple[Any, Any, Any, Any]: ...
    def total_weight(self) -> float: ...
    def class_counts(self, k: int) -> IntArray: ...
    def rows_of_rank(self, ranks: Sequence[IntArray]) -> list[IntArray]: ...


class Dataset(ABC):
    """n rows of d features with their targets: sums over rows, per-row state, and copies of some rows or columns.

    Loss, gradient, Hessian, dual value and column statistics are all sums over rows, so one method
    serves every solver. Blocks and the order of the additions depend only on the data, never on the
    number of threads or workers: results are bit-identical for 1 or 64 of them.

    *Row state* is a named vector with one or more numbers per row that a pass stores, next to the rows, for later
    passes. ``writes`` and ``reads`` declare which state a pass writes and reads. A cluster worker that lost its state,
    and a fit that resumes from a checkpoint, recompute it from these declarations; rows in this process need none.
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
        """Return, for each ``(fn, size)``, the sum over blocks of what ``fn(block, out)`` adds to a vector of ``size``.

        One pass. The functions are called in order on each block; later ones may read state that earlier ones write.
        """

    def sum(self, fn: Sum, size: int, **notes: Unpack[PassNotes]) -> FloatArray:
        """Return the sum over blocks of what ``fn(block, out)`` adds to ``out``, a vector of ``size``. One pass."""
        return self.sums([(fn, size)], **notes)[0]

    def visit(self, fn: Sum, size: int, **notes: Unpack[PassNotes]) -> tuple[FloatArray, list[Any]]:
        """Return the sum over blocks, and the list of what ``fn`` returned for each block, in block order. One pass.

        If the pass declares ``writes`` or ``reads`` and reads features, ``fn`` must return tuples of vectors, which
        can be recorded.
        """
        totals, found = self.visits([(fn, size)], **notes)
        return totals[0], found

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """Return several sums, and the list of what the last function returned for each block. One pass."""
        found: dict[int, Any] = {}
        *others, (fn, size) = wanted

        def add(block: Block, out: FloatArray) -> None:
            found[block.first + block.lo] = fn(block, out)

        totals = self.sums([*others, (add, size)], **notes)
        return totals, [found[at] for at in sorted(found)]

    def combine(self, a: FloatArray) -> FloatArray:
        """Sum of a_i (x_i, 1) over the rows, (d + 1,). One pass."""
        return self.sum(
            lambda b, out: _kernels.combine(b.rows, b.lo, b.hi, b.own(a), out), self.d + 1
        )

    def scores(self, theta: FloatArray) -> FloatArray:
        """Scores x.w + b of all rows, which must be in this process. One pass."""
        return self._fill(lambda b, z: _kernels.scores(b.rows, b.lo, b.hi, theta, z[b.lo : b.hi]))

    def row_norms(self) -> FloatArray:
        """Squared norms |x_i|^2 of all rows, which must be in this process. One pass."""
        return self._fill(lambda b, norms: _kernels.row_norms(b.rows, b.lo, b.hi, norms))

    def _fill(self, put: Sum) -> FloatArray:
        """Return one number per row, stored by ``put(block, own)`` in the entries of ``block.rows``. One pass."""
        values = np.zeros(self.n)
        self.sum(lambda b, _: put(b, b.own(values)), 1)
        return values

    @abstractmethod
    def longest_sum(self, size: int) -> int:
        """Bound on the number of sequential additions in a sum of ``size`` numbers, for the rounding bound."""

    # row state

    @abstractmethod
    def row_state(self, name: str) -> FloatArray:
        """Return the named state of all rows, (n,) or (k, n); do not write to it."""

    @abstractmethod
    def set_row_state(self, name: str, values: FloatArray) -> None:
        """Store ``values``, (n,) or (k, n), under a name."""

    def allocate_state(self, k: int) -> FloatArray:
        """Return an uninitialised array of k numbers per row, (k, n), in memory or memory-mapped."""
        return np.empty((k, self.n))

    # copies of a part

    @abstractmethod
    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        """Copy the given rows (ascending) to memory, their weights multiplied by ``factor``."""

    @abstractmethod
    def columns(self, chosen: IntArray) -> Dataset:
        """Copy the chosen features of all rows. The caller closes the copy."""

    def stays_remote(self) -> bool:
        """Return whether the rows are on a cluster and this machine has neither memory nor a directory for them."""
        return False

    def to_local(self) -> Dataset:
        """Copy all rows to this machine, for methods that need more than sums. The caller closes the copy.

        The copy is in memory, or on disk if the rows are on a cluster and too many for memory.
        """
        return self.sample(np.arange(self.n))

    @abstractmethod
    def close(self) -> None:
        """Release threads, files and row state."""

    # derived facts

    #: All rows as one block, if they are in memory in a layout that the kernels read.
    whole: Block | None = None

    one_block = False  #: whether rows in memory are visited as a single block

    @property
    def largest_part(self) -> int:
        """Number of rows of the largest partition; n unless the rows are on a cluster."""
        return self.n

    def fits_memory(self, count: int | None = None) -> bool:
        """Return whether ``count`` rows (all by default) are in this process or may be copied to its memory."""
        if count is None:
            return self.location is not Location.CLUSTER or self.fits_memory(self.n)
        return may_be_copied(count * self.n_entries / max(1, self.n))

    def example_row(self) -> _kernels.Rows:
        """Return a row of zeros in the storage format of the data set."""
        from linsep.data.memory import kernel_rows, readable  # noqa: PLC0415 - it imports this module

        zeros: Any = np.zeros((1, self.d), dtype=self.X.dtype)
        return kernel_rows(readable(sp.csr_matrix(zeros) if self.sparse else zeros))

    @property
    def sign(self) -> FloatArray:
        """Sign of each row: -1 or +1 (classification), 1 (regression)."""
        return self.targets.sign

    @property
    def offset(self) -> FloatArray | None:
        """Offset of the margin of each row, or None for zeros."""
        return self.targets.offset

    @property
    def weight(self) -> FloatArray | None:
        """Sample weight of each row, or None for ones."""
        return self.targets.weight

    @property
    def labels(self) -> IntArray | None:
        """Class number of each row, or None."""
        return self.targets.labels

    def total_weight(self) -> float:
        """Return the sum of the sample weights."""
        return self.targets.total_weight()

    def counts(self, k: int = 2) -> IntArray:
        """Return the number of rows of each of k classes; without labels, of sign -1 and of sign +1."""
        return self.targets.class_counts(k)

    def find(self, ranks: Sequence[IntArray]) -> list[IntArray]:
        """Return for each class c the numbers of its ``ranks[c]``-th rows, counting from 0 within the class."""
        return self.targets.rows_of_rank(ranks)
