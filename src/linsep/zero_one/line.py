"""One feature: try every threshold in both directions, exactly, by comparing floats and adding integers."""

from __future__ import annotations

from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray

_HUGE = 2.0**1022  # differences of numbers up to this size do not overflow


def best_threshold(x: FloatArray, signed_units: Any) -> tuple[int, BoolArray]:
    """Smallest number of error units of sign(+-(x - t)), and a mask of the points then predicted +1.

    ``signed_units`` is sign times weight, as integers. Thresholds lie between distinct values, or beyond all of them.
    """
    order = np.argsort(x, kind="stable")
    values, c = x[order], signed_units[order]
    # whether a threshold may lie before entry j
    cut = np.concatenate([[True], values[1:] > values[:-1], [True]])
    below = np.zeros(len(c) + 1, dtype=c.dtype)
    below[1:] = np.cumsum(c)
    total, size = int(below[-1]), int(np.abs(c).sum())
    agreement = total - 2 * below  # +1 above the threshold
    at = int(np.argmax(np.where(cut, np.abs(agreement), -1)))
    upward = agreement[at] >= 0
    positive = np.zeros(len(x), dtype=bool)
    positive[order[at:] if upward else order[:at]] = True
    return (size - abs(int(agreement[at]))) // 2, positive


def threshold_plane(x: FloatArray, positive: BoolArray) -> FloatArray:
    """(w, b) with w x + b >= 0 exactly for the positive points, which lie all above or all below the others.

    w is a power of two, so that the score is rounded once and its sign is correct. Between adjacent floats there is no
    threshold; the nearest positive point is used instead, whose score is then 0.
    """
    if positive.all() or not positive.any():
        return np.array([0.0, 1.0 if positive.all() else -1.0])
    upward = x[positive].min() > x[~positive].max()
    inner = float(x[positive].min() if upward else x[positive].max())
    outer = float(x[~positive].max() if upward else x[~positive].min())
    middle = 0.5 * inner + 0.5 * outer
    if middle == outer:
        middle = inner
    size = 1.0 if max(float(np.abs(x).max()), abs(middle)) < _HUGE else 0.25
    return np.array([size, -size * middle]) if upward else np.array([-size, size * middle])
