"""Reduce a ridge penalty with factors p_j to a plain ridge by scaling the columns.

Problem: min sum_j l2 p_j/2 w_j^2 + sum s l(m). With x'_j = f_j x_j and w_j = f_j w'_j, f_j = 1/sqrt(p_j), the scores
are unchanged and the penalty is l2/2 |w'|^2, which every solver supports. A feature without a penalty gets a tiny one:
f_j is so large that l2/2 w'_j^2 is a small fraction of tol times the objective; otherwise f_j is increased and the
problem solved again. Rounding of x' is harmless: the certificate is computed for the user's columns.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep.arrays import FloatArray
from linsep.data import Memory
from linsep.penalties import ElasticNet
from linsep.problem import Problem
from linsep.problem.grouped import GroupProblem
from linsep.solution import Explicit, Linearised, Solution, Status, Stop

Solve = Callable[[Problem, FloatArray, Stop], Solution]

SMALL = 0.02  # largest penalty on unpenalised features, as a fraction of tol times the objective
ROUNDS = 5  # largest number of solves with increasing f
STRONGER = 2.0**8  # factor by which f increases
TYPICAL = 10.0  # assumed contribution of an unpenalised feature to a score


def solve(group: GroupProblem, theta: FloatArray, stop: Stop, run: Solve) -> Solution:
    """Solve with scaled columns by ``run``, and map the point and its dual point back."""
    free = group.penalty.factor == 0.0
    factors = _scales(group, free, stop.tol)
    inner = replace(stop, tol=stop.tol / 2) if free.any() else stop
    began = time.perf_counter()
    for _ in range(ROUNDS):
        problem = _scale_columns(group, factors)
        found = run(
            problem,
            np.append(theta[:-1] / factors, theta[-1]),
            inner.after(time.perf_counter() - began),
        )
        problem.data.close()
        group.losses.passes += problem.passes
        w = np.ascontiguousarray(found.W[:-1, 0])
        extra = 0.5 * problem.lam * float(w[free] @ w[free])
        value = found.trace[-1].primal / problem.penalty.scale if found.trace else math.inf
        solution = replace(
            found, W=_times(found.W, factors), dual=_back(found.dual, factors), sums=None
        )
        late = found.status is Status.TIME_LIMIT
        if late or not free.any() or extra <= SMALL * stop.tol * abs(value):
            break
        factors = np.where(free, STRONGER * factors, factors)
        theta = np.ascontiguousarray(solution.W[:, 0])
    return solution


def _scales(group: GroupProblem, free: Any, tol: float) -> FloatArray:
    """Return the scales f_j of all features."""
    penalty, data = group.penalty, group.data
    f = np.ones(data.d)
    f[~free] = 1.0 / np.sqrt(penalty.factor[~free])
    if free.any():
        columns = data.X[:, np.flatnonzero(free)]
        squares = (
            columns.multiply(columns)
            if sp.issparse(columns)
            else np.square(columns, dtype=np.float64)
        )
        size = np.sqrt(np.asarray(squares.mean(axis=0), dtype=np.float64).ravel())
        value = max(group.losses.null_value(), 1e-300)
        ridge = (1.0 - penalty.l1_ratio) / penalty.C
        reach = TYPICAL * math.sqrt(ridge / (2.0 * SMALL * tol * 0.1 * value))
        most = np.where(size > 0.0, reach / np.where(size > 0.0, size, 1.0), 1.0)
        f[free] = np.exp2(np.ceil(np.log2(np.clip(most, 1e-100, 1e100))))
    return f


def _scale_columns(group: GroupProblem, factors: FloatArray) -> Problem:
    """Return the plain ridge problem on a copy of the rows with scaled columns."""
    data = group.data
    if sp.issparse(data.X):
        X = sp.csr_matrix(data.X, dtype=np.float64, copy=True)
        X.data *= factors[X.indices]
    else:
        X = np.multiply(data.X, factors, dtype=np.float64, order="C")
    rows = Memory(X, data.sign, data.offset, data.weight, n_threads=getattr(data, "n_threads", 1))
    return Problem(group.loss, ElasticNet(group.penalty.C), rows, group.fit_intercept)


def _times(W: FloatArray, factors: FloatArray) -> FloatArray:
    return np.vstack([W[:-1] * factors[:, None], W[-1:]])


def _back(dual: Linearised | Explicit, factors: FloatArray) -> Linearised | Explicit:
    """Return the dual point for the user's columns, with the same dual variables."""
    if isinstance(dual, Linearised):
        return Linearised(_times(dual.base, factors), _times(dual.step, factors))
    return dual
