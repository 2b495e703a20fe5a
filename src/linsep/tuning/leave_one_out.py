"""Approximate leave-one-out scores: the score of each row by a model fitted without that row.

At the optimum of lam/2 |w|^2 + sum s l(m) on all rows, a Newton step without row i changes the margin of row i to

    m_i + s_i l'(m_i) q_i / (1 - s_i l''(m_i) q_i),      q_i = x~_i' H^-1 x~_i,   x~ = (x, 1),

with H the Hessian on all rows. Each C needs one fit and a few more passes instead of n fits. The result is exact for
the squared loss, whose Newton step is exact; for other losses it is an approximation without an error bound.

Pregibon, Logistic regression diagnostics, 1981; Rad and Maleki, A scalable estimate of the out-of-sample prediction
error via approximate leave-one-out cross-validation, 2020.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import closing
from typing import Any

import numpy as np

from linsep.arrays import FloatArray, dense
from linsep.data import dataset
from linsep.errors import Refused
from linsep.interrupts import lapack
from linsep.losses import CoupledLoss
from linsep.solvers.grid import smooth
from linsep.solvers.grid.problem import GridProblem, HeldOut
from linsep.train import Fit, train
from linsep.train_grid import Fits, fit_by_engine, fit_unscaled
from linsep.tuning.splits import LEAVE_ONE_OUT

LARGEST = 2000  # largest number of features, because H is decomposed for each C
_CHUNK = 4 << 20  # entries of X per chunk of rows
_DROP = 1e-13  # relative eigenvalue below which a direction is taken to have no curvature


def refuse(given: GridProblem | None) -> None:
    """Raise if approximate leave-one-out is not possible for a problem, with the reason."""
    needs = f"cv={LEAVE_ONE_OUT!r} needs"
    if given is None:
        raise Refused(
            f"{needs} two classes (or a regression), class_weight other than 'balanced', and neither penalty_factor "
            "nor feature_groups: it takes one column of weights and one weight for each row. Use cv=5."
        )
    loss = given.recipe.loss
    if isinstance(loss, CoupledLoss) or not loss.smooth:
        raise Refused(
            f"{needs} a smooth loss: the {loss.name} loss has no curvature to take a Newton step with. Use cv=5, or "
            "the logistic or squared_hinge loss."
        )
    if given.recipe.penalty.l1_ratio:
        raise Refused(
            f"{needs} l1_ratio=0: with absolute penalties the support may change. Use cv=5."
        )
    if given.rows.shape[1] > LARGEST:
        raise Refused(
            f"{needs} at most {LARGEST:,} features, got {given.rows.shape[1]:,}: a matrix of that order is decomposed "
            "for each C. Use cv=5."
        )


def fits_of(given: GridProblem, Cs: Sequence[float]) -> list[Fit]:
    """Return a fit to all rows for each C, in increasing order."""
    grid = given.with_grid(Cs)
    found = fit_unscaled(grid, _fit_all)
    assert found is not None
    return [found[c, -1] for c in range(len(Cs))]


def _fit_all(grid: GridProblem) -> Fits:
    """Fit all rows for each C, together if the loss allows it, otherwise one after another with warm starts."""
    if smooth.applies(grid):
        return fit_by_engine(grid, smooth, HeldOut())
    fits: list[Fit] = []
    for c in range(len(grid.Cs)):
        recipe = grid.recipe_of(c)
        data = dataset(grid.rows, grid.sigma, grid.offset, grid.weight, None, recipe.n_threads)
        with closing(data):
            fits.append(train(recipe, data, fits[-1].W if fits else None, warn=False))
    return {(c, -1): fit for c, fit in enumerate(fits)}


def scores(given: GridProblem, fit: Fit) -> FloatArray:
    """Return the score of each row after one Newton step without that row, (n,)."""
    loss = given.recipe.loss
    assert not isinstance(loss, CoupledLoss)
    n, d = given.rows.shape
    w, b = fit.W[:-1, 0], float(fit.W[-1, 0])
    sign = np.ones(n) if given.sigma is None else given.sigma
    weight = np.ones(n) if given.weight is None else given.weight
    order = d + given.recipe.fit_intercept
    mu = np.zeros(d)
    if order > d:  # centred rows avoid cancellation if columns have large means
        mu = sum(X.sum(axis=0) for X in _chunks(given.rows, mu)) / n
    z = np.concatenate([X @ w for X in _chunks(given.rows, mu)]) + (b + mu @ w)
    m = sign * z + (0.0 if given.offset is None else given.offset)
    h = weight * loss.curvature(m)
    H = np.zeros((order, order))
    at = 0
    for X in _chunks(given.rows, mu):
        A = X if order == d else np.column_stack([X, np.ones(len(X))])
        H += A.T @ (h[at : at + len(X), None] * A)
        at += len(X)
    H[np.arange(d), np.arange(d)] += fit.recipe.penalty.l2
    root = _inverse_root(H)
    q = np.concatenate(
        [((X @ root[:d] + root[d:].sum(axis=0)) ** 2).sum(axis=1) for X in _chunks(given.rows, mu)]
    )
    without = 1.0 - np.minimum(h * q, 1.0 - 1e-12)
    return np.asarray(z + sign * weight * loss.slope(m) * q / without)


def _chunks(X: Any, mu: FloatArray) -> Iterator[FloatArray]:
    """Yield chunks of rows minus mu, as dense arrays."""
    rows = max(1, _CHUNK // max(1, X.shape[1]))
    for lo in range(0, X.shape[0], rows):
        part = X[lo : lo + rows]
        yield np.asarray(dense(part), dtype=np.float64) - mu


def _inverse_root(H: FloatArray) -> FloatArray:
    """Return T with T T' = H^-1, restricted to the directions that have curvature."""
    diagonal = np.sqrt(np.diagonal(H))
    scale = np.where(diagonal > 0.0, diagonal, 1.0)
    values, vectors = lapack(np.linalg.eigh, H / np.outer(scale, scale))
    keep = values > _DROP * values[-1]
    return np.asarray(vectors[:, keep] / np.sqrt(values[keep]) / scale[:, None])
