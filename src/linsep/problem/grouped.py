"""The objective of a pointwise loss with a penalty that differs from feature to feature.

::

    P(theta) = Omega(w) + sum_i s_i l(m_i),   m_i = sigma_i (x_i.w + b) + offset_i,   theta = (w, b)

Omega is defined in ``penalties.group``. The passes over the rows are those of the problem without a penalty.
"""

from __future__ import annotations

import math

from linsep.arrays import FloatArray
from linsep.data import Dataset, Location
from linsep.data.dataset import MEMORY_ENTRIES
from linsep.errors import Refused
from linsep.losses import Loss
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.problem.duality import group_values
from linsep.problem.pointwise import Problem
from linsep.solution import Explicit, Linearised


class GroupProblem:
    """Objective with a group penalty; ``losses`` is the sum of losses, as a problem without a penalty."""

    def __init__(
        self, loss: Loss, penalty: GroupElasticNet, data: Dataset, fit_intercept: bool = True
    ) -> None:
        if data.location is not Location.MEMORY:
            raise Refused(
                f"penalty_factor and feature_groups need the rows in memory, and {data.n_entries:,} entries are too "
                f"many to copy from a disk or a cluster (at most {MEMORY_ENTRIES:,}). Load them, fit fewer rows or "
                "columns, or fit without penalty factors and groups."
            )
        self.loss, self.penalty, self.data = loss, penalty, data
        self.fit_intercept = fit_intercept
        self.losses = Problem(loss, ElasticNet(math.inf), data, fit_intercept)

    @property
    def passes(self) -> float:
        """Number of passes over the data so far."""
        return self.losses.passes

    def closing(self, theta: FloatArray, dual: Linearised | Explicit) -> FloatArray:
        """Compute the sums of a certificate, in the layout of kernels/sums/closing.hpp. One pass."""
        return self.losses.closing(theta, dual)

    def values(self, theta: FloatArray, sums: FloatArray) -> tuple[float, float]:
        """P and D from the sums of a closing pass, without a rounding bound (no pass)."""
        return group_values(sums, theta, self.penalty, self.fit_intercept)
