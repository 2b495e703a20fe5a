"""Refutation of lower bounds: an objective attained near the coefficients of a model that is below the bound.

A lower bound proven in exact arithmetic may be a few rounding errors below the minimum, too little to refute a claim
just above the minimum. A point reached by Newton's method in floats can refute it: its objective is computed without
rounding.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from linsep.arrays import FloatArray
from linsep.certificates.curvature.metric import solve_scaled
from linsep.certificates.curvature.softmax import LARGEST, newton_step
from linsep.certificates.exact import exact_objective
from linsep.certificates.parts import Part, score
from linsep.data.row_access import is_sparse
from linsep.errors import Refused
from linsep.losses import Loss, Multinomial

#: Newton steps from the coefficients of the model.
_STEPS = 3


def is_above_attained(bound: float, part: Part) -> bool:
    """Return whether a point near the coefficients has an objective below the claimed lower bound."""
    if not (math.isfinite(bound) and part.penalty.uniform and part.loss.smooth):
        return False
    if part.W.size > LARGEST:
        return False
    try:
        return any(
            exact_objective(part._replace(W=W)) < bound
            for W in _iterates(part)
            if np.isfinite(W).all()
        )
    except (Refused, OverflowError, np.linalg.LinAlgError):
        return False


def _iterates(part: Part) -> Iterator[FloatArray]:
    """Yield the coefficients after one, two, ... Newton steps."""
    for _ in range(_STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            if isinstance(part.loss, Loss):
                W = _pointwise_step(part)
            elif isinstance(part.loss, Multinomial) and part.penalty.l1 == 0.0:
                W = newton_step(part)
            else:
                return
        yield W
        if not np.isfinite(W).all():
            return
        part = part._replace(W=W)


def _pointwise_step(part: Part) -> FloatArray:
    """Return the coefficients after a Newton step in the nonzero ones, or in all if l1 = 0."""
    assert isinstance(part.loss, Loss)
    (n, d), (sigma, offset, s) = part.X.shape, part.vectors()
    X = (part.X.toarray() if is_sparse(part.X) else part.X).astype(np.float64)
    m = sigma * score(X, part.W)[:, 0] + offset
    lam, l1 = part.penalty.l2, part.penalty.l1
    active = np.append((l1 == 0.0) | (part.W[:-1, 0] != 0.0), part.fit_intercept)
    A, ridge = np.column_stack([X, np.ones(n)])[:, active], np.append(np.full(d, lam), 0.0)[active]
    theta = part.W[active, 0]
    slope, curvature = (
        np.where(s > 0.0, s * f(m), 0.0) for f in (part.loss.slope, part.loss.curvature)
    )
    kink = np.append(l1 * np.sign(part.W[:-1, 0]), 0.0)[active]
    g = A.T @ (sigma * slope) + ridge * theta + kink
    H = A.T @ (curvature[:, None] * A) + np.diag(ridge)
    W = part.W.copy()
    W[active, 0] += solve_scaled(H, -g)
    return W
