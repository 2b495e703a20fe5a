"""The path of models as C rises."""

from __future__ import annotations

import warnings
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from sklearn.base import clone

from linsep.certificates import Optimality
from linsep.data import Location, location_of
from linsep.errors import ConvergenceWarning, require_certificate
from linsep.monitoring import Job
from linsep.pipelines import Parts
from linsep.train_grid import fit_grid
from linsep.tuning import one_by_one as separate
from linsep.tuning.grid_search import examined, tunable_parts
from linsep.tuning.grids import grid_of
from linsep.tuning.results import Path
from linsep.tuning.tunable import grid_problem

FloatArray = npt.NDArray[np.float64]


def path(
    estimator: Any, X: Any, y: Any = None, Cs: Any = None, *, sample_weight: Any = None
) -> Path:
    """Fit every C, from the smallest to the largest, each certified.

    Parameters
    ----------
    estimator : estimator, or Pipeline that ends in one
        An estimator of linsep with a parameter C; it is not changed. The steps of a pipeline are fitted once, and the
        coefficients are those of the transformed features.
    X, y : array-likes
        As for ``fit``; X may be a scan.
    Cs : array of floats, int or None
        As for :func:`linsep.tune`.
    sample_weight : array (n,), optional

    Returns
    -------
    Path

    Raises
    ------
    Refused
        If the estimator has no ``C``.

    See Also
    --------
    tune : Choose C by cross-validation.

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
    X, target, weight = examined(parts, X, y, sample_weight)
    with Job("path", total=len(grid)) as job:
        models = _together(estimator, X, target, weight, grid)
        if models is None:
            models = _one_by_one(estimator, X, target, weight, grid, job)
    coefs, intercepts = np.stack([m.coef for m in models]), np.stack([m.intercept for m in models])
    proofs, passes = tuple(m.certificate for m in models), float(sum(m.passes for m in models))
    short = [proof for proof in proofs if not proof.certified]
    if short:
        worst = max(short, key=lambda proof: proof.relative_gap)
        text = f"{len(short)} of {len(proofs)} models of the path are not certified. Worst: {worst}"
        warnings.warn(ConvergenceWarning(text, worst), stacklevel=2)
    return Path(grid, coefs, intercepts, proofs, passes)


class _Model(NamedTuple):
    """One model of the path: coef (k, d), intercept (k,)."""

    coef: FloatArray
    intercept: FloatArray
    certificate: Optimality
    passes: float


def _together(
    estimator: Any, X: Any, y: Any, weight: FloatArray | None, grid: FloatArray
) -> list[_Model] | None:
    """The models of all C, fitted together; None if no engine takes them."""
    here = location_of(X) is not Location.CLUSTER
    problem = grid_problem(estimator, X, y, weight) if here else None
    fits = None if problem is None else fit_grid(problem.on(grid.tolist()))
    if fits is None:
        return None
    ordered = [fits[c, -1] for c in range(len(grid))]
    return [_Model(fit.W[:-1].T, fit.W[-1], fit.certificate, fit.n_passes) for fit in ordered]


def _one_by_one(
    estimator: Any, X: Any, y: Any, weight: FloatArray | None, grid: FloatArray, job: Job
) -> list[_Model]:
    """The models of rising C, each from the one before."""
    model = clone(estimator)
    if "warm_start" in model.get_params(deep=False):
        model.set_params(warm_start=True)
    found = []
    for C in grid.tolist():
        model.set_params(C=C)
        with separate.quiet():
            separate.fit(model, X, y, weight, None)
        W, b = np.atleast_2d(model.coef_), np.atleast_1d(model.intercept_)
        found.append(
            _Model(W, b, require_certificate(model, "path"), getattr(model, "n_passes_", 0.0))
        )
        job.done += 1
    return found
