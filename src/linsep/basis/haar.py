"""Haar wavelets: the simplest orthonormal functions with local support."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep import arguments
from linsep.basis.base import Basis


class HaarWavelet(Basis):
    """Haar wavelets 2^(l/2) psi(2^l t - k) of t = (x_j - low)/(high - low), l < ``levels``, k < 2^l.

    psi is +1 on [0, 1/2), -1 on [1/2, 1) and 0 elsewhere. With the intercept of the estimator, the
    functions of one feature span all step functions on 2^levels equal cells, and they are
    orthonormal on [0, 1].

    Parameters
    ----------
    levels : int, default 3
        2^levels - 1 functions for each feature, called name_haar<level>_<position>; at most 20 levels.
    sparse_output : bool, default False
        Return CSR: only ``levels`` entries per row and feature are not zero.

    Attributes
    ----------
    low_, high_ : ndarray (d,)
        Range seen in ``fit``. Values outside it, and constant features, are mapped to 0.
    n_features_in_, feature_names_in_

    Raises
    ------
    BadInput
        In ``fit``, if ``levels`` is not between 1 and 20.

    See Also
    --------
    FourierBasis : Waves instead of steps.

    References
    ----------
    Haar, Zur Theorie der orthogonalen Funktionensysteme, Mathematische Annalen 69, 1910.

    Examples
    --------
    >>> from linsep.basis import HaarWavelet
    >>> HaarWavelet(2).fit_transform([[0.0], [1.0], [2.0], [4.0]]).round(3) + 0.0
    array([[ 1.   ,  1.414,  0.   ],
           [ 1.   , -1.414,  0.   ],
           [-1.   ,  0.   ,  1.414],
           [-1.   ,  0.   , -1.414]])
    """

    def __init__(self, levels: int = 3, *, sparse_output: bool = False) -> None:
        self.levels = levels
        self.sparse_output = sparse_output

    def fit(self, X: Any, y: Any = None) -> HaarWavelet:
        """Find the range of each feature."""
        arguments.count("levels", self.levels, "levels", most=20)
        X = self._validate(X, fitting=True)
        self.low_ = X.min(axis=0).astype(np.float64)
        self.high_ = X.max(axis=0).astype(np.float64)
        return self

    def transform(self, X: Any) -> Any:
        """Return the 2^levels - 1 wavelets of every feature, coarse to fine, left to right."""
        wavelets = self._entries(self._validate(X))
        return wavelets if self.sparse_output else wavelets.toarray()

    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        cells = [f"haar{level}_{k}" for level in range(self.levels) for k in range(2**level)]
        return (f"{name}_{cell}" for name in features for cell in cells)

    def _entries(self, X: npt.NDArray[np.floating[Any]]) -> sp.csr_matrix:
        """Return the wavelets as CSR (n, d (2^levels - 1)); a row has one entry per level and feature."""
        n, d = X.shape
        span = self.high_ - self.low_
        t = (X - self.low_) / np.where(span > 0, span, 1.0)
        seen = (t >= 0) & (t <= 1) & (span > 0)
        # the finest cell determines all coarser ones; the right end belongs to the last cell
        fine = np.minimum(
            (np.where(seen, t, 0.0) * 2**self.levels).astype(np.int64), 2**self.levels - 1
        )
        level = np.arange(self.levels)
        half = fine[:, :, None] >> (self.levels - 1 - level)  # index of the half cell at that level
        column = (half >> 1) + 2**level - 1 + np.arange(d)[:, None] * (2**self.levels - 1)
        value = np.where(half & 1, -1.0, 1.0) * 2.0 ** (level / 2) * seen[:, :, None]
        entries = sp.csr_matrix(
            (
                value.astype(X.dtype).ravel(),
                column.ravel(),
                np.arange(n + 1) * (d * self.levels),
            ),
            shape=(n, d * (2**self.levels - 1)),
        )
        entries.eliminate_zeros()
        return entries
