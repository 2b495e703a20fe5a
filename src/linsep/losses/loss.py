"""What a pointwise loss is: facts and four functions of the margin."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, fields
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linsep.errors import Refused

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Loss(ABC):
    """A pointwise loss of the margin. Facts first, then the four functions that define it."""

    name: ClassVar[str] = "custom"
    native: ClassVar[str | None] = None  #: name of the compiled kernel, if there is one
    smooth: ClassVar[bool] = True  #: the slope is continuous, so Newton's method applies
    convex: ClassVar[bool] = True
    classification: ClassVar[bool] = True  #: sensible on y z
    regression: ClassVar[bool] = False  #: even in the residual 1 - m, so sensible on targets
    probabilistic: ClassVar[bool] = False  #: its scores map to probabilities

    @cached_property
    def params(self) -> tuple[float, ...]:
        """Parameters for the compiled kernel, in field order."""
        if self.native is None:
            return ()
        return tuple(float(getattr(self, field.name)) for field in fields(self))

    @property
    def domain(self) -> tuple[float, float]:
        """Closed interval of u = -slope on which ``conjugate(-u)`` is finite."""
        return (-math.inf, math.inf)

    @property
    def curvature_bound(self) -> float:
        """Supremum of the curvature; inf if unbounded, nan if the loss is not smooth."""
        return math.inf if self.smooth else math.nan

    @abstractmethod
    def value(self, m: FloatArray) -> FloatArray:
        """l(m)."""

    @abstractmethod
    def slope(self, m: FloatArray) -> FloatArray:
        """l'(m), at a kink the subgradient nearest to zero."""

    @abstractmethod
    def curvature(self, m: FloatArray) -> FloatArray:
        """l''(m) where it exists, 0 at kinks."""

    @abstractmethod
    def conjugate(self, q: FloatArray) -> FloatArray:
        """l*(q) = sup_m (q m - l(m)), +inf outside its domain."""

    def curvature_floor(self, m: FloatArray, t: FloatArray) -> FloatArray:
        """A lower bound of l'' on [m - t, m + t], t >= 0; zero is always one for convex losses."""
        return np.zeros(np.broadcast(m, t).shape)

    def proba(self, z: FloatArray) -> FloatArray:
        """P(y = +1 | score z), for losses whose scores have that meaning."""
        offered = ", ".join(kind.name for kind in Loss.__subclasses__() if kind.probabilistic)
        raise Refused(
            f"The scores of the {self.name} loss carry no probabilities. Use one of {offered}, or "
            "calibrate with sklearn.calibration.CalibratedClassifierCV."
        )


def inside(u: FloatArray, low: float, high: float, value: FloatArray) -> FloatArray:
    """``value`` where low <= u <= high, +inf elsewhere, nan where u is nan."""
    outside = np.where(np.isnan(u), math.nan, math.inf)
    return np.where((u >= low) & (u <= high), value, outside)
