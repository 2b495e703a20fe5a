"""The few largest of very many numbers, which are computed some at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterator

import numpy as np
import numpy.typing as npt

from linsep.arrays import FloatArray

_TOGETHER = 1 << 16  # numbers that are looked at together


def pieces(n: int) -> Iterator[slice]:
    """Slices of bounded length that make up n numbers."""
    for low in range(0, n, _TOGETHER):
        yield slice(low, min(n, low + _TOGETHER))


def largest(sizes: Callable[[slice], FloatArray], n: int, most: int) -> npt.NDArray[np.intp]:
    """Positions of the largest of n numbers, largest first, equal ones in rising order; -inf does not count."""
    best, at = np.empty(0), np.empty(0, np.intp)
    for here in pieces(n):
        best = np.append(best, sizes(here))
        at = np.append(at, np.arange(here.start, here.stop))
        first = np.argsort(-best, kind="stable")[:most]
        best, at = best[first], at[first]
    return np.asarray(at[best > -np.inf])
