"""The separators that give the perceptron its best bounds: the shortest u with all margins at least 1.

For rows z_i = y_i (x_i, 1) (without an intercept y_i x_i) it is found as a least distance problem (Lawson, Hanson 1974,
ch. 23): non-negative least squares on the rows that matter, to which violated rows are added until there are none. A
bound needs no faith in that: it is computed from the least margin of the u found, over all rows.
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

_ADDED = 64  # violated rows that join at a time
_ROUNDS = 200
_SLACK = 1e-9  # of a margin that should be 1


def a_separator(X: Any, sign: FloatArray, fit_intercept: bool) -> Hyperplane:
    """A hyperplane that is proven to separate the rows."""
    with closing(Memory(X, sign)) as data:
        answer = decide(data, fit_intercept=fit_intercept)
    if not isinstance(answer, Separable):
        raise Refused(
            f"The number of updates has no bound that is proven: {answer}. On rows that no hyperplane separates "
            "the perceptron would never end by itself."
        )
    return answer.hyperplane


def longest_rows_first(lengths: FloatArray) -> IntArray:
    """Rows to begin with: some of the longest and some of the shortest."""
    order = np.argsort(lengths)
    return np.unique(np.concatenate([order[:_ADDED], order[-_ADDED:]]))


def shortest(rows: Any, begin: IntArray, centre: FloatArray | None = None) -> FloatArray | None:
    """The u with rows @ u >= 1 of least length; None if rounding does not let it be found.

    With a ``centre`` the last entry of u is an intercept that should not count: it counts 1e-4 times, as
    the score of the centre, so that it does no harm if the hyperplane passes close by.
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
        if len(joined) == len(work):  # rounding: what is violated was already asked for
            return u if margins.min() > 0.0 else None
        work = joined
    return None


def widest(X: Any, sign: FloatArray) -> tuple[FloatArray, float] | None:
    """The hyperplane (w, b) of the largest margin, margins at least 1; None as in ``shortest``."""
    spread = float(row_lengths(X).max()) or 1.0
    centre = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() / spread
    rows = signed_rows(X / spread, sign, True)
    begin = longest_rows_first(row_lengths(X))
    for _ in range(6):  # each time about a point of the last hyperplane
        u = shortest(rows, begin, centre)
        if u is None:
            return None
        w = u[:-1] / spread
        z = np.asarray(X @ w).ravel()
        low, high = float(z[sign > 0].min()), float(z[sign < 0].max())  # the nearest of each class
        b = -0.5 * (low + high)
        centre = centre - (spread * (centre @ w) + b) / (spread * (w @ w)) * w
    unit = 0.5 * (low - high)
    if not unit > 0.0:
        return None
    return w / unit, b / unit


def best(rows: Any) -> FloatArray | None:
    """The shortest u that is found, up to its length; None if rounding hides it."""
    lengths = row_lengths(rows)
    return shortest(rows / float(lengths.max()), longest_rows_first(lengths))


def _least_distance(G: FloatArray) -> FloatArray | None:
    """Least |u| with G u >= 1: minimise |G'a|^2 + (1'a - 1)^2 over a >= 0; u is read off the residual.

    None if the residual is lost in rounding: there is no such u, or only very long ones.
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
    """y (x, 1), or y x without an intercept."""
    if sp.issparse(X):
        parts = [X, np.ones((X.shape[0], 1))] if fit_intercept else [X]
        return (sp.diags_array(sign) @ sp.hstack(parts)).tocsr()
    rows = np.asarray(X, dtype=np.float64)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return sign[:, None] * rows


def row_lengths(rows: Any) -> FloatArray:
    """Euclidean length of each row."""
    square = rows.multiply(rows) if sp.issparse(rows) else np.square(rows, dtype=np.float64)
    return np.sqrt(np.asarray(square.sum(axis=1), dtype=np.float64)).ravel()
