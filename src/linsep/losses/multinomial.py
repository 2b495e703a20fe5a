"""Softmax cross-entropy of k scores, the loss of multinomial logistic regression."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, xlog1py

from linsep.arrays import FloatArray, IntArray
from linsep.losses.coupled import CoupledLoss


@dataclass(frozen=True)
class Multinomial(CoupledLoss):
    """Multinomial (softmax) loss logsumexp(z) - z_y of the k scores z of a row; labels y are integers 0..k-1.

    Parameters
    ----------
    k : int
        Number of classes.

    See Also
    --------
    CrammerSinger : Multiclass hinge.
    Logistic : Two-class loss.

    Notes
    -----
    The dual variables of a row are ``U = onehot(y) - p`` with p in the simplex, and the conjugate there
    is minus the entropy of p.

    Examples
    --------
    >>> import numpy as np
    >>> from linsep.losses import Multinomial
    >>> Multinomial(3).value(np.zeros((1, 3)), np.array([0])).round(4)
    array([1.0986])
    """

    name: ClassVar[str] = "multinomial"
    native: ClassVar[str | None] = "multinomial"
    smooth: ClassVar[bool] = True
    probabilistic: ClassVar[bool] = True
    curvature_bound: ClassVar[float] = 0.5  #: largest eigenvalue of diag(p) - p p'

    @property
    def params(self) -> tuple[float, ...]:
        """Number of classes, for the compiled kernel."""
        return (float(self.k),)

    def value(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """l_i = logsumexp(Z_i) - Z_{i, y_i}, (n,)."""
        rows, top = np.arange(len(labels)), np.argmax(Z, axis=1)
        with np.errstate(over="ignore"):
            rest = np.exp(Z - Z[rows, top][:, None])
            lead = Z[rows, top] - Z[rows, labels]
        rest[rows, top] = 0.0
        return np.asarray(lead + np.log1p(rest.sum(axis=1)))  # no cancellation in either tail

    def slope(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """softmax(Z) - onehot(labels), (n, k)."""
        slope, rows = self.proba(Z), np.arange(len(labels))
        slope[rows, labels] = 0.0
        slope[rows, labels] = -slope.sum(axis=1)  # accurate where p_y - 1 would round to 0
        return slope

    def steepest(self, Z: FloatArray, labels: IntArray, error: FloatArray) -> FloatArray:
        """min(|slope| exp(2 error), 1): if scores change by at most e, no probability grows by more than e^(2 e)."""
        growth = np.exp(np.minimum(2.0 * error, 700.0))
        steep = np.minimum(np.abs(self.slope(Z, labels)) * growth, 1.0)
        return np.where(2.0 * error > 700.0, 1.0, steep)

    def proba(self, Z: FloatArray) -> FloatArray:
        """softmax of each row, (n, k)."""
        with np.errstate(over="ignore"):
            P = np.exp(Z - np.max(Z, axis=1, keepdims=True))
        return np.asarray(P / P.sum(axis=1, keepdims=True))

    def linearised_dual(self, Z: FloatArray, change: FloatArray) -> FloatArray:
        """Minus the slopes at scores Z + change, to first order in the change and without the term of the label."""
        P = self.proba(Z)
        with np.errstate(over="ignore", invalid="ignore"):
            return np.asarray(-P * (1.0 + change - (P * change).sum(axis=1, keepdims=True)))

    def entropy(self, P: FloatArray) -> FloatArray:
        """-sum_c p log p of each row, 0 log 0 = 0; -inf where an entry is negative."""
        return np.asarray(entr(P).sum(axis=1))

    def conjugate(self, Q: FloatArray, labels: IntArray) -> FloatArray:
        """Minus the entropy of p = Q + onehot(labels), (n,); +inf where p leaves the simplex."""
        off, rest = self._off_label(Q, labels)
        value = xlog1py(1.0 - rest, -rest) - entr(np.maximum(off, 0.0)).sum(axis=1)
        return np.where(np.isnan(rest), math.inf, value)

    def dual_mass_bound(self, entropy: float, mass: FloatArray) -> FloatArray:
        """Twice the weight of each class, if the class sums of U vanish; otherwise |residual| is to be added."""
        return 2.0 * mass

    def spread(self, r: FloatArray, mass: FloatArray) -> float:
        """Total weight times the entropy of r."""
        return float(mass.sum() * entr(r).sum())
