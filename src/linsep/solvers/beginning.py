"""Where coordinate ascent sets out: the lengths of the rows, their centre, and a first dual point made of class sums.

One pass finds |x|^2 of every row and the sums S+ and S- of s x over the rows of either sign. From them follow

* the mean c of the rows. Where it is far from 0 a move of w shifts all scores, and the intercept follows slowly: then
  rows are centred (kernels/dual_cd.hpp), which needs x.c of every row, another read of X;
* the dual point at w = 0 and the best intercept there. It has one u for each class, so that the best multiple t of it,
  the maximum of a function of one variable, costs nothing: w = t v/lam with v = u+ S+ - u- S-. Where t is near 1 the
  penalty is strong, and this point better than what an epoch from zero finds.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from linsep import _kernels
from linsep.problem import dot
from linsep.solvers.hardness import hardness, sampled_mean

if TYPE_CHECKING:
    from linsep.data import Block
    from linsep.problem import Problem
    from linsep.solution import FloatArray

FAR_OFF = 0.2  # |c|^2 as a share of mean |x|^2 from which rows are centred in any case
# Features up to which the sums stay in the cache; hardness that makes them worth more.
NARROW, EASY = 16_384, 0.5
NEAR = 0.5  # multiple of the dual point at w = 0 from which it is a good start
Parts = tuple[tuple[float, float], ...]  # weight and u of either class
# Share of the smaller class in the larger one from which the hinge begins with class sums.
EVEN = 0.5
CLASSES = ("logistic", "squared", "squared_hinge", "huberised_hinge", "hinge")


@dataclass(frozen=True, eq=False)
class Centre:
    """c, x.c of every row, and |c|^2."""

    c: FloatArray
    along: FloatArray
    size: float


@dataclass(frozen=True, eq=False)
class ClassStart:
    """u of either class, v/lam, the dual value, and whether the penalty is so strong that it is near the solution."""

    plus: float
    minus: float
    w: FloatArray
    dual: float
    near: bool


class Beginning:
    """The sums of the first pass, and what follows from them.

    Sums over very many features cost more than an epoch is worth where the start will not be near.
    """

    def __init__(self, problem: Problem, block: Block) -> None:
        self.problem, self.block = problem, block
        problem.passes += 1
        n, d = problem.data.n, problem.data.d
        self.norms, targets = np.zeros(n), block.targets
        weight, positive = block.weight, block.sign > 0.0
        if weight is None:
            self.live, self.total, heavy = n, float(n), float(np.count_nonzero(positive))
        else:
            self.live, self.total = int(np.count_nonzero(weight)), float(weight.sum())
            heavy = dot(weight, positive.astype(np.float64))
        self.sides = (heavy, self.total - heavy)
        useful = d <= NARROW or self._promising()

        def add(b: Block, out: FloatArray) -> None:
            if useful:
                _kernels.class_sums(b.rows, targets, b.lo, b.hi, self.norms, out)
            else:
                _kernels.row_norms(b.rows, b.lo, b.hi, self.norms)

        sums = problem.data.sum(add, 2 * d if useful else 1)
        if not useful:
            sums = np.zeros(2 * d)
        self.plus, self.minus = sums[:d], sums[d:]
        self.size = float(self.norms.sum()) if weight is None else dot(weight, self.norms)
        self.c = (self.plus + self.minus) / self.total if self.total > 0.0 else self.plus
        self.c_size = dot(self.c, self.c)

    def _promising(self) -> bool:
        """Whether a start from the class sums is likely to be near."""
        even = min(self.sides) >= EVEN * max(self.sides)
        if not (self.problem.loss.smooth or even):
            return False
        return hardness(self.problem, sampled_mean(self.problem)) <= EASY

    @property
    def mean(self) -> float:
        """Mean of |x|^2, or of |x - c|^2 once the norms are those."""
        return self.size / self.total if self.total > 0.0 else 0.0

    @property
    def far_off(self) -> bool:
        """Whether the centre is so far from 0 that w and b hinder each other."""
        return (
            self.problem.fit_intercept and FAR_OFF * self.mean <= self.c_size and self.c_size > 0.0
        )

    def guess(self, b: float) -> ClassStart | None:
        """The best multiple of the dual point at w = 0 and the intercept b; None where it does not apply."""
        problem, (plus, minus) = self.problem, self.sides
        name, loss, lam = problem.loss.native, problem.loss, problem.lam
        if name not in CLASSES or self.block.offset is not None or not (plus > 0.0 < minus):
            return None
        if loss.smooth:
            up, um = (-loss.slope(np.array([b, -b]))).tolist()
        else:
            up = um = 1.0
        if problem.fit_intercept:  # in balance, but for rounding
            up, um = min(up, um * minus / plus), min(um, up * plus / minus)
        v = up * self.plus - um * self.minus
        square = dot(v, v) / lam
        if not (square > 0.0 and math.isfinite(square) and up > 0.0 and um > 0.0):
            return None
        parts = ((plus, up), (minus, um))
        if name == "logistic":
            t, dual = _logistic(parts, square)
        else:
            t, dual = _parabola(parts, square, 1.0 / loss.curvature_bound if loss.smooth else 0.0)
        near = t >= NEAR and 0.5 * t * t * square <= 0.5 * dual
        if not loss.smooth and not (near and problem.fit_intercept and min(up, um) >= EVEN):
            return None  # which rows of the larger class have u = 1 is then all there is to find
        return ClassStart(t * up, t * um, (t / lam) * v, dual, near)

    def centred(self, w: FloatArray) -> tuple[Centre, FloatArray]:
        """The centre, and the scores (x - c).w; the norms become those of x - c (one read of X)."""
        problem, n = self.problem, self.problem.data.n
        problem.passes += 0.5
        along, z, c = np.empty(n), np.empty(n), self.c

        def fill(b: Block, _: FloatArray) -> None:
            _kernels.two_scores(b.rows, b.lo, b.hi, c, w, along, z)

        problem.data.sum(fill, 1)
        self.norms = np.maximum(self.norms + (self.c_size - 2.0 * along), 0.0)
        self.size = max(0.0, self.size - self.total * self.c_size)
        z -= dot(c, w[: len(c)])
        return Centre(c, along, self.c_size), z


def _parabola(parts: Parts, square: float, ridge: float) -> tuple[float, float]:
    """The t of largest t sum T u - t^2/2 (ridge sum T u^2 + square), and that value."""
    linear = sum(total * u for total, u in parts)
    curved = ridge * sum(total * u * u for total, u in parts) + square
    t = min(1.0, linear / curved)
    return t, t * linear - 0.5 * t * t * curved


def _logistic(parts: Parts, square: float) -> tuple[float, float]:
    """The t of largest sum T h(t u) - t^2 square/2 with the entropy h, by Newton's method, and that value."""
    low, high, t = 0.0, 1.0, 1.0
    for _ in range(60):
        slope, bend = -t * square, square
        for total, u in parts:
            p = t * u
            slope += total * u * math.log((1.0 - p) / p)
            bend += total * u * u / (p * (1.0 - p))
        low, high = (t, high) if slope > 0.0 else (low, t)
        step = slope / bend
        t = t + step if low < t + step < high else 0.5 * (low + high)
        if abs(step) <= 1e-3 * t:
            break
    value = -0.5 * t * t * square
    for total, u in parts:
        p = t * u
        value -= total * (p * math.log(p) + (1.0 - p) * math.log(1.0 - p))
    return t, value
