"""Hyperplanes in floats that have given points strictly on their sides.

The points are separable, but the cone of the separating (w, b) may be too thin for a float search to find it, or for
the float vector nearest to an exact solution to lie in it. Multiples of a vector round to different directions: one
of a few hundred lies in a cone that is thinner than the distance of neighbouring floats.
"""

from __future__ import annotations

from collections.abc import Iterator
from fractions import Fraction

import numpy as np

from linsep.data import Memory
from linsep.dyadic import Dyadic, DyadicRows
from linsep.separability import Separable, decide, simplex
from linsep.separability.rounding import float_vectors, nearest_float
from linsep.zero_one.points import FloatArray, Mask, Points

_MULTIPLES = 600
_FEW = 20


def separators(points: Points, kept: Mask) -> Iterator[FloatArray]:
    """Candidates (w, b) that separate the kept points, likely ones first; none if they are not separable."""
    X, sign = points.X[kept], points.sign[kept]
    if not len(sign) or sign.min() == sign.max():
        yield np.append(np.zeros(X.shape[1]), sign[0] if len(sign) else 1.0)
        return
    answer = decide(Memory(X, sign, n_threads=1))
    if isinstance(answer, Separable):
        yield answer.hyperplane.homogeneous()
    elif answer.separable is None and X.size <= simplex.ENTRIES:
        theta, _ = simplex.decide(points.signed.signed(np.flatnonzero(kept)))
        if theta is not None:
            yield from _roundings(theta[:-1], X, sign)


def _roundings(w: list[Fraction], X: FloatArray, sign: FloatArray) -> Iterator[FloatArray]:
    """Multiples of w rounded to floats, those that leave room for an intercept, with one."""
    rows, sizes = DyadicRows.of(X), np.abs(X).max(axis=0)
    positive = (sign > 0).tolist()
    for multiple in range(1, 2 * _MULTIPLES, 2):
        vectors = list(float_vectors(w, sizes, multiple))
        if len(vectors) > 1 and multiple > _FEW:
            return  # not the digits are missing but the range of exponents
        for v in vectors:
            scores = rows.dot(Dyadic.of(v)).fractions()
            low = max(z for z, ours in zip(scores, positive, strict=True) if not ours)
            high = min(z for z, ours in zip(scores, positive, strict=True) if ours)
            for t in (nearest_float((low + high) / 2), nearest_float(high)):
                if low < Fraction(t) <= high:
                    yield np.append(v, -t)
                    break
