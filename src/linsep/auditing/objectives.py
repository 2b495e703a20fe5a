"""The problem that an audited model solved, its coefficients per subproblem, and its objective there."""

from __future__ import annotations

import math
from contextlib import suppress
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep import certificates
from linsep.arrays import FloatArray
from linsep.errors import BadInput, Refused
from linsep.exact.dyadic import nearest
from linsep.losses import CoupledLoss, CrammerSinger
from linsep.penalties import ElasticNet, GroupElasticNet
from linsep.problem.closing_rows import ROUNDOFF
from linsep.sklearn_objectives import Objective, Part
from linsep.solution import Explicit, Linearised

#: Rounding error of an objective, relative to the tolerance, above which higher precision is used.
_ROUNDING = 1e-2


def split(problem: Objective, coef: Any, intercept: Any) -> list[FloatArray]:
    """Coefficients (d + 1, k) of each subproblem, with the intercepts in the last row."""
    dense = coef.toarray() if hasattr(coef, "toarray") else np.asarray(coef)
    rows = np.atleast_2d(dense.astype(float))
    ends = np.ravel(intercept).astype(float)
    if len(ends) not in (1, len(rows)):
        raise BadInput(f"There are {len(rows)} rows of coefficients and {len(ends)} intercepts.")
    ends = np.broadcast_to(ends, (len(rows),))
    W = np.column_stack([rows, ends]).T
    if isinstance(problem.loss, CrammerSinger) and problem.width == 2 and W.shape[1] == 1:
        W = np.hstack([-W, W]) / 2.0
    if W.shape[1] != problem.width * len(problem.parts):
        raise BadInput(
            f"The coefficients have {W.shape[1]} columns, the problem has "
            f"{problem.width * len(problem.parts)}."
        )
    return np.hsplit(W, len(problem.parts))


def penalty_of(problem: Objective, part: Part) -> ElasticNet:
    """Penalty of a subproblem, without that of the intercept."""
    C = problem.C if part.C is None else part.C
    if problem.factor is None:
        return ElasticNet(C, problem.l1_ratio)
    return GroupElasticNet(C, problem.l1_ratio, problem.factor, np.arange(len(problem.factor)))


def objective_at(
    problem: Objective,
    part: Part,
    X: Any,
    W: FloatArray,
    tol: float,
    dual: Linearised | Explicit | None = None,
) -> tuple[float, float]:
    """Objective of a subproblem at coefficients W (d + 1, k), in linsep's units, and a bound on its rounding error.

    If the bound is large relative to ``tol``, the sums are repeated in higher precision, and in exact arithmetic if
    that is not enough.
    """
    n, scaling, ratio = X.shape[0], problem.intercept_scaling, problem.l1_ratio
    if dual is None:
        coupled = isinstance(problem.loss, CoupledLoss)
        dual = Explicit(np.zeros((n, problem.width) if coupled else n))
    check = certificates.Part(
        loss=problem.loss,
        penalty=penalty_of(problem, part),
        fit_intercept=problem.fit_intercept,
        X=X,
        sigma=np.ones(n) if part.sign is None else part.sign,
        offset=part.offset if part.target is None else -part.target,
        weight=part.weight,
        labels=part.labels,
        W=W,
        dual=dual,
        tol=math.inf,
    )
    found = certificates.recheck_part(check)  # tol=inf: no proof of optimality is required
    if found.rounding > _ROUNDING * tol * found.primal:
        found = certificates.recheck_part(check._replace(tol=tol))
    value, rounding = found.primal, found.rounding
    if rounding > _ROUNDING * tol * value and math.prod(X.shape) <= certificates.EXACT_SIZE:
        with suppress(Refused):
            value = nearest(certificates.exact_objective(check))
            rounding = ROUNDOFF * value
    intercepts = W[-1] / scaling if scaling else np.zeros(1)
    ridge, lasso = float(intercepts @ intercepts), float(np.abs(intercepts).sum())
    return value + 0.5 * (1.0 - ratio) * ridge + ratio * lasso, rounding


def targets(y: Any, n: int, several: bool = False) -> npt.NDArray[Any]:
    """y as a vector of n entries, or with one column per target if ``several`` are allowed."""
    found = np.asarray(y)
    if found.ndim == 2 and found.shape[1] == 1:
        found = found.ravel()
    if found.shape != (n,) and not (several and found.ndim == 2 and len(found) == n):
        raise BadInput(
            f"y must have one entry for each of the {n:,} rows, got shape {found.shape}."
        )
    return found
