"""The multiclass hinge loss of Crammer and Singer, for the multiclass support vector machine."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.losses.coupled import CoupledLoss


@dataclass(frozen=True)
class CrammerSinger(CoupledLoss):
    """Multiclass hinge max_c (z_c + 1[c != y]) - z_y: 0 if the label's score leads all others by at least 1.

    Parameters
    ----------
    k : int
        Number of classes.

    See Also
    --------
    Multinomial : Softmax loss, with probabilities.
    Hinge : Two-class loss of the margin z_y - z_other.

    Notes
    -----
    As a maximum over the simplex, the loss is ``max_p sum_{c != y} p_c (1 + z_c - z_y)``; the conjugate is
    minus the sum of p over the classes other than the label.

    References
    ----------
    Crammer and Singer, On the algorithmic implementation of multiclass kernel-based vector machines, JMLR 2, 2001.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep.losses import CrammerSinger
    >>> CrammerSinger(3).value(np.array([[2.0, 0.5, 0.0], [1.0, 0.5, 0.0]]), np.array([0, 0]))
    array([0. , 0.5])
    """

    name: ClassVar[str] = "crammer_singer"
    native: ClassVar[str | None] = "crammer_singer"
    smooth: ClassVar[bool] = False

    def value(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """l_i = max(0, 1 + best other score - score of the label), (n,)."""
        lead = self._leads(Z, labels)
        return np.asarray(np.maximum(lead.max(axis=1), 0.0))

    def slope(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """onehot(best other) - onehot(label) where the loss is positive, else 0."""
        rows, lead = np.arange(len(labels)), self._leads(Z, labels)
        best = lead.argmax(axis=1)
        violated = (lead[rows, best] > 0.0).astype(np.float64)
        slope = np.zeros_like(lead)
        slope[rows, best] += violated
        slope[rows, labels] -= violated
        return slope

    def steepest(self, Z: FloatArray, labels: IntArray, error: FloatArray) -> FloatArray:
        """1 for the label and all classes that may attain the maximum, if the loss may be positive; else 0."""
        lead = self._leads(Z, labels)
        top = lead.max(axis=1, keepdims=True)
        steep = ((lead >= top - 4.0 * error) & (lead > -2.0 * error)).astype(np.float64)
        rows = np.arange(len(labels))
        steep[rows, labels] = 0.0
        steep[rows, labels] = steep.max(axis=1)
        return np.asarray(steep)

    def conjugate(self, Q: FloatArray, labels: IntArray) -> FloatArray:
        """Minus the sum of Q off the label, (n,); +inf where p = Q + onehot(labels) leaves the simplex."""
        _, rest = self._off_label(Q, labels)
        return np.where(np.isnan(rest), math.inf, -rest)

    def dual_mass_bound(self, entropy: float, mass: FloatArray) -> FloatArray:
        """Sum of s p off the label, which bounds each |U_ic| summed over the rows."""
        return np.minimum(2.0 * mass, entropy)

    def spread(self, r: FloatArray, mass: FloatArray) -> float:
        """Sum over classes of mass (1 - r)."""
        return float(mass @ (1.0 - r))

    @staticmethod
    def _leads(Z: FloatArray, labels: IntArray) -> FloatArray:
        """1 + z_c - z_y off the label, 0 on it."""
        rows = np.arange(len(labels))
        with np.errstate(over="ignore", invalid="ignore"):
            lead = 1.0 + (Z - Z[rows, labels][:, None])
        lead[rows, labels] = 0.0
        return np.asarray(lead)
