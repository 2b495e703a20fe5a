"""Inner products of rows: the whole of a ridge problem where coefficients are in the span of the rows."""

from __future__ import annotations

from dataclasses import dataclass

from linsep.arrays import FloatArray


@dataclass(frozen=True, eq=False)
class GramRows:
    """Inner products K of some rows about a centre, with the sign, offset and weight of each row.

    ``d`` is the number of products in each inner product, ``centre_norm`` the length of the centre.
    """

    K: FloatArray
    d: int
    centre_norm: float
    sigma: FloatArray
    offset: FloatArray | None
    weight: FloatArray | None
