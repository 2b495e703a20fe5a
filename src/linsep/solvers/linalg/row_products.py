"""Gram matrix of the rows, computed in slices and calls that Ctrl-C can interrupt."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.interrupts import dense_product, slices


def centred_rows(X: Any, centre: FloatArray) -> Any:
    """Return a float64 copy of dense rows minus ``centre``; sparse rows, whose centre is 0, without centring."""
    if sp.issparse(X):
        return X.astype(np.float64, copy=False)
    rows = np.empty(X.shape)
    for some in slices(*X.shape):
        np.subtract(X[some], centre, out=rows[some])
    return rows


def row_products(X: Any) -> FloatArray:
    """Return the Gram matrix X X' as a dense array."""
    return np.asarray((X @ X.T).toarray() if sp.issparse(X) else dense_product(X, X.T))
