"""Dual coefficients and support vectors of a support vector machine, from the dual point of its certificate.

The dual coefficient (Lagrange multiplier) of row i is alpha_i = C s_i u_i, with u the dual point. For the hinge it
lies in the box [0, C s_i]; for the squared hinge and the hard margin it is only >= 0. With an
intercept sum_i y_i alpha_i = 0, and w = sum_i y_i alpha_i x_i at the optimum.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Disk, Location, location_of
from linsep.estimators.scoring import by_pieces, native_rows, product
from linsep.losses import Loss
from linsep.problem import dot, hard_margin
from linsep.solution import Explicit, Linearised
from linsep.train import Fit

#: Relative distance from an end of the box that is attributed to rounding.
_SNAP = 1e-9
#: Relative distance from an end of the box that an interior point method may leave for rows off the margin.
_NEAR = 1e-4
#: Relative imbalance |sum y alpha| / sum alpha that is not repaired: the rounding error of the sum.
_BALANCED = 1e-14
#: Largest number of entries of X that a model stores as its support vectors.
MAX_STORED_ENTRIES = 1_000_000


def multipliers(fit: Fit, X: Any, sigma: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return the dual coefficients alpha (n,) of one two-class problem.

    They are inside their boxes, and sum_i sigma_i alpha_i = 0 to rounding if there is an intercept.
    """
    loss, scale = fit.recipe.loss, fit.recipe.penalty.scale
    assert isinstance(loss, Loss)
    if hard_margin(loss, fit.recipe.penalty):
        return _hard_margin_multipliers(fit, sigma, weight)
    low, high = loss.domain
    u = np.maximum(_dual_variables(fit, X, sigma), low)
    if high < np.inf:
        np.minimum(u, high, out=u)
        if isinstance(fit.dual, Explicit) and np.count_nonzero((u > 0.0) & (u < high)) > len(fit.W):
            _round_to_bounds(u, high, np.abs(sigma * _scores(fit, X) - 1.0))
        u[u >= (1.0 - _SNAP) * high] = high
    cap = scale if weight is None else scale * weight
    alpha: FloatArray = cap * u
    # For a large C all alpha are small relative to their boxes, so a zero must also be small relative to max alpha.
    if high < np.inf:
        alpha[(u <= _SNAP * high) & (alpha <= _SNAP * alpha.max(initial=0.0))] = 0.0
    if fit.recipe.fit_intercept:
        _balance(alpha, sigma, cap if high < np.inf else np.inf)
    return alpha


def _round_to_bounds(u: FloatArray, high: float, far: FloatArray) -> None:
    """Round u to the limit of the central path, in place; ``far`` is |m - 1|.

    An interior point method leaves all u strictly inside the box, with u (m - 1), or (high - u)(1 - m), about equal for
    all rows. A row whose u is nearer to an end of the box, relative to the largest u, than its score is to the margin,
    relative to the largest distance, is set to that end.
    """
    near, largest = np.minimum(u, high - u), float(u.max())
    ended = (near <= _NEAR * largest) & (near * far.max() <= far * largest)
    u[ended] = np.where(u[ended] < 0.5 * high, 0.0, high)


def _hard_margin_multipliers(fit: Fit, sigma: FloatArray, weight: FloatArray | None) -> FloatArray:
    """Return alpha (n,) of the hard margin, which is its dual point; rows of weight 0 get 0."""
    assert isinstance(fit.dual, Explicit)
    alpha = np.maximum(fit.dual.u, 0.0)
    if weight is not None:
        alpha[weight == 0.0] = 0.0
    if fit.recipe.fit_intercept:
        _balance(alpha, sigma, np.inf)
    return alpha


def _dual_variables(fit: Fit, X: Any, sigma: FloatArray) -> FloatArray:
    """Return the dual variable of each row, computed as in the certificate if the dual point is linearised."""
    dual, loss = fit.dual, fit.recipe.loss
    assert isinstance(loss, Loss)
    if isinstance(dual, Explicit):
        return dual.u
    rows = native_rows(X) if loss.native else None
    if rows is not None:
        return _closing_duals(fit, dual, X, rows, sigma)
    three = np.hstack([dual.base, dual.step, fit.W])
    Z = product(X, three[:-1])
    Z += three[-1]
    Z *= sigma[:, np.newaxis]
    with np.errstate(over="ignore", invalid="ignore"):
        u: FloatArray = -(loss.slope(Z[:, 0]) + loss.curvature(Z[:, 0]) * Z[:, 1])
    low, high = loss.domain
    inside = (u >= low) & (u <= high)
    return u if inside.all() else np.where(inside, u, -loss.slope(Z[:, 2]))


def _closing_duals(
    fit: Fit, dual: Linearised, X: Any, rows: _kernels.Rows, sigma: FloatArray
) -> FloatArray:
    """Return the dual variables that the closing pass computes, for rows that the kernels can read."""
    loss = fit.recipe.loss
    assert isinstance(loss, Loss) and loss.native is not None
    native, targets = _kernels.Loss(loss.native, *loss.params), _kernels.Targets(sigma, None, None)
    base, step, theta = (np.ascontiguousarray(W[:, 0]) for W in (dual.base, dual.step, fit.W))
    u = np.empty(rows.n)

    def close(lo: int, hi: int) -> bool:
        sums = np.zeros(8 + 2 * rows.d)  # required by the kernel, not used
        _kernels.closing(rows, targets, native, lo, hi, base, step, theta, None, sums, u)
        return True

    by_pieces(fit.recipe.n_threads, X, rows.n, close)
    return u


def _scores(fit: Fit, X: Any) -> FloatArray:
    """Return the scores x.w + b of all rows."""
    rows, z = native_rows(X), np.empty(X.shape[0])
    theta = np.ascontiguousarray(fit.W[:, 0])
    if location_of(X) is Location.DISK:
        with closing(Disk(X, n_threads=fit.recipe.n_threads)) as data:
            return data.scores(theta)
    if rows is None:
        return np.asarray(product(X, fit.W[:-1])[:, 0] + fit.W[-1])
    score = _kernels.scores
    by_pieces(fit.recipe.n_threads, X, rows.n, lambda lo, hi: score(rows, lo, hi, theta, z[lo:hi]))
    return z


def _balance(alpha: FloatArray, sigma: FloatArray, cap: Any) -> None:
    """Make sum_i sigma_i alpha_i = 0 to rounding, in place and without leaving the boxes.

    The free dual coefficients of the class with the larger sum are scaled down, so that those at their upper bound
    stay there; all dual coefficients of the class are scaled only if that is not enough.
    """
    for free in (np.less, np.not_equal):  # first those below the upper bound, then all nonzero ones
        excess = dot(sigma, alpha)
        if abs(excess) <= _BALANCED * float(alpha.sum()):
            return
        movable = free(alpha, cap if free is np.less else 0.0)
        heavy = (movable & (sigma * excess > 0.0)).astype(np.float64)
        mass = dot(heavy, alpha)
        if mass > 0.0:
            alpha *= 1.0 - min(1.0, abs(excess) / mass) * heavy


def support(alpha: FloatArray, caps: Any) -> tuple[IntArray, IntArray, IntArray]:
    """Return the support vectors, the free ones and the bounded ones, as row numbers.

    A support vector has a nonzero dual coefficient; a free one has a coefficient strictly inside its box. ``alpha`` is
    (n,), or (n, k) for several classes; ``caps`` bounds its absolute values.
    """
    used = alpha != 0.0
    free = used & (np.abs(alpha) < caps)
    if alpha.ndim == 2:
        used, free = used.any(axis=1), free.any(axis=1)
    return used.nonzero()[0], free.nonzero()[0], (used & ~free).nonzero()[0]


def support_rows(X: Any, rows: IntArray) -> Any:
    """Return a copy of the given rows of X, or None if it would have more than ``MAX_STORED_ENTRIES`` entries."""
    if sp.issparse(X):
        return X[rows] if int(np.diff(X.indptr)[rows].sum()) <= MAX_STORED_ENTRIES else None
    if len(rows) * X.shape[1] > MAX_STORED_ENTRIES:
        return None
    return X.take(rows, 0) if isinstance(X, np.ndarray) else X[rows]
