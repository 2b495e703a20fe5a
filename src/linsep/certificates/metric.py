"""The yardstick of the local certificate: a norm in which the objective is nearly round."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linsep.problem.closing_rows import ROUNDOFF

FloatArray = npt.NDArray[np.float64]

#: Radii that are tried, in units of mu.
_RADII = (4.0, 16.0, 64.0)


@dataclass(frozen=True, eq=False)
class Metric:
    """A norm |.|_M given by T with |T y|_M = |y|, so that M^-1 = T T' on the range of T.

    ``error`` bounds the relative error of the singular values of H^1/2 T, H the true Hessian, so that
    T'HT >= (1 - error)^2. ``scale`` and the orthonormal rows ``seen`` describe the range of M.
    """

    T: FloatArray
    scale: FloatArray
    seen: FloatArray
    error: float

    @classmethod
    def from_factor(cls, R: FloatArray, steps: int) -> Metric:
        """From R'R = H, with R made by ``steps`` orthogonal transformations."""
        size = R.shape[1]
        scale = np.sqrt((R * R).sum(axis=0))
        scale[scale == 0.0] = 1.0
        _, sigma, Vt = np.linalg.svd(R / scale, full_matrices=False)
        keep = sigma > 32.0 * size * ROUNDOFF * sigma.max(initial=0.0)
        sigma, Vt = sigma[keep], Vt[keep]
        # A Householder step perturbs each column by a small multiple of size * u of its norm.
        error = 8.0 * size * math.sqrt(steps) * ROUNDOFF / sigma.min(initial=math.inf)
        return cls((Vt.T / sigma) / scale[:, None], scale, Vt, error)

    @classmethod
    def from_gram(cls, H: FloatArray, accuracy: float) -> Metric:
        """From H itself, known to ``accuracy`` relative to its diagonal."""
        size = len(H)
        scale = np.sqrt(np.diagonal(H))
        scale[scale == 0.0] = 1.0
        values, V = np.linalg.eigh(H / np.outer(scale, scale))
        keep = values > 32.0 * size * ROUNDOFF * values.max(initial=0.0)
        values, V = values[keep], V[:, keep]
        error = size * (accuracy + 8.0 * ROUNDOFF) / values.min(initial=math.inf)
        return cls((V / np.sqrt(values)) / scale[:, None], scale, V.T, error)

    @property
    def full(self) -> bool:
        """Whether M sees every direction."""
        return bool(self.T.shape[0] == self.T.shape[1])

    def dual_norm(self, g: FloatArray, slack: FloatArray) -> float:
        """|g|_{M^-1}, errors of g up to ``slack`` included."""
        exact, error = self.T.T @ g, np.abs(self.T).T @ slack
        return math.sqrt(float(exact @ exact)) + math.sqrt(float(error @ error))

    def reaches(self, g: FloatArray, slack: FloatArray) -> bool:
        """Whether g lies in the range of M, up to its errors ``slack``."""
        scaled, noise = g / self.scale, slack / self.scale
        outside = scaled - self.seen.T @ (self.seen @ scaled)
        forgiven = 4.0 * math.sqrt(noise @ noise) + self.error * math.sqrt(scaled @ scaled)
        return bool(math.sqrt(outside @ outside) <= forgiven)


def bound(mu: float, kappa_at: Callable[[float], float]) -> tuple[float, float] | None:
    """(mu^2 / (2 kappa), kappa) for the first radius rho at which 2 mu / kappa(rho) <= rho."""
    for multiple in _RADII:
        kappa = kappa_at(multiple * mu)
        if kappa * multiple >= 2.0:
            return 0.5 * mu * mu / kappa, kappa
    return None
