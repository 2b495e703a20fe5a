"""Linear systems over the rational numbers, by integer elimination.

Floats are integers times powers of two, so a linear system over floats is one over the integers. Fraction-free
elimination (Bareiss 1968) keeps every entry a minor of the matrix.
"""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg

from linsep.arrays import FloatArray
from linsep.exact.dyadic import DyadicRows, Integers
from linsep.interrupts import check, lapack

#: Whether python-flint is installed, which solves large systems faster and provides ball arithmetic.
HAS_FLINT = importlib.util.find_spec("flint") is not None
_RANK = 1e-11  # relative threshold for zero pivots in floating point


def solve_rational(
    matrix: Sequence[Sequence[Fraction]], rhs: Sequence[Fraction]
) -> list[Fraction] | None:
    """Solve a square system without rounding; None if the matrix is singular."""
    whole = [common_denominator([*row, b])[0] for row, b in zip(matrix, rhs, strict=True)]
    if HAS_FLINT:
        return _by_flint(whole)
    return _by_elimination(whole)


def independent_columns(gram: Sequence[Sequence[int]]) -> list[int]:
    """Columns that do not depend on earlier ones, from their Gram matrix."""
    return _echelon(np.array(gram, dtype=object), range(len(gram)))[1]


def null_vector(M: FloatArray, guess: FloatArray) -> list[Fraction] | None:
    """Rational u with M u = 0 exactly, whose free entries equal ``guess``; None if only u = 0 is a solution.

    The independent rows of M are selected by a float factorisation with pivoting. The result is then multiplied with
    every row of M, so a wrong selection costs only time: all rows are used instead.
    """
    numbers = DyadicRows.of(M.T).num.T  # each equation may be scaled by its own power of two
    size = np.abs(M).max(axis=1, initial=0.0)
    full = np.flatnonzero(size > 0)
    scaled = M[full] / size[full, None]
    values = [Fraction(x) for x in guess.tolist()]
    if not len(full):
        return values
    _, R, order = lapack(scipy.linalg.qr, scaled.T, mode="economic", pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int((pivots > _RANK * pivots[0]).sum())
    largest_first = np.argsort(-np.abs(guess), kind="stable").tolist()
    for chosen in (full[order[:rank]], full):
        form, columns = _echelon(numbers[chosen], largest_first)
        if len(columns) < M.shape[1]:
            u = _back_substitute(form, columns, values)
            whole, _ = common_denominator(u)
            if not (numbers @ whole).any():
                return u
    return None


def common_denominator(values: Sequence[Fraction]) -> tuple[Integers, int]:
    """Integers and their common positive denominator: values = integers / divisor."""
    divisor = math.lcm(*(value.denominator for value in values))
    whole = np.empty(len(values), dtype=object)
    whole[:] = [value.numerator * (divisor // value.denominator) for value in values]
    return whole, divisor


def _by_flint(whole: Sequence[Integers]) -> list[Fraction] | None:
    import flint  # noqa: PLC0415

    left = flint.fmpz_mat([row[:-1].tolist() for row in whole])
    try:
        found: Any = left.solve(flint.fmpz_mat([[row[-1]] for row in whole]))
    except ZeroDivisionError:
        return None
    return [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(len(whole))]


def _by_elimination(whole: Sequence[Integers]) -> list[Fraction] | None:
    k = len(whole)
    form, columns = _echelon(np.array(whole, dtype=object), range(k))
    if len(columns) < k:
        return None
    return _back_substitute(form, columns, [Fraction(0)] * k + [Fraction(-1)])[:k]


def _echelon(M: Integers, order: Iterable[int]) -> tuple[Integers, list[int]]:
    """M in echelon form and its pivot columns, chosen in the given order."""
    M = M.copy()
    columns: list[int] = []
    previous, row = 1, 0
    for column in order:
        check()
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


def _back_substitute(M: Integers, columns: list[int], given: list[Fraction]) -> list[Fraction]:
    """Solution of M u = 0 with the free entries of ``given`` and the others from the echelon form."""
    u = list(given)
    for column in columns:
        u[column] = Fraction(0)
    for row in range(len(columns) - 1, -1, -1):
        whole, divisor = common_denominator(u)
        total = int(M[row] @ whole)
        u[columns[row]] = Fraction(-total, divisor * int(M[row, columns[row]]))
    return u
