"""A data set: blocks of rows, and their ordered sum."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray


class Dataset(ABC):
    """n rows of d features with their targets.

    Loss, gradient, Hessian, dual value, column statistics are all sums over rows, so one method
    serves every solver. Blocks and the order of the additions depend on the data alone, never on
    the number of threads or workers: the answer has the same bits for 1 or 64 of them.
    """

    n: int
    d: int
    X: Any  #: the rows as they were given
    offset: FloatArray | None
    labels: npt.NDArray[np.int64] | None

    @abstractmethod
    def sum(
        self,
        fn: Callable[[Block, FloatArray], None],
        size: int,
        *,
        fills: Sequence[str] = (),
        uses: Sequence[str] | None = None,
        writes: Sequence[FloatArray] = (),
        features: bool = True,
    ) -> FloatArray:
        """Sum over the blocks of what ``fn(block, out)`` adds to ``out``, a vector of ``size``.

        A pass that says what else it does need not be made again if what it found was recorded: ``fills`` names
        the kept vectors that it overwrites, ``uses`` those that it reads (an empty tuple: none), and ``writes`` are
        arrays of the caller that it fills. One that says nothing may do anything. ``features=False``: it does not
        look at the rows, only at their targets and what is kept, and need not wait for them.
        """

    def settle(self) -> None:  # noqa: B027
        """Make sure that what passes have kept is there, before it is read other than by a pass."""

    @abstractmethod
    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Dataset:
        """The given rows (ascending) in memory, their weights multiplied by ``share``."""

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
