"""Grid engine for the hinge on many dense rows: all folds, and several C, share one band about the kink.

At the optimum of a hinge only rows on the kink have a dual variable inside (0, 1) (``solvers/interior/sifting.py``).
Models that leave out different folds differ by a sampling error, and models of neighbouring large C by less: rows that
are far from the kink of the model of all rows are on the same side for all of them. The rows are sorted once, in one
pass; the sums over the fixed rows are stored for each fold, and a model without fold f uses the sums of the others.
Each model is a small problem on the rows of the band. One product of all rows with all models then gives the held-out
scores, and the rows on the wrong side in some model, which join the band for all. If the models of a C leave the band,
that C gets a band of its own.

Every dual point is feasible for all rows of its model, because fixed rows are at an end of their interval: one closing
pass over the training rows of each model gives its gap.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from time import perf_counter

import numpy as np

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Memory
from linsep.losses import CoupledLoss
from linsep.monitoring import advance
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Solution, Status, Stop
from linsep.solvers import choose
from linsep.solvers.grid.fold_bands import ROWS, BandUnion, Part
from linsep.solvers.grid.problem import GridProblem, HeldOut, Proposal
from linsep.solvers.interior import sifting
from linsep.solvers.interior.active_band import balance_band
from linsep.solvers.interior.central_path import Path
from linsep.solvers.interior.kinked import CROSSOVER_GAP
from linsep.solvers.interior.subsampling import Pilot
from linsep.solvers.run import SAFETY, Run

NAME = "band"
# Smallest number of entries and largest number of features for a shared band: with 20 features it halves the time, with
# 50 it saves nothing.
ENTRIES, FEATURES = 200_000, 32
FOLDS = 3  # smallest number of folds
BASE = 1e-5  # tol of the model at which rows are sorted
SPARE = 1.5  # width of a band as a multiple of what the folds are expected to need
LEAST = 20  # smallest band [rows per feature]
# Initial mu relative to the width of the band: from the base, and from the model of the next larger C.
AFAR, NEARBY = 0.1, 0.01
ROUNDS = 4  # times that rows may join a band


def applies(problem: GridProblem) -> bool:
    """Return whether the loss is a compiled hinge and there are many dense rows without weights, in several folds."""
    loss = problem.recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None or not loss.soft_margin:
        return False
    if problem.recipe.limited:
        return False
    if not isinstance(problem.rows, np.ndarray) or not problem.plain_ridge:
        return False
    if problem.weight is not None or problem.offset is not None or len(problem.folds) < FOLDS:
        return False
    n, d = problem.rows.shape
    enough = n * d >= ENTRIES and d <= FEATURES and n >= 3 * max(2000, sifting.PILOT_ROWS * d)
    return enough and problem.both_classes


@dataclass(eq=False)
class _Model:
    """One model (C, fold): its point, and the proposal once its gap is closed."""

    c: int
    f: int
    penalty: ElasticNet
    theta: FloatArray
    u: FloatArray  # dual variables of the rows of its band
    proposal: Proposal | None = None
    scores: FloatArray | None = None  # scores of the rows of its fold


class _Grid:
    """The folds with their bands, and the current base."""

    def __init__(self, given: GridProblem) -> None:
        self.given, self.Cs, self.recipe = given, given.Cs, given.recipe
        self.loss, self.folds = given.loss, given.folds
        self.parts = {
            int(g): Part(given, np.flatnonzero(given.part == g))
            for g in np.unique(given.part).tolist()
        }
        self.data = Memory(given.rows, given.sigma, n_threads=self.recipe.n_threads)
        self.n, self.d = self.data.n, self.data.d
        self.base = np.zeros(self.d + 1)
        self.passes = 0.0
        self._unions: dict[int, BandUnion] = {}

    def problem(self, C: float) -> Problem:
        return Problem(self.loss, ElasticNet(C), self.data, self.recipe.fit_intercept)

    def sort(self, C: float) -> None:
        """Solve the model of all rows for C and sort the rows by their distance from its kink."""
        problem, stop = self.problem(C), Stop(max(BASE, self.recipe.tol))
        seed = self.recipe.seed or 0
        found = choose(problem, "auto", stop).run(problem, self.base.copy(), stop, seed)
        self.base = np.ascontiguousarray(found.W[:, 0])
        passes = problem.passes
        self.run = Run(problem, Stop(self.recipe.tol))
        m = sifting.pilot_rows(problem.data)
        self.first = Pilot(self.run, self.base, m, seed)
        # the variance of theta is 1/m - 1/n of that of a row for a sample of m rows, and 1/(n (k - 1)) without a fold
        share = np.sqrt(1.0 / (len(self.folds) - 1.0) / max(self.n / m - 1.0, 1e-3))
        far = self.first.kink_distances(self.base)
        least = self.first.tau(far, LEAST * self.d)
        self.tau = max(SPARE * float(share) * self.first.width(self.base), least)
        for part in self.parts.values():
            part.sort(self.base, self.tau, self.first)
        self._unions = {}
        self.passes += passes + 2.0

    def stays(self, theta: FloatArray) -> bool:
        """Return whether the margins have changed by at most the width of the band."""
        return self.first.margin_change(self.base, theta, self.tau) <= self.tau

    def bands_outside(self, f: int) -> BandUnion:
        """Return the bands of all folds but f."""
        if f not in self._unions:
            parts = [part for g, part in self.parts.items() if g != f]
            self._unions[f] = BandUnion(parts, self.recipe.n_threads)
        return self._unions[f]

    def admit(self) -> None:
        """Add the rows that were on the wrong side in some model to the band."""
        for g, part in self.parts.items():
            part.admit(self.wrong[g])
        self._unions = {}

    def solve(self, model: _Model, near: _Model | None) -> bool:
        """Solve a model on its band, from the model of the next larger C if there is one; False if it fails."""
        seen, tol = self.bands_outside(model.f), self.recipe.tol
        sub = Problem(self.loss, model.penalty, seen.data, self.recipe.fit_intercept)
        path = Path(self.run, sub, seen.linear, seen.constant)
        mu = (AFAR if near is None else NEARBY) * path.width * seen.reach
        path.place(self.base if near is None else near.theta, mu)
        target = max(sifting.SAMPLE_TOL, 0.25 * tol)
        if not path.descend(target, sifting.BAND_STEPS, sifting.SHORTEST_BAND_STEP):
            return False
        point = path.theta.copy(), path.dual(), path.value - path.gap
        model.theta, model.u, _ = sifting.sharpen(path, min(0.1 * tol, CROSSOVER_GAP), point)
        return True

    def evaluate(self, models: list[_Model]) -> None:
        """Find the rows on the wrong side in some model, and the held-out scores. One pass."""
        W = np.zeros((self.d + 1, -(-len(models) // 8) * 8))  # padded to a multiple of eight
        W[:, : len(models)] = np.stack([model.theta for model in models], axis=1)
        product = np.empty((ROWS, W.shape[1]))
        fold = np.array([model.f for model in models])
        self.wrong: dict[int, IntArray] = {}
        for g, part in self.parts.items():
            inside = fold != g
            found: list[IntArray] = []
            scores = np.empty((len(part.rows), int((~inside).sum())))
            for low in range(0, len(part.rows), ROWS):
                here = slice(low, min(low + ROWS, len(part.rows)))
                z = product[: here.stop - low]
                _kernels.scores_k(part.kernel_rows, low, here.stop, W, z.reshape(-1))
                z = z[:, : len(models)]
                scores[here] = z[:, ~inside]
                u, v = part.u[here], part.sign[here, None] * z[:, inside] - 1.0
                bad = np.where(u == 0.0, v.min(axis=1, initial=0.0) < 0.0, False)
                bad |= (u == 1.0) & (v.max(axis=1, initial=0.0) > 0.0)
                found.append(low + np.flatnonzero(bad))
            self.wrong[g] = np.concatenate(found)
            for k, column in zip(np.flatnonzero(~inside), scores.T, strict=True):
                models[k].scores = column
        self.passes += 2.0

    def close(self, model: _Model) -> None:
        """Set the proposal of the model if the gap closes. One pass over its training rows."""
        seen = self.bands_outside(model.f)
        problem = self.problem(model.penalty.C)
        own = seen.unfold(balance_band(model.u, seen.data, seen.linear, problem))
        sums, longest = seen.closing(model.theta, own)
        self.passes += 1.0
        primal, lower = problem.values(model.theta, sums)
        if not primal - lower <= SAFETY * self.recipe.tol * primal:
            return
        u = np.zeros(self.n)
        for part, values in zip(seen.parts, own, strict=True):
            u[part.rows] = values
        if self.given.copies_rows():
            u = u[self.given.training_rows(model.f)]
        W = model.theta.reshape(-1, 1)
        solution = Solution(W, Explicit(u), Status.CERTIFIED, 0.0, 0.0, sums=sums)
        model.proposal = Proposal(model.c, model.f, solution, longest)


def solve(problem: GridProblem, held: HeldOut) -> Iterator[Proposal]:
    """Yield a proposal for every model whose gap closes on a band."""
    began = perf_counter()
    grid = _Grid(problem)
    done: list[_Model] = []
    pending = list(range(len(problem.Cs)))
    while pending:
        grid.sort(problem.Cs[pending[-1]])
        pending = _serve(grid, pending, done)
        advance(len(done))
    passes, seconds = grid.passes / max(1, len(done)), perf_counter() - began
    for model in done:
        assert model.proposal is not None and model.scores is not None
        held.record(problem, model.c, model.f, grid.parts[model.f].rows, model.scores)
        solution = replace(model.proposal.solution, passes=passes, seconds=seconds)
        yield replace(model.proposal, solution=solution)


def _serve(grid: _Grid, pending: list[int], done: list[_Model]) -> list[int]:
    """Solve the models of the largest pending C, and of smaller ones while the band suffices; return the others."""
    models: list[_Model] = []
    while pending:
        c, penalty = pending[-1], ElasticNet(grid.Cs[pending[-1]])
        near = {model.f: model for model in models if model.c == c + 1}
        fresh = [_Model(c, f, penalty, grid.base, np.zeros(0)) for f in grid.folds]
        solved = all(
            grid.solve(model, near.get(model.f)) and (not models or grid.stays(model.theta))
            for model in fresh
        )
        if not solved and models:
            break
        pending = pending[:-1]
        if solved:
            models += fresh
        else:
            break
    waiting = models
    for _ in range(ROUNDS):
        if not waiting:
            break
        grid.evaluate(waiting)
        for model in waiting:
            grid.close(model)
        done += [model for model in waiting if model.proposal is not None]
        waiting = [model for model in waiting if model.proposal is None]
        if waiting:
            grid.admit()
            waiting = [model for model in waiting if grid.solve(model, None)]
    return pending
