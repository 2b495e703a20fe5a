"""Data sets on disk: every pass reads all blocks, each in the thread that processes it.

The operating system is advised to read ahead; a separate reader thread would only load the rows into the cache of
another core. Memory holds one block per thread. Vectors with one number per row (labels, weights if there
are any, and row state) are in memory-mapped files, of which only the parts of the current blocks are resident.
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

from linsep.arrays import FloatArray, IntArray
from linsep.data.block import Block
from linsep.data.cache import write_columns
from linsep.data.dataset import PassNotes, Sum
from linsep.data.location import Location
from linsep.data.mapped_vectors import moved, release, zeros
from linsep.data.memory import LocalDataset, Memory, kernel_rows
from linsep.data.ordered_sum import add_up
from linsep.data.pieces import Scratch
from linsep.data.stored import StoredRows
from linsep.data.targets import Targets

if TYPE_CHECKING:
    from typing import Unpack


_ROOM = 16 << 20  # bytes of partial sums in memory: fewer threads compute long sums


class Disk(LocalDataset):
    """Data set on disk. Its sums are bit-identical to those of the same rows in memory."""

    location = Location.DISK
    X: StoredRows

    def __init__(
        self,
        X: StoredRows,
        sign: FloatArray | None = None,
        offset: FloatArray | None = None,
        weight: FloatArray | None = None,
        labels: IntArray | None = None,
        n_threads: int | None = None,
        remove: Callable[[], Any] | None = None,
    ) -> None:
        targets = Targets.of(X.shape[0], sign, offset, weight, labels)
        super().__init__(X, Targets(*(None if v is None else moved(v) for v in targets)), n_threads)  # type: ignore[arg-type]
        self.sparse, self.n_entries, self.edges = X.sparse, X.n_entries, X.edges
        self._remove = remove
        self._scratch = [Scratch() for _ in range(self.n_threads)]
        self._workers = ThreadPoolExecutor(self.n_threads, "linsep")

    def allocate_state(self, k: int) -> FloatArray:
        return zeros((k, self.n))

    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        features = notes.get("features", True)
        if features:
            self.X.refuse_change()
        openers = [partial(self._open, [], scratch=s, features=features) for s in self._scratch]
        try:
            blocks = len(self.edges) - 1
            return add_up(wanted, blocks, self.n_entries, openers, lambda: self._workers, _ROOM)
        finally:
            self._release(slice(None))

    def _open(self, done: list[slice], k: int, scratch: Scratch, features: bool) -> Block:
        """Read block k into the scratch buffer, or open it without features, and release the previous block's pages."""
        while done:
            self._release(done.pop())
        lo, hi = self.edges[k : k + 2]
        done.append(slice(lo, hi))
        X = self.X.read(lo, hi, scratch) if features else np.empty((hi - lo, 0))
        return self._block(kernel_rows(X), lo, zeros)

    def _release(self, part: slice) -> None:
        """Release the memory-mapped pages of the targets and state of some rows."""
        for vector in (*self.targets, *list(self._state.values())):
            if vector is not None:
                release(vector[..., part])

    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        X = self.X.take(rows, self._scratch)
        return Memory(X, *self.targets.take(rows, factor), n_threads=self.n_threads)

    def columns(self, chosen: IntArray) -> Disk:
        """Write the chosen features to a temporary directory, which is removed when the copy is closed or collected."""
        home = tempfile.mkdtemp(prefix="linsep-")
        try:
            rows = write_columns(Path(home), self.X, chosen)
        except BaseException:
            shutil.rmtree(home, ignore_errors=True)
            raise
        remove = weakref.finalize(rows, shutil.rmtree, home, ignore_errors=True)
        return Disk(rows, *self.targets, self.n_threads, remove)

    def fingerprint(self) -> tuple[Any, list[Any]]:
        """Return the checksums of the rows, and the target vectors."""
        return self.X.fingerprint(), [v for v in self.targets if v is not None]

    def close(self) -> None:
        """Stop the threads. Files of the caller stay open; temporary ones are removed."""
        self._workers.shutdown()
        if self._remove is not None:
            self.X.close()
            self._remove()
