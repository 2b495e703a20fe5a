"""Fourier basis: sines and cosines of each feature."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import arguments
from linsep.basis.base import Basis
from linsep.errors import BadInput

FloatArray = npt.NDArray[np.floating[Any]]


class FourierBasis(Basis):
    """Fourier basis cos(2 pi k t), sin(2 pi k t), k = 1 ... n_frequencies, with t = (x_j - start)/period.

    Parameters
    ----------
    n_frequencies : int, default 3
    period : float or array (d,), optional
        Period of each feature. By default the range seen in ``fit``; pass the true period if there is one
        (24 for hours), and twice the range for a feature that is not periodic.

    Attributes
    ----------
    start_ : ndarray (d,)
        Smallest value seen in ``fit``, where the first period begins.
    period_ : ndarray (d,)
    n_features_in_, feature_names_in_

    Raises
    ------
    BadInput
        In ``fit``, if ``n_frequencies`` or ``period`` is out of range.

    See Also
    --------
    HaarWavelet : Steps instead of waves.
    Polynomial : Powers.

    Notes
    -----
    There are 2 n_frequencies columns for each feature: name_cos1, name_sin1, name_cos2, ... With the intercept of the
    estimator they span the trigonometric polynomials of that degree.

    References
    ----------
    Hastie, Tibshirani and Friedman, The Elements of Statistical Learning, 2009, chapter 5.

    Examples
    --------
    >>> from linsep.basis import FourierBasis
    >>> FourierBasis(1, period=24.0).fit([[0.0]]).transform([[6.0], [30.0]]).round(3) + 0.0
    array([[0., 1.],
           [0., 1.]])
    """

    def __init__(self, n_frequencies: int = 3, *, period: Any = None) -> None:
        self.n_frequencies = n_frequencies
        self.period = period

    def fit(self, X: Any, y: Any = None) -> FourierBasis:
        """Determine the start and the period of each feature."""
        arguments.count("n_frequencies", self.n_frequencies, "frequencies")
        X = self._validate(X, fitting=True)
        self.start_ = X.min(axis=0).astype(np.float64)
        self.period_ = self._period(X.max(axis=0) - self.start_)
        return self

    def transform(self, X: Any) -> FloatArray:
        """Return the cosines and sines, feature by feature, lowest frequency first."""
        X = self._validate(X)
        k = np.arange(1, self.n_frequencies + 1)
        angle = 2 * np.pi * ((X - self.start_) / self.period_)[:, :, None] * k
        waves = np.stack([np.cos(angle), np.sin(angle)], axis=-1)
        return waves.reshape(len(X), -1).astype(X.dtype, copy=False)

    def _names(self, features: npt.NDArray[np.object_]) -> Iterable[str]:
        waves = [f"{wave}{k + 1}" for k in range(self.n_frequencies) for wave in ("cos", "sin")]
        return (f"{name}_{wave}" for name in features for wave in waves)

    def _period(self, span: FloatArray) -> npt.NDArray[np.float64]:
        if self.period is None:
            return np.where(span > 0, span, 1.0)
        period = np.asarray(self.period, dtype=np.float64)
        if period.shape not in ((), span.shape) or not ((period > 0) & np.isfinite(period)).all():
            raise BadInput(
                f"period must be a positive number, or one for each of {len(span)} features, "
                f"got {self.period!r}."
            )
        return np.broadcast_to(period, span.shape).copy()
