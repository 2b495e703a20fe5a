"""Losses that couple the k scores of a row: their base class, softmax cross-entropy and the hinge loss.

Softmax cross-entropy is the loss of multinomial logistic regression, the hinge loss of Crammer and Singer that of the
multiclass support vector machine.
"""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np
from scipy.special import entr, xlog1py

from linsep.arrays import FloatArray, IntArray
from linsep.errors import BadInput


@dataclass(frozen=True)
class CoupledLoss(ABC):
    """A loss of k scores z and a label y in 0..k-1 that depends only on the differences z_c - z_y.

    Its slopes are p - onehot(y) with p in the simplex, so the dual variables of a row are
    ``U = onehot(y) - p``: they sum to zero over the classes.
    """

    k: int
    name: ClassVar[str]
    smooth: ClassVar[bool]
    convex: ClassVar[bool] = True
    classification: ClassVar[bool] = True
    regression: ClassVar[bool] = False
    probabilistic: ClassVar[bool] = False

    @property
    def plain(self) -> CoupledLoss:
        """The loss itself, because coupled losses have no factor."""
        return self

    def __post_init__(self) -> None:
        if self.k < 2:
            raise BadInput(f"{self.name}: at least 2 classes are needed, got {self.k}.")

    @abstractmethod
    def value(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """Losses l_i (n,) at the scores Z (n, k)."""

    @abstractmethod
    def slope(self, Z: FloatArray, labels: IntArray) -> FloatArray:
        """p - onehot(labels), (n, k)."""

    @abstractmethod
    def steepest(self, Z: FloatArray, labels: IntArray, error: FloatArray) -> FloatArray:
        """Bound on |slope|, (n, k), at all scores within ``error`` (n, 1) of Z."""

    @abstractmethod
    def conjugate(self, Q: FloatArray, labels: IntArray) -> FloatArray:
        """l*(Q) at Q = p - onehot(labels), (n,); +inf where p leaves the simplex."""

    def _off_label(self, Q: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
        """Q with 0 on the label, and the sum of each row, at most 1; NaN where p = Q + onehot leaves the simplex.

        p is defined by the entries off the label; p_y is 1 minus their sum, which keeps full accuracy where p_y is
        near 1, as it is for almost every row of a good fit.
        """
        rows = np.arange(len(labels))
        off = np.array(Q, dtype=np.float64)
        off[rows, labels] = 0.0
        rest = off.sum(axis=1)
        slack = 4 * self.k * np.finfo(np.float64).eps
        inside = (np.abs(rest + Q[rows, labels]) <= slack) & (off >= 0.0).all(axis=1)
        return off, np.where(inside & (rest <= 1.0 + slack), np.minimum(rest, 1.0), np.nan)

    @abstractmethod
    def dual_mass_bound(self, entropy: float, mass: FloatArray) -> FloatArray:
        """Bound on sum_i s_i |U_ic| for each class, from minus the sum of the conjugates and ``mass``."""

    @abstractmethod
    def spread(self, r: FloatArray, mass: FloatArray) -> float:
        """Minus the sum of the conjugates with p = r in every row; ``mass`` is the weight of each class."""


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
