"""Base class of losses that couple the k scores of a row: facts, a value and a conjugate."""

from __future__ import annotations

from abc import ABC, abstractmethod
from dataclasses import dataclass
from typing import ClassVar

import numpy as np

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
