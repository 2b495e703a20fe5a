"""Find witnesses of inseparability: sets of points in each of which every hyperplane makes an error."""

from __future__ import annotations

from dataclasses import dataclass
from time import perf_counter

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.separability import Inseparable, decide, simplex, witness_or_separator
from linsep.separability.witness import Witness, make_witness
from linsep.zero_one.points import Points

_ROUNDS = 100


@dataclass(frozen=True, eq=False)
class Packing:
    """Disjoint witnesses, and whether the other rows are separable (None if not known), by the separator ``phi``.

    ``phi`` is None if only exact arithmetic could decide that they are.
    """

    witnesses: list[Witness]
    separable: bool | None
    phi: FloatArray | None = None


def separate_or_witness(
    points: Points, rows: IntArray, rng: np.random.Generator
) -> tuple[FloatArray | None, IntArray, FloatArray]:
    """Return (phi, ., .) that separates the rows, or (None, rows, weights) of a witness, on a growing working set."""
    A, lengths = points.vectors
    p = A.shape[1]
    working = rows
    if len(rows) > 16 * (p + 1):
        working = rng.choice(rows, 8 * (p + 1), replace=False)
    for _ in range(_ROUNDS):
        split = witness_or_separator(A[working])
        if not split.separated:
            used = split.weights > 0.0
            chosen = working[used]
            return None, chosen, split.weights[used] / lengths[chosen]
        m = A[rows] @ split.theta
        bad = np.flatnonzero(m <= 0.0)
        if not len(bad):
            return split.theta, rows[:0], np.zeros(0)
        worst = rows[bad[np.argsort(m[bad])[: 4 * p]]]
        new = np.setdiff1d(worst, working)
        if not len(new):
            break
        working = np.concatenate([working, new])
    return None, rows[:0], np.zeros(0)


def pack(
    points: Points, rows: IntArray, rng: np.random.Generator, *, most: int, deadline: float
) -> Packing:
    """Find up to ``most`` proven disjoint witnesses among the rows, or until the rest is separable.

    The rows with positive weight at a vertex of the alternative polytope become separable if any one of them is left
    out (Gleeson and Ryan 1990): no witness contains a smaller one.
    """
    found: list[Witness] = []
    left = rows
    while len(found) < most and perf_counter() < deadline:
        sides = points.sign[left]
        if not len(left) or sides.min() == sides.max():
            phi = np.zeros(points.X.shape[1] + 1)
            phi[-1] = sides[0] if len(left) else 1.0
            return Packing(found, True, phi)
        phi_or_none, chosen, weights = separate_or_witness(points, left, rng)
        if phi_or_none is not None:
            return Packing(found, True, phi_or_none)
        witness = make_witness(points.signed, chosen, weights) if len(chosen) else None
        if witness is None or not witness.proven:
            exact = exact_witness(points, left)
            if not isinstance(exact, Witness):
                return Packing(found, exact)
            witness = exact
        found.append(witness)
        left = np.setdiff1d(left, witness.rows)
    return Packing(found, None if len(found) < most else False)


def exact_witness(points: Points, rows: IntArray) -> Witness | bool | None:
    """Return a proven witness among the rows, True if they are separable, or None if it takes too long to decide.

    For small data, cases that floats leave undecided have been decided in rational arithmetic: some hyperplane
    then separates the rows, although none with float64 coefficients was found.
    """
    answer = decide(Memory(points.X[rows], points.sign[rows], n_threads=1))
    if isinstance(answer, Inseparable):
        found = Witness(rows[answer.rows], answer.weights, answer.residual, True)
        return found if answer.proven else None
    few = len(rows) * (points.X.shape[1] + 1) <= simplex.ENTRIES
    return True if answer.separable or few else None
