"""Decide separability with many features: perceptron, least squares, then a working set by inner products.

With many features, classes are usually separable by a wide margin, and the perceptron shows it in a few passes.
Linearly independent rows are separable, and the minimum-norm solution of A theta = 1 shows it. If least squares does
not separate, the test in ``cone`` is applied to a working set whose rows are expressed in coordinates of their own
span, from a Cholesky factor of their inner products.
"""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from linsep.arrays import FloatArray, IntArray
from linsep.data.row_access import row_blocks
from linsep.interrupts import dense_product, lapack
from linsep.separability.cone import witness_or_separator
from linsep.separability.perceptron import passes as perceptron_passes
from linsep.separability.rows import SignedRows
from linsep.separability.search import (
    CommonPoint,
    Inconclusive,
    Separator,
    first_rows,
    proven_margin,
)

_PERCEPTRON_PASSES = 100  # a sixth of the passes that least squares may take
_LSMR_STEPS = 300
_FIRST, _MORE, _MOST = 600, 300, 3000  # rows of the working set
_MEETS = 1e-6  # residual that inner products cannot distinguish from zero
_MAX_PASSES = 60


def search(signed: SignedRows, seed: int) -> Separator | CommonPoint | Inconclusive:
    """Try the perceptron, then least squares, then a growing working set."""
    learnt = perceptron(signed, seed)
    if learnt is not None:
        low = proven_margin(signed, learnt, signed.scan(learnt, 1))
        if low > 0.0:
            return Separator(learnt, low)
    theta = least_squares(signed)
    scan = signed.scan(theta, _MORE)
    low = proven_margin(signed, theta, scan)
    if low > 0.0:
        return Separator(theta, low)
    rows = np.union1d(first_rows(signed, _FIRST, seed), scan.worst)
    best = Inconclusive(float(scan.ratio.min(initial=1.0)), np.inf)
    for _ in range(_MAX_PASSES):
        A, lengths = _unit_rows(signed, rows)
        split = witness_or_separator(span_coordinates(A))
        used = split.weights > 0
        if split.residual <= _MEETS:
            return CommonPoint(rows[used], (split.weights / lengths)[used])
        theta = np.zeros(signed.data.d + 1)
        theta[: A.shape[1]] = np.asarray(A.T @ split.weights).ravel()
        scan = signed.scan(theta, _MORE)
        low = proven_margin(signed, theta, scan)
        if low > 0.0:
            return Separator(theta, low)
        best = Inconclusive(max(best.ratio, float(scan.ratio.min(initial=1.0))), split.residual)
        kept = rows[used] if len(rows) > _MOST else rows
        grown = np.union1d(kept, scan.worst)
        if len(grown) == len(rows) and (grown == rows).all():
            break
        rows = grown
    return best


def perceptron(signed: SignedRows, seed: int) -> FloatArray | None:
    """Separating theta found by a limited number of perceptron passes; None if every pass makes updates.

    Also None if the rows are not in memory or some have weight 0.
    """
    if len(signed.counted) < signed.data.n:
        return None
    passes = perceptron_passes(signed.data, signed.fit_intercept, seed)
    for updates, theta in itertools.islice(passes, _PERCEPTRON_PASSES):
        signed.passes += 1
        if updates == 0:
            return theta
    return None


def least_squares(signed: SignedRows) -> FloatArray:
    """Minimum-norm theta with A theta close to 1, by LSMR (Fong and Saunders 2011)."""
    data = signed.data
    X, sign = data.X, data.sign * (1.0 if data.weight is None else data.weight > 0)
    size = (data.n, data.d + 1)
    both = float(signed.fit_intercept)

    def forward(v: FloatArray) -> FloatArray:
        v = v.ravel()
        z = np.concatenate([block @ v[:-1] for _, block in row_blocks(X)])
        return np.asarray(sign * (z + both * v[-1]))

    def backward(u: FloatArray) -> FloatArray:
        u = sign * u.ravel()
        v = sum(np.asarray(block.T @ u[rows]) for rows, block in row_blocks(X))
        return np.append(v, both * u.sum())

    operator = scipy.sparse.linalg.LinearOperator(size, forward, backward, dtype=np.float64)
    target = np.abs(sign)
    found = scipy.sparse.linalg.lsmr(operator, target, atol=1e-10, btol=1e-10, maxiter=_LSMR_STEPS)
    signed.passes += 2 * int(found[2])
    return np.asarray(found[0])


def _unit_rows(signed: SignedRows, rows: IntArray) -> tuple[sp.csr_matrix, FloatArray]:
    """sigma (x, 1) scaled to unit length, as a sparse matrix, and the lengths before scaling."""
    X = sp.csr_matrix(signed.features(rows))
    if signed.fit_intercept:
        X = sp.hstack([X, np.ones((len(rows), 1))], format="csr")
    lengths = np.sqrt(np.asarray(X.multiply(X).sum(axis=1)).ravel())
    lengths = np.where(lengths > 0, lengths, 1.0)
    return sp.diags(signed.data.sign[rows] / lengths) @ X, lengths


def span_coordinates(X: Any) -> FloatArray:
    """Coordinates of the rows of X, dense or sparse, in an orthonormal basis of their span (pivoted Cholesky)."""
    G = (X @ X.T).toarray() if sp.issparse(X) else dense_product(X, X.T)
    L, pivots, rank, _ = lapack(scipy.linalg.lapack.dpstrf, G, lower=1)
    out = np.empty((len(G), rank))
    out[pivots - 1] = np.tril(L)[:, :rank]
    return out
