"""Mehrotra's predictor-corrector method: the one driver of all interior point methods here.

A path holds pairs of positive numbers whose products all equal mu on the central path. An iteration predicts the step
to mu = 0, learns from it how much of the products would be left, aims at mu = left^3 times their mean, corrects the
step for that and for the products of the predicted changes, and goes 0.995 of the way to the boundary.

Reference: Mehrotra, On the implementation of a primal-dual interior point method, 1992.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable

import numpy as np

from linsep.arrays import FloatArray
from linsep.errors import NonFinite

STEP_FRACTION = 0.995  # of the way to the boundary
LEAST_CENTRING = 1e-6  # mu, as a share of the mean product, at least
SHORTEST_STEP = 1e-8  # below which an iteration is of no use
PROGRESS = 0.9  # times the gap at the last landmark: slow progress is progress
REFRESH_EVERY = 8  # iterations after which margins are computed afresh, against drift
MAX_SHORT_STEPS = 4  # in a row, where the caller bounds the length of steps from below


def blocking(x: FloatArray, dx: FloatArray) -> float:
    """max of -dx/x: the step length 1/blocking reaches the boundary of x > 0."""
    return float(np.max(-dx / x, initial=0.0))


def step_to_boundary(blocking: float) -> float:
    """The longest feasible step, at most 1."""
    return 1.0 / blocking if blocking > 1.0 else 1.0


def step_length(blocking: float) -> float:
    """The step that stops short of the boundary, at most 1."""
    return STEP_FRACTION / blocking if blocking > STEP_FRACTION else 1.0


class PredictorCorrector(ABC):
    """An iterate on its way along the central path; subclasses know the rows, features and linear systems."""

    value = np.inf  # objective, after ``measure``
    gap = np.inf  # duality gap, after ``measure``
    steps = 0  # iterations made

    @abstractmethod
    def measure(self) -> None:
        """Compute objective and gap at the iterate."""

    @abstractmethod
    def complementarity(self) -> tuple[float, float]:
        """Sum of all products, and the number of pairs (their total weight)."""

    @abstractmethod
    def predict(self) -> float:
        """Find the step to mu = 0; the share of the products that is left after as much of it as is feasible."""

    @abstractmethod
    def correct(self, mu: float) -> float:
        """Find the step to mu, corrected by the predicted one; its ``blocking``."""

    @abstractmethod
    def take(self, length: float) -> None:
        """Go so far along the corrected step."""

    def recentre(self, mu: float, blocking: float) -> float:
        """Improve the corrected step, if possible; its ``blocking`` then."""
        return blocking

    def refresh(self) -> None:
        """Compute anew what steps only update."""
        return

    def keep(self) -> None:
        """Remember the iterate: its gap is the least so far."""
        return

    def advance(self) -> float:
        """One iteration; the length of its step, 0 if there is none."""
        total, pairs = self.complementarity()
        if not total > 0.0:  # the weights of the rows are so small that their products vanish
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

        Also False when a step is of no use, when MAX_SHORT_STEPS in a row are below ``shortest``, and on overflow.
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
                if not length > SHORTEST_STEP or short == MAX_SHORT_STEPS:
                    return False
                if self.steps % REFRESH_EVERY == 0:
                    self.refresh()
        except NonFinite:  # the Gram matrix overflowed
            return False
        return False
