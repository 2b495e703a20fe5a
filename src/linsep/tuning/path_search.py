"""``path``: fit and certify a model for every C of a grid."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from sklearn.base import clone

from linsep.arrays import FloatArray
from linsep.certificates import Optimality
from linsep.data import Location
from linsep.errors import require_certificate
from linsep.monitoring import Job
from linsep.pipelines import Parts
from linsep.train_grid import fit_grid
from linsep.tuning import one_by_one as separate
from linsep.tuning.grid_search import read, tunable_parts, warn_uncertified
from linsep.tuning.grids import grid_of
from linsep.tuning.labelled_rows import LabelledRows
from linsep.tuning.results import Path
from linsep.tuning.tunable import tunable, within_its_time_limit


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
    proofs = tuple(m.certificate for m in models)
    warn_uncertified(proofs, "path")
    return Path(
        grid,
        np.stack([m.coef for m in models]),
        np.stack([m.intercept for m in models]),
        proofs,
        float(sum(m.passes for m in models)),
    )


class _Model(NamedTuple):
    """One model of the path: coef (k, d), intercept (k,)."""

    coef: FloatArray
    intercept: FloatArray
    certificate: Optimality
    passes: float


def _fit_together(estimator: Any, data: LabelledRows, grid: FloatArray) -> list[_Model] | None:
    """Fit the models of all C together; return None if no engine supports the problem."""
    asked = None if data.location is Location.CLUSTER else tunable(estimator)
    problem = None if asked is None else asked._grid_problem(data.X, data.y, data.weight)
    fits = None if problem is None else fit_grid(problem.with_grid(grid.tolist()))
    if fits is None:
        return None
    ordered = [fits[c, -1] for c in range(len(grid))]
    return [_Model(fit.W[:-1].T, fit.W[-1], fit.certificate, fit.n_passes) for fit in ordered]


def _one_by_one(estimator: Any, data: LabelledRows, grid: FloatArray, job: Job) -> list[_Model]:
    """Fit the models in increasing order of C, each with a warm start from the previous one."""
    model = clone(estimator)
    if "warm_start" in model.get_params(deep=False):
        model.set_params(warm_start=True)
    found = []
    for C in grid.tolist():
        model.set_params(C=C)
        with separate.quiet():
            separate.fit(model, data)
        W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        found.append(
            _Model(W, b, require_certificate(model, "path"), getattr(model, "n_passes_", 0.0))
        )
        job.done += 1
    return found
