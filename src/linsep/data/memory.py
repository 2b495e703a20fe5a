"""Data sets in memory, which threads read in place, and conversion of other layouts for the kernels."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import EXACT_IN_FLOAT32, FloatArray, IntArray
from linsep.data.block import Block
from linsep.data.dataset import Dataset, PassNotes, Sum
from linsep.data.layout import Edges, dense_edges, longest_sum, sparse_edges
from linsep.data.location import Location
from linsep.data.mapped_files import require_untruncated
from linsep.data.ordered_sum import add_up
from linsep.data.targets import Targets
from linsep.data.threads import usable_threads
from linsep.errors import BadInput
from linsep.interrupts import check, slices

if TYPE_CHECKING:
    from typing import Unpack

CONVERT_BYTES = 32 << 20  # other layouts up to this size are converted once, larger ones by block
MAX_COLUMNS = 2**31 - 2  # largest number of columns that the kernels support
FILLED = 0.2  # fraction of nonzeros above which columns are stored densely


def _native(X: Any) -> bool:
    """Return whether the kernels can read X without conversion."""
    kind = X.dtype
    if kind.char not in "fd" or not kind.isnative:
        return False
    return (
        X.flags.c_contiguous if isinstance(X, np.ndarray) else sp.issparse(X) and X.format == "csr"
    )


def _converted(X: Any) -> Any:
    """Convert X (or some of its rows) to a layout the kernels read: float32 if that is exact, otherwise float64."""
    kind = np.float32 if X.dtype.name in EXACT_IN_FLOAT32 else np.float64
    if sp.issparse(X):
        return X.tocsr().astype(kind, copy=False)
    found = np.ascontiguousarray(X, dtype=kind)
    require_untruncated(X)
    return found


def filled(X: Any) -> Any:
    """Return X, converted to dense if more than the fraction FILLED is nonzero."""
    if not sp.issparse(X) or X.nnz <= FILLED * X.shape[0] * X.shape[1]:
        return X
    return X.toarray()


def readable(X: Any) -> Any:
    """Return X in a layout the kernels read: X itself if possible, otherwise a converted copy of any size."""
    return X if _native(X) else _converted(X)


def kernel_rows(X: Any) -> _kernels.Rows:
    """Wrap X, dense or CSR, for the kernels."""
    if X.shape[1] > MAX_COLUMNS:
        raise BadInput(
            f"The rows have {X.shape[1]:,} columns; at most {MAX_COLUMNS:,} are possible. Number those that occur "
            "from 1 on, or hash them to fewer."
        )
    X = aligned(X)
    if isinstance(X, np.ndarray):
        return _kernels.Rows(X)
    return _kernels.Rows(X.data, X.indices, X.indptr, X.shape[1])


def aligned(X: Any) -> Any:
    """Return X, dense or CSR, copied if its address is not aligned, as may happen behind the header of a message."""
    parts = (X,) if isinstance(X, np.ndarray) else (X.data, X.indices, X.indptr)
    return X if all(part.flags.aligned for part in parts) else X.copy()


def _take(X: npt.NDArray[Any], rows: IntArray) -> npt.NDArray[Any]:
    """Copy some rows of a dense array."""
    out = np.empty((len(rows), X.shape[1]), X.dtype)
    for some in slices(len(rows), X.shape[1]):
        # mode="clip" writes to ``out`` without a buffer; all indices are in range.
        np.take(X, rows[some], axis=0, out=out[some], mode="clip")
    return out


def state_of_rows(
    state: dict[str, FloatArray],
    n: int,
    allocate: Callable[[tuple[int, ...]], FloatArray],
    part: slice,
    name: str,
    k: int | None = None,
) -> FloatArray:
    """Return the named state of the rows in ``part``, one or k numbers per row; allocated on first use.

    This is a function and not a method because a block must not refer to its data set, which refers to its blocks: the
    cycle would keep the rows in memory until the next garbage collection.
    """
    found = state.get(name)
    if found is None:
        found = state.setdefault(name, allocate((n,) if k is None else (k, n)))
    return found[..., part]


class LocalDataset(Dataset):
    """Base of data sets whose rows this process reads itself, with targets and row state in its memory."""

    targets: Targets
    edges: Edges  #: row numbers where blocks begin, and n

    def __init__(self, X: Any, targets: Targets, n_threads: int | None) -> None:
        self.X, self.targets = X, targets
        self.n, self.d = int(X.shape[0]), int(X.shape[1])
        self.n_threads = usable_threads() if n_threads is None else n_threads
        self._state: dict[str, FloatArray] = {}

    def row_state(self, name: str) -> FloatArray:
        return self._state[name]

    def set_row_state(self, name: str, values: FloatArray) -> None:
        self._state[name] = values

    def longest_sum(self, size: int) -> int:
        return longest_sum(self.edges, self.n_entries, size)

    def _block(
        self,
        rows: _kernels.Rows,
        first: int,
        allocate: Callable[[tuple[int, ...]], FloatArray],
        origin: int = 0,
    ) -> Block:
        """Return rows first .. first + rows.n as a block whose row numbers are shifted by ``origin``."""
        part = slice(first, first + rows.n)
        state = partial(state_of_rows, self._state, self.n, allocate, part)
        targets = self.targets if rows.n == self.n else self.targets.take(part)
        return Block.of(rows, targets, origin + first, state)


class Memory(LocalDataset):
    """Data set in memory. C-ordered float32/float64 arrays and CSR matrices are never copied.

    Other layouts (Fortran order, integers, float16, bfloat16 of ml_dtypes) are converted once if they are small, and
    otherwise block by block in every pass, so that a fit needs little additional memory. If X is a partition,
    ``origin`` is the number of its first row among all rows.
    """

    location = Location.MEMORY

    def __init__(
        self,
        X: Any,
        sign: FloatArray | None = None,
        offset: FloatArray | None = None,
        weight: FloatArray | None = None,
        labels: IntArray | None = None,
        n_threads: int | None = None,
        origin: int = 0,
    ) -> None:
        self.sparse = not isinstance(X, np.ndarray) and bool(sp.issparse(X))
        if self.sparse and X.format != "csr":
            X = X.tocsr()
        native = _native(X)
        size = 12 * int(X.nnz) if self.sparse else 8 * X.shape[0] * X.shape[1]
        if not native and size <= CONVERT_BYTES:
            X, native = _converted(X), True
        super().__init__(X, Targets.of(X.shape[0], sign, offset, weight, labels), n_threads)
        self.n_entries = int(X.nnz) if self.sparse else self.n * self.d
        self.edges = (
            sparse_edges(self.n, self.n_entries, X.indptr.astype(np.int64, copy=False))
            if self.sparse
            else dense_edges(self.n, self.d, X.dtype.itemsize)
        )
        self.one_block, self._origin = len(self.edges) == 2, origin
        self._opened: list[Block | None] = [None] * (len(self.edges) - 1)
        self._pool: ThreadPoolExecutor | None = None
        self._owner = 0  # id of the process that started the threads
        self.whole = self._block(kernel_rows(X), 0, np.zeros, origin) if native else None

    def _open(self, k: int) -> Block:
        lo, hi = self.edges[k], self.edges[k + 1]
        if self.whole is not None:
            block = self._opened[k]
            if block is None:
                block = self._opened[k] = self.whole.between(lo, hi)
            return block
        return self._block(kernel_rows(_converted(self.X[lo:hi])), lo, np.zeros, self._origin)

    def sum(self, fn: Sum, size: int, **notes: Unpack[PassNotes]) -> FloatArray:
        if self.one_block:
            check()
            out = np.zeros(size)
            fn(self._open(0), out)
            return out
        return self.sums([(fn, size)])[0]

    def sums(
        self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[PassNotes]
    ) -> list[FloatArray]:
        openers = [self._open] * self.n_threads
        return add_up(wanted, len(self.edges) - 1, self.n_entries, openers, self._threads)

    def sample(self, rows: IntArray, factor: FloatArray | None = None) -> Memory:
        by_index = self.whole is None or self.sparse
        X = self.X[rows] if by_index else _take(self.X, rows)
        return Memory(X, *self.targets.take(rows, factor), n_threads=self.n_threads)

    def reweighted(self, factor: FloatArray) -> Memory:
        """Return a data set of the same rows with weights multiplied by ``factor``."""
        return Memory(self.X, *self.targets.take(slice(None), factor), n_threads=self.n_threads)

    def columns(self, chosen: IntArray) -> Memory:
        """Copy the chosen features, to a dense array if more than the fraction FILLED is nonzero."""
        X = filled(self.X[:, chosen])
        if sp.issparse(X):
            X.sort_indices()  # scipy may return unsorted indices for wide rows
        return Memory(X, *self.targets, n_threads=self.n_threads)

    def _threads(self) -> ThreadPoolExecutor:
        """Return the thread pool of this process; a forked child does not inherit its parent's threads."""
        if self._pool is None or self._owner != os.getpid():
            self._pool = ThreadPoolExecutor(self.n_threads - 1, "linsep")
            self._owner = os.getpid()
        return self._pool

    def close(self) -> None:
        """Stop the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
