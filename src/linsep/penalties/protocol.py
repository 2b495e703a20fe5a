"""Interface of penalties.

Reported objective::

    penalty(w) + C sum_i s_i l(m_i),     penalty = (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 for the elastic net

The internal objective, which solvers minimise, is the same divided by C, so that C = inf is an ordinary limit and needs
no special case. ``reported = scale * internal``; a penalty is expressed in internal units. The intercept is never
penalised.
"""

from __future__ import annotations

from typing import Protocol

from linsep.arrays import BoolArray, FloatArray


class Penalty(Protocol):
    """A convex penalty Omega of the weights, in internal units.

    ``uniform`` means that every feature is penalised alike; the penalty is then an :class:`ElasticNet`, whose two
    weights are passed to the compiled kernels.
    """

    @property
    def C(self) -> float:  # noqa: N802
        """Weight of the loss against the penalty, in (0, inf]."""
        ...

    @property
    def l1_ratio(self) -> float:
        """Weight of the norms in the penalty, in [0, 1]; the rest is quadratic."""
        ...

    @property
    def uniform(self) -> bool:
        """Whether every feature is penalised alike."""
        ...

    @property
    def scale(self) -> float:
        """Factor from internal to reported units: C, or 1 when C = inf."""
        ...

    @property
    def modulus(self) -> float:
        """Modulus of strong convexity: the largest m for which Omega(w) - m |w|^2/2 is convex."""
        ...

    @property
    def kinked(self) -> bool:
        """Whether Omega has kinks."""
        ...

    @property
    def absent(self) -> bool:
        """Whether Omega is 0 everywhere."""
        ...

    def value(self, w: FloatArray) -> float:
        """Omega(w)."""
        ...

    def conjugate(self, v: FloatArray) -> float:
        """Conjugate Omega*(v) = sup_w v.w - Omega(w); may be inf."""
        ...

    def prox(self, w: FloatArray, step: float) -> FloatArray:
        """Proximal operator: minimiser of |x - w|^2/2 + step Omega(x)."""
        ...

    def quadratic(self, d: int) -> FloatArray:
        """Weight of w_j^2/2 for each of d features."""
        ...

    def unpenalised(self, d: int) -> BoolArray:
        """Mask of the unpenalised features among d."""
        ...
