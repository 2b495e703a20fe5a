"""Exact optima of grid models with piecewise quadratic losses (squared hinge, Huberised hinge, Huber), from one base.

If the margin of a row stays between two kinks of l' from the base to a model, its loss is exactly quadratic there::

    s l(m) = s l(m0) + s l'(m0) t + s l''(m0) t^2 / 2,      t = m - m0

Rows that may cross a kink form the band; they are few, because a model is near its base. The objective of a model is
the quadratic of the other rows, whose sums are those of the base without the band, plus the losses of the band.
Newton's method then needs no pass over X, and for its Hessian only the rows that have crossed. It ends after finitely
many steps at the exact optimum, where the slopes u = -l'(m) are the best dual point and close the gap. If a row outside
the band has crossed, the gap stays open and the model gets a base of its own (``walk``).

Reference: Mangasarian, A finite Newton method for classification, 2002.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block
from linsep.losses import Loss
from linsep.problem import Problem, dot
from linsep.problem.gram import symmetric
from linsep.solvers.grid.newton import Base, Grid, Plan

_FAR = 5.0  # half width of the band, in units of the root mean square of t
_MOST = 0.5  # largest share of the rows in a band that pays
_STEPS = 20
_SHARE = 0.05  # relative gap to reach, as a fraction of tol


def kinks_of(loss: Loss) -> tuple[float, ...]:
    """Return the margins at which the curvature jumps, if it is constant in between; else none."""
    return loss.breakpoints if loss.smooth else ()


def exact_optima(grid: Grid, base: Base, plans: Sequence[Plan], tol: float) -> list[Plan] | None:
    """Return the optima of the models with these first steps from the base; None if too many rows may cross a kink."""
    reach = _FAR * max(_spread(grid, base, plan.step) for plan in plans)
    rows = _near_a_kink(grid, base.theta, reach)
    if len(rows) > _MOST * grid.problem.data.n:
        return None
    if not len(rows):
        return [_plan_at(plan, base.theta + plan.step) for plan in plans]
    band = _Band(grid, base, rows)
    return [_plan_at(p, band.optimum(grid.Cs[p.c], p.part, p.step, tol)) for p in plans]


def _plan_at(plan: Plan, theta: FloatArray) -> Plan:
    """Return the plan with theta as base and step 0, so that the slopes at theta are its dual point."""
    return Plan(plan.c, plan.part, theta, np.zeros_like(theta))


def _spread(grid: Grid, base: Base, delta: FloatArray) -> float:
    """Root mean square of x.delta over the rows with curvature."""
    H = base.hessian.sum(0)
    mass = float(H[-1, -1])
    return (max(0.0, dot(delta, grid.quadratic(H, delta))) / mass) ** 0.5 if mass > 0.0 else np.inf


def _near_a_kink(grid: Grid, theta: FloatArray, reach: float) -> IntArray:
    """Return the rows whose margin is within ``reach`` of a kink. One pass."""
    kinks = kinks_of(grid.problem.loss)

    def add(block: Block, out: FloatArray) -> tuple[IntArray]:
        m = block.margins(block.scores(theta))
        near = np.abs(m - kinks[0]) <= reach
        for kink in kinks[1:]:
            near |= np.abs(m - kink) <= reach
        return (block.first + block.lo + np.flatnonzero(near),)

    grid.problem.passes += 1
    _, found = grid.problem.data.visit(add, 1)
    return np.concatenate([rows for (rows,) in found])


class _Quadratic(NamedTuple):
    """Loss, gradient and Hessian of some rows at the base."""

    value: float
    gradient: FloatArray
    hessian: FloatArray


class _Band:
    """The rows that may cross a kink, with their sums at the base by part."""

    def __init__(self, grid: Grid, base: Base, rows: IntArray) -> None:
        problem = grid.problem
        data = problem.data.sample(rows)
        inside = Problem(problem.loss, problem.penalty, data, problem.fit_intercept)
        self._grid, self._base = grid, base
        self._inner = Grid(inside, grid.part[rows], grid.Cs, grid.parts, grid.mu)
        self._own = self._inner.base_at(base.theta, exact=True)
        self._curvature = data.row_state("curvature").copy()
        problem.passes += len(rows) / problem.data.n

    def optimum(self, C: float, part: int, delta: FloatArray, tol: float) -> FloatArray:
        """Return the optimum of one model from its first step ``delta``; steps that increase P are halved."""
        grid, base = self._grid, self._base
        lam = 1.0 / C
        value, g, H = base.sums_outside(part)
        mine = self._own.sums_outside(part)
        fixed = _Quadratic(value - mine[0], g - mine[1], H - mine[2])
        at, reached = base.theta, np.inf
        for _ in range(_STEPS):
            theta = at + delta
            sums = self._inner.sweep(theta)
            band = sums.sum(axis=0) - (sums[part + 1] if part >= 0 else 0.0)
            e = theta - base.theta
            Hv = grid.quadratic(fixed.hessian, e)
            w = theta[:-1]
            total = fixed.value + dot(fixed.gradient, e) + 0.5 * dot(e, Hv)
            total += float(band[0]) + 0.5 * lam * dot(w, w)
            if not total <= reached * (1.0 + 1e-14):
                delta = 0.5 * delta
                continue
            at, reached = theta, total
            slope = fixed.gradient + Hv + band[1:]
            slope[:-1] += lam * w
            if not grid.problem.fit_intercept:
                slope[-1] = 0.0
            left = 0.5 * dot(slope[:-1], slope[:-1]) / lam + abs(float(slope[-1]))
            if left <= _SHARE * tol * total:
                break
            delta, _, _ = grid.newton(H + self._crossing_hessian(part), slope, lam)
        return at

    def _crossing_hessian(self, part: int) -> FloatArray:
        """Change of the Hessian of the rows outside the part, due to rows that have crossed a kink."""
        inner = self._inner
        data, order = inner.problem.data, inner.problem.order
        more = data.row_state("curvature") - self._curvature
        if part >= 0:
            more[inner.part == part] = 0.0
        side = np.where(more > 0.0, 0, -1)  # part -1: rows that have lost curvature
        size = np.abs(more)

        def add(block: Block, out: FloatArray) -> None:
            where = slice(block.first, block.first + block.rows.n)
            _kernels.part_gram(
                block.rows, block.lo, block.hi, side[where], 1, size[where], inner.mu, out, False
            )

        lost, gained = data.sum(add, 2 * order**2).reshape(2, order, order)
        return symmetric(gained - lost, data.sparse)
