"""A data set: blocks of rows, and their ordered sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray

if TYPE_CHECKING:
    from typing import Unpack

AT_HAND = 1 << 27  # entries of rows on disk or on a cluster that may be brought to memory: 1 GiB


Sum = Callable[[Block, FloatArray], Any]


class Notes(TypedDict, total=False):
    """What a pass says about itself, so that it need not be made again if what it found was recorded.

    One that says nothing may do anything.
    """

    fills: Sequence[str]  #: kept vectors that it leaves for later passes
    uses: Sequence[str] | None  #: those that it reads; an empty tuple: none
    features: (
        bool  #: False: it looks at targets and kept vectors only, and need not wait for the rows
    )
    bring: Callable[[list[Any]], npt.NDArray[np.int64]]
    """Of what a visit has found in the blocks of a part: numbers of rows that will be asked for next, by ``sample``.
    Where the rows are in another process they come along."""
    joined: Callable[[list[Any]], Any]
    """Of what a visit has found in the blocks of a part: the same in one, where that need not come block by block."""
    soon: Sequence[str]  #: kept vectors that will be fetched next, likewise


class Dataset(ABC):
    """n rows of d features with their targets.

    Loss, gradient, Hessian, dual value, column statistics are all sums over rows, so one method
    serves every solver. Blocks and the order of the additions depend on the data alone, never on
    the number of threads or workers: the answer has the same bits for 1 or 64 of them.

    What a pass leaves behind for each row is *kept* under a name, where the rows are: ``fills`` says which
    kept vectors a pass writes, ``uses`` which it reads. Rows in this process need not be told; a worker of a
    cluster that lost what it kept, and a fit that goes on from a checkpoint, make it again from that.
    """

    remote = False  #: whether blocks are visited in other processes, so that only what ``fn`` returns comes back
    far = False  #: whether every pass must fetch the rows, or ask for them: fewer passes that do more are better
    n: int
    d: int
    X: Any  #: the rows as they were given
    offset: FloatArray | None
    labels: npt.NDArray[np.int64] | None

    @abstractmethod
    def sum(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> FloatArray:
        """Sum over the blocks of what ``fn(block, out)`` adds to ``out``, a vector of ``size``."""

    def settle(self) -> None:  # noqa: B027
        """Make sure that what passes have kept is there, before it is read other than by a pass."""

    def visit(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> tuple[FloatArray, list[Any]]:
        """The same sum, and what ``fn`` returned for each block, in block order.

        Where ``fills`` or ``uses`` is given and the features are read, that is a tuple of vectors, so that it can
        be recorded.
        """
        totals, found = self.visits([(fn, size)], **notes)
        return totals[0], found

    def visits(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]
    ) -> tuple[list[FloatArray], list[Any]]:
        """Several sums, and what the last function returned for each block."""
        found: dict[int, Any] = {}
        *others, (fn, size) = wanted

        def add(block: Block, out: FloatArray) -> None:
            found[block.first + block.lo] = fn(block, out)

        totals = self.sums([*others, (add, size)], **notes)
        return totals, [found[at] for at in sorted(found)]

    def sums(self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]) -> list[FloatArray]:
        """Several sums, one after another over each part of the rows; later ones may use what earlier ones fill."""
        return [self.sum(fn, size, **notes) for fn, size in wanted]

    @abstractmethod
    def place(self, name: str, values: FloatArray) -> None:
        """Keep ``values``, (n,) or (k, n), under a name."""

    @abstractmethod
    def fetch(self, name: str) -> FloatArray:
        """What is kept under a name for all rows, (n,) or (k, n); not to be written to."""

    @abstractmethod
    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Dataset:
        """The given rows (ascending) in memory, their weights multiplied by ``share``."""

    def to_memory(self) -> Dataset:
        """All rows where a method that is not made of sums alone can work on them, to be closed by the caller."""
        return self.sample(np.arange(self.n))

    @abstractmethod
    def columns(self, chosen: npt.NDArray[np.int64]) -> Dataset:
        """All rows with the chosen features alone, to be closed by the caller."""

    @property
    @abstractmethod
    def whole(self) -> Block | None:
        """All rows as one block that the kernels can read, if they lie in memory like that."""

    @abstractmethod
    def first_rows(self) -> _kernels.Rows:
        """The rows of the first block, at least: how all rows are stored."""

    @abstractmethod
    def planes(self, k: int) -> FloatArray:
        """Room for k numbers per row, (k, n), that need not lie in memory."""

    @property
    def shifted(self) -> bool:
        """Whether the margins have offsets."""
        return self.offset is not None

    @property
    def largest_part(self) -> int:
        """Rows of the largest part that is worked on in one place."""
        return self.n

    @property
    def at_hand(self) -> bool:
        """Whether all rows are in this process, or few enough to be brought here."""
        return not self.remote or self.holds(self.n)

    def holds(self, count: int) -> bool:
        """Whether so many of the rows may be brought to memory."""
        return count * self.n_entries <= AT_HAND * self.n

    @property
    @abstractmethod
    def sign(self) -> FloatArray:
        """Per row: the label -1 or +1 (classification) or 1 (regression)."""

    @property
    @abstractmethod
    def weight(self) -> FloatArray | None:
        """Per row: the sample weight, or None for all ones."""

    @property
    @abstractmethod
    def sparse(self) -> bool:
        """Whether rows are stored by their nonzero entries."""

    @property
    @abstractmethod
    def n_entries(self) -> int:
        """Stored numbers: n * d when dense, nonzeros when sparse."""

    @abstractmethod
    def close(self) -> None:
        """End the threads."""

    @abstractmethod
    def longest_sum(self, size: int) -> int:
        """Bound on the number of terms added one after another in a sum of ``size`` numbers."""

    def total_weight(self) -> float:
        """Sum of the sample weights."""
        return float(self.n) if self.weight is None else float(self.weight.sum())

    def counts(self, k: int = 2) -> npt.NDArray[np.int64]:
        """Rows of each of k classes; of two without labels, those of sign -1 and of sign +1."""
        if self.labels is not None:
            return np.bincount(self.labels, minlength=k)
        positive = int(np.count_nonzero(self.sign > 0))
        return np.array([self.n - positive, positive])

    def find(self, ranks: Sequence[npt.NDArray[np.int64]]) -> list[npt.NDArray[np.int64]]:
        """For each class c the numbers of the rows that are the ``ranks[c]``-th of it, counting from 0."""
        label, sign = self.labels, self.sign
        return [
            np.flatnonzero((sign > 0) == (c == 1) if label is None else label == c)[wanted]
            for c, wanted in enumerate(ranks)
        ]
