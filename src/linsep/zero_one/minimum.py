"""From points to the fewest errors: enumeration for one or two features, covering of witnesses for more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from linsep.data import Memory
from linsep.separability import Separable, decide
from linsep.separability.witness import Witness
from linsep.watching import note
from linsep.zero_one import master
from linsep.zero_one.descent import descend, errors
from linsep.zero_one.line import best_threshold
from linsep.zero_one.points import FloatArray, IntArray, Mask, Points
from linsep.zero_one.sweep import sweep
from linsep.zero_one.witnesses import pack

_SWEPT = 20_000  # points up to which two features are enumerated
_PACKINGS = 4
_ROUND = 20  # disjoint witnesses a round
_NODES = 100  # of the search for a cover, where rounds are counted
_INNER = 8  # greedy covers tried between two exact ones


@dataclass(frozen=True, eq=False)
class Found:
    """theta = (w, b), its errors, a proven lower bound, and what proves it: witnesses, or an enumeration."""

    theta: FloatArray
    wrong: Mask
    errors: float
    bound: float
    witnesses: tuple[Witness, ...]
    method: str


def minimise(
    points: Points,
    starts: Iterable[FloatArray],
    deadline: float,
    rng: np.random.Generator,
    rounds: int | None = None,
) -> Found:
    """The fewest errors, or the best found when time or rounds are up. ``starts`` are (w, b) to begin with."""
    d = points.X.shape[1]
    if d == 1:
        value, positive = best_threshold(points.X[:, 0], points.sign * points.weight)
        best = Attempt(points)
        best.keep(positive == (points.sign > 0))
        return best.found(value, (), "thresholds")
    search = Search(points, deadline, rng)
    if search.separable():
        return search.best.found(0.0, (), "separable")
    if d == 2 and len(points) <= _SWEPT:
        swept = sweep(points, deadline)
        if swept is not None:
            search.best.keep(swept.positive == (points.sign > 0))
            if points.settled(search.best.errors, swept.bound):
                return search.best.found(swept.bound, (), "sweep")
    search.begin(starts)
    search.run(rounds)
    return search.best.found(search.bound, search.proof, "cover")


class Attempt:
    """The best hyperplane so far; errors are counted without rounding."""

    def __init__(self, points: Points) -> None:
        self.points = points
        side = 1.0 if points.sign @ points.weight >= 0.0 else -1.0
        self.theta = np.append(np.zeros(points.X.shape[1]), side)
        self.wrong = points.wrong(self.theta)
        self.errors = points.errors(self.wrong)

    def offer(self, theta: FloatArray) -> bool:
        """Take theta if it makes fewer errors."""
        if not np.isfinite(theta).all():
            return False
        wrong = self.points.wrong(theta)
        count = self.points.errors(wrong)
        if count >= self.errors:
            return False
        self.theta, self.wrong, self.errors = theta, wrong, count
        return True

    def keep(self, kept: Mask) -> bool:
        """Take a hyperplane that has all kept points strictly on their side, if it exists and is better."""
        if self.points.errors(~kept) >= self.errors:
            return False
        sign = self.points.sign[kept]
        if sign.min() == sign.max():
            return self.offer(np.append(np.zeros(self.points.X.shape[1]), sign[0]))
        answer = decide(Memory(self.points.X[kept], sign, n_threads=1))
        return isinstance(answer, Separable) and self.offer(answer.hyperplane.homogeneous())

    def found(self, bound: float, witnesses: tuple[Witness, ...], method: str) -> Found:
        """The result; equal to rounding, the bound is the number of errors."""
        if self.points.settled(self.errors, bound):
            bound = self.errors
        return Found(self.theta, self.wrong, self.errors, bound, witnesses, method)


class Search:
    """Covering of witnesses: bounds from below, hyperplanes from above, until they meet or time is up."""

    def __init__(self, points: Points, deadline: float, rng: np.random.Generator) -> None:
        self.points, self.deadline, self.rng = points, deadline, rng
        self.best = Attempt(points)
        self.witnesses: list[Witness] = []
        self.bound = 0.0
        self.proof: tuple[
            Witness, ...
        ] = ()  # those that prove the bound, so that it can be proven again as fast
        self.stuck = False

    def over(self) -> bool:
        """Whether the bounds have met, time is up, or there is no way on."""
        note(0.0, self.best.errors, self.bound)
        met = self.points.settled(self.best.errors, self.bound)
        return met or self.stuck or perf_counter() > self.deadline

    def separable(self) -> bool:
        """Whether no error is needed at all."""
        return self.best.errors == 0.0 or self.best.keep(np.ones(len(self.points), dtype=bool))

    def begin(self, starts: Iterable[FloatArray]) -> None:
        """Line searches from the given hyperplanes, and a few packings of disjoint witnesses."""
        everything = np.arange(len(self.points))
        A, _ = self.points.vectors
        for theta in starts:
            self.best.offer(theta)
            self._improve(self._inside(theta), patience=40 + 4 * A.shape[1])
        for _ in range(_PACKINGS):
            if self.over():
                return
            self._pack(everything, most=len(self.points))

    def run(self, rounds: int | None) -> None:
        """Cover, ask, add witnesses; an optimal cover that leaves separable rows is the answer.

        A number of rounds makes the result independent of the clock, so the covers are limited by nodes too.
        """
        nodes = None if rounds is None else _NODES
        for _ in itertools.count() if rounds is None else range(rounds):
            self._cheap_rounds()
            if self.over():
                return
            sets = self._sets()
            cover = master.cover(sets, self.points.weight, self.deadline - perf_counter(), nodes)
            # a bound from an unfinished search could not be checked in less time: the relaxation can
            sure = cover.bound if cover.optimal else master.relaxed(sets, self.points.weight)
            self._raise(sure, self.witnesses)
            if cover.chosen is None or self.over():
                return
            if not self._uncover(cover.chosen):
                return  # separable, hence done; or floats cannot tell

    def _raise(self, bound: float, witnesses: list[Witness]) -> None:
        """Take a higher bound with the witnesses that prove it."""
        bound = self.points.at_least(bound)
        if bound > self.bound:
            self.bound, self.proof = bound, tuple(witnesses)

    def _sets(self) -> list[IntArray]:
        return [witness.rows for witness in self.witnesses]

    def _cheap_rounds(self) -> None:
        """Witnesses that greedy covers have missed."""
        for _ in range(_INNER):
            if self.over() or not self.witnesses:
                return
            if not self._uncover(master.greedy(self._sets(), self.points.weight, self.rng)):
                return

    def _uncover(self, chosen: IntArray) -> bool:
        """New witnesses among the points not chosen; False if these are separable."""
        left = np.setdiff1d(np.arange(len(self.points)), chosen)
        return self._pack(left, most=_ROUND)

    def _pack(self, rows: IntArray, most: int) -> bool:
        packing = pack(self.points, rows, self.rng, most=most, deadline=self.deadline)
        new = packing.witnesses
        self.witnesses += new
        if len(rows) == len(self.points):
            together = sum(float(self.points.weight[w.rows].min()) for w in new)
            self._raise(together, new)
        if packing.phi is not None:
            self.best.offer(self.points.frame.theta(packing.phi))
            self._improve(packing.phi, patience=10)
        if packing.separable and (packing.phi is None or not new):
            gone = [witness.rows for witness in new]
            left = np.setdiff1d(rows, np.concatenate(gone)) if gone else rows
            self.best.keep(np.isin(np.arange(len(self.points)), left))
        elif packing.separable is None and not new:
            self.stuck = True  # neither a separator nor a proven witness at working precision
        return bool(new)

    def _improve(self, phi: FloatArray, patience: int) -> None:
        A, _ = self.points.vectors
        if errors(A, self.points.weight, phi) > 1.5 * self.best.errors + self.points.weight.max():
            patience = min(patience, 5)
        phi, _ = descend(
            A, self.points.weight, phi, self.rng, patience=patience, deadline=self.deadline
        )
        self.best.offer(self.points.frame.theta(phi))

    def _inside(self, theta: FloatArray) -> FloatArray:
        """(w, b) in the coordinates of the frame."""
        frame = self.points.frame
        w = theta[:-1] * frame.spread
        return np.append(w, (theta[-1] + frame.centre @ theta[:-1]) / frame.shift)
