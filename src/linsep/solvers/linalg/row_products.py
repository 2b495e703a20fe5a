"""Inner products of all pairs of rows, in slices and calls that Ctrl-C can end."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.interrupts import dense_product, slices


def centred_rows(X: Any, centre: FloatArray) -> Any:
    """Copy of dense rows minus their centre, in float64; sparse rows, whose centre is 0, as they are."""
    if sp.issparse(X):
        return X.astype(np.float64, copy=False)
    rows = np.empty(X.shape)
    for some in slices(*X.shape):
        np.subtract(X[some], centre, out=rows[some])
    return rows


def row_products(X: Any) -> FloatArray:
    """X X', dense."""
    return np.asarray((X @ X.T).toarray() if sp.issparse(X) else dense_product(X, X.T))
