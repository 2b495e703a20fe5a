"""What one visit of the rows finds at an answer, for the local certificate."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from linsep.certificates.recheck import weigh
from linsep.certificates.rows import UNDERFLOW
from linsep.losses import Loss
from linsep.problem.closing_rows import ROUNDOFF

FloatArray = npt.NDArray[np.float64]


@dataclass(eq=False)
class Answer:
    """Margins and slopes by row, gradient and objective, each with its rounding error."""

    theta: FloatArray
    m: FloatArray
    e: FloatArray  #: rounding error of m
    push: FloatArray  #: s l'(m), by row
    wobble: FloatArray  #: its rounding error
    sloped: npt.NDArray[np.bool_]  #: whether the slope may differ from 0, by row
    g: FloatArray
    slack: FloatArray  #: rounding error of g from adding up
    primal: float = 0.0
    null: float = 0.0  #: objective of the zero model
    rounding: float = 0.0  #: of the primal

    @classmethod
    def empty(cls, n: int, theta: FloatArray) -> Answer:
        """Room for what n rows tell of theta."""
        m, e, push, wobble = np.empty((4, n))
        g, slack = np.zeros((2, len(theta)))
        return cls(theta, m, e, push, wobble, np.empty(n, dtype=bool), g, slack)

    def put(
        self, loss: Loss, rows: slice, m: FloatArray, e: FloatArray, s: FloatArray
    ) -> tuple[float, float]:
        """Fill in rows of margins m, known to e. The sum of their losses, and what e may change in it."""
        slope, low, high = loss.slope(m), loss.slope(m - e), loss.slope(m + e)
        self.m[rows], self.e[rows], self.push[rows] = m, e, weigh(s, slope)
        steep = np.maximum(np.abs(low), np.abs(high))
        self.wobble[rows] = weigh(s, high - low + 16 * ROUNDOFF * steep) + UNDERFLOW
        self.sloped[rows] = steep > 0.0
        return float(weigh(s, loss.value(m)).sum()), float(weigh(s, steep) @ e)

    def penalise(self, lam: float, theta: FloatArray, d: int) -> None:
        """Add the penalty on the d weights to the sums of the rows."""
        penalty = 0.5 * lam * float(theta[:d] @ theta[:d])
        self.primal += penalty
        self.rounding += (d + 8) * ROUNDOFF * penalty
        self.g[:d] += lam * theta[:d]
        self.slack[:d] += 8 * ROUNDOFF * lam * np.abs(theta[:d])
