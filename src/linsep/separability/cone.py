"""Decide whether vectors lie strictly on one side of a hyperplane, or 0 lies in their convex hull.

Exactly one of the two holds (Gordan 1873). Nonnegative least squares decides which (Lawson and Hanson 1974, ch. 23):

    min |sum_i x_i (a_i, 1) - (0, 1)|   over x >= 0,     residual r = (0, 1) - sum_i x_i (a_i, 1).

If r = 0, the x_i are weights that sum to 1 with sum x_i a_i = 0: a witness of inseparability. Otherwise theta = -r_a
has a_i.theta >= |r|^2 > 0 for every i: a separator. At most p + 1 of the x_i are positive.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray

#: |r| for unit vectors below which it may be rounding noise.
ZERO = 1e-12
_STEPS = 1000  # per native call, at most


class Split(NamedTuple):
    """Result: weights x, theta, and |r|, which is about the cosine margin of theta."""

    weights: FloatArray
    theta: FloatArray
    residual: float

    @property
    def separated(self) -> bool:
        """Whether theta separates, up to rounding."""
        return self.residual > ZERO


def witness_or_separator(A: FloatArray, start: FloatArray | None = None) -> Split:
    """Find a separator of the rows of A (m, p) or a witness against it; the rows should have about unit length."""
    m, p = A.shape
    E = np.empty((m, p + 1))
    E[:, :p] = A
    E[:, p] = 1.0
    x = np.zeros(m) if start is None else np.array(start, dtype=np.float64)
    f, r = np.zeros(p + 1), np.zeros(p + 1)
    f[p] = 1.0
    for _ in range(2 + 20 * (m + p) // _STEPS):  # each call starts with a fresh factorisation
        status, _ = _kernels.nnls(E, f, 0.1 * ZERO, _STEPS, x, r)
        if status != 2:
            break
    return Split(x, -r[:p], float(np.sqrt(r @ r)))
