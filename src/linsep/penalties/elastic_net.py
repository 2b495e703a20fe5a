"""The elastic net penalty, with the same penalty on every feature."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from linsep.arrays import BoolArray, FloatArray
from linsep.errors import BadInput


def check_strength(C: float, l1_ratio: float) -> None:
    """Raise if C is outside (0, inf] or l1_ratio outside [0, 1]."""
    if not C > 0:  # also refuses nan
        raise BadInput(f"C must lie in (0, inf], got {C!r}; C=inf means no penalty.")
    if not 0 <= l1_ratio <= 1:
        raise BadInput(f"l1_ratio must lie in [0, 1], got {l1_ratio!r}.")


@dataclass(frozen=True)
class ElasticNet:
    """Elastic net penalty l2/2 |w|^2 + l1 |w|_1 with l2 = (1 - l1_ratio)/C and l1 = l1_ratio/C."""

    C: float = 1.0
    l1_ratio: float = 0.0

    def __post_init__(self) -> None:
        check_strength(self.C, self.l1_ratio)

    @property
    def uniform(self) -> bool:
        """Whether every feature is penalised alike, as the compiled kernels assume."""
        return True

    @property
    def l2(self) -> float:
        """Weight of |w|^2/2 in the internal objective."""
        return (1.0 - self.l1_ratio) / self.C

    @property
    def l1(self) -> float:
        """Weight of |w|_1 in the internal objective."""
        return self.l1_ratio / self.C

    @property
    def scale(self) -> float:
        """Factor from internal to reported units: C, or 1 when C = inf."""
        return self.C if math.isfinite(self.C) else 1.0

    @property
    def modulus(self) -> float:
        """Modulus of strong convexity of the penalty: l2."""
        return self.l2

    @property
    def kinked(self) -> bool:
        """Whether the penalty has kinks: l1 > 0."""
        return self.l1 > 0.0

    @property
    def absent(self) -> bool:
        """Whether there is no penalty: C = inf."""
        return self.l1 == 0.0 == self.l2

    def value(self, w: FloatArray) -> float:
        """l2/2 |w|^2 + l1 |w|_1."""
        ridge = 0.5 * self.l2 * float((w * w).sum()) if self.l2 else 0.0  # squares may overflow
        return ridge + self.l1 * float(np.abs(w).sum())

    def conjugate(self, v: FloatArray) -> float:
        """Conjugate sup_w v.w - value(w) = sum_j max(|v_j| - l1, 0)^2/(2 l2); 0 or inf if l2 = 0."""
        excess = np.maximum(np.abs(v) - self.l1, 0.0)
        if self.l2 == 0.0:
            return math.inf if excess.any() else 0.0
        return float(excess @ excess) / (2.0 * self.l2)

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """Proximal operator: minimiser of |x - w|^2/2 + step value(x)."""
        shrunk = np.sign(w) * np.maximum(np.abs(w) - step * self.l1, 0.0)
        return np.asarray(shrunk / (1.0 + step * self.l2))

    def quadratic(self, d: int) -> FloatArray:
        """Weight of w_j^2/2 for each of d features."""
        return np.full(d, self.l2)

    def unpenalised(self, d: int) -> BoolArray:
        """Mask of the unpenalised features among d: all or none."""
        return np.full(d, self.l1 == 0.0 == self.l2)


@dataclass(frozen=True)
class RescaledElasticNet(ElasticNet):
    """Elastic net in rescaled units, in which the L1 term is multiplied by ``l1_scale``, a power of two.

    Squares and absolute values scale differently: if w is measured in units of 1/l1_scale, no pair of C and l1_ratio
    describes the same penalty.
    """

    l1_scale: float = 1.0

    @property
    def l1(self) -> float:
        """Weight of |w|_1 in the internal objective."""
        return self.l1_scale * (self.l1_ratio / self.C)
