"""Newton's method for all models of a grid: every C, trained without one part (fold) of the rows.

Problem, for every C and every part f::

    min_theta  lam/2 |w|^2 + sum over rows outside f of s l(m),        lam = 1/C

All these optima lie near a few base points on the solution path of all rows. At a base one pass gives the loss,
gradient and Hessian of each part; those of a model are the sums over the other parts, for any C, so its Newton step
costs a small linear solve and no pass. From one base to the next a subsample estimates how the Hessians change, if that
is accurate enough. One more pass for all models together (kernels/grid/closing.hpp) gives the sums of their
certificates at the Newton-dual points of (base, step), and the held-out scores. Models whose gap is still above tol get
a base closer to them (``walk``); the caller fits those that remain after a few rounds separately.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Block
from linsep.errors import NonFinite
from linsep.monitoring import note
from linsep.penalties import ElasticNet
from linsep.problem import Problem, dot
from linsep.problem.gram import constant_columns, symmetric
from linsep.solution import Linearised
from linsep.solvers.linalg.factor import solve_spd_with_pivot
from linsep.solvers.newton.directions import BLUR, SURE
from linsep.solvers.run import SAFETY, Run, linearised

FEATURES = 300  # with more features, a Hessian for each part costs more than separate fits
WIDTH = 64  # models that share a pass: their scores of a chunk of rows stay in cache
SINGLE = 12  # features from which Hessians in single precision pay
_STEPS = 30  # largest number of Newton steps towards one C
_STRETCH = 1 << 17  # entries of X that stay in cache between the sweep and the Hessian


@dataclass(frozen=True, eq=False)
class GridModel:
    """One model of the grid: C number ``c``, trained on the rows outside ``part``."""

    c: int
    part: int
    theta: FloatArray
    dual: Linearised
    sums: FloatArray  # sums of its closing pass
    closed: bool
    errors: int  #: misclassified rows of its part; a score of 0 is positive, as in predict


@dataclass(frozen=True, eq=False)
class Base:
    """A point with the loss, gradient and Hessian of the rows of each part, without the penalty."""

    theta: FloatArray
    value: FloatArray  # (parts + 1,): rows of no part come first
    gradient: FloatArray  # (parts + 1, d + 1)
    hessian: FloatArray  # (parts + 1, d + 1, d + 1) in the coordinates (w, c), c = b + mu.w
    single: bool = False  # whether the Hessians were summed in single precision
    noise: FloatArray | None = None  # N, if they were predicted: E|error of H e|^2 = e'N e

    def sums_outside(self, part: int) -> tuple[float, FloatArray, FloatArray]:
        """Return loss, gradient and Hessian of all rows outside the part; of all rows for part -1."""
        value, gradient, hessian = self.value.sum(), self.gradient.sum(0), self.hessian.sum(0)
        if part >= 0:
            value = value - self.value[part + 1]
            gradient = gradient - self.gradient[part + 1]
            hessian = hessian - self.hessian[part + 1]
        return float(value), gradient, hessian


@dataclass(frozen=True, eq=False)
class Plan:
    """A model to be certified: its base, and the step from there."""

    c: int
    part: int
    base: FloatArray
    step: FloatArray


class Move(NamedTuple):
    """Newton step of a model from a base, half its squared decrement, the smallest pivot, and P at the base."""

    delta: FloatArray
    half: float
    pivot: float
    value: float


class Grid:
    """The models of one loss on one data set, by C (increasing) and by part."""

    def __init__(
        self,
        problem: Problem,
        part: IntArray,
        Cs: Sequence[float],
        parts: int | None = None,
        mu: FloatArray | None = None,
    ) -> None:
        self.problem = problem  # of any C: only its data, loss and pass count are used
        self.part = np.ascontiguousarray(part, dtype=np.int64)
        self.parts = int(self.part.max(initial=-1)) + 1 if parts is None else parts
        # Parts that models are trained without.
        self.held_out = range(self.parts) if self.parts else (-1,)
        self.Cs = list(Cs)
        self.mu = problem.centre() if mu is None else mu
        self.single = not problem.data.sparse and problem.data.d >= SINGLE
        assert problem.loss.native is not None
        self._loss = _kernels.Loss(problem.loss.native, *problem.loss.params)

    def share(self) -> float:
        """Mean share of the total weight that a model is trained on."""
        part, weight = self.part, self.problem.data.weight
        total = len(part) if weight is None else weight.sum()
        inside = float((part >= 0).sum() if weight is None else weight[part >= 0].sum())
        return float(1.0 - inside / (max(1, self.parts) * total))

    def base_at(self, theta: FloatArray, exact: bool = False) -> Base:
        """Return the base at theta, in one read of X; ``exact``: Hessians in double precision."""
        d, parts, order = self.problem.data.d, self.parts, self.problem.order
        single = self.single and not exact
        theta, size = theta.copy(), (parts + 1) * (d + 2)
        rows = max(256, _STRETCH // (d + 1))

        def add(block: Block, out: FloatArray) -> None:
            head, H = out[:size], out[size:]
            for lo in range(block.lo, block.hi, rows):
                hi = min(lo + rows, block.hi)
                self.add_sweep(block, lo, hi, theta, head)
                self._add_gram(block, lo, hi, single, H)

        self.problem.passes += 2
        whole = size + (parts + 1) * order**2
        sums = self.problem.data.sum(add, whole, writes=("curvature",))
        return self._base_at(theta, sums[:size].reshape(parts + 1, d + 2), sums[size:], single)

    def value_gradient(
        self, theta: FloatArray, sums: FloatArray, lam: float
    ) -> tuple[float, FloatArray]:
        """Return the objective of all rows and its gradient from the sums of a sweep at theta."""
        total = sums.sum(axis=0)
        g: FloatArray = total[1:]
        g[:-1] += lam * theta[:-1]
        if not self.problem.fit_intercept:
            g[-1] = 0.0
        return float(total[0]) + 0.5 * lam * dot(theta[:-1], theta[:-1]), g

    def sweep(self, theta: FloatArray) -> FloatArray:
        """Return loss and gradient of each part, (parts + 1, d + 2), and store the curvatures. One pass."""
        d, parts = self.problem.data.d, self.parts
        theta = theta.copy()  # the pass may be repeated later, when the caller has changed theta

        def add(block: Block, out: FloatArray) -> None:
            self.add_sweep(block, block.lo, block.hi, theta, out)

        self.problem.passes += 1
        size = (parts + 1) * (d + 2)
        return self.problem.data.sum(add, size, writes=("curvature",)).reshape(parts + 1, d + 2)

    def base(self, theta: FloatArray, sums: FloatArray) -> Base:
        """Return the base at theta, the point of the last sweep. One pass."""

        def add(block: Block, out: FloatArray) -> None:
            self._add_gram(block, block.lo, block.hi, self.single, out)

        self.problem.passes += 1
        size = (self.parts + 1) * self.problem.order**2
        H = self.problem.data.sum(add, size, reads=("curvature",))
        return self._base_at(theta.copy(), sums, H, self.single)

    def add_sweep(
        self,
        block: Block,
        lo: int,
        hi: int,
        theta: FloatArray,
        out: FloatArray,
        moments: FloatArray | None = None,
    ) -> None:
        h, part, parts = block.row_state("curvature"), block.own(self.part), self.parts
        _kernels.part_sweep(
            block.rows, block.targets, self._loss, lo, hi, part, parts, theta, out, h, moments
        )

    def _add_gram(self, block: Block, lo: int, hi: int, single: bool, out: FloatArray) -> None:
        h, part = block.row_state("curvature"), block.own(self.part)
        _kernels.part_gram(block.rows, lo, hi, part, self.parts, h, self.mu, out, single)

    def _base_at(self, theta: FloatArray, sums: FloatArray, H: FloatArray, single: bool) -> Base:
        order = self.problem.order
        if not np.isfinite(sums).all():
            raise NonFinite(
                "The objective is not finite: X, y or sample_weight contain NaN, infinity or numbers "
                "too large to square. Find and repair those rows."
            )
        if single and not np.isfinite(H).all():
            return self.base_at(theta, exact=True)
        H = H.reshape(self.parts + 1, order, order)
        return Base(theta, sums[:, 0], sums[:, 1:], self.symmetrise(H), single)

    def symmetrise(self, H: FloatArray) -> FloatArray:
        """Fill both triangles of the Gram matrices of all parts; set constant columns to 0."""
        full = symmetric(H, self.problem.data.sparse)
        noise = constant_columns(full.sum(0), self.mu)
        full[:, noise] = 0.0
        full[:, :, noise] = 0.0
        return full

    def step(self, base: Base, C: float, part: int) -> Move:
        """Return the Newton step of a model from the base. No pass."""
        lam = 1.0 / C
        value, g, H = base.sums_outside(part)
        w = base.theta[:-1]
        g = g.copy()
        g[:-1] += lam * w
        return Move(*self.newton(H, g, lam), value + 0.5 * lam * dot(w, w))

    def newton(self, H: FloatArray, g: FloatArray, lam: float) -> tuple[FloatArray, float, float]:
        """Return the step -(H + lam)^-1 g, half its squared decrement and the smallest pivot. Overwrites H and g."""
        at = np.arange(len(g) - 1)
        H[at, at] += lam
        if not self.problem.fit_intercept:
            g[-1], H[-1], H[:, -1] = 0.0, 0.0, 0.0
        rhs = -g
        rhs[:-1] += self.mu * g[-1]
        delta, pivot = solve_spd_with_pivot(H, rhs, definite=True)
        half = 0.5 * dot(rhs, delta)
        delta[-1] -= dot(self.mu, delta[:-1])
        return delta, half, pivot

    def quadratic(self, H: FloatArray, step: FloatArray) -> FloatArray:
        """Return the change of the gradient by (w, b) along a step, for a Hessian in the coordinates (w, c)."""
        e = step.copy()
        e[-1] += dot(self.mu, step[:-1])
        Hv: FloatArray = H @ e
        Hv[:-1] += self.mu * Hv[-1]
        return Hv

    def is_blurred(self, base: Base, C: float, move: Move, tol: float) -> bool:
        """Return whether the error of single precision may be visible in the gap: its residual r adds |r|^2/(2 lam).

        The estimate is that of ``newton.directions``, with a larger tolerance, as errors average out over many rows.
        """
        if not base.single:
            return False
        diagonal = np.einsum("pii->i", base.hessian)[:-1]
        left = BLUR * float(diagonal.sum()) * dot(diagonal, move.delta[:-1] ** 2)
        return move.pivot <= SURE or left > 5.0 * tol * move.value / C

    def reach(self, C: float, part: int, base: Base, near: float, run: Run[Problem]) -> Base:
        """Run Newton's method until one step of the model is short; return the final base."""
        for _ in range(_STEPS):
            delta, half, _, value = self.step(base, C, part)
            if not half > near * value:
                break
            length = 1.0
            while length > 1e-6:
                run.check_limits()
                theta = base.theta + length * delta
                sums = self.sweep(theta)
                note(self.problem.passes)
                w, loss = theta[:-1], sums[:, 0].sum() - (sums[part + 1, 0] if part >= 0 else 0.0)
                if loss + 0.5 * dot(w, w) / C <= value - 2e-4 * length * half:
                    break
                length *= 0.4
            else:
                break
            base = self.base(theta, sums)
        return base

    def close(self, plans: Sequence[Plan], tol: float, held: FloatArray | None) -> list[GridModel]:
        """Compute the closing sums of the planned models and their held-out scores. One pass for each WIDTH models."""
        models: list[GridModel] = []
        for first in range(0, len(plans), WIDTH):
            models += self._close(plans[first : first + WIDTH], tol, held)
        return models

    def _close(self, plans: Sequence[Plan], tol: float, held: FloatArray | None) -> list[GridModel]:
        d, data = self.problem.data.d, self.problem.data
        bases: list[FloatArray] = []
        base_of = []
        for plan in plans:
            known = next((k for k, b in enumerate(bases) if b is plan.base), None)
            if known is None:
                known = len(bases)
                bases.append(plan.base)
            base_of.append(known)
        B, S = _columns(bases), _columns([plan.step for plan in plans])
        lengths = [
            [
                float(np.linalg.norm(p.base[:-1]) + np.linalg.norm(p.step[:-1])),
                abs(float(p.base[-1])) + abs(float(p.step[-1])),
            ]
            for p in plans
        ]
        reach = np.array(lengths)
        ids = np.array(base_of, dtype=np.int64)
        parts = np.array([plan.part for plan in plans], dtype=np.int64)
        slots = np.array([plan.c for plan in plans], dtype=np.int64)

        def add(block: Block, out: FloatArray) -> None:
            mine = None if held is None else block.own(held)
            _kernels.grid_closing(
                block.rows,
                block.targets,
                self._loss,
                block.lo,
                block.hi,
                block.own(self.part),
                B,
                S,
                ids,
                parts,
                reach,
                mine,
                slots,
                out,
            )

        self.problem.passes += 1
        K = S.shape[1]
        sums = data.sum(add, (9 + 2 * d) * K).reshape(9 + 2 * d, K)
        return [
            self._model(plan, sums[:-1, k].copy(), int(sums[-1, k]), tol)
            for k, plan in enumerate(plans)
        ]

    def _model(self, plan: Plan, sums: FloatArray, errors: int, tol: float) -> GridModel:
        theta = plan.base + plan.step
        problem = Problem(
            self.problem.loss,
            ElasticNet(self.Cs[plan.c]),
            self.problem.data,
            self.problem.fit_intercept,
        )
        primal, lower = problem.values(theta, sums)
        gap = primal - lower
        closed = bool(gap <= SAFETY * tol * max(abs(primal), abs(lower)))
        dual = linearised(plan.base, plan.step)
        return GridModel(plan.c, plan.part, theta, dual, sums, closed, errors)


def _columns(vectors: Sequence[FloatArray]) -> FloatArray:
    """Return the vectors as columns, padded with zeros to a multiple of eight."""
    out = np.zeros((len(vectors[0]), -(-len(vectors) // 8) * 8))
    for k, vector in enumerate(vectors):
        out[:, k] = vector
    return out
