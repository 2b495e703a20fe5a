"""How many updates can the perceptron make? The bounds of the convergence theorems, for given rows.

For rows z_i = y_i (x_i, 1) (without an intercept y_i x_i), R = max |z|, and any u with u.z_i >= 1 for all i,

    t <= <u, w_t> <= |u| |w_t| <= |u| R sqrt(t),   so   t <= (R |u|)^2,

because each update adds at least 1 to <u, w> and at most R^2 to |w|^2. The shortest u, of length B, gives the
best bound; rho = 1/B is the margin of the hyperplane it spans. Rows divided by their lengths (the normalised
update) have R = 1 and gamma = 1/B.

The shortest u is found as a least distance problem (Lawson, Hanson 1974, ch. 23): non-negative least squares on the
rows that matter, to which violated rows are added until there are none. A bound needs no
faith in that: it is computed from the least margin of the u found, over all rows.
"""

from __future__ import annotations

import math
from contextlib import closing
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.sparse as sp
from scipy.optimize import nnls

from linsep.data import Memory
from linsep.errors import Refused
from linsep.geometry import Hyperplane
from linsep.separability import Separable, decide

FloatArray = npt.NDArray[np.float64]
_ADDED = 64  # violated rows that join at a time
_ROUNDS = 200
_SLACK = 1e-9  # of a margin that should be 1


@dataclass(frozen=True)
class MistakeBounds:
    """Upper bounds on the updates of the perceptron on separable rows, from any start order.

    Attributes
    ----------
    normalised : float
        1/gamma^2, gamma the largest margin of the rows divided by their lengths: for normalised updates.
    radius_norm : float
        (R B)^2, B the least length of a u with margins >= 1: for raw updates.
    radius_margin : float
        (R/rho)^2 with the margin rho = 1/B: the same number, seen from the margin.
    novikoff : float
        (R^2 + 1)(1 + b^2)/gamma^2 for the hyperplane (w, b), |w| = 1, of the largest margin gamma of rows x of
        radius R; inf without an intercept.
    printed : float
        (2 R/gamma)^2, as often printed for the same hyperplane. It is *not* a bound when
        the intercept is learned from a constant 1.
    """

    normalised: float
    radius_norm: float
    radius_margin: float
    novikoff: float
    printed: float

    def __str__(self) -> str:
        return (
            f"at most {self.normalised:.6g} normalised or {self.radius_norm:.6g} raw updates; "
            f"with the hyperplane of the largest margin {self.novikoff:.6g} raw updates"
        )


def mistake_bounds(X: Any, sign: FloatArray, fit_intercept: bool) -> MistakeBounds:
    """The bounds for rows with labels -1 and +1; refused, with the proof, if nothing separates them.

    Where rounding keeps the best separator from being found, the one that proves separability stands in: the
    bounds hold for any.
    """
    sign = np.asarray(sign, dtype=np.float64)
    plane = _separator(X, sign, fit_intercept)
    rows = _signed(X, sign, fit_intercept)
    u = np.append(plane.w, plane.b) if fit_intercept else np.asarray(plane.w)
    lengths = _lengths(rows)
    R, begin = float(lengths.max()), longest_rows_first(lengths)
    B = _inverse_margin(rows, begin, u)
    scaled = sp.diags_array(1.0 / lengths) @ rows if sp.issparse(rows) else rows / lengths[:, None]
    gamma = 1.0 / _inverse_margin(scaled, begin, u)
    novikoff, printed = math.inf, (2.0 * R * B) ** 2
    if fit_intercept:
        w, b = widest(X, sign) or (np.asarray(plane.w), float(plane.b))
        size, radius = float(np.linalg.norm(w)), float(_lengths(X).max())
        margin = _least(rows, np.append(w, b)) / size
        novikoff = (radius**2 + 1.0) * (1.0 + (b / size) ** 2) / margin**2
        printed = (2.0 * radius / margin) ** 2
    return MistakeBounds(1.0 / gamma**2, (R * B) ** 2, (R / (1.0 / B)) ** 2, novikoff, printed)


def _separator(X: Any, sign: FloatArray, fit_intercept: bool) -> Hyperplane:
    """A hyperplane that is proven to separate the rows."""
    with closing(Memory(X, sign)) as data:
        answer = decide(data, fit_intercept=fit_intercept)
    if not isinstance(answer, Separable):
        raise Refused(
            f"The number of updates has no bound that is proven: {answer}. On rows that no hyperplane separates "
            "the perceptron would never end by itself."
        )
    return answer.hyperplane


def _least(rows: Any, u: FloatArray) -> float:
    """The least margin of the rows."""
    found = float(np.asarray(rows @ u).min())
    if not found > 0.0:
        raise Refused(
            f"The classes are separable, but float64 cannot tell by how much: the least margin comes out as {found}. "
            "Scale the columns of X."
        )
    return found


def longest_rows_first(lengths: FloatArray) -> npt.NDArray[np.int64]:
    """Rows to begin with: some of the longest and some of the shortest."""
    order = np.argsort(lengths)
    return np.unique(np.concatenate([order[:_ADDED], order[-_ADDED:]]))


def shortest(
    rows: Any, begin: npt.NDArray[np.int64], centre: FloatArray | None = None
) -> FloatArray | None:
    """The u with rows @ u >= 1 of least length; None if rounding does not let it be found.

    With a ``centre`` the last entry of u is an intercept that should not count: it counts 1e-4 times, as
    the score of the centre, so that it does no harm if the hyperplane passes close by.
    """
    cheap = np.ones(rows.shape[1])
    if centre is not None:
        cheap[-1] = 100.0
    work = begin
    for _ in range(_ROUNDS):
        part = np.asarray(rows[work].toarray() if sp.issparse(rows) else rows[work])
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
    spread = float(_lengths(X).max()) or 1.0
    centre = np.asarray(X.mean(axis=0), dtype=np.float64).ravel() / spread
    rows = _signed(X / spread, sign, True)
    begin = longest_rows_first(_lengths(X))
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


def _inverse_margin(rows: Any, begin: npt.NDArray[np.int64], known: FloatArray) -> float:
    """The least |u| / (least margin of u) that is found: an upper bound on B, whatever u is."""
    unit = float(_lengths(rows).max())
    found = shortest(rows / unit, begin)
    u = known if found is None else found
    return float(np.linalg.norm(u)) / _least(rows, u)


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


def _signed(X: Any, sign: FloatArray, fit_intercept: bool) -> Any:
    if sp.issparse(X):
        parts = [X, np.ones((X.shape[0], 1))] if fit_intercept else [X]
        return (sp.diags_array(sign) @ sp.hstack(parts)).tocsr()
    rows = np.asarray(X, dtype=np.float64)
    if fit_intercept:
        rows = np.column_stack([rows, np.ones(len(rows))])
    return sign[:, None] * rows


def _lengths(rows: Any) -> FloatArray:
    square = rows.multiply(rows) if sp.issparse(rows) else np.square(rows, dtype=np.float64)
    return np.sqrt(np.asarray(square.sum(axis=1), dtype=np.float64)).ravel()
