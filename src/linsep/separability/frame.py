"""Coordinates in which the sampled rows are centred, of unit spread in every feature, and of unit length.

None of this affects separability: a_i may be multiplied by any positive number, and theta expressed in any basis.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray, IntArray, dense
from linsep.separability.rows import ROUNDOFF, SignedRows

_WIDE = 1e250  # ratio of weights beyond which scaling to order 1 would underflow


@dataclass(frozen=True, eq=False)
class Frame:
    """Change of coordinates: x becomes ((x - centre) / spread, shift), signed and scaled to unit length."""

    rows: SignedRows
    centre: FloatArray
    spread: FloatArray
    shift: float

    @classmethod
    def of(cls, rows: SignedRows, sample: IntArray) -> Frame:
        """Take centre and spread from a sample; sparse rows are not centred."""
        X = rows.features(sample)
        d = X.shape[1]
        centre = np.zeros(d)
        if sp.issparse(X):
            spread = np.sqrt(np.asarray(X.multiply(X).mean(axis=0)).ravel())
        else:
            largest = np.abs(X).max(axis=0, initial=0.0)
            scale = np.where(largest > 0, largest, 1.0)
            scaled = X / scale
            if rows.fit_intercept:
                centre = scaled.mean(axis=0)
            spread = scale * np.sqrt(((scaled - centre) ** 2).mean(axis=0))
            centre = scale * centre
            spread = np.where(spread > 1e-14 * largest, spread, largest)
        spread = np.where(spread > 0, spread, 1.0)
        return cls(
            rows, centre, spread, max(1.0, float(np.sqrt(min(d, X.size / max(1, len(sample))))))
        )

    @property
    def order(self) -> int:
        """Number of coordinates."""
        return len(self.spread) + int(self.rows.fit_intercept)

    def error(self) -> float:
        """Rounding error of the coordinates of a row: of the size of its features, in units of their spread."""
        centred = np.abs(self.centre) / self.spread
        return ROUNDOFF * (1.0 + float(centred.max(initial=0.0)))

    def vectors(self, sample: IntArray) -> tuple[FloatArray, FloatArray]:
        """Unit vectors of some rows, and their lengths before scaling (1 for a zero row)."""
        X = dense(self.rows.features(sample))
        A = np.empty((len(sample), self.order))
        A[:, : X.shape[1]] = (X - self.centre) / self.spread
        if self.rows.fit_intercept:
            A[:, -1] = self.shift
        lengths = np.sqrt(np.einsum("ij,ij->i", A, A))
        lengths = np.where(lengths > 0, lengths, 1.0)
        A *= (self.rows.data.sign[sample] / lengths)[:, None]
        return A, lengths

    def theta(self, phi: FloatArray) -> FloatArray:
        """(w, b) in the original coordinates, scaled to a largest entry of order 1."""
        theta = self._unscale(phi)
        return theta / _power_near(theta)

    def noise(self, phi: FloatArray) -> FloatArray:
        """Bounds (|dw|, |db|) on the error of ``theta(phi)`` due to rounding errors of phi, relative to its length."""
        d = len(self.spread)
        size = float(np.sqrt(phi @ phi))
        noise = np.zeros(d + 1)
        noise[:d] = size / self.spread
        if self.rows.fit_intercept:
            noise[d] = size * self.shift + np.abs(self.centre) @ noise[:d]
        return noise / _power_near(self._unscale(phi))

    def _unscale(self, phi: FloatArray) -> FloatArray:
        d = len(self.spread)
        theta = np.zeros(d + 1)
        theta[:d] = phi[:d] / self.spread
        if self.rows.fit_intercept:
            theta[d] = self.shift * phi[d] - self.centre @ theta[:d]
        return theta


def _power_near(theta: FloatArray) -> float:
    """Power of two near the largest weight (the intercept if w = 0); 1 if scaling would underflow."""
    largest = float(np.abs(theta[:-1]).max(initial=0.0) or np.abs(theta).max())
    least = float(np.abs(theta[theta != 0]).min(initial=np.inf))
    if not 0.0 < largest < _WIDE * least:
        return 1.0
    return float(2.0 ** min(float(np.round(np.log2(largest))), 1023.0))
