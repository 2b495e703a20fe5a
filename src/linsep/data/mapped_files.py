"""Safe reading of memory-mapped arrays whose file another program may truncate meanwhile.

Without protection, reading a page beyond the end of the file would end the process with SIGBUS.
"""

from __future__ import annotations

import mmap
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import memory_owner
from linsep.errors import BadInput


class _Watched:
    """Memory of a mapped array, read through a NumPy view; pages that the file has lost read as NaN."""

    def __init__(self, X: Any, mapped: mmap.mmap) -> None:
        self._X = X  # keeps the memory alive
        self._watch = _kernels.MappedFile(np.frombuffer(mapped, np.uint8))
        self.__array_interface__ = X.__array_interface__
        self.mapped = mapped

    @property
    def truncated(self) -> bool:
        return self._watch.cut


_MAPS = (mmap.mmap, _Watched)


def watch(X: Any) -> Any:
    """Return X, or a view of it that is safe to read if X is memory-mapped. Raise if the file is already too short.

    Lost pages read as NaN, which integers cannot represent: after reading integers, call :func:`require_untruncated`.
    """
    owner = _map_of(X)
    if owner is None:
        return X if isinstance(X, np.ndarray) or not sp.issparse(X) else _watch_sparse(X)
    require_untruncated(X)
    if isinstance(owner, _Watched):
        return X
    view = np.asarray(_Watched(X, owner))
    return view if view.dtype == X.dtype else view.view(X.dtype)


def _watch_sparse(X: Any) -> Any:
    """Return X, or a matrix with watched values and copied indices, because kernels use indices as addresses."""
    parts = (X.data, X.indices, X.indptr) if X.format in ("csr", "csc") else ()
    if not any(_map_of(part) is not None for part in parts):
        return X
    data, indices, indptr = map(watch, parts)
    copies = indices.copy(), indptr.copy()
    require_untruncated(indices)
    require_untruncated(indptr)
    return type(X)((data, *copies), shape=X.shape)


def require_untruncated(X: Any) -> None:
    """Raise if X is mapped from a file that is truncated now or was when it was read."""
    owner = _map_of(X if isinstance(X, np.ndarray) or not sp.issparse(X) else X.data)
    if owner is None:
        return
    watched = isinstance(owner, _Watched)
    mapped = owner.mapped if watched else owner
    try:
        size = mapped.size()
    except (OSError, ValueError):  # an anonymous map, not of a file
        return
    if size >= len(mapped) and not (watched and owner.truncated):
        return
    what = (
        f"is shorter now than when it was mapped ({size:,} bytes, not {len(mapped):,})"
        if size < len(mapped)
        else "was cut short while it was read"
    )
    raise BadInput(
        f"X is mapped from a file that {what}; write the file again and map it again, or open it with linsep.scan, "
        "which reads it safely while others write."
    )


def _map_of(X: Any) -> Any:
    """Return the memory map that X is part of, or None."""
    if type(X) is np.ndarray and X.base is None:  # the usual case, without the loop
        return None
    owner = memory_owner(X)
    return owner if isinstance(owner, _MAPS) else None
