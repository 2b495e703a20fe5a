"""Vectors with one entry per row in memory-mapped temporary files, so that only the parts in use are in memory.

A vector of one number per row takes 8 GB for 10^9 rows. It is stored in an unnamed temporary file that is mapped; a
pass releases the pages of a block when it has processed the block. Short vectors stay in memory.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray, memory_owner

_SHORT = 1 << 20  # bytes up to which vectors stay in memory
_PIECE = 1 << 20  # bytes of a vector copied together
#: Bytes around an address that Linux maps with it, so that released pages before it come back.
_MAPPED_TOGETHER = 1 << 16


def zeros(shape: tuple[int, ...]) -> FloatArray:
    """Return an array of zeros, in a mapped file if it is long."""
    return _make(shape, np.dtype(np.float64))


def moved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values, copied to a mapped file if they are long and not yet in one."""
    if values.nbytes <= _SHORT or _map_of(values) is not None:
        return values
    out = _make(values.shape, values.dtype)
    source, copy = values.reshape(-1), out.reshape(-1)
    step = _PIECE // values.itemsize
    for low in range(0, len(copy), step):
        copy[low : low + step] = source[low : low + step]
        release(copy[low : low + step])
    return out


def in_memory(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """Return the values, copied to memory if they are in a mapped file."""
    return values if _map_of(values) is None else values.copy()


def release(values: npt.NDArray[Any]) -> None:
    """Release the pages of an array to the operating system if it is in a mapped file. Its values are kept."""
    pages = _map_of(values)
    if pages is None or not values.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    if values.ndim > 1 and not values.flags.c_contiguous:
        for row in values:
            release(row)
        return
    first = values.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    start = max(0, first - _MAPPED_TOGETHER) // mmap.PAGESIZE * mmap.PAGESIZE
    pages.madvise(mmap.MADV_DONTNEED, start, first + values.nbytes - start)


def _make(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.itemsize * int(np.prod(shape, dtype=np.int64)) <= _SHORT:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="linsep-") as file:  # the map stays valid after the close
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def _map_of(values: npt.NDArray[Any]) -> mmap.mmap | None:
    if values.base is None:  # it owns its memory
        return None
    owner = memory_owner(values)
    return owner if isinstance(owner, mmap.mmap) else None
