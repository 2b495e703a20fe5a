"""``path``: fit and certify a model for every C of a grid."""

from __future__ import annotations

from typing import Any

import numpy as np
from sklearn.base import clone

from linsep.arrays import FloatArray
from linsep.monitoring import Job
from linsep.pipelines import Parts
from linsep.train_grid import fit_grid
from linsep.tuning import one_by_one as separate
from linsep.tuning.grid_scores import GridModel
from linsep.tuning.grid_search import read, tunable_parts, warn_uncertified
from linsep.tuning.grids import grid_of
from linsep.tuning.labelled_rows import LabelledRows
from linsep.tuning.results import Path
from linsep.tuning.tunable import grid_problem, within_its_time_limit


@within_its_time_limit
def path(
    estimator: Any, X: Any, y: Any = None, Cs: Any = None, *, sample_weight: Any = None
) -> Path:
    """Fit a model for every C, from the smallest to the largest, and certify each.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        An estimator of linsep with a parameter C. It is not changed; its ``time_limit`` applies to the whole path.
        The steps of a pipeline are fitted once, and the coefficients are those of the transformed features.
    X, y : array-likes
        As for ``fit``; X may be a scan.
    Cs : array of floats, int or None
        The values to fit, or how many from 1e-4 to 1e4 on a logarithmic scale; 10 by default.
    sample_weight : array (n,), optional
        Weight of each row.

    Returns
    -------
    Path

    Raises
    ------
    BadInput
        If the estimator has no parameter ``C``, or a value of C is not positive.

    See Also
    --------
    tune : Choose C by cross-validation.

    References
    ----------
    Friedman, Hastie and Tibshirani, Regularization paths for generalized linear models via coordinate descent, Journal
    of Statistical Software 33, 2010.

    Examples
    --------
    >>> from linsep import LogisticRegression, path
    >>> rising = path(LogisticRegression(), [[0.0], [1.0], [2.0], [3.0]], [0, 1, 0, 1], [0.1, 1.0])
    >>> all(c.certified for c in rising.certificates)
    True
    """
    parts = tunable_parts(estimator, "path")
    grid = grid_of(Cs)
    if parts.steps is not None:
        X, parts = clone(parts.steps).fit_transform(X, y), Parts(None, parts.model)
    estimator = parts.model
    data = read(parts, X, y, sample_weight)
    with Job("path", total=len(grid)) as job:
        models = _fit_together(estimator, data, grid)
        if models is None:
            models = _one_by_one(estimator, data, grid, job)
    coefs, intercepts, proofs, passes = zip(*models, strict=True)
    warn_uncertified(proofs, "path")
    return Path(grid, np.stack(coefs), np.stack(intercepts), proofs, float(sum(passes)))


def _fit_together(estimator: Any, data: LabelledRows, grid: FloatArray) -> list[GridModel] | None:
    """Fit the models of all C together; return None if no engine supports the problem."""
    problem = grid_problem(estimator, data)[1]
    fits = None if problem is None else fit_grid(problem.with_grid(grid.tolist()))
    return None if fits is None else [GridModel.from_fit(fits[c, -1]) for c in range(len(grid))]


def _one_by_one(estimator: Any, data: LabelledRows, grid: FloatArray, job: Job) -> list[GridModel]:
    """Fit the models in increasing order of C, each with a warm start from the previous one."""
    found: list[GridModel] = []
    with separate.quiet():
        for model in separate.fit_rising(estimator, data, grid):
            found.append(GridModel.from_estimator(model, "path"))
            job.done += 1
    return found
