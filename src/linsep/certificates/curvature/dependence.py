"""Find the columns of x~ = (x, 1) that are linear combinations of the others, in exact arithmetic.

Without a penalty, a column that is exactly a combination of others on all rows that count may be left out, because the
same scores remain attainable. Dependence to working precision is not enough: the objective may decrease without bound
along a direction in which no score changes by more than its rounding error. So dependences are guessed in floating
point and proven in integers:

1. QR with column pivoting of the centred columns finds columns whose distance from the span of the others is of the
   size of rounding, and their coefficients. Each difference x - mean is rounded once, so large offsets do not matter.
2. The coefficients are rounded to the nearest fractions with small denominators. Duplicates, constants, zero columns,
   full sets of indicators, totals of counts and changes of units have such coefficients.
3. With an intercept, its coefficient follows exactly from one row.
4. The identity is checked without rounding on every row that counts.

A column that fails the check is kept. If it is nearly dependent all the same, the proof of positive definiteness fails
later. There is one more sufficient condition: if r columns are independent and at most r rows are different, these
columns span all columns.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.linalg
import scipy.sparse as sp

from linsep.arrays import BoolArray, FloatArray, IntArray
from linsep.certificates.curvature.metric import Metric
from linsep.certificates.curvature.rows import Rows, stacked_qr
from linsep.exact.dyadic import Dyadic, DyadicRows
from linsep.interrupts import lapack
from linsep.problem.closing_rows import ROUNDOFF

#: Relative distance from the span of the others, per column, below which a column is examined.
_NEAR = 64.0 * ROUNDOFF
#: Relative distance below which columns are reported to the user as nearly dependent; smallest coefficient of a column
#: in the combination for it to be named; most columns named; and most multiply-adds spent on the search.
_VISIBLE, _MATTERS, _NAMED, _LARGEST = 1e-9, 1e-3, 4, 1e9
#: Accuracy of the coefficients found in floating point, for columns of length 1.
_BLUR = 1e-8
#: Largest denominator of a coefficient.
_DENOMINATOR = 5000
#: Factor that makes the constant column the first pivot.
_FIRST = 4.0
#: Integers up to this one are exact in float64.
_EXACT = 2.0**53


@dataclass(frozen=True)
class Dependence:
    """Identity 0 = ``own`` x_column + sum_k ``factors[k]`` x_others[k] with integer factors."""

    column: int
    own: int
    others: tuple[int, ...]
    factors: tuple[int, ...]

    def holds_on(self, A: FloatArray) -> bool:
        """Whether the identity holds exactly on these rows of x~."""
        block = A[:, [self.column, *self.others]]
        return vanishes(block, (self.own, *self.factors))


def proven_metric(
    part: Rows, h: FloatArray, counts: BoolArray, every: Rows | None = None
) -> Metric | None:
    """Return a norm in which lam I_w + sum h x~ x~' is proven positive definite; None if the proof fails.

    Without a penalty, columns are left out that are exact combinations of others on all rows that count: those of
    ``part`` in ``counts`` or with h > 0 or, if ``part`` has only some of the rows, those of ``every`` in ``counts``,
    which must include the rows with h > 0.
    """
    if part.lam > 0.0:
        return part.metric(h)
    if every is None:
        every, counts = part, counts | (h > 0.0)
    columns = distinct_columns(every, counts)
    metric = part.metric(h, columns)
    if metric is not None:
        return metric
    independent = independent_columns(every, counts)
    return part.metric(h, independent) if len(independent) < len(columns) else None


def distinct_columns(part: Rows, counts: BoolArray) -> IntArray:
    """Return the columns of x~ without those of a sparse X that are 0, or equal to an earlier one, where ``counts``."""
    if not sp.issparse(part.X):
        return np.arange(part.size)
    X = sp.csc_matrix(part.X[counts])
    X.sum_duplicates()
    X.eliminate_zeros()
    first: dict[tuple[bytes, bytes], int] = {}
    for j, (start, end) in enumerate(itertools.pairwise(X.indptr.tolist())):
        if end > start:
            first.setdefault((X.indices[start:end].tobytes(), X.data[start:end].tobytes()), j)
    return np.append(list(first.values()), np.arange(X.shape[1], part.size)).astype(np.intp)


def independent_columns(part: Rows, counts: BoolArray) -> IntArray:
    """Return columns of x~ of which all others are exact linear combinations on the rows where ``counts``.

    This holds if the returned columns are independent on these rows, which a proven metric shows: either each of
    the others was found to be a combination, or there are no more distinct rows than returned columns.
    """
    near = _Near.of(part, counts)
    if near is None:
        return np.arange(part.size)
    if _different_rows(part, counts, len(near.basis)) <= len(near.basis):
        return np.sort(near.basis)
    guesses = (_guess(near, j, part.fit_intercept) for j in range(len(near.columns)))
    proven = [found for found in guesses if found is not None]
    for rows, A in part.chunks():
        block = A[counts[rows]]
        proven = [found for found in proven if found.holds_on(block)]
    dependent = {found.column for found in proven}
    return np.array([j for j in range(part.size) if j not in dependent], dtype=np.intp)


def _different_rows(part: Rows, counts: BoolArray, enough: int) -> int:
    """Number of distinct rows among those that count; counting stops once it exceeds ``enough``."""
    seen: set[bytes] = set()
    for rows, A in part.chunks():
        for row in A[counts[rows]] + 0.0:  # -0 becomes 0
            seen.add(row.tobytes())
            if len(seen) > enough:
                return len(seen)
    return len(seen)


def describe_near_dependence(
    X: Any, weight: FloatArray | None, fit_intercept: bool, names: Any = None
) -> str:
    """Return a sentence that names nearly dependent columns and says what to do; "" if there are none."""
    n = X.shape[0]
    s = np.ones(n) if weight is None else weight
    part = Rows(X, np.ones(n), np.zeros(n), s, fit_intercept, 0.0)
    if n * float(part.size) ** 2 > _LARGEST:
        return ""
    constant = _nearly_constant(part) if fit_intercept else []
    involved = constant[:1] or _dependent_columns(part, s > 0.0)
    listed = ", ".join(f"{j} ({names[j]!r})" if names is not None else str(j) for j in involved)
    if len(involved) == 1:
        return f"Column {listed} is nearly constant: subtract its mean, or leave it out."
    if not involved:
        return ""
    return (
        f"Columns {listed} are nearly linearly dependent, so float64 cannot tell their coefficients apart: "
        "leave one of them out, or replace one by its difference from the others."
    )


def _nearly_constant(part: Rows) -> list[int]:
    """Columns that vary only in their last digits."""
    low, high = np.full(part.size, math.inf), np.full(part.size, -math.inf)
    for _, A in part.chunks():
        low, high = np.minimum(low, A.min(axis=0)), np.maximum(high, A.max(axis=0))
    spread, size = high - low, np.maximum(np.abs(low), np.abs(high))
    return [int(j) for j in np.flatnonzero((spread > 0.0) & (spread <= _VISIBLE * size))]


def _dependent_columns(part: Rows, counts: BoolArray) -> list[int]:
    """The columns with the largest coefficients in one near dependence; empty if there is none."""
    near = _Near.of(part, counts, _VISIBLE)
    if near is None:
        return []
    size = np.abs(near.scaled[:, 0])
    if part.fit_intercept:
        size[near.basis == part.size - 1] = 0.0
    order = near.basis[np.argsort(-size, kind="stable")[: np.count_nonzero(size > _MATTERS)]]
    return sorted({int(near.columns[0]), *order[:_NAMED].tolist()})


@dataclass(frozen=True, eq=False)
class _Near:
    """Columns close to the span of a basis: x_columns ~ x_basis @ coefficients."""

    basis: IntArray
    columns: IntArray
    scaled: FloatArray  #: coefficients for columns scaled to length 1
    scale: FloatArray  #: lengths of all columns
    first: FloatArray  #: first row that counts

    @classmethod
    def of(cls, part: Rows, counts: BoolArray, distance: float = _NEAR) -> _Near | None:
        """Return None if no row counts or no column is within ``distance``, per column, of the span of others."""
        R, first = _factor(part, counts)
        if first is None or not np.isfinite(R).all():
            return None
        scale = np.sqrt((R * R).sum(axis=0))
        scale[scale == 0.0] = 1.0
        R = R / scale
        if part.fit_intercept:
            R[:, -1] *= _FIRST
            scale[-1] /= _FIRST
        R, pivots = lapack(scipy.linalg.qr, R, mode="r", pivoting=True, check_finite=False)
        size = np.abs(np.diagonal(R))
        rank = int(np.count_nonzero(size > distance * part.size * size.max(initial=0.0)))
        if rank == part.size:
            return None
        basis, others = pivots[:rank].astype(np.intp), pivots[rank:].astype(np.intp)
        scaled = lapack(
            scipy.linalg.solve_triangular, R[:rank, :rank], R[:rank, rank:], check_finite=False
        )
        return cls(basis, others, np.asarray(scaled), scale, first)


def _factor(part: Rows, counts: BoolArray) -> tuple[FloatArray, FloatArray | None]:
    """Triangular factor of the rows that count, centred if there is an intercept, and the first of these rows."""
    R, first, shift = np.zeros((0, part.size)), None, np.zeros(part.size)
    for rows, A in part.chunks():
        block = A[counts[rows]]
        if first is None and len(block):
            first = block[0].copy()
            if part.fit_intercept:
                shift[:-1] = block[:, :-1].mean(axis=0)
        R = stacked_qr(R, block - shift)
    return R, first


def _guess(near: _Near, j: int, fit_intercept: bool) -> Dependence | None:
    """Return the j-th near column with its coefficients as fractions; None if they are not simple."""
    column, intercept = int(near.columns[j]), len(near.scale) - 1 if fit_intercept else -1
    terms: dict[int, Fraction] = {}
    blur = _BLUR * max(1.0, float(np.abs(near.scaled[:, j]).max(initial=0.0)))
    for k, scaled in zip(near.basis.tolist(), near.scaled[:, j].tolist(), strict=True):
        if abs(scaled) <= blur or k == intercept:
            continue
        ratio = near.scale[column] / near.scale[k]
        value = Fraction(scaled * ratio).limit_denominator(_DENOMINATOR)
        if value == 0 or abs(float(value) - scaled * ratio) > blur * ratio:
            return None
        terms[k] = value
    if fit_intercept:
        at = near.first
        rest = sum((v * Fraction(float(at[k])) for k, v in terms.items()), Fraction(0))
        level = Fraction(float(at[column])) - rest
        if level:
            terms[intercept] = level
    own = math.lcm(*(v.denominator for v in terms.values()))
    factors = tuple(int(-v * own) for v in terms.values())
    return Dependence(column, own, tuple(terms), factors)


def vanishes(block: FloatArray, factors: tuple[int, ...]) -> bool:
    """Return whether block @ factors = 0 exactly; the factors are integers of any size."""
    if not len(block):
        return True
    if len(factors) == 1:
        return factors[0] == 0 or not block.any()
    if len(factors) == 2 and abs(factors[0]) == abs(factors[1]):
        sign = -1.0 if factors[0] == factors[1] else 1.0
        return bool(np.array_equal(block[:, 0], sign * block[:, 1]))
    if len(factors) == 2 and (block == block[0]).all():  # constant columns: one row suffices
        block = block[:1]
    grain = _grain(block)
    largest = np.abs(block).max(axis=0)
    if all(abs(f) < _EXACT for f in factors):
        sizes = np.abs(np.array(factors, dtype=np.float64))
        if float(sizes @ largest) < _EXACT * grain * (1 - 1e-9):  # every partial sum is exact
            return not (block @ np.array(factors, dtype=np.float64)).any()
        value, size = block @ np.array(factors, dtype=np.float64), np.abs(block) @ sizes
        if (np.abs(value) > 2 * (len(factors) + 4) * ROUNDOFF * size).any():
            return False
    whole = Dyadic(np.array(factors, dtype=object), 0)
    return not any(DyadicRows.of(block).dot(whole).num.tolist())


def _grain(block: FloatArray) -> float:
    """Largest power of two of which all entries are multiples; 0 if that is close to underflow."""
    mantissa, exponent = np.frexp(block[block != 0.0])
    if not len(mantissa):
        return 1.0
    whole = (mantissa * _EXACT).astype(np.int64)
    trailing = np.frexp((whole & -whole).astype(np.float64))[1] - 1
    least = int((exponent - 53 + trailing).min())
    return math.ldexp(1.0, least) if least > -1000 else 0.0
