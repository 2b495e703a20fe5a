"""Data on disk: every pass reads all blocks, in order, a little ahead of the work.

Only vectors with one number per row are held in memory (8 bytes per row each): labels, weights where there are
any, and what the problem keeps from pass to pass. Two blocks per thread are in memory at a time.
"""

from __future__ import annotations

import shutil
import tempfile
import weakref
from collections.abc import Callable, Generator, Iterator, Sequence
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing
from functools import partial
from itertools import count
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.data.block import Block, FloatArray
from linsep.data.cache import write_columns
from linsep.data.dataset import Dataset
from linsep.data.layout import longest_sum, spans
from linsep.data.memory import Memory, kernel_rows, room
from linsep.data.pieces import Scratch
from linsep.data.stored import StoredRows
from linsep.data.threads import usable_threads


class Stream(Dataset):
    """Rows on disk, with their targets. The bits are those of the same rows in memory."""

    X: StoredRows

    def __init__(
        self,
        X: StoredRows,
        sign: FloatArray | None = None,
        offset: FloatArray | None = None,
        weight: FloatArray | None = None,
        labels: npt.NDArray[np.int64] | None = None,
        n_threads: int | None = None,
    ) -> None:
        self.X = X
        self.n, self.d = X.shape
        self._sign = np.ones(self.n) if sign is None else np.ascontiguousarray(sign, float)
        self.offset, self._weight, self.labels = offset, weight, labels
        self.n_threads = usable_threads() if n_threads is None else n_threads
        self._kept: dict[str, FloatArray] = {}
        self._scratch: list[Scratch] = []
        self._workers = ThreadPoolExecutor(self.n_threads, "linsep")
        self._readers = ThreadPoolExecutor(self.n_threads, "linsep-read")

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
        """In a nameless file: k numbers per row may be as much as the rows themselves."""
        if k * self.n == 0:
            return np.empty((k, self.n))
        with tempfile.TemporaryFile(prefix="linsep-") as file:  # the map outlives the file's name
            return np.memmap(file, np.float64, "w+", shape=(k, self.n))

    def place(self, name: str, values: FloatArray) -> None:
        self._kept[name] = values

    def fetch(self, name: str) -> FloatArray:
        return self._kept[name]

    def first_rows(self) -> _kernels.Rows:
        return kernel_rows(self.X.read(0, self.X.edges[1]))

    def longest_sum(self, size: int) -> int:
        return longest_sum(self.X.edges, self.n_entries, size)

    def sum(
        self,
        fn: Callable[[Block, FloatArray], Any],
        size: int,
        *,
        fills: Sequence[str] = (),
        uses: Sequence[str] | None = None,
        features: bool = True,
    ) -> FloatArray:
        """Sum over the blocks, as in memory; each thread has a reader one block ahead of it."""
        if features:
            self.X.refuse_change()
        groups = spans(len(self.X.edges) - 1, self.n_entries, size)
        parts = np.zeros((len(groups), size))
        workers = min(self.n_threads, len(groups))
        while len(self._scratch) < 2 * workers:
            self._scratch.append(Scratch())
        running = True
        take = count().__next__

        def turns() -> Iterator[tuple[int, int]]:
            while (s := take()) < len(groups):
                yield from ((s, k) for k in groups[s])

        def walk(worker: int) -> None:
            scratch = self._scratch[2 * worker : 2 * worker + 2]
            found = self._ahead(turns(), scratch) if features else self._blind(turns())
            with closing(found) as blocks:
                for s, block in blocks:
                    if not running:
                        return
                    fn(block, parts[s])

        if workers == 1:
            walk(0)
        else:
            tasks = [self._workers.submit(walk, w) for w in range(workers)]
            try:
                for task in tasks:
                    task.result()
            finally:
                running = False  # after an error or Ctrl-C the others stop at their next block
                wait([task for task in tasks if not task.cancel()])
        total: FloatArray = parts[0]
        for part in parts[1:]:
            total += part
        return total

    def _ahead(
        self, turns: Iterator[tuple[int, int]], scratch: list[Scratch]
    ) -> Generator[tuple[int, Block]]:
        """Span and block in turn; while one is worked on, the next is read into the other scratch."""
        turn = next(turns, None)
        coming: Future[_kernels.Rows] | None = None
        try:
            while turn is not None:
                s, k = turn
                if coming is None:
                    coming = self._readers.submit(self._read, k, scratch[0])
                rows = coming.result()
                turn = next(turns, None)
                if turn is not None:
                    scratch.reverse()
                    coming = self._readers.submit(self._read, turn[1], scratch[0])
                yield s, self._block(rows, self.X.edges[k])
        finally:
            if coming is not None and not coming.cancel():
                wait([coming])  # nothing reads into the scratch any more

    def _blind(self, turns: Iterator[tuple[int, int]]) -> Generator[tuple[int, Block]]:
        """Span and block in turn, the rows without their features."""
        for s, k in turns:
            rows = kernel_rows(np.empty((self.X.edges[k + 1] - self.X.edges[k], 0)))
            yield s, self._block(rows, self.X.edges[k])

    def _read(self, k: int, scratch: Scratch) -> _kernels.Rows:
        return kernel_rows(self.X.read(self.X.edges[k], self.X.edges[k + 1], scratch))

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
            kept=partial(room, self, self._kept, part),
        )

    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Memory:
        """The given rows, read into memory."""
        weight: Any = None if self._weight is None else self._weight[rows]
        if share is not None:
            weight = share if weight is None else weight * share
        return Memory(
            self.X[rows],
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
        weakref.finalize(rows, shutil.rmtree, home, ignore_errors=True)
        return Stream(rows, self._sign, self.offset, self._weight, None, self.n_threads)

    def close(self) -> None:
        """End the threads; the rows stay open for whoever opened them."""
        self._workers.shutdown()
        self._readers.shutdown()
