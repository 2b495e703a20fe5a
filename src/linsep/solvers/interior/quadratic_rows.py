"""Row variables of a piecewise quadratic loss on a central path: dual variables, distances to both ends, multipliers.

l(m) = max of u t - a u^2/2 over low <= u <= high with t = centre - m. The multipliers r of u >= low and g of u <= high
satisfy r - g = a u - t; on the central path (u - low) r = (high - u) g = mu. An infinite end has no multiplier.
The distances to the ends are stored in addition to u: where u rounds to an end, the difference would be 0.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import Loss
from linsep.problem.duality import dot
from linsep.solvers.interior.mehrotra import blocking

SLACK = 0.1  # largest initial multiplier r of a row with a u <= t, which is 0 at the optimum
HALVINGS = 40  # bisections of the range of u to find a point of the path
FLOOR = 0.01  # smallest initial distance to an end, relative to the largest u or to its range


def applies(loss: Loss) -> bool:
    """Return whether the loss is piecewise quadratic and smooth, with a kernel."""
    return loss.native is not None and loss.smooth and loss.conjugate_quadratic is not None


@dataclass(frozen=True, eq=False)
class RowStep:
    """Changes of u, r and g."""

    u: FloatArray
    r: FloatArray
    g: FloatArray


class RowPath:
    """Dual variables u of the rows, their distances to the ends of the domain, and the multipliers r and g."""

    def __init__(self, loss: Loss, weight: FloatArray) -> None:
        self.low, self.high = loss.domain
        self.a = 1.0 / loss.curvature_bound
        self.s = weight
        self._lower, self._upper = bool(np.isfinite(self.low)), bool(np.isfinite(self.high))
        self.ends = int(self._lower) + int(self._upper)
        self.u = self.r = self.g = np.zeros_like(weight)
        self._below = self._above = self.u

    def slopes(self, t: FloatArray) -> FloatArray:
        """Return the u that attains the maximum, -l'(m)."""
        return np.clip(t / self.a, self.low, self.high)

    def value(self, t: FloatArray) -> float:
        """Return the sum of the losses, sum s l(m)."""
        u = self.slopes(t)
        return dot(self.s, u * (t - 0.5 * self.a * u))

    def slack(self, t: FloatArray) -> float:
        """Fenchel-Young gap sum s (l(m) - u t + a u^2/2); no term is negative."""
        best = self.slopes(t)
        off = self.u - best
        return dot(self.s, off * (0.5 * self.a * off + (self.a * best - t)))

    def place(self, u: FloatArray, t: FloatArray, mu: float) -> None:
        """Start at u, inside its domain, with multipliers for this mu."""
        self.u, excess = u, self.a * u - t
        self._below, self._above = u - self.low, self.high - u
        self.r = self.g = np.zeros_like(u)
        if self._upper:  # r - g = a u - t holds from the start
            least = mu / (self.high - self.low)
            self.r, self.g = np.maximum(excess, 0.0) + least, np.maximum(-excess, 0.0) + least
        elif self._lower:
            self.r = np.maximum(np.minimum(mu / self._below, SLACK), excess)

    def begin(self, t: FloatArray, mu: float) -> None:
        """Start at the point of the central path for this mu."""
        if self._upper:
            self._below, self._above = self._between(t, mu)
        else:
            t = t - self.a * self.low
            root = np.sqrt(np.square(t) + 4.0 * self.a * mu)
            # two forms of the same number: the first would cancel to 0 far beyond the kink
            self._below = np.where(
                t > 0.0, (t + root) / (2.0 * self.a), 2.0 * mu / (root + np.abs(t))
            )
            self._above = self.high - self.low - self._below
        self.u, self.r = self.low + self._below, mu / self._below
        self.g = mu / self._above if self._upper else np.zeros_like(t)

    def _between(self, t: FloatArray, mu: float) -> tuple[FloatArray, FloatArray]:
        """Distances of u to both ends for mu/(u - low) - mu/(high - u) = a u - t, solved by bisection."""
        low, high = np.full_like(t, self.low), np.full_like(t, self.high)
        for _ in range(HALVINGS):
            u = 0.5 * (low + high)
            early = mu / (u - self.low) - mu / (self.high - u) > self.a * u - t
            low, high = np.where(early, u, low), np.where(early, high, u)
        below, above = u - self.low, self.high - u
        excess = self.a * u - t  # near an end its distance is computed from the other, exact one
        return (
            np.where(excess > 0.0, mu / (excess + mu / above), below),
            np.where(excess > 0.0, above, mu / (mu / below - excess)),
        )

    def move_inside(self, u: FloatArray, t: FloatArray, mu: float) -> FloatArray:
        """Return u moved away from the ends, as required at the start of the central path."""
        if self._upper:
            least = FLOOR * (self.high - self.low)
            return np.clip(u, self.low + least, self.high - least)
        if self._lower:
            top = FLOOR * float(u.max()) or np.sqrt(mu)
            return np.maximum(u, np.minimum(mu / np.maximum(-t, 1e-9), top))
        return u

    def hold(self) -> None:
        """Keep the distances to the ends positive despite rounding, and recompute u from the smaller one."""
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
        """Return sum s ((u - low) r + (high - u) g) after a step of this size."""
        both = 0.0
        for has, far, m, way in self._sides():
            if has:
                du, dm = (way * step.u, step.r if way > 0 else step.g) if step else (0.0, 0.0)
                both += dot(self.s, (far + length * du) * (m + length * dm))
        return both

    def _sides(self) -> tuple[tuple[bool, FloatArray, FloatArray, float], ...]:
        """Return for each end: whether it is finite, distance, multiplier, and derivative of the distance in u."""
        lower = (self._lower, self._below, self.r, 1.0)
        return lower, (self._upper, self._above, self.g, -1.0)

    @property
    def ratio(self) -> FloatArray:
        """Inverse curvature -dm/du of every row on the path."""
        out = np.full_like(self.u, self.a)
        if self._lower:
            out += self.r / self._below
        if self._upper:
            out += self.g / self._above
        return out

    def change(
        self, t: FloatArray, ratio: FloatArray, mu: float, first: RowStep | None
    ) -> FloatArray:
        """Part of du, towards products mu, that is independent of the change of the margins; ``first``: affine step."""
        c = self.r - self.g - self.a * self.u + t
        for has, far, m, way in self._sides():
            if has:
                second = 0.0 if first is None else way * first.u * (first.r if way > 0 else first.g)
                c = c + way * ((mu - second) / far - m)
        return c / ratio

    def step(self, du: FloatArray, mu: float, first: RowStep | None) -> RowStep:
        """Return the step with changes du and the corresponding changes of the multipliers."""
        found = []
        for has, far, m, way in self._sides():
            if not has:
                found.append(np.zeros_like(du))
                continue
            second = 0.0 if first is None else way * first.u * (first.r if way > 0 else first.g)
            found.append((mu - second - way * m * du) / far - m)
        return RowStep(du, *found)

    def blocking(self, step: RowStep) -> float:
        """Return the largest relative decrease of a distance or multiplier along the step."""
        largest = 0.0
        for has, distance, m, way in self._sides():
            if has:
                dm = step.r if way > 0 else step.g
                largest = max(largest, blocking(distance, way * step.u), blocking(m, dm))
        return largest

    def move(self, length: float, step: RowStep) -> None:
        """Take the step with this step size."""
        self.u = self.u + length * step.u
        self.r, self.g = self.r + length * step.r, self.g + length * step.g
        self._below, self._above = self._below + length * step.u, self._above - length * step.u
