"""Vectors and matrices of Decimals as object arrays, with the linear algebra that the solvers need."""

from __future__ import annotations

import decimal
from collections.abc import Iterator
from contextlib import contextmanager
from decimal import Decimal
from typing import Any

import numpy as np

from linsep.arrays import BoolArray, FloatArray
from linsep.exact.budget import spend
from linsep.interrupts import check

#: Arrays of Decimals, which numpy types only as objects.
Decimals = Any

DIGITS = 70
#: Most multiply-adds per iteration for which decimal arithmetic is used: a few tenths of a second.
LARGEST = 400_000
#: Work per row besides the Hessian, in columns of the Hessian.
_OVERHEAD = 10
ZERO, ONE = Decimal(0), Decimal(1)

_convert = np.frompyfunc(Decimal, 1, 1)


def multiply_adds(rows: int, coefficients: int) -> int:
    """Work of one Newton iteration in multiply-adds: the Hessian and its Cholesky factor."""
    return rows * (coefficients + _OVERHEAD) ** 2 + coefficients**3 // 2


def worthwhile(rows: int, coefficients: int) -> bool:
    """Return whether a problem of this size can be solved in decimal arithmetic within seconds."""
    return multiply_adds(rows, coefficients) <= LARGEST


@contextmanager
def many_digits(digits: int = DIGITS) -> Iterator[None]:
    """Context with decimal arithmetic of ``digits`` digits and unlimited exponents."""
    with decimal.localcontext() as context:
        context.prec = digits
        context.Emax, context.Emin = decimal.MAX_EMAX, decimal.MIN_EMIN
        yield


def decimals(values: Any) -> Decimals:
    """Convert float64 numbers to Decimals without rounding."""
    return _convert(np.asarray(values, dtype=np.float64))


def zeros(*shape: int) -> Decimals:
    """An array of zeros."""
    return np.full(shape, ZERO, dtype=object)


def only(mask: BoolArray, values: Any) -> Decimals:
    """Return the values where the mask is true, 0 elsewhere."""
    return np.where(mask, values, zeros(*mask.shape))


def floats(values: Decimals) -> FloatArray:
    """Round every number to float64."""
    return np.array([float(x) for x in values.ravel()]).reshape(values.shape)


def two_floats(values: Decimals) -> tuple[FloatArray, FloatArray]:
    """Represent every number as an unevaluated sum of two float64 numbers."""
    high = floats(values)
    return high, floats(values - decimals(high))


def powers_of_two(sizes: FloatArray) -> Decimals:
    """2^-k, where k is the exponent with 2^(k-1) <= size < 2^k; 1 where the size is 0."""
    exponents = np.where(sizes > 0.0, np.frexp(sizes)[1], 0)
    return np.array([Decimal(2) ** -int(k) for k in exponents], dtype=object)


def count_work(multiply_adds: float) -> None:
    """Count multiply-adds at the current precision against the work budget."""
    spend(multiply_adds * decimal.getcontext().prec / DIGITS)


def gram(B: Decimals, h: Decimals) -> Decimals:
    """B' diag(h) B."""
    p = B.shape[1]
    H = np.empty((p, p), dtype=object)
    for j in range(p):
        check()
        H[j:, j] = H[j, j:] = B[:, j:].T @ (h * B[:, j])
    return H


def cholesky(H: Decimals) -> Decimals:
    """Lower triangular L with L L' = H; each pivot is increased by H_jj 10^(-2/3 digits), in case H is singular."""
    p = len(H)
    flat = Decimal(10) ** -(decimal.getcontext().prec * 2 // 3)
    L = zeros(p, p)
    for j in range(p):
        check()
        column = H[j:, j] - (L[j:, :j] @ L[j, :j] if j else ZERO)
        least = H[j, j] * flat
        pivot = max(column[0], ZERO) + least
        root = pivot.sqrt() if pivot > 0 else ONE
        L[j, j] = root
        L[j + 1 :, j] = column[1:] / root
    return L


def forward(L: Decimals, b: Decimals) -> Decimals:
    """L^-1 b."""
    x = b.copy()
    for j in range(len(x)):
        x[j] = (x[j] - (L[j, :j] @ x[:j] if j else ZERO)) / L[j, j]
    return x


def backward(L: Decimals, b: Decimals) -> Decimals:
    """L'^-1 b."""
    x = b.copy()
    for j in range(len(x) - 1, -1, -1):
        x[j] = (x[j] - (L[j + 1 :, j] @ x[j + 1 :] if j + 1 < len(x) else ZERO)) / L[j, j]
    return x
