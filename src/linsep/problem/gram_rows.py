"""Inner products of rows: all the data of a ridge problem whose coefficients lie in the span of the rows."""

from __future__ import annotations

from dataclasses import dataclass

from linsep.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class GramRows:
    """Inner products K of rows relative to a centre, with the sign, offset and weight of each row.

    ``d`` is the number of terms in each inner product, ``centre_norm`` the Euclidean norm of the centre.
    """

    K: FloatArray
    d: int
    centre_norm: float
    sigma: FloatArray
    offset: FloatArray | None
    weight: FloatArray | None
