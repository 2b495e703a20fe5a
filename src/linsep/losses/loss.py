"""What a pointwise loss is: facts and four functions of the margin."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from linsep.errors import BadInput, Refused

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Loss(ABC):
    """A pointwise loss of the margin. Facts first, then the four functions that define it."""

    name: ClassVar[str] = "custom"
    native: ClassVar[str | None] = None  #: name of the compiled kernel, if there is one
    smooth: ClassVar[bool] = True  #: the slope is continuous, so Newton's method applies
    convex: ClassVar[bool] = True
    classification: ClassVar[bool] = True  #: sensible on y z
    regression: ClassVar[bool] = False  #: even in the residual centre - m, so sensible on targets
    probabilistic: ClassVar[bool] = False  #: its scores map to probabilities

    @cached_property
    def params(self) -> tuple[float, ...]:
        """Parameters for the compiled kernel: the width, if there is one, then the centre unless it is 1."""
        if self.native is None:
            return ()
        width, centre = getattr(self, "width", None), zero_margin(self)
        if centre != 1.0:
            return (1.0 if width is None else float(width), centre)
        return () if width is None else (float(width),)

    def for_targets(self) -> Loss:
        """The loss that regression minimises: with centre 0, if it has a field ``centre``.

        Then the margin is m = z - t, and the residual t - z keeps all digits of the target t. A loss without that
        field is a function of 1 - m; regression gives it m = z + (1 - t), which rounds targets to 1e-16.
        """
        if any(found.name == "centre" for found in fields(self)):
            return replace(self, centre=0.0)  # type: ignore[call-arg]
        return self

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


@dataclass(frozen=True, repr=False)
class ResidualLoss(Loss):
    """A loss that is even in the residual r = centre - m and 0 where it vanishes.

    On class labels, and by default, ``centre`` is 1. Regression sets it to 0: see :meth:`Loss.for_targets`.
    """

    regression = True
    centre: float = field(default=1.0, kw_only=True)

    def __post_init__(self) -> None:
        if not math.isfinite(self.centre):
            raise BadInput(f"{self.name}: centre must be a finite number, got {self.centre!r}.")

    def __repr__(self) -> str:
        names = [found.name for found in fields(self) if found.name != "centre"]
        names += ["centre"] if self.centre != 1.0 else []
        given = ", ".join(f"{name}={getattr(self, name)!r}" for name in names)
        return f"{type(self).__name__}({given})"

    def residual(self, m: FloatArray) -> FloatArray:
        """r = centre - m."""
        return np.asarray(self.centre - np.asarray(m))


def zero_margin(loss: Loss) -> float:
    """Margin at which the residual of a loss is 0: its ``centre`` if it has one (0 for the perceptron), else 1."""
    return float(getattr(loss, "centre", 1.0))


def inside(u: FloatArray, low: float, high: float, value: FloatArray) -> FloatArray:
    """``value`` where low <= u <= high, +inf elsewhere, nan where u is nan."""
    outside = np.where(np.isnan(u), math.nan, math.inf)
    return np.where((u >= low) & (u <= high), value, outside)
