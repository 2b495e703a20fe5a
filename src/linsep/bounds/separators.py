"""Separators with the best mistake bounds of the perceptron: the minimum-norm u with all margins at least 1.

For rows z_i = y_i (x_i, 1) (without an intercept y_i x_i) this is a least distance problem (Lawson, Hanson 1974,
ch. 23): non-negative least squares on a working set, to which violated rows are added until there are none. A bound
does not rely on the optimality of u: it is computed from the smallest margin of the u found, over all rows.
"""

from __future__ import annotations

from contextlib import closing
from typing import Any

import numpy as np
import scipy.sparse as sp
from scipy.optimize import nnls

from linsep.arrays import FloatArray, IntArray, dense
from linsep.data import Memory
from linsep.errors import Refused
from linsep.hyperplane import Hyperplane
from linsep.separability import Separable, decide

_ADDED = 64  # violated rows added to the working set at a time
_ROUNDS = 200
_SLACK = 1e-9  # tolerance on margins that should be 1


def a_separator(X: Any, sign: FloatArray, fit_intercept: bool) -> Hyperplane:
    """Return a hyperplane that is proven to separate the rows."""
    with closing(Memory(X, sign)) as data:
        answer = decide(data, fit_intercept=fit_intercept)
    if not isinstance(answer, Separable):
        raise Refused(
            f"The number of updates has no proven bound: {answer}. The perceptron never stops on rows that no "
            "hyperplane separates."
        )
    return answer.hyperplane


def longest_rows_first(lengths: FloatArray) -> IntArray:
    """Initial working set: some of the rows with the largest and some with the smallest norms."""
    order = np.argsort(lengths)
    return np.unique(np.concatenate([order[:_ADDED], order[-_ADDED:]]))


def shortest(rows: Any, begin: IntArray, centre: FloatArray | None = None) -> FloatArray | None:
    """Return the minimum-norm u with rows @ u >= 1, or None if rounding prevents finding it.

    With a ``centre``, the last entry of u is an intercept, which should not add to the norm. It is expressed as the
    score of the centre and weighted by 1e-4, which does no harm if the hyperplane passes close to the centre.
    """
    cheap = np.ones(rows.shape[1])
    if centre is not None:
        cheap[-1] = 100.0
    work = begin
    for _ in range(_ROUNDS):
        part = np.asarray(dense(rows[work]))
        if centre is not None:
            part = np.column_stack([part[:, :-1] - part[:, -1:] * centre, part[:, -1]])
        near = _least_distance(part * cheap)
        if near is None:
            return None
        u = cheap * near
        if centre is not None:
            u[-1] -= centre @ u[:-1]
        margins = np.asarray(rows @ u).ravel()
        violated = np.flatnonzero(margins < 1.0 - _SLACK)
        if not len(violated):
            return u
        joined = np.union1d(work, violated[np.argsort(margins[violated])[:_ADDED]])
        if len(joined) == len(work):  # rounding: the violated rows are already in the working set
            return u if margins.min() > 0.0 else None
        work = joined
    return None


def widest(X: Any, sign: FloatArray) -> tuple[FloatArray, float] | None:
    """Return the maximum-margin hyperplane (w, b), scaled to margins >= 1, or None if rounding prevents finding it."""
    spread = float(row_lengths(X).max()) or 1.0
    centre = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() / spread
    rows = signed_rows(X / spread, sign, True)
    begin = longest_rows_first(row_lengths(X))
    for _ in range(6):  # each time centred at a point of the last hyperplane
        u = shortest(rows, begin, centre)
        if u is None:
            return None
        w = u[:-1] / spread
        z = np.asarray(X @ w).ravel()
        low, high = float(z[sign > 0].min()), float(z[sign < 0].max())  # closest row of each class
        b = -0.5 * (low + high)
        centre = centre - (spread * (centre @ w) + b) / (spread * (w @ w)) * w
    unit = 0.5 * (low - high)
    if not unit > 0.0:
        return None
    return w / unit, b / unit


def best(rows: Any) -> FloatArray | None:
    """Return the direction of the minimum-norm u, or None if rounding prevents finding it."""
    lengths = row_lengths(rows)
    return shortest(rows / float(lengths.max()), longest_rows_first(lengths))


def _least_distance(G: FloatArray) -> FloatArray | None:
    """Minimise |u| subject to G u >= 1: minimise |G'a|^2 + (1'a - 1)^2 over a >= 0; the residual gives u.

    Return None if the residual is below rounding: no such u exists, or only of very large norm.
    """
    E = np.vstack([G.T, np.ones(len(G))])
    target = np.zeros(len(E))
    target[-1] = 1.0
    a, _ = nnls(E, target, maxiter=50 * E.shape[1])
    residual = target - E @ a
    if residual[-1] <= 1e-14:
        return None
    u: FloatArray = (E[:-1] @ a) / residual[-1]
    return u


def signed_rows(X: Any, sign: FloatArray, fit_intercept: bool) -> Any:
    """Return the rows y (x, 1), or y x without an intercept."""
    if sp.issparse(X):
        parts = [X, np.ones((X.shape[0], 1))] if fit_intercept else [X]
        return (sp.diags_array(sign) @ sp.hstack(parts)).tocsr()
    rows = np.asarray(X, dtype=np.float64)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return sign[:, None] * rows


def row_lengths(rows: Any) -> FloatArray:
    """Euclidean norm of each row."""
    square = rows.multiply(rows) if sp.issparse(rows) else np.square(rows, dtype=np.float64)
    return np.sqrt(np.asarray(square.sum(axis=1), dtype=np.float64)).ravel()
