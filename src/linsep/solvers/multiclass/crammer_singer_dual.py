"""Dual points of the multiclass hinge: from the p of a solver to U, and from closing sums to a gap."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from linsep.solution import Explicit

if TYPE_CHECKING:
    from linsep.problem import MaxMarginProblem
    from linsep.solution import FloatArray

IntArray = npt.NDArray[np.int64]


def gap_of(problem: MaxMarginProblem, W: FloatArray, sums: FloatArray) -> tuple[float, float]:
    """Primal and dual value from the sums of a closing pass, without the rounding allowance.

    All p are mixed with one distribution r so that the class sums of U vanish, as certificates.softmax derives.
    """
    d, k = problem.data.d, problem.k
    primal, gain = float(sums[0]) + problem.penalty_value(W), float(sums[1])
    n, e, v, M, _ = np.split(sums[4:], np.cumsum([k, k, d * k, d * k]))
    v, M = v.reshape(d, k), M.reshape(d, k)
    short = e < 0.0
    t = min(1.0, float((-e[short] / (n - e)[short]).max(initial=0.0)))
    r = np.maximum(t * n + (1.0 - t) * e, 0.0)
    if problem.fit_intercept and t > 0.0 and r.sum() > 0.0:
        r /= r.sum()
        gain = (1.0 - t) * gain + t * float(n @ (1.0 - r))
        v = (1.0 - t) * v + t * (M - np.outer(M.sum(axis=1), r))
    return primal, gain - 0.5 * float(np.vdot(v, v)) / problem.lam


def dual_point(problem: MaxMarginProblem, P: FloatArray) -> Explicit:
    """U = onehot(y) - p for P (n, K), its entries off the label as they are and the label's minus their sum."""
    labels, weight = problem.data.labels, problem.data.weight
    assert labels is not None
    P = P[:, : problem.k]
    U = -P
    _close_rows(U, labels)
    if problem.fit_intercept:
        _balance(U, P > 0.0, labels, weight)
    return Explicit(U)


def _close_rows(U: FloatArray, labels: IntArray) -> None:
    rows = np.arange(len(U))
    U[rows, labels] = 0.0
    U[rows, labels] = -U.sum(axis=1)


def _balance(
    U: FloatArray, active: npt.NDArray[np.bool_], labels: IntArray, weight: FloatArray | None
) -> None:
    """Make the class sums of s U vanish along the active classes, as a shift of the intercepts would.

    Left alone if that leaves the simplex; the certificate then pays for the class sums.
    """
    rows = np.flatnonzero(active.sum(axis=1) > 1)
    s = np.ones(len(U)) if weight is None else weight
    free = active[rows].astype(np.float64)
    q = free / free.sum(axis=1, keepdims=True)
    part = s[rows, None] * free
    L = np.diag(part.sum(axis=0)) - part.T @ q
    for _ in range(3 if len(rows) else 0):
        shift = np.linalg.lstsq(L, s @ U, rcond=1e-12)[0]
        changed = U[rows] - free * (shift - (q @ shift)[:, None])
        _close_rows(changed, labels[rows])
        own = changed[np.arange(len(rows)), labels[rows]]
        if (changed > 0.0).sum() > np.count_nonzero(own > 0.0) or own.max() > 1.0:
            return
        U[rows] = changed
