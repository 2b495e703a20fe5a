"""Rows of a piecewise quadratic loss on a central path: dual variables, their distances to both ends, the multipliers.

l(m) = max of u t - a u^2/2 over low <= u <= high with t = centre - m. The multipliers r of u >= low and g of u <= high
satisfy r - g = a u - t; on the central path (u - low) r = (high - u) g = mu. An end at infinity has none.
The distances to the ends are kept beside u: where u is within rounding of an end, a difference would be 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import Loss
from linsep.problem.duality import dot
from linsep.solvers.interior.mehrotra import blocking

SLACK = 0.1  # the largest multiplier r that a row with none begins with
HALVINGS = 40  # of the range of u, which find a point of the path
FLOOR = 0.01  # of the largest u, or of its range: how near the ends the rows begin, at most


def applies(loss: Loss) -> bool:
    """Whether the loss is piecewise quadratic, with a kernel, and smooth."""
    return loss.native is not None and loss.smooth and loss.conjugate_quadratic is not None


@dataclass(frozen=True, eq=False)
class RowStep:
    """Changes of u, r and g."""

    u: FloatArray
    r: FloatArray
    g: FloatArray


class RowPath:
    """u of the rows with their distances to the ends of the domain, and the multipliers r and g."""

    def __init__(self, loss: Loss, weight: FloatArray) -> None:
        self.low, self.high = loss.domain
        self.a = 1.0 / loss.curvature_bound
        self.s = weight
        self._lower, self._upper = bool(np.isfinite(self.low)), bool(np.isfinite(self.high))
        self.ends = int(self._lower) + int(self._upper)
        self.u = self.r = self.g = np.zeros_like(weight)
        self._below = self._above = self.u

    def slopes(self, t: FloatArray) -> FloatArray:
        """u that attains the maximum, -l'(m)."""
        return np.clip(t / self.a, self.low, self.high)

    def value(self, t: FloatArray) -> float:
        """sum s l(m)."""
        u = self.slopes(t)
        return dot(self.s, u * (t - 0.5 * self.a * u))

    def slack(self, t: FloatArray) -> float:
        """sum s (l(m) - u t + a u^2/2), by how much u misses the maximum. No term of it is negative."""
        best = self.slopes(t)
        off = self.u - best
        return dot(self.s, off * (0.5 * self.a * off + (self.a * best - t)))

    def place(self, u: FloatArray, t: FloatArray, mu: float) -> None:
        """Begin at u, inside its domain, with multipliers for this mu."""
        self.u, excess = u, self.a * u - t
        self._below, self._above = u - self.low, self.high - u
        self.r = self.g = np.zeros_like(u)
        if self._upper:  # r - g = a u - t holds from the start
            least = mu / (self.high - self.low)
            self.r, self.g = np.maximum(excess, 0.0) + least, np.maximum(-excess, 0.0) + least
        elif self._lower:
            self.r = np.maximum(np.minimum(mu / self._below, SLACK), excess)

    def begin(self, t: FloatArray, mu: float) -> None:
        """Begin at the point of the central path for this mu."""
        if self._upper:
            self._below, self._above = self._between(t, mu)
        else:
            t = t - self.a * self.low
            root = np.sqrt(np.square(t) + 4.0 * self.a * mu)
            # two forms of one number: far beyond the kink the first would cancel to 0
            self._below = np.where(
                t > 0.0, (t + root) / (2.0 * self.a), 2.0 * mu / (root + np.abs(t))
            )
            self._above = self.high - self.low - self._below
        self.u, self.r = self.low + self._below, mu / self._below
        self.g = mu / self._above if self._upper else np.zeros_like(t)

    def _between(self, t: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
        """Distances of u to both ends, for mu/(u - low) - mu/(high - u) = a u - t, which falls in u: by bisection."""
        low, high = np.full_like(t, self.low), np.full_like(t, self.high)
        for _ in range(HALVINGS):
            u = 0.5 * (low + high)
            early = mu / (u - self.low) - mu / (self.high - u) > self.a * u - t
            low, high = np.where(early, u, low), np.where(early, high, u)
        below, above = u - self.low, self.high - u
        excess = self.a * u - t  # near an end the other distance is exact, and tells this one
        return (
            np.where(excess > 0.0, mu / (excess + mu / above), below),
            np.where(excess > 0.0, above, mu / (mu / below - excess)),
        )

    def move_inside(self, u: FloatArray, t: FloatArray, mu: float) -> FloatArray:
        """u moved away from the ends, to where the central path may begin."""
        if self._upper:
            least = FLOOR * (self.high - self.low)
            return np.clip(u, self.low + least, self.high - least)
        if self._lower:
            top = FLOOR * float(u.max()) or np.sqrt(mu)
            return np.maximum(u, np.minimum(mu / np.maximum(-t, 1e-9), top))
        return u

    def hold(self) -> None:
        """Keep the distances to the ends positive, whatever rounding did."""
        if self._lower:
            self._below = np.maximum(self._below, 1e-300)
        if self._upper:
            self._above = np.maximum(self._above, 1e-300)
        if self._lower and self._upper:
            near = self._below < self._above
            self.u = np.where(near, self.low + self._below, self.high - self._above)
        elif self._lower:
            self.u = self.low + self._below

    def products(self, length: float = 0.0, step: RowStep | None = None) -> float:
        """sum s ((u - low) r + (high - u) g) after a step of that length."""
        both = 0.0
        for has, far, m, way in self._sides():
            if has:
                du, dm = (way * step.u, step.r if way > 0 else step.g) if step else (0.0, 0.0)
                both += dot(self.s, (far + length * du) * (m + length * dm))
        return both

    def _sides(self) -> tuple[tuple[bool, FloatArray, FloatArray, float], ...]:
        """For each end: whether it is there, the distance to it, its multiplier, how the distance changes with u."""
        lower = (self._lower, self._below, self.r, 1.0)
        return lower, (self._upper, self._above, self.g, -1.0)

    @property
    def ratio(self) -> FloatArray:
        """-dm/du on the path: the inverse of the curvature that a row has there."""
        out = np.full_like(self.u, self.a)
        if self._lower:
            out += self.r / self._below
        if self._upper:
            out += self.g / self._above
        return out

    def change(
        self, t: FloatArray, ratio: FloatArray, mu: float, first: RowStep | None
    ) -> FloatArray:
        """The part of du that does not depend on the step of the margins, towards products mu (after ``first``)."""
        c = self.r - self.g - self.a * self.u + t
        for has, far, m, way in self._sides():
            if has:
                second = 0.0 if first is None else way * first.u * (first.r if way > 0 else first.g)
                c = c + way * ((mu - second) / far - m)
        return c / ratio

    def step(self, du: FloatArray, mu: float, first: RowStep | None) -> RowStep:
        """Changes of the multipliers that belong to du."""
        found = []
        for has, far, m, way in self._sides():
            if not has:
                found.append(np.zeros_like(du))
                continue
            second = 0.0 if first is None else way * first.u * (first.r if way > 0 else first.g)
            found.append((mu - second - way * m * du) / far - m)
        return RowStep(du, *found)

    def blocking(self, step: RowStep) -> float:
        """The largest relative decrease of a distance or multiplier along the step."""
        largest = 0.0
        for has, distance, m, way in self._sides():
            if has:
                dm = step.r if way > 0 else step.g
                largest = max(largest, blocking(distance, way * step.u), blocking(m, dm))
        return largest

    def move(self, length: float, step: RowStep) -> None:
        """Go so far along the step."""
        self.u = self.u + length * step.u
        self.r, self.g = self.r + length * step.r, self.g + length * step.g
        self._below, self._above = self._below + length * step.u, self._above - length * step.u
