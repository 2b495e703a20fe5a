"""Linear systems over the rational numbers."""

from __future__ import annotations

import importlib.util
import math
from collections.abc import Sequence
from fractions import Fraction
from typing import Any

from linsep.interrupts import check

#: Whether python-flint is installed, which solves large systems faster and provides ball arithmetic.
HAS_FLINT = importlib.util.find_spec("flint") is not None


def solve_rational(
    matrix: Sequence[Sequence[Fraction]], rhs: Sequence[Fraction]
) -> list[Fraction] | None:
    """Solve a square system without rounding; None if the matrix is singular."""
    whole = [_integers([*row, b]) for row, b in zip(matrix, rhs, strict=True)]
    if HAS_FLINT:
        return _by_flint(whole)
    return _by_elimination(whole)


def independent_columns(gram: Sequence[Sequence[int]]) -> list[int]:
    """Columns that do not depend on earlier ones, from their Gram matrix, by Bareiss elimination."""
    rows, kept, before = [list(row) for row in gram], [], 1
    for at in range(len(rows)):
        check()
        if rows[at][at] == 0:  # semidefinite: a zero pivot means a dependent column
            continue
        kept.append(at)
        before = _eliminate(rows, at, before)
    return kept


def _eliminate(rows: list[list[int]], at: int, before: int) -> int:
    """Eliminate column ``at`` below row ``at``; return the pivot, by which the next step divides exactly (Bareiss)."""
    top = rows[at]
    for i in range(at + 1, len(rows)):
        lead, pairs = rows[i][at], zip(rows[i], top, strict=True)
        rows[i] = [(top[at] * x - lead * t) // before for x, t in pairs]
    return top[at]


def _integers(row: list[Fraction]) -> list[int]:
    common = math.lcm(*(x.denominator for x in row))
    return [x.numerator * (common // x.denominator) for x in row]


def _by_flint(whole: list[list[int]]) -> list[Fraction] | None:
    import flint  # noqa: PLC0415

    left = flint.fmpz_mat([row[:-1] for row in whole])
    try:
        found: Any = left.solve(flint.fmpz_mat([[row[-1]] for row in whole]))
    except ZeroDivisionError:
        return None
    return [Fraction(int(found[i, 0].p), int(found[i, 0].q)) for i in range(len(whole))]


def _by_elimination(whole: list[list[int]]) -> list[Fraction] | None:
    k, before = len(whole), 1
    for at in range(k):
        check()
        pivot = next((i for i in range(at, k) if whole[i][at]), None)
        if pivot is None:
            return None
        whole[at], whole[pivot] = whole[pivot], whole[at]
        before = _eliminate(whole, at, before)
    solution = [Fraction(0)] * k
    for i in reversed(range(k)):
        known = sum((whole[i][j] * solution[j] for j in range(i + 1, k)), Fraction(0))
        solution[i] = (whole[i][k] - known) / whole[i][i]
    return solution
