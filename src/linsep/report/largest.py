"""Selection of the few largest of many numbers, computed piece by piece."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np

from linsep.arrays import FloatArray, IntArray

_TOGETHER = 1 << 16  # numbers per piece


def pieces(n: int) -> Iterator[slice]:
    """Iterate over slices of bounded length that cover n numbers."""
    for low in range(0, n, _TOGETHER):
        yield slice(low, min(n, low + _TOGETHER))


def largest(sizes: Callable[[slice], FloatArray], n: int, most: int) -> IntArray:
    """Return the positions of the largest of n numbers, largest first, ties in increasing order; -inf is ignored."""
    best, at = np.empty(0), np.empty(0, np.intp)
    for here in pieces(n):
        best = np.append(best, sizes(here))
        at = np.append(at, np.arange(here.start, here.stop))
        first = np.argsort(-best, kind="stable")[:most]
        best, at = best[first], at[first]
    return np.asarray(at[best > -np.inf])
