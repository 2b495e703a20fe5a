"""Data in memory: read where they lie, by a few threads."""

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
from linsep.data.block import Block, FloatArray
from linsep.data.dataset import Dataset, Notes, Sum
from linsep.data.layout import Edges, dense_edges, longest_sum, sparse_edges
from linsep.data.ordered_sum import add_up
from linsep.data.threads import usable_threads

if TYPE_CHECKING:
    from typing import Unpack

CONVERT_BYTES = 32 << 20  # other layouts up to this size are converted once, larger ones by block
FILLED = 0.2  # share of nonzeros from which a few columns are better stored in full
_EXACT_IN_SINGLE = ("bool", "int8", "uint8", "int16", "uint16", "float16")


def _native(X: Any) -> bool:
    """Whether the kernels can read X as it is."""
    kind = X.dtype
    if kind.char not in "fd" or not kind.isnative:
        return False
    return (
        X.flags.c_contiguous if isinstance(X, np.ndarray) else sp.issparse(X) and X.format == "csr"
    )


def _converted(X: Any) -> Any:
    """X (or some of its rows) in a layout the kernels read; small integers fit float32 exactly."""
    kind = np.float32 if X.dtype.name in (*_EXACT_IN_SINGLE, "float32") else np.float64
    if sp.issparse(X):
        return X.tocsr().astype(kind, copy=False)
    return np.ascontiguousarray(X, dtype=kind)


def filled(X: Any) -> Any:
    """X, dense if a good part of it is not zero."""
    if not sp.issparse(X) or X.nnz <= FILLED * X.shape[0] * X.shape[1]:
        return X
    return X.toarray()


def readable(X: Any) -> Any:
    """X whole in a layout the kernels read: X itself if it is in one, else converted, whatever its size."""
    return X if _native(X) else _converted(X)


def kernel_rows(X: Any) -> _kernels.Rows:
    """X, dense or CSR, as the kernels read it."""
    if not isinstance(X, np.ndarray):
        indices, indptr = X.indices, X.indptr
        if indices.dtype != indptr.dtype:
            indices, indptr = indices.astype(np.int64), indptr.astype(np.int64)
        return _kernels.Rows(X.data, indices, indptr, X.shape[1])
    return _kernels.Rows(X)


def room(
    kept: dict[str, FloatArray],
    n: int,
    planes: Callable[[int, int], FloatArray],
    part: slice,
    name: str,
    k: int | None = None,
) -> FloatArray:
    """Room for one number per row of the part, or for k, made on first use.

    It must not know the data set, which knows its blocks: rows would stay in memory until the next search for cycles.
    """
    found = kept.get(name)
    if found is None:
        found = kept.setdefault(name, np.zeros(n) if k is None else planes(k, n))
    return found[..., part]


def _planes(k: int, n: int) -> FloatArray:
    return np.empty((k, n))


class Memory(Dataset):
    """Rows in memory. C-ordered float32/float64 arrays and CSR matrices are never copied.

    Other layouts (Fortran order, integers, float16) are converted block by block in every pass,
    so that a fit needs little memory beside the data.
    """

    def __init__(
        self,
        X: Any,
        sign: FloatArray | None = None,
        offset: FloatArray | None = None,
        weight: FloatArray | None = None,
        labels: npt.NDArray[np.int64] | None = None,
        n_threads: int | None = None,
        origin: int = 0,
    ) -> None:
        self.origin = origin  # of a larger data set, the number of the first row here
        self.n, self.d = int(X.shape[0]), int(X.shape[1])
        self._sparse = not isinstance(X, np.ndarray) and bool(sp.issparse(X))
        if self._sparse and X.format != "csr":
            X = X.tocsr()
        native = _native(X)
        if not native and self._size_of(X) <= CONVERT_BYTES:
            X, native = _converted(X), True
        self.X = X
        self._sign = np.ones(self.n) if sign is None else np.ascontiguousarray(sign, float)
        self.offset, self._weight, self.labels = offset, weight, labels
        self.n_threads = usable_threads() if n_threads is None else n_threads
        self._kept: dict[str, FloatArray] = {}
        self._pool: ThreadPoolExecutor | None = None
        self._owner = 0  # the process whose threads these are
        self._edges = self._block_edges()
        self._whole = self._block(kernel_rows(X), 0, self.n, 0) if native else None

    def _size_of(self, X: Any) -> int:
        return 12 * int(X.nnz) if self._sparse else 8 * self.n * self.d

    @property
    def n_entries(self) -> int:
        return int(self.X.nnz) if self.sparse else self.n * self.d

    @property
    def sparse(self) -> bool:
        return self._sparse

    @property
    def sign(self) -> FloatArray:
        return self._sign

    @property
    def weight(self) -> FloatArray | None:
        return self._weight

    def longest_sum(self, size: int) -> int:
        return longest_sum(self._edges, self.n_entries, size)

    def _block_edges(self) -> Edges:
        """Row numbers where blocks begin, and n."""
        if self.sparse:
            return sparse_edges(self.X.indptr)
        return dense_edges(self.n, self.d, self.X.dtype.itemsize)

    def _block(self, rows: _kernels.Rows, lo: int, hi: int, first: int) -> Block:
        part = slice(first, first + rows.n)
        offset = None if self.offset is None else self.offset[part]
        weight = None if self._weight is None else self._weight[part]
        labels = None if self.labels is None else self.labels[part]
        targets = _kernels.Targets(self._sign[part], offset, weight)
        return Block(
            rows=rows,
            targets=targets,
            sign=self._sign[part],
            offset=offset,
            weight=weight,
            labels=labels,
            lo=lo,
            hi=hi,
            first=self.origin + first,
            kept=partial(room, self._kept, self.n, _planes, part),
        )

    def _open(self, k: int) -> Block:
        lo, hi = self._edges[k], self._edges[k + 1]
        whole = self._whole
        if whole is None:  # convert this block alone
            return self._block(kernel_rows(_converted(self.X[lo:hi])), 0, hi - lo, lo)
        if (lo, hi) == (whole.lo, whole.hi):
            return whole
        return Block(
            whole.rows,
            whole.targets,
            whole.sign,
            whole.offset,
            whole.weight,
            whole.labels,
            lo,
            hi,
            whole.first,
            whole.kept,
        )

    def sum(self, fn: Sum, size: int, **notes: Unpack[Notes]) -> FloatArray:
        if len(self._edges) == 2:
            out = np.zeros(size)
            fn(self._open(0), out)
            return out
        return self.sums([(fn, size)])[0]

    def sums(self, wanted: Sequence[tuple[Sum, int]], **notes: Unpack[Notes]) -> list[FloatArray]:
        openers = [self._open] * self.n_threads
        return add_up(wanted, len(self._edges) - 1, self.n_entries, openers, self._threads)

    def sample(self, rows: npt.NDArray[np.int64], share: FloatArray | None = None) -> Memory:
        """The given rows as a small data set of their own."""
        weight = None if self._weight is None else self._weight[rows]
        if share is not None:
            weight = share if weight is None else weight * share
        return Memory(
            self.X[rows] if self._whole is None or self.sparse else np.take(self.X, rows, axis=0),
            self._sign[rows],
            None if self.offset is None else self.offset[rows],
            weight,
            None if self.labels is None else self.labels[rows],
            n_threads=self.n_threads,
        )

    def reweighted(self, share: FloatArray) -> Memory:
        """The same rows, their weights multiplied by ``share``."""
        weight = share if self._weight is None else self._weight * share
        return Memory(self.X, self._sign, self.offset, weight, self.labels, self.n_threads)

    def columns(self, chosen: npt.NDArray[np.int64]) -> Memory:
        """A copy of them, dense if they are mostly filled."""
        X = filled(self.X[:, chosen])
        if sp.issparse(X):
            X.sort_indices()  # rows with many columns may come unsorted
        return Memory(X, self._sign, self.offset, self._weight, self.labels, self.n_threads)

    @property
    def whole(self) -> Block | None:
        return self._whole

    @property
    def one_block(self) -> bool:
        """Whether the rows are a single block."""
        return len(self._edges) == 2

    def first_rows(self) -> _kernels.Rows:
        return self._open(0).rows

    def planes(self, k: int) -> FloatArray:
        return _planes(k, self.n)

    def place(self, name: str, values: FloatArray) -> None:
        self._kept[name] = values

    def fetch(self, name: str) -> FloatArray:
        return self._kept[name]

    def _threads(self) -> ThreadPoolExecutor:
        """The helpers of this process: a forked child does not inherit its parent's."""
        if self._pool is None or self._owner != os.getpid():
            self._pool = ThreadPoolExecutor(self.n_threads - 1, "linsep")
            self._owner = os.getpid()
        return self._pool

    def close(self) -> None:
        """End the threads."""
        if self._pool is not None:
            self._pool.shutdown()
            self._pool = None
