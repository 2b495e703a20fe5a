"""Gram matrices: inner products of rows, and sums h x~ x~' from the triangles that the kernels compute."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import BoolArray, FloatArray


@dataclass(frozen=True, eq=False)
class GramRows:
    """Inner products K of rows relative to a centre, with the sign, offset and weight of each row.

    ``d`` is the number of terms in each inner product, ``centre_norm`` the Euclidean norm of the centre.
    """

    K: FloatArray
    d: int
    centre_norm: float
    sigma: FloatArray
    offset: FloatArray | None
    weight: FloatArray | None


#: Variance of a column, relative to its mean square, that is rounding noise.
CONSTANT = 1e-24


def constant_columns(H: FloatArray, mu: FloatArray) -> BoolArray:
    """Return which columns of the rows (x - mu, 1) with Gram matrix H duplicate the intercept, up to rounding."""
    spread = np.sqrt(np.diag(H))
    return np.append(spread[:-1] <= math.sqrt(CONSTANT) * np.abs(mu) * spread[-1], False)


def symmetric(G: FloatArray, sparse: bool) -> FloatArray:
    """Return the full symmetric matrices for G (..., m, m) as summed by a kernel.

    Kernels for dense rows fill the upper triangle; kernels for sparse rows add each pair once, to either triangle.
    """
    upper = G if sparse else np.triu(G, 1)
    full: FloatArray = upper + upper.swapaxes(-1, -2)
    i = np.arange(G.shape[-1])
    full[..., i, i] = G[..., i, i]
    return full
