"""The whole grid of C and folds together: ``solvers.grid`` proposes, the certificates dispose, model by model."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.certificates import ClosingSums, fragile, from_sums
from linsep.data import dataset, recorded
from linsep.data.row_access import is_sparse, row_blocks
from linsep.losses import CoupledLoss
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solution import Status, Stop
from linsep.solvers.grid import newton as grid
from linsep.solvers.grid import walk as grid_walk
from linsep.train import Fit, Recipe, reproducible_fields, train

_ROWS = 30  # per feature: with fewer, folds differ too much to share a base

_SCORED = 4096  # rows scored together
_COPIED = 1 << 24  # numbers of X up to which a model of its own gets a copy of its rows

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Shared:
    """One pointwise problem, as an estimator would pose it."""

    recipe: Recipe
    rows: Any
    names: Any
    sigma: FloatArray | None
    offset: FloatArray | None
    weight: FloatArray | None
    stored: dict[str, Any]  #: further fitted attributes (classes_, ...)


def applies(given: Shared, Cs: Sequence[float], part: IntArray) -> bool:
    """Whether the grid can be fitted together: dense, few features, smooth, and both classes in every model."""
    recipe = given.recipe
    loss = recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None or not (loss.smooth and loss.convex):
        return False
    if recipe.penalty.l1_ratio or recipe.solver != "auto" or not np.isfinite(Cs).all():
        return False
    n, d = given.rows.shape
    if is_sparse(given.rows) or d > grid.FEATURES or n < _ROWS * d:
        return False
    return not loss.classification or given.sigma is None or both_classes(given, part)


def both_classes(given: Shared, part: IntArray) -> bool:
    """Whether every model sees rows of both classes."""
    assert given.sigma is not None
    kind = 2 * (part + 1) + (given.sigma > 0)
    if given.weight is not None:
        kind = kind[given.weight > 0]
    inside = np.bincount(kind, minlength=2 * int(part.max()) + 4).reshape(-1, 2)
    return bool((inside.sum(axis=0) > inside[1:]).all())


def fit_grid(
    given: Shared,
    Cs: Sequence[float],
    part: IntArray,
    held: FloatArray | None,
    errors: IntArray | None = None,
) -> dict[tuple[int, int], Fit]:
    """A fit for every C and part (part -1 if there are none), all certified or honestly not.

    ``held`` (n, c) gets the score of every row by the models that have not seen it, ``errors`` (c, parts) how many of
    them are on the wrong side.
    """
    recipe = given.recipe
    began = perf_counter()
    assert not isinstance(recipe.loss, CoupledLoss)
    data = dataset(given.rows, given.sigma, given.offset, given.weight, None, recipe.n_threads)
    with closing(data):
        rows = recorded(data, reproducible_fields(recipe), list(Cs), part)
        problem = Problem(recipe.loss, ElasticNet(Cs[0]), rows, recipe.fit_intercept)
        models = grid.Grid(problem, part, Cs)
        stop = Stop(recipe.tol, recipe.time_limit, recipe.max_passes)
        found = grid_walk.solve(models, stop, held, recipe.seed or 0)
        share = problem.passes / max(1, len(found))
        longest = data.longest_sum((9 + 2 * data.d) * grid.WIDTH)
        fits = {}
        for (c, f), model in found.items():
            mine = replace(recipe, penalty=ElasticNet(Cs[c]))
            fit = _certified(mine, model, longest, share, perf_counter() - began)
            if fit.certificate.certified and not fragile(fit.certificate):
                fits[c, f] = fit
                if errors is not None:
                    errors[c, f] = model.errors
            else:
                fits[c, f] = alone(given, mine, part, f, fit, held, errors, c)
    for key in ((c, f) for c in range(len(Cs)) for f in models.held_out if (c, f) not in fits):
        mine = replace(recipe, penalty=ElasticNet(Cs[key[0]]))
        fits[key] = alone(given, mine, part, key[1], None, held, errors, key[0])
    return fits


def scores(X: npt.NDArray[Any], rows: IntArray, Ws: Sequence[FloatArray]) -> FloatArray:
    """x.w + b of these rows by each of the models, (models, rows)."""
    W = np.hstack(Ws)
    z = np.empty((W.shape[1], len(rows)))
    for low in range(0, len(rows), _SCORED):
        here = slice(low, low + _SCORED)
        z[:, here] = (X[rows[here]] @ W[:-1] + W[-1]).T
    return z


def _certified(
    recipe: Recipe, model: grid.GridModel, longest: float, passes: float, seconds: float
) -> Fit:
    d = len(model.theta) - 1
    certificate = from_sums(
        ClosingSums.from_flat(model.sums, d),
        model.theta[:-1],
        lam=recipe.penalty.l2,
        fit_intercept=recipe.fit_intercept,
        scale=recipe.penalty.scale,
        tol=recipe.tol,
        rows_per_sum=longest,
    )
    return Fit(
        recipe=recipe,
        W=model.theta.reshape(-1, 1),
        dual=model.dual,
        certificate=certificate,
        status=Status.CERTIFIED if certificate.certified else Status.WORKING_PRECISION,
        n_passes=passes,
        seconds=seconds,
        trace=(),
        solver="grid",
    )


def _without(given: Shared, outside: npt.NDArray[np.bool_], n_threads: int | None) -> Any:
    """The rows outside a part; if they are many, or not in memory, those inside it have weight 0.

    A weight of 0 leaves a row among those that numbers are rounded to: one of 1e8 would spoil the proof of the others.
    """
    X, weight = given.rows, given.weight
    if isinstance(X, np.ndarray) and X.size <= _COPIED:

        def of(values: FloatArray | None) -> FloatArray | None:
            return None if values is None else values[outside]

        rows = X[outside], of(given.sigma), of(given.offset), of(weight)
        return dataset(*rows, None, n_threads)
    weight = outside.astype(np.float64) if weight is None else weight * outside
    return dataset(X, given.sigma, given.offset, weight, None, n_threads)


def alone(
    given: Shared,
    recipe: Recipe,
    part: IntArray,
    f: int,
    start: Fit | None,
    held: FloatArray | None,
    errors: IntArray | None,
    c: int,
) -> Fit:
    """A model of its own, from where the grid left it."""
    outside = (part != f) if f >= 0 else np.ones(len(part), dtype=bool)
    with closing(_without(given, outside, recipe.n_threads)) as data:
        W = None if start is None else start.W
        fit = train(recipe, recorded(data, reproducible_fields(recipe), W), W, warn=False)
    if f >= 0 and (held is not None or errors is not None):
        w, b = fit.W[:-1, 0], fit.W[-1, 0]
        wrong = 0
        for rows, X in row_blocks(given.rows):
            own = part[rows] == f
            z = np.asarray(X[own], dtype=np.float64) @ w + b
            if held is not None:
                held[rows, c][own] = z
            if given.sigma is not None:
                wrong += int(((z >= 0.0) != (given.sigma[rows][own] > 0.0)).sum())
        if errors is not None:
            errors[c, f] = wrong
    return fit
