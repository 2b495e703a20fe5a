"""The closing pass of coupled losses in about twice the working precision, for certificates lost in rounding.

Scores and V = sum s x U' come from ``exact.sliced``, so that cancellation between large numbers (identifiers,
timestamps, huge C) costs no accuracy. The dual point is defined by its entries off the label; the entry of the label is
minus their sum, as a pair of numbers. What remains are the errors of evaluating losses and entropies, of differences of
scores, and |z - z^|, where the score z is rounded to a float64 number z^ to evaluate the loss.
"""

from __future__ import annotations

import math
from functools import reduce
from typing import Any, NamedTuple

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.certificates.optimality import Optimality
from linsep.certificates.parts import (
    Dual,
    Part,
    add_up,
    chunks,
    partition_sums,
    row_norms,
    vector_or_default,
)
from linsep.certificates.precise import fsum
from linsep.certificates.softmax import (
    SHORT,
    Errors,
    dual_point,
    from_softmax_sums,
    sensitivity,
)
from linsep.exact.sliced import Pair, scaled_product, transpose, two_product, two_sum
from linsep.losses import CoupledLoss
from linsep.problem.closing_rows import ROUNDOFF, TINY
from linsep.problem.duality import CoupledSums

#: Relative error of the weighted entries of U: sums and products of pairs (hi, lo) of at most 2^12 numbers.
_PAIR_SHARE = 2.0**-80


def precise_coupled_certificate(part: Part) -> Optimality:
    """Dual certificate of a coupled loss, from sums in about twice the working precision."""
    assert isinstance(part.loss, CoupledLoss)
    sums, errors = _precise_sums(part)
    return from_softmax_sums(
        *(sums, part.W[:-1], part.loss, part.penalty),
        fit_intercept=part.fit_intercept,
        tol=part.tol,
        errors=errors,
    )


class _Terms(NamedTuple):
    """Sums over some rows, which can be added to those of other rows."""

    scalars: list[tuple[float, ...]]
    V: Pair
    M: Pair
    mass: list[FloatArray]
    residual: list[FloatArray]

    def plus(self, other: _Terms) -> _Terms:
        """Return the sums over the rows of both."""
        return _Terms(
            self.scalars + other.scalars,
            self.V.plus(other.V),
            self.M.plus(other.M),
            self.mass + other.mass,
            self.residual + other.residual,
        )


def _terms(
    loss: CoupledLoss, X: Any, labels: Any, weight: FloatArray | None, W: FloatArray, dual: Dual
) -> _Terms:
    """Sums over all rows of X."""
    W, d, k = np.asarray(W, dtype=np.float64), X.shape[1], loss.k
    scalars: list[tuple[float, ...]] = []
    V, M = Pair.of(np.zeros((d, k))), Pair.of(np.zeros((d, k)))
    mass_terms: list[FloatArray] = []
    residual_terms: list[FloatArray] = []
    for rows, block in chunks(X):
        s, y = vector_or_default(weight, rows, 1.0), np.asarray(labels[rows])
        with np.errstate(over="ignore", invalid="ignore"):
            Z = scaled_product(block, W[:-1]).plus(Pair.of(np.tile(W[-1], (len(y), 1))))
            U, low = _inside_simplex(dual_point(loss, dual, rows, block, y, Z.hi), y)
            value, entropy = s * loss.value(Z.hi, y), -s * loss.conjugate(-U, y)
            # Differences of scores are rounded, too, and those of Crammer-Singer may cancel with the margin 1.
            e = np.abs(Z.lo) + Z.error + 4.0 * ROUNDOFF * (1.0 + np.abs(Z.hi)) + TINY
            steep = loss.steepest(Z.hi, y, e.max(axis=1, keepdims=True))
            lengths = row_norms(block) + math.sqrt(d) * SHORT
            own = np.zeros_like(U)
            own[np.arange(len(y)), y] = s
            columns = transpose(block)
            M = M.plus(scaled_product(columns, own))
            for weighted in _weighted(U, low, y, s):
                V = V.plus(scaled_product(columns, weighted))
                residual_terms += _column_sums(weighted)
            mass_terms += _column_sums(own)
            scalars.append(
                (
                    *(fsum(value), fsum(entropy)),
                    float((s[:, None] * steep * e).sum()) + k * TINY * float(s.sum()),
                    float((value + np.abs(entropy) + s * sensitivity(loss, U, y)).sum()),
                    float((s * np.sqrt((U * U).sum(axis=1))) @ lengths),
                    float(s @ lengths),
                )
            )
    return _Terms(scalars, V, M, mass_terms, residual_terms)


def _precise_sums(part: Part) -> tuple[CoupledSums, Errors]:
    """Sums of the closing pass, rounded to float64, and bounds on their errors."""
    W = np.asarray(part.W, dtype=np.float64)
    found = reduce(_Terms.plus, partition_sums(part, _terms))
    scalars, V, M, mass_terms, residual_terms = found
    total, entropies, lost, absolute, spread, bulk = add_up(scalars)
    mass, residual = (_column_sums(np.array(terms))[0] for terms in (mass_terms, residual_terms))
    v_error = V.error + np.abs(V.lo) + 4.0 * ROUNDOFF * np.abs(V.hi)
    length = float(np.linalg.norm(v_error)) + _PAIR_SHARE * spread
    along = float(np.vdot(np.abs(W[:-1]), v_error))
    along += _PAIR_SHARE * spread * float(np.linalg.norm(W[:-1]))
    share = float(np.max(np.abs(residual) / np.where(mass > 0.0, mass, 1.0)))
    errors = Errors(lost, along, length, _PAIR_SHARE, 2.0 * ROUNDOFF * share)
    head = total, entropies, 0.0, absolute
    return CoupledSums(*head, mass, residual, V.hi, M.hi, spread, bulk), errors


def _inside_simplex(U: FloatArray, labels: IntArray) -> tuple[FloatArray, FloatArray]:
    """Take what the probabilities off the label exceed 1 by, in sum, from the largest of them.

    Rounded probabilities may sum to 1 + 2^-52. Such a point is not feasible: along huge columns, the excess matters.
    Returns the point as an unevaluated sum of two matrices.
    """
    index = np.arange(len(labels))
    U, low = U.copy(), np.zeros_like(U)
    U[index, labels] = 0.0
    total, rest = _row_sums(-U)
    excess = np.maximum((total - 1.0) + rest, 0.0)
    over = np.flatnonzero(excess)
    largest = U[over].argmin(axis=1)
    U[over, largest], low[over, largest] = two_sum(U[over, largest], excess[over])
    U[index, labels] = -U.sum(axis=1)
    return U, low


def _row_sums(P: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Row sums as unevaluated sums of two numbers."""
    total, rest = np.zeros(len(P)), np.zeros(len(P))
    for column in P.T:
        total, lost = two_sum(total, column)
        rest = rest + lost
    return total, rest


def _weighted(U: FloatArray, low: FloatArray, labels: IntArray, s: FloatArray) -> list[FloatArray]:
    """s (U + low) as a sum of two matrices; the entry of the label is minus the sum of the others."""
    index = np.arange(len(labels))
    high, low = U.copy(), low.copy()
    high[index, labels] = 0.0
    total, rest = _row_sums(high)
    high[index, labels], low[index, labels] = -total, -(rest + low.sum(axis=1))
    weight = np.broadcast_to(s[:, None], U.shape)
    product, error = two_product(weight, high)
    return [product, error + weight * low]


def _column_sums(A: FloatArray) -> list[FloatArray]:
    """Correctly rounded column sums and their rounding errors."""
    high = np.array([fsum(column) for column in A.T])
    return [high, np.array([fsum([*column, -top]) for column, top in zip(A.T, high, strict=True)])]
