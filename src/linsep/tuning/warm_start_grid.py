"""Grids of sparse rows: the models of a fold one after another, on one data set and without an estimator between them.

Where a model begins follows from k = C mean |x|^2 (``solvers/cost/model.py``). Strong penalties begin at the model of
the first fold for the same C, weak ones at that of the C before; in between, and for losses with a kink, dual ascent
finds a better beginning in the sums of the two classes. Passes to 1e-6, C from 1e-4 to 1e4, by where a model begins::

    sms, logistic       C before     10  4  7  9  10  10  16  23  25  26
                        first fold    5  4  6  7   8   9  16  24  29  32
                        nowhere      10 10  4  6   8   8  15  22  28  32
    sms, hinge          C before      6  8  8  9  15  39  43  48  54  61
                        nowhere       6  6  7  7  15  37  40  45  51  57
"""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp

from linsep.data import Memory
from linsep.data.threads import usable_threads
from linsep.losses import CoupledLoss
from linsep.monitoring import advance
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.solvers.cost.model import hardness, sampled_mean
from linsep.train import Fit, train
from linsep.tuning.newton_grid import Shared, both_classes
from linsep.tuning.one_by_one import SIDE_BY_SIDE

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]

# k below which a model begins at another fold's; above which at the C before; above which, for losses that recede,
# half a step beyond that, as the weights go on growing.
_STRONG, _WEAK, _WEAKER = 0.002, 5.0, 50.0


def applies(given: Shared, Cs: Sequence[float], part: IntArray) -> bool:
    """Whether the rows are sparse and in memory, with a ridge penalty and both classes in every model."""
    recipe, rows, loss = given.recipe, given.rows, given.recipe.loss
    if isinstance(loss, CoupledLoss) or loss.native is None:
        return False
    if recipe.penalty.l1_ratio or not np.isfinite(Cs).all():
        return False
    if not sp.issparse(rows) or rows.format != "csr" or not rows.nnz:
        return False
    if recipe.time_limit is not None or recipe.max_passes is not None:
        return False
    return not loss.classification or given.sigma is None or both_classes(given, part)


def fit_grid(
    given: Shared,
    Cs: Sequence[float],
    part: IntArray,
    held: FloatArray | None,
    errors: IntArray | None = None,
) -> dict[tuple[int, int], Fit]:
    """As ``shared.fit_grid``. Folds of modest size are fitted side by side, each by one thread, to the same bits."""
    folds = sorted({int(f) for f in np.unique(part) if f >= 0}) or [-1]
    threads = given.recipe.n_threads
    threads = usable_threads() if threads is None else threads
    workers = min(threads, len(folds)) if given.rows.nnz <= SIDE_BY_SIDE else 1
    recipe = replace(given.recipe, n_threads=1 if workers > 1 else threads)
    grid = _Grid(replace(given, recipe=recipe), Cs, part, held, errors)
    fits = {(c, folds[0]): fit for c, fit in enumerate(grid.along(folds[0], None))}
    advance(len(fits))
    first = [fits[c, folds[0]].W for c in range(len(Cs))]
    with ThreadPoolExecutor(workers, "linsep-fold") as pool:
        others = pool.map(lambda f: grid.along(f, first), folds[1:])
        for f, found in zip(folds[1:], others, strict=True):
            fits.update({(c, f): fit for c, fit in enumerate(found)})
            advance(len(fits))
    return fits


class _Grid:
    """The rows, and room for what is held out."""

    def __init__(
        self,
        given: Shared,
        Cs: Sequence[float],
        part: IntArray,
        held: FloatArray | None,
        errors: IntArray | None,
    ) -> None:
        self._given, self._Cs, self._part = given, Cs, part
        self._held, self._errors = held, errors

    def along(self, f: int, first: Sequence[FloatArray] | None) -> list[Fit]:
        """The models without fold f as C rises; ``first``: those of another fold."""
        given, recipe = self._given, self._given.recipe
        inside = (self._part == f) & (f >= 0)
        data = given_rows(given, ~inside)
        assert not isinstance(recipe.loss, CoupledLoss)
        mean = sampled_mean(Problem(recipe.loss, ElasticNet(1.0), data, recipe.fit_intercept))
        fits: list[Fit] = []
        for c, C in enumerate(self._Cs):
            problem = Problem(recipe.loss, ElasticNet(C), data, recipe.fit_intercept)
            start = self._start(problem, mean, fits, None if first is None else first[c])
            mine = replace(recipe, penalty=ElasticNet(C))
            fits.append(train(mine, data, start, warn=False))
        if f >= 0:
            self._judge(f, inside, np.hstack([fit.W for fit in fits]))
        return fits

    def _start(
        self, problem: Problem, mean: float, fits: Sequence[Fit], other: FloatArray | None
    ) -> FloatArray | None:
        before = fits[-1].W if fits else None
        hard = hardness(problem, mean)
        if not problem.loss.smooth or _STRONG <= hard < _WEAK:
            return None
        if hard > _WEAKER and len(fits) > 1 and problem.loss.recedes:
            return fits[-1].W + 0.5 * (fits[-1].W - fits[-2].W)
        return before if other is None or hard >= _WEAK else other

    def _judge(self, f: int, inside: npt.NDArray[np.bool_], W: FloatArray) -> None:
        """Scores of the rows of fold f by the models that have not seen them."""
        Z = self._given.rows[inside] @ W[:-1] + W[-1]
        if self._held is not None:
            self._held[inside] = Z
        if self._errors is not None and self._given.sigma is not None:
            positive = self._given.sigma[inside] > 0.0
            self._errors[:, f] = ((Z >= 0.0) != positive[:, None]).sum(axis=0)


def given_rows(given: Shared, rows: npt.NDArray[np.bool_]) -> Memory:
    """These rows as a data set of their own."""
    every = bool(rows.all())

    def of(values: FloatArray | None) -> FloatArray | None:
        return values if values is None or every else values[rows]

    X = given.rows if every else given.rows[rows]
    return Memory(
        X, of(given.sigma), of(given.offset), of(given.weight), None, given.recipe.n_threads
    )
