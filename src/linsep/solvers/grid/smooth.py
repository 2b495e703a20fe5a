"""Grid engine for smooth losses on dense rows with few features: a few passes for all models (``newton``, ``walk``)."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import closing
from time import perf_counter

from linsep.data import dataset, recorded
from linsep.data.row_access import is_sparse
from linsep.interrupts import seconds_left
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.problem.recipe import reproducible_fields
from linsep.solution import Solution, Status, Stop
from linsep.solvers.grid import newton, walk
from linsep.solvers.grid.problem import GridProblem, HeldOut, Proposal

NAME = "grid"
_ROWS = 30  # rows per feature below which folds differ too much to share a base


def applies(problem: GridProblem) -> bool:
    """Return whether the rows are dense with few features, the loss is smooth, and every model has both classes."""
    loss = problem.recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None or not (loss.smooth and loss.convex):
        return False
    n, d = problem.rows.shape
    few = not is_sparse(problem.rows) and d <= newton.FEATURES and n >= _ROWS * d
    return few and problem.plain_ridge and problem.both_classes


def solve(problem: GridProblem, held: HeldOut) -> Iterator[Proposal]:
    """Yield a proposal for every C and fold, unless a limit of the user ends the fit early."""
    recipe, Cs, part = problem.recipe, problem.Cs, problem.part
    began = perf_counter()
    vectors = problem.sigma, problem.offset, problem.weight
    with closing(dataset(problem.rows, *vectors, None, recipe.n_threads)) as data:
        rows = recorded(data, reproducible_fields(recipe), list(Cs), part)
        shared = Problem(problem.loss, ElasticNet(Cs[0]), rows, recipe.fit_intercept)
        stop = Stop(recipe.tol, seconds_left(), recipe.max_passes)
        models = newton.Grid(shared, part, Cs)
        found = walk.solve(models, stop, held.scores, recipe.seed or 0)
        passes = shared.passes / max(1, len(found))
        longest = data.longest_sum((9 + 2 * data.d) * newton.WIDTH)
        for (c, f), model in found.items():
            if held.errors is not None:
                held.errors[c, f] = model.errors
            W, seconds = model.theta.reshape(-1, 1), perf_counter() - began
            solution = Solution(W, model.dual, Status.CERTIFIED, passes, seconds, sums=model.sums)
            yield Proposal(c, f, solution, longest)
