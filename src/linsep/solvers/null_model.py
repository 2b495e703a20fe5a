"""The null model: w = 0 with the optimal intercept. Reads only the targets, no pass over X."""

from __future__ import annotations

import numpy as np

from linsep.arrays import FloatArray
from linsep.losses import Loss, zero_margin
from linsep.problem import Problem


@np.errstate(over="ignore", invalid="ignore")  # values that are not finite end the search
def null_model(problem: Problem) -> tuple[FloatArray, float]:
    """Return (0, b) with the optimal intercept b, and the objective there."""
    data, loss = problem.data, problem.loss
    weight = np.ones(data.n) if data.weight is None else data.weight
    sign, offset = data.sign, data.offset
    if offset is None:  # with w = 0 all rows of a class have the same margin
        ours = sign > 0.0
        sign, offset = np.array([1.0, -1.0]), np.zeros(2)
        weight = np.array([weight[ours].sum(), weight[~ours].sum()])
    null = np.zeros(problem.order)
    known = None
    if problem.fit_intercept and data.offset is None and weight.all():
        known = loss.best_constant(*weight.tolist())
    if known is not None:
        null[-1] = known
    elif problem.fit_intercept:
        # fit the first row exactly, and hence a constant target
        null[-1] = float(sign[0] * (zero_margin(loss) - offset[0]))
        if weight @ loss.value(sign * null[-1] + offset) > 0.0:
            null[-1] = _best_intercept(loss, sign, offset, weight)
    return null, float(weight @ loss.value(sign * null[-1] + offset))


def _best_intercept(loss: Loss, sign: FloatArray, offset: FloatArray, weight: FloatArray) -> float:
    """Minimise sum s l(sign b + offset) over b by Newton's method, safeguarded by a bracket."""
    b, low, high = 0.0, -np.inf, np.inf
    for _ in range(100):
        m = sign * b + offset
        slope = float(weight @ (sign * loss.slope(m)))
        curve = float(weight @ loss.curvature(m))
        if slope == 0.0 or not np.isfinite(slope):
            break
        low, high = (low, b) if slope > 0 else (b, high)
        reach = 4.0 + 2.0 * abs(b)
        move = -slope / curve if curve > 0.0 else -np.copysign(reach, slope)
        to = b + float(np.clip(move, -reach, reach))
        if not low < to < high:
            if not np.isfinite(high - low):
                break  # b is optimal to float64 precision
            to = 0.5 * (low + high)
        if abs(to - b) <= 1e-10 * (1.0 + abs(b)):
            b = to
            break
        b = to
    return b if np.isfinite(b) else 0.0
