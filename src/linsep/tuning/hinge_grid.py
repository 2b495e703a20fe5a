"""The hinge on many dense rows: one band about the kink for all folds, and for as many C as it serves.

At the optimum of a hinge only rows on the kink have a dual variable inside [0, 1] (``solvers/interior/sifting.py``).
Models that leave out one fold each differ by the error of a sample, and from some C on those of neighbouring C by
less: rows far from the kink by the model of all rows are on the same side for all of them. They are sorted once, in
one pass; what they add up to is kept for each fold, and a model without fold f takes the sums of the others. Each
model is a small problem on the rows of the band. One product of all rows with all models then gives every objective,
every held-out score, and the rows that contradict their side in some model, which join the band for all. A C whose
models leave the band gets a band of its own.

Every dual point is feasible for all rows of its model, as those outside the band are at an end of their interval: so
each model is certified on its own. One that falls short gets a fit of its own.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import _kernels
from linsep.certificates import ClosingSums, Optimality, from_sums
from linsep.data import Memory
from linsep.losses import CoupledLoss
from linsep.monitoring import advance
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Explicit, Status, Stop
from linsep.solvers.interior import sifting as globbing
from linsep.solvers.interior.central_path import Path
from linsep.solvers.interior.kinked import NEAR
from linsep.solvers.interior.subsampling import Pilot
from linsep.solvers.run import Run
from linsep.train import Fit, train
from linsep.tuning.fold_bands import ROWS, Part, Together
from linsep.tuning.newton_grid import Shared, alone, both_classes

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

ENTRIES, FEATURES = 200_000, 300  # of X, from which, and up to which a band is worth sharing
FOLDS = 3  # at least
BASE = 1e-5  # tol of the model about which rows are sorted
SPARE = 1.5  # the width of a band, as a multiple of what the folds should need
LEAST = 20  # rows of a band per feature
# mu to begin with, as a share of the width of the band: from the base, and from the model of the C above.
AFAR, NEARBY = 0.1, 0.01
ROUNDS = 4  # times that rows join a band


def applies(given: Shared, Cs: Sequence[float], part: IntArray) -> bool:
    """Whether the loss is a compiled hinge and there are many dense rows, without weights, in several folds."""
    recipe, loss = given.recipe, given.recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None or not loss.soft_margin:
        return False
    if recipe.penalty.l1_ratio:
        return False
    if recipe.solver != "auto" or recipe.time_limit is not None or recipe.max_passes is not None:
        return False
    if not isinstance(given.rows, np.ndarray) or not np.isfinite(Cs).all():
        return False
    if given.weight is not None or given.offset is not None or int(part.max()) + 1 < FOLDS:
        return False
    n, d = given.rows.shape
    enough = n * d >= ENTRIES and d <= FEATURES and n >= 3 * max(2000, globbing.PILOT_ROWS * d)
    return enough and both_classes(given, part)


@dataclass(eq=False)
class _Model:
    """One (C, fold): where it is, and what is proven of it."""

    c: int
    f: int
    penalty: ElasticNet
    theta: FloatArray
    u: FloatArray  # of the rows of its band
    proof: Optimality | None = None
    errors: int = 0
    scores: FloatArray | None = None


class _Grid:
    """The parts, and the models that are being made."""

    def __init__(self, given: Shared, Cs: Sequence[float], part: IntArray) -> None:
        self.given, self.Cs, self.recipe = given, Cs, given.recipe
        assert not isinstance(self.recipe.loss, CoupledLoss) and given.sigma is not None
        self.loss = self.recipe.loss
        self.folds = list(range(int(part.max()) + 1))
        self.parts = {
            int(g): Part(given, np.flatnonzero(part == g)) for g in np.unique(part).tolist()
        }
        self.data = Memory(given.rows, given.sigma, n_threads=self.recipe.n_threads)
        self.n, self.d = self.data.n, self.data.d
        self.base = np.zeros(self.d + 1)
        self.passes = 0.0
        self._together: dict[int, Together] = {}

    def problem(self, C: float) -> Problem:
        return Problem(self.loss, ElasticNet(C), self.data, self.recipe.fit_intercept)

    def sort(self, C: float) -> None:
        """Sort all rows by the model of all rows."""
        recipe = replace(self.recipe, penalty=ElasticNet(C), tol=max(BASE, self.recipe.tol))
        found = train(
            recipe, self.data, self.base.reshape(-1, 1) if self.base.any() else None, False
        )
        self.base = np.ascontiguousarray(found.W[:, 0])
        problem = self.problem(C)
        self.run = Run(problem, Stop(self.recipe.tol))
        m = globbing.pilot_rows(problem.data)
        self.first = Pilot(self.run, self.base, m, self.recipe.seed or 0)
        # theta of a sample of m rows errs by 1/m - 1/n of the variance of a row, one without a fold by 1/(n (k - 1))
        share = np.sqrt(1.0 / (len(self.folds) - 1.0) / max(self.n / m - 1.0, 1e-3))
        far = self.first.far(self.base)
        least = self.first.tau(far, LEAST * self.d)
        self.tau = max(SPARE * float(share) * self.first.width(self.base), least)
        for part in self.parts.values():
            part.sort(self.base, self.tau, self.first)
        self._together = {}
        self.passes += found.n_passes + 2.0

    def stays(self, theta: FloatArray) -> bool:
        """Whether the rows have not moved by more than the width of the band."""
        return self.first.moved(self.base, theta, self.tau) <= self.tau

    def without(self, f: int) -> Together:
        """What a model without fold f sees."""
        if f not in self._together:
            parts = [part for g, part in self.parts.items() if g != f]
            self._together[f] = Together(parts, self.recipe.n_threads)
        return self._together[f]

    def admit(self) -> None:
        """Let the rows that contradicted their side in some model join the band."""
        for g, part in self.parts.items():
            part.admit(self.wrong[g])
        self._together = {}

    def solve(self, model: _Model, near: _Model | None) -> bool:
        """The model on its band by the interior point method, from the model of the C above if there is one."""
        seen, tol = self.without(model.f), self.recipe.tol
        sub = Problem(self.loss, model.penalty, seen.data, self.recipe.fit_intercept)
        path = Path(self.run, sub, seen.linear, seen.constant)
        mu = (AFAR if near is None else NEARBY) * path.width * seen.reach
        path.place(self.base if near is None else near.theta, mu)
        target = max(globbing.SAMPLE_TOL, 0.25 * tol)
        if not path.descend(target, globbing.BAND_STEPS, globbing.SHORT):
            return False
        point = path.theta.copy(), path.dual(), path.value - path.gap
        model.theta, model.u, _ = globbing.sharpen(path, min(0.1 * tol, NEAR), point)
        return True

    def judge(self, models: list[_Model], keep: bool) -> None:
        """One pass: the proof of every model, its held-out scores; rows that contradict their side join the band."""
        W = np.zeros((self.d + 1, -(-len(models) // 8) * 8))  # the kernels take columns by eights
        W[:, : len(models)] = np.stack([model.theta for model in models], axis=1)
        room = np.empty((ROWS, W.shape[1]))
        fold = np.array([model.f for model in models])
        losses, wrong = np.zeros(len(models)), {}
        for g, part in self.parts.items():
            inside = fold != g
            found: list[IntArray] = []
            scores = np.empty((len(part.rows), int((~inside).sum()))) if keep else None
            for low in range(0, len(part.rows), ROWS):
                here = slice(low, min(low + ROWS, len(part.rows)))
                z = room[: here.stop - low]
                _kernels.scores_k(part.kernel_rows, low, here.stop, W, z.reshape(-1))
                z = z[:, : len(models)]
                sign, u = part.sign[here], part.u[here]
                out = z[:, ~inside]
                for k, count in zip(
                    np.flatnonzero(~inside), ((out >= 0.0) != (sign > 0.0)[:, None]).sum(axis=0),
                    strict=True,
                ):  # fmt: skip
                    models[k].errors += int(count)
                if scores is not None:
                    scores[here] = out
                v = sign[:, None] * z[:, inside] - 1.0
                losses[inside] -= np.minimum(v, 0.0).sum(axis=0)
                bad = np.where(u == 0.0, v.min(axis=1, initial=0.0) < 0.0, False)
                bad |= (u == 1.0) & (v.max(axis=1, initial=0.0) > 0.0)
                found.append(low + np.flatnonzero(bad))
            wrong[g] = np.concatenate(found)
            if scores is not None:
                for k, column in zip(np.flatnonzero(~inside), scores.T, strict=True):
                    models[k].scores = column
        self.passes += 2.0
        self.wrong = wrong
        for model, loss in zip(models, losses.tolist(), strict=True):
            model.proof = self._proof(model, loss)

    def _proof(self, model: _Model, loss: float) -> Optimality:
        """The certificate by the sums of the parts and of the band."""
        seen = self.without(model.f)
        X, sign, counts = seen.X, seen.sign, seen.counts
        u = np.clip(model.u, 0.0, 1.0)
        for _ in range(4 if self.recipe.fit_intercept else 0):
            room = np.minimum(u, 1.0 - u)
            excess = float(counts[0] - counts[1] + sign @ u)
            if not 0.0 < abs(excess) <= float(room.sum()):
                break
            u = np.clip(u - sign * (excess / float(room.sum())) * room, 0.0, 1.0)
        model.u = u
        plus, minus = u * (sign > 0.0), u * (sign < 0.0)
        mass = counts + np.array([plus.sum(), minus.sum()])
        w, total = model.theta[:-1], float(mass.sum())
        long = sum(float(part.lengths.sum()) for g, part in self.parts.items() if g != model.f)
        closing = ClosingSums(
            loss=loss,
            conj_plus=-float(mass[0]),
            conj_minus=-float(mass[1]),
            mass_plus=float(mass[0]),
            mass_minus=float(mass[1]),
            # as if the loss of every row had the slope 1 and every u were 1
            magnitude=float(np.linalg.norm(w)) * long + abs(float(model.theta[-1])) * seen.n,
            absolute=loss + total,
            spread=long,
            v_plus=seen.sums[0] + plus @ X,
            v_minus=seen.sums[1] - minus @ X,
        )
        return from_sums(
            closing,
            w,
            lam=model.penalty.l2,
            fit_intercept=self.recipe.fit_intercept,
            scale=model.penalty.scale,
            tol=self.recipe.tol,
            rows_per_sum=float(seen.n),
        )


def fit_grid(
    given: Shared,
    Cs: Sequence[float],
    part: IntArray,
    held: FloatArray | None,
    errors: IntArray | None = None,
) -> dict[tuple[int, int], Fit]:
    """As ``shared.fit_grid``."""
    began = perf_counter()
    grid = _Grid(given, Cs, part)
    done: dict[tuple[int, int], _Model] = {}
    pending = list(range(len(Cs)))
    while pending:
        grid.sort(Cs[pending[-1]])
        pending = _served(grid, pending, done, held is not None)
        advance(len(done))
    fits: dict[tuple[int, int], Fit] = {}
    share = grid.passes / max(1, len(done))
    for c, f in ((c, f) for f in grid.folds for c in range(len(Cs))):
        model = done.get((c, f))
        mine = replace(given.recipe, penalty=ElasticNet(Cs[c]))
        start = fits.get((c - 1, f))
        if model is None or model.proof is None or not model.proof.certified:
            fits[c, f] = alone(given, mine, part, f, start, held, errors, c)
            continue
        fits[c, f] = _fit(mine, model, share, perf_counter() - began)
        if errors is not None:
            errors[c, f] = model.errors
        if held is not None and model.scores is not None:
            held[grid.parts[f].rows, c] = model.scores
    return fits


def _served(grid: _Grid, pending: list[int], done: dict[Any, _Model], keep: bool) -> list[int]:
    """Models of the largest C that is left, and of those below it that the band serves; the C that remain."""
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
        for model in waiting:
            model.errors = 0
        grid.judge(waiting, keep)
        for model in waiting:
            if model.proof is not None and model.proof.certified:
                done[model.c, model.f] = model
        waiting = [model for model in waiting if (model.c, model.f) not in done]
        if waiting:
            grid.admit()
            waiting = [model for model in waiting if grid.solve(model, None)]
    return pending


def _fit(recipe: Any, model: _Model, passes: float, seconds: float) -> Fit:
    """All that came out; of the dual point the rows of the band, as the others are at the end their side dictates."""
    assert model.proof is not None
    return Fit(
        recipe=recipe,
        W=model.theta.reshape(-1, 1),
        dual=Explicit(model.u),
        certificate=model.proof,
        status=Status.CERTIFIED,
        n_passes=passes,
        seconds=seconds,
        trace=(),
        solver="band",
    )
