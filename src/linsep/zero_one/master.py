"""The covering problem: choose points of smallest total weight that intersect every witness.

    min sum_i s_i e_i    over e in {0, 1},    sum_{i in W} e_i >= 1 for every witness W

Any hyperplane makes an error in every witness, so the minimum is a lower bound on its errors; so is any lower bound on
the minimum (Parker and Ryan 1996; with cuts generated as needed, Codato and Fischetti 2006). Weights and bounds are
integers: linear programmes in float64 only propose prices.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from time import perf_counter

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import linprog

from linsep.arrays import FloatArray, IntArray
from linsep.interrupts import linear_programme

Units = npt.NDArray[np.object_]

_DIGITS = 40  # fractional bits of the prices


@dataclass(frozen=True, eq=False)
class Lighter:
    """Whether some cover weighs less than the goal (None if not known), and if so, such a cover."""

    exists: bool | None
    cover: IntArray | None = None


def incidence(sets: list[IntArray], width: int) -> sp.csr_matrix:
    """Incidence matrix with one row per witness and one column per point."""
    columns = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum([len(rows) for rows in sets])])
    return sp.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(sets), width))


def relaxation_bound(sets: list[IntArray], units: Units) -> int:
    """Lower bound on the weight of every cover from the linear relaxation, proven in integers without a search."""
    return _relaxation([rows.tolist() for rows in sets], units)[0]


def greedy(
    sets: list[IntArray], weight: FloatArray, rng: np.random.Generator | None = None
) -> IntArray:
    """Greedy cover: repeatedly take the point in most witnesses per weight, then drop redundant points."""
    M = incidence(sets, len(weight))
    price = 1.0 / weight if rng is None else rng.uniform(0.8, 1.0, len(weight)) / weight
    open_sets = np.ones(len(sets), dtype=bool)
    chosen: list[int] = []
    while open_sets.any():
        gain = np.asarray(M[open_sets].sum(axis=0)).ravel() * price
        point = int(gain.argmax())
        chosen.append(point)
        open_sets[M[:, [point]].nonzero()[0]] = False
    count = np.asarray(M[:, chosen].sum(axis=1)).ravel()
    for point in list(chosen):
        inside = M[:, [point]].nonzero()[0]
        if (count[inside] > 1).all():
            count[inside] -= 1
            chosen.remove(point)
    return np.array(sorted(chosen), dtype=np.int64)


def lighter_cover(
    sets: list[IntArray],
    units: Units,
    goal: int,
    *,
    nodes: int | None = None,
    deadline: float = math.inf,
) -> Lighter:
    """Search for a cover that weighs less than the goal, by depth-first branch and bound in integers.

    A node takes some points and bans others. It is pruned when the weight taken reaches the goal, alone or together
    with the bound of ``_relaxation`` on the witnesses still to be covered.
    """
    listed = [rows.tolist() for rows in sets]
    costs = units.tolist()
    stack: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
    visited = 0
    while stack:
        if visited == nodes or perf_counter() > deadline:
            return Lighter(None)
        visited += 1
        taken, banned = stack.pop()
        spent = sum(costs[i] for i in taken)
        if spent >= goal:
            continue
        left = [[i for i in rows if i not in banned] for rows in listed if taken.isdisjoint(rows)]
        if any(not rows for rows in left):
            continue  # a witness with every point banned cannot be covered
        if not left:
            return Lighter(True, np.array(sorted(taken), dtype=np.int64))
        bound, point = _relaxation(left, units)
        if spent + bound >= goal:
            continue
        stack.append((taken, banned | {point}))
        stack.append((taken | {point}, banned))
    return Lighter(False)


def _relaxation(left: list[list[int]], units: Units) -> tuple[int, int]:
    """Lower bound on the weight of covers of ``left``, and the point to branch on.

    Prices y >= 0 of the witnesses prove that covers weigh at least sum y, if for each point the prices of the witnesses
    that contain it sum to at most its weight. The linear programme proposes y in float64. In integers, each price is
    reduced to the smallest remaining weight of its points, and increased again where weight remains. A cover weighs a
    multiple of the greatest common divisor of the weights, so the sum is rounded up to one.
    """
    used = np.unique(np.concatenate([np.array(rows) for rows in left]))
    M = incidence([np.searchsorted(used, rows) for rows in left], len(used))
    own = units[used].tolist()
    largest, step = max(own), math.gcd(*own)
    cost = np.array([cost / largest for cost in own])
    limits = {"A_ub": -M, "b_ub": -np.ones(len(left)), "bounds": (0, None)}
    solved = linear_programme(linprog, cost, M, **limits, method="highs")
    known = solved.status == 0
    prices = np.maximum(-solved.ineqlin.marginals, 0.0) if known else np.zeros(len(left))
    remaining = {int(i): cost << _DIGITS for i, cost in zip(used, own, strict=True)}
    total = 0
    for proposed in ([int(y * 2.0**60) * largest >> (60 - _DIGITS) for y in prices.tolist()], None):
        for at, rows in enumerate(left):
            price = min(remaining[i] for i in rows)
            if proposed is not None:
                price = min(price, proposed[at])
            if price > 0:
                total += price
                for i in rows:
                    remaining[i] -= price
    bound = -(-total // (step << _DIGITS)) * step
    x = solved.x if known else np.zeros(len(used))
    fractional = np.minimum(x, 1.0 - x)
    degree = np.asarray(M.sum(axis=0)).ravel()
    return bound, int(used[np.lexsort((degree, x > 0.5, np.round(fractional, 6)))[-1]])
