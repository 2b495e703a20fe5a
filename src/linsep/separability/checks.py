"""Check a claimed separator, witness or direction against the data, in numpy and integers without any kernel."""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from linsep.arrays import BoolArray, FloatArray, IntArray, dense
from linsep.data.row_access import plain_rows, plain_signs, y_of
from linsep.errors import BadInput
from linsep.exact.dyadic import DyadicRows
from linsep.exact.rational import common_denominator, null_vector
from linsep.hyperplane import Hyperplane
from linsep.separability.rows import ROUNDOFF, TINIEST, exact_margins
from linsep.separability.witness import balances, round_to, underflows

_CHUNK = 1 << 18  # entries of X processed at a time
_TOUCH = 1e-8  # relative margin that counts as zero in a floating-point check


def separates(
    X: Any,
    y: Any,
    classes: npt.NDArray[Any] | None,
    plane: Hyperplane,
    margin: float,
    *,
    exact: bool,
) -> bool:
    """Return whether every row lies strictly on its side, and none closer than ``margin``."""
    theta = plane.homogeneous()
    claim = max(margin, 0.0) * plane.norm
    slack = 1e-12 * claim
    for rows, sign in _chunks(X, y, classes, len(plane.w)):
        m, margin_error = _margins(rows, sign, theta)
        if (m < -margin_error).any():
            return False
        near = ~(m - margin_error > (claim * (1 + 1e-9) if exact else 0.0))
        close = exact_margins(_dense(rows[near]), sign[near], theta)
        if any(value <= 0 for value in close):
            return False
        if exact:
            # m >= margin |w|, squared to avoid the root
            limit = Fraction(margin) ** 2 * sum(Fraction(x) ** 2 for x in plane.w.tolist())
            if any(value * value < limit for value in close):
                return False
        elif (m + margin_error < claim - slack).any():
            return False
    return True


def meets(
    X: Any,
    y: Any,
    classes: npt.NDArray[Any] | None,
    rows: IntArray,
    weights: FloatArray,
    *,
    point: FloatArray | None,
    exact: bool,
) -> bool:
    """Return whether the weighted rows of the two classes balance, in ``point``."""
    y = y_of(X, y)
    X = plain_rows(X)
    sign = plain_signs(y, X.shape[0], classes)
    d, m = X.shape[1], len(rows)
    limit = d + (2 if point is not None else 1)
    sane = m == len(weights) and 0 < m <= limit and len(np.unique(rows)) == m
    if not sane or rows.min() < 0 or rows.max() >= X.shape[0]:
        return False
    total = float(np.sum(weights))
    if not (np.isfinite(weights).all() and (weights >= 0).all() and abs(total - 1) <= 1e-12):
        return False
    chosen = _dense(X[rows])
    A = sign[rows][:, None] * chosen
    if point is not None:
        A = np.column_stack([A, sign[rows]])
    A = A[:, A.any(axis=0)]
    if point is not None:
        ours = sign[rows] > 0
        there = 2 * (weights[ours] @ chosen[ours])
        tolerance = 4e-12 * (weights @ np.abs(chosen)) + m * TINIEST
        if point.shape != (d,) or not (np.abs(there - point) <= tolerance).all():
            return False
    if underflows(A, weights):
        return round_to(A, weights)
    return balances(A, weights) and (not exact or round_to(A, weights))


def touches(
    X: Any,
    y: Any,
    classes: npt.NDArray[Any] | None,
    direction: tuple[FloatArray, float],
    on: IntArray,
    *,
    affine: bool,
    exact: bool,
) -> bool:
    """Return whether no row is on the wrong side of the direction and exactly the rows ``on`` have score zero."""
    w, b = direction
    theta = np.append(w, b)
    y = y_of(X, y)
    X = plain_rows(X)
    sign = plain_signs(y, X.shape[0], classes)
    zero = np.zeros(X.shape[0], dtype=bool)
    zero[on] = True
    if zero.all() or (not affine and b != 0.0):
        return False
    start = 0
    for rows, sigma in _chunks(X, y, classes, len(w)):
        m, margin_error = _margins(rows, sigma, theta)
        reach = margin_error / ((len(w) + 8) * ROUNDOFF)
        here = zero[start : start + len(m)]
        start += len(m)
        if (np.abs(m[here]) > _TOUCH * reach[here]).any() or not (
            m[~here] > margin_error[~here]
        ).all():
            return False
    return not exact or _touches_exactly(X, sign, theta, zero, affine)


def _touches_exactly(
    X: Any, sign: FloatArray, theta: FloatArray, zero: BoolArray, affine: bool
) -> bool:
    """Return whether a rational direction near theta is zero on the rows ``zero`` and positive on all others."""
    A = _dense(X[np.flatnonzero(zero)])
    A = np.column_stack([A, np.ones(len(A))]) if affine else A
    near = null_vector(A, theta if affine else theta[:-1])
    if near is None:
        return False
    others = np.flatnonzero(~zero)
    whole, _ = common_denominator(near if affine else [*near, Fraction(0)])
    for part in np.array_split(others, max(1, len(others) * len(theta) // _CHUNK)):
        rows = DyadicRows.of(np.column_stack([_dense(X[part]), np.ones(len(part))]))
        low = min(rows.exps)
        shifted = whole * np.array([1 << (exp - low) for exp in rows.exps], dtype=object)
        scores = rows.num @ shifted
        sides = zip((sign[part] > 0).tolist(), scores.tolist(), strict=True)
        if not all(z > 0 if ours else z < 0 for ours, z in sides):
            return False
    return True


def _chunks(
    X: Any, y: Any, classes: npt.NDArray[Any] | None, d: int
) -> Iterator[tuple[Any, FloatArray]]:
    y = y_of(X, y)
    rows = plain_rows(X)
    sign = plain_signs(y, rows.shape[0], classes)
    if rows.shape[1] != d:
        raise BadInput(f"X has {rows.shape[1]} columns, the answer is about {d}.")
    height = max(1, _CHUNK // max(1, d))
    for start in range(0, rows.shape[0], height):
        yield rows[start : start + height].astype(np.float64), sign[start : start + height]


def _margins(rows: Any, sign: FloatArray, theta: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Margins and bounds on their rounding errors."""
    w, b = theta[:-1], float(theta[-1])
    with np.errstate(over="ignore", invalid="ignore"):  # margin_error covers overflow
        m = sign * np.asarray(rows @ w + b)
        reach = np.asarray(abs(rows) @ np.abs(w) + abs(b))
    m = np.where(np.isfinite(reach), m, 0.0)
    return m, (len(w) + 8) * ROUNDOFF * reach + 1e-300


def _dense(X: Any) -> FloatArray:
    return np.asarray(dense(X), dtype=np.float64)
