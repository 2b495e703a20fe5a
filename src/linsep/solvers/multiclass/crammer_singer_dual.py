"""Feasible dual points U of the multiclass hinge from the p of a solver."""

from __future__ import annotations

import numpy as np

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.interrupts import lapack
from linsep.problem import MaxMarginProblem
from linsep.solution import Explicit


def dual_point(problem: MaxMarginProblem, P: FloatArray) -> Explicit:
    """Return U = onehot(y) - p for P (n, K); the entry of the label is minus the sum of the others."""
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


def _balance(U: FloatArray, active: BoolArray, labels: IntArray, weight: FloatArray | None) -> None:
    """Make the class sums of s U vanish by changes in the active classes, as a shift of the intercepts would.

    U is left unchanged if that would leave the simplex; the class sums then enlarge the gap of the certificate.
    """
    rows = np.flatnonzero(active.sum(axis=1) > 1)
    s = np.ones(len(U)) if weight is None else weight
    free = active[rows].astype(np.float64)
    q = free / free.sum(axis=1, keepdims=True)
    part = s[rows, None] * free
    L = np.diag(part.sum(axis=0)) - part.T @ q
    for _ in range(3 if len(rows) else 0):
        shift = lapack(np.linalg.lstsq, L, s @ U, rcond=1e-12)[0]
        changed = U[rows] - free * (shift - (q @ shift)[:, None])
        _close_rows(changed, labels[rows])
        own = changed[np.arange(len(rows)), labels[rows]]
        if (changed > 0.0).sum() > np.count_nonzero(own > 0.0) or own.max() > 1.0:
            return
        U[rows] = changed
