"""Decide separability with many features: perceptron, least squares, then a working set by inner products.

With many features, classes are usually separable by a wide margin, and the perceptron (Rosenblatt 1958) shows it in a
few passes. Linearly independent rows are separable, and the minimum-norm solution of A theta = 1 shows it. If least
squares does not separate, ``witness_or_separator`` is applied to a working set whose rows are expressed in coordinates
of their own span, from a Cholesky factor of their inner products.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp
import scipy.sparse.linalg

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray
from linsep.data import Dataset
from linsep.data.row_access import row_blocks
from linsep.interrupts import dense_product, lapack
from linsep.separability.rows import SignedRows
from linsep.separability.search import (
    CommonPoint,
    Inconclusive,
    Separator,
    first_rows,
    proven_margin,
    witness_or_separator,
)

_ENTRIES_PER_CALL = 4_000_000  # about 10 ms, so that Ctrl-C is handled between calls


def perceptron_passes(
    data: Dataset, fit_intercept: bool, seed: int
) -> Iterator[tuple[int, FloatArray]]:
    """Yield the number of updates of each pass, and theta after it.

    A row on the wrong side, or on the hyperplane, adds its signed unit vector to theta. Each pass visits all rows in a
    new random order; a pass without an update means that a separating hyperplane was found.
    Yields nothing if the rows are not in one block of memory, or if a row is zero or too large to square.
    """
    block = data.whole
    if block is None:
        return
    theta, lengths, order = np.zeros(data.d + 1), np.zeros(data.n), np.arange(data.n)
    _kernels.row_norms(block.rows, 0, data.n, lengths)
    lengths += float(fit_intercept)
    if not (np.isfinite(lengths).all() and lengths.all()):
        return
    counts = np.array([0, 0, 0, 0, -1])  # place, visits since the last update, updates, visits
    at_once = max(1, _ENTRIES_PER_CALL * data.n // max(1, data.n_entries))
    while True:
        _kernels.shuffle(order, seed)
        before, counts[:2], end = int(counts[2]), 0, int(counts[3]) + data.n
        while counts[3] < end:
            _kernels.perceptron(
                block.rows,
                data.sign,
                lengths,
                select="listed",
                normalised=True,
                intercept=fit_intercept,
                online=False,
                max_updates=2**62,
                budget=min(at_once, end - int(counts[3])),
                order=order,
                theta=theta,
                counts=counts,
                numbers=np.zeros(2),
                updated=np.zeros(0, np.int64),
                norms=np.zeros(0),
                sum=None,
            )
        yield int(counts[2]) - before, theta
        seed += 1


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
