"""Vectors as long as the data, in nameless files, so that only the parts in use are in memory.

A vector of one number per row takes 8 GB for 10^9 rows. Here it lies in a temporary file that is mapped; a pass gives
the pages of a block back to the system when it is done with the block. Short vectors stay in memory.
"""

from __future__ import annotations

import mmap
import tempfile
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray

_SHORT = 1 << 20  # bytes up to which vectors stay in memory


def zeros(shape: tuple[int, ...]) -> FloatArray:
    """Array of zeros, in a mapped file if it is long."""
    return _make(shape, np.dtype(np.float64))


def moved(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values, copied to a mapped file if they are many and are not in one."""
    if values.nbytes <= _SHORT or _map_of(values) is not None:
        return values
    out = _make(values.shape, values.dtype)
    out[...] = values
    release(out)
    return out


def in_memory(values: npt.NDArray[Any]) -> npt.NDArray[Any]:
    """The values, copied from a mapped file if they are in one."""
    return values if _map_of(values) is None else values.copy()


def release(values: npt.NDArray[Any]) -> None:
    """Give the pages of an array back to the system, if it is in a mapped file. Its numbers stay as they are."""
    pages = _map_of(values)
    if pages is None or not values.size or not hasattr(mmap, "MADV_DONTNEED"):
        return
    if values.ndim > 1 and not values.flags.c_contiguous:
        for row in values:
            release(row)
        return
    first = values.ctypes.data - np.frombuffer(pages, np.uint8).ctypes.data
    start = first // mmap.PAGESIZE * mmap.PAGESIZE
    pages.madvise(mmap.MADV_DONTNEED, start, first + values.nbytes - start)


def _make(shape: tuple[int, ...], dtype: np.dtype[Any]) -> npt.NDArray[Any]:
    if dtype.itemsize * int(np.prod(shape, dtype=np.int64)) <= _SHORT:
        return np.zeros(shape, dtype)
    with tempfile.TemporaryFile(prefix="linsep-") as file:  # the map outlives the file's name
        return np.asarray(np.memmap(file, dtype, "w+", shape=shape))


def _map_of(values: npt.NDArray[Any]) -> mmap.mmap | None:
    base: Any = values
    while isinstance(base, np.ndarray):
        base = base.base
    return base if isinstance(base, mmap.mmap) else None
