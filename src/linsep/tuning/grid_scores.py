"""Held-out scores of all models of a grid of C and folds, fitted together, one by one, or by leave-one-out."""

from __future__ import annotations

from time import perf_counter
from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone, is_classifier

from linsep.arrays import FloatArray
from linsep.certificates import Optimality
from linsep.data import Location
from linsep.errors import BadInput, require_certificate
from linsep.monitoring import Job
from linsep.pipelines import Parts, stack, take_rows
from linsep.solvers.grid.problem import HeldOut
from linsep.train import Fit
from linsep.train_grid import fit_grid
from linsep.tuning import leave_one_out, pruning, splits
from linsep.tuning import one_by_one as separate
from linsep.tuning.labelled_rows import LabelledRows
from linsep.tuning.results import GridRecord
from linsep.tuning.scoring import ERROR, Score
from linsep.tuning.tunable import grid_problem

_HELD = 4_000_000  # held-out scores that the grid stores; more are computed again, fold by fold


class GridModel(NamedTuple):
    """A model of a grid or path: coefficients (k, d), intercepts (k,), certificate and passes over the data."""

    coef: FloatArray
    intercept: FloatArray
    certificate: Optimality
    passes: float

    @classmethod
    def from_fit(cls, fit: Fit) -> GridModel:
        """Return a model that was fitted together with others."""
        return cls(fit.W[:-1].T, fit.W[-1], fit.certificate, fit.n_passes)

    @classmethod
    def from_estimator(cls, model: Any, caller: str) -> GridModel:
        """Return a model that was fitted on its own; raise if it has no certificate, naming ``caller``."""
        coef, intercept = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        proof = require_certificate(model, caller)
        return cls(coef, intercept, proof, getattr(model, "n_passes_", 0.0))


class GridScores:
    """Collector of scores and certificates (c, folds) of a grid, with a trace in the order of completion."""

    def __init__(self, Cs: FloatArray, folds: int, began: float, reject: bool, keep: bool) -> None:
        self.Cs, self._began, self.reject = Cs, began, reject
        self.rejected: dict[float, tuple[float, float]] = {}
        self.scores = np.full((len(Cs), folds), np.nan)
        self.certificates = np.empty(self.scores.shape, dtype=object)
        self.trace: list[GridRecord] = []
        self.job: Job | None = None
        self.fold = 0  #: offset of fold numbers, if folds are fitted one at a time
        self._keep = keep
        self._weights: dict[tuple[int, int], tuple[FloatArray, FloatArray]] = {}

    def stack_weights(self, which: int) -> FloatArray | None:
        """Return the coefficients (c, folds, k, d) for 0, the intercepts (c, folds, k) for 1; None if not kept."""
        if not self._keep:
            return None
        c, folds = self.scores.shape
        rows = [[self._weights[i, f][which] for f in range(folds)] for i in range(c)]
        if len({row.shape for line in rows for row in line}) > 1:
            raise BadInput(
                "keep=True needs the same number of features in every fold, but the steps of the pipeline made "
                f"{sorted({row.shape[-1] for line in rows for row in line})}; leave keep out."
            )
        return np.array(rows)

    def add(self, c: int, f: int, score: float, model: GridModel) -> None:
        """Add a model of the grid."""
        f += self.fold
        if self._keep:
            self._weights[c, f] = model.coef.copy(), model.intercept.copy()
        self.scores[c, f], self.certificates[c, f] = score, model.certificate
        seconds, gap = perf_counter() - self._began, model.certificate.relative_gap
        self.trace.append(GridRecord(float(self.Cs[c]), f, seconds, model.passes, gap))
        if self.job is not None:
            self.job.done = max(self.job.done, len(self.trace))


def score_folds(
    whole: Parts, data: LabelledRows, parts: splits.Splits, score: Score, found: GridScores
) -> None:
    """Fit and score every model of the grid.

    If there are preprocessing steps, they are fitted to the training rows of each fold and applied to its held-out
    rows, once for all C.
    """
    _require_weight(data.weight, parts)
    if whole.steps is None:
        _grid_scores(whole.model, data, parts, score, found)
        return
    for f, (train, held) in enumerate(parts.pairs):
        steps, order = clone(whole.steps), np.concatenate([train, held])
        seen = steps.fit_transform(take_rows(data.X, train), data.y[train])
        rows = stack(seen, steps.transform(take_rows(data.X, held)))
        weight = None if data.weight is None else data.weight[order]
        own = LabelledRows(rows, data.y[order], weight)
        cut = np.arange(len(train)), np.arange(len(train), len(order))
        found.fold = f
        _grid_scores(whole.model, own, splits.Splits((cut,), None, None), score, found)


def _require_weight(weight: Any, parts: splits.Splits) -> None:
    """Refuse folds whose held-out rows all have weight 0, which leaves nothing to score."""
    if not isinstance(weight, np.ndarray):
        return
    for f, (_, held) in enumerate(parts.pairs):
        if not weight[held].any():
            raise BadInput(
                f"all {len(held)} held-out rows of fold {f} have sample_weight 0, so it has no score; leave out rows "
                "of weight 0, or use fewer folds."
            )


def _grid_scores(
    estimator: Any, data: LabelledRows, parts: splits.Splits, score: Score, found: GridScores
) -> None:
    """Fit every model of the grid and score it on its held-out rows."""
    if _scores_together(estimator, data, parts, score, found):
        return
    if found.reject:
        models = pruning.models(estimator, data, found.Cs, parts.pairs, found.rejected)
    else:
        models = separate.models(estimator, data, found.Cs, parts.pairs)
    for c, f, model in models:
        value = separate.score_held_out(score, model, data, parts.pairs[f][1])
        found.add(c, f, value, GridModel.from_estimator(model, "tune"))


def _scores_together(
    estimator: Any, data: LabelledRows, parts: splits.Splits, score: Score, found: GridScores
) -> bool:
    """Fit and score the grid together; return False if no engine supports it."""
    y, weight = data.y, data.weight
    Cs, part = found.Cs.tolist(), parts.parts(len(y))
    asked, problem = grid_problem(estimator, data)
    if asked is None or problem is None or part is None:
        return False
    problem, counted = problem.with_grid(Cs, part), score is ERROR and is_classifier(estimator)
    if counted and problem.weight is None:
        errors = np.zeros((len(Cs), parts.count), dtype=np.int64)
        fits = fit_grid(problem, HeldOut(errors=errors))
        if fits is None:
            return False
        for f, size in enumerate(parts.sizes):
            for c in range(len(Cs)):
                found.add(c, f, errors[c, f] / size, GridModel.from_fit(fits[c, f]))
        return True
    many = len(y) * len(Cs) > _HELD and isinstance(problem.rows, np.ndarray)
    held = None if many else np.zeros((len(y), len(Cs)))
    fits = fit_grid(problem, HeldOut(held))
    if fits is None:
        return False
    for f, (_, rows) in enumerate(parts.pairs):
        if held is not None:
            z = np.ascontiguousarray(held[rows].T)
        else:
            z = separate.scores(problem.rows, rows, [fits[c, f].W for c in range(len(Cs))])
        own = None if weight is None else weight[rows]
        for c in range(len(Cs)):
            model = asked._scoring_model(problem, fits[c, f])
            value = score.of(model, z[c, :, None], y[rows], own)
            found.add(c, f, value, GridModel.from_fit(fits[c, f]))
    return True


def score_left_out_rows(whole: Parts, data: LabelledRows, score: Score, found: GridScores) -> None:
    """Fit every C to all rows and score it by approximate leave-one-out."""
    if data.location is Location.CLUSTER:
        raise BadInput(
            f"cv={splits.LEAVE_ONE_OUT!r} needs the rows in memory or on disk; give a number of folds."
        )
    asked, problem = grid_problem(whole.model, data)
    leave_one_out.refuse(problem)
    assert asked is not None and problem is not None
    for c, fit in enumerate(leave_one_out.fits_of(problem, found.Cs.tolist())):
        z = leave_one_out.scores(problem, fit)
        value = score.of(asked._scoring_model(problem, fit), z[:, None], data.y, data.weight)
        found.add(c, 0, value, GridModel.from_fit(fit))
