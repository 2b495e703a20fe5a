"""Array types, and helpers that accept dense and sparse rows."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]
BoolArray = npt.NDArray[np.bool_]

#: NumPy types whose values float32 represents exactly
EXACT_IN_FLOAT32 = (
    *("bool", "int8", "uint8", "int16", "uint16"),
    *("float16", "bfloat16", "float32"),
)


def stack_rows(parts: Sequence[Any]) -> Any:
    """Concatenate parts along the rows, dense or CSR; None if they are None."""
    if parts[0] is None:
        return None
    return sp.vstack(parts, format="csr") if sp.issparse(parts[0]) else np.concatenate(parts)


def dense(X: Any) -> Any:
    """Return X as a dense array; X itself if it is not sparse."""
    return X.toarray() if sp.issparse(X) else X


def squares(X: Any) -> Any:
    """Elementwise squares of X, sparse if X is."""
    return X.multiply(X) if sp.issparse(X) else X * X


def embed(W: FloatArray, chosen: IntArray, d: int) -> FloatArray:
    """Return coefficients of d features and the intercept, from those of the chosen features; 0 for the others."""
    out = np.zeros((d + 1, *W.shape[1:]))
    out[chosen], out[-1] = W[:-1], W[-1]
    return out


def mix_bits(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.uint64]:
    """Return 64-bit hashes of integers: the finaliser of SplitMix64 (Steele, Lea and Flood, 2014)."""
    z = (z ^ (z >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    z = (z ^ (z >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return np.asarray(z ^ (z >> np.uint64(31)))


def memory_owner(X: Any) -> Any:
    """Return the object that owns the memory of X: the last one in its chain of ``base`` attributes."""
    while isinstance(X, np.ndarray):
        X = X.base
    return X


def n_entries(X: Any) -> int:
    """Return the number of stored entries of X."""
    return int(X.nnz if type(X) is not np.ndarray and sp.issparse(X) else X.size)
