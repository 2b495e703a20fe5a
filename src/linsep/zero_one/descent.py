"""Heuristic for good hyperplanes: exact line searches on the number of errors.

Along phi + t delta the margin of every row is linear in t, so the errors change at n breakpoints, and the best t is
found by sorting them.
"""

from __future__ import annotations

from time import perf_counter

import numpy as np

from linsep.arrays import FloatArray


def errors(A: FloatArray, weight: FloatArray, phi: FloatArray) -> float:
    """Total weight of the rows with a_i.phi <= 0."""
    return float(weight[A @ phi <= 0.0].sum())


def best_step(m: FloatArray, delta: FloatArray, weight: FloatArray) -> tuple[float, float]:
    """Step t that minimises the weight of m + t delta <= 0, and that weight; of several, the one nearest to 0."""
    moving = delta != 0.0
    still = float(weight[~moving & (m <= 0.0)].sum())
    if not moving.any():
        return 0.0, still
    rate, s = delta[moving], weight[moving]
    at = -m[moving] / rate
    order = np.argsort(at)
    at, change = at[order], np.where(rate > 0.0, -s, s)[order]
    after = still + float(s[rate > 0.0].sum()) + np.concatenate([[0.0], np.cumsum(change)])
    ends = np.concatenate([[at[0] - 1.0 - abs(at[0])], at, [at[-1] + 1.0 + abs(at[-1])]])
    open_interval = np.diff(ends) > 1e-12 * (np.abs(ends[1:]) + np.abs(ends[:-1]))
    after = np.where(open_interval, after, np.inf)
    middle = 0.5 * (ends[1:] + ends[:-1])
    least = np.flatnonzero(after <= after.min() + 1e-9 * weight.max())
    pick = least[np.argmin(np.abs(middle[least]))]
    return float(middle[pick]), float(after[pick])


def descend(
    A: FloatArray,
    weight: FloatArray,
    phi: FloatArray,
    rng: np.random.Generator,
    *,
    patience: int,
    deadline: float,
) -> tuple[FloatArray, float]:
    """Search along the intercept, coordinates, rows and random directions until ``patience`` searches fail in a row."""
    p = A.shape[1]
    phi = phi / (np.linalg.norm(phi) or 1.0)
    m = A @ phi
    least = float(weight[m <= 0.0].sum())
    idle, turn = 0, 0
    while idle < patience and least > 0.0 and perf_counter() < deadline:
        delta = _direction(A, m, turn, p, rng)
        turn += 1
        step = A @ delta
        t, value = best_step(m, step, weight)
        idle += 1
        if value <= least * (1 + 1e-12):
            phi = phi + t * delta
            size = np.linalg.norm(phi)
            if size == 0.0:
                break
            phi /= size
            m = A @ phi
            # The predicted improvement may be rounding noise of larger weights.
            count = float(weight[m <= 0.0].sum())
            idle = 0 if count < least * (1 - 1e-12) else idle
            least = min(least, count)
    return phi, errors(A, weight, phi)


def _direction(
    A: FloatArray, m: FloatArray, turn: int, p: int, rng: np.random.Generator
) -> FloatArray:
    if turn <= p:  # the intercept first, then every coordinate
        return np.asarray(np.eye(p)[p - 1 - turn % p])
    wrong = np.flatnonzero(m <= 0.0)
    if turn % 3 == 0 and len(wrong):
        return np.asarray(A[rng.choice(wrong)])
    direction: FloatArray = rng.standard_normal(p)
    if turn % 3 == 1:  # restrict the direction to about half of the coordinates
        direction[rng.random(p) < 0.5] = 0.0
    return direction
