"""Signed rows a_i = sigma_i (x_i, 1) for separability tests, and passes over their margins.

A hyperplane theta = (w, b) separates iff a_i.theta > 0 for every row. Margins are computed in float64 with a bound on
their rounding error; a row within the bound is *doubtful* and is decided in exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import scipy.sparse as sp

from linsep import _kernels
from linsep.arrays import FloatArray, IntArray, dense
from linsep.data import Block, Dataset, Location
from linsep.exact.dyadic import Dyadic, DyadicRows
from linsep.monitoring import note

ROUNDOFF = 2.0**-53
TINIEST = 2.0**-1074
SMALL = 1e-290  #: smaller numbers may have lost digits to underflow
SLACK = 1e-11  #: margin that counts as zero if theta has noise, relative to the reach of the noise
_VANISHING = 1e-300  #: smaller products lose digits


@dataclass(frozen=True, eq=False)
class Scan:
    """Result of a pass over the margins of theta.

    ``ratio`` is the margin divided by |x|.|w| + |b| (a number in [-1, 1]) or by the reach of the noise. Rows whose
    margin is below minus its rounding bound are ``violated``, those within the bound ``doubtful``. ``low`` is a lower
    bound on the margins of all others.
    """

    worst: IntArray
    ratio: FloatArray
    violated: int
    doubtful: IntArray
    low: float


class SignedRows:
    """Rows of two classes as signed vectors a_i, which a separator has all on one side."""

    def __init__(self, data: Dataset, fit_intercept: bool = True) -> None:
        self.data, self.fit_intercept = data, fit_intercept
        self.passes = 0
        weight = data.weight
        self.counted: IntArray = np.arange(data.n)
        if weight is not None and not weight.all():
            self.counted = np.flatnonzero(weight > 0)

    @property
    def unit(self) -> float:
        """Rounding error of a margin, relative to |x|.|w| + |b|."""
        return (self.data.d + 10) * ROUNDOFF

    def features(self, rows: IntArray) -> Any:
        """x of some rows, dense or CSR, in float64."""
        if self.data.location is Location.CLUSTER:
            # sorted, because some rows may already have been fetched by a scan
            wanted, back = np.unique(rows, return_inverse=True)
            X = self.data.sample(wanted).X[back]
        else:
            X = self.data.X[rows]
        return X.astype(np.float64) if sp.issparse(X) else np.asarray(X, dtype=np.float64)

    def signed_matrix(self, rows: IntArray) -> FloatArray:
        """a_i of some rows as a dense matrix: sigma (x, 1), or sigma x without an intercept."""
        X = dense(self.features(rows))
        sign = self.data.sign[rows][:, None]
        return np.hstack([sign * X, sign]) if self.fit_intercept else sign * X

    def scan(self, theta: FloatArray, count: int, noise: FloatArray | None = None) -> Scan:
        """Find the ``count`` rows of lowest ratio, and count those not provably on the right side. One pass.

        ``noise`` = (|dw|, |db|) bounds the error of theta itself; ratios are then relative to it, and those below
        ``SLACK`` are doubtful.
        """
        self.passes += 1
        theta = np.ascontiguousarray(theta, dtype=np.float64)
        measure = theta if noise is None else np.ascontiguousarray(noise)
        unit = self.unit if noise is None else max(self.unit, SLACK)

        def add(block: Block, out: FloatArray) -> tuple[IntArray, FloatArray, IntArray, float]:
            m = block.sign[block.lo : block.hi] * block.scores(theta)
            reach = np.empty_like(m)
            _kernels.reaches(block.rows, block.lo, block.hi, measure, reach)
            margin_error = unit * reach + _VANISHING
            ratio = np.divide(m, reach, out=np.zeros_like(m), where=reach > 0)
            if block.weight is not None:
                absent = block.weights() == 0
                m[absent], ratio[absent], margin_error[absent] = np.inf, np.inf, 0.0
            unsure = ~(np.abs(m) > margin_error)
            out[0] += np.count_nonzero(m < -margin_error)
            first = block.first + block.lo
            few = _lowest(ratio, count)
            low = float((m - margin_error)[m > margin_error].min(initial=np.inf))
            return first + few, ratio[few], first + np.flatnonzero(unsure), low

        share = 16 + -(-2 * count * self.data.largest_part // self.data.n)
        sums, found = self.data.visit(add, 1, prefetch_rows=_worst_of_part(min(count, share)))
        rows = np.concatenate([part[0] for part in found])
        ratio = np.concatenate([part[1] for part in found])
        few = np.lexsort((rows, ratio))[:count]
        few = few[np.isfinite(ratio[few])]
        note(self.passes)
        doubtful = np.concatenate([part[2] for part in found])
        low = min(part[3] for part in found)
        return Scan(rows[few], ratio[few], int(sums[0]), doubtful, low)

    def exact_margins(self, rows: IntArray, theta: FloatArray) -> list[Fraction]:
        """Margins a_i.theta of some rows as rational numbers."""
        return exact_margins(dense(self.features(rows)), self.data.sign[rows], theta)


def exact_margins(X: FloatArray, sign: FloatArray, theta: FloatArray) -> list[Fraction]:
    """sigma (x.w + b) for dense rows, without rounding."""
    if not len(X):
        return []
    columns = np.flatnonzero(X.any(axis=0))
    score = DyadicRows.of(X[:, columns]).dot(Dyadic.of(theta[:-1][columns]))
    return (Dyadic.of(sign) * (score + Dyadic.of(theta[-1]))).fractions()


def _worst_of_part(count: int) -> Callable[[list[Any]], IntArray]:
    """Return a function that selects the rows of lowest ratio, and some doubtful ones, in a part of the data."""

    def rows(found: list[Any]) -> IntArray:
        numbers, ratio, doubtful = (np.concatenate([part[k] for part in found]) for k in range(3))
        few = np.lexsort((numbers, ratio))[:count]
        return np.append(numbers[few[np.isfinite(ratio[few])]], doubtful[:count])

    return rows


def _lowest(values: FloatArray, count: int) -> IntArray:
    if len(values) <= count:
        return np.arange(len(values))
    return np.argpartition(values, count)[:count]
