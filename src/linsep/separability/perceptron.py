"""Perceptron passes over rows in memory: a cheap test for linear separability.

A row on the wrong side, or on the hyperplane, adds its signed unit vector to theta. Each pass visits all rows in a new
random order; a pass without an update means that a separating hyperplane was found.

Reference: Rosenblatt, The perceptron: a probabilistic model for information storage and organization in the
brain, 1958.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray
from linsep.data import Dataset

_ENTRIES_PER_CALL = 4_000_000  # about 10 ms, so that Ctrl-C is handled between calls


def passes(data: Dataset, fit_intercept: bool, seed: int) -> Iterator[tuple[int, FloatArray]]:
    """Yield the number of updates of each pass, and theta after it.

    Yields nothing if the rows are not in one block of memory, or if a row is zero or too large to square.
    """
    block = data.whole
    if block is None:
        return
    theta, lengths, order = np.zeros(data.d + 1), np.zeros(data.n), np.arange(data.n)
    _kernels.row_norms(block.rows, 0, data.n, lengths)
    lengths += float(fit_intercept)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return
    counts = np.array([0, 0, 0, 0, -1])  # place, visits since the last update, updates, visits
    at_once = max(1, _ENTRIES_PER_CALL * data.n // max(1, data.n_entries))
    while True:
        _kernels.shuffle(order, seed)
        before, counts[:2], end = int(counts[2]), 0, int(counts[3]) + data.n
        while counts[3] < end:
            _kernels.perceptron(
                block.rows,
                data.sign,
                lengths,
                select="listed",
                normalised=True,
                intercept=fit_intercept,
                online=False,
                max_updates=2**62,
                budget=min(at_once, end - int(counts[3])),
                order=order,
                theta=theta,
                counts=counts,
                numbers=np.zeros(2),
                updated=np.zeros(0, np.int64),
                norms=np.zeros(0),
                sum=None,
            )
        yield int(counts[2]) - before, theta
        seed += 1
