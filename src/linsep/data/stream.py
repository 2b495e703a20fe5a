"""Data on disk: every pass reads all blocks, each by the thread that works on it.

Meanwhile the system reads ahead, which it is told to do: a reader of our own would only move the rows into the cache
of another processor. Only vectors with one number per row are held in memory
(8 bytes per row each): labels, weights where there are any, and what the problem keeps from pass to pass; and one
block per thread.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray
from linsep.data.cache import write_columns
from linsep.data.dataset import Dataset, Notes, Sum
from linsep.data.layout import longest_sum
from linsep.data.memory import Memory, kernel_rows, room
from linsep.data.ordered_sum import add_up
from linsep.data.pieces import Scratch
from linsep.data.stored import StoredRows
from linsep.data.threads import usable_threads

if TYPE_CHECKING:
    from typing import Unpack


def _planes(k: int, n: int) -> FloatArray:
    """In a nameless file: k numbers per row may be as much as the rows themselves."""
    if k * n == 0:
        return np.empty((k, n))
    with tempfile.TemporaryFile(prefix="linsep-") as file:  # the map outlives the file's name
        return np.memmap(file, np.float64, "w+", shape=(k, n))


class Stream(Dataset):
    """Rows on disk, with their targets. The bits are those of the same rows in memory."""

    far = True
    X: StoredRows

    def __init__(
        self,
        X: StoredRows,
        sign: FloatArray | None = None,
        offset: FloatArray | None = None,
        weight: FloatArray | None = None,
        labels: npt.NDArray[np.int64] | None = None,
        n_threads: int | None = None,
        remove: Callable[[], Any] | None = None,
    ) -> None:
        self.X, self._remove = X, remove
        self.n, self.d = X.shape
        self._sign = np.ones(self.n) if sign is None else np.ascontiguousarray(sign, float)
        self.offset, self._weight, self.labels = offset, weight, labels
        self.n_threads = usable_threads() if n_threads is None else n_threads
        self._kept: dict[str, FloatArray] = {}
        self._scratch = [Scratch() for _ in range(self.n_threads)]
        self._workers = ThreadPoolExecutor(self.n_threads, "linsep")

    @property
    def n_entries(self) -> int:
        return self.X.n_entries

    @property
    def sparse(self) -> bool:
        return self.X.sparse

    @property
    def sign(self) -> FloatArray:
        return self._sign

    @property
    def weight(self) -> FloatArray | None:
        return self._weight

    @property
    def whole(self) -> Block | None:
        return None

    def planes(self, k: int) -> FloatArray:
        return _planes(k, self.n)

    def place(self, name: str, values: FloatArray) -> None:
        self._kept[name] = values

    def fetch(self, name: str) -> FloatArray:
        return self._kept[name]

    def first_rows(self) -> _kernels.Rows:
        return kernel_rows(self.X.read(0, self.X.edges[1]))

    def longest_sum(self, size: int) -> int:
        return longest_sum(self.X.edges, self.n_entries, size)

    def sum(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> FloatArray:
        """Sum over the blocks, as in memory."""
        return self.sums([(fn, size)], **notes)[0]

    def sums(self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]) -> list[FloatArray]:
        """All of them while the rows are read once."""
        features = notes.get("features", True)
        if features:
            self.X.refuse_change()
        openers = [
            partial(self._opened, scratch=scratch, features=features) for scratch in self._scratch
        ]
        blocks = len(self.X.edges) - 1
        return add_up(wanted, blocks, self.n_entries, openers, lambda: self._workers)

    def _opened(self, k: int, scratch: Scratch, features: bool) -> Block:
        """Block k, read into the scratch; or the block without its features."""
        lo, hi = self.X.edges[k : k + 2]
        if not features:
            return self._block(kernel_rows(np.empty((hi - lo, 0))), lo)
        return self._block(kernel_rows(self.X.read(lo, hi, scratch)), lo)

    def _block(self, rows: _kernels.Rows, first: int) -> Block:
        part = slice(first, first + rows.n)
        offset = None if self.offset is None else self.offset[part]
        weight = None if self._weight is None else self._weight[part]
        labels = None if self.labels is None else self.labels[part]
        return Block(
            rows=rows,
            targets=_kernels.Targets(self._sign[part], offset, weight),
            sign=self._sign[part],
            offset=offset,
            weight=weight,
            labels=labels,
            lo=0,
            hi=rows.n,
            first=first,
            kept=partial(room, self._kept, self.n, _planes, part),
        )

    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Memory:
        """The given rows, read into memory."""
        weight: Any = None if self._weight is None else self._weight[rows]
        if share is not None:
            weight = share if weight is None else weight * share
        return Memory(
            self.X.take(rows, self._scratch),
            self._sign[rows],
            None if self.offset is None else self.offset[rows],
            weight,
            None if self.labels is None else self.labels[rows],
            n_threads=self.n_threads,
        )

    def columns(self, chosen: npt.NDArray[np.int64]) -> Stream:
        """They are written to a temporary directory, which goes when nobody reads it any more."""
        home = tempfile.mkdtemp(prefix="linsep-")
        try:
            rows = write_columns(Path(home), self.X, chosen)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        remove = weakref.finalize(rows, shutil.rmtree, home, ignore_errors=True)
        vectors = self._sign, self.offset, self._weight, self.labels
        return Stream(rows, *vectors, self.n_threads, remove)

    def close(self) -> None:
        """End the threads; the rows stay open for whoever opened them, and those of our own are removed."""
        self._workers.shutdown()
        if self._remove is not None:
            self.X.close()
            self._remove()
