"""Mehrotra's predictor-corrector method, shared by all interior point methods here.

The variables are pairs of positive numbers whose products all equal mu on the central path. An iteration computes the
affine step to mu = 0, the share of the products that it would leave, sets mu to share^3 times their mean, corrects the
step for this mu and for the products of the affine changes, and goes 0.995 of the way to the boundary.

Reference: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import NonFinite

STEP_FRACTION = 0.995  # fraction of the way to the boundary
LEAST_CENTRING = 1e-6  # smallest mu relative to the mean product
SHORTEST_STEP = 1e-8  # step size at which the method has stalled
PROGRESS = 0.9  # an iteration makes progress if the gap falls below this times its last landmark
REFRESH_EVERY = 8  # iterations after which margins are recomputed, against accumulated rounding
MAX_CONSECUTIVE_SHORT_STEPS = 4  # steps in a row below the caller's shortest length before it fails


def blocking(x: FloatArray, dx: FloatArray) -> float:
    """Return max(-dx/x, 0): the step size 1/blocking reaches the boundary of x > 0."""
    return float(np.max(-dx / x, initial=0.0))


def step_to_boundary(blocking: float) -> float:
    """Return the largest feasible step size, at most 1."""
    return 1.0 / blocking if blocking > 1.0 else 1.0


def step_length(blocking: float) -> float:
    """Return the step size that goes STEP_FRACTION of the way to the boundary, at most 1."""
    return STEP_FRACTION / blocking if blocking > STEP_FRACTION else 1.0


class PredictorCorrector(ABC):
    """Iterate of an interior point method; subclasses implement the variables and the linear systems."""

    value = np.inf  # objective, after ``measure``
    gap = np.inf  # duality gap, after ``measure``
    steps = 0  # iterations made

    @abstractmethod
    def measure(self) -> None:
        """Compute objective and gap at the iterate."""

    @abstractmethod
    def complementarity(self) -> tuple[float, float]:
        """Return the sum of all products, and the number of pairs (their total weight)."""

    @abstractmethod
    def predict(self) -> float:
        """Compute the affine step to mu = 0; return the share of the products left after its feasible part."""

    @abstractmethod
    def correct(self, mu: float) -> float:
        """Compute the step to mu, corrected by the affine one; return its ``blocking``."""

    @abstractmethod
    def take(self, length: float) -> None:
        """Take the corrected step with this step size."""

    def recentre(self, mu: float, blocking: float) -> float:
        """Improve the corrected step by centrality correctors, if possible; return its ``blocking``."""
        return blocking

    def refresh(self) -> None:
        """Recompute the quantities that steps only update."""
        return

    def keep(self) -> None:
        """Store the iterate, whose gap is the smallest so far."""
        return

    def advance(self) -> float:
        """Make one iteration; return its step size, 0 if there is no step."""
        total, pairs = self.complementarity()
        if not total > 0.0:  # the products underflow because the sample weights are tiny
            return 0.0
        sigma = min(1.0, max(LEAST_CENTRING, self.predict() ** 3))
        mu = sigma * total / pairs
        length = step_length(self.recentre(mu, self.correct(mu)))
        self.take(length)
        self.steps += 1
        return length

    def follow(
        self,
        ends: Callable[[], bool],
        check_limits: Callable[[], None],
        limit: int,
        patience: int,
        shortest: float = 0.0,
    ) -> bool:
        """Iterate until ``ends()``; False after ``limit`` iterations or ``patience`` of them without progress.

        Also False if a step is at most SHORTEST_STEP, if MAX_CONSECUTIVE_SHORT_STEPS steps in a row are below
        ``shortest``, and on overflow.
        """
        lowest = landmark = np.inf
        idle = short = 0
        limit += self.steps
        try:
            while idle < patience:
                check_limits()
                self.measure()
                if not np.isfinite(self.gap):
                    return False
                if ends():
                    return True
                if self.gap < lowest:
                    lowest = self.gap
                    self.keep()
                idle = 0 if self.gap < PROGRESS * landmark else idle + 1
                landmark = self.gap if idle == 0 else landmark
                length = self.advance() if self.steps < limit else 0.0
                short = short + 1 if length < shortest else 0
                if not length > SHORTEST_STEP or short == MAX_CONSECUTIVE_SHORT_STEPS:
                    return False
                if self.steps % REFRESH_EVERY == 0:
                    self.refresh()
        except NonFinite:  # the Gram matrix overflowed
            return False
        return False
