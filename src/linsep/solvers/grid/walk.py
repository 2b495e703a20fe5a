"""Choose the base points of a grid (``newton``): follow the solution path of all rows, then of single folds."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from linsep.arrays import FloatArray
from linsep.monitoring import advance, note
from linsep.problem import Problem
from linsep.solution import Stop
from linsep.solvers import sampling
from linsep.solvers.grid import kinks as grid_kinks
from linsep.solvers.grid.newton import Base, Grid, GridModel, Plan
from linsep.solvers.grid.pilot import Pilot, noisy
from linsep.solvers.run import LimitReached, Run

_NEAR = 3e-3  # largest half squared decrement, relative to P, of a single step from a base
_REACH = 0.7  # its limit in units of sqrt(tol), because the gap is proportional to its square
_SHORT = 0.1  # that limit if rows are few, where more accuracy costs little
ROUNDS = 3  # rounds with bases closer to the open models


def solve(
    grid: Grid, stop: Stop, held: FloatArray | None = None, seed: int = 0
) -> dict[tuple[int, int], GridModel]:
    """Fit the models of the grid, keyed by (index of C, fold); some may not be closed.

    ``held`` (n, number of Cs) receives the scores of every row by the models trained without it. A limit of the user
    ends the fit early, with the models found so far.
    """
    run = Run(grid.problem, stop)
    reach = _REACH if _many_rows(grid.problem) else _SHORT
    near = min(_NEAR, reach * stop.tol**0.5)
    found: dict[tuple[int, int], GridModel] = {}
    todo = [(c, f) for c in range(len(grid.Cs)) for f in grid.held_out]
    try:
        plans = _along_all_rows(grid, near, run, seed)
        for _ in range(ROUNDS):
            found.update({(m.c, m.part): m for m in grid.close(plans, stop.tol, held)})
            todo = [key for key in todo if not found[key].closed]
            advance(len(found) - len(todo))
            if not todo:
                break
            plans = _along_parts(grid, todo, found, near, run)
    except LimitReached:
        pass
    return found


def _many_rows(problem: Problem) -> bool:
    """Return whether a pilot is cheap relative to all rows."""
    return sampling.many_rows(problem.data)


def _along_all_rows(grid: Grid, near: float, run: Run[Problem], seed: int) -> list[Plan]:
    """Follow the solution path of all rows; every model takes its step from the base of its C.

    Without its fold a model has less loss relative to the penalty, so the nearest optimum of all rows is that of a C
    smaller by the same share. With many rows a pilot predicts the next base. The path then starts at the largest C,
    near which most other optima are, and where steps must be the most accurate; otherwise at the smallest, near zero.
    """
    problem = grid.problem
    share = grid.share()
    Cs = [C * share for C in grid.Cs]
    order = list(range(len(Cs)))
    pilot: Pilot | None = None
    if _many_rows(problem):
        order.reverse()
        pilot = Pilot(problem, seed)
        base = pilot.first_base(grid, Cs[-1], near)
    else:
        base = grid.base_at(np.zeros(problem.order))
    planned: list[tuple[Base, list[Plan]]] = []
    for c in order:
        move = grid.step(base, Cs[c], -1)
        if pilot is not None and c != order[0] and move.half > near * move.value:
            trial = pilot.next_base(grid, base, Cs[c], near, run.stop.tol)
            base = trial if grid.step(trial, Cs[c], -1).half < move.half else base
        base = grid.reach(Cs[c], -1, base, near, run)
        base, mine = _plans(grid, base, c, list(grid.held_out), run.stop.tol)
        if planned and planned[-1][0] is base:
            planned[-1][1].extend(mine)
        else:
            planned.append((base, mine))
        advance(0.5 * sum(len(plans) for _, plans in planned))  # planned models count half
    if grid_kinks.kinks_of(problem.loss):
        return [plan for base, plans in planned for plan in _end(grid, base, plans, run)]
    return [plan for _, plans in planned for plan in plans]


def _end(grid: Grid, base: Base, plans: list[Plan], run: Run[Problem]) -> list[Plan]:
    """Continue the steps to the optima if few rows cross a kink; otherwise return the plans unchanged."""
    run.check_limits()
    found = grid_kinks.exact_optima(grid, base, plans, run.stop.tol)
    note(grid.problem.passes)
    return plans if found is None else found


def _plans(grid: Grid, base: Base, c: int, parts: list[int], tol: float) -> tuple[Base, list[Plan]]:
    """Return the steps of these models from the base, with a more accurate Hessian if its error may affect the gap."""
    C = grid.Cs[c]
    moves = [grid.step(base, C, f) for f in parts]
    if any(noisy(grid, base, C, move, tol) for move in moves):
        base = grid.base_at(base.theta)
        moves = [grid.step(base, C, f) for f in parts]
    if any(grid.is_blurred(base, C, move, tol) for move in moves):
        base = grid.base_at(base.theta, exact=True)
        moves = [grid.step(base, C, f) for f in parts]
    steps = zip(parts, moves, strict=True)
    return base, [Plan(c, f, base.theta, move.delta) for f, move in steps]


def _along_parts(
    grid: Grid,
    todo: Sequence[tuple[int, int]],
    found: dict[tuple[int, int], GridModel],
    near: float,
    run: Run[Problem],
) -> list[Plan]:
    """Follow the solution path of each fold with open models, with bases of its own that start at these models."""
    plans: list[Plan] = []
    for f in sorted({f for _, f in todo}):
        base: Base | None = None
        for c in (c for c, part in todo if part == f):
            if base is not None:
                _, half, _, value = grid.step(base, grid.Cs[c], f)
            if base is None or half > near * value:
                base = grid.base_at(found[c, f].theta)
            base = grid.reach(grid.Cs[c], f, base, near, run)
            base, mine = _plans(grid, base, c, [f], run.stop.tol)
            plans += mine
    return plans
