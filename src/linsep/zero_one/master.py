"""The covering problem: choose points of least weight so that every witness loses at least one.

    min sum_i s_i e_i    over e in {0, 1},    sum_{i in W} e_i >= 1 for every witness W

Any hyperplane makes an error in every witness, so the minimum is a lower bound on its errors; so is any lower bound
on the minimum. (Parker and Ryan 1996; with cuts that grow as needed, Codato and Fischetti 2006.)
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt
import scipy.optimize
import scipy.sparse as sp

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Cover:
    """Points chosen (None if time ran out before any were), a lower bound, and whether the choice is optimal."""

    chosen: IntArray | None
    bound: float
    optimal: bool


def incidence(sets: list[IntArray], width: int) -> sp.csr_matrix:
    """One row for each witness, one column for each point."""
    columns = np.concatenate(sets) if sets else np.zeros(0, dtype=np.int64)
    ends = np.concatenate([[0], np.cumsum([len(rows) for rows in sets])])
    return sp.csr_matrix((np.ones(len(columns)), columns, ends), shape=(len(sets), width))


def cover(
    sets: list[IntArray], weight: FloatArray, seconds: float, nodes: int | None = None
) -> Cover:
    """The least cover, through HiGHS; within the time, or the nodes of its search, the best bound."""
    used = np.unique(np.concatenate(sets))
    M = incidence([np.searchsorted(used, rows) for rows in sets], len(used))
    largest = float(weight[used].max())
    cost = weight[used] / largest
    solved = scipy.optimize.milp(
        cost,
        constraints=scipy.optimize.LinearConstraint(M, lb=1.0),
        integrality=np.ones(len(used)),
        bounds=scipy.optimize.Bounds(0.0, 1.0),
        options={
            "time_limit": max(seconds, 0.01),
            "mip_rel_gap": 0.0,
            **({} if nodes is None else {"node_limit": nodes}),
        },
    )
    chosen = None if solved.x is None else used[solved.x > 0.5]
    bound = solved.mip_dual_bound
    known = bound is not None and np.isfinite(bound)
    return Cover(chosen, float(bound) * largest if known else 0.0, solved.status == 0)


def relaxed(sets: list[IntArray], weight: FloatArray) -> float:
    """The minimum of the linear relaxation: a lower bound that takes no search."""
    used = np.unique(np.concatenate(sets))
    M = incidence([np.searchsorted(used, rows) for rows in sets], len(used))
    solved = scipy.optimize.linprog(
        weight[used], A_ub=-M, b_ub=-np.ones(len(sets)), bounds=(0, None), method="highs"
    )
    return float(solved.fun) if solved.status == 0 else 0.0


def greedy(
    sets: list[IntArray], weight: FloatArray, rng: np.random.Generator | None = None
) -> IntArray:
    """A small cover: again and again the point in most witnesses for its weight, then those not needed dropped."""
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


def every_cover_weighs(
    sets: list[IntArray], weight: FloatArray, claim: float, slack: float, nodes: int = 20_000
) -> bool | None:
    """Whether every cover weighs at least claim - slack, by branch and bound without rounding; None if it is too long.

    At each node the linear relaxation is solved in floats, and its dual made feasible in rational numbers: y >= 0 with
    sum of y over the witnesses of a point at most its weight proves that covers weigh at least sum y.
    """
    costs = [Fraction(x) for x in weight.tolist()]
    goal = Fraction(claim) - Fraction(slack)
    stack: list[tuple[frozenset[int], frozenset[int]]] = [(frozenset(), frozenset())]
    for _ in range(nodes):
        if not stack:
            return True
        taken, banned = stack.pop()
        spent = sum((costs[i] for i in taken), Fraction(0))
        if spent >= goal:
            continue
        left = [
            [i for i in rows.tolist() if i not in banned]
            for rows in sets
            if taken.isdisjoint(rows.tolist())
        ]
        if any(not rows for rows in left):
            continue  # a witness with every point banned: no cover here
        if not left:
            return False
        bound, point = _relaxation(left, weight, costs)
        if spent + bound >= goal:
            continue
        stack.append((taken, banned | {point}))
        stack.append((taken | {point}, banned))
    return None


def _relaxation(
    left: list[list[int]], weight: FloatArray, costs: list[Fraction]
) -> tuple[Fraction, int]:
    """A rational lower bound on covers of ``left``, and the point to branch on."""
    used = np.unique(np.concatenate([np.array(rows) for rows in left]))
    M = incidence([np.searchsorted(used, rows) for rows in left], len(used))
    solved = scipy.optimize.linprog(
        weight[used], A_ub=-M, b_ub=-np.ones(len(left)), bounds=(0, None), method="highs"
    )
    y = [Fraction(max(0.0, -float(value))) for value in solved.ineqlin.marginals]
    load: dict[int, Fraction] = {}
    for rows, price in zip(left, y, strict=True):
        for i in rows:
            load[i] = load.get(i, Fraction(0)) + price
    over = max((load[i] / costs[i] for i in load), default=Fraction(0))
    bound = sum(y, Fraction(0)) / max(over, Fraction(1))
    fractional = np.minimum(solved.x, 1.0 - solved.x)
    degree = np.asarray(M.sum(axis=0)).ravel()
    return bound, int(used[np.lexsort((degree, np.round(fractional, 6)))[-1]])
