"""Losses made of straight lines, with a kink or a jump: hinge, absolute, perceptron and the 0-1 loss itself."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar, Literal

import numpy as np

from linsep.errors import BadInput
from linsep.losses.loss import FloatArray, Loss, ResidualLoss, inside


@dataclass(frozen=True)
class Hinge(Loss):
    """max(0, 1 - m), the loss of the support vector machine."""

    name = "hinge"
    native = "hinge"
    native_ascent = True
    smooth = False

    @property
    def conjugate_quadratic(self) -> float:
        return 0.0

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.maximum(1.0 - np.asarray(m), 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.where(np.asarray(m) < 1.0, -1.0, 0.0)

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        return inside(-q, 0.0, 1.0, q)


@dataclass(frozen=True, repr=False)
class Absolute(ResidualLoss):
    """|centre - m|, by default |1 - m|; the absolute residual in regression."""

    name = "absolute"
    native = "absolute"
    native_ascent = True
    smooth = False

    @property
    def conjugate_quadratic(self) -> float:
        return 0.0

    @property
    def domain(self) -> tuple[float, float]:
        return (-1.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.abs(self.residual(m))

    def slope(self, m: FloatArray) -> FloatArray:
        return np.sign(np.asarray(m) - self.centre)

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        return inside(-q, -1.0, 1.0, self.centre * q)


@dataclass(frozen=True)
class Perceptron(Loss):
    """max(0, -m), the risk that perceptron updates descend."""

    name = "perceptron"
    native = "perceptron"
    smooth = False
    centre: ClassVar[float] = 0.0

    @property
    def conjugate_quadratic(self) -> float:
        return 0.0

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 1.0)

    def value(self, m: FloatArray) -> FloatArray:
        return np.maximum(-np.asarray(m), 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.where(np.asarray(m) < 0.0, -1.0, 0.0)

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        return inside(-q, 0.0, 1.0, np.zeros(q.shape))


@dataclass(frozen=True)
class ZeroOne(Loss):
    """1 for an error, 0 otherwise. A zero margin is called by ``ties``, since authors disagree.

    ``ties="correct"``: an error is m < 0. ``ties="error"``: an error is m <= 0. Not convex, and its
    conjugate is finite at 0 only: no dual bound can come from it.
    """

    name = "zero_one"
    smooth = False
    convex = False
    ties: Literal["correct", "error"] = "correct"

    def __post_init__(self) -> None:
        if self.ties not in ("correct", "error"):
            raise BadInput(f'zero_one: ties must be "correct" or "error", got {self.ties!r}.')

    @property
    def flat_beyond_margin(self) -> bool:
        return True

    @property
    def domain(self) -> tuple[float, float]:
        return (0.0, 0.0)

    def value(self, m: FloatArray) -> FloatArray:
        m = np.asarray(m)
        return np.where(m <= 0.0 if self.ties == "error" else m < 0.0, 1.0, 0.0)

    def slope(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def curvature(self, m: FloatArray) -> FloatArray:
        return np.zeros(np.shape(m))

    def conjugate(self, q: FloatArray) -> FloatArray:
        q = np.asarray(q)
        return inside(q, 0.0, 0.0, np.zeros(q.shape))
