"""Minimise the number of errors: by enumeration for one or two features, by covering witnesses for more."""

from __future__ import annotations

import itertools
from collections.abc import Iterable
from dataclasses import dataclass
from time import perf_counter

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.data import Memory
from linsep.interrupts import if_in_time
from linsep.monitoring import note
from linsep.separability import Separable, decide
from linsep.separability.witness import Witness
from linsep.zero_one import master
from linsep.zero_one.descent import descend, errors
from linsep.zero_one.points import Points
from linsep.zero_one.sweep import best_threshold, sweep, threshold_plane
from linsep.zero_one.witnesses import exact_witness, pack

_SWEPT = 20_000  # most points for which two features are enumerated
_PACKINGS = 4
_ROUND = 20  # disjoint witnesses per round
_NODES = 500  # node limit of the cover search if the number of rounds is limited
_INNER = 8  # greedy covers tried between two exact ones
_SMALLER = 2.0**-64  # factor on (w, b) if scores would overflow


@dataclass(frozen=True, eq=False)
class Found:
    """theta = (w, b), its errors, a proven lower bound, and its proof: witnesses or an enumeration.

    Errors and bound are in the integer units of the points.
    """

    theta: FloatArray
    wrong: BoolArray
    errors: int
    bound: int
    witnesses: tuple[Witness, ...]
    method: str


def minimise(
    points: Points,
    starts: Iterable[FloatArray],
    deadline: float,
    rng: np.random.Generator,
    rounds: int | None = None,
) -> Found:
    """Minimise the errors; return the best result when time or rounds are exhausted. ``starts`` are initial (w, b)."""
    d = points.X.shape[1]
    if d == 1:
        least, positive = best_threshold(points.X[:, 0], points.signed_units)
        best = BestHyperplane(points)
        best.offer(threshold_plane(points.X[:, 0], positive))
        return best.result(least * points.step, (), "thresholds")
    search = Search(points, deadline, rng)
    if search.separable():
        return search.best.centre_result(0, (), "separable")
    if d == 2 and len(points) <= _SWEPT:
        swept = sweep(points, deadline)
        if swept is not None:
            if not search.best.keep(swept.positive == (points.sign > 0)):
                search.begin(starts)  # float64 coefficients miss the optimum: use the best found
            return search.best.centre_result(swept.errors, (), "sweep")
    if_in_time(lambda: search.cover(starts, rounds), lambda: None)
    return search.best.centre_result(search.bound, search.proof, "cover")


class BestHyperplane:
    """The best hyperplane so far; errors are counted exactly, in the units of the points."""

    def __init__(self, points: Points) -> None:
        self.points = points
        side = 1.0 if points.signed_units.sum() >= 0 else -1.0
        self.theta = np.append(np.zeros(points.X.shape[1]), side)
        self.wrong = points.find_errors(self.theta)
        self.errors = points.count(self.wrong)

    def offer(self, theta: FloatArray) -> bool:
        """Accept theta if it makes fewer errors; return whether it was accepted."""
        if not np.isfinite(theta).all():
            return False
        if not np.isfinite(_clearance(self.points, theta)):
            theta = theta * _SMALLER
        wrong = self.points.find_errors(theta)
        count = self.points.count(wrong)
        if count >= self.errors:
            return False
        self.theta, self.wrong, self.errors = theta, wrong, count
        return True

    def keep(self, kept: BoolArray) -> bool:
        """Accept a hyperplane with all kept points on their side, if float64 can represent one and it is better."""
        if self.points.count(~kept) >= self.errors:
            return False
        sign = self.points.sign[kept]
        if sign.min() == sign.max():
            return self.offer(np.append(np.zeros(self.points.X.shape[1]), sign[0]))
        answer = decide(Memory(self.points.X[kept], sign, n_threads=1))
        return isinstance(answer, Separable) and self.offer(answer.hyperplane.homogeneous())

    def centre_result(self, bound: int, witnesses: tuple[Witness, ...], method: str) -> Found:
        """Return the result after moving the hyperplane away from the points on either side, if time allows."""
        if_in_time(self._centre, lambda: None)
        return self.result(bound, witnesses, method)

    def _centre(self) -> None:
        side = np.where(self.wrong, -self.points.sign, self.points.sign)
        if side.min() < side.max():
            answer = decide(Memory(self.points.X, side, n_threads=1))
            if isinstance(answer, Separable):
                theta = answer.hyperplane.homogeneous()
                same = np.array_equal(self.points.find_errors(theta), self.wrong)
                if same and _clearance(self.points, theta) > _clearance(self.points, self.theta):
                    self.theta = theta

    def result(self, bound: int, witnesses: tuple[Witness, ...], method: str) -> Found:
        """Return the result with this lower bound and proof."""
        return Found(self.theta, self.wrong, self.errors, bound, witnesses, method)


def _clearance(points: Points, theta: FloatArray) -> float:
    """Smallest |w.x + b| relative to |x|.|w| + |b|; NaN on overflow."""
    w, b = theta[:-1], theta[-1]
    with np.errstate(all="ignore"):
        ratio = np.abs(points.X @ w + b) / (np.abs(points.X) @ np.abs(w) + np.abs(b))
    return float(ratio.min())


class Search:
    """Cover witnesses: lower bounds from covers and upper bounds from hyperplanes, until they meet or time is up."""

    def __init__(self, points: Points, deadline: float, rng: np.random.Generator) -> None:
        self.points, self.deadline, self.rng = points, deadline, rng
        self.best = BestHyperplane(points)
        self.witnesses: list[Witness] = []
        self.bound = 0
        self.proof: tuple[Witness, ...] = ()  # the witnesses that prove the bound
        # fewest errors of a hyperplane, even if its coefficients are not representable in float64
        self.reached = self.points.total
        self.stuck = False

    def goal(self) -> int:
        """Fewest errors that some hyperplane is known to make."""
        self.reached = min(self.reached, self.best.errors)
        return self.reached

    def is_over(self) -> bool:
        """Return whether the bounds have met, time is up, or no progress is possible."""
        note(0.0, self.points.value(self.best.errors), self.points.value(self.bound))
        met = self.bound >= self.goal()
        return met or self.stuck or perf_counter() > self.deadline

    def separable(self) -> bool:
        """Return whether no error is necessary; False if time does not allow a decision."""
        if self.best.errors == 0:
            return True
        everything = np.ones(len(self.points), dtype=bool)
        return if_in_time(lambda: self.best.keep(everything), lambda: False)

    def cover(self, starts: Iterable[FloatArray], rounds: int | None) -> None:
        """Improve bounds and hyperplanes; results found so far remain if time runs out."""
        self.begin(starts)
        self.run(rounds)

    def begin(self, starts: Iterable[FloatArray]) -> None:
        """Run line searches from the given hyperplanes, and a few packings of disjoint witnesses."""
        everything = np.arange(len(self.points))
        for theta in starts:
            self.best.offer(theta)
            if perf_counter() > self.deadline:
                return
            self._improve(self._inside(theta), patience=44 + 4 * self.points.X.shape[1])
        for _ in range(_PACKINGS):
            if self.is_over():
                return
            self._pack(everything, most=len(self.points))

    def run(self, rounds: int | None) -> None:
        """Alternate covers and new witnesses until every cover weighs as much as the errors of some hyperplane.

        A limit on rounds makes the result independent of the clock, so the cover search is then limited by nodes too.
        """
        nodes = None if rounds is None else _NODES
        for _ in itertools.count() if rounds is None else range(rounds):
            self._cheap_rounds()
            if self.is_over() or not self.witnesses:
                return
            sets, units = self._sets(), self.points.units
            self._raise(master.relaxation_bound(sets, units), self.witnesses)
            if self.is_over():
                return
            lighter = master.lighter_cover(
                sets, units, self.goal(), nodes=nodes, deadline=self.deadline
            )
            if lighter.exists is False:
                self._raise(self.goal(), self.witnesses)
                return
            if lighter.cover is not None:
                self._uncover(lighter.cover)

    def _raise(self, bound: int, witnesses: list[Witness]) -> None:
        """Accept a higher bound, with the witnesses that prove it."""
        if bound > self.bound:
            self.bound, self.proof = bound, tuple(witnesses)

    def _sets(self) -> list[IntArray]:
        return [witness.rows for witness in self.witnesses]

    def _cheap_rounds(self) -> None:
        """Add witnesses that greedy covers do not intersect."""
        for _ in range(_INNER):
            if self.is_over() or not self.witnesses:
                return
            if not self._uncover(master.greedy(self._sets(), self.points.cost, self.rng)):
                return

    def _uncover(self, chosen: IntArray) -> bool:
        """Add witnesses among the points not chosen; False if there are none because a hyperplane separates these."""
        left = np.setdiff1d(np.arange(len(self.points)), chosen)
        if self._pack(left, most=_ROUND):
            return True
        weight = self.points.count(chosen)
        if self.stuck or self.goal() <= weight or perf_counter() > self.deadline:
            return False
        exact = exact_witness(self.points, left)  # floats found them separable
        if isinstance(exact, Witness):
            self.witnesses.append(exact)
            return True
        if exact:
            self.reached = weight
        self.stuck = exact is None
        return False

    def _pack(self, rows: IntArray, most: int) -> bool:
        packing = pack(self.points, rows, self.rng, most=most, deadline=self.deadline)
        new = packing.witnesses
        self.witnesses += new
        if len(rows) == len(self.points):
            together = sum(min(self.points.units[w.rows].tolist()) for w in new)
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
        A, cost = self.points.vectors[0], self.points.cost
        if errors(A, cost, phi) > 1.5 * float(cost[self.best.wrong].sum()) + cost.max():
            patience = min(patience, 5)
        phi, _ = descend(A, cost, phi, self.rng, patience=patience, deadline=self.deadline)
        self.best.offer(self.points.frame.theta(phi))

    def _inside(self, theta: FloatArray) -> FloatArray:
        """Convert (w, b) to the coordinates of the frame."""
        frame = self.points.frame
        w = theta[:-1] * frame.spread
        return np.append(w, (theta[-1] + frame.centre @ theta[:-1]) / frame.shift)
