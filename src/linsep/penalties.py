"""The penalty of the objective, and the one place where the strength C is translated.

Reported objective (what users read)::

    (1 - l1_ratio)/2 |w|^2 + l1_ratio |w|_1 + C sum_i s_i l(m_i)

Internal objective (what solvers minimise) is the same divided by C, so that C = inf is a plain
limit and needs no special case::

    l2/2 |w|^2 + l1 |w|_1 + sum_i s_i l(m_i),     l2 = (1 - l1_ratio)/C,  l1 = l1_ratio/C

``reported = scale * internal``. The intercept is never penalised.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from linsep.errors import BadInput


@dataclass(frozen=True)
class ElasticNet:
    """Elastic net of strength 1/C; ``l1_ratio`` = 0 is the squared norm, 1 the absolute one."""

    C: float = 1.0
    l1_ratio: float = 0.0

    def __post_init__(self) -> None:
        if not self.C > 0:  # also refuses nan
            raise BadInput(f"C must lie in (0, inf], got {self.C!r}; C=inf means no penalty.")
        if not 0 <= self.l1_ratio <= 1:
            raise BadInput(f"l1_ratio must lie in [0, 1], got {self.l1_ratio!r}.")

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


@dataclass(frozen=True)
class RescaledElasticNet(ElasticNet):
    """An elastic net in units in which the absolute term counts ``l1_scale`` times, a power of two.

    Squares and absolute values do not scale alike: where w is measured in units of 1/l1_scale, no C and l1_ratio
    describe the same penalty.
    """

    l1_scale: float = 1.0

    @property
    def l1(self) -> float:
        """Weight of |w|_1 in the internal objective."""
        return self.l1_scale * (self.l1_ratio / self.C)
