"""Elastic nets with a factor for each feature, and with norms of feature groups instead of absolute values.

::

    Omega(w) = sum_j l2_j/2 w_j^2 + sum_g l1_g |w_g|_2,
    l2_j = (1 - l1_ratio)/C p_j,     l1_g = l1_ratio/C p_g sqrt(d_g)

with a factor p_j >= 0 for each feature, equal for all d_g features of a group (Yuan and Lin 2006; the ridge part as in
Simon and Tibshirani 2012). Groups of one feature give the elastic net with penalty factors. The p_g sqrt(d_g) are
rounded to float64, and the penalty is defined by the rounded numbers. Conjugate::

    Omega*(v) = sum_g max(|v_g|_2 - l1_g, 0)^2 / (2 l2_g)

where a group with l2_g = 0 requires |v_g|_2 <= l1_g, and one with p_g = 0 requires v_g = 0.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field, replace
from functools import cached_property

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.errors import BadInput, Refused
from linsep.penalties.elastic_net import ElasticNet

_UNEVEN = (
    "This is not available for models with penalty_factor or feature_groups: it reads one penalty for all features. "
    "Fit without them, or use fit, verify, tune, path, save and load, which take both."
)


@dataclass(frozen=True, eq=False)
class GroupElasticNet(ElasticNet):
    """Elastic net with penalty factors p_j and feature groups; C is finite.

    ``group`` holds the group number of each feature, 0, 1, ...; ``l1_scale``, a power of two, multiplies the norms, as
    in :class:`RescaledElasticNet`.
    """

    factor: FloatArray = field(default_factory=lambda: np.zeros(0))
    group: IntArray = field(default_factory=lambda: np.zeros(0, dtype=np.int64))
    l1_scale: float = 1.0

    def __post_init__(self) -> None:
        super().__post_init__()
        if math.isinf(self.C):
            raise BadInput("Penalty factors and feature groups need a finite C.")
        if self.factor.ndim != 1 or self.factor.shape != self.group.shape:
            raise BadInput("Penalty factors and groups need one number for each feature.")
        if not (np.isfinite(self.factor).all() and (self.factor >= 0.0).all()):
            raise BadInput("Penalty factors must be finite and not negative.")
        numbers = np.unique(self.group)
        if self.group.dtype.kind != "i" or not np.array_equal(numbers, np.arange(len(numbers))):
            raise BadInput("Groups must be numbered 0, 1, 2, ...")
        if (self.factor != self.factor[self.first][self.group]).any():
            raise BadInput("All features of a group must have the same penalty factor.")

    @property
    def uniform(self) -> bool:
        """Whether every feature is penalised alike, as the compiled kernels assume."""
        return False

    def __eq__(self, other: object) -> bool:
        """Whether C, l1_ratio, factors and groups are equal."""
        return isinstance(other, GroupElasticNet) and self._key == other._key

    def __hash__(self) -> int:
        """Hash of C, l1_ratio, factors and groups."""
        return hash(self._key)

    @property
    def _key(self) -> tuple[float, float, float, bytes, bytes]:
        arrays = self.factor.tobytes(), self.group.astype(np.int64).tobytes()
        return (self.C, self.l1_ratio, self.l1_scale, *arrays)

    @cached_property
    def first(self) -> IntArray:
        """Index of the first feature of each group."""
        return np.unique(self.group, return_index=True)[1].astype(np.int64)

    @cached_property
    def sizes(self) -> IntArray:
        """Number of features in each group."""
        return np.bincount(self.group).astype(np.int64)

    @cached_property
    def by_group(self) -> IntArray:
        """Indices of the features, ordered by group."""
        return np.argsort(self.group, kind="stable").astype(np.int64)

    @cached_property
    def starts(self) -> IntArray:
        """First position of each group in ``by_group``."""
        return (np.cumsum(self.sizes) - self.sizes).astype(np.int64)

    @cached_property
    def group_weights(self) -> FloatArray:
        """p_g sqrt(d_g) for each group."""
        return np.asarray(self.factor[self.first] * np.sqrt(self.sizes.astype(np.float64)))

    @property
    def l1(self) -> float:
        """Raise ``Refused``: there is no common weight of |w|_1."""
        raise Refused(_UNEVEN)

    @property
    def l2(self) -> float:
        """Raise ``Refused``: there is no common weight of |w|^2/2."""
        raise Refused(_UNEVEN)

    @cached_property
    def thresholds(self) -> FloatArray:
        """Weight of |w_g|_2 for each group."""
        return np.asarray((self.l1_scale * (self.l1_ratio / self.C)) * self.group_weights)

    @cached_property
    def ridge(self) -> FloatArray:
        """Weight of w_j^2/2 for each feature."""
        return np.asarray(((1.0 - self.l1_ratio) / self.C) * self.factor)

    @property
    def least_l2(self) -> float:
        """Smallest weight of w_j^2/2 among the penalised features; inf if there are none."""
        return float(self.ridge[self.factor > 0.0].min(initial=math.inf))

    @property
    def modulus(self) -> float:
        """Modulus of strong convexity of Omega: the smallest weight of w_j^2/2 over all features."""
        return float(self.ridge.min())

    @property
    def kinked(self) -> bool:
        """Whether Omega contains norms, which have kinks."""
        return self.l1_ratio > 0.0 and bool(self.factor.any())

    @property
    def absent(self) -> bool:
        """Whether no feature is penalised."""
        return not self.factor.any()

    @property
    def full_precision(self) -> bool:
        """Whether all nonzero weights are float64 numbers far from underflow and overflow."""
        parts = [] if self.l1_ratio == 0.0 else [self.thresholds[self.group_weights > 0.0]]
        parts += [] if self.l1_ratio == 1.0 else [self.ridge[self.factor > 0.0]]
        return all(bool(((x > 2.0**-900) & (x < 2.0**900)).all()) for x in parts)

    def restrict(self, features: IntArray) -> GroupElasticNet:
        """Return the penalty restricted to some features, which must be whole groups."""
        group = np.unique(self.group[features], return_inverse=True)[1].astype(np.int64)
        return replace(self, factor=self.factor[features], group=group.reshape(-1))

    def norms(self, w: FloatArray) -> FloatArray:
        """Norms |w_g|_2 of all groups, computed without overflow or underflow."""
        size = np.abs(w)
        if len(self.sizes) == len(w):  # groups of one
            return np.asarray(size[self.first])
        largest = np.maximum.reduceat(size[self.by_group], self.starts)
        unit = np.where(largest > 0.0, largest, 1.0)
        share = size / unit[self.group]
        return np.asarray(unit * np.sqrt(np.bincount(self.group, share * share)))

    def value(self, w: FloatArray) -> float:
        """Omega(w)."""
        ridge = 0.5 * float(np.sum(self.ridge * w * w))
        return ridge + (float(self.thresholds @ self.norms(w)) if self.l1_ratio else 0.0)

    def excess(self, v: FloatArray) -> FloatArray:
        """max(|v_g|_2 - l1_g, 0) for each group."""
        return np.maximum(self.norms(v) - self.thresholds, 0.0)

    def conjugate(self, v: FloatArray) -> float:
        """Conjugate: sum of max(|v_g|_2 - l1_g, 0)^2/(2 l2_g); terms with l2_g = 0 are 0 or inf."""
        excess, l2 = self.excess(v), self.ridge[self.first]
        if (excess[l2 == 0.0] > 0.0).any():
            return math.inf
        curved = l2 > 0.0
        return float((excess[curved] ** 2 / (2.0 * l2[curved])).sum())

    def minimiser(self, v: FloatArray) -> FloatArray:
        """Maximiser w of v.w - Omega(w); 0 where Omega has no quadratic part."""
        norms, l2 = self.norms(v), self.ridge[self.first]
        curved = (l2 > 0.0) & (norms > 0.0)
        share = np.zeros(len(norms))
        share[curved] = (
            np.maximum(norms[curved] - self.thresholds[curved], 0.0) / norms[curved] / l2[curved]
        )
        return np.asarray(v * share[self.group])

    def gauge(self, v: FloatArray) -> float:
        """Largest |v_g|_2/l1_g over the penalised groups; at most 1 if v is dual feasible for the norms."""
        held = self.thresholds > 0.0
        return float((self.norms(v)[held] / self.thresholds[held]).max(initial=0.0))

    def gauge_bound(self, entry: float, length: float) -> float:
        """Upper bound on the gauge of any v with entries up to ``entry`` and norm up to ``length``."""
        held = self.thresholds > 0.0
        most = np.minimum(entry * np.sqrt(self.sizes[held].astype(np.float64)), length)
        return float((most / self.thresholds[held]).max(initial=0.0))

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """Proximal operator: minimiser of |x - w|^2/2 + step Omega(x)."""
        norms = self.norms(w)
        kept = np.maximum(norms - step * self.thresholds, 0.0) / np.where(norms > 0.0, norms, 1.0)
        return np.asarray(w * kept[self.group] / (1.0 + step * self.ridge))

    def quadratic(self, d: int) -> FloatArray:
        """Weight of w_j^2/2 for each of d features."""
        return self.ridge

    def unpenalised(self, d: int) -> BoolArray:
        """Mask of the features with penalty factor 0."""
        return np.asarray(self.factor == 0.0)
