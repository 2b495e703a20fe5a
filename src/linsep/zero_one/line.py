"""One feature: sort, and try every threshold both ways. Comparisons of floats are exact, so is the answer."""

from __future__ import annotations

import numpy as np

from linsep.zero_one.points import FloatArray, Mask


def best_threshold(x: FloatArray, signed_weight: FloatArray) -> tuple[float, Mask]:
    """Least weight of errors of sign(+-(x - t)), and which points are then predicted +1.

    ``signed_weight`` is sign times weight. Thresholds lie between distinct values, or beyond all of them.
    """
    order = np.argsort(x, kind="stable")
    values, c = x[order], signed_weight[order]
    cut = np.concatenate(
        [[True], np.diff(values) > 0, [True]]
    )  # may a threshold lie before entry j?
    below = np.concatenate([[0.0], np.cumsum(c)])
    total, size = below[-1], float(np.abs(c).sum())
    agreement = np.where(cut, total - 2.0 * below, 0.0)  # +1 above the threshold
    at = int(np.argmax(np.where(cut, np.abs(agreement), -1.0)))
    upward = agreement[at] >= 0.0
    positive = np.zeros(len(x), dtype=bool)
    positive[order[at:] if upward else order[:at]] = True
    return 0.5 * (size - abs(float(agreement[at]))), positive
