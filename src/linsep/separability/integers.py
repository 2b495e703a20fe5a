"""Exact null vectors of float matrices, by integer elimination.

Floats are integers times powers of two, so a homogeneous linear system over floats is one over the integers.
Fraction-free elimination (Bareiss 1968) keeps every entry a minor of the matrix.
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.linalg

from linsep.arrays import FloatArray
from linsep.exact.dyadic import DyadicRows
from linsep.interrupts import lapack

Integers = npt.NDArray[np.object_]

_RANK = 1e-11  # relative threshold for zero pivots in floating point


def null_vector(M: FloatArray, guess: FloatArray) -> list[Fraction] | None:
    """Rational u with M u = 0 exactly, whose free entries equal ``guess``; None if only u = 0 is a solution.

    The independent rows of M are selected by a float factorisation with pivoting. The result is then multiplied with
    every row of M, so a wrong selection costs only time: all rows are used instead.
    """
    numbers = DyadicRows.of(M.T).num.T  # each equation may be scaled by its own power of two
    size = np.abs(M).max(axis=1, initial=0.0)
    full = np.flatnonzero(size > 0)
    scaled = M[full] / size[full, None]
    if not len(full):
        return [Fraction(x) for x in guess.tolist()]
    _, R, order = lapack(scipy.linalg.qr, scaled.T, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > _RANK * pivots[0]).sum())
    for chosen in (full[order[:rank]], full):
        form, columns = _echelon(numbers[chosen], guess)
        if len(columns) < M.shape[1]:
            u = _back_substitute(form, columns, guess)
            whole, _ = common_denominator(u)
            if not (numbers @ whole).any():
                return u
    return None


def common_denominator(values: list[Fraction]) -> tuple[Integers, int]:
    """Integers and their common positive denominator: values = integers / divisor."""
    divisor = math.lcm(*(value.denominator for value in values))
    whole = np.empty(len(values), dtype=object)
    whole[:] = [value.numerator * (divisor // value.denominator) for value in values]
    return whole, divisor


def _echelon(M: Integers, guess: FloatArray) -> tuple[Integers, list[int]]:
    """M in echelon form and its pivot columns, chosen in order of decreasing |guess|."""
    M = M.copy()
    columns: list[int] = []
    previous, row = 1, 0
    for column in np.argsort(-np.abs(guess), kind="stable").tolist():
        if row == len(M):
            break
        nonzero = np.flatnonzero(M[row:, column])
        if not len(nonzero):
            continue
        at = row + int(nonzero[0])
        M[[row, at]] = M[[at, row]]
        pivot = M[row, column]
        below = M[row + 1 :]
        below[:] = (below * pivot - np.outer(below[:, column], M[row])) // previous
        previous, row = pivot, row + 1
        columns.append(column)
    return M, columns


def _back_substitute(M: Integers, columns: list[int], guess: FloatArray) -> list[Fraction]:
    """Solution with the free entries of ``guess`` and the others from the echelon form."""
    u: list[Any] = [Fraction(x) for x in guess.tolist()]
    for column in columns:
        u[column] = Fraction(0)
    for row in range(len(columns) - 1, -1, -1):
        whole, divisor = common_denominator(u)
        total = int(M[row] @ whole)
        u[columns[row]] = Fraction(-total, divisor * int(M[row, columns[row]]))
    return u
