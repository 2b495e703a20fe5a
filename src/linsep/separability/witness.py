"""Prove inseparability: from rows whose hulls seem to meet to weights that prove it.

A witness is a set of rows and weights alpha > 0 that sum to 1 with sum alpha_i a_i = 0. There are two proofs that such
weights exist near the rounded ones:

* For d + 2 rows of full rank, the square system (a_i, 1)' alpha = (0, 1) has a solution within a distance that an
  approximate inverse bounds, rounding included (Rump 1999). The proof succeeds if that is less than every weight.
* Otherwise the dependence of the rows relies on exact relations between their entries, which floats cannot verify: the
  system is solved in rational arithmetic.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

import numpy as np

from linsep.arrays import FloatArray, IntArray
from linsep.exact.rational import null_vector
from linsep.interrupts import lapack
from linsep.separability.rows import ROUNDOFF, SMALL, SignedRows

_NOISE = 1e-13  # fraction of the largest weight that may be rounding noise
_SAME = Fraction(1, 10**6)  # relative difference up to which weights count as equal up to rounding
_TINIEST = Fraction(1, 2**1074)
_ROUNDS = 4
_UNDERFLOW = 1e-280  # far above the possible sum of products that underflow
_EXACT_ROWS = 64  # rational elimination takes about a second at this size
_EXACT_WHOLE = 200  # the same, if all entries are small integers
_SMALL_INTEGER = 1 << 12


@dataclass(frozen=True, eq=False)
class Witness:
    """Rows in increasing order, their weights, and the largest entry of |sum alpha a| relative to sum alpha |a|."""

    rows: IntArray
    weights: FloatArray
    residual: float
    proven: bool


def make_witness(signed: SignedRows, rows: IntArray, guess: FloatArray) -> Witness | None:
    """Return the witness near the guessed weights; None if exact arithmetic finds none."""
    order = np.argsort(rows)
    rows, guess = rows[order], np.asarray(guess[order], dtype=np.float64)
    A, weights = _settle(signed.signed_matrix(rows), guess)
    kept = weights > 0
    rows, A, weights = rows[kept], A[kept], weights[kept]
    weights = weights / weights.sum()
    if proves_positive(A, weights):
        return Witness(rows, weights, residual(A, weights), True)
    if not _affordable(A):
        small = residual(A, weights) <= 8 * len(rows) * ROUNDOFF
        return Witness(rows, weights, residual(A, weights), False) if small else None
    exact = exact_weights(A, weights)
    if exact is None:
        return None
    kept = np.array([x > 0 for x in exact])
    rounded = np.array([float(x) for x in exact])[kept]
    return Witness(rows[kept], rounded, residual(A[kept], rounded), True)


def _settle(A: FloatArray, guess: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A without empty columns, and weights with rounding noise set to 0."""
    kept = np.ones(len(A), dtype=bool)
    weights = guess
    for _ in range(_ROUNDS):
        columns = A[kept].any(axis=0)
        scaled, powers = _equilibrate(A[:, columns])
        x = np.zeros(len(A))
        x[kept] = _polish(scaled[kept], (guess * powers)[kept])
        if not np.isfinite(x).all():
            break
        weights = np.where(x > 0, x / powers, 0.0)
        noise = kept & ~(x > _NOISE * x.max())
        if not noise.any():
            break
        kept &= ~noise
        weights = np.where(kept, weights, 0.0)
    return A[:, columns], weights


def exact_weights(A: FloatArray, weights: FloatArray) -> list[Fraction] | None:
    """Rational weights >= 0 of sum 1 with A'weights = 0, near the given ones; None if there are none."""
    u = null_vector(np.ascontiguousarray(A.T), weights)
    if u is None or any(x < 0 for x in u):
        return None
    total = sum(u)
    return [x / total for x in u] if total else None


def round_to(A: FloatArray, weights: FloatArray) -> bool:
    """Return whether there are rational weights > 0 of sum 1 with A'weights = 0 that agree with the given ones."""
    for guess in (weights, np.ones(len(weights))):  # matters only if solutions are not unique
        exact = exact_weights(A, guess)
        if exact is not None and all(
            x > 0 and abs(x - Fraction(float(w))) <= _SAME * x + _TINIEST
            for x, w in zip(exact, weights.tolist(), strict=True)
        ):
            return True
    return False


def balances(A: FloatArray, weights: FloatArray) -> bool:
    """Return whether A'weights = 0 holds up to rounding, assuming that nothing underflows."""
    return residual(A, weights) <= 16 * (len(weights) + 2) * ROUNDOFF


def underflows(A: FloatArray, weights: FloatArray) -> bool:
    """Return whether weights or their products with A are so small or so large that floats lose digits."""
    with np.errstate(over="ignore", invalid="ignore"):
        products = weights[:, None] * np.abs(A)
    sizes = np.append(products[A != 0], weights)
    return not bool(((sizes > SMALL) & np.isfinite(sizes)).all())


def residual(A: FloatArray, weights: FloatArray) -> float:
    """Largest entry of |sum alpha a| relative to sum alpha |a|; rounding alone gives a few units of 1e-16."""
    with np.errstate(over="ignore"):
        total, size = np.abs(weights @ A), weights @ np.abs(A)
    return float(np.divide(total, size, out=np.zeros_like(total), where=size > 0).max(initial=0.0))


def proves_positive(A: FloatArray, weights: FloatArray) -> bool:
    """Return whether positive weights of sum 1 with A'weights = 0 provably exist near the given ones.

    A must have no empty column. Rows and columns are scaled by powers of two; nothing is proven if that rounds, because
    the numbers then differ so much that they underflow.
    """
    scaled, rows, columns = _powers(A)
    with np.errstate(over="ignore"):
        same = np.ldexp(scaled, rows[:, None] + columns) == A
    if not same.all() or not abs(float(weights.sum()) - 1.0) <= 1e-12:
        return False
    with np.errstate(over="ignore", under="ignore"):
        x = np.ldexp(weights, rows)
    return bool(np.isfinite(x).all()) and proves(scaled, x)


def proves(scaled: FloatArray, x: FloatArray) -> bool:
    """Return whether a positive solution of E'x = (0, 1), E = (scaled, 1), provably exists near x.

    The rows of ``scaled`` may be multiples of the a_i; their weights are then divided by the factors.
    """
    k, p = scaled.shape
    if k != p + 1 or not (x > 0).all():
        return False
    M = np.vstack([scaled.T, np.ones(k)])
    x = x / x.sum()
    try:
        R = lapack(np.linalg.inv, M)
    except np.linalg.LinAlgError:
        return False
    chain = (2 * k + 8) * ROUNDOFF
    off = np.abs(R @ M - np.eye(k)) + chain * (np.abs(R) @ np.abs(M))
    contraction = float(off.sum(axis=1).max())
    target = np.zeros(k)
    target[-1] = 1.0
    miss = np.abs(M @ x - target) + chain * (np.abs(M) @ x + target)
    bound = float((np.abs(R) @ miss).max()) * (1 + chain)
    return contraction < 0.5 and bool((x > 2.1 * bound + _UNDERFLOW).all())


def _equilibrate(A: FloatArray) -> tuple[FloatArray, FloatArray]:
    """A with rows and columns divided by powers of two, exact unless numbers underflow, and the row factors."""
    scaled, rows, _ = _powers(A)
    with np.errstate(over="ignore"):
        return scaled, np.ldexp(1.0, rows)


def _powers(A: FloatArray) -> tuple[FloatArray, IntArray, IntArray]:
    """A with rows and columns divided by powers of two, and the exponents of rows and columns."""
    columns = np.frexp(np.abs(A).max(axis=0, initial=0.0))[1]
    A = np.ldexp(A, -columns)
    rows = np.frexp(np.abs(A).max(axis=1, initial=0.0))[1]
    return np.ldexp(A, -rows[:, None]), rows, columns


def _polish(scaled: FloatArray, x: FloatArray) -> FloatArray:
    """Least squares solution of E'x = (0, 1), with one step of iterative refinement."""
    k = len(x)
    M = np.vstack([scaled.T, np.ones(k)])
    target = np.zeros(len(M))
    target[-1] = 1.0
    x = x / x.sum()
    for _ in range(2):
        miss = target - (M.astype(np.longdouble) @ x.astype(np.longdouble))
        x = x + lapack(np.linalg.lstsq, M, miss.astype(np.float64), rcond=1e-13)[0]
    return np.asarray(x)


def _affordable(A: FloatArray) -> bool:
    if len(A) <= _EXACT_ROWS:
        return True
    whole = bool((A == np.rint(A)).all()) and float(np.abs(A).max()) <= _SMALL_INTEGER
    return whole and len(A) <= _EXACT_WHOLE
